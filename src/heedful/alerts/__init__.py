"""Alerts: what is worth telling somebody at once, delivered at least once."""
