"""May a proven SQL query be used again for another question? Decisions, which say why they refuse."""
