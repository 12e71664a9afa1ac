"""Calls: declared methods of namespaces, which a runner runs here, over a wire or later."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, create_model

from heedful.api.parameters import NOTHING, Means, NewExample, NewMessage
from heedful.model import Scope
from heedful.model.base import FailFastModel

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "LOCAL"]
Declared = TypeVar("Declared", bound=Callable[..., Any])
Arguments = dict[str, Any]
Runner = Callable[["Call", Arguments], Any]
"""Runs a call with the arguments that were given; the others have their defaults."""

HEADERS = {"idempotency_key": "Idempotency-Key", "if_match": "If-Match"}
"""Parameters that travel in a header."""

CALLBACKS = frozenset({"on_token", "progress"})
"""Parameters that are called while the call runs; over the wire, they are events of a stream."""

LOCAL_ONLY = frozenset({"against"})
"""Parameters that name something on the machine of the store, which nobody may choose over the wire."""

_TIME: TypeAdapter[datetime] = TypeAdapter(datetime)


class Request(FailFastModel):
    """The parameters of a call that are not in its path or its headers."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


@dataclass(eq=False)
class Call:
    """One call: its declaration, and what follows from that for those who run it."""

    function: Callable[..., Any]
    """The declared method: signature and documentation."""
    method: Method
    """LOCAL if it happens where the caller is: nothing of it is sent, or what is sent is another call."""
    path: str
    """Below the project; names in braces are parameters."""
    scope: Scope
    repeatable: bool = False
    """Whether sending it twice does what sending it once does, without a key."""
    missing: str | None = None
    """The thing that is missing when the engine returns False."""
    slow: bool = False
    """Whether it may take minutes."""
    writes_with: str | None = None
    """The parameter with which it writes, so that the scope `write` is needed too."""
    restricted: tuple[str, ...] = ()
    """The parameters for which the scope `admin` is needed too."""
    queries: bool = False
    """Whether it may ask a connector's database, or reads SQL that somebody sent."""
    everywhere: bool = False
    """Whether it concerns all projects, so that a key of the whole server is needed."""
    undoes: str | None = None
    """The parameter that names an event to retract, which needs the scope of the call that made it."""
    batch: bool = False
    """Whether feedback comes by the thousands, so that only the server's own limit bounds the body."""
    secret: bool = False
    """Whether its result is shown once and must not be kept, not even for a retry."""
    namespace: str = ""
    """The attribute of `Heedful` that has it; empty for its own methods."""

    @property
    def verb(self) -> str:
        return self.function.__name__

    @cached_property
    def name(self) -> str:
        """As in Python, with its namespace: "sessions.add_feedback"."""
        return f"{self.namespace}.{self.verb}".lstrip(".")

    @property
    def also_reads(self) -> bool:
        """Whether the scope `read` is needed too: what is done with an item of the queue is answered with that item."""
        return self.namespace == "review" and self.scope != "read"

    @cached_property
    def signature(self) -> inspect.Signature:
        """Without `self`."""
        signature = inspect.signature(self.function)
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """As `help` shows it: plain types, without what they mean and their limits."""
        declared = inspect.signature(self.function)
        plain = [
            given.replace(annotation=self.types.get(name, given.annotation))
            for name, given in declared.parameters.items()
        ]
        return declared.replace(parameters=plain, return_annotation=self.types["return"])

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    @cached_property
    def types(self) -> dict[str, Any]:
        """The types of the parameters, and that of the result as `return`."""
        return get_type_hints(self.function)

    @cached_property
    def meanings(self) -> dict[str, Means]:
        """The meaning of each parameter, as its type says it."""
        return meanings(self.function)

    @cached_property
    def defaults(self) -> Arguments:
        parameters = self.signature.parameters.items()
        return {name: given.default for name, given in parameters if given.default is not inspect.Parameter.empty}

    @cached_property
    def _positional(self) -> tuple[str, ...]:
        parameters, positional = self.signature.parameters.items(), inspect.Parameter.POSITIONAL_OR_KEYWORD
        return tuple(name for name, parameter in parameters if parameter.kind is positional)

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(self.signature.parameters) - self.defaults.keys()

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """The arguments by name; a call that doesn't fit is a TypeError, as it is in Python."""
        values = dict(zip(self._positional, args, strict=False))
        fits = len(values) == len(args) and values.keys().isdisjoint(kwargs)
        values |= kwargs
        if not fits or not self._required <= values.keys() or not values.keys() <= self.signature.parameters.keys():
            try:  # Slower, and says what doesn't fit.
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}() {error}. It takes: {', '.join(self.signature.parameters)}") from None
        return values

    def checked(self, arguments: Arguments) -> Arguments:
        """All arguments, checked by their types, and defaults for those that were not given."""
        values = self.defaults | arguments
        for name, value in arguments.items():
            check = self._checks.get(name)
            if check is not None and value is not self.defaults.get(name, check):
                values[name] = None if value is None and name in self._nullable else check(name, value)
        return values

    @cached_property
    def _checks(self) -> dict[str, Callable[[str, Any], Any]]:
        return {name: means.check for name, means in self.meanings.items() if means.check is not None}

    @cached_property
    def _nullable(self) -> frozenset[str]:
        return frozenset(name for name, kind in self.types.items() if NoneType in get_args(kind))

    # How it crosses a wire.

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """Parameters in the path, in order."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def headers(self) -> tuple[str, ...]:
        return tuple(name for name in self.signature.parameters if name in HEADERS)

    @cached_property
    def callbacks(self) -> tuple[str, ...]:
        return tuple(name for name in self.signature.parameters if name in CALLBACKS)

    @property
    def in_query(self) -> bool:
        """Whether the other parameters are in the query string."""
        return self.method in ("GET", "DELETE")

    @property
    def keyed(self) -> bool:
        """Whether the engine itself takes an idempotency key."""
        return "idempotency_key" in self.headers

    @cached_property
    def request(self) -> type[Request]:
        """The parameters that are sent, and are neither in the path nor in headers."""
        rest: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if name not in {*self.in_path, *HEADERS, *CALLBACKS, *LOCAL_ONLY}:
                required = parameter.default is inspect.Parameter.empty
                kind = _wire_type(self.types[name], self.meanings[name])
                rest[name] = (kind, ... if required else _json_default(parameter.default))
        title = "".join(part.capitalize() for part in re.split(r"[._]", self.name))
        return create_model(f"{title}Request", __base__=Request, **rest)

    @cached_property
    def result(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.types["return"])

    def arguments_of(self, request: Request) -> Arguments:
        """The arguments that a request names; the others keep their defaults."""
        return {name: _plain(getattr(request, name)) for name in request.model_fields_set}


def call(method: Method, path: str = "", scope: Scope = "read", **options: Any) -> Callable[[Declared], Declared]:
    """Declares a method as a call with a verb, a path and a scope; `options` are fields of `Call`.

    Calling the method passes its arguments to the runner of its namespace.
    """

    def declare(function: Declared) -> Declared:
        options.setdefault("repeatable", method == "GET")
        declared = Call(function, method, path, scope, **options)

        @wraps(function)
        def run(self: Namespace, /, *args: Any, **kwargs: Any) -> Any:
            return self._run(declared, declared.arguments(args, kwargs))

        run.call = declared  # type: ignore[attr-defined]
        # So `help` and notebooks find `__signature__` when somebody asks, and opening a store doesn't wait for it.
        run.__wrapped__ = declared  # type: ignore[assignment]
        return run  # type: ignore[return-value]

    return declare


class Namespace:
    """Calls that are declared together, and their runner."""

    def __init__(self, run: Runner) -> None:
        self._runner = run

    def _run(self, call: Call, arguments: Arguments) -> Any:
        return self._runner(call, arguments)

    def __init_subclass__(cls, name: str | None = None) -> None:
        if name is not None:
            for declared in calls_of(cls).values():
                declared.namespace = name


def calls_of(namespace: type[Namespace]) -> dict[str, Call]:
    """The calls that a namespace declares, by verb."""
    return {verb: member.call for verb, member in vars(namespace).items() if hasattr(member, "call")}


def meanings(function: Callable[..., Any]) -> dict[str, Means]:
    """The meaning of each parameter of a function, as its type says it."""
    hints = get_type_hints(function, include_extras=True)
    return {name: _means(kind) for name, kind in hints.items() if name != "return"}


def _means(kind: Any) -> Means:
    """The meaning of a parameter in its type: outer words go before inner ones."""
    if get_origin(kind) is Annotated:
        means = _means(kind.__origin__)
        for outer in kind.__metadata__:
            means = outer.over(means) if isinstance(outer, Means) else means
        return means
    if get_origin(kind) in (Union, UnionType):
        return next((means for part in get_args(kind) if (means := _means(part)) is not NOTHING), NOTHING)
    return NOTHING


def _wire_type(kind: Any, means: Means) -> Any:
    """The type that a parameter has on the wire, with its limits."""
    kind = kind if means.wire is None else means.wire
    if kind in (int, int | None):
        kind = Annotated[kind, BeforeValidator(_as_integer)]
    if kind == datetime | None:
        kind = Annotated[kind, BeforeValidator(_as_moment)]
    if not means.limits:
        return kind
    # Items are counted before they are read; all else, the engine checks.
    most = means.limits.get("maxItems") if get_origin(kind) is list else None
    return Annotated[kind, Field(json_schema_extra=dict(means.limits), max_length=most)]


def _json_default(value: Any) -> Any:
    """A default that JSON can express; None for those that only Python has."""
    return value if value is None or isinstance(value, str | int | float | bool | tuple) else None


def _as_integer(value: Any) -> Any:
    """To JSON, 3.0 is the same number as 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_moment(value: Any) -> Any:
    """A time is written as one: a bare number could be seconds as well as microseconds."""
    if not isinstance(value, str):
        return value
    if value.strip().replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z, not a number")
    return _TIME.validate_python(value)


def _plain(value: Any) -> Any:
    """A value that was read, as the engine takes it: mappings where the wire has a model of its own."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.model_dump(exclude_unset=True) if isinstance(value, NewMessage | NewExample) else value
