"""Experiments: which variant to take, and what another policy would have made of the same traffic."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from heedful.errors import Invalid
from heedful.interfaces.charts import Point, Series, line_chart
from heedful.interfaces.dashboard import comparison, fragments, rendering, views
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, Page
from heedful.model import DEFAULT_DATASET, POLICY_NAMES, ReplayArm, ReplayReport, Satisfaction

LIKELY_KEYS = ("variant", "experiment", "arm", "version")
"""Keys that are most likely meant, if somebody has them."""


def page(here: PageContext) -> Response:
    """Variants by a metadata key, and the policy."""
    days, keys = here.range(None), comparison.keys(here.heedful)
    by = here.choice("by", keys) or next((key for key in LIKELY_KEYS if key in keys), keys[0] if keys else None)
    satisfaction: Satisfaction | None = None
    problem: str | None = None
    if by is not None:
        try:
            satisfaction = here.heedful.insight.satisfaction(by, since=days.start, until=days.end)
        except Invalid as error:
            problem = rendering.full_text(error)
    datasets = here.heedful.datasets()
    dataset = here.choice("dataset", datasets) or (datasets[0] if datasets else DEFAULT_DATASET)
    return here.html(
        "experiments.html",
        status=422 if problem else days.status,
        range=days,
        keys=keys if by is None or by in keys else [*keys, by],
        by=by,
        satisfaction=satisfaction,
        drawn=None if satisfaction is None else comparison.variants_chart(satisfaction),
        rated=satisfaction is not None and any(variant.up or variant.down for variant in satisfaction.variants),
        problem=problem,
        named=partial(comparison.value_label, by=by or ""),
        datasets=datasets,
        dataset=dataset,
        replaying=here.query.get("replay") == "1",
        policies=views.policies(here.heedful),
        names=POLICY_NAMES,
        usual=views.DEFAULT_POLICY,
    )


def replay(here: PageContext) -> Response:
    """What other policies and weights would have made of the recalls that people rated."""
    dataset = here.choice("dataset", here.heedful.datasets()) or DEFAULT_DATASET
    report = here.heedful.replay(dataset=dataset)
    return fragments.respond(
        here,
        "replay.html",
        f"Replay of {dataset}",
        here.at("experiments", dataset=dataset),
        report=report,
        rows=_rows(report),
        drawn=_chart(report),
        worse=_worse_queries(report),
    )


def _rows(report: ReplayReport) -> list[dict[str, Any]]:
    """Each way to order, with what it is worth; what is advised is marked."""
    if report.logged is None or report.none is None:
        return []
    advised = {(each.policy, each.usefulness_weight) for each in report.advice}
    rows = [{"name": "As it was shown", "arm": report.logged, "advised": False}]
    rows.append({"name": "Relevance alone", "arm": report.none, "advised": False})
    for arm in report.arms:
        name = f"{arm.policy}, weight {arm.usefulness_weight:g}"
        rows.append({"name": name, "arm": arm, "advised": (arm.policy, arm.usefulness_weight) in advised})
    return rows


def _worse_queries(report: ReplayReport) -> list[tuple[str, ReplayArm]]:
    """The ways that are advised and would lose something."""
    return [(row["name"], row["arm"]) for row in _rows(report) if row["advised"] and row["arm"].worse]


def _chart(report: ReplayReport) -> str | None:
    """What each policy is worth by its weight, beside the order that was shown."""
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


PAGES = (Page("/experiments", page), Page("/experiments/replay", replay))
ACTIONS: tuple[Action, ...] = ()
