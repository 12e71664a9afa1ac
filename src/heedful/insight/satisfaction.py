"""Satisfaction by a value: is one variant better than another, and is that known by now?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from heedful.insight.counting import DERIVED, MOST, Counting, too_many, untagged
from heedful.learning.proportions import probability_best, probability_better, wilson
from heedful.learning.stopping import stopping
from heedful.model import Comparison, Facet, OpinionTarget, Satisfaction, Stopping, Variant
from heedful.storage.tallies import Asked, Counted

CHOSEN: tuple[Facet, ...] = ("dataset", "model")
"""What opinions have that somebody has chosen."""

NOTHING = Counted(None, None, 0, 0, 0, 0, 0, 0, 0)


def satisfaction(
    counting: Counting,
    by: str,
    since: int | None,
    until: int | None,
    dataset: str | None,
    target_types: tuple[OpinionTarget, ...],
) -> Satisfaction:
    """The opinions under each value, with intervals, and how sure it is which is best."""
    facet, key = counting.grouping(by)
    asked = Asked(facet, key, None, since, until, dataset, target_types, DERIVED)
    if key is not None:
        values = counting.values(key)
        counted = {line.value: line for line in counting.counts(asked)} if values else {}
        found = [variant(untagged(value), counted.get(value, NOTHING), sessions) for value, sessions in values.items()]
    else:
        lines = [line for line in counting.counts(asked) if line.up or line.down or line.neutral]
        if len(lines) > MOST:
            raise too_many(by, len(lines))
        found = [variant(line.value or None, line) for line in lines]
    found.sort(key=lambda each: (-_size(each), str(each.value)))
    rated = [each for each in found if each.up + each.down and _competes(each, facet)]
    ups_and_downs = [(each.up, each.down) for each in rated]
    best = dict(zip(map(id, rated), probability_best(ups_and_downs), strict=True))
    return Satisfaction(
        by=by if facet else str(key),
        variants=[each.model_copy(update={"probability_best": best.get(id(each))}) for each in found],
        comparisons=[_comparison(one, other) for one, other in combinations(rated, 2)],
        stopping=_stopping(rated, ups_and_downs),
    )


def variant(value: Any, line: Counted, sessions: int | None = None) -> Variant:
    """Counts with their share and its interval."""
    trials = line.up + line.down
    low, high = wilson(line.up, trials) if trials else (None, None)
    return Variant(
        value=value,
        sessions=sessions,
        up=line.up,
        down=line.down,
        neutral=line.neutral,
        satisfaction=line.up / trials if trials else None,
        low=low,
        high=high,
        mean_score=line.score_sum / line.scores if line.scores else None,
        probability_best=None,
    )


def _competes(each: Variant, facet: Facet | None) -> bool:
    """Whether it is one of several that could be chosen. What has no model or dataset is something else, and nobody
    chooses who speaks, or of what."""
    return facet is None or (facet in CHOSEN and each.value is not None)


def _size(each: Variant) -> int:
    return each.up + each.down + each.neutral if each.sessions is None else each.sessions


def _comparison(one: Variant, other: Variant) -> Comparison:
    chance = probability_better((one.up, one.down), (other.up, other.down))
    if chance >= 0.5:
        return Comparison(better=one.value, than=other.value, probability=chance)
    return Comparison(better=other.value, than=one.value, probability=1.0 - chance)


def _stopping(rated: Sequence[Variant], counts: Sequence[tuple[int, int]]) -> Stopping | None:
    if len(rated) < 2:
        return None
    found = stopping(counts, names=[str(each.value) for each in rated])
    return Stopping(
        decided=found.decided,
        best=rated[found.best].value,
        expected_loss=found.expected_loss,
        needed=found.needed,
        reason=found.reason,
    )
