"""The `heedful` command and its subcommands."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, NoReturn

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


GROUPS = {
    "Start": {
        "init": _Command("start", "init", "Write heedful.toml in this folder, by four questions."),
        "try": _Command("start", "try_", "Try the loop on your own FILES: ask, rate, and ask again."),
        "demo": _Command("demo", "demo", "Show the loop: facts, a question, feedback, and undo."),
        "remember": _Command("facts", "remember", "Store facts: TEXTS, or files and folders with --file."),
        "facts": _Command("facts", "list_facts", "List facts, in the order in which they were stored."),
        "datasets": _Command("facts", "datasets", "List datasets, oldest first."),
        "supersede": _Command("facts", "supersede", "Replace FACT_ID with TEXT."),
        "forget": _Command("facts", "forget", "Remove FACT_IDS, a source or a dataset."),
    },
    "Ask": {
        "recall": _Command("facts", "recall", "Find the facts that answer QUERY, best first."),
        "explain": _Command(
            "facts",
            "explain",
            "Show why each fact ranks where it does for QUERY.",
        ),
        "sessions": _Command("sessions", "sessions", "Conversations: messages, answers, metadata and feedback."),
        "connect": _Command("executions", "connect", "Connect a database by its SQLAlchemy URL."),
        "connectors": _Command("executions", "connectors", "Connected databases."),
        "ask": _Command(
            "executions",
            "ask",
            "Answer a question about data, by proven or newly written SQL.",
        ),
        "run": _Command("executions", "run", "Run one read-only statement; - reads it from standard input."),
        "executions": _Command("runs", "executions", "Executed SQL with its results."),
        "cache": _Command("executions", "cache", "Executions that can be reused."),
        "golden": _Command("executions", "golden", "Golden examples: questions with the SQL that answers them."),
    },
    "Rate": {
        "signal": _Command("feedback", "signal", "Say how useful facts were: for a --query, or of a --recall."),
        "detect": _Command("feedback", "detect", "Detect which facts of RECALL_ID the ANSWER used."),
        "retract": _Command("feedback", "retract", "Undo the signal or supersession EVENT_ID."),
        "feedback": _Command("execution_feedback", "feedback", "Feedback on executions: right or wrong, and why."),
        "improve": _Command("maintenance", "improve", "Turn the feedback of sessions into better recall."),
        "review": _Command("review", "review", "Negative feedback as a queue: show, fix, resolve and undo."),
    },
    "See": {
        "stats": _Command("feedback", "stats", "Show the usefulness of a dataset, or of one FACT_ID."),
        "insight": _Command("insight", "insight", "Reports on feedback."),
        "dashboard": _Command("serve", "dashboard", "Serve the dashboard of the store."),
        "report": _Command("insight", "report", "Write a feedback report as one HTML file."),
        "digest": _Command("insight", "digest", "Summarise the feedback of a week, or of another period."),
        "replay": _Command(
            "replay",
            "replay",
            "Try other policies and weights on recalls that were rated.",
        ),
    },
    "Operate": {
        "serve": _Command("serve", "serve", "Serve the store over HTTP."),
        "worker": _Command(
            "jobs",
            "worker",
            "Run the jobs of all projects until stopped.",
        ),
        "mcp": _Command("serve", "mcp", "Serve the store to an agent by MCP."),
        "jobs": _Command("jobs", "jobs", "Background jobs."),
        "keys": _Command("keys", "keys", "Keys to a server, for this project."),
        "audit": _Command("keys", "audit", "Show refused requests and admin actions, newest first."),
        "policy": _Command("maintenance", "policy", "Set the ranking policy of recalls; none resets it."),
        "reembed": _Command("maintenance", "reembed", "Re-embed the whole store with the model of --embedding."),
        "migrate": _Command("maintenance", "migrate", "Create the tables of the store, or upgrade them."),
        "maintain": _Command("maintenance", "maintain", "Delete data past its retention, and run other maintenance."),
        "doctor": _Command(
            "maintenance",
            "doctor",
            "Check the store, and repair derived data.",
        ),
        "verify": _Command(
            "transfer",
            "verify",
            "Replay the ledger, and compare every score with it.",
        ),
        "backup": _Command("transfer", "backup", "Copy the file of the store while others use it."),
        "copy": _Command(
            "transfer",
            "copy",
            "Copy the store SOURCE into the empty store TARGET.",
        ),
        "export": _Command("transfer", "export", "Write the project to FILE, as lines of JSON."),
        "import": _Command(
            "transfer",
            "import_",
            "Read a project, or what another system exported, from FILE.",
        ),
    },
}
"""The commands, by what somebody wants to do, in the order of the help."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

