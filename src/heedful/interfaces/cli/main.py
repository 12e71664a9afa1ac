"""The `heedful` command and its subcommands."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import click

from heedful.errors import HeedfulError
from heedful.interfaces.cli.command_table import COMMANDS, FIRST_STEPS, GROUPS
from heedful.loading import load
from heedful.version import __version__

WITH_VALUE = ["-s", "--store", "-p", "--project", "--embedding", "--language-model", "--sessions"]
ANYWHERE = [*WITH_VALUE, "--wide"]
"""Options that may stand anywhere on the line."""


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
        elif equals or name not in WITH_VALUE:
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
        command: click.Command = getattr(load(ref.module), ref.name)
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
            helps = {name: click.Command(name, help=ref.help).get_short_help_str(width) for name, ref in group.items()}
            with formatter.section(title):
                formatter.write_dl([(name.ljust(10), text) for name, text in helps.items()])


@click.group(
    cls=_Group,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="These options may stand anywhere on the line. heedful COMMAND --help shows those of a command.",
)
@click.option(
    *("-s", "--store"),
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
def cli(context: click.Context, /, **options: Any) -> None:
    """Heedful, the feedback loop for AI agents: remember, recall, say what was useful, recall better."""
    # Loaded with the command that is called, not with the help.
    from heedful.interfaces.cli.runner import Options

    context.obj = Options(**options)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line; an error is reported in a line, with what to do, and in the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = cli.main(words, prog_name="heedful", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        if error.ctx is None or error.ctx.parent is not None:
            error.show()
            sys.exit(error.exit_code)
        from heedful.interfaces.cli import screen

        screen.echo(FIRST_STEPS.format(count=len(COMMANDS)))
        sys.exit(0)
    except (click.ClickException, click.Abort, HeedfulError) as error:
        from heedful.interfaces.cli import screen

        sys.exit(screen.report(error, cli, invoked(words), as_json="--json" in words))
    # The interpreter would look for garbage in all that was loaded, which takes longer than most commands.
    gc.freeze()
    sys.exit(code if isinstance(code, int) else 0)
