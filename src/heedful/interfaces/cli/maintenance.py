"""improve, policy, reembed, migrate, maintain, doctor."""

from __future__ import annotations

import os
from typing import cast

import click
from rich.markup import escape

import heedful
from heedful import settings
from heedful.bootstrap import maintain_store, migrate_store, store_jobs, store_security
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    dataset,
    echo,
    needs_project,
    needs_store,
    print_json,
    progress,
    shortened,
    waiting,
)
from heedful.interfaces.cli.jobs import show
from heedful.interfaces.client.hardening import check_server
from heedful.model import POLICY_NAMES, Check, FactReport, Improvement, PolicyName


@click.command()
@click.option("--background", is_flag=True, help="Let a worker do it: heedful worker, or heedful serve.")
@as_json
@needs_store
def reembed(options: Options, background: bool, as_json: bool) -> None:
    """Re-embed the whole store with the model of --embedding. It can be stopped and started again."""
    if background:
        with store_jobs(options.local("reembed")) as jobs:
            added = jobs.reembed(options.embedding or settings.load(store=options.store).embedding)
        if as_json:
            print_json(added)
        else:
            echo(f"job {added.job_id} is {added.status}; progress: heedful jobs show {added.job_id}")
        return
    with progress("embedding") as show:
        count = heedful.reembed(options.local("reembed"), embedding=options.embedding, progress=show)
    if as_json:
        print_json({"facts": count})
    else:
        echo(f"{count} facts embedded; the store now uses this model")


@click.command()
@as_json
@click.pass_obj
def migrate(options: Options, as_json: bool) -> None:
    """Create the tables of the store, or upgrade them. Every other command does so, too, when it opens the store."""
    with waiting("migrating"):
        result = migrate_store(options.local("migrate"))
    if as_json:
        print_json(result)
    else:
        echo(f"{result.store} is at revision {result.revision}")


@click.command()
@as_json
@needs_store
def maintain(options: Options, as_json: bool) -> None:
    """Delete data past its retention, and run other maintenance.

    Workers do this every hour.
    """
    with waiting("maintaining"):
        actions = maintain_store(options.local("maintain"))
    if as_json:
        print_json(actions)
        return
    for line in actions or ["nothing to do"]:
        echo(line)


@click.command()
@click.argument("name", type=click.Choice([*POLICY_NAMES, "none"]))
@click.option("--dataset", metavar="NAME", help="For this dataset alone; else for the whole project.")
@as_json
@needs_project
def policy(options: Options, name: str, dataset: str | None, as_json: bool) -> None:
    """Set the ranking policy of recalls; none resets it."""
    with options.open() as opened:
        change = opened.set_policy(None if name == "none" else cast(PolicyName, name), dataset=dataset)
    if as_json:
        print_json(change)
        return
    echo(f"{f'dataset {dataset}' if dataset else 'the project'} recalls by: {name}")
    if change.event_id is not None:
        echo(f"To undo it: heedful retract {change.event_id}")


@click.command()
@click.option("--repair/--no-repair", default=True, show_default=True, help="Rebuild derived data that is wrong.")
@click.option(
    "--security", is_flag=True, help="Check what production needs instead: files, keys, connectors, a server."
)
@click.option("--facts", is_flag=True, help="Look for duplicates and facts that nobody needs instead.")
@dataset
@click.option("-n", "--limit", default=20, show_default=True, help="With --facts: how many of each kind are listed.")
@as_json
@needs_store
def doctor(
    options: Options, repair: bool, security: bool, facts: bool, dataset: str, limit: int, as_json: bool
) -> None:
    """Check the store, and repair derived data.

    The model, the scores and the indexes are checked, too.
    """
    if facts:
        with waiting("checking"), options.open() as opened:
            _show_report(opened.check_facts(dataset=dataset, limit=limit), as_json)
        return
    if security:
        checks = _security(options)
    else:
        with waiting("checking"), options.open() as opened:
            checks = opened.doctor(repair=repair)
    if as_json:
        print_json(checks)
    else:
        screen = console()
        for check in checks:
            word = "repaired" if check.repaired else "ok" if check.ok else "BAD"
            screen.print(f"{word:9} {escape(check.name)}: {escape(check.detail)}")
    if not all(check.ok for check in checks):
        raise SystemExit(1)


def _show_report(report: FactReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    screen = console()
    screen.print(f"{report.facts} facts in {escape(report.dataset)}")
    for finding in report.findings:
        screen.print(f"{finding.count} {finding.kind.replace('_', ' ')}: {escape(finding.remedy)}")
        for fact in finding.facts:
            other = "" if fact.other is None else f"  as {fact.other}"
            screen.print(f"  {fact.fact_id}  {escape(shortened(fact.text))}{other}  ({escape(fact.detail)})")
    if not report.findings:
        screen.print("nothing found")


def _security(options: Options) -> list[Check]:
    if options.server is not None:
        return check_server(options.server, os.environ.get(settings.API_KEY))
    return store_security(options.store)


@click.command()
@click.option("-d", "--dataset", metavar="NAME", help="Only this set of facts; all if left out.")
@click.option("--session-id", "session_ids", multiple=True, metavar="ID", help="Only this session; may be repeated.")
@click.option("--background", is_flag=True, help="Let a worker do it: heedful worker, or heedful serve.")
@as_json
@needs_project
def improve(
    options: Options, dataset: str | None, session_ids: tuple[str, ...], background: bool, as_json: bool
) -> None:
    """Turn the feedback of sessions into better recall."""
    if background:
        with options.open(worker=False) as heedful:
            show(heedful.jobs.improve(dataset, session_ids or None), as_json)
        return
    with waiting("improving"), options.open() as heedful:
        result = heedful.improve(dataset, session_ids or None)
    if as_json:
        print_json(result)
        return
    if not result.changed:
        echo(f"{result.entries} rated answers; nothing new")
        _show_not_learnt(result)
        return
    echo(
        f"{result.entries} rated answers: {result.signals_added} signals added, {result.signals_retracted} retracted; "
        f"{len(result.updated_facts)} facts changed"
    )
    if result.link_signals_added or result.link_signals_retracted or result.entities_added:
        echo(
            f"graph: {result.link_signals_added} link signals added, {result.link_signals_retracted} retracted, "
            f"{result.entities_added} entities linked"
        )
    for fact in result.learnt:
        echo(f"  learnt from {fact.learnt_from}: {shortened(fact.text)}  {fact.fact_id}")
    for fact_id in result.forgotten:
        echo(f"  forgotten because its source was deleted: {fact_id}")
    _show_not_learnt(result)


def _show_not_learnt(result: Improvement) -> None:
    if result.visitor_ratings:
        echo(f"  {result.visitor_ratings} ratings by visitors make no signals")
    for skipped in result.not_learnt:
        echo(f"  not learnt from {skipped.learnt_from} {skipped.feedback_id}: {skipped.detail}")
