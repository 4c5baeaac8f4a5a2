"""The command line, tried as a user would: as a process."""
