"""report."""

from __future__ import annotations

from datetime import datetime

import click

from heedful.cli.common import Options
from heedful.cli.output import echo
from heedful.cli.there import needs_project
from heedful.reports import write_report


@click.command()
@click.option("-o", "--output", "path", default="report.html", show_default=True, metavar="FILE", help="Where to.")
@click.option("--since", type=click.DateTime(), help="Only what was said from then on (UTC).")
@click.option("--until", type=click.DateTime(), help="Only what was said before then (UTC).")
@click.option("--dataset", metavar="NAME", help="Only answers from this dataset.")
@click.option("--by", metavar="KEY", help="Compare by this, too: metadata.variant, source, author_kind, …")
@click.option("--charts", metavar="FOLDER", help="Write each chart there as well, as SVG.")
@click.option("--force", "overwrite", is_flag=True, help="Replace files that are there.")
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
) -> None:
    """Write what people said as one HTML file."""
    with options.open(worker=False) as heedful:
        made = write_report(
            heedful, path, since=since, until=until, dataset=dataset, by=by, charts=charts, overwrite=overwrite
        )
    drawn = f", and {len(made.charts)} charts in {charts}" if charts is not None else ""
    echo(f"{made.opinions} opinions in {made.path}{drawn}")
