"""Leases: races, locks, and who keeps them."""
