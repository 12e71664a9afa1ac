"""What opinions can be compared by, and how one range of days compares with the one before it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from heedful.engine import Heedful, project_of
from heedful.insight.counting import MAX_VALUES, PREFIX
from heedful.interfaces.charts import Interval, Point, Series, interval_chart, line_chart
from heedful.interfaces.dashboard.ranges import Range
from heedful.model import FACETS, OpinionTarget, Over, Satisfaction, Trend, Variant

WEEKLY = 92
"""Days beyond which a line is by week."""

NAMES = {
    "dataset": "dataset",
    "source": "source",
    "author_kind": "kind of author",
    "model": "model",
    "target_type": "what is rated",
}
"""What opinions have themselves, in words."""


def keys(heedful: Heedful) -> list[str]:
    """The metadata keys of sessions that distinguish a few variants; a key of ids is of no use."""

    def read(tx: Any) -> list[str]:
        return [
            key
            for key in tx.feedbacks.keys(MAX_VALUES)
            if 1 < len(tx.feedbacks.variants(key, MAX_VALUES + 1)) <= MAX_VALUES
        ]

    names: list[str] = project_of(heedful).sessions.store.read(read)
    return names


def choices(keys: list[str]) -> dict[str, str]:
    """What a page offers to compare by, with its words."""
    return {facet: NAMES[facet] for facet in FACETS} | {f"{PREFIX}{key}": key for key in keys}


def bucket_size(days: Range, now: datetime) -> Over:
    """Days, or weeks where there are many."""
    if days.start is None:
        return "week"
    return "week" if ((days.end or now) - days.start).days > WEEKLY else "day"


def target(heedful: Heedful) -> OpinionTarget | None:
    """What opinions are looked at: all but those about facts, or those about facts where there are no others."""
    kinds = [variant.value for variant in heedful.insight.satisfaction("target_type").variants]
    return "fact" if kinds == ["fact"] else None


def previous_period(
    heedful: Heedful, days: Range, now: datetime, dataset: str | None, target_type: OpinionTarget | None
) -> Variant | None:
    """All opinions of as many days before the range; None for a range that has no beginning."""
    if days.start is None:
        return None
    length = (days.end or now) - days.start
    try:
        since = days.start - length
    except OverflowError:
        return None
    return heedful.insight.trend(
        over="week", since=since, until=days.start, dataset=dataset, target_type=target_type
    ).total


MIN_OPINIONS = 20
"""Opinions with which a time can be compared."""


def points(now: Variant, earlier: Variant | None) -> float | None:
    """By how many points satisfaction rose; None where one of the two is not known."""
    if earlier is None or now.satisfaction is None or earlier.satisfaction is None:
        return None
    if earlier.up + earlier.down < MIN_OPINIONS:
        return None
    return (now.satisfaction - earlier.satisfaction) * 100


def intervals_overlap(now: Variant, earlier: Variant | None) -> bool:
    """Whether the intervals of both overlap: then the one may be as high as the other."""
    if earlier is None or now.low is None or now.high is None or earlier.low is None or earlier.high is None:
        return True
    return now.low <= earlier.high and earlier.low <= now.high


def value_label(value: Any, by: str) -> str:
    """A value of what is compared, in words."""
    if value is None:
        return f"no {NAMES.get(by, by.removeprefix(PREFIX))}"
    return value if isinstance(value, str) else str(value)


def trend_chart(trend: Trend, words: str) -> str:
    """Satisfaction over time, with its band."""
    line = trend.lines[0].points if trend.lines else []
    return line_chart(
        [
            Series(
                "satisfaction",
                [Point(each.start, each.satisfaction, each.low, each.high, each.up + each.down) for each in line],
            )
        ],
        title=f"Satisfaction by {trend.over}",
        desc=f"{trend.total.up + trend.total.down} ratings, {words}; the band is the 95% interval of each {trend.over}",
        least=0.0,
        most=1.0,
        percent=True,
    )


def variants_chart(satisfaction: Satisfaction) -> str:
    """Each variant with its interval."""
    rows = [
        Interval(
            value_label(variant.value, satisfaction.by),
            variant.satisfaction,
            variant.low,
            variant.high,
            variant.up + variant.down,
        )
        for variant in satisfaction.variants
    ]
    return interval_chart(rows, title=f"Satisfaction by {satisfaction.by}", desc="Bars are 95% intervals")
