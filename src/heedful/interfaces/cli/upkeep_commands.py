"""improve, policy, reembed, migrate, maintain, doctor; jobs, worker; copy, export, import, backup, verify."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import click
from rich.markup import escape

import heedful
from heedful import model, settings, transfer
from heedful.bootstrap import maintain_store, migrate_store, store_jobs, store_security
from heedful.evaluation.training_files import REASONS
from heedful.interfaces.cli.regress_commands import check, check_change, check_embedding, go_on
from heedful.interfaces.cli.runner import Engine, Group, Options, command, force, parameters, runs, yes
from heedful.interfaces.cli.screen import console, echo, minute, progress, show_result, show_table, waiting
from heedful.interfaces.client.hardening import check_server
from heedful.store import worker_of
from heedful.text import counted, shortened
from heedful.transfer import Imported, ProjectChecksum
from heedful.transfer.foreign import SYSTEMS, System

background = click.option("--background", is_flag=True, help="Let a worker do it: heedful worker, or heedful serve.")


@command("store")
@background
@check
@yes
def reembed(options: Options, background: bool, check: bool, yes: bool, as_json: bool) -> None:
    """Re-embed the whole store with the model of --embedding. It can be stopped and started again."""
    if check:
        check_embedding(options, sure=yes, as_json=as_json)
    if background:
        with store_jobs(options.local("reembed")) as jobs:
            added = jobs.reembed(options.embedding or settings.load(store=options.store).embedding)
        done = f"job {added.job_id} is {added.status}; progress: heedful jobs show {added.job_id}"
        show_result(added, as_json, lambda _: done)
        return
    with progress("embedding") as show:
        count = heedful.reembed(options.local("reembed"), embedding=options.embedding, progress=show)
    show_result({"facts": count}, as_json, lambda _: f"{counted(count, 'fact')} embedded; the store uses this model")


@command(None)
@click.option("--distribute", is_flag=True, help="Spread the projects over the nodes of a Citus cluster, too.")
def migrate(options: Options, distribute: bool, as_json: bool) -> None:
    """Create the tables of the store, or upgrade them. Every other command does so, too, when it opens the store."""
    with waiting("migrating"):
        result = migrate_store(options.local("migrate"), distribute=distribute)
    spread = f", spread over {', '.join(result.nodes)}" if result.nodes else ""
    show_result(result, as_json, lambda _: f"{result.store} is at revision {result.revision}{spread}")


@command("store")
def maintain(options: Options, as_json: bool) -> None:
    """Workers do this every hour."""
    with waiting("maintaining"):
        actions = maintain_store(options.local("maintain"))
    show_result(actions, as_json, lambda _: "\n".join(actions or ["nothing to do"]))


def _show_or_set_policy(
    heedful: Engine, policy: str | None = None, check: bool = False, **given: Any
) -> model.PolicyInUse | model.PolicyChange:
    if policy is None:
        return heedful.policy(**given)
    if check:
        tried = model.POLICY_NAMES[-1] if policy == "none" else policy
        with progress("asking") as show:
            report = heedful.regress(policy=tried, progress=show, **given)  # type: ignore[arg-type]
        typed = click.get_current_context().params
        go_on(report, sure=typed["yes"], as_json=typed["as_json"])
    return heedful.set_policy(None if policy == "none" else policy, **given)  # type: ignore[arg-type]


@runs(
    "set_policy",
    "policy",
    does=_show_or_set_policy,
    policy={"type": click.Choice([*model.POLICY_NAMES, "none"]), "required": False},
    dataset="The dataset; left out, the whole project.",
)
@check
@yes
def policy(result: model.PolicyInUse | model.PolicyChange, policy: str | None, dataset: str | None) -> None:
    where = f"dataset {dataset}" if dataset else "the project"
    if policy == "none":
        echo(f"{where} has no policy now; heedful policy shows which one recalls follow")
    else:
        echo(f"{where} recalls by: {result.policy}")
    if isinstance(result, model.PolicyInUse):
        echo(_reason(result))
    if result.event_id is not None:
        echo(f"To undo it: heedful retract {result.event_id}")


def _reason(result: model.PolicyInUse) -> str:
    """Why this policy is in use."""
    if result.chosen_for is None:
        return "No policy is set, so this is the default."
    by = "switched back after ratings got worse" if result.chosen_by == "guard" else "set"
    when = "" if result.chosen_at is None else f" on {minute(result.chosen_at)}"
    return f"It was {by} for the {result.chosen_for}{when}."


@command("store")
@parameters("doctor")
@click.option(
    "--security", is_flag=True, help="Check what production needs instead: files, keys, connectors, a server."
)
@click.option("--facts", is_flag=True, help="Look for duplicates and facts that nobody needs instead.")
@parameters("check_facts", limit="With --facts: how many of each kind are listed.")
def doctor(options: Options, repair: bool, security: bool, facts: bool, as_json: bool, **given: Any) -> None:
    """The model, the scores and the indexes are checked, too."""
    if facts:
        with waiting("checking"), options.open() as opened:
            show_result(opened.check_facts(**given), as_json, _show_report)
        return
    if security and options.server is not None:
        checks = check_server(options.server, os.environ.get(settings.API_KEY))
    elif security:
        checks = store_security(options.store)
    else:
        with waiting("checking"), options.open() as opened:
            checks = opened.doctor(repair=repair)
    show_result(checks, as_json, _show_checks)
    if not all(line.ok for line in checks):
        sys.exit(1)


def _show_checks(checks: list[model.Check]) -> None:
    for line in checks:
        word = "repaired" if line.repaired else "ok" if line.ok else "BAD"
        console().print(f"{word:9} {escape(line.name)}: {escape(line.detail)}")


def _show_report(report: model.FactReport) -> None:
    screen = console()
    screen.print(f"{counted(report.facts, 'fact')} in {escape(report.dataset)}")
    for finding in report.findings:
        screen.print(f"{finding.count} {finding.kind.replace('_', ' ')}: {escape(finding.remedy)}")
        for fact in finding.facts:
            other = "" if fact.other is None else f"  as {fact.other}"
            screen.print(f"  {fact.fact_id}  {escape(shortened(fact.text))}{other}  ({escape(fact.detail)})")
    if not report.findings:
        screen.print("nothing found")


@command()
@parameters("improve")
@background
def improve(options: Options, background: bool, as_json: bool, **given: Any) -> None:
    if background:
        with options.open(worker=False) as heedful:
            show_result(heedful.jobs.improve(**given), as_json, _show_job)
        return
    with waiting("improving"), options.open() as heedful:
        result = heedful.improve(**given)
    show_result(result, as_json, _show_improvement)


def _show_improvement(result: model.Improvement) -> None:
    if not result.changed:
        known = ": all of it was learnt before" if result.entries > result.without_facts else ""
        echo(f"{counted(result.entries, 'rated answer')}; nothing new{known}")
    else:
        echo(
            f"{counted(result.entries, 'rated answer')}: {counted(result.signals_added, 'signal')} added, "
            f"{result.signals_retracted} retracted; {counted(len(result.updated_facts), 'fact')} changed"
        )
    if result.link_signals_added or result.link_signals_retracted or result.entities_added:
        echo(
            f"graph: {counted(result.link_signals_added, 'link signal')} added, "
            f"{result.link_signals_retracted} retracted; links to entities: {result.entities_added}"
        )
    for fact in result.learnt:
        echo(f"  learnt from {fact.learnt_from}: {shortened(fact.text)}  {fact.fact_id}")
    for fact_id in result.forgotten:
        echo(f"  forgotten because its source was deleted: {fact_id}")
    if result.visitor_ratings:
        echo(f"  {counted(result.visitor_ratings, 'rating')} by visitors, without effect on facts")
    if result.without_facts:
        echo(
            f"  {counted(result.without_facts, 'rated answer')} without effect on facts: none is recognised in the text"
        )
        echo("  Let the model cite facts, as in [1], or name them when you store the answer (used)")
    for skipped in result.not_learnt:
        echo(f"  not learnt from {skipped.learnt_from} {skipped.feedback_id}: {skipped.detail}")


@contextmanager
def _jobs(options: Options, typed: Mapping[str, Any]) -> Iterator[Any]:
    """The jobs of a project; of a store that is named without one, all. Looking does none of them."""
    if options.whole_store and typed.get("kind") != "deliver":
        with store_jobs(options.store) as jobs:
            yield SimpleNamespace(jobs=jobs)
        return
    with options.open(worker=False) as heedful:
        yield heedful


jobs = Group("jobs", first="list show cancel", needs="store", opens=_jobs)


def _progress(job: model.Job) -> str:
    return "" if job.total is None else f"{job.done}/{job.total}"


@jobs.runs("list")
def list_jobs(page: model.Page[model.Job]) -> None:
    """List jobs, the newest first."""
    show_table(
        page,
        "kind | status",
        ("done", _progress),
        "attempts | created=created_at",
        ("project", lambda job: job.project or "all"),
        "error:40 | job_id",
        less=("attempts", "project"),
        empty="No jobs. They are made by: heedful improve --background",
    )


@jobs.runs("get", "job_id", name="show", help="Show one job.")
@jobs.runs("cancel", "job_id", help="Cancel a job: at once if it waits, at its next step if it runs.")
@jobs.runs("retry", "job_id", help="Retry a job that failed or was cancelled.")
def _show_job(job: model.Job) -> None:
    echo(f"{job.kind} {job.job_id}: {job.status}, attempt {job.attempts}")
    for key, value in job.arguments.items():
        if value is not None:
            echo(f"  {key}: {value}")
    if job.total is not None:
        echo(f"  done: {_progress(job)}")
    if job.error is not None:
        echo(f"  error: {job.error}")
    for name in ("created_at", "started_at", "finished_at"):
        if getattr(job, name) is not None:
            echo(f"  {name}: {getattr(job, name):%Y-%m-%d %H:%M:%S}")


@command(None, as_json=False)
@click.option("--once", is_flag=True, help="Run due jobs, then exit.")
def worker(options: Options, once: bool) -> None:
    """Another worker resumes an interrupted job from its last batch."""
    with options.whole("worker") as store:
        working = worker_of(store)
        if once:
            working.drain()
            return

        def stop(number: int, frame: FrameType | None) -> None:
            # In another thread, because the one that is interrupted may hold what this waits for.
            threading.Thread(target=working.stop).start()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        echo(f"working on {store.database.name}", err=True)
        working.run()


@command(None)
@click.argument("source")
@click.argument("target")
def copy(_: Options, source: str, target: str, as_json: bool) -> None:
    """All projects are copied, and the two are compared. Each is a file or a URL (sqlite:///…, postgresql://…). It can
    be stopped and started again.
    """
    with progress("copying") as show:
        result = transfer.copy(source, target, progress=show)
    show_result(result, as_json, _show_copied)


def _show_copied(result: transfer.Copied) -> str:
    filled = [(name, count) for name, count in result.tables.items() if count]
    show_table(filled, ("table", itemgetter(0)), ("rows", itemgetter(1)))
    _show_checksums(result.projects)
    return f"{result.target} is a copy of {result.source}; {counted(result.written, 'row')} written"


class _Export(Group):
    """`export FILE` is short for `export project FILE`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.commands or args[0] in context.help_option_names)
        return super().parse_args(context, args if is_named else ["project", *args])


