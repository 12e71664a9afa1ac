"""Bars: amounts side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.interfaces.charts.lines import Scale, format_value, ticks
from heedful.interfaces.charts.svg import BOTTOM, LEFT, RIGHT, TOP, WIDTH, frame, line, n, text, with_tooltip

MAX_LABELS = 12
MIN_BARS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One amount; a `quiet` one stands back."""

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
    for place, bar in enumerate(bars):
        middle = LEFT + room * (place + 0.5)
        top = up(max(0.0, bar.value))
        kind = "hd-bar hd-quiet" if bar.quiet else "hd-bar"
        tall = max(0.0, height - BOTTOM - top)
        place_of = f'x="{n(middle - wide / 2)}" y="{n(top)}" width="{n(wide)}" height="{n(tall)}"'
        drawn = f'<rect {place_of} rx="2" class="{kind}"/>'
        said = f"{bar.label}: {format_value(bar.value, percent)}"
        parts.append(with_tooltip(drawn, f"{said}, {bar.note}" if bar.note else said))
        if place % skip == 0:
            # Where there is little room, a page may leave every second one out.
            kind = "hd-odd" if place // skip % 2 and len(bars) > MIN_BARS else ""
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
