"""Lines over time: with bands of what is likely, gaps where nothing is known, and marks where something happened."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from heedful.drawing.scales import DAY, Scale, X, date_ticks, extent, moment, number, ticks, written
from heedful.drawing.svg import BOTTOM, LEFT, RIGHT, TOP, WIDTH, framed, legend, line, n, text, tip

MANY = 60
"""Points beyond which only the line is drawn, not each of them."""


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
    """Something that happened; with `y`, it stands at that height as a dot, else as an upright line."""

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
    known = [point for each in series for point in each.points]
    places = [point.x for point in known] + [marker.x for marker in markers]
    dated = any(isinstance(x, date) for x in places)
    finest = 3600.0 if any(isinstance(x, datetime) for x in places) else DAY
    xs = [number(x) for x in places]
    top = TOP + (24 if len(series) > 1 else 0)
    low_x, high_x = extent(xs) if len(set(xs)) != 1 else (xs[0] - 1, xs[0] + 1)
    low_y, high_y = _heights(known, markers, least, most)
    across = Scale(low_x, high_x, LEFT, WIDTH - RIGHT)
    up = Scale(low_y, high_y, height - BOTTOM, top)
    parts = [_grid(across, up, finest if dated else None, percent, height, single=len(set(xs)) == 1, empty=not xs)]
    parts += [_upright(marker, across, top, height) for marker in markers if marker.y is None]
    for place, each in enumerate(series):
        parts.append(_band(each, across, up, place))
        parts.append(_line(each, across, up, place))
    for place, each in enumerate(series):
        if each.dots:
            parts.append(_dots(each, across, up, place, dated, percent, high_x - low_x, named=len(series) > 1))
    parts += [_dot(marker, across, up, dated, high_x - low_x) for marker in markers if marker.y is not None]
    if len(series) > 1:
        parts.append(legend([each.name for each in series], TOP + 6))
    if not any(point.y is not None for point in known) and not markers:
        parts.append(text(WIDTH / 2, height / 2, "No data in this range", anchor="middle"))
    return framed(parts, height, title, desc, standalone=standalone)


def spark(values: Sequence[float | None], *, title: str, standalone: bool = False) -> str:
    """A small line without axes."""
    width, height = 120, 32
    shown = [value for value in values if value is not None]
    low, high = extent(shown)
    across = Scale(0, max(1, len(values) - 1), 3, width - 3)
    up = Scale(low, high, height - 4, 4)
    points = [Point(float(place), value) for place, value in enumerate(values)]
    parts = [_line(Series(title, points), across, up, 0)]
    if values and values[-1] is not None:
        end = (across(len(values) - 1.0), up(values[-1]))
        parts.append(f'<circle cx="{n(end[0])}" cy="{n(end[1])}" r="2.5" class="hd-bar"/>')
    drawn = framed(parts, height, title, "", standalone=standalone, width=width)
    return drawn.replace('class="hd-chart"', 'class="hd-chart hd-spark"', 1)


def _heights(
    known: Sequence[Point], markers: Sequence[Marker], least: float | None, most: float | None
) -> tuple[float, float]:
    values = [value for point in known for value in (point.y, point.low, point.high) if value is not None]
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
        parts.append(text(LEFT - 8, y + 4, written(value, percent), anchor="end"))
    parts.append(line(LEFT, height - BOTTOM, WIDTH - RIGHT, height - BOTTOM, "hd-axis"))
    if empty:
        return "".join(parts)
    if single:
        places = [(across.low + across.high) / 2]
    else:
        places = (
            ticks(across.low, across.high, 6) if finest is None else date_ticks(across.low, across.high, finest=finest)
        )
    for place in places:
        x = across(place)
        said = written(place) if finest is None else moment(place, across.high - across.low)
        anchor = "end" if x > WIDTH - RIGHT - 24 else "middle"
        parts.append(text(x, height - BOTTOM + 22, said, anchor=anchor))
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


def _line(series: Series, across: Scale, up: Scale, place: int) -> str:
    parts = []
    for run in _runs(series.points):
        if len(run) > 1:
            path = " ".join(f"{n(across(number(each.x)))},{n(up(each.y or 0.0))}" for each in run)
            parts.append(f'<polyline points="{path}" class="hd-line hd-s{place % 4}"/>')
    return "".join(parts)


def _band(series: Series, across: Scale, up: Scale, place: int) -> str:
    parts = []
    for run in _runs(series.points):
        banded = [(number(each.x), each.low, each.high) for each in run]
        sure = [(x, low, high) for x, low, high in banded if low is not None and high is not None]
        if len(sure) < 2:
            continue
        over = [f"{n(across(x))},{n(up(high))}" for x, _, high in sure]
        under = [f"{n(across(x))},{n(up(low))}" for x, low, _ in reversed(sure)]
        parts.append(f'<polygon points="{" ".join(over + under)}" class="hd-band hd-b{place % 4}"/>')
    return "".join(parts)


def _dots(
    series: Series, across: Scale, up: Scale, place: int, dated: bool, percent: bool, span: float, *, named: bool
) -> str:
    many = sum(point.y is not None for point in series.points) > MANY
    parts = []
    for point in series.points:
        if point.y is None:
            continue
        at = number(point.x)
        said = f"{moment(at, span) if dated else written(at)}: {written(round(point.y, 4), percent)}"
        if named:
            said = f"{series.name}, {said}"
        if point.low is not None and point.high is not None:
            low, high = written(round(point.low, 4), percent), written(round(point.high, 4), percent)
            said += f" ({low} to {high})"
        if point.size is not None:
            said += f", n = {point.size:,}"
        centre = f'cx="{n(across(at))}" cy="{n(up(point.y))}"'
        seen = "" if many else f'<circle {centre} r="3.5" class="hd-dot hd-s{place % 4}"/>'
        parts.append(tip(f'{seen}<circle {centre} r="9" fill="transparent"/>', said))
    return "".join(parts)


def _upright(marker: Marker, across: Scale, top: float, height: int) -> str:
    x = across(number(marker.x))
    drawn = line(x, top, x, height - BOTTOM, "hd-mark")
    head = f'<circle cx="{n(x)}" cy="{n(top)}" r="5" class="hd-{marker.kind}"/>'
    return tip(drawn + head, marker.label)


def _dot(marker: Marker, across: Scale, up: Scale, dated: bool, span: float) -> str:
    assert marker.y is not None
    x, y = across(number(marker.x)), up(marker.y)
    # Up and down differ in shape too: colour alone tells nobody anything.
    shapes = {
        "up": f'<path d="M{n(x - 6)} {n(y + 4)}L{n(x)} {n(y - 6)}L{n(x + 6)} {n(y + 4)}Z" class="hd-up"/>',
        "down": f'<path d="M{n(x - 6)} {n(y - 4)}L{n(x)} {n(y + 6)}L{n(x + 6)} {n(y - 4)}Z" class="hd-down"/>',
        "neutral": f'<circle cx="{n(x)}" cy="{n(y)}" r="5" class="hd-neutral"/>',
    }
    when = f"{moment(number(marker.x), span)}: " if dated else ""
    return tip(shapes[marker.kind], when + marker.label)
