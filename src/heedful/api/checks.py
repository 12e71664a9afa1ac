"""Arguments that can't be accepted are refused by name, before anything is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import orjson

from heedful.clock import from_stored, to_stored
from heedful.errors import Conflict, Invalid, NotFound, quoted, too_many
from heedful.model import (
    POLICY_NAMES,
    Metadata,
    Model,
    PolicyName,
    Reuse,
    author_name,
    etag,
    limits,
    printable,
    source_name,
    storable,
)

Choice = TypeVar("Choice", bound=str)


def name(field: str, value: Any) -> str:
    """A project's or dataset's name."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid.got(field, "must be a name", value)
    if len(value) > limits.MAX_NAME:
        raise _too_long(field, value, limits.MAX_NAME)
    return _named(field, printable, value)


def source(value: Any) -> str:
    """Where a text is from: a name, a path or an address."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid.got("source", "must be a name", value)
    return _named("source", source_name, value)


def identifier(field: str, value: Any) -> str:
    """The id of something; whether it exists is another question."""
    if not isinstance(value, str) or not value:
        raise Invalid.got(field, "must be a non-empty text", value)
    return _named(field, storable, value)


def no_fact(project: str, fact_id: str, field: str = "fact_id") -> NotFound:
    """The error for a fact that is not there."""
    remedy = "Use a fact_id that recall(…), facts() or the evidence of a review item shows"
    return NotFound.in_project(project, "fact", fact_id, field, remedy)


def any_text(field: str, value: Any, limit: int | None = None) -> str:
    """A text, which may be empty."""
    if not isinstance(value, str):
        raise Invalid.got(field, "must be a text", value)
    if limit is not None and len(value) > limit:
        raise Invalid(f"{field} has {len(value)} characters, the limit is {limit}", field=field, value=value[:50])
    return _named(field, storable, value)


def flag(field: str, value: Any) -> bool:
    """True or false; other values would mean something else than they say."""
    if not isinstance(value, bool):
        raise Invalid.got(field, "must be true or false", value)
    return value


def boost(value: Any) -> bool | float | None:
    """Whether usefulness counts, with which weight, or None where the policy decides."""
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        remedy = "Leave it out to rank by the policy of the project"
        raise Invalid.got("boost_by_usefulness", "must be true, false or a weight in [0, 1]", value, remedy)
    return float(value)


def seed(value: Any) -> int | None:
    """The seed of a draw, if there is one."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise Invalid.got("seed", "must be a whole number", value)
    return value


def author(field: str, value: Any) -> str | None:
    """The name of the author of feedback, as it is stored; None for the program itself."""
    if value is None:
        return None
    return _named(field, author_name, any_text(field, value))


def audience(field: str, value: Any) -> str | None:
    """The name of those whom something is for, compared to the letter; None for everybody."""
    if value is None:
        return None
    text = name(field, value)
    if not (text[0].isprintable() and text[-1].isprintable() and text == text.strip()):
        remedy = "Pass the name alone, or leave it out for everybody"
        raise Invalid.got(field, "must not begin or end with a space or an invisible character", value, remedy)
    return text


def idempotency_key(value: Any) -> str | None:
    """The key by which a retry is recognised, if one is given."""
    return None if value is None else name("idempotency_key", value)


def external_id_reused(value: str, what: str) -> Conflict:
    """The error for an external id that something else has."""
    message = f"external_id {value!r} was used for another {what}"
    remedy = f"Use an id of its own for each {what}"
    return Conflict(message, code="external_id_reused", field="external_id", value=value, remedy=remedy)


