"""copy, export, import, backup, verify."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.markup import escape

from heedful import settings, transfer
from heedful.interfaces.cli.common import (
    Decorator,
    Options,
    as_json,
    console,
    echo,
    needs_project,
    needs_store,
    print_json,
    progress,
    table,
)
from heedful.model import DEFAULT_DATASET
from heedful.transfer import Imported, ProjectChecksum
from heedful.transfer.foreign import SYSTEMS, System

force: Decorator = click.option("--force", is_flag=True, help="Replace an existing file.")


@click.command()
@click.argument("source")
@click.argument("target")
@as_json
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy the store SOURCE into the empty store TARGET.

    All projects are copied, and the two are compared. Each is a file or a URL (sqlite:///…, postgresql://…). It can
    be stopped and started again.
    """
    with progress("copying") as show:
        result = transfer.copy(source, target, progress=show)
    if as_json:
        print_json(result)
        return
    rows = table("table", "rows", numbers=("rows",))
    for name, count in result.tables.items():
        if count:
            rows.add_row(name, str(count))
    console().print(rows)
    _print_checksums(result.projects)
    echo(f"{result.target} is a copy of {result.source}; {result.written} rows were written")


@click.command()
@click.argument("file", required=False)
@click.option(
    "--vectors/--no-vectors", default=True, show_default=True, help="Without vectors, the import re-embeds the facts."
)
@force
@as_json
@needs_project
def export(options: Options, file: str | None, vectors: bool, force: bool, as_json: bool) -> None:
    """Write the project to FILE, as lines of JSON.

    Without FILE, it goes to standard output.
    """
    store = options.local("export")
    name = options.project or settings.load().project
    if file is None or file == "-":
        transfer.export(store, sys.stdout.buffer.write, project=name, vectors=vectors)
        return
    with progress("exporting") as show:
        result = transfer.export_file(store, file, project=name, vectors=vectors, force=force, progress=show)
    if as_json:
        print_json(result)
        return
    lines = sum(result.counts.values())
    echo(f"{lines} lines of project {result.project} in {file}; ledger {result.ledger_checksum}")


@click.command(name="import")
@click.argument("file")
@click.option("--from", "system", type=click.Choice(SYSTEMS), help="The system that wrote FILE, if it was not Heedful.")
@click.option("--dataset", default=DEFAULT_DATASET, show_default=True, help="With --from: where the facts go.")
@click.option(
    "--scale", nargs=2, type=float, default=(0, 1), show_default=True, help="With --from: the worst and best score."
)
@click.option("--dry-run", is_flag=True, help="With --from: read the file, and write nothing.")
@as_json
@click.pass_obj
def import_(
    options: Options,
    file: str,
    system: System | None,
    dataset: str,
    scale: tuple[float, float],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Read a project, or what another system exported, from FILE.

    The project gets its own name or that of --project; - reads it from standard input. With --from, FILE is one that
    mem0, cognee, Hindsight or Langfuse exported, and what it has is added to the project.
    """
    if system is not None:
        with options.open(worker=False) as memory, progress("importing") as show:
            imported = transfer.import_from(
                memory, system, file, dataset=dataset, scale=scale, dry_run=dry_run, progress=show
            )
        _print_imported(imported, as_json)
        return
    store = options.local("import")
    source = sys.stdin.buffer if file == "-" else Path(file)
    with progress("importing") as show:
        result = transfer.import_file(
            store, source, project=options.named_project, embedding=options.embedding, progress=show
        )
    if as_json:
        print_json(result)
        return
    embedded = f", {result.embedded} of them embedded" if result.embedded else ""
    echo(
        f"project {result.project}: {result.counts['fact']} facts{embedded}, {result.counts['event']} events; "
        f"ledger {result.ledger_checksum}"
    )


def _print_imported(result: Imported, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        facts = f"{result.sources} to read" if result.dry_run else f"{result.added} new, {result.known} known"
        waiting = f" ({result.waiting} wait for their answer)" if result.waiting else ""
        echo(
            f"facts: {facts}; opinions about facts: {result.signals}; answers: {result.answers}; "
            f"ratings: {result.ratings}{waiting}"
        )
        for what, count in result.skipped.items():
            echo(f"left out: {count} {what}")
        for error in result.errors:
            place = f"{error.file}, line {error.line}" if error.file else f"line {error.line}"
            echo(f"not imported: {place}: {error.message}", err=True)
        if result.dry_run:
            echo("nothing was written")
    if result.errors:
        sys.exit(1)


@click.command()
@click.argument("file")
@force
@click.option("--with-signing", is_flag=True, help="Include the secret that signs tokens and logins.")
@as_json
@click.pass_obj
def backup(options: Options, file: str, force: bool, with_signing: bool, as_json: bool) -> None:
    """Copy the file of the store while others use it.

    The copy is checked.
    """
    with progress("backing up") as show:
        result = transfer.backup(options.local("backup"), file, force=force, with_signing=with_signing, progress=show)
    if as_json:
        print_json(result)
        return
    echo(f"{result.file}: {result.bytes} bytes, {result.tables['facts']} facts, {result.tables['events']} events")


@click.command()
@as_json
@needs_store
def verify(options: Options, as_json: bool) -> None:
    """Replay the ledger, and compare every score with it.

    It looks at all projects, or at that of --project.
    """
    with progress("verifying") as show:
        result = transfer.verify(options.local("verify"), project=options.named_project, progress=show)
    if as_json:
        print_json(result)
    else:
        _print_checksums(result.projects)
        screen = console()
        for difference in result.differences:
            where = (
                "/".join(name for name in (difference.project, difference.dataset) if name is not None) or "the store"
            )
            screen.print(
                f"BAD {escape(where)}: {difference.count} {escape(difference.what)}: "
                f"{escape(', '.join(difference.examples))}"
            )
        echo(f"{result.compared} scores compared, {len(result.differences)} differences")
    if not result.ok:
        raise SystemExit(1)


def _print_checksums(projects: list[ProjectChecksum]) -> None:
    rows = table(
        "project",
        "facts",
        "events",
        "checksum of facts",
        "checksum of ledger",
        numbers=("facts", "events"),
        less=("checksum of facts",),
    )
    for checksum in projects:
        rows.add_row(
            escape(checksum.project),
            str(checksum.facts),
            str(checksum.events),
            checksum.facts_checksum,
            checksum.ledger_checksum,
        )
    console().print(rows)
