"""The screen of a command: lines, JSON, tables that fit, progress, and errors with their exit codes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any

import click
import orjson
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.model import Page, Recall
from heedful.text import shortened

Result = BaseModel | Mapping[str, object] | Sequence[object]

WIDE = 400
"""Columns where nothing has to fit: in a file, in a pipe, and with --wide."""

GAP = 2
"""The space between two columns."""

MIN_TEXT = 24
"""The least that a column of text is given before something else is left out."""

MIN_MAIN_TEXT = 44
"""The same for the longest one, which is what people read."""

PATIENCE = 1.0
"""Seconds after which a terminal shows that something is being done."""

_UNSAFE = re.compile(
    # Controls except tab and line feed, C1 controls, separators that break lines, and what changes the direction.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    r"""A text with its control characters written out, so that a terminal shows them and does not obey them.

    >>> visible("red: \x1b[31m")
    'red: \\x1b[31m'
    """
    return _UNSAFE.sub(
        lambda match: f"\\x{ord(match[0]):02x}" if match[0] < "\u0100" else f"\\u{ord(match[0]):04x}",
        text.replace("\r\n", "\n"),
    )


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Prints a line; without `nl`, a text that ends its own lines."""
    click.echo(visible(text), err=err, nl=nl)


def echo_json(text: str, *, err: bool = False) -> None:
    """Prints JSON, which stays JSON and means the same when its control characters are written out."""
    click.echo(_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text), err=err)


def print_json(value: Result, *, err: bool = False) -> None:
    """A result as JSON, with the names it has in Python."""
    plain = to_jsonable_python(list(value) if isinstance(value, Sequence) else value)
    echo_json(orjson.dumps(plain, option=orjson.OPT_INDENT_2).decode(), err=err)


def show_result(result: Result, as_json: bool, show: Callable[[Any], str | None]) -> None:
    """Prints a result, as JSON or by a function, which prints it or returns its text."""
    if as_json:
        print_json(result)
    elif (text := show(result)) is not None:
        echo(text)


