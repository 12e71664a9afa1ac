"""Arguments that can't be accepted are refused by name, before anything is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from heedful.clock import to_stored
from heedful.errors import Conflict, Invalid, NotFound
from heedful.model import MODES, POLICY_NAMES, Metadata, Model, PolicyName, author_name, etag, limits, storable


def name(field: str, value: Any) -> str:
    """A project's or dataset's name."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} must be a name, got {value!r}", field=field, value=value)
    if len(value) > limits.MAX_NAME:
        raise Invalid(f"{field} has {len(value)} characters, the limit is {limits.MAX_NAME}", field=field, value=value)
    return _storable(field, value)


def identifier(field: str, value: Any) -> str:
    """The id of something; whether it exists is another question."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"{field} must be a non-empty string, got {value!r}", field=field, value=value)
    return _storable(field, value)


def no_fact(project: str, fact_id: str, field: str = "fact_id") -> NotFound:
    """The error for a fact that is not there."""
    return NotFound(
        f"no fact {fact_id!r} in project {project!r}",
        field=field,
        value=fact_id,
        remedy="Use a fact_id that recall, facts() or the evidence of a review item shows",
    )


def any_text(field: str, value: Any) -> str:
    """A text, which may be empty."""
    if not isinstance(value, str):
        raise Invalid(f"{field} must be a string, got {value!r}", field=field, value=value)
    return _storable(field, value)


def flag(field: str, value: Any) -> bool:
    """True or false; other values would mean something else than they say."""
    if not isinstance(value, bool):
        raise Invalid(f"{field} must be true or false, got {value!r}", field=field, value=value)
    return value


def boost(value: Any) -> bool | float | None:
    """Whether usefulness counts, with which weight, or None where the policy decides."""
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Invalid(
            f"boost_by_usefulness must be true, false or a weight in [0, 1], got {value!r}",
            field="boost_by_usefulness",
            value=value,
            remedy="Leave it out to rank by the policy of the project",
        )
    return float(value)


def seed(value: Any) -> int | None:
    """The seed of a draw, if there is one."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise Invalid(f"seed must be a whole number, got {value!r}", field="seed", value=value)
    return value


def author(value: Any) -> str | None:
    """Who gives feedback, as the name is stored; None for the program itself."""
    if value is None:
        return None
    try:
        return author_name(any_text("author", value))
    except Invalid as error:
        if error.field is not None:
            raise
        raise Invalid(f"author {error.message}", field="author", value=error.value, remedy=error.remedy) from None


def audience(value: Any) -> str | None:
    """Whom something is for, compared to the letter; None for everybody."""
    if value is None:
        return None
    text = name("audience", value)
    if not (text[0].isprintable() and text[-1].isprintable() and text == text.strip()):
        raise Invalid(
            f"audience must not begin or end with a space or an invisible character, got {value!r}",
            field="audience",
            value=value,
            remedy="Pass the name alone, or leave it out for everybody",
        )
    return text


def idempotency_key(value: Any) -> str | None:
    """What makes a retry recognisable, if it is given."""
    return None if value is None else name("idempotency_key", value)


def external_id(value: Any) -> str:
    """A caller's own id of something."""
    return name("external_id", value)


def external_id_reused(value: str, what: str) -> Conflict:
    """The error for an external id that something else has."""
    return Conflict(
        f"external_id {value!r} was used for another {what}",
        code="external_id_reused",
        field="external_id",
        value=value,
        remedy=f"Use an id of its own for each {what}",
    )


