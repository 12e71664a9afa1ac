"""Overview and experiments: how satisfied people are, what changed, which variant to take, what another policy would
have made of the same traffic, and which rated questions a change would make worse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from starlette.responses import Response

from heedful.insight.counting import PREFIX
from heedful.insight.digest import MAX_LISTED
from heedful.insight.notes import SPAN
from heedful.interfaces.charts import Point, Series, line_chart
from heedful.interfaces.dashboard import comparison, rendering, views
from heedful.interfaces.dashboard.site import Action, PageContext, PageRoute
from heedful.ledger.ranking_policy import DEFAULT_POLICY
from heedful.model import (
    DEFAULT_DATASET,
    MODES,
    POLICY_NAMES,
    Coverage,
    Covered,
    Note,
    RegressReport,
    ReplayReport,
    Satisfaction,
    Trend,
)

MAX_WAITING = 3
"""Review items on the overview."""


def overview_page(here: PageContext) -> Response:
    """The page, from what the database has counted; what takes longer comes after it."""
    days, dataset = here.range(), _dataset(here)
    insight, now = here.heedful.insight, here.site.store.clock()
    target_type = comparison.target(here.heedful)
    over = comparison.bucket_size(days, now)
    filters: dict[str, Any] = {"since": days.start, "until": days.end, "dataset": dataset}
    trend = insight.trend(over=over, target_type=target_type, **filters)
    coverage = insight.coverage(**filters)
    choices = comparison.choices(comparison.keys(here.heedful))
    by = here.choice("by", choices) or "dataset"
    variants = here.attempt(lambda: insight.satisfaction(by, target_type=target_type, **filters), None)
    datasets = here.heedful.datasets()
    earlier = comparison.previous_period(here.heedful, days, now, dataset, target_type)
    before = None if earlier is None else earlier.total
    # The parts that come after the page are about the same days and dataset.
    linked: dict[str, Any] = {name: here.query.get(name) for name in ("since", "until", "dataset")}
    return here.html(
        "overview.html",
        range=days,
        datasets=datasets,
        dataset=dataset,
        about="facts" if target_type == "fact" else "answers and executions",
        trend=trend,
        drawn=comparison.trend_chart(trend, days.words, earlier),
        numbers=_numbers(trend),
        change=comparison.points(trend.total, before),
        luck=comparison.intervals_overlap(trend.total, before),
        before=before,
        coverage=coverage,
        covered=_coverage_rows(coverage),
        by=by,
        choices=choices,
        variants=variants,
        compared=None if variants is None else comparison.variants_chart(variants),
        named=partial(comparison.value_label, by=by),
        nothing=not _has_data(trend, coverage) and not _has_data(insight.trend(over="week"), insight.coverage()),
        later={name: here.at("overview", name, **linked) for name in ("waiting", "changes", "themes")},
    )


def waiting(here: PageContext) -> Response:
    dataset = _dataset(here)
    counts = views.count_by_status(here.heedful, dataset=dataset)
    items = here.heedful.review.list(dataset=dataset, limit=MAX_WAITING).items
    return here.part("overview_waiting.html", "To do now", here.at("overview"), counts=counts, items=items)


def changes(here: PageContext) -> Response:
    days = here.range()
    # A change shows only with the time before it, as in a digest.
    is_short = days.start is not None and (days.end or here.site.store.clock()) - days.start < timedelta(days=SPAN)
    since = None if is_short else days.start
    notes = here.heedful.insight.notes(since=since, until=days.end, dataset=_dataset(here))
    linked = [(note, _note_link(here, note)) for note in notes[:MAX_LISTED]]
    return here.part("overview_changes.html", "What changed", here.at("overview"), notes=linked, range=days)


def themes(here: PageContext) -> Response:
    days = here.range()
    report = here.heedful.insight.themes(since=days.start, until=days.end, dataset=_dataset(here))
    return here.part("overview_themes.html", "Complaints by theme", here.at("overview"), themes=report, range=days)


def _dataset(here: PageContext) -> str | None:
    return here.choice("dataset", here.heedful.datasets())


def _numbers(trend: Trend) -> list[tuple[str, int, int, int, str, str]]:
    """The days with feedback, the newest first."""
    percent, rows = rendering.percent, []
    for day in reversed(trend.lines[0].points if trend.lines else []):
        if day.up or day.down or day.neutral:
            interval = f"{percent(day.low)} to {percent(day.high)}" if day.low is not None else "–"
            counts = (day.start.isoformat(), day.up, day.down, day.neutral)
            rows.append((*counts, percent(day.satisfaction), interval))
    return rows


def _coverage_rows(coverage: Coverage) -> list[tuple[str, float | None, str]]:
    def row(covered: Covered) -> tuple[str, float | None, str]:
        percent = rendering.percent(covered.share)
        text = f"{covered.rated:,} of {covered.shown:,} ({percent})" if covered.shown else "none shown"
        return covered.kind.capitalize(), covered.share, text

    return [row(coverage.answers), row(coverage.executions), row(coverage.recalls)]


def _has_data(trend: Trend, coverage: Coverage) -> bool:
    """Whether there is anything to look at."""
    has_opinions = trend.total.up or trend.total.down or trend.total.neutral
    return bool(has_opinions or coverage.answers.shown or coverage.executions.shown or coverage.recalls.shown)


def _note_link(here: PageContext, note: Note) -> str:
    """The page that shows the cause of a change: what is better now was mostly resolved."""
    status = "open" if note.worse else "resolved"
    value = comparison.value_label(note.value, note.about)
    if note.about.startswith(PREFIX):
        return here.at("experiments", by=note.about.removeprefix(PREFIX))
    links = {
        "dataset": here.at("review", dataset=value, status=status),
        "target_type": here.at("review", kind=value, status=status),
        "policy": here.at("experiments"),
        "model": here.at("overview", by="model"),
    }
    return links.get(note.about) or here.at("review", status=status)


REGRESS_SECONDS = 20.0
"""How long rated questions are asked again for a page."""

LIKELY_KEYS = ("variant", "experiment", "arm", "version")
"""Keys that are most likely meant, if somebody has them."""


def experiments_page(here: PageContext) -> Response:
    days, keys = here.range(None), comparison.keys(here.heedful)
    by = here.choice("by", keys) or next((key for key in LIKELY_KEYS if key in keys), keys[0] if keys else None)
    satisfaction: Satisfaction | None = None
    if by is not None:
        compare = partial(here.heedful.insight.satisfaction, by, since=days.start, until=days.end)
        satisfaction = here.attempt(compare, None)
    datasets, dataset = here.dataset()
    return here.html(
        "experiments.html",
        range=days,
        keys=keys if by is None or by in keys else [*keys, by],
        by=by,
        satisfaction=satisfaction,
        drawn=None if satisfaction is None else comparison.variants_chart(satisfaction),
        rated=satisfaction is not None and any(variant.up or variant.down for variant in satisfaction.variants),
        named=partial(comparison.value_label, by=by or ""),
        datasets=datasets,
        dataset=dataset,
        replaying=here.query.get("replay") == "1",
        tried=_tried(here),
        modes=MODES,
        policies=views.policies(here.heedful),
        names=POLICY_NAMES,
        usual=DEFAULT_POLICY,
    )


def replay(here: PageContext) -> Response:
    """The rated recalls as other policies and weights would have ranked them."""
    dataset = here.choice("dataset", here.heedful.datasets()) or DEFAULT_DATASET
    report = here.heedful.replay(dataset=dataset)
    rows = _replay_rows(report)
    return here.part(
        "replay.html",
        f"Replay of {dataset}",
        here.at("experiments", dataset=dataset),
        report=report,
        rows=rows,
        drawn=_replay_chart(report),
        # The ways that are advised and would lose something.
        worse=[(row["name"], row["arm"]) for row in rows if row["advised"] and row["arm"].worse],
    )


def _tried(here: PageContext) -> dict[str, str]:
    """The change that the address asks to try on rated questions."""
    return {name: here.query[name] for name in ("policy", "mode") if here.query.get(name)}


def regress(here: PageContext) -> Response:
    """The rated questions that another policy or mode would make worse."""
    tried, dataset = _tried(here), here.choice("dataset", here.heedful.datasets())
    report: RegressReport | None = None
    if not here.may("regress"):
        here.problems.append("Asking rated questions again needs a key that may write.")
    elif not tried:
        here.problems.append("Choose a policy or a mode to try.")
    else:
        ask: Callable[..., RegressReport] = partial(here.heedful.regress, dataset=dataset, deadline=REGRESS_SECONDS)
        report = here.attempt(lambda: ask(executions=False, **tried), None)
    return here.part(
        "regress.html",
        "Rated questions",
        here.at("experiments", dataset=dataset),
        report=report,
        groups=[] if report is None else [("Dataset", report.datasets), ("Theme", report.themes)],
    )


def _replay_rows(report: ReplayReport) -> list[dict[str, Any]]:
    """Each way to order, with what it is worth; what is advised is marked."""
    if report.logged is None or report.none is None:
        return []
    advised = {(advice.policy, advice.usefulness_weight) for advice in report.advice}
    arms = [("As it was shown", report.logged, False), ("Relevance alone", report.none, False)]
    for arm in report.arms:
        is_advised = (arm.policy, arm.usefulness_weight) in advised
        arms.append((f"{arm.policy}, weight {arm.usefulness_weight:g}", arm, is_advised))
    return [{"name": name, "arm": arm, "advised": is_advised} for name, arm, is_advised in arms]


def _replay_chart(report: ReplayReport) -> str | None:
    """The value of each policy by its weight, compared with the order that was shown."""
    if report.logged is None:
        return None
    lines = []
    for policy in POLICY_NAMES:
        arms = [arm for arm in report.arms if arm.policy == policy and arm.usefulness_weight is not None]
        points = [Point(arm.usefulness_weight or 0.0, arm.mrr.value, arm.mrr.low, arm.mrr.high) for arm in arms]
        lines.append(Series(policy, points))
    ends = [point.x for line in lines for point in line.points] or [0.0]
    level = report.logged.mrr.value
    lines.append(Series("as it was shown", [Point(x, level) for x in (min(ends), max(ends))], dots=False))
    return line_chart(
        lines,
        title="Rank of the first helpful fact, by usefulness weight",
        desc="The mean reciprocal rank; bands are 95% intervals",
    )


PAGES = (
    PageRoute("/overview", overview_page),
    PageRoute("/overview/waiting", waiting),
    PageRoute("/overview/changes", changes),
    PageRoute("/overview/themes", themes),
    PageRoute("/experiments", experiments_page),
    PageRoute("/experiments/replay", replay),
    PageRoute("/experiments/regress", regress),
)
ACTIONS: tuple[Action, ...] = ()
