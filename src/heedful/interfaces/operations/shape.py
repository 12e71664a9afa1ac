"""The parameters and the result of an operation, as they cross the wire; taken from the engine's own signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from heedful.interfaces.operations.table import Operation, method
from heedful.interfaces.operations.types import plain, typed

HEADERS = {"idempotency_key": "Idempotency-Key", "if_match": "If-Match"}
"""Parameters that travel in a header."""

CALLBACKS = frozenset({"on_token", "progress"})
"""Parameters that are called while the call runs; over the wire, they are events of a stream."""


class Request(BaseModel):
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
        """Whether the other parameters stand in the query string."""
        return self.operation.method in ("GET", "DELETE")

    @property
    def keyed(self) -> bool:
        """Whether the engine itself takes an idempotency key."""
        return "idempotency_key" in self.headers

    def given(self, request: Request) -> dict[str, Any]:
        """The arguments that a request names; the engine's defaults stand for the others."""
        return {name: plain(getattr(request, name)) for name in request.model_fields_set}


@cache
def shape(operation: Operation) -> Shape:
    """The shape of an operation."""
    function = operation.function
    hints = get_type_hints(function)
    parameters = list(own_signature(function).parameters.values())
    path = tuple(re.findall(r"{(\w+)}", operation.path))
    rest: dict[str, Any] = {}
    for each in parameters:
        if each.name not in {*path, *HEADERS, *CALLBACKS}:
            kind = typed(operation.name, each.name, hints[each.name])
            required = each.default is inspect.Parameter.empty
            rest[each.name] = (kind, ... if required else _default(each.default))
    return Shape(
        operation=operation,
        path=path,
        headers=tuple(each.name for each in parameters if each.name in HEADERS),
        callbacks=tuple(each.name for each in parameters if each.name in CALLBACKS),
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
    """A default that JSON can say; None stands for those that only Python has."""
    return value if value is None or isinstance(value, str | int | float | bool | tuple) else None


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[._]", name))
