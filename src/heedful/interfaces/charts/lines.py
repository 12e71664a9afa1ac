"""Lines over time: with bands of what is likely, gaps where nothing is known, and marks where something happened."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from heedful.interfaces.charts.svg import BOTTOM, LEFT, RIGHT, TOP, WIDTH, frame, legend, line, n, text, with_tooltip

MAX_DOTS = 60
"""Points beyond which only the line is drawn, not each of them."""

LONG_LABEL = 8
"""Characters of a label below the axis, beyond which every other one is left out."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a line; without `y`, a gap."""

    x: X
    y: float | None
    low: float | None = None
    high: float | None = None
    size: int | None = None
    """How many were counted for it."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line."""

    name: str
    points: Sequence[Point]
    dots: bool = True
    """Whether each point is drawn, and says its value."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that happened; with `y`, a dot at that height, otherwise a vertical line."""

    x: X
    label: str
    y: float | None = None
    kind: Literal["up", "down", "neutral"] = "neutral"


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    desc: str = "",
    markers: Sequence[Marker] = (),
    least: float | None = None,
    most: float | None = None,
    percent: bool = False,
    height: int = 280,
    standalone: bool = False,
) -> str:
    """Lines in one frame; `least` and `most` hold the vertical axis where it is."""
    points = [point for each in series for point in each.points]
    positions = [point.x for point in points] + [marker.x for marker in markers]
    dated = any(isinstance(x, date) for x in positions)
    finest = 3600.0 if any(isinstance(x, datetime) for x in positions) else DAY
    xs = [number(x) for x in positions]
    top = TOP + (24 if len(series) > 1 else 0)
    low_x, high_x = extent(xs) if len(set(xs)) != 1 else (xs[0] - 1, xs[0] + 1)
    low_y, high_y = _heights(points, markers, least, most)
    across = Scale(low_x, high_x, LEFT, WIDTH - RIGHT)
    up = Scale(low_y, high_y, height - BOTTOM, top)
    parts = [_grid(across, up, finest if dated else None, percent, height, single=len(set(xs)) == 1, empty=not xs)]
    parts += [_upright(marker, across, top, height) for marker in markers if marker.y is None]
    for index, each in enumerate(series):
        parts.append(_band(each, across, up, index))
        parts.append(_line(each, across, up, index))
    for index, each in enumerate(series):
        if each.dots:
            parts.append(_dots(each, across, up, index, dated, percent, high_x - low_x, with_name=len(series) > 1))
    parts += [_dot(marker, across, up, dated, high_x - low_x) for marker in markers if marker.y is not None]
    if len(series) > 1:
        parts.append(legend([each.name for each in series], TOP + 6))
    if not any(point.y is not None for point in points) and not markers:
        parts.append(text(WIDTH / 2, height / 2, "No data in this range", anchor="middle"))
    return frame(parts, height, title, desc, standalone=standalone)


def sparkline(values: Sequence[float | None], *, title: str, standalone: bool = False) -> str:
    """A small line without axes."""
    width, height = 120, 32
    numbers = [value for value in values if value is not None]
    low, high = extent(numbers)
    across = Scale(0, max(1, len(values) - 1), 3, width - 3)
    up = Scale(low, high, height - 4, 4)
    points = [Point(float(index), value) for index, value in enumerate(values)]
    parts = [_line(Series(title, points), across, up, 0)]
    if values and values[-1] is not None:
        end = (across(len(values) - 1.0), up(values[-1]))
        parts.append(f'<circle cx="{n(end[0])}" cy="{n(end[1])}" r="2.5" class="hd-bar"/>')
    drawn = frame(parts, height, title, "", standalone=standalone, width=width)
    return drawn.replace('class="hd-chart"', 'class="hd-chart hd-spark"', 1)


