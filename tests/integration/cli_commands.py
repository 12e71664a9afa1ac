"""The commands of the command line, by what is typed."""

from __future__ import annotations

from collections.abc import Iterator

import click


def leaf_commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Each command that does something, such as ("sessions show", …)."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaf_commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command
