"""The parameters and the result of an operation, as they cross the wire; taken from the engine's own signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, get_origin, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, create_model

from heedful.interfaces.operations.table import Operation, method
from heedful.model import Document, Model, Signal, Target, limits
from heedful.model.base import NAME, TEXT, WORDS, FailFastModel

HEADERS = {"idempotency_key": "Idempotency-Key", "if_match": "If-Match"}
"""Parameters that travel in a header."""

CALLBACKS = frozenset({"on_token", "progress"})
"""Parameters that are called while the call runs; over the wire, they are events of a stream."""


class Request(FailFastModel):
    """The parameters of an operation that are not in its path or its headers."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """What goes in and what comes out."""

    operation: Operation
    path: tuple[str, ...]
    """Parameters in the path, in order."""
    headers: tuple[str, ...]
    callbacks: tuple[str, ...]
    request: type[Request]
    """All other parameters."""
    result: TypeAdapter[Any]
    returns: Any
    """The type of the result."""

    @property
    def in_query(self) -> bool:
        """Whether the other parameters are in the query string."""
        return self.operation.method in ("GET", "DELETE")

    @property
    def keyed(self) -> bool:
        """Whether the engine itself takes an idempotency key."""
        return "idempotency_key" in self.headers

    def arguments(self, request: Request) -> dict[str, Any]:
        """The arguments that a request names; the others keep the engine's defaults."""
        return {name: plain(getattr(request, name)) for name in request.model_fields_set}


@cache
def shape(operation: Operation) -> Shape:
    """The shape of an operation."""
    function = operation.function
    hints = get_type_hints(function)
    parameters = list(own_signature(function).parameters.values())
    path = tuple(re.findall(r"{(\w+)}", operation.path))
    rest: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in {*path, *HEADERS, *CALLBACKS}:
            kind = typed(operation.name, parameter.name, hints[parameter.name])
            required = parameter.default is inspect.Parameter.empty
            rest[parameter.name] = (kind, ... if required else _default(parameter.default))
    return Shape(
        operation=operation,
        path=path,
        headers=tuple(parameter.name for parameter in parameters if parameter.name in HEADERS),
        callbacks=tuple(parameter.name for parameter in parameters if parameter.name in CALLBACKS),
        request=create_model(f"{_title(operation.name)}Request", __base__=Request, **rest),
        result=TypeAdapter(hints["return"]),
        returns=hints["return"],
    )


@cache
def own_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method, without `self`."""
    signature = inspect.signature(function)
    return signature.replace(parameters=[each for name, each in signature.parameters.items() if name != "self"])


def arguments(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a method by name; a call that doesn't fit is a TypeError, as it is in Python."""
    return dict(own_signature(method(name)).bind(*args, **kwargs).arguments)


def _default(value: Any) -> Any:
    """A default that JSON can express; None for those that only Python has."""
    return value if value is None or isinstance(value, str | int | float | bool | tuple) else None


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[._]", name))


KEY = r"^[^\u0000.$][^\u0000.]*(\.[^\u0000.$][^\u0000.]*)*$"
"""A name in metadata; a dot reaches inside."""


class NewMessage(Model):
    """A message that is to be added."""

    role: str = Field(json_schema_extra={"minLength": 1, "maxLength": limits.MAX_ROLE, "pattern": WORDS})
    content: str = Field(json_schema_extra={"pattern": TEXT})
    at: datetime | None = None


class NewExample(Model):
    """A question, and the SQL that answers it."""

    question: str = Field(json_schema_extra={"minLength": 1, "maxLength": limits.MAX_QUERY, "pattern": WORDS})
    sql_query: str = Field(json_schema_extra={"minLength": 1, "pattern": WORDS})
    audience: str | None = None


NARROWED: dict[tuple[str, str], Any] = {
    ("remember", "texts"): str | Document | list[str | Document],
    ("signal", "signals"): list[Signal],
    ("signal_recall", "used"): list[str],
    ("signal_recall", "helpful"): list[str],
    ("signal_recall", "not_helpful"): list[str],
    ("sessions.add_messages", "messages"): list[NewMessage],
    ("sessions.add_session_feedback", "feedback"): dict[str, Any],
    ("sessions.add_entry", "used"): list[str] | dict[str, float] | None,
    ("sessions.delete_metadata", "keys"): list[str],
    ("golden_examples.import_examples", "examples"): list[NewExample],
    ("keys.create_token", "targets"): list[Target],
}
"""By operation and parameter."""

_NAME = {"minLength": 1, "maxLength": limits.MAX_NAME, "pattern": NAME}
_QUESTION = {"minLength": 1, "maxLength": limits.MAX_QUERY, "pattern": WORDS}
_WORDS = {"minLength": 1, "pattern": WORDS}
_ID = {"pattern": TEXT}
_IDS = {"items": {"type": "string"} | _ID}
_FEEDBACK_TEXT = {"maxLength": limits.MAX_FEEDBACK, "pattern": TEXT}
_FRACTION = {"minimum": 0, "maximum": 1}
_PAGE = {"minimum": 1, "maximum": limits.MAX_PAGE}
_LIST = {"minimum": 1, "maximum": limits.MAX_LIST}
_KEY = {"minLength": 1, "maxLength": limits.MAX_KEY, "pattern": KEY}

CURSOR = {"pattern": "^[0-9]{1,18}$"}

