"""Ranges of days, how one compares with the one before it, and what feedback can be compared by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from heedful.engine import Heedful, project_of
from heedful.insight.counting import MAX_VALUES, PREFIX
from heedful.interfaces.charts import Interval, Point, Series, interval_chart, line_chart
from heedful.model import FACETS, OpinionTarget, Over, Satisfaction, Trend, Variant
from heedful.text import counted

PRESETS = (7, 14, 30, 90)


@dataclass(frozen=True, slots=True)
class DayRange:
    """Days from `since` to `until`, both included; open where one is None."""

    since: date | None
    until: date | None
    since_text: str
    """As it was typed."""
    until_text: str
    problem: str | None = None
    """The fault in what was typed; then nothing is left out."""
    preset: int | None = None
    """The number of days, if it is one of the usual ranges."""

    @property
    def start(self) -> datetime | None:
        return None if self.since is None else datetime.combine(self.since, time(), UTC)

    @property
    def end(self) -> datetime | None:
        """The first moment after the range."""
        return None if self.until is None else datetime.combine(self.until + timedelta(days=1), time(), UTC)

    @property
    def words(self) -> str:
        if self.preset is not None:
            return f"the last {self.preset} days"
        if self.since is None and self.until is None:
            return "all time"
        if self.since is None:
            return f"until {self.until}"
        if self.until is None:
            return f"since {self.since}"
        return f"{self.since} to {self.until}"


def preset(days: int, today: date) -> tuple[str, str]:
    """The last days, today included, as an address writes them."""
    return (today - timedelta(days=days - 1)).isoformat(), today.isoformat()


def from_request(query: Mapping[str, str], today: date, usual: int | None = 7) -> DayRange:
    """The range of an address; the `usual` days where it names none, all where it names empty ones."""
    if "since" not in query and "until" not in query:
        if usual is None:
            return DayRange(None, None, "", "")
        since_text, until_text = preset(usual, today)
    else:
        since_text, until_text = query.get("since", "").strip(), query.get("until", "").strip()
    days: dict[str, date | None] = {}
    for name, typed in (("from", since_text), ("to", until_text)):
        try:
            days[name] = date.fromisoformat(typed) if typed else None
        except ValueError:
            problem = f"“{typed[:40]}” is not a date: write it as {today.isoformat()}."
            return DayRange(None, None, since_text, until_text, problem)
    since, until = days["from"], days["to"]
    if since is not None and until is not None and since > until:
        problem = f"The range ends before it begins: {since_text} is after {until_text}."
        return DayRange(None, None, since_text, until_text, problem)
    if until == date.max:
        until = None
    usual_range = next((days for days in PRESETS if preset(days, today) == (since_text, until_text)), None)
    return DayRange(since, until, since_text, until_text, preset=usual_range)


WEEKLY = 92
"""Days beyond which a line is by week."""

NAMES = {
    "dataset": "dataset",
    "source": "source",
    "author_kind": "kind of author",
    "model": "model",
    "target_type": "what is rated",
}
"""The properties of opinions themselves, in words."""


def keys(heedful: Heedful) -> list[str]:
    """The metadata keys of sessions that distinguish a few variants; a key of ids is of no use."""

    def read(tx: Any) -> list[str]:
        counts = {key: len(tx.feedbacks.variants(key, MAX_VALUES + 1)) for key in tx.feedbacks.keys(MAX_VALUES)}
        return [key for key, count in counts.items() if 1 < count <= MAX_VALUES]

    names: list[str] = project_of(heedful).sessions.store.read(read)
    return names


def choices(keys: list[str]) -> dict[str, str]:
    """The comparisons that a page offers, with their words."""
    return {facet: NAMES[facet] for facet in FACETS} | {f"{PREFIX}{key}": key for key in keys}


def bucket_size(days: DayRange, now: datetime) -> Over:
    """Days, or weeks where there are many."""
    return "week" if days.start is None or ((days.end or now) - days.start).days > WEEKLY else "day"


def target(heedful: Heedful) -> OpinionTarget | None:
    """The targets of the opinions to show: None for all but facts, facts where there are no others."""
    kinds = [variant.value for variant in heedful.insight.satisfaction("target_type").variants]
    return "fact" if kinds == ["fact"] else None


def previous_period(
    heedful: Heedful, days: DayRange, now: datetime, dataset: str | None, target_type: OpinionTarget | None
) -> Trend | None:
    """The opinions of as many days before the range; None for a range that has no beginning."""
    if days.start is None:
        return None
    length = (days.end or now) - days.start
    try:
        since = days.start - length
    except OverflowError:
        return None
    over, trend = bucket_size(days, now), heedful.insight.trend
    return trend(over=over, since=since, until=days.start, dataset=dataset, target_type=target_type)


MIN_OPINIONS = 20
"""Opinions with which a time can be compared."""


def points(now: Variant, earlier: Variant | None) -> float | None:
    """By how many points satisfaction rose; None where one of the two is not known."""
    if earlier is None or earlier.up + earlier.down < MIN_OPINIONS:
        return None
    if now.satisfaction is None or earlier.satisfaction is None:
        return None
    return (now.satisfaction - earlier.satisfaction) * 100


def intervals_overlap(now: Variant, earlier: Variant | None) -> bool:
    """Whether the intervals of both overlap: then the one may be as high as the other."""
    if earlier is None or now.low is None or now.high is None or earlier.low is None or earlier.high is None:
        return True
    return now.low <= earlier.high and earlier.low <= now.high


def value_label(value: Any, by: str) -> str:
    if value is None:
        return "SQL, sessions" if by == "dataset" else f"no {NAMES.get(by, by.removeprefix(PREFIX))}"
    return value if isinstance(value, str) else str(value)


def trend_chart(trend: Trend, words: str, earlier: Trend | None = None) -> str:
    """A line for the range, and one for the time it is compared with."""
    series = []
    for name, part in ((words, trend), ("before", earlier)):
        line = part.lines[0].points if part is not None and part.lines else []
        points = [Point(day.start, day.satisfaction, day.low, day.high, day.up + day.down) for day in line]
        if part is trend or any(point.size for point in points):
            series.append(Series(name, points))
    ratings = counted(trend.total.up + trend.total.down, "rating")
    return line_chart(
        series,
        title=f"Satisfaction by {trend.over}",
        desc=f"{ratings}, {words}; the band is the 95% interval of each {trend.over}",
        least=0.0,
        most=1.0,
        percent=True,
    )


def variants_chart(satisfaction: Satisfaction) -> str:
    rows = []
    for variant in satisfaction.variants:
        label, count = value_label(variant.value, satisfaction.by), variant.up + variant.down
        rows.append(Interval(label, variant.satisfaction, variant.low, variant.high, count))
    return interval_chart(rows, title=f"Satisfaction by {satisfaction.by}", desc="Bars are 95% intervals")
