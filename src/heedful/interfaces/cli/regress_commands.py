"""regress, and the check that other commands offer before they change something."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.markup import escape

import heedful
from heedful import model, settings, transfer
from heedful.errors import Conflict
from heedful.evaluation.candidates import embedder_of
from heedful.interfaces.cli.runner import Engine, Options, command, force, parameters
from heedful.interfaces.cli.screen import console, echo, percent, progress, show_result, show_table
from heedful.storage import open_store, scopes
from heedful.storage.vectors import active_model
from heedful.text import counted, shortened

DATE = {"type": click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), "metavar": "DATE"}
SHOWN = 10
"""Questions that the screen shows; JSON and the report have more."""


@command()
@parameters(
    "regress", since=DATE, as_of=DATE, embedding={"spelled": ["--with-embedding"]}, against={"metavar": "STORE"}
)
@click.option(
    "--fail-below",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Exit with 1 if the share of questions that don't get worse is below this, or none could be compared.",
)
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Also write a report as one HTML file.")
@force
def regress(
    options: Options, fail_below: float | None, html: Path | None, force: bool, as_json: bool, **given: Any
) -> None:
    """The store stays as it is. Name the change: --policy, --usefulness-weight, --mode, --with-embedding, --as-of or
    --against. Only what people rated well is asked, without the votes of visitors.
    """
    if html is not None and html.exists() and not force:
        remedy = "Name another file, or pass --force"
        raise Conflict(f"{html} already exists", field="html", value=str(html), remedy=remedy)
    with options.open(worker=False) as memory, progress("asking") as show:
        report = memory.regress(progress=show, **{name: value for name, value in given.items() if value is not None})
    if html is not None:
        # Other commands share this module, and need no templates.
        from heedful.interfaces.reports import write_regressions

        write_regressions(report, html, overwrite=force)
        echo(f"report in {html}", err=True)
    show_result(report, as_json, show_report)
    if fail_below is not None and (not report.compared or not report.complete or report.kept.value < fail_below):
        sys.exit(1)


def show_report(report: model.RegressReport) -> None:
    """Prints the effect of a change."""
    screen = console()
    if not report.rated:
        screen.print("Nobody has rated anything well yet: heedful signal --recall RECALL_ID --helpful 1")
        return
    screen.print(
        f"{escape(report.candidate)}: {report.compared} of {counted(report.rated, 'rated question')} compared "
        f"({counted(report.needs, 'need')})"
    )
    if not report.complete:
        screen.print("[bold]The deadline came before all were compared.[/bold]")
    if report.compared:
        screen.print(
            f"{report.better} better, {report.same} the same, [bold]{report.worse} worse[/bold]; "
            f"{percent(report.kept.value)} don't get worse ({percent(report.kept.low)} to {percent(report.kept.high)})"
        )
        screen.print(
            f"score {report.score_before:.3f} → {report.score_after:.3f}, "
            f"change {report.change.low:+.3f} to {report.change.high:+.3f}: {_verdict(report)}"
        )
    for name, groups in (("dataset", report.datasets), ("theme", report.themes)):
        if len(groups) > 1 and any(group.worse or group.better for group in groups):
            _show_groups(name, groups)
    for item in report.worst[:SHOWN]:
        _show_worse(item)
    if report.worse > SHOWN:
        screen.print(f"\nand {report.worse - SHOWN} more: --json and --html list up to 100")
    if report.retired:
        screen.print(f"\nnot compared, because they are gone on purpose or have changed: {report.retired}")
        for gone in report.not_compared[:SHOWN]:
            screen.print(f"  {escape(shortened(gone.question))}: {escape(gone.detail)}")


def _verdict(report: model.RegressReport) -> str:
    if report.is_worse:
        return "worse for sure"
    return "better for sure" if report.change.low > 0 else "no sure difference"


def _show_groups(name: str, groups: Sequence[model.RegressGroup]) -> None:
    console().print("")
    show_table(groups[:SHOWN], f"{name}=name:40 | compared | better | same | worse | change=change:+.3f")


def _show_worse(item: model.Regression) -> None:
    screen = console()
    screen.print(f"\n[bold]{escape(item.question)}[/bold]  {item.kind} {item.change:+.3f}")
    for fact in item.facts:
        ranks = " → ".join("none" if rank is None else str(rank) for rank in (fact.old_rank, fact.new_rank))
        screen.print(f"  rank {ranks}: {escape(shortened(fact.text))}")
    if item.kind != "question":
        screen.print(f"  before: {escape(item.before or '')}")
        screen.print(f"  after:  {escape(item.after or '')}")
    screen.print(f"  {escape(item.reason)}")


check = click.option(
    "--check", is_flag=True, help="First show which rated questions would get worse, and ask whether to go on."
)
"""The option of a command that changes what recalls find; `yes` goes with it."""


def go_on(report: model.RegressReport, *, sure: bool, as_json: bool) -> None:
    """Shows what a change would do; without an answer that it is wanted, the command ends here."""
    if not as_json:
        show_report(report)
    if not sure:
        click.confirm("Go on?", abort=True, err=True)


def check_embedding(options: Options, *, sure: bool, as_json: bool) -> None:
    """Prints the effect of another model on the questions of each project of a store, or of the one that is named."""
    config = settings.load(store=options.store)
    store = options.local("reembed") or config.store
    with closing(open_store(store, create=False)) as database, database.read() as connection:
        names = [options.named_project] if options.named_project else scopes.project_names(connection)
        model = active_model(connection)
    for name in names if model is not None else ():
        assert model is not None
        own = embedder_of(model.name, database.name, config)
        with heedful.open(store, project=name, embedding=own, sessions=options.sessions, worker=False) as memory:
            if not as_json:
                echo(f"project {name}")
            with progress("asking") as show:
                report = memory.regress(embedding=options.embedding or config.embedding, progress=show)
        go_on(report, sure=sure, as_json=as_json)


def check_change(
    options: Options, change: Callable[[Engine], object], command: str, *, sure: bool, as_json: bool
) -> None:
    """Makes a change of the facts in a copy of the project, and shows what it would do to rated questions."""
    store = options.local(f"{command} --check") or settings.load().store
    name = options.project or settings.load().project
    with closing(open_store(store, create=True)) as database, database.read() as connection:
        if name not in scopes.project_names(connection):
            # Nobody can have rated anything.
            return
    with TemporaryDirectory(prefix="heedful-check-") as folder:
        copy, lines = Path(folder) / "copy.db", Path(folder) / "project.jsonl"
        with progress("copying") as show:
            transfer.export_file(store, lines, project=name)
            transfer.import_file(copy, lines, embedding=options.embedding, progress=show)
        with heedful.open(copy, project=name, embedding=options.embedding, worker=False) as trial:
            change(trial)
        with options.open(worker=False) as memory, progress("asking") as show:
            report = memory.regress(against=copy, progress=show)
    go_on(report, sure=sure, as_json=as_json)
