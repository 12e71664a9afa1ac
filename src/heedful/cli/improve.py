"""improve."""

from __future__ import annotations

import click

from heedful.cli.common import Options, as_json, dataset, print_json, shortened
from heedful.cli.jobs import show
from heedful.cli.output import echo
from heedful.cli.there import needs_project
from heedful.model import Improvement


@click.command()
@dataset
@click.option("--session-id", "session_ids", multiple=True, metavar="ID", help="Only this session; may be repeated.")
@click.option("--background", is_flag=True, help="Leave it to a worker: heedful worker, or heedful serve.")
@as_json
@needs_project
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
        echo(f"{done.entries} rated answers; nothing new")
        _not_learnt(done)
        return
    echo(
        f"{done.entries} rated answers: {done.signals_added} signals added, {done.signals_retracted} retracted; "
        f"{len(done.updated_facts)} facts changed"
    )
    if done.link_signals_added or done.link_signals_retracted or done.entities_added:
        echo(
            f"graph: {done.link_signals_added} link signals added, {done.link_signals_retracted} retracted, "
            f"{done.entities_added} entities linked"
        )
    for fact in done.learnt:
        echo(f"  learnt from {fact.learnt_from}: {shortened(fact.text)}  {fact.fact_id}")
    for fact_id in done.forgotten:
        echo(f"  forgotten, as its source is gone: {fact_id}")
    _not_learnt(done)


def _not_learnt(done: Improvement) -> None:
    if done.anonymous_ratings:
        echo(f"  {done.anonymous_ratings} ratings by anonymous visitors make no signals")
    for each in done.not_learnt:
        echo(f"  not learnt from {each.learnt_from} {each.feedback_id}: {each.detail}")
