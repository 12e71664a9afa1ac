"""The two pictures on top of docs/benchmarks.md, drawn from the records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from heedful.interfaces.charts import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Scale, frame, legend, line, n, text, ticks

Changes = Mapping[str, Mapping[str, Sequence[float]]]
"""By world and rule: the change for other phrasings, and for needs that nobody rated."""

ROOM, ROW = 210, 24
"""For the names of the rows, and for one of them."""


def learning(worlds: Changes, blend: str) -> str:
    """What ratings do to ranks in each world, by the default and a fixed blend: of rated questions, and of others."""
    rows: list[tuple[str, str, Sequence[float]]] = []
    for world, arms in worlds.items():
        rows += [
            (world, "adaptive", arms["adaptive"]),
            ("", f"blend, {blend.partition(', ')[2].replace('= .', '= 0.')}", arms[blend]),
        ]
    values = [value for _, _, both in rows for value in both]
    middle = ROOM + (WIDTH - RIGHT - ROOM) / 2 + 10
    halves = (
        ("rated questions, in other words", Scale(*_reach(values), ROOM, middle - 20)),
        ("questions that nobody rated", Scale(*_reach(values), middle + 10, WIDTH - RIGHT - 20)),
    )
    low = TOP + 24 + ROW * len(rows) + 8 * len(worlds)
    parts = []
    for title, across in halves:
        parts.append(text((across.start + across.end) / 2, TOP, title, anchor="middle", kind="hd-value"))
        for value in ticks(across.low, across.high, 4):
            parts.append(line(across(value), TOP + 12, across(value), low, "hd-axis" if value == 0 else "hd-grid"))
            parts.append(text(across(value), low + 18, f"{value:+.0f}%".replace("+0%", "0"), anchor="middle"))
    for place, (world, arm, both) in enumerate(rows):
        y = TOP + 30 + ROW * place + 8 * (place // 2)
        parts += [text(8, y, world, kind="hd-value"), text(ROOM - 12, y, arm, anchor="end")]
        for (_, across), value in zip(halves, both, strict=True):
            left, right = sorted((across(0.0), across(value)))
            kind = "hd-bar" if arm == "adaptive" else "hd-bar hd-quiet"
            parts.append(
                f'<rect x="{n(left)}" y="{n(y - 12)}" width="{n(max(1.0, right - left))}" height="16" class="{kind}"/>'
            )
            parts.append(_amount(across, value, y))
    return frame(parts, low + BOTTOM, "Change of the mean reciprocal rank of the right fact", "", standalone=True)


def _amount(across: Scale, value: float, y: float) -> str:
    """The amount, behind its bar."""
    shown = f"{value:+.1f}".replace("-", "−") if value else "0"
    inside = value < 0 and across(value) - across.start < 40
    x = across(0.0) + 5 if inside or value == 0 else across(value) + (5 if value > 0 else -5)
    return text(x, y, shown, anchor="end" if value < 0 and not inside else "start", kind="hd-value")


def _reach(values: Sequence[float]) -> tuple[float, float]:
    return min(0.0, *values), max(0.0, *values) * 1.3


def growth(stores: Mapping[str, Sequence[Sequence[float]]], speed: Mapping[str, Any]) -> str:
    """The time of a recall after embedding against the number of facts, both on logarithmic scales."""
    lines = {
        "PostgreSQL": [(each[0], each[1]) for each in stores.get("postgresql", [])],
        "SQLite": [(each[0], each[1]) for each in stores.get("sqlite", [])],
        "SQLite, in the run of speed": [(each[0], each[1]) for each in speed["sizes"]],
    }
    lines = {name: points for name, points in lines.items() if points}
    every = [point for points in lines.values() for point in points]
    height = 300.0
    across = Scale(*_powers([facts for facts, _ in every]), LEFT, WIDTH - RIGHT - 30)
    up = Scale(*_powers([time for _, time in every]), height - BOTTOM, TOP + 24)
    parts = [legend(list(lines), TOP)]
    for power in range(math.ceil(across.low), math.floor(across.high) + 1):
        x = across(power)
        parts += [
            line(x, up.start, x, up.end, "hd-grid"),
            text(x, up.start + 20, f"{10**power:,} facts", anchor="middle"),
        ]
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if up.low <= math.log10(step) <= up.high:
            y = up(math.log10(step))
            parts += [line(LEFT, y, WIDTH - RIGHT, y, "hd-grid"), text(LEFT - 8, y + 4, f"{step} ms", anchor="end")]
    for place, points in enumerate(lines.values()):
        spots = [(across(math.log10(facts)), up(math.log10(time))) for facts, time in points]
        parts += [line(*one, *other, f"hd-line hd-s{place}") for one, other in pairwise(spots)]
        parts += [f'<circle cx="{n(x)}" cy="{n(y)}" r="4" class="hd-dot hd-s{place}"/>' for x, y in spots]
    return frame(parts, height, "Hybrid recall after embedding, by number of facts (p50)", "", standalone=True)


def _powers(values: Sequence[float]) -> tuple[float, float]:
    return math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1
