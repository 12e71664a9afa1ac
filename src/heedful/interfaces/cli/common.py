"""What all commands share: opening the store, tables, JSON, progress and errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any

import click
import orjson
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

import heedful
from heedful import settings
from heedful.aio import AsyncHeedful
from heedful.bootstrap import remove_empty_store, store_file, store_projects
from heedful.engine import Heedful
from heedful.errors import Invalid, NotFound, Unavailable, no_project, quoted
from heedful.interfaces.cli.tables import FittingTable
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.model import DEFAULT_DATASET, Metadata, Page, Recall
from heedful.store import session_projects


@dataclass(frozen=True, slots=True)
class Options:
    """The options that hold for every command."""

    store: str | None
    project: str | None
    embedding: str | None
    language_model: str | None
    sessions: str | None
    wide: bool = False

    def open(self, *, worker: bool = True) -> Heedful | RemoteHeedful:
        """The store, or the server that has it; without a `worker`, jobs are left to others."""
        address = self.server
        if address is not None:
            self._check_nothing_local()
            return heedful.connect(address, project=self.project)
        return heedful.open(
            self.store,
            project=self.project,
            embedding=self.embedding,
            language_model=self.language_model,
            sessions=self.sessions,
            worker=worker,
        )

    async def aopen(self) -> AsyncHeedful:
        """The store, or the server that has it, for asyncio."""
        address = self.server
        if address is not None:
            self._check_nothing_local()
            return await heedful.aconnect(address, project=self.project)
        return await heedful.aopen(
            self.store,
            project=self.project,
            embedding=self.embedding,
            language_model=self.language_model,
            sessions=self.sessions,
        )

    def local(self, command: str) -> str | None:
        """The store, for a command that needs its file."""
        address = self.server
        if address is not None:
            raise Invalid(
                f"heedful {command} works on a store, and {address} is a server",
                field="store",
                value=address,
                remedy="Run it where the store is, with --store FILE",
            )
        return self.store

    @property
    def whole_store(self) -> bool:
        """Whether a store is named, and none of its projects."""
        return self.project is None and self.server is None

    @property
    def named_project(self) -> str | None:
        """The project that somebody named, here or in the settings; their default is nobody's choice."""
        config = settings.load()
        return self.project or (config.project if "project" in config.model_fields_set else None)

    @property
    def server(self) -> str | None:
        """The address of the server that is named as the store, if one is."""
        store = self.store or settings.load().store
        if not store.lower().startswith(("http://", "https://")):
            return None
        if self.store is None:
            settings.check_server_key()
        return store

    def _check_nothing_local(self) -> None:
        for name in ("embedding", "language_model", "sessions"):
            value = getattr(self, name)
            if value is not None:
                option = f"--{name.replace('_', '-')}"
                raise Invalid(
                    f"{option} can't be combined with a server, which has its own",
                    field=name,
                    value=value,
                    remedy=f"Leave it out, or start the server with it: heedful {option} … serve",
                )


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
yes: Decorator = click.option("-y", "--yes", is_flag=True, help="Don't ask.")
dataset: Decorator = click.option(
    "-d", "--dataset", metavar="NAME", default=DEFAULT_DATASET, show_default=True, help="The set of facts."
)
cursor: Decorator = click.option("--cursor", metavar="TEXT", help="The next_cursor of the page before.")
if_match: Decorator = click.option(
    "--if-match",
    metavar="ETAG",
    help="Only if it has not changed since you read it: its heedful.etag, or the header ETag.",
)
idempotency_key: Decorator = click.option(
    "--idempotency-key", metavar="KEY", help="The same call with the same key counts once."
)
newest_first: Decorator = click.option("--newest-first", is_flag=True, help="Newest first.")

limit: Decorator = click.option("-n", "--limit", default=100, show_default=True, help="How many at most.")


def more(page: Page[Any] | Recall) -> None:
    """Says how to go on, if there is more."""
    if page.next_cursor is not None:
        echo(f"there is more: --cursor {page.next_cursor}")


WIDE = 400
"""Columns where nothing has to fit: in a file, in a pipe, and with --wide."""


def console() -> Screen:
    """Standard output, as wide as the terminal; elsewhere wide, so that lines can be searched."""
    context = click.get_current_context(silent=True)
    options = None if context is None else context.find_root().obj
    screen = Screen(highlight=False, soft_wrap=False)
    if screen.is_terminal and not (isinstance(options, Options) and options.wide):
        return screen
    # Without a height, Rich takes a dumb terminal for one of 80 columns, whatever the width.
    return Screen(highlight=False, width=WIDE, height=25)


def print_json(value: BaseModel | Mapping[str, object] | Sequence[object]) -> None:
    """A result as JSON, with the names it has in Python."""
    plain = to_jsonable_python(value if isinstance(value, BaseModel | Mapping) else list(value))
    echo_json(orjson.dumps(plain, option=orjson.OPT_INDENT_2).decode())


def table(*columns: str, numbers: Sequence[str] = (), less: Sequence[str] = ()) -> FittingTable:
    """A table; columns of numbers are aligned to the right, and those of `less` are left out where there is no room."""
    return FittingTable(columns, numbers, less)


