"""Everything the command line prints goes through here: text that people wrote can't steer a terminal."""

from __future__ import annotations

import re
from typing import Any

import click
from rich.console import Console
from rich.text import Text

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
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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


def _written_out(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
