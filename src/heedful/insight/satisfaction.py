"""Satisfaction by a value, over time, and of recalls: is one variant better, and is that known by now?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import Any

from heedful import model as m
from heedful.clock import DAY
from heedful.errors import Invalid, quoted
from heedful.insight.counting import DERIVED, MAX_VALUES, OUTCOMES, InsightSpace, decode_tag, too_many
from heedful.ledger.tallies import TallyCounts, TallyQuery
from heedful.statistics.rates import probability_best, probability_better, stopping, wilson
from heedful.storage.rows import to_model

DEFAULT_FACETS: tuple[m.Facet, ...] = ("dataset", "model")
"""The facets of opinions that somebody has chosen."""

NO_COUNTS = TallyCounts(None, None, 0, 0, 0, 0, 0, 0, 0)


def satisfaction(
    space: InsightSpace,
    by: str,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    target_type: m.OpinionTarget | None,
) -> m.Satisfaction:
    """The opinions under each value, with intervals, and how sure it is which is best."""
    start, stop = space.period(since, until, dataset)
    targets = () if by == "target_type" and target_type is None else _targets(target_type)
    facet, key = space.grouping(by)
    query = TallyQuery(facet, key, None, start, stop, dataset, targets, DERIVED)
    if key is not None:
        values = space.values(key)
        counts_by_value = {line.value: line for line in space.counts(query)} if values else {}
        variants = [
            variant(decode_tag(value), counts_by_value.get(value, NO_COUNTS), sessions)
            for value, sessions in values.items()
        ]
    else:
        lines = [line for line in space.counts(query) if opinions(line)]
        if len(lines) > MAX_VALUES:
            raise too_many(by, len(lines))
        variants = [variant(line.value or None, line) for line in lines]
    variants.sort(key=lambda variant: str(variant.value))
    variants.sort(key=lambda variant: opinions(variant) if variant.sessions is None else variant.sessions, reverse=True)
    # Comparable are values of which somebody could have chosen another: a dataset or a model that there is, or a
    # variant of sessions. Nobody chooses who speaks, or about what.
    comparable = [
        variant for variant in variants if facet is None or (facet in DEFAULT_FACETS and variant.value is not None)
    ]
    rated = [variant for variant in comparable if variant.up + variant.down]
    ups_and_downs = [(variant.up, variant.down) for variant in rated]
    best = dict(zip(map(id, rated), probability_best(ups_and_downs), strict=True))
    return m.Satisfaction(
        by=by if facet else str(key),
        variants=[variant.model_copy(update={"probability_best": best.get(id(variant))}) for variant in variants],
        comparisons=[_comparison(one, other) for one, other in combinations(rated, 2)],
        stopping=_stopping(rated, ups_and_downs),
    )


def variant(value: Any, line: TallyCounts, sessions: int | None = None) -> m.Variant:
    """Counts with their share and its interval."""
    trials = line.up + line.down
    low, high = wilson(line.up, trials) if trials else (None, None)
    return to_model(
        m.Variant,
        line,
        value=value,
        sessions=sessions,
        satisfaction=line.up / trials if trials else None,
        low=low,
        high=high,
        mean_score=line.score_sum / line.scores if line.scores else None,
        probability_best=None,
    )


def opinions(counts: m.Variant | TallyCounts) -> int:
    """How many opinions there are, neutral ones too."""
    return counts.up + counts.down + counts.neutral


def _targets(target_type: Any) -> tuple[m.OpinionTarget, ...]:
    if target_type is None:
        return OUTCOMES
    if target_type not in m.OPINION_TARGETS:
        raise Invalid.unknown("target_type", target_type, m.OPINION_TARGETS)
    return (target_type,)


def _comparison(one: m.Variant, other: m.Variant) -> m.Comparison:
    chance = probability_better((one.up, one.down), (other.up, other.down))
    if chance >= 0.5:
        return m.Comparison(better=one.value, than=other.value, probability=chance)
    return m.Comparison(better=other.value, than=one.value, probability=1.0 - chance)


def _stopping(rated: Sequence[m.Variant], counts: Sequence[tuple[int, int]]) -> m.Stopping | None:
    if len(rated) < 2:
        return None
    decision = stopping(counts, names=[str(variant.value) for variant in rated])
    return to_model(m.Stopping, decision, best=rated[decision.best].value)


EPOCH = date(1970, 1, 1)
STEPS: dict[m.Over, int] = {"day": 1, "week": 7}
LEADING_DAYS = 364
"""Days without opinions that are shown before the first one, in whole weeks."""


def trend(
    space: InsightSpace,
    over: m.Over,
    by: str | None,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    target_type: m.OpinionTarget | None,
) -> m.Trend:
    """A line for each value, with a point for each bucket, also where there are no opinions."""
    start, stop = space.period(since, until, dataset)
    if over not in m.OVERS:
        raise Invalid(f"invalid over {quoted(over)}", field="over", value=over, remedy=f"Use {' or '.join(m.OVERS)}")
    targets = _targets(target_type)
    facet, key = (None, None) if by is None else space.grouping(by)
    if key is not None:
        space.values(key)
    query = TallyQuery(facet, key, over, start, stop, dataset, targets, DERIVED)
    lines: dict[str | None, dict[int, TallyCounts]] = defaultdict(dict)
    for counts in space.counts(query):
        if opinions(counts):
            assert counts.start is not None
            lines[counts.value][counts.start] = counts
    if by is not None and len(lines) > MAX_VALUES:
        raise too_many(by, len(lines))
    starts = _period_starts(lines, over, start, (stop - 1 if stop is not None else space.workspace.now()) // DAY)
    ordered = sorted(lines.items(), key=lambda line: (-sum(map(opinions, line[1].values())), str(line[0])))
    if by is None and not ordered:
        ordered = [(None, {})]
    return m.Trend(
        over=over,
        by=by if facet or by is None else key,
        lines=[
            m.TrendLine(
                value=decode_tag(value) if key is not None and value is not None else value or None,
                points=[_point(start, line.get(start, NO_COUNTS)) for start in starts],
            )
            for value, line in ordered
        ],
        total=_total(lines),
    )


def day(number: int) -> date:
    """The date of a day by its number."""
    return EPOCH + timedelta(days=number)


def _period_starts(
    lines: dict[str | None, dict[int, TallyCounts]], over: m.Over, since: int | None, last: int
) -> list[int]:
    """The first days of all buckets, from what was asked, or from the first with an opinion, to the last."""
    starts = [start for line in lines.values() for start in line]
    if not starts:
        return []
    first = min(starts)
    if since is not None:
        first_day = since // DAY
        first_day = first_day if over == "day" else (first_day + 3) // 7 * 7 - 3
        # Nobody wants to see the years before the first opinion.
        first = min(first, max(first_day, first - LEADING_DAYS))
    return list(range(first, max(last, *starts) + 1, STEPS[over]))


def _total(lines: dict[str | None, dict[int, TallyCounts]]) -> m.Variant:
    every = [counts[2:] for line in lines.values() for counts in line.values()]
    sums = [sum(values) for values in zip(*every, strict=True)] or NO_COUNTS[2:]
    return variant(None, TallyCounts(None, None, *sums))


def _point(start: int, line: TallyCounts) -> m.TrendPoint:
    return to_model(m.TrendPoint, variant(None, line), start=day(start))
