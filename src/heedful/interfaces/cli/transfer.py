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
from heedful.transfer import ProjectChecksum

force: Decorator = click.option("--force", is_flag=True, help="Replace an existing file.")


@click.command()
@click.argument("source")
@click.argument("target")
@as_json
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy all projects of the store SOURCE into the empty store TARGET, and compare the two.

    Each is a file or a URL (sqlite:///…, postgresql://…). It can be stopped and started again.
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
    """Write the project to FILE, or to standard output, as lines of JSON."""
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
@as_json
@click.pass_obj
def import_(options: Options, file: str, as_json: bool) -> None:
    """Read a project from FILE, or from standard input (-), under its own name or that of --project."""
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


@click.command()
@click.argument("file")
@force
@click.option("--with-signing", is_flag=True, help="Include the secret that signs tokens and logins.")
@as_json
@click.pass_obj
def backup(options: Options, file: str, force: bool, with_signing: bool, as_json: bool) -> None:
    """Copy the file of the store to FILE while others use it, and check the copy."""
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
    """Replay the ledger and compare every score with it, in all projects or in that of --project."""
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
