"""The `heedful` command and its subcommands."""

from __future__ import annotations

import sys

import click

import heedful
from heedful.errors import HeedfulError
from heedful.interfaces.cli import (
    demo,
    execution_feedback,
    executions,
    exports,
    facts,
    feedback,
    insight,
    jobs,
    keys,
    maintenance,
    replay,
    review,
    runs,
    serve,
    sessions,
    transfer,
)
from heedful.interfaces.cli.common import NewStore, Options
from heedful.interfaces.cli.common import report as told


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--store",
    metavar="URL_OR_PATH",
    help="The store, a file or postgresql://…; HEEDFUL_STORE, or heedful.db in this folder. http://… is a server, "
    "opened with HEEDFUL_API_KEY.",
)
@click.option("--project", metavar="NAME", help="The project; HEEDFUL_PROJECT, or default.")
@click.option("--embedding", metavar="SPEC", help="bundled, fast, a folder, or URL#model; HEEDFUL_EMBEDDING.")
@click.option("--language-model", metavar="URL#MODEL", help="What writes answers; HEEDFUL_LANGUAGE_MODEL.")
@click.option("--sessions", metavar="URL", help="mongodb://… to keep sessions there; HEEDFUL_SESSIONS.")
@click.version_option(heedful.__version__, message="heedful %(version)s")
@click.pass_context
def cli(
    context: click.Context,
    store: str | None,
    project: str | None,
    embedding: str | None,
    language_model: str | None,
    sessions: str | None,
) -> None:
    """Heedful, the feedback loop for AI agents: remember, recall, say what was useful, recall better."""
    new_store = context.obj
    context.obj = Options(store, project, embedding, language_model, sessions)
    if isinstance(new_store, NewStore):
        new_store.look(context.obj)


for command in (
    demo.demo,
    facts.remember,
    facts.recall,
    facts.explain,
    facts.supersede,
    facts.forget,
    facts.datasets,
    feedback.signal,
    feedback.detect,
    feedback.retract,
    feedback.stats,
    sessions.sessions,
    maintenance.improve,
    insight.insight,
    executions.connect,
    executions.connectors,
    executions.run,
    runs.executions,
    executions.ask,
    executions.cache,
    executions.golden,
    execution_feedback.feedback,
    review.review,
    replay.replay,
    insight.report,
    insight.digest,
    serve.serve,
    serve.dashboard,
    keys.keys,
    keys.audit,
    jobs.jobs,
    jobs.worker,
    serve.mcp,
    maintenance.policy,
    maintenance.reembed,
    maintenance.upkeep,
    maintenance.doctor,
    transfer.verify,
    transfer.backup,
    transfer.copy,
    transfer.export,
    transfer.import_,
):
    cli.add_command(command)

for command in (exports.export, exports.dictionary):
    insight.insight.add_command(command)


def main() -> None:
    """Runs the command line; an error of Heedful's own is told in a line, with what to do."""
    new_store = NewStore()
    try:
        cli(prog_name="heedful", obj=new_store)
    except HeedfulError as error:
        new_store.discard_empty()
        told(error, as_json="--json" in sys.argv)
        sys.exit(2)
