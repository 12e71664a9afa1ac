"""improve, insight."""

from __future__ import annotations

from datetime import datetime

import click
from rich.markup import escape

from heedful.cli.common import Options, as_json, console, dataset, print_json, shortened, table
from heedful.cli.jobs import show
from heedful.model import Satisfaction


@click.command()
@dataset
@click.option("--session-id", "session_ids", multiple=True, metavar="ID", help="Only this session; may be repeated.")
@click.option("--background", is_flag=True, help="Leave it to a worker: heedful worker, or heedful serve.")
@as_json
@click.pass_obj
def improve(options: Options, dataset: str, session_ids: tuple[str, ...], background: bool, as_json: bool) -> None:
    """Turn the feedback of sessions into better recall."""
    if background:
        with options.open(worker=False) as heedful:
            show(heedful.jobs.improve(dataset, session_ids or None), as_json)
        return
    with options.open() as heedful:
        done = heedful.improve(dataset, session_ids or None)
    if as_json:
        print_json(done)
        return
    if not done.changed:
        click.echo(f"{done.entries} rated answers; nothing new")
        return
    click.echo(
        f"{done.entries} rated answers: {done.signals_added} signals added, {done.signals_retracted} retracted; "
        f"{len(done.updated_facts)} facts changed"
    )
    if done.link_signals_added or done.link_signals_retracted or done.entities_added:
        click.echo(
            f"graph: {done.link_signals_added} link signals added, {done.link_signals_retracted} retracted, "
            f"{done.entities_added} entities linked"
        )
    for fact in done.learnt:
        click.echo(f"  learnt from {fact.learnt_from}: {shortened(fact.text)}  {fact.fact_id}")
    for fact_id in done.forgotten:
        click.echo(f"  forgotten, as its source is gone: {fact_id}")


@click.group()
def insight() -> None:
    """What people said, added up."""


@insight.command()
@click.option("--by", required=True, metavar="KEY", help="A key of the sessions' metadata, such as variant.")
@click.option("--since", type=click.DateTime(), help="Only feedback from then on (UTC).")
@as_json
@click.pass_obj
def satisfaction(options: Options, by: str, since: datetime | None, as_json: bool) -> None:
    """Compare satisfaction by a metadata key."""
    with options.open() as heedful:
        found = heedful.insight.satisfaction(by, since=since)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: Satisfaction) -> None:
    if not found.variants:
        click.echo(f"No session has {found.by!r} in its metadata: heedful sessions update-metadata ID {found.by}=…")
        return
    numbers = ("sessions", "up", "down", "neutral", "satisfaction", "95% interval", "mean score", "best with")
    rows = table(found.by, *numbers, numbers=numbers)
    for each in found.variants:
        rows.add_row(
            escape(str(each.value)),
            str(each.sessions),
            str(each.up),
            str(each.down),
            str(each.neutral),
            "" if each.satisfaction is None else f"{each.satisfaction:.1%}",
            "" if each.low is None or each.high is None else f"{each.low:.1%} to {each.high:.1%}",
            "" if each.mean_score is None else f"{each.mean_score:.2f}",
            "" if each.probability_best is None else f"{each.probability_best:.1%}",
        )
    screen = console()
    screen.print(rows)
    for pair in found.comparisons:
        better, than = escape(str(pair.better)), escape(str(pair.than))
        screen.print(f"{better} is better than {than} with a probability of {pair.probability:.1%}")
