"""Who may call a server: keys, and tokens for browsers."""
