"""Charts as SVG text, for pages and as standalone files: lines over time, bars and intervals.

Every text is escaped; colours are classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from html import escape
from itertools import groupby
from typing import Literal
from unicodedata import east_asian_width

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 16, 36
"""Room around the drawing, for the axes and their numbers."""

_STANDALONE_STYLE = """
.hd-chart{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;background:#fff}
.hd-chart text{font-size:13px;fill:#52606d;font-variant-numeric:tabular-nums}
.hd-chart .hd-value{fill:#1f2933}
.hd-grid{stroke:#e4e7eb;stroke-width:1}.hd-axis{stroke:#9aa5b1;stroke-width:1}
.hd-line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.hd-s0{stroke:#0f766e}.hd-s1{stroke:#52606d;stroke-dasharray:6 4}.hd-s2{stroke:#7b8794;stroke-dasharray:2 4}
.hd-s3{stroke:#334e68;stroke-dasharray:10 3 2 3}
.hd-band{fill:#0f766e;fill-opacity:.14}.hd-band.hd-b1,.hd-band.hd-b2,.hd-band.hd-b3{fill:#7b8794}
.hd-dot{fill:#fff;stroke-width:2;stroke-dasharray:none}.hd-bar{fill:#0f766e}.hd-bar.hd-quiet{fill:#9aa5b1}
.hd-mark{stroke:#9aa5b1;stroke-dasharray:3 3}.hd-up{fill:#0f766e}.hd-down{fill:#b42318}.hd-neutral{fill:#7b8794}
"""


def text(x: float, y: float, content: str, *, anchor: str = "start", kind: str = "") -> str:
    class_attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{n(x)}" y="{n(y)}" text-anchor="{anchor}"{class_attribute}>{escape(content)}</text>'


def truncate(content: str, room: float, size: float) -> str:
    """Words in one line, cut where they would need more room in letters of this size."""
    words, used = " ".join(content[:1000].split()), 0.0
    for index, letter in enumerate(words):
        # About how wide a letter is, measured by its height.
        wide = 0.9 if letter in "mwMW@%" else 0.68 if letter.isupper() else 0.56
        used += size * (1.0 if east_asian_width(letter) in "WF" else wide)
        # What is cut leaves room for the dots.
        if used > room - (size if index < len(words) - 1 else 0):
            return words[:index] + "…"
    return words


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{n(x1)}" y1="{n(y1)}" x2="{n(x2)}" y2="{n(y2)}" class="{kind}"/>'


def with_tooltip(drawn: str, tooltip: str) -> str:
    """A shape that says something when it is pointed at."""
    return f'<g class="hd-tip" data-tip="{escape(tooltip)}">{drawn}<title>{escape(tooltip)}</title></g>'


def legend(names: Sequence[str], y: float) -> str:
    """Which line is which, by its dashes as well as by its colour."""
    parts, x = [], float(LEFT)
    # On narrow screens letters are larger: they get all the room there is.
    room = (WIDTH - LEFT - RIGHT - 60 * len(names)) / max(1, sum(map(len, names)))
    letter = min(12.5, max(8.0, room))
    for index, name in enumerate(names):
        parts.append(line(x, y - 4, x + 26, y - 4, f"hd-line hd-s{index % 4}"))
        parts.append(text(x + 32, y, name, kind="hd-value"))
        x += 32 + letter * len(name) + 28
    return "".join(parts)


def frame(parts: Sequence[str], height: float, title: str, desc: str, *, standalone: bool) -> str:
    """The whole picture; alone, it brings its own colours."""
    xmlns, style = "", ""
    if standalone:
        xmlns = ' xmlns="http://www.w3.org/2000/svg"'
        style = f'<style>{_STANDALONE_STYLE}</style><rect width="{WIDTH}" height="{n(height)}" fill="#fff"/>'
    desc_tag = f"<desc>{escape(desc)}</desc>" if desc else ""
    return (
        f'<svg{xmlns} class="hd-chart" role="img" viewBox="0 0 {WIDTH} {n(height)}" width="100%"'
        f' aria-label="{escape(title)}"><title>{escape(title)}</title>{desc_tag}{style}{"".join(parts)}</svg>'
    )


def n(value: float) -> str:
    """A coordinate, as short as it can be."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


DAY = 86_400.0
HOUR = 3600.0
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

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


def date_ticks(low: float, high: float, count: int = 6, *, finest: float = HOUR) -> list[float]:
    """Days (or hours, where they are few) between two moments, evenly apart; all in seconds."""
    span = high - low
    if span <= 0:
        return [low]
    steps = [hours * HOUR for hours in (1, 3, 6, 12)] + [days * DAY for days in (1, 2, 3, 7, 14, 30, 91)]
    years = 365 * DAY * math.ceil(span / (365 * DAY * count))
    step = next((step for step in steps if step >= finest and span / step <= count), years)
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


def moment(seconds: float, span: float) -> str:
    """A moment on an axis of this length: its day, with the hour or the year where they tell something.

    >>> moment(number(date(2026, 11, 3)), span=30 * DAY)
    '3 Nov'
    """
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    day = f"{at.day} {MONTHS[at.month - 1]}"
    if span <= 2 * DAY and seconds % DAY:
        return f"{day} {at:%H:%M}"
    return f"{day} {at.year}" if span > 400 * DAY else day


def extent(values: Sequence[float], least: float | None = None, most: float | None = None) -> tuple[float, float]:
    """From the smallest to the greatest value, or the given range; never empty."""
    low = min(values, default=0.0) if least is None else least
    high = max(values, default=1.0) if most is None else most
    if low == high:
        low, high = (low - 0.5, high + 0.5) if least is None else (low, low + 1)
    return low, high


NO_DATA = "No data in this range"

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
    below: Sequence[str] = (),
) -> str:
    """Lines in one frame; `least` and `most` hold the vertical axis where it is, `below` are texts under the other."""
    points = [point for curve in series for point in curve.points]
    positions = [point.x for point in points] + [marker.x for marker in markers]
    xs = [number(x) for x in positions]
    several = len(series) > 1
    low_x, high_x = extent(xs) if len(set(xs)) != 1 else (xs[0] - 1, xs[0] + 1)
    low_y, high_y = _heights(points, markers, least, most)
    axes = _Axes(
        Scale(low_x, high_x, LEFT, WIDTH - RIGHT),
        Scale(low_y, high_y, height - BOTTOM, TOP + (24 if several else 0)),
        dated=any(isinstance(x, date) for x in positions),
        percent=percent,
    )
    parts = _levels(axes.up, percent)
    if xs:
        finest = HOUR if any(isinstance(x, datetime) for x in positions) else DAY
        parts += _labels(axes, [xs[0]] if len(set(xs)) == 1 else axes.positions(finest))
    parts += [_upright(marker, axes) for marker in markers if marker.y is None]
    for index, curve in enumerate(series):
        parts += _line(curve, axes, index)
    for index, curve in enumerate(series):
        parts += _dots(curve, axes, index, f"{curve.name}, " if several else "") if curve.dots else ()
    parts += [_dot(marker, axes) for marker in markers if marker.y is not None]
    if several:
        parts.append(legend([curve.name for curve in series], TOP + 6))
    if not any(point.y is not None for point in points) and not markers:
        parts.append(text(WIDTH / 2, height / 2, NO_DATA, anchor="middle"))
    parts += [text(LEFT, height + 18 * index, line) for index, line in enumerate(below, 1)]
    return frame(parts, height + 18 * len(below) + (10 if below else 0), title, desc, standalone=standalone)


@dataclass(frozen=True, slots=True)
class _Axes:
    """The places in a frame, and their names."""

    across: Scale
    up: Scale
    dated: bool
    percent: bool

    def place(self, x: X, y: float) -> str:
        return f"{n(self.across(number(x)))},{n(self.up(y))}"

    def name(self, x: X) -> str:
        return moment(number(x), self.across.high - self.across.low) if self.dated else format_value(number(x))

    def positions(self, finest: float) -> list[float]:
        low, high = self.across.low, self.across.high
        return date_ticks(low, high, finest=finest) if self.dated else ticks(low, high, 6)


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


def _levels(up: Scale, percent: bool) -> list[str]:
    """The horizontal lines with their numbers, and the axis below them."""
    parts = []
    for value in ticks(up.low, up.high, 4):
        parts.append(line(LEFT, up(value), WIDTH - RIGHT, up(value), "hd-grid"))
        parts.append(text(LEFT - 8, up(value) + 4, format_value(value, percent), anchor="end"))
    return [*parts, line(LEFT, up.start, WIDTH - RIGHT, up.start, "hd-axis")]


def _labels(axes: _Axes, positions: Sequence[float]) -> Iterator[str]:
    labels = [axes.name(position) for position in positions]
    # Labels with a time of day are long; all of them would overlap on a phone.
    spacing = 2 if len(labels) > 3 and max(map(len, labels)) > LONG_LABEL else 1
    for position, label in list(zip(positions, labels, strict=True))[::spacing]:
        x = axes.across(position)
        yield text(x, axes.up.start + 22, label, anchor="end" if x > WIDTH - RIGHT - 24 else "middle")


def _line(series: Series, axes: _Axes, index: int) -> list[str]:
    """A line with its band, in as many parts as its gaps leave."""
    bands, lines = [], []
    for is_gap, group in groupby(series.points, key=lambda point: point.y is None):
        run = [] if is_gap else list(group)
        over = [axes.place(point.x, point.high) for point in run if point.low is not None and point.high is not None]
        under = [axes.place(point.x, point.low) for point in run if point.low is not None and point.high is not None]
        if len(over) > 1:
            bands.append(f'<polygon points="{" ".join(over + under[::-1])}" class="hd-band hd-b{index % 4}"/>')
        if len(run) > 1:
            path = " ".join(axes.place(point.x, point.y or 0.0) for point in run)
            lines.append(f'<polyline points="{path}" class="hd-line hd-s{index % 4}"/>')
    return bands + lines


def _dots(series: Series, axes: _Axes, index: int, name: str) -> Iterator[str]:
    crowded = sum(point.y is not None for point in series.points) > MAX_DOTS
    for point in series.points:
        if point.y is None:
            continue
        amount = _amount(point.y, point.low, point.high, point.size, axes.percent)
        centre = 'cx="{}" cy="{}"'.format(*axes.place(point.x, point.y).split(","))
        dot = "" if crowded else f'<circle {centre} r="3.5" class="hd-dot hd-s{index % 4}"/>'
        area = f'{dot}<circle {centre} r="9" fill="transparent"/>'
        yield with_tooltip(area, f"{name}{axes.name(point.x)}: {amount}")


def _amount(value: float, low: float | None, high: float | None, size: int | None, percent: bool) -> str:
    words = format_value(round(value, 4), percent)
    if low is not None and high is not None:
        words += f" ({format_value(round(low, 4), percent)} to {format_value(round(high, 4), percent)})"
    return words if size is None else f"{words}, n = {size:,}"


def _upright(marker: Marker, axes: _Axes) -> str:
    x, top = axes.across(number(marker.x)), axes.up.end
    drawn = line(x, top, x, axes.up.start, "hd-mark")
    return with_tooltip(f'{drawn}<circle cx="{n(x)}" cy="{n(top)}" r="5" class="hd-{marker.kind}"/>', marker.label)


def _dot(marker: Marker, axes: _Axes) -> str:
    assert marker.y is not None
    x, y = axes.across(number(marker.x)), axes.up(marker.y)
    # Up and down differ in shape too: colour alone is not accessible.
    shapes = {
        "up": f'<path d="M{n(x - 6)} {n(y + 4)}L{n(x)} {n(y - 6)}L{n(x + 6)} {n(y + 4)}Z" class="hd-up"/>',
        "down": f'<path d="M{n(x - 6)} {n(y - 4)}L{n(x)} {n(y + 6)}L{n(x + 6)} {n(y - 4)}Z" class="hd-down"/>',
        "neutral": f'<circle cx="{n(x)}" cy="{n(y)}" r="5" class="hd-neutral"/>',
    }
    return with_tooltip(shapes[marker.kind], (f"{axes.name(marker.x)}: " if axes.dated else "") + marker.label)


MAX_LABELS = 12
MAX_LABEL = 14
MIN_BARS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One amount; a `quiet` one is drawn in the background."""

    label: str
    value: float
    quiet: bool = False
    note: str = ""
    """Words after its amount."""


def bar_chart(
    bars: Sequence[Bar],
    *,
    title: str,
    desc: str = "",
    height: int = 240,
    percent: bool = False,
    standalone: bool = False,
) -> str:
    """Upright bars from 0."""
    most = max((bar.value for bar in bars), default=0.0)
    marks = ticks(0, most or 1, 4)
    high = marks[-1] if marks[-1] >= most else marks[-1] + (marks[1] - marks[0] if len(marks) > 1 else most)
    up = Scale(0, high, height - BOTTOM, TOP)
    *parts, axis = _levels(up, percent)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    wide = min(48.0, room * 0.7)
    skip = -(-len(bars) // MAX_LABELS) or 1
    for index, bar in enumerate(bars):
        middle, top = LEFT + room * (index + 0.5), up(max(0.0, bar.value))
        place = f'x="{n(middle - wide / 2)}" y="{n(top)}" width="{n(wide)}" height="{n(max(0.0, up.start - top))}"'
        drawn = f'<rect {place} rx="2" class="hd-bar{" hd-quiet" if bar.quiet else ""}"/>'
        note = f", {bar.note}" if bar.note else ""
        parts.append(with_tooltip(drawn, f"{bar.label}: {format_value(bar.value, percent)}{note}"))
        if index % skip == 0:
            # Where there is little room, a page may leave every second one out.
            kind = "hd-odd" if index // skip % 2 and len(bars) > MIN_BARS else ""
            label = bar.label if len(bar.label) <= MAX_LABEL else bar.label[: MAX_LABEL - 1] + "…"
            parts.append(text(middle, up.start + 22, label, anchor="middle", kind=kind))
    parts.append(axis)
    if not bars:
        parts.append(text(WIDTH / 2, height / 2, NO_DATA, anchor="middle"))
    return frame(parts, height, title, desc, standalone=standalone)


def histogram(
    counts: Mapping[str, int], *, title: str, desc: str = "", height: int = 240, standalone: bool = False
) -> str:
    """How many there are in each bin, in the order given."""
    bars = [Bar(label, count) for label, count in counts.items()]
    return bar_chart(bars, title=title, desc=desc, height=height, standalone=standalone)


ROW = 44
NAMES = 190
"""Room for the names of the rows."""
MAX_FONT_SIZE = 22
"""The size of letters where a page is narrowest."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One row; without a value, nothing is known of it."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    size: int | None = None


def interval_chart(rows: Sequence[Interval], *, title: str, desc: str = "", standalone: bool = False) -> str:
    """A dot for each share and a line for its interval, the first row in the accent colour."""
    low, high = extent([value for row in rows for value in (row.value, row.low, row.high) if value is not None])
    steps = ticks(low, high)
    if len(steps) > 1:
        step = steps[1] - steps[0]
        low = steps[0] - (step if steps[0] > low + 1e-9 else 0)
        high = steps[-1] + (step if steps[-1] < high - 1e-9 else 0)
    bottom = 12 + ROW * max(1, len(rows))
    across = Scale(max(0.0, low), min(1.0, high), NAMES, WIDTH - RIGHT - 24)
    parts = []
    for value in ticks(across.low, across.high):
        parts.append(line(across(value), 8, across(value), bottom, "hd-grid"))
        parts.append(text(across(value), bottom + 22, format_value(value, percent=True), anchor="middle"))
    for index, row in enumerate(rows):
        parts.append(_row(row, across, 12 + ROW * (index + 0.5), index))
    if not rows:
        parts.append(text(WIDTH / 2, bottom / 2 + 8, "Nothing to compare yet", anchor="middle"))
    return frame(parts, bottom + 36, title, desc, standalone=standalone)


def _row(row: Interval, across: Scale, y: float, index: int) -> str:
    name = truncate(row.label, NAMES - 12, MAX_FONT_SIZE)
    label = text(NAMES - 12, y + 4, name, anchor="end", kind="hd-value")
    if name != row.label:
        label = with_tooltip(label, row.label)
    if row.value is None:
        return label + text(NAMES + 8, y + 4, "no ratings yet")
    kind = f"hd-s{min(index, 3)}"
    drawn = ""
    if row.low is not None and row.high is not None:
        left, right = across(row.low), across(row.high)
        drawn += line(left, y, right, y, f"hd-line {kind}")
        drawn += "".join(line(x, y - 6, x, y + 6, f"hd-line hd-whole {kind}") for x in (left, right))
    drawn += f'<circle cx="{n(across(row.value))}" cy="{n(y)}" r="6" class="hd-dot {kind}"/>'
    amount = _amount(row.value, row.low, row.high, row.size, percent=True)
    shown = format_value(round(row.value, 3), percent=True)
    value = text(across(row.value), y - 12, shown, anchor="middle", kind="hd-value")
    return label + with_tooltip(drawn, f"{row.label}: {amount}") + value