ANYWHERE = {
    "-s": True,
    "--store": True,
    "-p": True,
    "--project": True,
    "--embedding": True,
    "--language-model": True,
    "--sessions": True,
    "--wide": False,
}
"""Options that may stand anywhere on the line, and whether a value follows."""


def moved_to_front(arguments: Sequence[str]) -> list[str]:
    """The words of a line, those first that hold for every command.

    >>> moved_to_front(["recall", "Who sings?", "--store", "a.db", "--", "--wide"])
    ['--store', 'a.db', 'recall', 'Who sings?', '--', '--wide']
    """
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if word == "--":
            return [*front, *rest, word, *words]
        if name not in ANYWHERE:
            rest.append(word)
        elif equals or not ANYWHERE[name]:
            front.append(word)
        else:
            front += [word, *islice(words, 1)]
    return [*front, *rest]


def invoked(arguments: Sequence[str]) -> click.Command:
    """The command that a line means, for the names of its options; of a line without one, the whole."""
    command: click.Command = cli
    for word in moved_to_front(arguments):
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
    return command


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each loaded on first use."""

    def __getitem__(self, name: str) -> click.Command:
        ref = COMMANDS[name]
        command: click.Command = getattr(import_module(f"heedful.interfaces.cli.{ref.module}"), ref.name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(click.Group):
    """Lists commands without loading them: `--help` needs neither a database nor a model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, moved_to_front(args))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            commands = {name: click.Command(name, help=ref.help) for name, ref in group.items()}
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(10), command.get_short_help_str(width)) for name, command in commands.items()]
                )


@click.group(
    cls=_Group,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="These options may stand anywhere on the line. heedful COMMAND --help shows those of a command.",
)
@click.option(
    "-s",
    "--store",
    metavar="URL_OR_PATH",
    help="The store, a file or postgresql://…; HEEDFUL_STORE, or heedful.db in this folder. http://… is a server, "
    "opened with HEEDFUL_API_KEY.",
)
@click.option("-p", "--project", metavar="NAME", help="The project; HEEDFUL_PROJECT, or default.")
@click.option("--embedding", metavar="SPEC", help="bundled, fast, a folder, or URL#model; HEEDFUL_EMBEDDING.")
@click.option("--language-model", metavar="URL#MODEL", help="The model that writes answers; HEEDFUL_LANGUAGE_MODEL.")
@click.option("--sessions", metavar="URL", help="mongodb://… to keep sessions there; HEEDFUL_SESSIONS.")
@click.option("--wide", is_flag=True, help="Show all columns of tables, however narrow the terminal is.")
@click.version_option(__version__, message="heedful %(version)s")
@click.pass_context
def cli(
    context: click.Context,
    store: str | None,
    project: str | None,
    embedding: str | None,
    language_model: str | None,
    sessions: str | None,
    wide: bool,
) -> None:
    """Heedful, the feedback loop for AI agents: remember, recall, say what was useful, recall better."""
    # Loaded with the command that is called, not with the help.
    from heedful.interfaces.cli.common import NewStore, Options

    new_stores = context.obj
    context.obj = Options(store, project, embedding, language_model, sessions, wide)
    if isinstance(new_stores, list):
        new_stores.append(NewStore(context.obj))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line; an error is reported in a line, with what to do, and in the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    new_stores: list[NewStore] = []
    try:
        code = cli.main(words, prog_name="heedful", obj=new_stores, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        from heedful.interfaces.cli.failures import report_usage

        report_usage(error, as_json="--json" in words)
        sys.exit(error.exit_code)
    except click.Abort as error:
        from heedful.interfaces.cli import failures
        from heedful.interfaces.cli.common import echo

        echo("stopped", err=True)
        sys.exit(failures.STOPPED if isinstance(error.__cause__, KeyboardInterrupt) else failures.INCOMPLETE)
    except HeedfulError as error:
        from heedful.interfaces.cli.failures import exit_code, report

        for store in new_stores:
            store.discard_empty()
        report(error, invoked(words), as_json="--json" in words)
        sys.exit(exit_code(error))
    sys.exit(code if isinstance(code, int) else 0)