export = _Export("export")


@command(group=export, name="project")
@click.argument("file", required=False)
@click.option(
    "--vectors/--no-vectors", default=True, show_default=True, help="Without vectors, the import re-embeds the facts."
)
@force
def export_project(options: Options, file: str | None, vectors: bool, force: bool, as_json: bool) -> None:
    """Write the project to FILE, as lines of JSON.

    Without FILE, it goes to standard output. The word "project" may be left out.
    """
    store = options.local("export")
    name = options.project or settings.load().project
    if file is None or file == "-":
        transfer.export(store, sys.stdout.buffer.write, project=name, vectors=vectors)
        return
    with progress("exporting") as show:
        result = transfer.export_file(store, file, project=name, vectors=vectors, force=force, progress=show)
    lines = sum(result.counts.values())
    done = f"{counted(lines, 'line')} of project {result.project} in {file}; ledger {result.ledger_checksum}"
    show_result(result, as_json, lambda _: done)


@command(group=export, name="training")
@parameters(
    "insight.export_training",
    "path",
    path={"metavar": "FILE"},
    format={"required": True},
    overwrite={"spelled": ("--force",), "help": "Replace existing files."},
)
def export_training(options: Options, path: str, as_json: bool, **given: Any) -> None:
    """Write training data to FILE, made from what people rated.

    They are lines of JSON for trainers of language models (kto, dpo, sft), of embedding models and rerankers
    (triplets), for text-to-SQL, or for evaluations. FILE.md says how they were made. With -, the lines go to standard
    output.
    """
    # What was not typed has the engine's default.
    given = {name: value for name, value in given.items() if value is not None}
    with progress("reading ratings") as show, options.open(worker=False) as opened:
        output = sys.stdout.buffer if path == "-" else path
        result = opened.insight.export_training(output, progress=show, **given)
    if path != "-":
        show_result(result, as_json, _show_training)


