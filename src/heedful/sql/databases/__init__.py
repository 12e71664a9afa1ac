"""Databases that queries run against, each opened for reading only."""

CONNECT_SECONDS = 10
"""How long a server may take to accept a connection."""
