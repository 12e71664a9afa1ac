"""Who may call a server (keys, and tokens for browsers), what a repeated call returns, and the audit trail."""
