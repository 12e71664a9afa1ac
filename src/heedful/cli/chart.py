"""A replay as a picture: the mean reciprocal rank against the weight, a line for each policy, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from heedful.model import PolicyName, ReplayArm, ReplayReport

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 78, 56

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
    heaviest = max([1e-9, *(arm.usefulness_weight or 0 for arm in report.arms)])

    def x(weight: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * weight / heaviest

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    advised = {each.policy: each.usefulness_weight for each in report.advice}
    policies = list(dict.fromkeys(arm.policy for arm in report.arms if arm.policy is not None))
    drawn: list[str] = []
    labels: list[tuple[float, str, str]] = []
    for arm, name, dashes in ((report.logged, "as logged", "2 4"), (report.none, "relevance alone", "8 4")):
        height = y(arm.mrr.value)
        drawn.append(_line(LEFT, height, WIDTH - RIGHT, height, FAINT, f' stroke-dasharray="{dashes}"'))
        labels.append((height, name, FAINT))
    for policy in policies:
        arms = [arm for arm in report.arms if arm.policy == policy]
        drawn += _series(arms, report.none, x, y, COLOURS[policy], advised.get(policy))
        labels.append((y(arms[-1].mrr.value), policy, COLOURS[policy]))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            *_heading(report),
            *_axes(ticks, heaviest, x, y),
            *drawn,
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


def _axes(ticks: Sequence[float], heaviest: float, x: Scale, y: Scale) -> list[str]:
    parts = []
    digits = max(1, -floor(log10(ticks[1] - ticks[0])))
    for tick in ticks:
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), GRID))
        parts.append(_text(LEFT - 8, y(tick) + 4, f"{tick:.{digits}f}", FAINT, ' text-anchor="end"'))
    for share in range(6):
        weight = heaviest * share / 5
        parts.append(_text(x(weight), HEIGHT - BOTTOM + 20, f"{weight:.2g}", FAINT, ' text-anchor="middle"'))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(_text(middle, HEIGHT - 14, "usefulness_weight", INK, ' text-anchor="middle"'))
    parts.append(_text(LEFT, TOP - 10, "mean reciprocal rank of the first helpful fact", INK))
    return parts


def _series(
    arms: Sequence[ReplayArm], none: ReplayArm, x: Scale, y: Scale, colour: str, advised: float | None
) -> list[str]:
    """A band, a line from relevance alone at weight 0, and dots."""
    points = [(arm.usefulness_weight or 0.0, arm.mrr) for arm in (none, *arms)]
    above = [f"{x(weight):.1f},{y(mrr.high):.1f}" for weight, mrr in points]
    below = [f"{x(weight):.1f},{y(mrr.low):.1f}" for weight, mrr in reversed(points)]
    along = [f"{x(weight):.1f},{y(mrr.value):.1f}" for weight, mrr in points]
    parts = [
        f'<polygon points="{" ".join(above + below)}" fill="{colour}" fill-opacity="0.13"/>',
        f'<polyline points="{" ".join(along)}" fill="none" stroke="{colour}" stroke-width="2.5"/>',
    ]
    for weight, mrr in points:
        place = f'cx="{x(weight):.1f}" cy="{y(mrr.value):.1f}"'
        parts.append(f'<circle {place} r="3.5" fill="{colour}"/>')
        if weight == advised:
            parts.append(f'<circle {place} r="8" fill="none" stroke="{colour}" stroke-width="2"/>')
    return parts


def _labels(labels: Sequence[tuple[float, str, str]]) -> list[str]:
    """Names at the right of their lines, moved down where they would overlap, and up again at the bottom."""
    ordered = sorted(labels)
    heights: list[float] = []
    for height, _, _ in ordered:
        heights.append(max(height, heights[-1] + LINE_HEIGHT) if heights else height)
    lowest = HEIGHT - BOTTOM + LINE_HEIGHT * 0.0
    for place in range(len(heights) - 1, -1, -1):
        heights[place] = min(heights[place], lowest)
        lowest = heights[place] - LINE_HEIGHT
    return [
        _text(WIDTH - RIGHT + 12, height + 4, name, colour, ' font-weight="bold"')
        for height, (_, name, colour) in zip(heights, ordered, strict=True)
    ]


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers around both ends, four to eight of them."""
    spread = max(high - low, 0.02)
    step = next(
        step for step in (size * 10.0**power for power in (-3, -2, -1) for size in (1, 2, 5)) if spread / step <= 6
    )
    first, last = floor(low / step + 1e-9), max(ceil(high / step - 1e-9), floor(low / step + 1e-9) + 1)
    return [round(place * step, 6) for place in range(first, last + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, style: str = "") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="1.5"{style}/>'
    )


def _text(x: float, y: float, words: str, colour: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{style}>{escape(words)}</text>'