def _heights(
    points: Sequence[Point], markers: Sequence[Marker], least: float | None, most: float | None
) -> tuple[float, float]:
    values = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    values += [marker.y for marker in markers if marker.y is not None]
    low, high = extent(values, least, most)
    if least is None and values:
        low = 0.0 if 0 <= low < (high - low) * 2 else low
    if most is None:
        steps = ticks(low, high)
        step = steps[1] - steps[0] if len(steps) > 1 else high - low
        high = low + math.ceil((high - low) / step - 1e-9) * step
    return low, high


def _grid(
    across: Scale, up: Scale, finest: float | None, percent: bool, height: int, *, single: bool, empty: bool
) -> str:
    parts = []
    for value in ticks(up.low, up.high, 4):
        y = up(value)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, "hd-grid"))
        parts.append(text(LEFT - 8, y + 4, format_value(value, percent), anchor="end"))
    parts.append(line(LEFT, height - BOTTOM, WIDTH - RIGHT, height - BOTTOM, "hd-axis"))
    if empty:
        return "".join(parts)
    if single:
        positions = [(across.low + across.high) / 2]
    else:
        positions = (
            ticks(across.low, across.high, 6) if finest is None else date_ticks(across.low, across.high, finest=finest)
        )
    labels = [
        format_value(position) if finest is None else moment(position, across.high - across.low)
        for position in positions
    ]
    # Labels with a time of day are long; all of them would overlap on a phone.
    spacing = 2 if len(labels) > 3 and max(map(len, labels)) > LONG_LABEL else 1
    for position, label in list(zip(positions, labels, strict=True))[::spacing]:
        x = across(position)
        anchor = "end" if x > WIDTH - RIGHT - 24 else "middle"
        parts.append(text(x, height - BOTTOM + 22, label, anchor=anchor))
    return "".join(parts)


def _runs(points: Sequence[Point]) -> Iterator[list[Point]]:
    """The parts of a line that have no gap."""
    run: list[Point] = []
    for point in points:
        if point.y is not None:
            run.append(point)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _line(series: Series, across: Scale, up: Scale, index: int) -> str:
    parts = []
    for run in _runs(series.points):
        if len(run) > 1:
            path = " ".join(f"{n(across(number(each.x)))},{n(up(each.y or 0.0))}" for each in run)
            parts.append(f'<polyline points="{path}" class="hd-line hd-s{index % 4}"/>')
    return "".join(parts)


def _band(series: Series, across: Scale, up: Scale, index: int) -> str:
    parts = []
    for run in _runs(series.points):
        banded = [(number(each.x), each.low, each.high) for each in run]
        sure = [(x, low, high) for x, low, high in banded if low is not None and high is not None]
        if len(sure) < 2:
            continue
        over = [f"{n(across(x))},{n(up(high))}" for x, _, high in sure]
        under = [f"{n(across(x))},{n(up(low))}" for x, low, _ in reversed(sure)]
        parts.append(f'<polygon points="{" ".join(over + under)}" class="hd-band hd-b{index % 4}"/>')
    return "".join(parts)


def _dots(
    series: Series, across: Scale, up: Scale, index: int, dated: bool, percent: bool, span: float, *, with_name: bool
) -> str:
    crowded = sum(point.y is not None for point in series.points) > MAX_DOTS
    parts = []
    for point in series.points:
        if point.y is None:
            continue
        at = number(point.x)
        tooltip = f"{moment(at, span) if dated else format_value(at)}: {format_value(round(point.y, 4), percent)}"
        if with_name:
            tooltip = f"{series.name}, {tooltip}"
        if point.low is not None and point.high is not None:
            low, high = format_value(round(point.low, 4), percent), format_value(round(point.high, 4), percent)
            tooltip += f" ({low} to {high})"
        if point.size is not None:
            tooltip += f", n = {point.size:,}"
        centre = f'cx="{n(across(at))}" cy="{n(up(point.y))}"'
        dot = "" if crowded else f'<circle {centre} r="3.5" class="hd-dot hd-s{index % 4}"/>'
        parts.append(with_tooltip(f'{dot}<circle {centre} r="9" fill="transparent"/>', tooltip))
    return "".join(parts)


