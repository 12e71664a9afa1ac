"""insight: what people said, added up."""

from __future__ import annotations

from datetime import datetime

import click
from pydantic import BaseModel

from heedful.cli import sums
from heedful.cli.common import Decorator, Options, as_json, dataset, print_json
from heedful.cli.there import needs_project
from heedful.model import OPINION_TARGETS, OVERS, OpinionTarget, Over

since: Decorator = click.option("--since", type=click.DateTime(), help="From then on (UTC).")
until: Decorator = click.option("--until", type=click.DateTime(), help="Up to, and without, then (UTC).")
of_dataset: Decorator = click.option("--dataset", metavar="NAME", help="Only answers from this set of facts.")
of_target: Decorator = click.option(
    "--target-type", type=click.Choice(OPINION_TARGETS), help="Only opinions about such things."
)

BY = "A key of the sessions' metadata, such as variant; or dataset, model, source, author_kind or target_type."


@click.group()
def insight() -> None:
    """What people said, added up."""


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
    """Compare satisfaction by a metadata key, or by dataset, model and others."""
    with options.open(worker=False) as heedful:
        found = heedful.insight.satisfaction(by, since=since, until=until, dataset=dataset, target_type=target_type)
    if not _printed(found, as_json):
        sums.show_satisfaction(found)


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
    with options.open(worker=False) as heedful:
        found = heedful.insight.trend(
            over=over, by=by, since=since, until=until, dataset=dataset, target_type=target_type
        )
    if not _printed(found, as_json):
        sums.show_trend(found)


@insight.command()
@since
@until
@of_dataset
@as_json
@needs_project
def coverage(
    options: Options, since: datetime | None, until: datetime | None, dataset: str | None, as_json: bool
) -> None:
    """How much of what was shown was rated."""
    with options.open(worker=False) as heedful:
        found = heedful.insight.coverage(since=since, until=until, dataset=dataset)
    if not _printed(found, as_json):
        sums.show_coverage(found)


@insight.command()
@dataset
@as_json
@needs_project
def usefulness(options: Options, dataset: str, as_json: bool) -> None:
    """How useful facts are: the distribution, both ends, and those that help here and hurt there."""
    with options.open(worker=False) as heedful:
        found = heedful.insight.usefulness(dataset)
    if not _printed(found, as_json):
        sums.show_usefulness(found)


@insight.command()
@since
@until
@click.option("--limit", default=20, show_default=True, help="How many of the newest decisions.")
@as_json
@needs_project
def cache(options: Options, since: datetime | None, until: datetime | None, limit: int, as_json: bool) -> None:
    """What the cache of executions decided, and why."""
    with options.open(worker=False) as heedful:
        found = heedful.insight.cache(since=since, until=until, limit=limit)
    if not _printed(found, as_json):
        sums.show_cache(found)


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
    with options.open(worker=False) as heedful:
        found = heedful.insight.themes(since=since, until=until, dataset=dataset)
    if not _printed(found, as_json):
        sums.show_themes(found)


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
    """What changed, and is not luck."""
    with options.open(worker=False) as heedful:
        found = heedful.insight.notes(since=since, until=until, dataset=dataset, by=by)
    if as_json:
        print_json(found)
    else:
        sums.show_notes(found)


def _printed(found: BaseModel, as_json: bool) -> bool:
    if as_json:
        print_json(found)
    return as_json
