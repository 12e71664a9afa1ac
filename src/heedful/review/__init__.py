"""The review queue: negative opinions as work to do."""
