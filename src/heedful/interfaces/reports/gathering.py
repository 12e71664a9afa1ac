"""What a report says, asked of an engine that is here or on a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import cast

from heedful.engine import Heedful, project_of
from heedful.errors import Invalid
from heedful.insight.service import Insight
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.reports import figures
from heedful.interfaces.reports.figures import Figure
from heedful.model import (
    FACETS,
    CacheReport,
    Coverage,
    Note,
    ReviewItem,
    Satisfaction,
    Themes,
    Trend,
    UsefulnessReport,
    Variant,
)

WEEKLY = 92
"""Days beyond which the trend is by week."""

MAX_DATASETS = 10
MAX_OPEN_ITEMS = 20


@dataclass(frozen=True, slots=True)
class Compared:
    """Satisfaction by something."""

    report: Satisfaction
    figure: Figure


@dataclass(frozen=True, slots=True)
class Useful:
    """The facts of one dataset."""

    report: UsefulnessReport
    figure: Figure


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says."""

    made_at: datetime
    project: str
    since: datetime | None
    until: datetime | None
    first: date | None
    """The first day that has opinions, in UTC; None if there are none."""
    last: date | None
    dataset: str | None
    total: Variant
    trend: Figure
    compared: Sequence[Compared]
    coverage: Coverage
    covered: Figure
    useful: Sequence[Useful]
    themes: Themes
    notes: Sequence[Note]
    cache: CacheReport
    decided: Figure
    items: Sequence[ReviewItem]
    """Open ones of the review queue."""

    @property
    def opinions(self) -> int:
        return self.total.up + self.total.down + self.total.neutral

    @property
    def charts(self) -> list[Figure]:
        """Those that show something."""
        result = [self.trend] if self.opinions else []
        result += [each.figure for each in self.compared if each.report.variants]
        result += [self.covered, *(each.figure for each in self.useful)]
        return [*result, self.decided] if self.cache.total else result


def gather(
    store: Heedful | RemoteHeedful,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    by: str | None,
) -> Report:
    """A report on the opinions of a time, or of all time."""
    # The client has the same methods.
    insight = cast(Insight, store.insight)
    daily = insight.trend(over="day", since=since, until=until, dataset=dataset)
    days = sorted(
        point.start for line in daily.lines for point in line.points if point.up or point.down or point.neutral
    )
    trend = _trend(insight, daily, since, until, dataset)
    coverage = insight.coverage(since=since, until=until, dataset=dataset)
    cache = insight.cache(since=since, until=until)
    return Report(
        made_at=datetime.now(UTC),
        project=_project(store),
        since=since,
        until=until,
        first=days[0] if days else None,
        last=days[-1] if days else None,
        dataset=dataset,
        total=trend.total,
        trend=figures.trend(trend),
        compared=_compared(insight, since, until, dataset, by),
        coverage=coverage,
        covered=figures.coverage(coverage),
        useful=_useful(insight, [dataset] if dataset is not None else store.datasets()),
        themes=insight.themes(since=since, until=until, dataset=dataset),
        notes=insight.notes(since=since, until=until, dataset=dataset, by=None if by in FACETS else by),
        cache=cache,
        decided=figures.cache(cache),
        items=store.review.list(dataset=dataset, limit=MAX_OPEN_ITEMS).items,
    )


def _project(store: Heedful | RemoteHeedful) -> str:
    return project_of(store).name if isinstance(store, Heedful) else store._transport.project


def _trend(
    insight: Insight, daily: Trend, since: datetime | None, until: datetime | None, dataset: str | None
) -> Trend:
    if max((len(line.points) for line in daily.lines), default=0) > WEEKLY:
        return insight.trend(over="week", since=since, until=until, dataset=dataset)
    return daily


def _compared(
    insight: Insight, since: datetime | None, until: datetime | None, dataset: str | None, by: str | None
) -> list[Compared]:
    results = [] if by is None else [insight.satisfaction(by, since=since, until=until, dataset=dataset)]
    for facet in ("dataset", "model"):
        if facet == by:
            continue
        try:
            satisfaction = insight.satisfaction(facet, since=since, until=until, dataset=dataset)
        except Invalid:
            # More values than can be compared, which nobody asked for.
            continue
        results += [satisfaction] if any(variant.value is not None for variant in satisfaction.variants) else []
    return [Compared(result, figures.comparison(result)) for result in results]


def _useful(insight: Insight, datasets: Sequence[str]) -> list[Useful]:
    reports = [insight.usefulness(each) for each in datasets[:MAX_DATASETS]]
    return [Useful(each, figures.usefulness(each)) for each in reports if each.facts_with_signals]
