"""The tables of the review queue."""
