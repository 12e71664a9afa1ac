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


class _Command(NamedTuple):
    """Where a command is defined, and its help in one line, so that it need not be loaded to be listed."""

    module: str
    name: str
    help: str


COMMANDS = {
    "demo": _Command(
        "demo", "demo", "Demonstrate the loop: facts, a question, feedback, the same question in other words, and undo."
    ),
    "remember": _Command("facts", "remember", "Store facts: TEXTS, or files and folders with --file."),
    "recall": _Command("facts", "recall", "Find the facts that answer QUERY, best first."),
    "explain": _Command(
        "facts", "explain", "Show why each fact ranks where it does for QUERY, down to the events and the arithmetic."
    ),
    "supersede": _Command("facts", "supersede", "Replace FACT_ID with TEXT."),
    "forget": _Command(
        "facts", "forget", "Remove FACT_IDS, a source, or a dataset, with everything derived from them."
    ),
    "datasets": _Command("facts", "datasets", "List datasets, oldest first."),
    "signal": _Command(
        "feedback", "signal", "Say how useful facts were: FACT_IDS for a --query, or what a --recall showed."
    ),
    "detect": _Command("feedback", "detect", "Detect which facts of RECALL_ID the ANSWER used."),
    "retract": _Command(
        "feedback", "retract", "Undo the signal or supersession EVENT_ID, as if it had never been given."
    ),
    "stats": _Command("feedback", "stats", "Show the usefulness of a dataset, or of one FACT_ID."),
    "sessions": _Command("sessions", "sessions", "Conversations: messages, answers, metadata and feedback."),
    "improve": _Command("maintenance", "improve", "Turn the feedback of sessions into better recall."),
    "insight": _Command("insight", "insight", "Reports on feedback."),
    "connect": _Command(
        "executions", "connect", "Connect a database by its SQLAlchemy URL, to ask questions about it."
    ),
    "connectors": _Command("executions", "connectors", "Connected databases."),
    "run": _Command("executions", "run", "Run one read-only statement; a single - reads it from standard input."),
    "executions": _Command("runs", "executions", "Executed SQL with its results."),
    "ask": _Command(
        "executions", "ask", "Answer a question about data: by proven SQL, or by SQL that the language model writes."
    ),
    "cache": _Command("executions", "cache", "Executions that can be reused."),
    "golden": _Command("executions", "golden", "Golden examples: questions with the SQL that answers them."),
    "feedback": _Command("execution_feedback", "feedback", "Feedback on executions: right or wrong, and why."),
    "review": _Command("review", "review", "Negative feedback as a queue: show, fix, resolve and undo."),
    "replay": _Command(
        "replay", "replay", "Try other policies and weights on the recalls that people rated, and recommend a weight."
    ),
    "report": _Command("insight", "report", "Write a feedback report as one HTML file."),
    "digest": _Command("insight", "digest", "Summarise the feedback of a week, or of another period."),
    "serve": _Command("serve", "serve", "Serve the store over HTTP."),
    "dashboard": _Command("serve", "dashboard", "Serve the dashboard of the store."),
    "keys": _Command("keys", "keys", "Keys to a server, for this project."),
    "audit": _Command("keys", "audit", "Show refused requests and admin actions, newest first."),
    "jobs": _Command("jobs", "jobs", "Background jobs."),
    "worker": _Command(
        "jobs",
        "worker",
        "Run the jobs of all projects until stopped; another worker resumes an interrupted job from its last batch.",
    ),
    "mcp": _Command(
        "serve", "mcp", "Serve the store to an agent by MCP, on standard input and output, until the input ends."
    ),
    "policy": _Command("maintenance", "policy", "Set the ranking policy of recalls; none resets it."),
    "reembed": _Command("maintenance", "reembed", "Re-embed the whole store with the model of --embedding."),
    "maintain": _Command(
        "maintenance", "maintain", "Remove data beyond its retention period, and run other maintenance."
    ),
    "doctor": _Command(
        "maintenance", "doctor", "Check the store, the model, the scores and the indexes, and repair what is derived."
    ),
    "verify": _Command(
        "transfer",
        "verify",
        "Replay the ledger and compare every score with it, in all projects or in that of --project.",
    ),
    "backup": _Command(
        "transfer", "backup", "Copy the file of the store to FILE while others use it, and check the copy."
    ),
    "copy": _Command(
        "transfer", "copy", "Copy all projects of the store SOURCE into the empty store TARGET, and compare the two."
    ),
    "export": _Command("transfer", "export", "Write the project to FILE, or to standard output, as lines of JSON."),
    "import": _Command(
        "transfer",
        "import_",
        "Read a project from FILE, or from standard input (-), under its own name or that of --project.",
    ),
}


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each loaded on first use."""

    def __getitem__(self, name: str) -> click.Command:
        ref = COMMANDS[name]
        found: click.Command = getattr(import_module(f"heedful.interfaces.cli.{ref.module}"), ref.name)
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
        shown = {name: click.Command(name, help=ref.help) for name, ref in COMMANDS.items()}
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
@click.option("--language-model", metavar="URL#MODEL", help="The model that writes answers; HEEDFUL_LANGUAGE_MODEL.")
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