def query(value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid.got("query", "must be a text", value)
    if not value.strip():
        raise Invalid.got("query", "must not be empty or blank", value)
    if len(value) > limits.MAX_QUERY:
        raise _too_long("query", value, limits.MAX_QUERY)
    return _named("query", storable, value)


def number(field: str, value: Any, low: float, high: float, problem: str | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Invalid.got(field, problem or f"must be a number from {low} to {high}", value)
    return float(value)


def fraction(field: str, value: Any) -> float:
    return number(field, value, 0, 1, "must be a number in [0, 1]")


def whole_number(field: str, value: Any, low: int, high: int, unit: str = "a whole number") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Invalid.got(field, f"must be {unit} from {low} to {high}", value)
    return value


def moment(field: str, value: Any, remedy: str = "Pass a datetime; one without a zone is read as UTC") -> int | None:
    """A time from outside, as it is stored; None if there is none. Every time that is kept comes through here: what has
    no year from 1970 to 9999 in UTC could be stored, and not be read again."""
    stored = bound(field, value, remedy)
    if stored is not None and stored != to_stored(value):
        raise _bad_time(field, value, "is not in the years 1970 to 9999 (UTC)", "Check the year, or leave it out")
    return stored


def bound(field: str, value: Any, remedy: str = "Pass a datetime; one without a zone is read as UTC") -> int | None:
    """The beginning or the end of what is asked for; one before 1970 or after 9999 is as good as these."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise Invalid.got(field, "must be a datetime", value, remedy)
    return min(max(0, to_stored(value)), limits.MAX_TIME)


def period(since: Any, until: Any) -> tuple[int | None, int | None]:
    """Both ends of a period as stored times, the first before the second."""
    start, stop = bound("since", since), bound("until", until)
    if start is not None and stop is not None and start >= stop:
        first, last = (f"{from_stored(at):%Y-%m-%d %H:%M}" for at in (start, stop))
        remedy = "Swap the two, or leave one out"
        raise Invalid(f"since ({first}) must be before until ({last})", field="since", value=since, remedy=remedy)
    return start, stop


def not_ahead(field: str, value: datetime | None, now: int) -> None:
    """A time that is not in the future, as far as two clocks agree."""
    stored = moment(field, value)
    if value is not None and stored is not None and stored > now + limits.MAX_AHEAD:
        remedy = "Check the clock and the time zone (a time without a zone is read as UTC), or leave it out for now"
        raise _bad_time(field, value, "is in the future", remedy)


def end(field: str, value: Any, now: int) -> int | None:
    """A time with a zone that lies ahead, as it is stored; None if there is none."""
    remedy = "Give a time ahead with a zone, such as datetime(2030, 1, 31, 12, tzinfo=UTC) or 2030-01-31T12:00:00Z"
    if isinstance(value, datetime) and value.utcoffset() is None:
        raise _bad_time(field, value, "has no time zone", remedy)
    stored = moment(field, value, remedy)
    if stored is not None and stored <= now:
        raise _bad_time(field, value, "is in the past", remedy)
    return stored


def _bad_time(field: str, value: datetime, problem: str, remedy: str) -> Invalid:
    given = value.isoformat()
    return Invalid(f"{field} is {given}, which {problem}", field=field, value=given, remedy=remedy)


def one_of(field: str, value: Any, choices: Sequence[Choice]) -> Choice:
    """A value that is among those that are allowed."""
    if value not in choices:
        raise Invalid.unknown(field, value, choices)
    choice: Choice = value
    return choice


def policy(value: Any, field: str = "policy") -> PolicyName:
    return one_of(field, value, POLICY_NAMES)


def text(field: str, value: Any) -> str:
    """A text to remember."""
    if not isinstance(value, str):
        remedy = "Facts are texts: write it as a sentence, and put values to filter by into metadata"
        raise Invalid.got(field, "must be a text", value, remedy)
    if not value.strip():
        raise Invalid.got(field, "must not be empty or blank", value)
    if len(value) > limits.MAX_TEXT:
        raise _too_long(field, value, limits.MAX_TEXT, "Split it into several texts")
    return _named(field, storable, value)


def metadata(field: str, value: Any, limit: int = limits.MAX_METADATA) -> Metadata:
    """A mapping that JSON and every store can hold."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise Invalid.got(field, "must be a mapping with text keys", value)
    try:
        storable_values(field, value)
        packed = orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        remedy = "Use texts, numbers, true, false, null, lists and mappings"
        message = f"{field} contains values that JSON can't represent ({error})"
        raise Invalid(message, field=field, value=value, remedy=remedy) from error
    if (size := len(packed)) > limit:
        remedy = "Use fewer or shorter values"
        raise Invalid(f"{field} takes {size} bytes, the limit is {limit}", field=field, value=size, remedy=remedy)
    cleaned: Metadata = orjson.loads(packed)
    return cleaned


def fact_metadata(field: str, value: Any) -> Metadata:
    """Metadata of a fact: each of its values is stored once more for filters."""
    cleaned = metadata(field, value)
    if (count := _count_values(cleaned)) > limits.MAX_METADATA_VALUES:
        message = f"{field} has {count} values, the limit is {limits.MAX_METADATA_VALUES}"
        remedy = "Keep the values that you filter by, and put the others into the text"
        raise Invalid(message, field=field, value=count, remedy=remedy)
    return cleaned


def metadata_size(value: Metadata) -> int:
    """Roughly the bytes that metadata takes in a store: as JSON, and a row for each value."""
    return len(orjson.dumps(value)) + 50 * _count_values(value)


def _count_values(value: Any) -> int:
    """How many values there are in a value of JSON, without mappings and lists."""
    if isinstance(value, dict | list):
        return sum(map(_count_values, value.values() if isinstance(value, dict) else value))
    return 1


def if_match(expected: Any, current: Model | Metadata) -> None:
    """Refuses to change what is no longer as the caller has seen it, if that is said."""
    if expected is not None and identifier("if_match", expected) != etag(current):
        raise changed_meanwhile(expected)


def changed_meanwhile(if_match: str) -> Conflict:
    message, remedy = "it was changed after you read it", "Read it again, then retry"
    return Conflict(message, code="changed_meanwhile", field="if_match", value=if_match, remedy=remedy)


def question(field: str, value: Any, most: int = limits.MAX_QUERY) -> str:
    """A question, or SQL: a text with a limit that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} must not be empty or blank, got {quoted(value)}", field=field, value=value)
    return any_text(field, value, most)


def sql(value: Any) -> str:
    return question("sql_query", value, limits.MAX_SQL)


def remarks(field: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Invalid(f"{field} must be a list of texts, got {quoted(value)}", field=field, value=value)
    return [text(field, remark) for remark in value]


def sensitive_columns(field: str, value: Any) -> list[str]:
    if isinstance(value, str):
        raise Invalid(f"{field} must be a list, got {quoted(value)}", field=field, value=value)
    return [name(field, column) for column in value]


def reuse(field: str, value: Any) -> Reuse:
    if value not in ("sql", "result"):
        raise Invalid(f"invalid {field} {quoted(value)}", field=field, value=value, remedy='Use "sql" or "result"')
    kind: Reuse = value
    return kind


def cursor(value: Any) -> int | None:
    """The number behind a cursor that a page gave."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.isdecimal() or not value.isascii() or len(value) > 18:
        raise invalid_cursor(value)
    return int(value)


def invalid_cursor(value: Any) -> Invalid:
    """The error for a cursor that no page gave."""
    remedy = "Use the next_cursor of the page before"
    return Invalid(f"invalid cursor {quoted(value)}", field="cursor", value=value, remedy=remedy)


def batch(field: str, items: Sequence[Any], limit: int) -> None:
    if len(items) > limit:
        raise too_many(field, len(items), limit)


def storable_values(field: str, value: Any, key: str = "", depth: int = 0) -> None:
    """Checks that every store can hold a value of JSON; `key` is where in it this one is, dotted."""
    if isinstance(value, str):
        _named(f"{field}[{key!r}]" if key else field, storable, value, field)
    elif isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"{field} holds {value}, which JSON can't represent", field=field, value=value)
    elif isinstance(value, int) and not -limits.MAX_INTEGER - 1 <= value <= limits.MAX_INTEGER:
        message = f"{field}[{quoted(key)}] is a whole number of more than 64 bits"
        raise Invalid(message, field=field, remedy="Use a text, or a number with a decimal point")
    if depth > limits.MAX_DEPTH:
        raise Invalid(f"{field} is nested more than {limits.MAX_DEPTH} deep", field=field, remedy="Flatten it")
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(name, str):
                _check_key(field, path := f"{key}.{name}" if key else name)
                storable_values(field, inner, path, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            storable_values(field, inner, key, depth + 1)


def _check_key(field: str, key: str) -> None:
    _named(f"a key of {field}", storable, key, field)
    if len(key) > limits.MAX_KEY:
        message = f"{field} has a key of {len(key)} characters, the limit is {limits.MAX_KEY}, got {quoted(key, 50)}"
        raise Invalid(message, field=field, value=key[:50], remedy="Use short names and fewer levels")


def _named(subject: str, check: Callable[[str], str], value: str, field: str | None = None) -> str:
    """A value that passes a check of the model, which knows of no field."""
    try:
        return check(value)
    except Invalid as error:
        message = f"{subject} {error.message}"
        raise Invalid(message, field=field or subject, value=error.value, remedy=error.remedy) from None


def _too_long(field: str, value: str, limit: int, remedy: str = "Shorten it") -> Invalid:
    message = f"{field} has {len(value)} characters, the limit is {limit}, got {quoted(value, 50)}"
    return Invalid(message, field=field, value=value[:50], remedy=remedy)