def shortened(text: str, limit: int = 70) -> str:
    """A text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "fact"), counted(2, "fact")
    ('1 fact', '2 facts')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def done(message: str, name: str, as_json: bool) -> None:
    """Says that something was done, for commands whose result is nothing more."""
    if as_json:
        print_json({"done": message, "id": name})
    else:
        echo(message)


def confirm(question: str, yes: bool) -> None:
    """Asks before something is deleted, unless somebody said `yes`; any other answer ends the command."""
    if not yes:
        click.confirm(question, abort=True, err=True)


def pairs(field: str, items: Sequence[str]) -> Metadata | None:
    """KEY=VALUE options as a mapping; a value that reads as JSON is that, any other is text."""
    result: Metadata = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise Invalid(f"{field} is {quoted(item)}", field=field, value=item, remedy="Write it as KEY=VALUE")
        try:
            result[key] = orjson.loads(value)
        except orjson.JSONDecodeError:
            result[key] = value
    return result or None


@contextmanager
def extra(name: str, feature: str) -> Iterator[None]:
    """Inside, what is imported comes with an extra; without it, an error says how to get it."""
    try:
        yield
    except ImportError as error:
        raise Unavailable(
            f"{feature} needs an extra ({error.name} is missing)",
            code="extra_missing",
            remedy=f'Run: pip install "heedful[{name}]"',
        ) from error


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, shown on a terminal only."""
    screen = Screen(stderr=True)
    bar = Progress(
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )
    with bar:
        task = bar.add_task(title, total=None)

        def show(completed: int, total: int) -> None:
            bar.update(task, completed=completed, total=total)

        yield show


PATIENCE = 1.0
"""Seconds after which a terminal shows that something is being done."""


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """What may take a while, and has no progress of its own: a terminal shows the title after a second."""
    screen = Screen(stderr=True)
    status = screen.status(f"{title}…")
    timer = threading.Timer(PATIENCE, status.start)
    if screen.is_terminal:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        status.stop()


Command = Callable[..., Any]


class NewStore:
    """A store that this command makes, if there was none: a command that fails leaves no empty one."""

    def __init__(self, options: Options) -> None:
        """Made before the command begins, to see whether there is a store."""
        file = None if options.server else store_file(options.store or settings.load().store)
        self._file: Path | None = file if file is not None and not file.exists() else None

    def discard_empty(self) -> None:
        """Removes the store that was made, unless something was written to it or somebody else has opened it."""
        if self._file is not None and self._file.exists():
            remove_empty_store(self._file)


def needs_project(command: Command) -> Command:
    """In place of `click.pass_obj`, for a command about what a project has: the project and its store must be there.

    A store that has no project yet is there for the project that nobody named.
    """
    return _checked(command, lambda options: options.project or settings.load().project)


def needs_store(command: Command) -> Command:
    """The same, for a command about a whole store: a project must be there only if somebody names one."""
    return _checked(command, lambda options: options.named_project)


def _checked(command: Command, project_of: Callable[[Options], str | None]) -> Command:
    @click.pass_obj
    @wraps(command)
    def run(options: Options, *args: Any, **kwargs: Any) -> Any:
        if options.server is None:
            _check(options, project_of(options))
        return command(options, *args, **kwargs)

    return run


def _check(options: Options, project: str | None) -> None:
    config = settings.load(store=options.store)
    store, sessions = options.store or config.store, options.sessions or config.sessions
    try:
        projects = store_projects(store)
    except NotFound as error:
        # Whoever has sessions in MongoDB may have no facts yet.
        if project is None or project not in session_projects(sessions):
            raise _missing(error) from None
        echo(f"note: {error.message}; it is created now, for the sessions of project {project}", err=True)
        return
    if project is None or project in projects or (not projects and options.named_project is None):
        return
    projects += session_projects(sessions)
    if project not in projects:
        raise no_project(project, projects, "heedful --project NAME …")


def _missing(error: NotFound) -> NotFound:
    """The error with what the store may be called instead."""
    file = Path(str(error.value))
    stores = {path.stem: str(path) for path in sorted(file.parent.glob("*.db")) if path != file}
    near = [stores[name] for name in get_close_matches(file.stem, stores)]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return NotFound(
        error.message,
        code=error.code,
        field="store",
        value=error.value,
        remedy=f"{hint}Check --store, HEEDFUL_STORE and the folder you are in; heedful remember makes a new store",
    )


_UNSAFE = re.compile(
    # Controls except tab and line feed, C1 controls, separators that break lines, and what changes the direction.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    r"""A text with its control characters written out, so that a terminal shows them and does not obey them.

    >>> visible("red: \x1b[31m")
    'red: \\x1b[31m'
    """
    return _UNSAFE.sub(_written_out, text.replace("\r\n", "\n"))


def visible_json(text: str) -> str:
    """The same for JSON, which stays JSON and means the same."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Prints a line; without `nl`, a text that ends its own lines."""
    click.echo(visible(text), err=err, nl=nl)


def echo_json(text: str, *, err: bool = False) -> None:
    """Prints JSON."""
    click.echo(visible_json(text), err=err)


class Screen(Console):
    """A console on which texts are shown by `visible`, also those in tables."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
