"""From a text to the terms it is found by: words, less the commonest, reduced to their stems, as numbers."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from heedful.learning.stemming import stem

_WORD = re.compile(r"[^\W_]+")

# Without "may" and "will", which are also names.
_STOP = frozenset(
    """
    a an the and or but if of to in on at by for from with as is are was were be been being am do does did have has had
    would can could should i you he she it we they me him her us them my your his its our their this that these those
    what which who whom whose when where why how not no so than then there here about into up out just
    s t re ve ll d m
    """.split()  # noqa: SIM905
)


@lru_cache(maxsize=1 << 17)
def _term(word: str) -> int | None:
    if word in _STOP:
        return None
    return int.from_bytes(hashlib.blake2b(stem(word).encode(), digest_size=8).digest(), "little")


def terms(text: str) -> list[int]:
    """The terms of a text, in order; a term's number is the same in every process."""
    return [term for word in _WORD.findall(text.lower()) if (term := _term(word)) is not None]
