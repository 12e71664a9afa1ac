"""JSON schemas from signatures, so that no parameter is written twice, and arguments checked against them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from heedful.errors import Invalid, quoted
from heedful.interfaces.operations.descriptions import describe_field
from heedful.model import Document, Hit, Model

Schema = dict[str, Any]

# A hit is named by its fact_id, and a mapping is the JSON of the model beside it.
_NOT_SENT = (Path, Hit, Document, Callable, Mapping)

_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class _Untitled(GenerateJsonSchema):
    """Without a title for each field, which would only repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Described(_Untitled):
    """With what each field of a model means."""

    def model_schema(self, schema: Any) -> Schema:
        document = super().model_schema(schema)
        if issubclass(schema["cls"], Model):
            for name, field in document.get("properties", {}).items():
                field["description"] = describe_field(schema["cls"], name)
        return document


class Parameters:
    """The parameters of a function that JSON can carry: the schema of all, and the check of given arguments.

    `describe` says what a parameter means, by its name.
    """

    def __init__(self, function: Callable[..., Any], describe: Callable[[str], str]) -> None:
        hints = get_type_hints(function)
        fields: dict[str, Any] = {}
        self.left_out: list[str] = []
        # The first parameter is what the function works on.
        for each in list(inspect.signature(function).parameters.values())[1:]:
            kind = _json_type(hints[each.name])
            if kind is None:
                self.left_out.append(each.name)
            else:
                fields[each.name] = (kind, ... if each.default is inspect.Parameter.empty else each.default)
        self._tool = function.__name__
        self._required = [name for name, (_, default) in fields.items() if default is ...]
        # What is wrong inside a model, the engine says better.
        self._times = {name for name, (kind, _) in fields.items() if kind == datetime | None}
        self._adapters = {name: TypeAdapter(kind) for name, (kind, _) in fields.items() if not _has_model(kind)}
        described: dict[str, Any] = {
            name: (Annotated[kind, Field(description=describe(name))], default)
            for name, (kind, default) in fields.items()
        }
        model = create_model(self._tool, __config__=ConfigDict(extra="forbid"), **described)
        self.schema: Schema = model.model_json_schema(schema_generator=_Described)
        del self.schema["title"]

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; those that are unknown, missing, or of another type than the schema
        says are refused."""
        properties = self.schema["properties"]
        for name, value in arguments.items():
            if name not in properties:
                raise Invalid(
                    f"{self._tool} has no parameter {quoted(name)}",
                    field=name,
                    value=value,
                    remedy=f"Its parameters are {', '.join(properties)}",
                )
        for name in self._required:
            if name not in arguments:
                raise Invalid(f"{name} is required", field=name, remedy=f"Pass {name}")
        values = dict(arguments)
        for name, value in arguments.items():
            try:
                if name in self._times and isinstance(value, str):
                    # JSON has no times, only texts.
                    values[name] = self._adapters[name].validate_json(orjson.dumps(value), strict=True)
                elif name in self._adapters:
                    self._adapters[name].validate_python(value, strict=True)
            except ValidationError as error:
                raise Invalid(
                    f"{name} must be {_describe(properties[name])}, got {quoted(value)}", field=name, value=value
                ) from error
        return values


def output_schema(function: Callable[..., Coroutine[Any, Any, BaseModel]]) -> Schema:
    """The schema of what a function returns. Its root is an object, as MCP wants it."""
    returned = get_type_hints(function)["return"]
    return {"type": "object", **TypeAdapter(returned).json_schema(mode="serialization", schema_generator=_Untitled)}


def _json_type(kind: Any) -> Any:
    """The part of a type that JSON can carry, or None if there is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        parts = [part for part in map(_json_type, inner) if part is not None]
        return Union[tuple(parts)] if any(part is not NoneType for part in parts) else None  # noqa: UP007
    if origin in (Sequence, Iterable):
        item = _json_type(inner[0])
        return None if item is None else GenericAlias(list, (item,))
    return None if (origin or kind) in _NOT_SENT else kind


def _has_model(kind: Any) -> bool:
    return any(map(_has_model, get_args(kind))) or (isinstance(kind, type) and issubclass(kind, BaseModel))


def _describe(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_describe, schema["anyOf"]))
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema.get("type") == "array":
        return f"a list of {_WORDS[schema['items']['type']].split()[-1]}s"
    if schema.get("format") == "date-time":
        return "a time such as 2030-01-31T12:00:00Z"
    return _WORDS[schema["type"]]