def _upright(marker: Marker, across: Scale, top: float, height: int) -> str:
    x = across(number(marker.x))
    drawn = line(x, top, x, height - BOTTOM, "hd-mark")
    head = f'<circle cx="{n(x)}" cy="{n(top)}" r="5" class="hd-{marker.kind}"/>'
    return with_tooltip(drawn + head, marker.label)


def _dot(marker: Marker, across: Scale, up: Scale, dated: bool, span: float) -> str:
    assert marker.y is not None
    x, y = across(number(marker.x)), up(marker.y)
    # Up and down differ in shape too: colour alone is not accessible.
    shapes = {
        "up": f'<path d="M{n(x - 6)} {n(y + 4)}L{n(x)} {n(y - 6)}L{n(x + 6)} {n(y + 4)}Z" class="hd-up"/>',
        "down": f'<path d="M{n(x - 6)} {n(y - 4)}L{n(x)} {n(y + 6)}L{n(x + 6)} {n(y - 4)}Z" class="hd-down"/>',
        "neutral": f'<circle cx="{n(x)}" cy="{n(y)}" r="5" class="hd-neutral"/>',
    }
    when = f"{moment(number(marker.x), span)}: " if dated else ""
    return with_tooltip(shapes[marker.kind], when + marker.label)


DAY = 86_400.0
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

X = float | date | datetime
"""A place on the horizontal axis."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A line from one range of numbers to another."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def number(x: X) -> float:
    """A place as a number; dates as seconds."""
    if isinstance(x, datetime):
        return (x if x.tzinfo is not None else x.replace(tzinfo=UTC)).timestamp()
    if isinstance(x, date):
        return datetime(x.year, x.month, x.day, tzinfo=UTC).timestamp()
    return float(x)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks(0, 47)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    rough = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    digits = max(0, -math.floor(math.log10(step)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(multiple * step, digits) for multiple in range(first, last + 1)]


def date_ticks(low: float, high: float, count: int = 6, *, finest: float = 3600.0) -> list[float]:
    """Days (or hours, where they are few) between two moments, evenly apart; all in seconds."""
    span = high - low
    if span <= 0:
        return [low]
    steps = (3600.0, 3 * 3600.0, 6 * 3600.0, 12 * 3600.0, DAY, 2 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY)
    years = 365 * DAY * math.ceil(span / (365 * DAY * count))
    step = next((each for each in steps if each >= finest and span / each <= count), years)
    first = math.ceil(low / step - 1e-9) * step
    return [first + index * step for index in range(int((high - first) / step + 1e-9) + 1)]


def format_value(value: float, percent: bool = False) -> str:
    """A number as short as it can be.

    >>> format_value(0.25, percent=True), format_value(1200), format_value(0.5), format_value(3.0)
    ('25%', '1,200', '0.5', '3')
    """
    if percent:
        return f"{value * 100:.4g}%"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def day(seconds: float) -> str:
    """A day in words.

    >>> day(number(date(2026, 11, 3)))
    '3 Nov'
    """
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment.day} {MONTHS[moment.month - 1]}"


def moment(seconds: float, span: float) -> str:
    """A moment on an axis of this length: its day, with the hour or the year where they tell something."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    if span <= 2 * DAY and seconds % DAY:
        return f"{day(seconds)} {at:%H:%M}"
    return f"{day(seconds)} {at.year}" if span > 400 * DAY else day(seconds)


def extent(values: Sequence[float], least: float | None = None, most: float | None = None) -> tuple[float, float]:
    """From the smallest to the greatest value, or the given range; never empty."""
    low = min(values, default=0.0) if least is None else least
    high = max(values, default=1.0) if most is None else most
    if low == high:
        low, high = (low - 0.5, high + 0.5) if least is None else (low, low + 1)
    return low, high
