"""The base of all nouns: frozen models, and the kinds of text and number they hold."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Literal, TypeVar, get_args

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema

from heedful.errors import Invalid, few_errors, first_members, quoted
from heedful.model import limits

DEFAULT_DATASET = "main_dataset"
DEFAULT_PROJECT = "default"
DEFAULT_WEIGHT = 0.3
"""The `usefulness_weight` of a recall that names none."""

Mode = Literal["hybrid", "semantic", "lexical", "graph"]
SignalType = Literal["used", "ignored", "helpful", "not_helpful"]
UsefulnessSource = Literal["context", "related", "global", "neutral"]
PolicyName = Literal["documented", "adaptive"]
AuthorKind = Literal["named", "program", "visitor"]
"""Who gives feedback: somebody whom the program or its key `named`; the `program` itself, where no name is given; or a
`visitor`, for whom nobody vouches."""

SIGNAL_TYPES: tuple[SignalType, ...] = get_args(SignalType)
MODES: tuple[Mode, ...] = get_args(Mode)
POLICY_NAMES: tuple[PolicyName, ...] = get_args(PolicyName)

Metadata = dict[str, Any]

Noun = TypeVar("Noun", bound=Callable[..., Any])
PUBLIC: dict[str, Callable[..., Any]] = {}


def public(noun: Noun) -> Noun:
    """Makes a noun a name of `heedful`, too."""
    PUBLIC[noun.__name__] = noun
    return noun


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty or blank")
    return text


def storable(text: str) -> str:
    """The text itself, if every store can hold it."""
    if "\0" in text:
        message = f"must not hold a NUL character, got {quoted(text, 50)}"
        raise Invalid(message, value=_shown(text), remedy='Remove it: text.replace("\\0", "")')
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"must be valid Unicode ({error.reason}), got {quoted(text, 50)}"
        remedy = 'Replace the surrogates: text.encode(errors="replace").decode()'
        raise Invalid(message, value=_shown(text), remedy=remedy) from None
    return text


def printable(name: str) -> str:
    """The name itself, if it looks the same on a terminal, in a log and on a page."""
    found = re.search(f"[{_UNPRINTABLE}]", storable(name))
    if found is not None:
        problem = f"must not hold the control or invisible character U+{ord(found[0]):04X}, got {quoted(name, 50)}"
        raise Invalid(problem, value=_shown(name), remedy="Remove it")
    return name


def source_name(source: str) -> str:
    """The name of a source itself, if an index of every store can hold it."""
    size = len(printable(source).encode())
    if size > limits.MAX_SOURCE:
        problem = f"takes {size} bytes, the limit is {limits.MAX_SOURCE}, got {quoted(source, 50)}"
        raise Invalid(problem, value=_shown(source), remedy="Use a shorter name, path or address")
    return source


def _shown(text: str) -> str:
    return text[:50].encode(errors="replace").decode() + ("…" if len(text) > 50 else "")


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("must be a finite number in [0, 1]")
    return number


VISITOR = "visitor-"
"""How the names of visitors begin."""


def author_name(name: str) -> str:
    """The name without what can't be seen around it; that of a visitor begins with `VISITOR`, in whatever case it was
    written."""
    visible = [place for place, character in enumerate(storable(name)) if character.isprintable() and character != " "]
    if not visible:
        message = f"must be a name, got {quoted(name)}"
        raise Invalid(message, value=name, remedy="Leave it out if your program itself gives the feedback")
    stripped = name[visible[0] : visible[-1] + 1]
    if len(stripped) > limits.MAX_NAME:
        raise Invalid(f"has {len(stripped)} characters, the limit is {limits.MAX_NAME}", value=stripped[:50])
    printable(stripped)
    prefix, rest = stripped[: len(VISITOR)], stripped[len(VISITOR) :]
    return VISITOR + rest if prefix.lower() == VISITOR else stripped


_UNPRINTABLE = r"\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
"""Controls, what breaks a line or turns its direction, and what nobody sees."""

TEXT = r"^[^\u0000]*$"
"""Any text that every store can hold."""

WORDS = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"
"""The same, and not blank."""

NAME = rf"^[^{_UNPRINTABLE}]*[^\s{_UNPRINTABLE}][^{_UNPRINTABLE}]*$"
"""The same, without controls."""

TEXT_LIMITS: dict[str, Any] = {"pattern": TEXT}
WORDS_LIMITS: dict[str, Any] = {"minLength": 1, "pattern": WORDS}
NAME_LIMITS: dict[str, Any] = {"minLength": 1, "maxLength": limits.MAX_NAME, "pattern": NAME}
SOURCE_LIMITS: dict[str, Any] = {"minLength": 1, "maxLength": limits.MAX_SOURCE // 4, "pattern": NAME}

Text = Annotated[str, AfterValidator(storable), Field(json_schema_extra=TEXT_LIMITS)]
NotBlank = Annotated[str, AfterValidator(storable), AfterValidator(_not_blank), Field(json_schema_extra=WORDS_LIMITS)]
AuthorName = Annotated[str, AfterValidator(author_name), Field(json_schema_extra=NAME_LIMITS)]
Name = Annotated[
    str,
    AfterValidator(printable),
    AfterValidator(_not_blank),
    Field(max_length=limits.MAX_NAME, json_schema_extra={"minLength": 1, "pattern": NAME}),
]
SourceName = Annotated[
    str, AfterValidator(source_name), AfterValidator(_not_blank), Field(json_schema_extra=SOURCE_LIMITS)
]
Fraction = Annotated[float, Field(ge=0.0, le=1.0), AfterValidator(_finite)]


_ignores_unknown: ContextVar[bool] = ContextVar("heedful_ignores_unknown", default=False)


@contextmanager
def ignoring_unknown_fields() -> Iterator[None]:
    """A block in which models leave out the fields that they don't have, instead of refusing them."""
    token = _ignores_unknown.set(True)
    try:
        yield
    finally:
        _ignores_unknown.reset(token)


class Model(BaseModel):
    """A frozen value; bad fields raise `Invalid` instead of pydantic's own error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            unknown = _unknown_fields(error) if _ignores_unknown.get() else set()
            if not unknown:
                few = few_errors(error, lambda: super(Model, self).__init__(**first_members(data)))
                raise Invalid.from_validation(few) from None
            super().__init__(**{name: value for name, value in data.items() if name not in unknown})


def _unknown_fields(error: ValidationError) -> set[int | str]:
    return {
        fault["loc"][0] for fault in error.errors() if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1
    }


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, dict):
        inner = {name: value if name == "metadata" else _failing_fast(value) for name, value in schema.items()}
        return inner | {"fail_fast": True} if schema.get("type") == "list" else inner
    return [_failing_fast(inner) for inner in schema] if isinstance(schema, list) else schema


class FailFastModel(BaseModel):
    """A model that a caller's JSON is read into: its lists are refused at their first bad item."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = _failing_fast(handler(source))
        return schema


@public
def etag(value: Model | Metadata) -> str:
    """A token that changes with the value: pass it as `if_match` to change only what you have read."""
    plain = value.model_dump(mode="json") if isinstance(value, Model) else value
    return hashlib.sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


NEUTRAL = 0.5
