"""The parts that the HTTP interface of a foreign system is made of; the server mounts its ROUTES.

`<system>.routes` has ROUTES, STATUSES (statuses that its clients know by another number) and `error_body`. Nothing here
needs a server: a route is a function of the engine and a request that was read and authorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from heedful.engine import Heedful
from heedful.errors import Invalid, few_errors, first_members
from heedful.model import Page, Scope
from heedful.model.base import FailFastModel

Item = TypeVar("Item")

PAGE_LIMIT = 1_000
"""Items that are read at once."""


class Server(Protocol):
    """The projects of the store, as far as a caller's key opens them."""

    def projects(self) -> list[str]:
        """The names of the projects that exist."""

    def opened(self, project: str) -> Heedful:
        """One project."""


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """A request of another system's client, read and authorised."""

    path: Mapping[str, str]
    """Parameters of the path, decoded."""
    query: Mapping[str, str]
    """The last value of each."""
    every: Mapping[str, Sequence[str]]
    """All values of each parameter of the query, or of each field of a form."""
    body: Any
    """Parsed JSON; None without a body."""
    server: Server
    author: str | None = None
    """Who gives feedback, if the header X-Heedful-Author or the setting `foreign_author` names somebody."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of a form, by their names."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The other fields of a form."""


@dataclass(frozen=True, slots=True)
class ForeignRoute:
    """One route of another system."""

    method: str
    path: str
    handle: Callable[[Heedful, ForeignRequest], Any]
    """Returns what JSON or pydantic can say, or a `Reply`."""
    scope: Scope
    project: str | None = None
    """The parameter that names the project; None: the key's own."""
    status: int = 200
    writes_with: tuple[str, ...] = ()
    """Names in a body with which it writes, so that the scope `write` is needed too."""
    queries: bool = False
    """Whether it may ask a connector's database, or reads SQL that somebody sent."""
    batch: bool = False
    """Whether feedback comes by the thousands, so that only the server's own limit bounds the body."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with a status of its own."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Body(FailFastModel):
    """A body or query; fields that mean nothing here are left out."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


Read = TypeVar("Read", bound=Body)


def read(model: type[Read], value: Any, fallback: Any = None) -> Read:
    """The request as `model` reads it; its first problem is raised, under the kind that pydantic gives it."""
    adapter, given = TypeAdapter(model), fallback if value is None else value
    try:
        return adapter.validate_python(given)
    except ValidationError as error:
        few = few_errors(error, lambda: adapter.validate_python(first_members(given)))
        invalid = Invalid.from_validation(few)
        kind = few[0]["type"]
        remedy = invalid.remedy
        raise Invalid(invalid.message, code=kind, field=invalid.field, value=invalid.value, remedy=remedy) from None


def unsupported(prefix: str, methods_by_reason: Mapping[str, Mapping[str, str]]) -> Iterator[ForeignRoute]:
    """Routes that have no equivalent here: each answers 501 with its reason. `methods_by_reason` has the methods of
    each path, separated by blanks, under the reason."""
    for reason, paths in methods_by_reason.items():
        for path, methods in paths.items():
            for method in methods.split():
                yield ForeignRoute(method, prefix + path, partial(_refuse, reason), "read")


def _refuse(reason: str, store: Heedful, request: ForeignRequest) -> Reply:
    return Reply(501, {"detail": reason})


def problem(error: Invalid) -> dict[str, Any]:
    """An error as FastAPI lists it: where, what, and of which kind."""
    parts = (error.field or "").replace("[", ".").replace("]", "").split(".")
    where = [int(part) if part.isdecimal() else part for part in parts if part and part != "value"]
    return {"loc": ["body", *where], "msg": str(error), "type": error.code}


def every(listing: Callable[..., Page[Item]], *names: str, limit: int | None = None, **filters: Any) -> Iterator[Item]:
    """The items of all pages of a list, each page read when it is needed."""
    cursor = None
    while True:
        page = listing(*names, cursor=cursor, limit=limit or PAGE_LIMIT, **filters)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return
