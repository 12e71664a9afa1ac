"""What a page and an action are made of. A module of `pages` lists its own as PAGES and ACTIONS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import Response

from heedful.errors import HeedfulError
from heedful.interfaces.operations import OPERATIONS
from heedful.model import Scope

if TYPE_CHECKING:
    from heedful.interfaces.dashboard.context import PageContext


@dataclass(frozen=True, slots=True)
class Page:
    """Something to look at, under the address of a project."""

    path: str
    """Such as "/sessions/{session_id}"; what is in braces is in `here.path`."""
    work: Callable[[PageContext], Response]
    scope: Scope = "read"


@dataclass(frozen=True, slots=True)
class Undo:
    """The action that undoes another one."""

    action: str
    fields: Mapping[str, str]
    back: str | None = None
    """Where to go afterwards; by default, the page about it."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action did, shown on the next page."""

    message: str
    to: str | None = None
    """Where to go on; where the form was, if left out."""
    undo: Undo | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do: a form that is posted to /p/{project}/do/{name}, with its fields in `here.form`.

    A form that is posted twice is done once.
    """

    name: str
    operation: str
    """The operation of the engine that it is; who may call that one may do this."""
    about: str
    """What somebody is about to do: "correct this fact"."""
    work: Callable[[PageContext], ActionResult | Response]
    editable: tuple[str, ...] = field(default=())
    """The fields that people type, which they see again when it could not be done at once."""
    refused: Callable[[PageContext, HeedfulError], Response] | None = None
    """What is shown when it could not be done, in place of the form by itself."""

    @property
    def scope(self) -> Scope:
        return OPERATIONS[self.operation].scope


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the navigation."""

    name: str
    title: str
    key: str | None = None
    """The letter that leads there, after g."""
    scope: Scope = "read"
