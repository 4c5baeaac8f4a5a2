"""What happens to ticks, told to other programs: each a thin subscriber of `jobs.on(...)`."""
