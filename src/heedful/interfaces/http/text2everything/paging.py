"""Lists in pages: the client asks for `skip` and `limit`, and reads what that gives by `page` and `per_page`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from heedful.errors import Invalid
from heedful.interfaces.problems import ForeignRequest
from heedful.model import limits
from heedful.sql import checks

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

    def of(self, items: Iterable[Item]) -> list[Item]:
        """The items to show, and one more if there is one."""
        return list(islice(items, self.start, self.start + self.count + 1))


def window(request: ForeignRequest, usual: int) -> Window:
    """What a request asks for; `usual` is the limit that the client sends when its user named none.

    With `page`, the client collects pages until one says that it is the last. So the usual limit then limits nothing:
    who names no limit gets all. Any other limit is kept.
    """
    skip = _number(request, "skip", 0, 0, limits.MAX_SKIP)
    limit = _number(request, "limit", usual, 1, MAX_PAGE)
    if "page" not in request.query:
        return Window(skip, limit, 1, ends=False)
    page = _number(request, "page", 1, 1, limits.MAX_SKIP)
    per_page = _number(request, "per_page", PER_PAGE, 1, MAX_PAGE)
    done = (page - 1) * per_page
    count = per_page if limit == usual else max(0, min(per_page, limit - done))
    return Window(skip + done, count, page, ends=limit != usual and done + count >= limit)


def paginate(
    items: Iterable[Item], request: ForeignRequest, usual: int, shown: Callable[[Item], Any]
) -> dict[str, Any]:
    """One page of a list that is read as far as needed; of a sequence, with its length."""
    part = window(request, usual)
    found = part.of(items)
    total = {"total": len(items)} if isinstance(items, Sequence) else {}
    return page([shown(each) for each in found[: part.count]], part, len(found) > part.count) | total


def page(items: Sequence[Any], part: Window, more: bool) -> dict[str, Any]:
    """A page as the client reads it; it goes on as long as `has_next` says so."""
    return {
        "items": list(items),
        "page": part.page,
        "page_size": part.count,
        "per_page": part.count,
        "has_next": more and not part.ends,
        "has_prev": part.start > 0,
    }


def has(request: ForeignRequest, *texts: str | None) -> bool:
    """Whether one of the texts has the words that are searched for, in any case."""
    sought = request.query.get("q", "").casefold()
    return any(sought in text.casefold() for text in texts if text is not None) or not sought


def _number(request: ForeignRequest, field: str, default: int, low: int, high: int) -> int:
    given = request.query.get(field)
    if given is None:
        return default
    try:
        return checks.whole_number(field, int(given), low, high)
    except ValueError as error:
        if isinstance(error, Invalid):
            raise
        raise Invalid(f"{field} must be a whole number, got {given!r}", field=field, value=given) from None
