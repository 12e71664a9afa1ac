"""replay: what other policies and weights would have made of the recalls that people rated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path

import click
from rich.markup import escape

from heedful.errors import Invalid, Unavailable
from heedful.interfaces.cli.chart import chart
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    dataset,
    echo,
    needs_project,
    print_json,
    shortened,
    table,
    waiting,
)
from heedful.model import POLICY_NAMES, Estimate, PolicyName, ReplayAdvice, ReplayArm, ReplayReport


@click.command()
@dataset
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(POLICY_NAMES),
    help="A policy to try; may be repeated. By default, all.",
)
@click.option(
    "--weight", "weights", multiple=True, type=float, help="A weight to try; may be repeated. By default, 0.1 to 0.9."
)
@click.option(
    "--since",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="Only recalls from this time on (UTC).",
)
@click.option("--seed", default=0, show_default=True, help="The seed for the confidence intervals.")
@click.option(
    "--recommend", is_flag=True, help="Only say which policy would have ranked best, and how certain that is."
)
@click.option("--picture", metavar="FILE", type=click.Path(path_type=Path), help="Draw it in a .svg or .png file.")
@as_json
@needs_project
def replay(
    options: Options,
    dataset: str,
    policies: tuple[PolicyName, ...],
    weights: tuple[float, ...],
    since: datetime | None,
    seed: int,
    recommend: bool,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Try other policies and weights on recalls that were rated.

    A weight is recommended. Each recall is reordered by the feedback given before it, and judged by its own helpful
    and not_helpful ratings.
    Nothing is changed.
    """
    if picture is not None:
        _check(picture)
    with waiting("replaying"), options.open() as heedful:
        report = heedful.replay(
            dataset=dataset, policies=policies or None, weights=weights or None, since=since, seed=seed
        )
    if as_json:
        print_json({"recommendation": report.recommendation} if recommend else report)
    elif recommend:
        _show_recommendation(report)
    else:
        _show(report)
    if picture is not None and report.arms:
        _draw(report, picture)
        echo(f"picture in {picture}", err=True)


def _check(picture: Path) -> None:
    if picture.suffix not in (".svg", ".png"):
        raise Invalid(f"the picture {picture} is neither .svg nor .png", field="picture", value=str(picture))
    if not picture.absolute().parent.is_dir():
        raise Invalid(f"the folder of the picture {picture} does not exist", field="picture", value=str(picture))
    if picture.suffix == ".png":
        try:
            import_module("cairosvg")
        except (ImportError, OSError) as error:  # OSError: the package is there, and cairo is not.
            raise Unavailable(
                "a .png is drawn by cairosvg, which is not installed",
                code="extra_missing",
                remedy="Run: pip install cairosvg, or name a .svg file",
            ) from error


def _draw(report: ReplayReport, picture: Path) -> None:
    drawn = chart(report)
    if picture.suffix == ".png":
        import_module("cairosvg").svg2png(bytestring=drawn.encode(), write_to=str(picture), scale=2)
    else:
        picture.write_text(drawn, encoding="utf-8")


def _show(report: ReplayReport) -> None:
    screen = console()
    screen.print(
        f"{escape(report.dataset)}: {report.rated} recalls have ratings, {report.replayed} of them a helpful fact "
        f"({report.queries} queries, effective sample size {report.effective_sample_size:.1f})"
    )
    if report.logged is None or report.none is None:
        screen.print("Nothing can be replayed yet: heedful signal --recall RECALL_ID --helpful 1")
        return
    numbers = ("weight", "MRR", "change", "nDCG", "better", "worse")
    rows = table(
        "order", "weight", "MRR", "95%", "change", "95% ", "nDCG", "better", "worse", numbers=numbers, less=("nDCG",)
    )
    for name, arm in (("logged", report.logged), ("none", report.none), *((arm.policy, arm) for arm in report.arms)):
        rows.add_row(
            name or "",
            "" if arm.usefulness_weight is None else f"{arm.usefulness_weight:g}",
            f"{arm.mrr.value:.3f}",
            _interval_end(arm.mrr),
            *(
                ("", "")
                if arm is report.logged
                else (f"{arm.mrr_change.value:+.3f}", _interval_end(arm.mrr_change, "+"))
            ),
            f"{arm.ndcg.value:.3f}",
            *(("", "") if arm is report.logged else (str(arm.queries_better), str(arm.queries_worse))),
        )
    screen.print(rows)
    screen.print("change, better and worse are against the logged order; better and worse count queries\n")
    for advice in report.advice:
        weight = "nothing yet" if advice.usefulness_weight is None else f"{advice.usefulness_weight:g}"
        screen.print(f"[bold]{advice.policy}: usefulness_weight {weight}[/bold]; {escape(advice.reason)}")
        _show_worse(_reported_arm(report.arms, advice))


def _show_recommendation(report: ReplayReport) -> None:
    best = report.recommendation
    if best is None:
        reasons = [advice.reason for advice in report.advice[:1]]
        echo(f"Nothing can be recommended yet: {reasons[0] if reasons else 'there are no ratings'}")
        return
    echo(best.reason[0].upper() + best.reason[1:] + ".")
    if best.is_certain and best.policy is not None:
        echo(f"To use it: heedful policy {best.policy} --dataset {report.dataset}, and recall with the default weight.")
    elif best.is_certain:
        echo("To use it: recall with boost_by_usefulness=False.")


def _interval_end(estimate: Estimate, sign: str = "") -> str:
    return f"{estimate.low:{sign}.3f} to {estimate.high:{sign}.3f}"


def _reported_arm(arms: Sequence[ReplayArm], advice: ReplayAdvice) -> ReplayArm:
    """The arm that is recommended, else the policy's best."""
    policy_arms = [arm for arm in arms if arm.policy == advice.policy]
    recommended = [arm for arm in policy_arms if arm.usefulness_weight == advice.usefulness_weight]
    return recommended[0] if recommended else max(policy_arms, key=lambda arm: arm.mrr.value)


def _show_worse(arm: ReplayArm) -> None:
    screen = console()
    if not arm.worse:
        screen.print(f"   with {arm.usefulness_weight:g}, no query gets worse")
        return
    screen.print(f"   with {arm.usefulness_weight:g}, the helpful fact moves down in {arm.queries_worse} queries:")
    numbers = ("   change", "recalls", "was at", "would be at")
    rows = table(*numbers, "query", "recall_id", numbers=numbers)
    for each in arm.worse:
        ranks = (str(each.receipts), str(each.old_rank), str(each.new_rank))
        rows.add_row(f"{each.change:+.3f}", *ranks, escape(shortened(each.query)), each.recall_id)
    screen.print(rows)
