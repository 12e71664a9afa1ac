"""insight, digest, report, replay: what people said, added up or replayed, and its rows for other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from rich.markup import escape

from heedful import model
from heedful.clock import to_stored
from heedful.engine import Heedful
from heedful.errors import Invalid, NotFound, Unavailable
from heedful.interfaces import reason_labels
from heedful.interfaces.charts import Marker, Point, Series, line_chart
from heedful.interfaces.cli.runner import Group, Options, command, parameters
from heedful.interfaces.cli.screen import (
    FittingTable,
    console,
    echo,
    percent,
    show_result,
    show_table,
    waiting,
)
from heedful.interfaces.reports import write_report
from heedful.text import counted, shortened

insight = Group("insight", worker=False, waits="counting")


def _interval(share: model.Variant | model.TrendPoint | model.Covered) -> str:
    return "" if share.low is None or share.high is None else f"{share.low:.1%} to {share.high:.1%}"


def _label(value: object) -> str:
    return "none" if value is None else str(value)


_SATISFACTION = ("satisfaction", lambda share: percent(share.satisfaction))
_INTERVAL = ("95% interval", _interval)
_COUNTS = ("up | down | neutral", _SATISFACTION, _INTERVAL, "mean score=mean_score:.2f")
_SHARES = ("satisfaction", "share", "95% interval", "best with")
"""Columns of numbers that are shown as text."""


@insight.runs("satisfaction")
def satisfaction(report: model.Satisfaction) -> None:
    """Compare satisfaction by metadata, dataset, model and others."""
    if not report.variants:
        echo(f"No session has {report.by!r} in its metadata: heedful sessions update-metadata ID {report.by}=…")
        return
    value = (report.by, lambda variant: _label(variant.value))
    best = ("best with", lambda variant: percent(variant.probability_best))
    less = ("neutral", "mean score", "sessions")
    show_table(report.variants, value, "sessions", *_COUNTS, best, numbers=_SHARES, less=less)
    screen = console()
    for pair in report.comparisons:
        better, than = escape(_label(pair.better)), escape(_label(pair.than))
        screen.print(f"{better} is better than {than} with a probability of {pair.probability:.1%}")
    if report.stopping is not None:
        screen.print(f"{'Enough' if report.stopping.decided else 'Not enough yet'}: {escape(report.stopping.reason)}")


@insight.runs("trend")
def trend(report: model.Trend) -> None:
    """Satisfaction over time."""
    if not any(line.points for line in report.lines):
        echo("No opinions in this period")
        return
    rows = [
        SimpleNamespace(**{**dict(point), "label": _label(line.value), "start": str(point.start)})
        for line in report.lines
        for point in line.points
    ]
    rows.append(SimpleNamespace(**dict(report.total), label="", start="all"))
    by = [(report.by, "label")] if report.by else []
    show_table(rows, *by, (report.over, "start"), *_COUNTS, numbers=_SHARES, less=("neutral", "mean score"))


@insight.runs("coverage")
def coverage(report: model.Coverage) -> None:
    """How much of what was shown has been rated."""
    share = ("share", lambda covered: percent(covered.share))
    kinds = (report.answers, report.executions, report.recalls)
    show_table(kinds, ("", "kind"), "shown | rated", share, _INTERVAL, numbers=_SHARES)


@insight.runs("cache")
def cache(report: model.CacheReport) -> None:
    """Show the decisions of the execution cache, and why."""
    if not report.total:
        echo("No cache lookups in this period")
        return
    echo(f"{counted(report.total, 'decision')}, {report.reused:,} of them to reuse")
    show_table(
        report.counts, "decision", ("why", lambda outcome: reason_labels.label(outcome.gate)), "count | share:.1%"
    )
    show_table(report.newest, "at | decision | question:50 | reason:80")


@insight.runs("themes", waits="reading comments")
def themes(report: model.Themes) -> None:
    """Show the themes of negative comments."""
    if not report.comments:
        echo("No negative comments in this period")
        return
    echo(f"{counted(report.comments, 'negative comment')}, {report.other:,} without a theme")
    screen = console()
    for theme in report.themes:
        screen.print(f"[bold]{escape(theme.name)}[/bold]: {theme.comments}, the last on {theme.last_at:%Y-%m-%d}")
        for example in theme.examples:
            screen.print(f"  {escape(shortened(example, 110))}")


@insight.runs("notes")
def notes(notes: list[model.Note]) -> None:
    """Significant changes."""
    if not notes:
        echo("No significant changes")
    for note in notes:
        echo("\n  ".join([note.text, *note.arithmetic]))
        if note.event_id is not None:
            echo(f"  To undo the change: heedful retract {note.event_id}")


@command(group=insight)
@parameters(
    "insight.export",
    "table",
    "path",
    path={"metavar": "FILE"},
    format="By default, inferred from the file name.",
    since="Only rows from this time on (UTC).",
    until="Only rows before this time (UTC).",
    dataset="Only rows of this dataset.",
    overwrite={"spelled": ("--force",), "help": "Replace an existing file."},
)
def export(options: Options, table: model.TableName, path: str, as_json: bool, **given: Any) -> None:
    """Write the rows of TABLE to FILE.

    It is CSV, JSON lines or Parquet; with -, it goes to standard output.
    """
    with options.open(worker=False) as heedful:
        result = heedful.insight.export(table, sys.stdout.buffer if path == "-" else path, **given)
    if path != "-":
        show_result(result, as_json, lambda _: f"{counted(result.rows, 'row')} of {table} in {path}")


@insight.runs("dictionary", needs="store", waits=None)
def dictionary(tables: list[model.ExportTable]) -> None:
    """Show what can be exported: tables and their columns."""
    rows = FittingTable(("table", "column", "type", "meaning"))
    for described in tables:
        rows.add_row(described.name, "", "", described.meaning)
        for column in described.columns:
            rows.add_row("", column.name, column.type, column.meaning)
    console().print(rows)


@command()
@parameters("insight.digest")
@click.option("--send", is_flag=True, help="Send it to digest_email and digest_webhook of the settings, now.")
def digest(options: Options, send: bool, as_json: bool, **period: Any) -> None:
    if send:
        _send(options, **period)
        return
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.digest(**period)
    show_result(result, as_json, lambda _: echo(result.text, nl=False))


def _send(options: Options, **period: Any) -> None:
    with options.whole("digest --send") as store:
        if not store.digest_channels:
            remedy = "Set digest_email or digest_webhook in heedful.toml, or HEEDFUL_DIGEST_EMAIL"
            raise Invalid("no digest channel is configured", field="digest_email", remedy=remedy)
        with store.using(options.project or store.default_project) as project:
            result = Heedful(project).insight.digest(**period)
            start, stop = to_stored(result.since), to_stored(result.until)
            sent = project.send_digest(store.digest_channels, start, stop, again=True)
    if not sent:
        echo("no feedback in this period; nothing was sent")
    for row in sent:
        echo(f"{row.channel}: " + ("delivered" if row.delivered_at else f"waits in the outbox ({row.error})"))


@command()
@click.argument("path", metavar="[FILE]", default="report.html")
@parameters(
    "insight.notes",
    since="Only opinions from this time on (UTC).",
    by="Compare by this, too: metadata.variant, source, author_kind, …",
)
@click.option("--charts", metavar="FOLDER", help="Write each chart there as well, as SVG.")
@click.option("--force", "overwrite", is_flag=True, help="Replace existing files.")
def report(options: Options, path: str, charts: str | None, as_json: bool, **given: Any) -> None:
    """FILE is report.html unless you name another."""
    with waiting("reporting"), options.open(worker=False) as heedful:
        result = write_report(heedful, path, charts=charts, **given)
    drawn = f", and {counted(len(result.charts), 'chart')} in {charts}" if charts is not None else ""
    show_result(asdict(result), as_json, lambda _: f"{counted(result.opinions, 'opinion')} in {result.path}{drawn}")


@command()
@parameters("replay", since={"type": click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), "metavar": "DATE"})
@click.option(
    "--recommend", is_flag=True, help="Only say which policy would have ranked best, and how certain that is."
)
@click.option("--picture", metavar="FILE", type=click.Path(path_type=Path), help="Draw it in a .svg or .png file.")
def replay(options: Options, recommend: bool, picture: Path | None, as_json: bool, **given: Any) -> None:
    """A weight is recommended. Each recall is reordered by the feedback given before it, and judged by its own helpful
    and not_helpful ratings.
    Nothing is changed.
    """
    if picture is not None:
        _check_picture(picture)
    with waiting("replaying"), options.open() as heedful:
        report = heedful.replay(**given)
    if recommend:
        show_result({"recommendation": report.recommendation}, as_json, lambda _: _show_recommendation(report))
    else:
        show_result(report, as_json, _show_replay)
    if picture is not None and report.arms:
        _draw(report, picture)
        echo(f"picture in {picture}", err=True)


def _check_picture(picture: Path) -> None:
    if picture.suffix not in (".svg", ".png"):
        raise Invalid(f"the picture {picture} is neither .svg nor .png", field="picture", value=str(picture))
    if not picture.absolute().parent.is_dir():
        raise NotFound(f"the folder of the picture {picture} does not exist", field="picture", value=str(picture))
    if picture.suffix == ".png":
        try:
            import_module("cairosvg")
        except (ImportError, OSError) as error:  # OSError: the package is there, and cairo is not.
            remedy = "Run: pip install cairosvg, or name a .svg file"
            problem = "a .png is drawn by cairosvg, which is not installed"
            raise Unavailable(problem, code="extra_missing", remedy=remedy) from error


def _draw(report: model.ReplayReport, picture: Path) -> None:
    drawn = chart(report)
    if picture.suffix == ".png":
        import_module("cairosvg").svg2png(bytestring=drawn.encode(), write_to=str(picture), scale=2)
    else:
        picture.write_text(drawn, encoding="utf-8")


def _show_replay(report: model.ReplayReport) -> None:
    screen = console()
    screen.print(
        f"{escape(report.dataset)}: {counted(report.rated, 'rated recall')}, {report.replayed} with a helpful fact "
        f"({report.queries} different, effective sample size {report.effective_sample_size:.1f})"
    )
    if report.logged is None or report.none is None:
        screen.print("Nothing can be replayed yet: heedful signal --recall RECALL_ID --helpful 1")
        return
    logged = report.logged
    show_table(
        (report.logged, report.none, *report.arms),
        ("order", lambda arm: "logged" if arm is logged else arm.policy or "none"),
        "weight=usefulness_weight:g | MRR=mrr.value:.3f",
        ("95%", lambda arm: _estimated(arm.mrr)),
        ("change", lambda arm: None if arm is logged else f"{arm.mrr_change.value:+.3f}"),
        ("95% ", lambda arm: None if arm is logged else _estimated(arm.mrr_change, "+")),
        "nDCG=ndcg.value:.3f",
        ("better", lambda arm: None if arm is logged else arm.queries_better),
        ("worse", lambda arm: None if arm is logged else arm.queries_worse),
        numbers=("change",),
        less=("nDCG",),
    )
    screen.print("change, better and worse are against the logged order; better and worse count queries\n")
    for advice in report.advice:
        weight = "nothing yet" if advice.usefulness_weight is None else f"{advice.usefulness_weight:g}"
        screen.print(f"[bold]{advice.policy}: usefulness_weight {weight}[/bold]; {escape(advice.reason)}")
        _show_worse(_reported_arm(report.arms, advice))


def _show_recommendation(report: model.ReplayReport) -> None:
    best = report.recommendation
    if best is None:
        reasons = [advice.reason for advice in report.advice[:1]]
        echo(f"Nothing can be recommended yet: {reasons[0] if reasons else 'there are no ratings'}")
        return
    echo(best.reason[0].upper() + best.reason[1:] + ".")
    if best.is_certain and best.policy is not None:
        echo(f"To use it: heedful policy {best.policy} --dataset {report.dataset}, and recall with the default weight.")
    elif best.is_certain:
        echo("To use it: recall with --no-boost-by-usefulness.")


def _estimated(estimate: model.Estimate, sign: str = "") -> str:
    return f"{estimate.low:{sign}.3f} to {estimate.high:{sign}.3f}"


def _reported_arm(arms: Sequence[model.ReplayArm], advice: model.ReplayAdvice) -> model.ReplayArm:
    """The arm that is recommended, else the policy's best."""
    policy_arms = [arm for arm in arms if arm.policy == advice.policy]
    return max(policy_arms, key=lambda arm: (arm.usefulness_weight == advice.usefulness_weight, arm.mrr.value))


