"""One vote for each author: which of an author's signals about a fact, for a query, is the one that counts. Pure.

Signals without an author are a program's, which says how often a fact was used: each counts, as the documented rule
has it. Of one author's signals about the same fact and query, the latest rating (`helpful`, `not_helpful`) counts, or
the latest `used` or `ignored` where there is no rating. Saying the same again changes nothing: the first of them
counts, so that a repeated signal needs no new fold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from heedful.model import SignalType

RATINGS: frozenset[SignalType] = frozenset({"helpful", "not_helpful"})

Vote = TypeVar("Vote")
Said = tuple[SignalType, float]
"""The signal and its confidence."""


def counted(
    votes: Iterable[Vote], voter: Callable[[Vote], Hashable | None], said: Callable[[Vote], Said]
) -> list[Vote]:
    """The votes that count, in their order, which is that of their time. `voter` is the author with the fact and the
    query, or None for votes that all count."""
    given = list(votes)
    of_voter: dict[Hashable, list[int]] = defaultdict(list)
    for place, vote in enumerate(given):
        name = voter(vote)
        if name is not None:
            of_voter[name].append(place)
    dropped: set[int] = set()
    for places in of_voter.values():
        if len(places) > 1:
            dropped.update(places)
            dropped.discard(places[chosen([said(given[place]) for place in places])])
    return [vote for place, vote in enumerate(given) if place not in dropped] if dropped else given


def chosen(said: Sequence[Said]) -> int:
    """The place of the vote that counts among those of one author, oldest first.

    >>> chosen([("used", 1.0), ("helpful", 1.0), ("used", 1.0), ("not_helpful", 0.5), ("not_helpful", 0.5)])
    3
    >>> chosen([("ignored", 1.0), ("used", 1.0)])
    1
    """
    places = [place for place, (kind, _) in enumerate(said) if kind in RATINGS] or list(range(len(said)))
    found = places[-1]
    for place in reversed(places):
        if said[place] != said[found]:
            break
        found = place
    return found
