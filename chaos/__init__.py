"""Real processes on real stores, under faults: what they saw is checked. `python -m chaos --help`."""