def _show_worse(arm: model.ReplayArm) -> None:
    screen = console()
    if not arm.worse:
        screen.print(f"   with {arm.usefulness_weight:g}, no query gets worse")
        return
    screen.print(f"   with {arm.usefulness_weight:g}, the helpful fact moves down in {arm.queries_worse} queries:")
    show_table(
        arm.worse,
        ("   change", lambda query: f"{query.change:+.3f}"),
        "recalls=receipts | was at=old_rank | would be at=new_rank | query:70 | recall_id",
        numbers=("   change",),
    )


def chart(report: model.ReplayReport) -> str:
    """The picture of a report that has arms."""
    assert report.logged is not None
    assert report.none is not None
    none, heaviest = report.none, max(arm.usefulness_weight or 0.0 for arm in report.arms) or 1.0

    def point(arm: model.ReplayArm) -> Point:
        return Point(arm.usefulness_weight or 0.0, arm.mrr.value, arm.mrr.low, arm.mrr.high)

    series, markers = [], []
    for policy in dict.fromkeys(arm.policy for arm in report.arms if arm.policy is not None):
        series.append(Series(policy, [point(none), *(point(arm) for arm in report.arms if arm.policy == policy)]))
    for name, level in (("relevance alone", none), ("as logged", report.logged)):
        series.append(Series(name, [Point(weight, level.mrr.value) for weight in (0.0, heaviest)], dots=False))
    for advice in report.advice:
        for arm in (none, *report.arms):
            if arm.usefulness_weight == advice.usefulness_weight and arm.policy in (advice.policy, None):
                label = f"{advice.policy}: recommended weight {advice.usefulness_weight:g}"
                markers.append(Marker(arm.usefulness_weight or 0.0, label, arm.mrr.value, "up"))
    below = (
        "usefulness_weight",
        f"Mean reciprocal rank of the first helpful fact, in {report.replayed} rated recalls of {report.dataset}",
        "Bands are 95% intervals, a triangle marks the recommended weight",
    )
    title = "What other weights would have made of your recalls"
    return line_chart(series, title=title, desc=below[1], markers=markers, standalone=True, below=below, height=340)
