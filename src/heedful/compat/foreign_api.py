"""The parts that the HTTP interface of a foreign system is made of; the server mounts its ROUTES.

`<system>.routes` has ROUTES, `error_body` and perhaps STATUSES (those that its clients know by another number). Nothing
here needs a server: a route is a function of the engine and a request that was read and authorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from heedful.engine import Heedful
from heedful.errors import Invalid, few_errors, first_members
from heedful.model import Page, Scope
from heedful.model.base import FailFastModel

Item = TypeVar("Item")

PAGE_LIMIT = 1_000
"""Items that are read at once."""


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
    projects: Callable[[], list[str]]
    """The names of the projects of the store, as far as the caller's key opens them."""
    opened: Callable[[str], Heedful]
    """One of these projects."""
    author: str | None = None
    """Who gives feedback, if the header X-Heedful-Author or the setting `foreign_author` names somebody."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of a form, by their names."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The other fields of a form."""


@dataclass(frozen=True, slots=True)
class ForeignRoute:
    method: str
    path: str
    handle: Callable[[Heedful, ForeignRequest], Any]
    """Returns what JSON or pydantic can say."""
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


class Body(FailFastModel):
    """A body or query; fields that mean nothing here are left out."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


Read = TypeVar("Read", bound=Body)


def read(model: type[Read], value: Any) -> Read:
    """The request as `model` reads it; its first problem is raised, under the kind that pydantic gives it."""
    adapter, given = TypeAdapter(model), {} if value is None else value
    try:
        return adapter.validate_python(given)
    except ValidationError as error:
        few = few_errors(error, lambda: adapter.validate_python(first_members(given)))
        invalid = Invalid.from_validation(few)
        invalid.code = few[0]["type"]
        raise invalid from None


def unsupported(prefix: str, methods_by_reason: Mapping[str, Mapping[str, str]]) -> Iterator[ForeignRoute]:
    """Routes that have no equivalent here: each answers 501 with its reason. `methods_by_reason` has the methods of
    each path, separated by blanks, under the reason."""
    for reason, paths in methods_by_reason.items():
        for path, methods in paths.items():
            for method in methods.split():
                yield ForeignRoute(method, prefix + path, partial(_refuse, reason), "read", status=501)


def _refuse(reason: str, store: Heedful, request: ForeignRequest) -> Any:
    return {"detail": reason}


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
