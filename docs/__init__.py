"""The documentation, and what makes its derived pages."""
