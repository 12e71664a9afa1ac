"""A report in one file, and its charts in others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful.engine import Heedful
from heedful.files import FOLDER_MODE, write_atomically, write_error
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.reports.figures import Figure, between, percent
from heedful.interfaces.reports.gathering import Report, gather
from heedful.memory import checks
from heedful.version import __version__


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What was written."""

    path: Path
    charts: list[Path]
    opinions: int
    """How many the report is about."""


def write_report(
    store: Heedful | RemoteHeedful,
    path: str | Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    dataset: str | None = None,
    by: str | None = None,
    charts: str | Path | None = None,
    overwrite: bool = False,
) -> ReportFiles:
    """Writes a report on what people said as one HTML file, which needs nothing else to be read.

    `by` compares satisfaction by one thing more: `metadata.variant`, say, or `source`. With a folder for `charts`, each
    of them is written there too, as an SVG file.
    """
    checks.flag("overwrite", overwrite)
    report = gather(store, since, until, dataset, by)
    target = Path(path)
    with write_atomically(target, overwrite=overwrite) as output:
        output.write(page(report).encode())
    drawn = [] if charts is None else _draw(report, Path(charts), overwrite)
    return ReportFiles(target, drawn, report.opinions)


def page(report: Report) -> str:
    """The report as HTML. Every text is escaped; nothing is loaded from elsewhere."""
    return _environment().get_template("report.html").render(report=report)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("heedful.interfaces.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, drawn=_inline, number=_number, moment=_moment)
    environment.globals.update(between=between, version=__version__)
    return environment


def _draw(report: Report, folder: Path, overwrite: bool) -> list[Path]:
    try:
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(folder, error) from error
    written = []
    for figure in report.charts:
        file = folder / f"{figure.name}.svg"
        with write_atomically(file, overwrite=overwrite) as output:
            output.write(figure.draw(True).encode())
        written.append(file)
    return written


def _inline(figure: Figure) -> Markup:
    # Its texts are escaped where it is drawn.
    return Markup(figure.draw(False))


def _number(value: float) -> str:
    return f"{value:,}"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