class Screen(Console):
    """A console on which texts are shown by `visible`, also those in tables."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def console() -> Screen:
    """Standard output, as wide as the terminal; elsewhere wide, so that lines can be searched."""
    context = click.get_current_context(silent=True)
    options = None if context is None else context.find_root().obj
    screen = Screen(highlight=False, soft_wrap=False)
    if screen.is_terminal and not getattr(options, "wide", False):
        return screen
    # Without a height, Rich takes a dumb terminal for one of 80 columns, whatever the width.
    return Screen(highlight=False, width=WIDE, height=25)


def minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def percent(share: float | None) -> str:
    """A share in words; nothing if it is unknown."""
    return "" if share is None else f"{share:.1%}"


def more(page: Page[Any] | Recall) -> None:
    """Prints how to go on, if there is more."""
    if page.next_cursor is not None:
        echo(f"there is more: --cursor {page.next_cursor}")


Column = str | tuple[str, str | Callable[[Any], object]]
"""Columns of a table: names of attributes, with a "|" between two; a title may stand before a name, as in
"created=created_at". Or a title with an attribute or a function of the item. An attribute may be followed by a format,
as in an f-string, which for a text is how long it may be: "question:40"."""


def show_table(
    items: Page[Any] | Iterable[Any],
    *columns: Column,
    numbers: Sequence[str] = (),
    less: Sequence[str] = (),
    empty: str | None = None,
    style: Callable[[Any], str | None] = lambda item: None,
) -> None:
    """Prints a table of items, and how to go on if they are a page of more; or, if there are none, the line `empty`.

    Columns of `less` are left out where there is no room. Columns with numbers are aligned to the right, and those of
    texts that `numbers` names.
    """
    rows = list(items.items if isinstance(items, Page) else items)
    if not rows and empty is not None:
        echo(empty)
        return
    sources = [source for column in columns for source in _sources(column)]
    values = [[_value(item, source) for _, source in sources] for item in rows]
    aligned = [
        title
        for (title, _), cells in zip(sources, zip(*values, strict=True), strict=False)
        if title in numbers or any(isinstance(value, int | float) for value, _ in cells)
    ]
    table = FittingTable([title for title, _ in sources], aligned, less)
    for item, row in zip(rows, values, strict=True):
        table.add_row(*(_cell(value, form) for value, form in row), style=style(item))
    console().print(table)
    if isinstance(items, Page):
        more(items)


def _sources(column: Column) -> Iterator[tuple[str, str | Callable[[Any], object]]]:
    if isinstance(column, tuple):
        yield column
        return
    for part in column.split(" | "):
        title, _, source = part.partition("=")
        yield title.partition(":")[0], source or part


def _value(item: Any, source: str | Callable[[Any], object]) -> tuple[object, str]:
    if not isinstance(source, str):
        return source(item), ""
    attribute, _, form = source.partition(":")
    return attrgetter(attribute)(item), form


def _cell(value: object, form: str) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:{form}}" if form else minute(value)
    if isinstance(value, str):
        return escape(shortened(value, int(form)) if form else value)
    return format(value, form)


class FittingTable:
    """A table without frames.

    Where there is no room, the columns `less` are left out, the first ones first. If that is not enough, ids move
    below the longest text of their row. Without rows, it says that there are none.
    """

    def __init__(self, columns: Sequence[str], numbers: Sequence[str] = (), less: Sequence[str] = ()) -> None:
        self._columns, self._numbers, self._less = columns, numbers, less
        self._rows: list[tuple[list[str], str | None]] = []

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Adds a row; cells that are missing at its end are empty."""
        self._rows.append(([*cells, *[""] * (len(self._columns) - len(cells))], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            yield "none"
            return
        widths = [
            max(cell_len(line) for cell in cells for line in console.render_str(cell).plain.split("\n"))
            for cells in zip(self._columns, *(cells for cells, _ in self._rows), strict=True)
        ]
        visible = list(range(len(self._columns)))
        for name in self._less:
            if self._needed(visible, widths) > options.max_width:
                visible.remove(self._columns.index(name))
        ids = [index for index in visible if _is_id(self._columns[index])]
        texts = [index for index in visible if index not in ids and self._columns[index] not in self._numbers]
        if self._needed(visible, widths) <= options.max_width or not texts:
            yield self._table(visible, [], 0, widths)
        else:
            rest = [index for index in visible if index not in ids]
            yield self._table(rest, ids, max(texts, key=widths.__getitem__), widths)

    def _table(self, visible: Sequence[int], below: Sequence[int], text: int, widths: Sequence[int]) -> Table:
        """The table of the columns `visible`; the ids `below` are in the column of the `text`."""
        result = Table(box=None, pad_edge=False, header_style="bold")
        for index in visible:
            name = self._columns[index]
            result.add_column(
                name,
                justify="right" if name in self._numbers else "left",
                overflow="fold",
                no_wrap=_is_id(name),
                min_width=max((widths[column] for column in below), default=None) if index == text else None,
            )
        for cells, style in self._rows:
            ids = [f"[dim]{cells[index]}[/dim]" for index in below if cells[index]]
            shown = ["\n".join([cells[index], *ids]) if index == text and below else cells[index] for index in visible]
            result.add_row(*shown, style=style)
        return result

    def _needed(self, visible: Sequence[int], widths: Sequence[int]) -> int:
        """The least width at which these columns can be read."""
        texts = sorted(widths[index] for index in visible if not _is_id(self._columns[index]))
        ids = sum(widths[index] for index in visible if _is_id(self._columns[index]))
        least = [min(width, MIN_TEXT) for width in texts[:-1]] + [min(width, MIN_MAIN_TEXT) for width in texts[-1:]]
        return ids + sum(least) + GAP * (len(visible) - 1)


def _is_id(column: str) -> bool:
    """Whether a column has what is copied or compared, which is not broken over lines."""
    return column == "id" or column.endswith("_id") or column.startswith("checksum")


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, shown on a terminal only."""
    screen = Screen(stderr=True)
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
    with bar:
        task = bar.add_task(title, total=None)
        yield lambda completed, total: bar.update(task, completed=completed, total=total)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Work that may take a while, and has no progress of its own: a terminal shows the title after a second."""
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


INCOMPLETE, USAGE, MISSING, REFUSED, UNAVAILABLE, STOPPED = 1, 2, 3, 4, 5, 130

_CODES = {Invalid: USAGE, NotFound: MISSING, Conflict: REFUSED, Forbidden: REFUSED, Unavailable: UNAVAILABLE}


def exit_code(error: HeedfulError) -> int:
    """The exit code that a script sees."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), INCOMPLETE)


def report(
    error: HeedfulError | click.ClickException | click.Abort,
    all_commands: click.Group,
    command: click.Command,
    *,
    as_json: bool,
) -> int:
    """An error on standard error, in the words of the command line: what is wrong, then what to do; returns the exit
    code."""
    if isinstance(error, click.Abort):
        echo("stopped", err=True)
        return STOPPED if isinstance(error.__cause__, KeyboardInterrupt) else INCOMPLETE
    remedy: str | None
    if isinstance(error, click.ClickException):
        # A line that could not be read.
        message = error.format_message().rstrip(".")
        message = message[:1].lower() + message[1:]
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "heedful"
        code, field, remedy, exit_with = "usage", None, f"See: {path} --help", error.exit_code
    else:
        code, field, exit_with = error.code, error.field, exit_code(error)
        message = _reworded(error.message, command, field)
        remedy = (
            None
            if error.remedy is None
            else _reworded(_CALL.sub(partial(_as_command, all_commands), error.remedy), command, field)
        )
    if as_json:
        print_json({"error": {"code": code, "message": message, "field": field, "remedy": remedy}}, err=True)
    else:
        echo(f"error: {message}" + (f"\n  {remedy}" if remedy else ""), err=True)
    return exit_with


_CALL = re.compile(r"\b(?:(\w+)\.)?(\w+)\(([^()]*)\)")
_SPELLED = {
    "golden_examples": "golden",
    "chat": "cache",
    "create": "add",
    "get": "show",
    "delete": "remove",
    "create_token": "token",
    "create_positive": "add",
    "create_negative": "add",
}
"""Words of calls that commands have another word for."""


def _as_command(all_commands: click.Group, call: re.Match[str]) -> str:
    """A call in Python as the command that does the same, if there is one."""
    named: click.Command | None = all_commands
    words = [_SPELLED.get(word, word).replace("_", "-") for word in call.groups()[:2] if word]
    words = ["connect"] if words == ["connectors", "add"] else words
    for word in words:
        named = named.commands.get(word) if isinstance(named, click.Group) else None
    if named is None:
        return call[0]
    for given in filter(None, call[3].split(", ")):
        name, equals, value = given.partition("=")
        option = [f"--{name.replace('_', '-')}", value]
        words += option if equals else [given.upper() if given.isidentifier() else given]
    return " ".join(["heedful", *words])


def _reworded(text: str, command: click.Command, field: str | None) -> str:
    """A text in which the parameters of the command have the names they have on the command line."""
    text = text.replace(", or pass api_key=…", "")
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.metavar is not None:
            continue
        name = parameter.name or ""
        label = max(parameter.opts, key=len) if isinstance(parameter, click.Option) else name.upper()
        text = re.sub(rf"\b{name}=True\b", label, text)
        text = re.sub(rf"\b{name}=", f"{label} ", text)
        # Many names are words of English, too: they mean the parameter where it is the first word, or to be passed.
        if "_" in name or text.startswith("Pass "):
            text = re.sub(rf"(?<!-)\b{name}\b", label, text)
        elif name == field:
            text = re.sub(rf"^{name}(?= )", label, text)
    return text
