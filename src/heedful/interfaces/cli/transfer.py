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
        made = transfer.copy(source, target, progress=show)
    if as_json:
        print_json(made)
        return
    rows = table("table", "rows", numbers=("rows",))
    for name, count in made.tables.items():
        if count:
            rows.add_row(name, str(count))
    console().print(rows)
    _print_checksums(made.projects)
    echo(f"{made.target} is a copy of {made.source}; {made.written} rows were written")


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
        made = transfer.export_file(store, file, project=name, vectors=vectors, force=force, progress=show)
    if as_json:
        print_json(made)
        return
    lines = sum(made.counts.values())
    echo(f"{lines} lines of project {made.project} in {file}; ledger {made.ledger_checksum}")


@click.command(name="import")
@click.argument("file")
@as_json
@click.pass_obj
def import_(options: Options, file: str, as_json: bool) -> None:
    """Read a project from FILE, or from standard input (-), under its own name or that of --project."""
    store = options.local("import")
    source = sys.stdin.buffer if file == "-" else Path(file)
    with progress("importing") as show:
        made = transfer.import_file(
            store, source, project=options.named_project, embedding=options.embedding, progress=show
        )
    if as_json:
        print_json(made)
        return
    embedded = f", {made.embedded} of them embedded" if made.embedded else ""
    echo(
        f"project {made.project}: {made.counts['fact']} facts{embedded}, {made.counts['event']} events; "
        f"ledger {made.ledger_checksum}"
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
        made = transfer.backup(options.local("backup"), file, force=force, with_signing=with_signing, progress=show)
    if as_json:
        print_json(made)
        return
    echo(f"{made.file}: {made.bytes} bytes, {made.tables['facts']} facts, {made.tables['events']} events")


@click.command()
@as_json
@needs_store
def verify(options: Options, as_json: bool) -> None:
    """Replay the ledger and compare every score with it, in all projects or in that of --project."""
    with progress("verifying") as show:
        found = transfer.verify(options.local("verify"), project=options.named_project, progress=show)
    if as_json:
        print_json(found)
    else:
        _print_checksums(found.projects)
        screen = console()
        for each in found.differences:
            where = "/".join(name for name in (each.project, each.dataset) if name is not None) or "the store"
            screen.print(f"BAD {escape(where)}: {each.count} {escape(each.what)}: {escape(', '.join(each.examples))}")
        echo(f"{found.compared} scores compared, {len(found.differences)} differences")
    if not found.ok:
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
    for each in projects:
        rows.add_row(escape(each.project), str(each.facts), str(each.events), each.facts_checksum, each.ledger_checksum)
    console().print(rows)