_LIMITS: dict[str, dict[str, Any]] = {
    "answer": {"pattern": TEXT},
    "assignee": _NAME,
    "audience": _NAME,
    "author": _NAME,
    "by": _ID,
    "chat_message_id": _ID,
    "confidence": _FRACTION,
    "connector_id": _ID,
    "content": {"pattern": TEXT},
    "context": {"pattern": TEXT},
    "cursor": CURSOR,
    "dataset": _NAME,
    "event_id": _ID,
    "execution_id": _ID,
    "comment": _FEEDBACK_TEXT,
    "expires_in": {"minimum": 1, "maximum": limits.MAX_SECONDS},
    "exploration": _FRACTION,
    "external_id": _NAME,
    "fact_id": _ID,
    "fact_ids": _ID,
    "feedback": _FEEDBACK_TEXT,
    "feedback_cutoff": _FRACTION,
    "feedback_ids": {"maxItems": limits.MAX_LIST, "items": {"type": "string", "minLength": 1} | _ID},
    "feedback_influence": _FRACTION,
    "feedback_score": {"minimum": 1, "maximum": 5},
    "feedback_text": _FEEDBACK_TEXT,
    "grace": {"minimum": 0, "maximum": limits.MAX_GRACE},
    "helpful": _IDS,
    "limit": _PAGE,
    "max_age_days": {"minimum": 0, "maximum": limits.MAX_AGE_DAYS},
    "min_usefulness": _FRACTION,
    "name": _NAME,
    "not_helpful": _IDS,
    "note": _FEEDBACK_TEXT,
    "query": _QUESTION,
    "question": _QUESTION,
    "rate_limit": {"minimum": 1, "maximum": limits.MAX_RATE},
    "recall_id": _ID,
    "role": {"minLength": 1, "maxLength": limits.MAX_ROLE, "pattern": WORDS},
    "scale": {"minItems": 2, "maxItems": 2},
    "scopes": {"minItems": 1},
    "search": _ID,
    "session_id": _NAME,
    "session_ids": {"maxItems": limits.MAX_LIST},
    "similarity_threshold": _FRACTION,
    "skip": {"minimum": 0, "maximum": limits.MAX_SKIP},
    "source": {"minLength": 1, "maxLength": limits.MAX_SOURCE // 4, "pattern": NAME},
    "sql_query": _WORDS,
    "targets": {"minItems": 1, "maxItems": limits.MAX_TARGETS},
    "text": _WORDS,
    "top_k": {"minimum": 1, "maximum": limits.MAX_TOP_K},
    "top_n": {"minimum": 1, "maximum": 1_000},
    "url": _WORDS,
    "usefulness_weight": _FRACTION,
    "used": _IDS,
    "user_query": _QUESTION,
}
"""Limits that the engine enforces, for the schema; by the name of the parameter.

Those of more than ten thousand characters are left to the engine.
"""

_OWN_LIMITS: dict[tuple[str, str], dict[str, Any]] = {
    ("facts", "source"): _ID,
    ("recall", "cursor"): {"pattern": "^[A-Za-z0-9_-]{11,12000}$"},
    ("feedback.list", "limit"): _LIST,
    ("feedback.list_positive", "limit"): _LIST,
    ("feedback.list_negative", "limit"): _LIST,
    ("feedback.get_feedback_for_message", "limit"): _LIST,
    ("forget", "source"): _ID,
    ("golden_examples.list", "limit"): _LIST,
    ("golden_examples.import_examples", "examples"): {"maxItems": limits.MAX_LIST},
    ("insight.satisfaction", "by"): _KEY,
    ("insight.trend", "by"): _KEY,
    ("insight.notes", "by"): _KEY,
    ("insight.rows", "cursor"): {"pattern": "^[ab]\\.[0-9a-f.-]{0,100}$"},
    ("connectors.create", "role"): _NAME,
    ("replay", "seed"): {"minimum": 0},
    ("review.list", "assignee"): _ID,
    ("review.list", "cursor"): {"pattern": r"^[0-9]{1,18}(\.[0-9]{1,18}){2}$"},
    ("replay", "weights"): {"minItems": 1, "maxItems": limits.MAX_WEIGHTS, "items": {"type": "number"} | _FRACTION},
    ("sessions.add_entry", "used"): {},
    ("sessions.add_messages", "messages"): {"maxItems": limits.MAX_MESSAGES},
    ("sessions.add_session_feedback", "feedback"): {},
    ("sessions.delete_metadata", "keys"): {"items": {"type": "string"} | _KEY},
    ("signal", "signals"): {"maxItems": limits.MAX_SIGNALS},
}
"""Where an operation keeps others."""


_TIME: TypeAdapter[datetime] = TypeAdapter(datetime)


def typed(operation: str, name: str, kind: Any) -> Any:
    """The type that a parameter has on the wire, with its limits."""
    kind = NARROWED.get((operation, name), kind)
    if kind in (int, int | None):
        kind = Annotated[kind, BeforeValidator(_as_integer)]
    if kind == datetime | None:
        kind = Annotated[kind, BeforeValidator(_moment)]
    limits = _OWN_LIMITS.get((operation, name), _LIMITS.get(name))
    if not limits:
        return kind
    # Items are counted before they are read; all else, the engine checks.
    most = limits.get("maxItems") if get_origin(kind) is list else None
    return Annotated[kind, Field(json_schema_extra=limits, max_length=most)]


def _as_integer(value: Any) -> Any:
    """To JSON, 3.0 is the same number as 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _moment(value: Any) -> Any:
    """A time is written as one: a bare number could be seconds as well as microseconds."""
    if not isinstance(value, str):
        return value
    if value.strip().replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z, not a number")
    return _TIME.validate_python(value)


def path_limits(name: str) -> dict[str, Any]:
    """The limits of a parameter in a path."""
    return _NAME if name in ("project", "dataset", "session_id", "external_id") else {"minLength": 1} | _ID


def plain(value: Any) -> Any:
    """What was read, as the engine takes it: mappings where the wire has a model of its own."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.model_dump(exclude_unset=True) if isinstance(value, NewMessage | NewExample) else value
