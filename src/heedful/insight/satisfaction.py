"""Satisfaction by a key of the sessions' metadata: is one variant better than another?"""

from __future__ import annotations

from datetime import datetime
from itertools import combinations

from heedful.clock import to_stored
from heedful.errors import Invalid
from heedful.learning.proportions import probability_best, probability_better, wilson
from heedful.model import Comparison, Satisfaction, Variant
from heedful.sessions import checks
from heedful.storage.sessions import SessionStore
from heedful.storage.sessions.base import ValueCounts

MOST = 50
"""Values that are compared at most; a key with more is not a variant."""


def satisfaction(store: SessionStore, by: str, since: datetime | None) -> Satisfaction:
    """The feedback under each value of a key, with intervals, and how sure it is which is best."""
    key = by.removeprefix("metadata.") if isinstance(by, str) else by
    checks.key("by", key)
    if since is not None and not isinstance(since, datetime):
        raise Invalid(f"since must be a datetime, got {since!r}", field="since", value=since)
    found = store.read(lambda tx: tx.feedbacks.counts_by(key, None if since is None else to_stored(since)))
    if len(found) > MOST:
        raise Invalid(
            f"by is {by!r}, which has {len(found)} values; up to {MOST} can be compared",
            field="by",
            value=by,
            remedy="Name a key that tells variants apart",
        )
    found.sort(key=lambda each: (-each.sessions, str(each.value)))
    rated = [each for each in found if _trials(each)]
    best = dict(zip(map(id, rated), probability_best([_ups_and_downs(each) for each in rated]), strict=True))
    return Satisfaction(
        by=key,
        variants=[_variant(each, best.get(id(each))) for each in found],
        comparisons=[_comparison(one, other) for one, other in combinations(rated, 2)],
        stopping=None,
    )


def _variant(each: ValueCounts, best: float | None) -> Variant:
    trials = _trials(each)
    low, high = wilson(each.counts.up, trials) if trials else (None, None)
    return Variant(
        value=each.value,
        sessions=each.sessions,
        up=each.counts.up,
        down=each.counts.down,
        neutral=each.counts.neutral,
        satisfaction=each.counts.up / trials if trials else None,
        low=low,
        high=high,
        mean_score=each.counts.score_sum / each.counts.scores if each.counts.scores else None,
        probability_best=best,
    )


def _comparison(one: ValueCounts, other: ValueCounts) -> Comparison:
    chance = probability_better(_ups_and_downs(one), _ups_and_downs(other))
    if chance >= 0.5:
        return Comparison(better=one.value, than=other.value, probability=chance)
    return Comparison(better=other.value, than=one.value, probability=1.0 - chance)


def _ups_and_downs(each: ValueCounts) -> tuple[int, int]:
    return each.counts.up, each.counts.down


def _trials(each: ValueCounts) -> int:
    return each.counts.up + each.counts.down
