"""Cron lines and periods, and the ticks they mean: pure values, the same on every server."""
