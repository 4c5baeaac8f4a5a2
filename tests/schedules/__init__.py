"""Cron lines, periods, zones."""
