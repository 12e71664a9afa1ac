"""Keys, and tokens for browsers; the results of repeated calls; and the audit trail."""
