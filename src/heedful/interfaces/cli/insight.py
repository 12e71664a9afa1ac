"""insight, digest, report: what people said, added up."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import click
from pydantic import BaseModel

from heedful.clock import to_stored
from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.cli import exports, insight_output
from heedful.interfaces.cli.common import Decorator, Options, as_json, dataset, echo, needs_project, print_json, waiting
from heedful.interfaces.reports import write_report
from heedful.model import OPINION_TARGETS, OVERS, OpinionTarget, Over
from heedful.store import Store

since: Decorator = click.option("--since", type=click.DateTime(), help="From this time on (UTC).")
until: Decorator = click.option("--until", type=click.DateTime(), help="Before this time (UTC).")
of_dataset: Decorator = click.option("--dataset", metavar="NAME", help="Only answers from this set of facts.")
of_target: Decorator = click.option(
    "--target-type", type=click.Choice(OPINION_TARGETS), help="Only opinions about targets of this type."
)

BY = "A key of the sessions' metadata, such as variant; or dataset, model, source, author_kind or target_type."


@click.group()
def insight() -> None:
    """Reports on feedback."""


@insight.command()
@click.option("--by", required=True, metavar="KEY", help=BY)
@since
@until
@of_dataset
@of_target
@as_json
@needs_project
def satisfaction(
    options: Options,
    by: str,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    target_type: OpinionTarget | None,
    as_json: bool,
) -> None:
    """Compare satisfaction by metadata, dataset, model and others."""
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.satisfaction(by, since=since, until=until, dataset=dataset, target_type=target_type)
    if not _print(result, as_json):
        insight_output.show_satisfaction(result)


@insight.command()
@click.option("--over", type=click.Choice(OVERS), default="day", show_default=True, help="The length of a step.")
@click.option("--by", metavar="KEY", help=BY)
@since
@until
@of_dataset
@of_target
@as_json
@needs_project
def trend(
    options: Options,
    over: Over,
    by: str | None,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    target_type: OpinionTarget | None,
    as_json: bool,
) -> None:
    """Satisfaction over time."""
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.trend(
            over=over, by=by, since=since, until=until, dataset=dataset, target_type=target_type
        )
    if not _print(result, as_json):
        insight_output.show_trend(result)


@insight.command()
@since
@until
@of_dataset
@as_json
@needs_project
def coverage(
    options: Options, since: datetime | None, until: datetime | None, dataset: str | None, as_json: bool
) -> None:
    """How much of what was shown has been rated."""
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.coverage(since=since, until=until, dataset=dataset)
    if not _print(result, as_json):
        insight_output.show_coverage(result)


@insight.command()
@dataset
@as_json
@needs_project
def usefulness(options: Options, dataset: str, as_json: bool) -> None:
    """How useful facts are: the distribution, best and worst.

    It also names those with mixed feedback.
    """
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.usefulness(dataset)
    if not _print(result, as_json):
        insight_output.show_usefulness(result)


@insight.command()
@since
@until
@click.option("--limit", default=20, show_default=True, help="How many of the newest decisions.")
@as_json
@needs_project
def cache(options: Options, since: datetime | None, until: datetime | None, limit: int, as_json: bool) -> None:
    """What the cache of executions decided, and why."""
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.cache(since=since, until=until, limit=limit)
    if not _print(result, as_json):
        insight_output.show_cache(result)


@insight.command()
@since
@until
@of_dataset
@as_json
@needs_project
def themes(
    options: Options, since: datetime | None, until: datetime | None, dataset: str | None, as_json: bool
) -> None:
    """What negative comments are about."""
    with waiting("reading comments"), options.open(worker=False) as heedful:
        result = heedful.insight.themes(since=since, until=until, dataset=dataset)
    if not _print(result, as_json):
        insight_output.show_themes(result)


@insight.command()
@since
@until
@of_dataset
@click.option("--by", metavar="KEY", help="Also by this key of the sessions' metadata, which may have up to 50 values.")
@as_json
@needs_project
def notes(
    options: Options,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Significant changes."""
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.notes(since=since, until=until, dataset=dataset, by=by)
    if as_json:
        print_json(result)
    else:
        insight_output.show_notes(result)


def _print(result: BaseModel, as_json: bool) -> bool:
    if as_json:
        print_json(result)
    return as_json


@click.command()
@click.option("--since", type=click.DateTime(), help="The start (UTC); by default, seven days before the end.")
@click.option("--until", type=click.DateTime(), help="The end (UTC); by default, now.")
@click.option("--send", is_flag=True, help="Send it to digest_email and digest_webhook of the settings, now.")
@as_json
@needs_project
def digest(options: Options, since: datetime | None, until: datetime | None, send: bool, as_json: bool) -> None:
    """Summarise the feedback of a week, or of another period."""
    if send:
        _send(options, since, until)
        return
    with waiting("counting"), options.open(worker=False) as heedful:
        result = heedful.insight.digest(since=since, until=until)
    if as_json:
        print_json(result)
    else:
        echo(result.text, nl=False)


def _send(options: Options, since: datetime | None, until: datetime | None) -> None:
    store = Store(
        options.local("digest --send"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
    )
    try:
        if not store.digest_channels:
            raise Invalid(
                "no digest channel is configured",
                field="digest_email",
                remedy="Set digest_email or digest_webhook in heedful.toml, or HEEDFUL_DIGEST_EMAIL",
            )
        with store.using(options.project or store.default_project) as project:
            result = Heedful(project).insight.digest(since=since, until=until)
            start, stop = to_stored(result.since), to_stored(result.until)
            sent = project.send_digest(store.digest_channels, start, stop, again=True)
    finally:
        store.close()
    if not sent:
        echo("no feedback in this period; nothing was sent")
    for row in sent:
        echo(f"{row.channel}: " + ("delivered" if row.delivered_at else f"waits in the outbox ({row.error})"))


@click.command()
@click.option(
    "-o", "--output", "path", default="report.html", show_default=True, metavar="FILE", help="The file to write."
)
@click.option("--since", type=click.DateTime(), help="Only opinions from this time on (UTC).")
@click.option("--until", type=click.DateTime(), help="Only opinions before this time (UTC).")
@click.option("--dataset", metavar="NAME", help="Only answers from this dataset.")
@click.option("--by", metavar="KEY", help="Compare by this, too: metadata.variant, source, author_kind, …")
@click.option("--charts", metavar="FOLDER", help="Write each chart there as well, as SVG.")
@click.option("--force", "overwrite", is_flag=True, help="Replace existing files.")
@as_json
@needs_project
def report(
    options: Options,
    path: str,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    by: str | None,
    charts: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a feedback report as one HTML file."""
    with waiting("reporting"), options.open(worker=False) as heedful:
        result = write_report(
            heedful, path, since=since, until=until, dataset=dataset, by=by, charts=charts, overwrite=overwrite
        )
    if as_json:
        print_json(asdict(result))
        return
    drawn = f", and {len(result.charts)} charts in {charts}" if charts is not None else ""
    echo(f"{result.opinions} opinions in {result.path}{drawn}")


for command in (exports.export, exports.dictionary):
    insight.add_command(command)
