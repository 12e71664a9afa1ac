"""Results that are kept: many of short texts and few of long ones, so that nobody fills the memory with these."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Key = TypeVar("Key")
Value = TypeVar("Value")

LONG = 20_000
"""Characters of texts of which any result is kept: a question at its limit, and SQL that is parsed."""

LONG_ENTRIES = 8
"""Results of long texts that are kept: one call may ask for the same again and again."""


def cache_short(
    entries: int, characters: int
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Keeps so many results of a function of texts or words of up to so many characters; of longer ones, a few."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        short = cast(Callable[Parameters, Result], lru_cache(entries)(function))
        long = cast(Callable[Parameters, Result], lru_cache(LONG_ENTRIES)(function))

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            size = sum(map(_characters, args))
            chosen = short if size <= characters else long if size <= LONG else function
            return chosen(*args, **kwargs)

        return call

    return decorate


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(len, value)) if type(value) is tuple else 0


class Bounded(dict[Key, Value]):
    """A dictionary that is read as quickly as any other. Items are added by `keep`; where there are too many, the
    oldest is dropped.

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
