"""Commands about what is there: one that names a store or a project by mistake is told so, and makes neither."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any

import click

from heedful import settings
from heedful.cli.common import Options
from heedful.cli.output import echo
from heedful.errors import NotFound, no_project
from heedful.opening import remove_empty_store, session_projects, store_file, store_projects

Command = Callable[..., Any]


class NewStore:
    """A store that this command makes, if there was none: a command that fails leaves no empty one."""

    def __init__(self) -> None:
        self._file: Path | None = None

    def look(self, options: Options) -> None:
        """Looks whether there is a store before the command begins."""
        file = None if options.server else store_file(options.store or settings.load().store)
        self._file = file if file is not None and not file.exists() else None

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


def _checked(command: Command, wanted: Callable[[Options], str | None]) -> Command:
    @click.pass_obj
    @wraps(command)
    def run(options: Options, *given: Any, **named: Any) -> Any:
        # A command's own --store goes before the one that stands before the command.
        chosen = replace(options, store=named.get("store") or options.store)
        if chosen.server is None:
            _check(chosen, wanted(chosen))
        return command(options, *given, **named)

    return run


def _check(options: Options, project: str | None) -> None:
    given = settings.load()
    store, elsewhere = options.store or given.store, options.sessions or given.sessions
    try:
        known = store_projects(store)
    except NotFound as error:
        # Whoever has sessions in MongoDB may have no facts yet.
        if project is None or project not in session_projects(elsewhere):
            raise _missing(error) from None
        echo(f"note: {error.message}; it is made now, for the sessions of project {project}", err=True)
        return
    if project is None or project in known or (not known and options.named_project is None):
        return
    known += session_projects(elsewhere)
    if project not in known:
        raise no_project(project, known, "heedful --project NAME …")


def _missing(error: NotFound) -> NotFound:
    """The error with what the store may be called instead."""
    file = Path(str(error.value))
    others = {each.stem: str(each) for each in sorted(file.parent.glob("*.db")) if each != file}
    near = [others[name] for name in get_close_matches(file.stem, others)]
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return NotFound(
        error.message,
        code=error.code,
        field="store",
        value=error.value,
        remedy=f"{meant}Check --store, HEEDFUL_STORE and the folder you are in; heedful remember makes a new store",
    )
