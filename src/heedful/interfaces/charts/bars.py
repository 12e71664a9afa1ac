"""Bars and intervals: amounts side by side, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.interfaces.charts.lines import Scale, extent, format_value, ticks
from heedful.interfaces.charts.svg import BOTTOM, LEFT, RIGHT, TOP, WIDTH, frame, line, n, text, truncate, with_tooltip

MAX_LABELS = 12
MIN_BARS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One amount; a `quiet` one is drawn in the background."""

    label: str
    value: float
    quiet: bool = False
    note: str = ""
    """What is said of it beside its amount."""


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
    parts = []
    for value in ticks(0, high, 4):
        parts.append(line(LEFT, up(value), WIDTH - RIGHT, up(value), "hd-grid"))
        parts.append(text(LEFT - 8, up(value) + 4, format_value(value, percent), anchor="end"))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    wide = min(48.0, room * 0.7)
    skip = -(-len(bars) // MAX_LABELS) or 1
    for index, bar in enumerate(bars):
        middle = LEFT + room * (index + 0.5)
        top = up(max(0.0, bar.value))
        kind = "hd-bar hd-quiet" if bar.quiet else "hd-bar"
        tall = max(0.0, height - BOTTOM - top)
        place_of = f'x="{n(middle - wide / 2)}" y="{n(top)}" width="{n(wide)}" height="{n(tall)}"'
        drawn = f'<rect {place_of} rx="2" class="{kind}"/>'
        tooltip = f"{bar.label}: {format_value(bar.value, percent)}"
        parts.append(with_tooltip(drawn, f"{tooltip}, {bar.note}" if bar.note else tooltip))
        if index % skip == 0:
            # Where there is little room, a page may leave every second one out.
            kind = "hd-odd" if index // skip % 2 and len(bars) > MIN_BARS else ""
            parts.append(text(middle, height - BOTTOM + 22, _short(bar.label), anchor="middle", kind=kind))
    parts.append(line(LEFT, height - BOTTOM, WIDTH - RIGHT, height - BOTTOM, "hd-axis"))
    if not bars:
        parts.append(text(WIDTH / 2, height / 2, "No data in this range", anchor="middle"))
    return frame(parts, height, title, desc, standalone=standalone)


def histogram(
    counts: Mapping[str, int], *, title: str, desc: str = "", height: int = 240, standalone: bool = False
) -> str:
    """How many there are in each bin, in the order given."""
    bars = [Bar(label, count) for label, count in counts.items()]
    return bar_chart(bars, title=title, desc=desc, height=height, standalone=standalone)


def _short(label: str, most: int = 14) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


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


def interval_chart(
    rows: Sequence[Interval],
    *,
    title: str,
    desc: str = "",
    least: float | None = None,
    most: float | None = None,
    percent: bool = True,
    standalone: bool = False,
) -> str:
    """A dot for each value and a line for its interval, the first row in the accent colour."""
    values = [value for row in rows for value in (row.value, row.low, row.high) if value is not None]
    low, high = extent(values, least, most)
    steps = ticks(low, high)
    if len(steps) > 1:
        step = steps[1] - steps[0]
        low = low if least is not None else steps[0] - (step if steps[0] > low + 1e-9 else 0)
        high = high if most is not None else steps[-1] + (step if steps[-1] < high - 1e-9 else 0)
    if percent:
        low, high = max(0.0, low), min(1.0, high)
    bottom = 12 + ROW * max(1, len(rows))
    across = Scale(low, high, NAMES, WIDTH - RIGHT - 24)
    parts = []
    for value in ticks(low, high):
        parts.append(line(across(value), 8, across(value), bottom, "hd-grid"))
        parts.append(text(across(value), bottom + 22, format_value(value, percent), anchor="middle"))
    for index, row in enumerate(rows):
        parts.append(_row(row, across, 12 + ROW * (index + 0.5), index, percent))
    if not rows:
        parts.append(text(WIDTH / 2, bottom / 2 + 8, "Nothing to compare yet", anchor="middle"))
    return frame(parts, bottom + 36, title, desc, standalone=standalone)


def _row(row: Interval, across: Scale, y: float, index: int, percent: bool) -> str:
    name = truncate(row.label, NAMES - 12, MAX_FONT_SIZE)
    label = text(NAMES - 12, y + 4, name, anchor="end", kind="hd-value")
    if name != row.label:
        label = with_tooltip(label, row.label)
    if row.value is None:
        return label + text(NAMES + 8, y + 4, "no ratings yet")
    kind = f"hd-s{min(index, 3)}"
    drawn = ""
    tooltip = f"{row.label}: {format_value(round(row.value, 4), percent)}"
    if row.low is not None and row.high is not None:
        left, right = across(row.low), across(row.high)
        drawn += line(left, y, right, y, f"hd-line {kind}")
        drawn += "".join(line(x, y - 6, x, y + 6, f"hd-line hd-whole {kind}") for x in (left, right))
        tooltip += f" ({format_value(round(row.low, 4), percent)} to {format_value(round(row.high, 4), percent)})"
    if row.size is not None:
        tooltip += f", n = {row.size:,}"
    drawn += f'<circle cx="{n(across(row.value))}" cy="{n(y)}" r="6" class="hd-dot {kind}"/>'
    value = text(
        across(row.value), y - 12, format_value(round(row.value, 3), percent), anchor="middle", kind="hd-value"
    )
    return label + with_tooltip(drawn, tooltip) + value
