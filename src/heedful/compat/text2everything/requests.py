"""Requests of text2everything's client: fields of the body, parameters of the query, pages of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from heedful.api import checks
from heedful.compat.foreign_api import ForeignRequest, ForeignRoute
from heedful.engine import Heedful, project_of
from heedful.errors import Invalid, NotFound, quoted
from heedful.model import Scope, limits


def project_route(
    method: str, path: str, handle: Callable[[Heedful, ForeignRequest], Any], scope: Scope, **options: bool
) -> ForeignRoute:
    return ForeignRoute(method, "/api/projects/{project_id}" + path, handle, scope, "project_id", **options)  # type: ignore[arg-type]


def body(request: ForeignRequest) -> dict[str, Any]:
    """The body, which is an object."""
    if not isinstance(request.body, dict):
        raise Invalid("the body of the request must be a JSON object", field="body")
    return request.body


def text(request: ForeignRequest, field: str) -> str:
    """A text that must be there."""
    value = optional(request, field)
    if value is None:
        raise Invalid(f"{field} is required and must not be blank", field=field)
    return value


def optional(request: ForeignRequest, field: str) -> str | None:
    """A text that may be missing, null or blank."""
    value = body(request).get(field)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{field} must be a string, got {quoted(value)}", field=field, value=value)
    return value if value is not None and value.strip() else None


def flag(request: ForeignRequest, field: str, default: bool = False) -> bool:
    """True or false; null is the default."""
    value = body(request).get(field)
    return default if value is None else checks.flag(field, value)


def query_flag(request: ForeignRequest, field: str) -> bool | None:
    """True or false in the query, if it is there."""
    value = request.query.get(field)
    if value is None:
        return None
    if value.lower() not in ("true", "false"):
        raise Invalid(f"{field} must be true or false, got {quoted(value)}", field=field, value=value)
    return value.lower() == "true"


def ids(request: ForeignRequest) -> list[str]:
    value = body(request).get("ids")
    if not isinstance(value, list) or not value or not all(isinstance(entity_id, str) for entity_id in value):
        raise Invalid("ids must be a list of at least one id", field="ids", value=value)
    return value


def bulk(delete: Callable[[str], object], request: ForeignRequest) -> dict[str, Any]:
    """Deletes these ids, and reports those that were not there."""
    entity_ids = dict.fromkeys(ids(request))
    failed = []
    for entity_id in entity_ids:
        try:
            delete(entity_id)
        except NotFound:
            failed.append(entity_id)
    return {"deleted_count": len(entity_ids) - len(failed), "failed_ids": failed}


def project(heedful: Heedful) -> str:
    return project_of(heedful).name


PER_PAGE = 50
MAX_PAGE = limits.MAX_LIST

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that one request asks for."""

    start: int
    count: int
    page: int
    ends: bool
    """Whether nothing behind it is wanted, even if there is more."""


def window(request: ForeignRequest, usual: int) -> Window:
    """The part that a request asks for; `usual` is the limit that the client sends when its user named none.

    With `page`, the client collects pages until one says that it is the last. So the usual limit then limits nothing:
    who names no limit gets all. Any other limit is kept.
    """
    skip = _number(request, "skip", 0, 0, limits.MAX_SKIP)
    limit = _number(request, "limit", usual, 1, MAX_PAGE)
    if "page" not in request.query:
        return Window(skip, limit, 1, ends=False)
    page = _number(request, "page", 1, 1, limits.MAX_SKIP)
    per_page = _number(request, "per_page", PER_PAGE, 1, MAX_PAGE)
    offset = (page - 1) * per_page
    count = per_page if limit == usual else max(0, min(per_page, limit - offset))
    return Window(skip + offset, count, page, ends=limit != usual and offset + count >= limit)


def paginate(
    items: Iterable[Item], request: ForeignRequest, usual: int, convert: Callable[[Item], Any]
) -> dict[str, Any]:
    """One page of a list that is read as far as needed; of a sequence, with its length."""
    part = window(request, usual)
    # One more than is shown, to know whether there is a next page.
    chunk = list(islice(items, part.start, part.start + part.count + 1))
    total = {"total": len(items)} if isinstance(items, Sequence) else {}
    return page([convert(item) for item in chunk[: part.count]], part, len(chunk) > part.count) | total


def page(items: Sequence[Any], part: Window, has_more: bool) -> dict[str, Any]:
    """A page as the client reads it; it goes on as long as `has_next` says so."""
    return {
        "items": list(items),
        "page": part.page,
        "page_size": part.count,
        "per_page": part.count,
        "has_next": has_more and not part.ends,
        "has_prev": part.start > 0,
    }


def has(request: ForeignRequest, *texts: str | None) -> bool:
    """Whether one of the texts has the words that are searched for, in any case."""
    term = request.query.get("q", "").casefold()
    return any(term in text.casefold() for text in texts if text is not None) or not term


def _number(request: ForeignRequest, field: str, default: int, low: int, high: int) -> int:
    value = request.query.get(field)
    if value is None:
        return default
    try:
        number = int(value)
    except ValueError:
        raise Invalid(f"{field} must be a whole number, got {quoted(value)}", field=field, value=value) from None
    return checks.whole_number(field, number, low, high)


CUSTOM_TOOLS = "custom tools: they are programs of another server"
AGENTS = "agents: a question is answered by proven SQL, or by SQL that the language model writes"
AUTOMATIC = "automatic feedback: only what people say proves SQL"
PRESETS = "chat presets and prompt templates: they configure another server's chat"
COLLECTIONS = "collections: they are another server's; texts are facts in the datasets contexts and schema_metadata"
SPLITS = "split groups: a schema text is kept whole"
PROJECTS = "the deletion of a whole project: delete what is in it, or its store"


def missing(feature: str) -> NotFound:
    """The error for something that Heedful doesn't have; `feature` has the reason after a colon."""
    name, _, reason = feature.partition(": ")
    return NotFound(f"not part of Heedful: {name} ({reason})", code="not_part_of_heedful")
