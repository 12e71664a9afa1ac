"""Reports on opinions, added up by the store."""
