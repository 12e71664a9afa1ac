"""Reports: what people said, as one file that anybody can open, and its charts in others.

They are asked of an engine that is here or on a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from heedful.api import Insight, checks
from heedful.engine import Heedful, project_of
from heedful.errors import Invalid
from heedful.files import FOLDER_MODE, write_atomically, write_error
from heedful.interfaces import reason_labels
from heedful.interfaces.charts import Bar, Interval, Point, Series, bar_chart, histogram, interval_chart, line_chart
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.model import (
    FACETS,
    CacheReport,
    Coverage,
    RegressReport,
    Satisfaction,
    Trend,
    TrendPoint,
    UsefulnessStats,
    Variant,
)
from heedful.text import counted
from heedful.version import __version__

WEEKLY = 92
"""Days beyond which the trend is by week."""

MAX_DATASETS = 10
MAX_ROWS = 20
MAX_BARS = 12
MAX_OPEN_ITEMS = 20

SHARE = "The share of opinions that are up, with its 95% interval"
COUNTED = ("up", "down", "neutral", "satisfaction", "95% interval")


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and the table of what it shows."""

    name: str
    """Of its file."""
    title: str
    draw: Callable[..., str]
    """The chart as SVG; with `standalone`, as a file."""
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


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files that were written."""

    path: Path
    charts: list[Path]
    opinions: int
    """How many the report is about."""


def write_report(
    store: Heedful | RemoteHeedful,
    path: str | Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    dataset: str | None = None,
    by: str | None = None,
    charts: str | Path | None = None,
    overwrite: bool = False,
) -> ReportFiles:
    """Writes a report on what people said as one HTML file, which needs nothing else to be read.

    `by` compares satisfaction by one thing more: `metadata.variant`, say, or `source`. With a folder for `charts`, each
    of them is written there too, as an SVG file.
    """
    checks.flag("overwrite", overwrite)
    report = _gather(store, since, until, dataset, by)
    target = Path(path)
    with write_atomically(target, overwrite=overwrite) as output:
        output.write(_template().render(report=report).encode())
    drawn = [] if charts is None else _draw(_figures(report), Path(charts), overwrite)
    return ReportFiles(target, drawn, report.opinions)


def write_regressions(report: RegressReport, path: str | Path, *, overwrite: bool = False) -> Path:
    """Writes what `regress` found as one HTML file, which needs nothing else to be read."""
    target = Path(path)
    with write_atomically(target, overwrite=overwrite) as output:
        output.write(_template("regress.html").render(report=report, made_at=datetime.now(UTC)).encode())
    return target


@cache
def _template(name: str = "report.html") -> Template:
    """The report as HTML. Every text is escaped; nothing is loaded from elsewhere."""
    environment = Environment(
        loader=PackageLoader("heedful.interfaces.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=percent,
        # Its texts are escaped where it is drawn.
        drawn=lambda figure: Markup(figure.draw()),
        number="{:,}".format,
        moment="{:%Y-%m-%d %H:%M}".format,
    )
    environment.globals.update(between=between, counted=counted, version=__version__)
    return environment.get_template(name)


def _figures(report: SimpleNamespace) -> list[Figure]:
    """The charts that show something."""
    figures = [report.trend] if report.opinions else []
    figures += [figure for figure, compared in report.compared if compared.variants]
    figures += [report.covered, *(figure for figure, _ in report.useful)]
    return [*figures, report.decided] if report.cache.total else figures


def _draw(figures: Sequence[Figure], folder: Path, overwrite: bool) -> list[Path]:
    try:
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(folder, error) from error
    written = []
    for figure in figures:
        file = folder / f"{figure.name}.svg"
        with write_atomically(file, overwrite=overwrite) as output:
            output.write(figure.draw(standalone=True).encode())
        written.append(file)
    return written


def _gather(
    store: Heedful | RemoteHeedful, since: datetime | None, until: datetime | None, dataset: str | None, by: str | None
) -> SimpleNamespace:
    """All that a report says; `first` and `last` are the days in UTC that have opinions."""
    # The client has the same methods.
    insight = store.insight
    period: dict[str, Any] = {"since": since, "until": until}
    about = {**period, "dataset": dataset}
    trend = insight.trend(over="day", **about)
    days = sorted(
        point.start for line in trend.lines for point in line.points if point.up or point.down or point.neutral
    )
    if max((len(line.points) for line in trend.lines), default=0) > WEEKLY:
        trend = insight.trend(over="week", **about)
    coverage, cache = insight.coverage(**about), insight.cache(**period)
    datasets = [dataset] if dataset is not None else store.datasets()
    useful = [store.usefulness_stats(name) for name in datasets[:MAX_DATASETS]]
    return SimpleNamespace(
        made_at=datetime.now(UTC),
        project=project_of(store).name if isinstance(store, Heedful) else store._transport.project,
        **about,
        first=days[0] if days else None,
        last=days[-1] if days else None,
        total=trend.total,
        opinions=trend.total.up + trend.total.down + trend.total.neutral,
        trend=_trend_figure(trend),
        compared=[(_comparison_figure(report), report) for report in _compared(insight, by, about)],
        coverage=coverage,
        covered=_coverage_figure(coverage),
        useful=[(_usefulness_figure(report), report) for report in useful if report.facts_with_signals],
        themes=insight.themes(**about),
        notes=insight.notes(**about, by=None if by in FACETS else by),
        cache=cache,
        decided=_cache_figure(cache),
        items=store.review.list(dataset=dataset, limit=MAX_OPEN_ITEMS).items,
    )


def _compared(insight: Insight, by: str | None, about: Mapping[str, Any]) -> Iterator[Satisfaction]:
    if by is not None:
        yield insight.satisfaction(by, **about)
    for facet in ("dataset", "model"):
        if facet == by:
            continue
        try:
            satisfaction = insight.satisfaction(facet, **about)
        except Invalid:
            # More values than can be compared, which nobody asked for.
            continue
        if any(variant.value is not None for variant in satisfaction.variants):
            yield satisfaction


def _trend_figure(report: Trend) -> Figure:
    points = [point for line in report.lines for point in line.points]
    line = Series("satisfaction", [Point(p.start, p.satisfaction, p.low, p.high, p.up + p.down) for p in points])
    title = f"Satisfaction by {report.over}"
    draw = partial(line_chart, [line], title=title, desc=SHARE, least=0, most=1, percent=True)
    rows = [_counted(str(point.start), point) for point in points if point.up or point.down or point.neutral]
    return Figure("trend", title, draw, (report.over, *COUNTED), rows)


def _comparison_figure(report: Satisfaction) -> Figure:
    labels = ["(none)" if variant.value is None else str(variant.value) for variant in report.variants]
    rows = [
        Interval(label, variant.satisfaction, variant.low, variant.high, variant.up + variant.down)
        for label, variant in zip(labels[:MAX_ROWS], report.variants, strict=False)
    ]
    title = f"Satisfaction by {report.by}"
    return Figure(
        f"by-{_file(report.by)}",
        title,
        partial(interval_chart, rows, title=title, desc=SHARE),
        (report.by, *COUNTED, "best with"),
        [
            (*_counted(label, variant), percent(variant.probability_best))
            for label, variant in zip(labels, report.variants, strict=True)
        ],
    )


def _counted(label: str, counted: TrendPoint | Variant) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (counted.up, counted.down, counted.neutral))
    return label, *counts, percent(counted.satisfaction), between(counted.low, counted.high)


def _coverage_figure(report: Coverage) -> Figure:
    kinds = (report.answers, report.executions, report.recalls)
    bars = [Bar(kind.kind, kind.share or 0.0, note=f"{kind.rated:,} of {kind.shown:,}") for kind in kinds]
    return Figure(
        "coverage",
        "How much of what was shown was rated",
        partial(bar_chart, bars, title="How much was rated", percent=True),
        ("what", "shown", "rated", "share", "95% interval"),
        [
            (kind.kind, f"{kind.shown:,}", f"{kind.rated:,}", percent(kind.share), between(kind.low, kind.high))
            for kind in kinds
        ],
    )


def _usefulness_figure(report: UsefulnessStats) -> Figure:
    return Figure(
        f"usefulness-{_file(report.dataset)}",
        f"Facts of {report.dataset} by usefulness",
        partial(histogram, report.distribution, title=f"Usefulness of the facts of {report.dataset}"),
        ("usefulness", "facts"),
        [(label, f"{count:,}") for label, count in report.distribution.items()],
    )


def _cache_figure(report: CacheReport) -> Figure:
    title = "What the cache decided"
    bars = [
        Bar(reason_labels.label(outcome.gate), outcome.count, quiet=outcome.decision in ("refuse", "nothing"))
        for outcome in report.counts[:MAX_BARS]
    ]
    rows = [
        (outcome.decision, reason_labels.label(outcome.gate), f"{outcome.count:,}", percent(outcome.share))
        for outcome in report.counts
    ]
    return Figure("cache", title, partial(bar_chart, bars, title=title), ("decision", "why", "times", "share"), rows)


def _file(name: str) -> str:
    """A name as part of a file's name.

    >>> _file("metadata.a/b ü")
    'metadata.a-b--'
    """
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:60]
