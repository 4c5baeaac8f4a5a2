"""Fenced writes and upserts."""
