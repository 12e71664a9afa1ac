"""The charts of a report, each with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heedful.interfaces import gates
from heedful.interfaces.charts import Bar, Interval, Point, Series, bar_chart, histogram, interval_chart, line_chart
from heedful.model import CacheReport, Coverage, Satisfaction, Trend, UsefulnessReport, Variant


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and the table of what it shows."""

    name: str
    """Of its file."""
    title: str
    draw: Callable[[bool], str]
    """The chart as SVG; with True, as a standalone file."""
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def percent(share: float | None) -> str:
    """A share in words.

    >>> percent(0.256), percent(None)
    ('25.6%', '–')
    """
    return "–" if share is None else f"{share:.1%}"


def between(low: float | None, high: float | None) -> str:
    """An interval in words."""
    return "–" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def trend(report: Trend) -> Figure:
    points = [point for line in report.lines for point in line.points]
    rated = [point for point in points if point.up or point.down or point.neutral]

    def draw(standalone: bool) -> str:
        return line_chart(
            [
                Series("satisfaction", [Point(p.start, p.satisfaction, p.low, p.high, p.up + p.down) for p in points]),
            ],
            title=f"Satisfaction by {report.over}",
            desc="The share of opinions that are up, with its 95% interval",
            least=0,
            most=1,
            percent=True,
            standalone=standalone,
        )

    return Figure(
        "trend",
        f"Satisfaction by {report.over}",
        draw,
        (report.over, "up", "down", "neutral", "satisfaction", "95% interval"),
        [
            (
                str(point.start),
                *(f"{count:,}" for count in (point.up, point.down, point.neutral)),
                percent(point.satisfaction),
                between(point.low, point.high),
            )
            for point in rated
        ],
    )


def comparison(report: Satisfaction) -> Figure:
    def draw(standalone: bool) -> str:
        return interval_chart(
            [
                Interval(_label(variant), variant.satisfaction, variant.low, variant.high, variant.up + variant.down)
                for variant in variants
            ],
            title=f"Satisfaction by {report.by}",
            desc="The share of opinions that are up, with its 95% interval",
            standalone=standalone,
        )

    variants = report.variants[:20]
    return Figure(
        f"by-{_file(report.by)}",
        f"Satisfaction by {report.by}",
        draw,
        (report.by, "up", "down", "neutral", "satisfaction", "95% interval", "best with"),
        [
            (
                _label(variant),
                *(f"{count:,}" for count in (variant.up, variant.down, variant.neutral)),
                percent(variant.satisfaction),
                between(variant.low, variant.high),
                percent(variant.probability_best),
            )
            for variant in report.variants
        ],
    )


def coverage(report: Coverage) -> Figure:
    kinds = (report.answers, report.executions, report.recalls)

    def draw(standalone: bool) -> str:
        return bar_chart(
            [
                Bar(covered.kind, covered.share or 0.0, note=f"{covered.rated:,} of {covered.shown:,}")
                for covered in kinds
            ],
            title="How much was rated",
            percent=True,
            standalone=standalone,
        )

    return Figure(
        "coverage",
        "How much of what was shown was rated",
        draw,
        ("what", "shown", "rated", "share", "95% interval"),
        [
            (
                covered.kind,
                f"{covered.shown:,}",
                f"{covered.rated:,}",
                percent(covered.share),
                between(covered.low, covered.high),
            )
            for covered in kinds
        ],
    )


def usefulness(report: UsefulnessReport) -> Figure:
    def draw(standalone: bool) -> str:
        return histogram(
            report.distribution, title=f"Usefulness of the facts of {report.dataset}", standalone=standalone
        )

    return Figure(
        f"usefulness-{_file(report.dataset)}",
        f"Facts of {report.dataset} by usefulness",
        draw,
        ("usefulness", "facts"),
        [(label, f"{count:,}") for label, count in report.distribution.items()],
    )


def cache(report: CacheReport) -> Figure:
    counts = report.counts[:12]

    def draw(standalone: bool) -> str:
        return bar_chart(
            [
                Bar(gates.label(outcome.gate), outcome.count, quiet=outcome.decision in ("refuse", "nothing"))
                for outcome in counts
            ],
            title="What the cache decided",
            standalone=standalone,
        )

    return Figure(
        "cache",
        "What the cache decided",
        draw,
        ("decision", "why", "times", "share"),
        [
            (outcome.decision, gates.label(outcome.gate), f"{outcome.count:,}", percent(outcome.share))
            for outcome in report.counts
        ],
    )


def _label(variant: Variant) -> str:
    return "(none)" if variant.value is None else str(variant.value)


def _file(name: str) -> str:
    """A name as part of a file's name.

    >>> _file("metadata.a/b ü")
    'metadata.a-b--'
    """
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "-" for each in name)[:60]
