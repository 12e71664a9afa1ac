"""A dictionary that holds so many items at most, and is read as quickly as any other."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Bounded(dict[Key, Value]):
    """Items are added by `keep`; where there are too many, the oldest is dropped.

    >>> known = Bounded[str, int](2)
    >>> for place, word in enumerate(("a", "b", "a", "c")):
    ...     known.keep(word, place)
    >>> known
    {'a': 2, 'c': 3}
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def keep(self, key: Key, value: Value) -> None:
        """Adds an item, as the newest."""
        self.pop(key, None)
        if len(self) >= self._size:
            del self[next(iter(self))]
        self[key] = value
