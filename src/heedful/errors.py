"""Everything Heedful raises on purpose.

HeedfulError
├── NotFound      what was named is not there (or is another project's)
├── Invalid       a value can't be accepted; also a ValueError
├── Conflict      the request contradicts what is stored
├── Forbidden     the caller may not do this
└── Unavailable   a store, model or server can't be used right now
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

__all__ = ["Conflict", "Forbidden", "HeedfulError", "Invalid", "NotFound", "Unavailable"]

MAX_QUOTED = 250
"""Characters of a value in a message: a name at its limit is quoted in full."""

MAX_MESSAGE = 2_000
"""Characters of a message, whatever it tells of."""


def quoted(value: Any, limit: int = MAX_QUOTED) -> str:
    """A value for a message, as Python writes it. It is never looked at further than it is shown: the `repr` of a long
    list is one step of the interpreter, in which no other thread runs.

    >>> quoted({"a": [0] * 1_000_000}, 40), quoted("a" * 1_000_000, 10), quoted(10**5_000)
    ("{'a': [0, 0, 0, 0, …]}", "'aaaaaaaa…", 'an integer of 16610 bits')
    """
    if isinstance(value, str | bytes | bytearray):
        text = repr(value[: limit + 1])
    elif isinstance(value, int) and value.bit_length() > 3 * limit:
        return f"an integer of {value.bit_length()} bits"
    elif isinstance(value, list | tuple | dict | set | frozenset) and value:
        text = _members(value, limit)
    else:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _members(values: Collection[Any], limit: int) -> str:
    """The first members. Each may take half of what is left, so that nothing is followed deep."""
    opening, closing = "[]" if isinstance(values, list) else "()" if isinstance(values, tuple) else "{}"
    texts: list[str] = []
    left = limit - 2
    for member in values:
        if left < 8:
            texts.append("…")
            break
        text = quoted(member, left // 2)
        if isinstance(values, dict):
            text = f"{text}: {quoted(values[member], left // 2)}"
        texts.append(text)
        left -= len(text) + 2
    return f"{opening}{', '.join(texts)}{',' if closing == ')' and len(texts) == 1 else ''}{closing}"


class HeedfulError(Exception):
    """The base of all errors; `code` is stable and `remedy` says what to do."""

    default_code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        value: Any = None,
        remedy: str | None = None,
    ) -> None:
        self.message = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
        self.code = code or self.default_code
        # Also one that the caller made up.
        self.field = None if field is None else field[:MAX_QUOTED]
        self.value = value
        self.remedy = remedy
        super().__init__(f"{self.message}. {remedy}" if remedy else self.message)


class NotFound(HeedfulError):
    """The named object does not exist here."""

    default_code = "not_found"

    @classmethod
    def in_project(cls, project: str, what: str, name: str, field: str, remedy: str | None = None) -> NotFound:
        """The error for an id that a project does not have: "no fact 'f1' in project 'main'"."""
        return cls(f"no {what} {name!r} in project {project!r}", field=field, value=name, remedy=remedy)


MAX_NAMED = 10
"""Projects that are named to somebody who names another."""


def no_dataset(project: str, dataset: str, known: Sequence[str]) -> NotFound:
    """The error for a dataset that is not among those of its project."""
    remedy = f"It has: {', '.join(known)}" if known else "Nothing was remembered in it yet"
    return NotFound(f"project {project!r} has no dataset {dataset!r}", field="dataset", value=dataset, remedy=remedy)


def no_project(name: str, known: Sequence[str], how: str | None = None) -> NotFound:
    """The error for a project that is not among those that are known; `how` says where to name another."""
    near = get_close_matches(name, known, 1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    others = f", and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    there = f"There are: {', '.join(known[:MAX_NAMED])}{others}" if known else "There is none yet"
    remedy = f"{meant}{there}" + (f"; choose one by {how}" if known and how else "")
    return NotFound(f"there is no project {name!r}", field="project", value=name, remedy=remedy)


class Invalid(HeedfulError, ValueError):
    """A value can't be accepted; nothing was changed."""

    default_code = "invalid"

    @classmethod
    def got(cls, field: str, problem: str, value: Any, remedy: str | None = None) -> Invalid:
        """The error for the value of a field: "limit must be a whole number, got 'ten'"."""
        return cls(f"{field} {problem}, got {quoted(value)}", field=field, value=value, remedy=remedy)

    @classmethod
    def unknown(cls, field: str, value: Any, choices: Iterable[str]) -> Invalid:
        """The error for a value that is not among those that a field may have."""
        remedy = f"Use one of {', '.join(choices)}"
        return cls(f"unknown {field} {quoted(value)}", field=field, value=value, remedy=remedy)

    @classmethod
    def from_validation(cls, error: ValidationError | Sequence[ErrorDetails]) -> Invalid:
        """The first problem of a pydantic error, in our words; of one that may be long, pass the `few_errors`."""
        first = _most_relevant(error.errors() if isinstance(error, ValidationError) else error)
        field = _place(first["loc"]) or "value"
        value = first.get("input")
        inner = first.get("ctx", {}).get("error")
        if isinstance(inner, cls):
            # A fault of the value as a whole has no field of its own.
            whole = inner.field in (None, "value") and bool(first["loc"])
            place = field if whole else _within(first["loc"], inner.field or "value")
            message = inner.message.removeprefix(inner.field or "").lstrip()
            return cls(f"{place} {message}", code=inner.code, field=place, value=inner.value, remedy=inner.remedy)
        if first["type"] == "missing":
            return cls(f"{field} is required", field=field, remedy=f"Pass {field}=…")
        if first["type"] == "extra_forbidden":
            # As it was written, even if it could be the name of no field.
            field = _within(first["loc"][:-1], str(first["loc"][-1]))
            remedy = "Check its name, or leave it out"
            return cls(f"{field} is not a field of it", field=field, value=value, remedy=remedy)
        if first["type"] == "too_long" and isinstance(value, list):
            return too_many(field, len(value), first["ctx"]["max_length"])
        return cls.got(field, first["msg"].removeprefix("Value error, ").removeprefix("Input "), value)


