"""How the command line says that something went wrong: one line, what to do, and an exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
import orjson

from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.interfaces.cli.common import echo, echo_json

INCOMPLETE, USAGE, MISSING, REFUSED, UNAVAILABLE, STOPPED = 1, 2, 3, 4, 5, 130

_CODES: Sequence[tuple[type[HeedfulError], int]] = (
    (Invalid, USAGE),
    (NotFound, MISSING),
    (Conflict, REFUSED),
    (Forbidden, REFUSED),
    (Unavailable, UNAVAILABLE),
)


def exit_code(error: HeedfulError) -> int:
    """What a script sees."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), INCOMPLETE)


def report(error: HeedfulError, command: click.Command, *, as_json: bool) -> None:
    """An error on standard error, in the words of the command line: what is wrong, then what to do."""
    message, remedy = (
        None if text is None else _reworded(text, command, error.field) for text in (error.message, error.remedy)
    )
    _print(error.code, str(message), error.field, remedy, as_json=as_json)


def report_usage(error: click.ClickException, *, as_json: bool) -> None:
    """A line that could not be read."""
    message = error.format_message().rstrip(".")
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "heedful"
    _print("usage", message[:1].lower() + message[1:], None, f"See: {path} --help", as_json=as_json)


def _print(code: str, message: str, field: str | None, remedy: str | None, *, as_json: bool) -> None:
    if as_json:
        body = {"code": code, "message": message, "field": field, "remedy": remedy}
        echo_json(orjson.dumps({"error": body}, option=orjson.OPT_INDENT_2).decode(), err=True)
        return
    echo(f"error: {message}", err=True)
    if remedy:
        echo(f"  {remedy}", err=True)


def _reworded(text: str, command: click.Command, field: str | None) -> str:
    """A text in which the parameters of the command have the names they have on the command line."""
    text = text.replace(", or pass api_key=…", "")
    for parameter in command.params:
        name = parameter.name or ""
        label = max(parameter.opts, key=len) if isinstance(parameter, click.Option) else name.upper()
        text = re.sub(rf"\b{name}=", f"{label} ", text)
        # Many names are words of English, too: they mean the parameter where it is the first word, or to be passed.
        if "_" in name or text.startswith("Pass "):
            text = re.sub(rf"(?<!-)\b{name}\b", label, text)
        elif name == field:
            text = re.sub(rf"^{name}(?= )", label, text)
    return text
