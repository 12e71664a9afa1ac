"""A replay as a picture: the mean reciprocal rank against the weight, a line for each policy, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from heedful.model import PolicyName, ReplayArm, ReplayReport

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 96, 56

COLOURS: dict[PolicyName, str] = {"documented": "#0072B2", "adaptive": "#D55E00"}
"""Okabe and Ito's, which people who see fewer colours can tell apart."""

INK, FAINT, GRID = "#222222", "#666666", "#e4e4e4"

LINE_HEIGHT = 17
"""The least distance between the labels at the right."""

Scale = Callable[[float], float]


def chart(report: ReplayReport) -> str:
    """The picture of a report that has arms."""
    assert report.logged is not None
    assert report.none is not None
    values = [end for arm in (report.logged, report.none, *report.arms) for end in (arm.mrr.low, arm.mrr.high)]
    ticks = _ticks(min(values), max(values))
    heaviest = max(arm.usefulness_weight or 0.0 for arm in report.arms) or 1.0

    def x(weight: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * weight / heaviest

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    advised = {each.policy: each.usefulness_weight for each in report.advice}
    bands, lines, labels = [], [], []
    for arm, name, dashes in ((report.logged, "as logged", "2 4"), (report.none, "relevance alone", "8 4")):
        height = y(arm.mrr.value)
        lines.append(_line(LEFT, height, WIDTH - RIGHT, height, FAINT, f' stroke-dasharray="{dashes}"'))
        labels.append((height, name, FAINT))
    for index, policy in enumerate(dict.fromkeys(arm.policy for arm in report.arms if arm.policy is not None)):
        arms = [report.none, *(arm for arm in report.arms if arm.policy == policy)]
        bands.append(_band(arms, x, y, COLOURS[policy]))
        lines += _series(arms, x, y, COLOURS[policy], advised[policy], ring=8 + 4 * index)
        labels.append((y(arms[-1].mrr.value), policy, COLOURS[policy]))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            *_heading(report),
            *bands,
            *_axes(ticks, _ticks(0.0, heaviest), heaviest, x, y),
            *lines,
            *_labels(labels),
            "</svg>\n",
        ]
    )


def _heading(report: ReplayReport) -> list[str]:
    recalls = f"{report.replayed} rated recalls of {report.dataset}"
    return [
        _text(
            LEFT, 28, "What other weights would have made of your recalls", INK, ' font-size="17" font-weight="bold"'
        ),
        _text(LEFT, 49, f"{recalls}; bands are 95% intervals, a ring marks the recommended weight", FAINT),
    ]


def _axes(ticks: Sequence[float], weights: Sequence[float], heaviest: float, x: Scale, y: Scale) -> list[str]:
    parts = []
    digits = max(1, ceil(-log10(ticks[1] - ticks[0]) - 1e-9))
    for tick in ticks:
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), GRID, width=1))
        parts.append(_text(LEFT - 10, y(tick) + 4, f"{tick:.{digits}f}", FAINT, ' text-anchor="end"'))
    for weight in weights:
        if weight <= heaviest:
            parts.append(_text(x(weight), HEIGHT - BOTTOM + 22, f"{weight:g}", FAINT, ' text-anchor="middle"'))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(_text(middle, HEIGHT - 14, "usefulness_weight", INK, ' text-anchor="middle"'))
    parts.append(_text(LEFT, TOP - 12, "mean reciprocal rank of the first helpful fact", INK))
    return parts


def _band(arms: Sequence[ReplayArm], x: Scale, y: Scale, colour: str) -> str:
    above = [_point(arm, arm.mrr.high, x, y) for arm in arms]
    below = [_point(arm, arm.mrr.low, x, y) for arm in reversed(arms)]
    return f'<polygon points="{" ".join(above + below)}" fill="{colour}" fill-opacity="0.13"/>'


def _series(arms: Sequence[ReplayArm], x: Scale, y: Scale, colour: str, advised: float | None, ring: int) -> list[str]:
    """A line with a dot for each arm, and a ring around the one that is recommended."""
    along = " ".join(_point(arm, arm.mrr.value, x, y) for arm in arms)
    parts = [f'<polyline points="{along}" fill="none" stroke="{colour}" stroke-width="2.5"/>']
    for arm in arms:
        centre = f'cx="{x(arm.usefulness_weight or 0.0):.1f}" cy="{y(arm.mrr.value):.1f}"'
        parts.append(f'<circle {centre} r="3.5" fill="{colour}"/>')
        if arm.usefulness_weight == advised:
            parts.append(f'<circle {centre} r="{ring}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return parts


def _point(arm: ReplayArm, value: float, x: Scale, y: Scale) -> str:
    return f"{x(arm.usefulness_weight or 0.0):.1f},{y(value):.1f}"


def _labels(labels: Sequence[tuple[float, str, str]]) -> list[str]:
    """Names at the right of their lines, moved down where they would overlap, and up again at the bottom."""
    ordered = sorted(labels)
    heights: list[float] = []
    for height, _, _ in ordered:
        heights.append(max(height, heights[-1] + LINE_HEIGHT) if heights else height)
    lowest: float = HEIGHT - BOTTOM
    for index in range(len(heights) - 1, -1, -1):
        heights[index] = min(heights[index], lowest)
        lowest = heights[index] - LINE_HEIGHT
    return [
        _text(WIDTH - RIGHT + 12, height + 4, name, colour, ' font-weight="bold"')
        for height, (_, name, colour) in zip(heights, ordered, strict=True)
    ]


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers around both ends, two to eight of them."""
    spread = max(high - low, 0.02)
    step = next(
        step for step in (size * 10.0**power for power in (-3, -2, -1) for size in (1, 2, 5)) if spread / step <= 6
    )
    first, last = floor(low / step + 1e-9), max(ceil(high / step - 1e-9), floor(low / step + 1e-9) + 1)
    return [round(multiple * step, 6) for multiple in range(first, last + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, style: str = "", width: float = 1.5) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"{style}/>'


def _text(x: float, y: float, content: str, colour: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{style}>{escape(content)}</text>'