def too_many(field: str, count: int, limit: int) -> Invalid:
    """The error for a list of too many items."""
    remedy = "Send them in several calls"
    return Invalid(f"{field} has {count} items, the limit is {limit}", field=field, value=count, remedy=remedy)


class Conflict(HeedfulError):
    """The request contradicts what is stored."""

    default_code = "conflict"


class Forbidden(HeedfulError):
    """The caller may not do this."""

    default_code = "forbidden"


class Unavailable(HeedfulError):
    """Something this call needs can't be used right now."""

    default_code = "unavailable"


def extra_missing(extra: str, problem: str, code: str = "extra_missing") -> Unavailable:
    """The error where the packages of an extra are not installed."""
    remedy = f'Run: pip install "heedful[{extra}]", or in a clone of the repository: pip install ".[{extra}]"'
    return Unavailable(problem, code=code, remedy=remedy)


MAX_ERRORS = 100
"""Problems of one value whose details are built; more than its first is never reported."""


def few_errors(error: ValidationError, again: Callable[[], Any]) -> list[ErrorDetails]:
    """The first details of an error. All those of an object with a million unknown members would take more time and
    memory than reading it did: `again` validates the `first_members` of such a value."""
    if error.error_count() <= MAX_ERRORS:
        return error.errors()
    try:
        again()
    except ValidationError as fewer:
        # A member that was left out is not missing.
        if details := [detail for detail in islice(fewer.errors(), MAX_ERRORS) if detail["type"] != "missing"]:
            return details
    return [{"type": "too_many", "loc": (), "msg": f"has {error.error_count()} problems", "input": "…"}]


def first_members(value: Any) -> Any:
    """A value of JSON, with only so many members of each object that a few problems show."""
    if isinstance(value, dict):
        return {name: first_members(inner) for name, inner in islice(value.items(), MAX_ERRORS)}
    return [first_members(inner) for inner in value] if isinstance(value, list) else value


def _most_relevant(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """The first problem; where a value can be of several types, that of the type which fits the longest."""
    first = errors[0]
    for depth, part in enumerate(first["loc"]):
        if isinstance(part, str) and (part in _TYPES or not part.isidentifier()):
            alternatives = [error for error in errors if error["loc"][:depth] == first["loc"][:depth]]
            return max(alternatives, key=lambda error: len(error["loc"]))
    return first


def _place(path: Sequence[int | str]) -> str:
    """Where in a value a problem is: "signals[2].query". Parts that name a type, not a field, are left out."""
    named = [part for part in path if isinstance(part, int) or (part.isidentifier() and part not in _TYPES)]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in named).removeprefix(".")


def _within(path: Sequence[int | str], field: str) -> str:
    """A field of what is at a place."""
    return f"{_place(path)}{'' if field.startswith('[') else '.'}{field}".removeprefix(".")


_TYPES = frozenset({"str", "int", "float", "bool", "Document", "datetime"})
