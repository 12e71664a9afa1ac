"""Which terms of a query a database should look for: those whose holders are few, alone or together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

ENOUGH = 3000
"""The facts that are looked at for their words, or about so many."""

MOST_TERMS = 64
"""A long query is searched by so many of its rarest terms."""

COMBINED = 8
"""The rarest terms that are sought together."""

Group = tuple[int, ...]


def rarest(holders: Mapping[int, int]) -> list[int]:
    """The terms of a query that some fact has, the rarest first, as far as they are used."""
    return sorted((term for term in holders if holders[term]), key=lambda term: (holders[term], term))[:MOST_TERMS]


def groups(terms: Sequence[int], holders: Mapping[int, int], living: int) -> list[Group]:
    """Terms to look for: each alone as long as that is not too many facts, then common ones in pairs, then in threes.

    How many facts have several terms is guessed as if terms had nothing to do with each other. If even the least is too
    many, it is returned.
    """
    every: list[list[Group]] = [[(term,) for term in terms]]
    every += [list(combinations(terms[:COMBINED], size)) for size in (2, 3)]

    def expected(group: Group) -> float:
        return living * prod(holders[term] / max(living, 1) for term in group)

    chosen: list[Group] = []
    total = 0.0
    for level in every:
        fewer = list(chosen)
        for group in sorted(level, key=expected):
            if any(set(each) <= set(group) for each in fewer):
                continue
            total += expected(group)
            if total > ENOUGH:
                return chosen or [min((group for level in every for group in level), key=expected)]
            chosen.append(group)
    return chosen
