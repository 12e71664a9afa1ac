"""Results that are kept: many of short texts and few of long ones, so that nobody fills the memory with these."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

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
