"""Measurements: always beside something else, in one run, by the ratio."""
