"""Overview: how satisfied people are, what changed, and how much of it is known."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from heedful.errors import Invalid
from heedful.insight.counting import PREFIX
from heedful.interfaces.dashboard import comparison, fragments, queue, rendering
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, Page
from heedful.model import DEFAULT_DATASET, Coverage, Covered, Note, Satisfaction, Trend


def page(here: PageContext) -> Response:
    """The page, from what the database has counted; what takes longer comes after it."""
    days, dataset = here.range(), _dataset(here)
    insight, now = here.heedful.insight, here.site.store.clock()
    target_type = comparison.target(here.heedful)
    over = comparison.bucket_size(days, now)
    trend = insight.trend(over=over, since=days.start, until=days.end, dataset=dataset, target_type=target_type)
    coverage = insight.coverage(since=days.start, until=days.end, dataset=dataset)
    choices = comparison.choices(comparison.keys(here.heedful))
    by = here.choice("by", choices) or "dataset"
    variants: Satisfaction | None = None
    problem: str | None = None
    try:
        variants = insight.satisfaction(by, since=days.start, until=days.end, dataset=dataset, target_type=target_type)
    except Invalid as error:
        problem = rendering.full_text(error)
    datasets = here.heedful.datasets()
    earlier = comparison.previous_period(here.heedful, days, now, dataset, target_type)
    return here.html(
        "overview.html",
        status=422 if problem else days.status,
        range=days,
        datasets=datasets,
        dataset=dataset,
        about="facts" if target_type == "fact" else "answers",
        trend=trend,
        drawn=comparison.trend_chart(trend, days.words),
        numbers=_numbers(trend),
        change=comparison.points(trend.total, earlier),
        luck=comparison.intervals_overlap(trend.total, earlier),
        coverage=coverage,
        covered=_coverage_rows(coverage),
        by=by,
        choices=choices,
        variants=variants,
        compared=None if variants is None else comparison.variants_chart(variants),
        named=partial(comparison.value_label, by=by),
        problem=problem,
        useful_in=dataset or (datasets[0] if datasets else DEFAULT_DATASET),
        nothing=not _has_data(trend, coverage) and not _has_data(insight.trend(over="week"), insight.coverage()),
        later=_deferred_parts(here),
    )


def waiting(here: PageContext) -> Response:
    """How many items wait for review."""
    counts = queue.count_by_status(here.heedful, dataset=_dataset(here))
    return fragments.respond(here, "overview_waiting.html", "Open review items", here.at("overview"), counts=counts)


def changes(here: PageContext) -> Response:
    """What changed and is not luck."""
    days = here.range()
    notes = here.heedful.insight.notes(since=days.start, until=days.end, dataset=_dataset(here))
    return fragments.respond(
        here,
        "overview_changes.html",
        "What changed",
        here.at("overview"),
        notes=[(note, _note_link(here, note)) for note in notes],
        range=days,
    )


def themes(here: PageContext) -> Response:
    """What negative comments are about."""
    days = here.range()
    report = here.heedful.insight.themes(since=days.start, until=days.end, dataset=_dataset(here))
    return fragments.respond(
        here, "overview_themes.html", "Themes of negative comments", here.at("overview"), themes=report, range=days
    )


def _dataset(here: PageContext) -> str | None:
    return here.choice("dataset", here.heedful.datasets())


def _deferred_parts(here: PageContext) -> dict[str, str]:
    """Where the parts are that come after the page: about the same days and dataset."""
    filters: dict[str, Any] = {name: here.query.get(name) for name in ("since", "until", "dataset")}
    return {name: here.at("overview", name, **filters) for name in ("waiting", "changes", "themes")}


def _numbers(trend: Trend) -> list[tuple[str, int, int, int, str, str]]:
    """The days on which something was said, the newest first."""
    line = trend.lines[0].points if trend.lines else []
    return [
        (
            each.start.isoformat(),
            each.up,
            each.down,
            each.neutral,
            _percent(each.satisfaction),
            f"{_percent(each.low)} to {_percent(each.high)}" if each.low is not None else "–",
        )
        for each in reversed(line)
        if each.up or each.down or each.neutral
    ]


def _coverage_rows(coverage: Coverage) -> list[tuple[str, float | None, str]]:
    def row(each: Covered) -> tuple[str, float | None, str]:
        text = f"{each.rated:,} of {each.shown:,} ({_percent(each.share)})" if each.shown else "none shown"
        return each.kind.capitalize(), each.share, text

    return [row(coverage.answers), row(coverage.executions), row(coverage.recalls)]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.0f}%"


def _has_data(trend: Trend, coverage: Coverage) -> bool:
    """Whether there is anything to look at."""
    has_opinions = trend.total.up or trend.total.down or trend.total.neutral
    return bool(has_opinions or coverage.answers.shown or coverage.executions.shown or coverage.recalls.shown)


def _note_link(here: PageContext, note: Note) -> str:
    """Where it can be seen what is behind a change."""
    value = comparison.value_label(note.value, note.about)
    if note.about == "dataset":
        return here.at("review", dataset=value)
    if note.about == "target_type":
        return here.at("review", kind=value)
    if note.about.startswith(PREFIX):
        return here.at("experiments", by=note.about.removeprefix(PREFIX))
    if note.about == "policy":
        return here.at("experiments")
    if note.about == "model":
        return here.at("overview", by="model")
    return here.at("review")


PAGES = (
    Page("/overview", page),
    Page("/overview/waiting", waiting),
    Page("/overview/changes", changes),
    Page("/overview/themes", themes),
)
ACTIONS: tuple[Action, ...] = ()
