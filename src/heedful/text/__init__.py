"""Texts: words, entities, statements, complaints and themes. Pure functions."""


def word_set(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())
