"""Satisfaction over time."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from typing import Any

from heedful.clock import DAY
from heedful.insight.counting import DERIVED, MOST, Counting, too_many, untagged
from heedful.insight.satisfaction import NOTHING, variant
from heedful.model import OpinionTarget, Over, Trend, TrendLine, TrendPoint, Variant
from heedful.storage.tallies import Asked, Counted

EPOCH = date(1970, 1, 1)
STEPS: dict[Over, int] = {"day": 1, "week": 7}
LEAD = 364
"""Days without opinions that are shown before the first one, in whole weeks."""


def trend(
    counting: Counting,
    over: Over,
    by: str | None,
    since: int | None,
    until: int | None,
    now: int,
    dataset: str | None,
    target_types: tuple[OpinionTarget, ...],
) -> Trend:
    """A line for each value, with a point for each bucket, also where nothing was said."""
    facet, key = (None, None) if by is None else counting.grouping(by)
    if key is not None:
        counting.values(key)
    asked = Asked(facet, key, over, since, until, dataset, target_types, DERIVED)
    lines: dict[str | None, dict[int, Counted]] = defaultdict(dict)
    for each in counting.counts(asked):
        if each.up or each.down or each.neutral:
            assert each.start is not None
            lines[each.value][each.start] = each
    if by is not None and len(lines) > MOST:
        raise too_many(by, len(lines))
    starts = _starts(lines, over, since, (until - 1 if until is not None else now) // DAY)
    ordered = sorted(lines.items(), key=lambda line: (-sum(map(_opinions, line[1].values())), str(line[0])))
    if by is None and not ordered:
        ordered = [(None, {})]
    return Trend(
        over=over,
        by=by if facet or by is None else key,
        lines=[
            TrendLine(value=_value(value, key), points=[_point(start, line.get(start, NOTHING)) for start in starts])
            for value, line in ordered
        ],
        total=_total(lines),
    )


def day(number: int) -> date:
    """The date of a day by its number."""
    return EPOCH + timedelta(days=number)


def _starts(lines: dict[str | None, dict[int, Counted]], over: Over, since: int | None, last: int) -> list[int]:
    """The first days of all buckets, from what was asked, or from the first with an opinion, to the last."""
    said = [start for line in lines.values() for start in line]
    if not said:
        return []
    first = min(said)
    if since is not None:
        asked = since // DAY
        asked = asked if over == "day" else (asked + 3) // 7 * 7 - 3
        # Nobody wants to see the years before the first opinion.
        first = min(first, max(asked, first - LEAD))
    return list(range(first, max(last, *said) + 1, STEPS[over]))


def _total(lines: dict[str | None, dict[int, Counted]]) -> Variant:
    every = [each for line in lines.values() for each in line.values()]
    sums = [sum(values) for values in zip(*(each[2:] for each in every), strict=True)] or NOTHING[2:]
    return variant(None, Counted(None, None, *sums))


def _opinions(line: Counted) -> int:
    return line.up + line.down + line.neutral


def _value(value: str | None, key: str | None) -> Any:
    return untagged(value) if key is not None and value is not None else value or None


def _point(start: int, line: Counted) -> TrendPoint:
    said = variant(None, line)
    return TrendPoint(
        start=day(start),
        up=said.up,
        down=said.down,
        neutral=said.neutral,
        satisfaction=said.satisfaction,
        low=said.low,
        high=said.high,
        mean_score=said.mean_score,
    )
