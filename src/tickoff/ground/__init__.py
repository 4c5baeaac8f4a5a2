"""What a process stands on: its clocks, its threads, its event loop, and what a fork does to them."""
