"""What people said, added up by the store."""
