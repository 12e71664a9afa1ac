"""Copies: facts with the same text, of which a search finds one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Keys = NDArray[np.uint64]
Floats = NDArray[np.float32]

NAMED = 9
"""Copies of a text that are named; all are counted."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """A search that finds each text once: of several copies the one that `one_of_each` prefers."""

    judged: Rows
    shown: Sequence[int] = ()
    """The facts whose texts are not to be found."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The other facts with the text of one that was found."""

    count: int
    facts: list[int]
    """The first of them."""


def key(text: str) -> int:
    """The same for texts that differ in case and spaces only."""
    plain = " ".join(normalize("NFC", text).casefold().split())
    return int.from_bytes(hashlib.blake2b(plain.encode(), digest_size=8).digest(), "little")


def one_of_each(
    seqs: Rows, keys: Keys, lent: Floats, judged: Rows, also: Collection[int]
) -> tuple[Rows, dict[int, Copies]]:
    """The places of the facts to search, one for each key, and the copies by fact.

    Preferred are those in `also`, then those that were judged: what was said about a text counts even if other copies
    come and go. Then those that others lend most relevance to, then the oldest.
    """
    wanted = np.isin(seqs, np.fromiter(also, np.int64, len(also)))
    order = np.lexsort((seqs, -lent, ~np.isin(seqs, judged), ~wanted, keys))
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(starts, append=len(order))
    repeated = sizes > 1
    found: dict[int, Copies] = {}
    for start, size in zip(starts[repeated].tolist(), sizes[repeated].tolist(), strict=True):
        first, *others = seqs[order[start : start + min(size, NAMED + 1)]].tolist()
        found[first] = Copies(size - 1, others)
    return order[starts], found
