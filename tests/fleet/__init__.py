"""Fleets of real server processes."""
