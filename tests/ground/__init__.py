"""What a process stands on."""
