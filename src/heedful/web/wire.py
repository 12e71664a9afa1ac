"""Routes of other systems, as tables: the server authorises and reads, a handler only translates names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from heedful.engine import Heedful
from heedful.model import Scope


class Server(Protocol):
    """What spans projects; for callers whose key opens all of them."""

    def projects(self) -> list[str]:
        """The names of all projects."""

    def known(self, project: str) -> bool:
        """Whether there is such a project."""

    def opened(self, project: str) -> Heedful:
        """One project."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of another system's client, read and authorised."""

    path: Mapping[str, str]
    """Parameters of the path, decoded."""
    query: Mapping[str, str]
    """The last value of each."""
    every: Mapping[str, Sequence[str]]
    """All values of each parameter of the query, or of each field of a form."""
    body: Any
    """Parsed JSON; None without a body."""
    headers: Mapping[str, str]
    """By their names in lower case."""
    server: Server
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of a form, by their names."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The other fields of a form."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One route of another system."""

    method: str
    path: str
    handle: Callable[[Heedful, Asked], Any]
    """Returns what JSON or pydantic can say, or a `Reply`."""
    scope: Scope
    project: str | None = None
    """The parameter that names the project; None: the key's own."""
    status: int = 200
    keeps: tuple[str, ...] = ()
    """Names in a body with which it keeps something, for which the scope `write` is needed too."""
    queries: bool = False
    """Whether it may ask a connector's database, or reads SQL that somebody sent."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with a status of its own."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
