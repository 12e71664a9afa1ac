"""What texts say: words, entities, statements, complaints and themes. Pure functions."""
