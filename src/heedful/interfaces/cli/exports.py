"""insight export, insight dictionary."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import IO

import click

from heedful.interfaces.cli.common import Options, as_json, console, echo, needs_project, needs_store, print_json, table
from heedful.model import EXPORT_FORMATS, TABLE_NAMES, ExportFormat, TableName


@click.command()
@click.argument("table", type=click.Choice(TABLE_NAMES))
@click.option("-o", "--output", "path", required=True, metavar="FILE", help="The file to write; - for standard output.")
@click.option("--format", type=click.Choice(EXPORT_FORMATS), help="By default, inferred from the file name.")
@click.option("--since", type=click.DateTime(), help="Only rows from this time on (UTC).")
@click.option("--until", type=click.DateTime(), help="Only rows before this time (UTC).")
@click.option("--dataset", metavar="NAME", help="Only rows of this dataset.")
@click.option("--force", "overwrite", is_flag=True, help="Replace an existing file.")
@as_json
@needs_project
def export(
    options: Options,
    table: TableName,
    path: str,
    format: ExportFormat | None,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write the rows of TABLE as CSV, JSON lines or Parquet."""
    to: str | IO[bytes] = sys.stdout.buffer if path == "-" else path
    with options.open(worker=False) as heedful:
        result = heedful.insight.export(
            table, to, format=format, since=since, until=until, dataset=dataset, overwrite=overwrite
        )
    if path != "-" and as_json:
        print_json(result)
    elif path != "-":
        echo(f"{result.rows} rows of {table} in {path}")


@click.command()
@as_json
@needs_store
def dictionary(options: Options, as_json: bool) -> None:
    """Show what can be exported: tables and their columns."""
    with options.open(worker=False) as heedful:
        tables = heedful.insight.dictionary()
    if as_json:
        print_json(tables)
        return
    rows = table("table", "column", "type", "meaning")
    for described in tables:
        rows.add_row(described.name, "", "", described.meaning)
        for column in described.columns:
            rows.add_row("", column.name, column.type, column.meaning)
    console().print(rows)