def query(value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid(f"query must be a text, got {value!r}", field="query", value=value)
    if not value.strip():
        raise Invalid(f"query must not be empty or blank, got {value!r}", field="query", value=value)
    if len(value) > limits.MAX_QUERY:
        raise Invalid(f"query has {len(value)} characters, the limit is {limits.MAX_QUERY}", field="query", value=value)
    return _storable("query", value)


def fraction(field: str, value: Any) -> float:
    """A number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= 1):
        raise Invalid(f"{field} must be a number in [0, 1], got {value!r}", field=field, value=value)
    return float(value)


def top_k(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.MAX_TOP_K:
        raise Invalid(
            f"top_k must be a whole number from 1 to {limits.MAX_TOP_K}, got {value!r}", field="top_k", value=value
        )
    return value


def not_ahead(field: str, moment: datetime | None, now: int) -> None:
    """A time that is not in the future, as far as two clocks agree."""
    if moment is not None and to_stored(moment) > now + limits.MAX_AHEAD:
        raise Invalid(
            f"{field} is {moment.isoformat()}, which is in the future",
            field=field,
            value=moment.isoformat(),
            remedy="Check the clock and the time zone (a time without a zone is read as UTC), or leave it out for now",
        )


def end(field: str, moment: Any, now: int) -> int | None:
    """A time with a zone that lies ahead, as it is stored; None if there is none."""
    if moment is None:
        return None
    remedy = "Give a time ahead with a zone, such as datetime(2030, 1, 31, 12, tzinfo=UTC) or 2030-01-31T12:00:00Z"
    if not isinstance(moment, datetime):
        raise Invalid(f"{field} must be a datetime, got {moment!r}", field=field, value=moment, remedy=remedy)
    if moment.utcoffset() is None:
        problem = f"{field} is {moment.isoformat()}, which has no time zone"
        raise Invalid(problem, field=field, value=moment.isoformat(), remedy=remedy)
    stored = to_stored(moment)
    if stored <= now:
        problem = f"{field} is {moment.isoformat()}, which is in the past"
        raise Invalid(problem, field=field, value=moment.isoformat(), remedy=remedy)
    return stored


def mode(value: Any) -> None:
    if value not in MODES:
        raise Invalid(f"unknown mode {value!r}", field="mode", value=value, remedy=f"Use one of {', '.join(MODES)}")


def policy(value: Any, field: str = "policy") -> PolicyName:
    if value not in POLICY_NAMES:
        raise Invalid(
            f"unknown {field} {value!r}", field=field, value=value, remedy=f"Use one of {', '.join(POLICY_NAMES)}"
        )
    name: PolicyName = value
    return name


def text(field: str, value: Any) -> str:
    """A text to remember."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} must not be empty or blank, got {value!r}", field=field, value=value)
    if len(value) > limits.MAX_TEXT:
        raise Invalid(
            f"{field} has {len(value)} characters, the limit is {limits.MAX_TEXT}",
            field=field,
            value=value[:50],
            remedy="Split it",
        )
    return _storable(field, value)


def metadata(field: str, value: Any) -> Metadata:
    """A mapping that JSON can hold, with finite numbers."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise Invalid(f"{field} must be a mapping with text keys, got {value!r}", field=field, value=value)
    try:
        _finite_numbers(field, value)
        packed = orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        raise Invalid(
            f"{field} contains values that JSON can't represent ({error})",
            field=field,
            value=value,
            remedy="Use texts, numbers, true, false, null, lists and mappings",
        ) from error
    if len(packed) > limits.MAX_METADATA:
        raise Invalid(f"{field} takes {len(packed)} bytes, the limit is {limits.MAX_METADATA}", field=field)
    cleaned: Metadata = orjson.loads(packed)
    return cleaned


def if_match(expected: Any, current: Model | Metadata) -> None:
    """Refuses to change what is no longer as the caller has seen it, if that is said."""
    if expected is not None and identifier("if_match", expected) != etag(current):
        raise Conflict(
            "it was changed after you read it",
            code="changed_meanwhile",
            field="if_match",
            value=expected,
            remedy="Read it again, then retry",
        )


def limit(value: Any) -> int:
    """How many a page has at most."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.MAX_PAGE:
        raise Invalid(
            f"limit must be a whole number from 1 to {limits.MAX_PAGE}, got {value!r}", field="limit", value=value
        )
    return value


def cursor(value: Any) -> int | None:
    """The number behind a cursor that a page gave."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.isdecimal() or not value.isascii() or len(value) > 18:
        raise Invalid(
            f"invalid cursor {value!r}", field="cursor", value=value, remedy="Use the next_cursor of the page before"
        )
    return int(value)


def batch(field: str, items: Sequence[Any], limit: int) -> None:
    if len(items) > limit:
        raise Invalid(
            f"{field} has {len(items)} items, the limit is {limit}",
            field=field,
            value=len(items),
            remedy="Send them in several calls",
        )


def _finite_numbers(field: str, value: Any, depth: int = 0) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"{field} holds {value}, which JSON can't represent", field=field, value=value)
    if depth > limits.MAX_DEPTH:
        raise Invalid(f"{field} is nested more than {limits.MAX_DEPTH} deep", field=field, remedy="Flatten it")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite_numbers(field, inner, depth + 1)


def _storable(field: str, value: str) -> str:
    try:
        return storable(value)
    except ValueError as error:
        shown = value[:50].encode(errors="replace").decode()
        raise Invalid(f"{field} {error}, got {shown!r}", field=field, value=shown) from error
