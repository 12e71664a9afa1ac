"""The review queue: what people were unhappy with, as work to do."""