def _show_training(result: model.TrainingExport) -> str:
    data = result.data
    if data.left_out:
        left_out = [(count, REASONS[reason]) for reason, count in data.left_out.items()]
        show_table(left_out, ("left out", itemgetter(0)), ("because it is", itemgetter(1)))
    if not data.lines:
        return f"no lines in {result.path}: nothing was rated that {data.format} can be made from"
    sides = ", ".join(f"{count} to {name}" for name, count in data.splits.items())
    made = f"{counted(data.lines, 'line')} ({sides}) about {counted(data.needs, 'need')} in {result.path}"
    return f"{made}; how they were made: {result.card_path}"


@command(None, name="import")
@click.argument("file")
@click.option("--from", "system", type=click.Choice(SYSTEMS), help="The system that wrote FILE, if it was not Heedful.")
@click.option("--dataset", default=model.DEFAULT_DATASET, show_default=True, help="With --from: where the facts go.")
@click.option(
    "--scale", nargs=2, type=float, default=(0, 1), show_default=True, help="With --from: the worst and best score."
)
@click.option("--dry-run", is_flag=True, help="With --from: read the file, and write nothing.")
@check
@yes
def import_(
    options: Options, /, file: str, system: System | None, check: bool, yes: bool, as_json: bool, **given: Any
) -> None:
    """The project gets its own name or that of --project; - reads it from standard input. With --from, FILE is one that
    mem0, cognee, Hindsight or Langfuse exported, and what it has is added to the project.
    """
    if system is not None:
        if check and not given["dry_run"]:
            trial = partial(_import_into, system=system, file=file, **given)
            check_change(options, trial, "import", sure=yes, as_json=as_json)
        with options.open(worker=False) as memory, progress("importing") as show:
            imported = transfer.import_from(memory, system, file, **given, progress=show)
        show_result(imported, as_json, _show_imported)
        if imported.errors:
            sys.exit(1)
        return
    store = options.local("import")
    source = sys.stdin.buffer if file == "-" else Path(file)
    with progress("importing") as show:
        result = transfer.import_file(
            store, source, project=options.named_project, embedding=options.embedding, progress=show
        )
    embedded = f", {result.embedded} of them embedded" if result.embedded else ""
    done = (
        f"project {result.project}: {counted(result.counts['fact'], 'fact')}{embedded}, "
        f"{counted(result.counts['event'], 'event')}; ledger {result.ledger_checksum}"
    )
    show_result(result, as_json, lambda _: done)


