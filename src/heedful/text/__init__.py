"""Texts: words, entities, statements, complaints and themes. Pure functions."""


def word_set(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


def shortened(text: str, limit: int = 70) -> str:
    """A text in one line of at most so many characters.

    >>> shortened("The gym\\nopens at six.", 14)
    'The gym opens…'
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "fact"), counted(2_000, "fact")
    ('1 fact', '2,000 facts')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
