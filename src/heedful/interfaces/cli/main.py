"""The `heedful` command and its subcommands."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from heedful.errors import HeedfulError
from heedful.version import __version__

if TYPE_CHECKING:
    from heedful.interfaces.cli.common import NewStore


class _Place(NamedTuple):
    """Where a command is defined, and what it does in a line: both are known before it is loaded."""

    module: str
    name: str
    help: str


COMMANDS = {
    "demo": _Place(
        "demo", "demo", "Demonstrate the loop: facts, a question, feedback, the same question in other words, and undo."
    ),
    "remember": _Place("facts", "remember", "Store facts: TEXTS, or files and folders with --file."),
    "recall": _Place("facts", "recall", "Find the facts that answer QUERY, best first."),
    "explain": _Place(
        "facts", "explain", "Show why each fact ranks where it does for QUERY, down to the events and the arithmetic."
    ),
    "supersede": _Place("facts", "supersede", "Replace FACT_ID with TEXT."),
    "forget": _Place("facts", "forget", "Remove FACT_IDS, a source, or a dataset, with everything derived from them."),
    "datasets": _Place("facts", "datasets", "List datasets, oldest first."),
    "signal": _Place(
        "feedback", "signal", "Say how useful facts were: FACT_IDS for a --query, or what a --recall showed."
    ),
    "detect": _Place("feedback", "detect", "Detect which facts of RECALL_ID the ANSWER used."),
    "retract": _Place(
        "feedback", "retract", "Undo the signal or supersession EVENT_ID, as if it had never been given."
    ),
    "stats": _Place("feedback", "stats", "Show the usefulness of a dataset, or of one FACT_ID."),
    "sessions": _Place("sessions", "sessions", "Conversations: messages, answers, metadata and feedback."),
    "improve": _Place("maintenance", "improve", "Turn the feedback of sessions into better recall."),
    "insight": _Place("insight", "insight", "Reports on feedback."),
    "connect": _Place("executions", "connect", "Connect a database by its SQLAlchemy URL, to ask questions about it."),
    "connectors": _Place("executions", "connectors", "Connected databases."),
    "run": _Place("executions", "run", "Run one read-only statement; a single - reads it from standard input."),
    "executions": _Place("runs", "executions", "Executed SQL with its results."),
    "ask": _Place(
        "executions", "ask", "Answer a question about data: by proven SQL, or by SQL that the language model writes."
    ),
    "cache": _Place("executions", "cache", "Executions that can be reused."),
    "golden": _Place("executions", "golden", "Golden examples: questions with the SQL that answers them."),
    "feedback": _Place("execution_feedback", "feedback", "Feedback on executions: right or wrong, and why."),
    "review": _Place("review", "review", "Negative feedback as a queue: show, fix, resolve and undo."),
    "replay": _Place(
        "replay", "replay", "Try other policies and weights on the recalls that people rated, and recommend a weight."
    ),
    "report": _Place("insight", "report", "Write a feedback report as one HTML file."),
    "digest": _Place("insight", "digest", "Summarise the feedback of a week, or of another period."),
    "serve": _Place("serve", "serve", "Serve the store over HTTP."),
    "dashboard": _Place("serve", "dashboard", "Serve the dashboard of the store."),
    "keys": _Place("keys", "keys", "Keys to a server, for this project."),
    "audit": _Place("keys", "audit", "Show refused requests and admin actions, newest first."),
    "jobs": _Place("jobs", "jobs", "Background jobs."),
    "worker": _Place(
        "jobs",
        "worker",
        "Run the jobs of all projects until stopped; another worker resumes an interrupted job from its last batch.",
    ),
    "mcp": _Place(
        "serve", "mcp", "Serve the store to an agent by MCP, on standard input and output, until the input ends."
    ),
    "policy": _Place("maintenance", "policy", "Set the ranking policy of recalls; none resets it."),
    "reembed": _Place("maintenance", "reembed", "Re-embed the whole store with the model of --embedding."),
    "upkeep": _Place("maintenance", "upkeep", "Remove data beyond its retention period, and run other maintenance."),
    "doctor": _Place(
        "maintenance", "doctor", "Check the store, the model, the scores and the indexes, and repair what is derived."
    ),
    "verify": _Place(
        "transfer",
        "verify",
        "Replay the ledger and compare every score with it, in all projects or in that of --project.",
    ),
    "backup": _Place(
        "transfer", "backup", "Copy the file of the store to FILE while others use it, and check the copy."
    ),
    "copy": _Place(
        "transfer", "copy", "Copy all projects of the store SOURCE into the empty store TARGET, and compare the two."
    ),
    "export": _Place("transfer", "export", "Write the project to FILE, or to standard output, as lines of JSON."),
    "import": _Place(
        "transfer",
        "import_",
        "Read a project from FILE, or from standard input (-), under its own name or that of --project.",
    ),
}


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each loaded when somebody asks for it."""

    def __getitem__(self, name: str) -> click.Command:
        place = COMMANDS[name]
        found: click.Command = getattr(import_module(f"heedful.interfaces.cli.{place.module}"), place.name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(click.Group):
    """Lists commands without loading them: `--help` needs neither a database nor a model."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max(map(len, COMMANDS))
        shown = {name: click.Command(name, help=place.help) for name, place in COMMANDS.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in shown.items()])


@click.group(
    cls=_Group,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
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
@click.version_option(__version__, message="heedful %(version)s")
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
    # Loaded with the command that is called, not with the help.
    from heedful.interfaces.cli.common import NewStore, Options

    new_stores = context.obj
    context.obj = Options(store, project, embedding, language_model, sessions)
    if isinstance(new_stores, list):
        new_stores.append(NewStore(context.obj))


def main() -> None:
    """Runs the command line; an error of Heedful's own is reported in a line, with what to do."""
    new_stores: list[NewStore] = []
    try:
        cli(prog_name="heedful", obj=new_stores)
    except HeedfulError as error:
        from heedful.interfaces.cli.common import report

        for each in new_stores:
            each.discard_empty()
        report(error, as_json="--json" in sys.argv)
        sys.exit(2)