def _import_into(memory: Engine, *, system: System, file: str, **given: Any) -> None:
    transfer.import_from(memory, system, file, **given)


def _show_imported(result: Imported) -> None:
    facts = f"{result.sources} to read" if result.dry_run else f"{result.added} new, {result.known} known"
    waiting = f" ({result.waiting} wait for their answer)" if result.waiting else ""
    echo(
        f"facts: {facts}; opinions about facts: {result.signals}; answers: {result.answers}; "
        f"ratings: {result.ratings}{waiting}"
    )
    for reason, count in result.skipped.items():
        echo(f"left out: {count} {reason}")
    for error in result.errors:
        place = f"{error.file}, line {error.line}" if error.file else f"line {error.line}"
        echo(f"not imported: {place}: {error.message}", err=True)
    if result.dry_run:
        echo("nothing was written")


@command(None)
@click.argument("file")
@force
@click.option("--with-signing", is_flag=True, help="Include the secret that signs tokens and logins.")
def backup(options: Options, file: str, force: bool, with_signing: bool, as_json: bool) -> None:
    """The copy is checked."""
    with progress("backing up") as show:
        result = transfer.backup(options.local("backup"), file, force=force, with_signing=with_signing, progress=show)
    kept = ", ".join(counted(result.tables[f"{noun}s"], noun) for noun in ("fact", "event"))
    show_result(result, as_json, lambda _: f"{result.file}: {result.bytes:,} bytes, {kept}")


@command("store")
def verify(options: Options, as_json: bool) -> None:
    """It looks at all projects, or at that of --project."""
    with progress("verifying") as show:
        result = transfer.verify(options.local("verify"), project=options.named_project, progress=show)
    show_result(result, as_json, _show_verified)
    if not result.ok:
        sys.exit(1)


def _show_verified(result: transfer.Verified) -> str:
    _show_checksums(result.projects)
    for difference in result.differences:
        where = "/".join(name for name in (difference.project, difference.dataset) if name is not None) or "the store"
        problem = f"BAD {where}: {difference.count} {difference.what}: {', '.join(difference.examples)}"
        console().print(escape(problem))
    return f"{counted(result.compared, 'score')} compared, {counted(len(result.differences), 'difference')}"


def _show_checksums(projects: list[ProjectChecksum]) -> None:
    show_table(
        projects,
        "project | facts | events | checksum of facts=facts_checksum | checksum of ledger=ledger_checksum",
        less=("checksum of facts",),
    )
