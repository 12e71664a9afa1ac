"""Odd texts and values, in the place of each text and each mapping that a call takes."""

from __future__ import annotations

import inspect
import random
import string
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import grids
from comparing import Plain
from scenario import Failure, Step

from heedful.api import CALLS
from heedful.api.calls import CALLBACKS
from heedful.errors import HeedfulError

_random = random.Random(1)
LONG = "".join(_random.choice(string.ascii_letters) for _ in range(3_000))
"""A text that can't be compressed, so that no index of PostgreSQL holds it."""

WIDE = "".join(chr(0x1F300 + _random.randrange(700)) for _ in range(200))
"""As long as a name may be, of the characters that take most."""

_EACH_NIGHT = {
    "longest name": LONG[:200],
    "bidirectional": "a\u202eb\u2066c",
    "invisible": "\u200b\ufeff",
    "noncharacter": "a\uffffb\U0010ffff",
    "quotes": "a'b\"c`d;--",
    "newline": "a\nb\r\tc",
    "blank": " \t",
    "empty": "",
    "number": "1e400",
}

TEXTS = {
    "nul": "a\0b",
    "surrogate": "a\ud800b",
    "long": LONG,
    "wide": WIDE,
    "control": "a\x1b[31m\x07\x7fb",
    "escape": "a\\u0000b\\",
    **(_EACH_NIGHT if grids.WHOLE else {}),
}


def nested(depth: int) -> Any:
    result: Any = 1
    for _ in range(depth):
        result = {"n": result}
    return result


VALUES: dict[str, Any] = {
    **{name: text for name, text in TEXTS.items() if name not in ("blank", "empty")},
    "very long": LONG * 20,
    "not a number": float("nan"),
    "infinite": float("-inf"),
    "64 bits": 2**63 - 1,
    "unsigned": 2**63,
    "65 bits": -(2**63) - 1,
    "400 digits": 10**400,
    "smallest": 5e-324,
    "largest": 1.7976931348623157e308,
    "minus zero": -0.0,
    "megabyte": "x" * 1_000_000,
    "members": {f"k{number}": number for number in range(5_000)},
    "list": list(range(10_000)),
    "deep": nested(90),
    "too deep": nested(150),
    "bytes": b"a",
    "set": {1},
}

_ONCE = ("idempotency_key", "external_id", "if_match")
"""Parameters that another call with the same value can't have."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call with one odd input."""

    call: str
    place: str
    """The parameter, and where in it the input was."""
    odd: str
    result: str

    @property
    def error(self) -> str | None:
        """The kind of the error, with its code and its field, if it is one."""
        return self.result.partition(": ")[0] if self.result.startswith("raises ") else None


def outcomes(engine: Any, steps: Sequence[Step]) -> Iterator[Outcome]:
    """Makes all calls again that succeeded before, with each odd input in each place, once."""
    seen: set[tuple[str, str]] = set()
    for step in steps:
        if isinstance(step.result, Failure) or step.name not in CALLS:
            continue
        parameters = CALLS[step.name].signature.parameters
        given = {
            name: value
            for name, value in CALLS[step.name].arguments(step.args, step.kwargs).items()
            if name not in _ONCE or parameters[name].default is inspect.Parameter.empty
        }
        new = [each for each in _variants(step.name, given) if (step.name, each[0]) not in seen]
        for place, odd, changed in new:
            yield Outcome(step.name, place, odd, _result(engine, step.name, changed))
        seen |= {(step.name, place) for place, _, _ in new}


def _result(engine: Any, name: str, kwargs: Mapping[str, Any]) -> str:
    space, _, verb = name.rpartition(".")
    plain = Plain()
    try:
        return repr(plain.of(getattr(getattr(engine, space) if space else engine, verb)(**kwargs)))
    except HeedfulError as error:
        return f"raises {type(error).__name__} {error.code} {error.field!r}: {plain.of(error.message)}"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"


def _variants(name: str, given: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    hints = CALLS[name].types
    for parameter in CALLS[name].signature.parameters.values():
        if parameter.name in CALLBACKS or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        kinds = _kinds(hints[parameter.name])
        usual: Any = "text" if str in kinds else {} if dict in kinds else None
        for place, odd, value in _odd(parameter.name, given.get(parameter.name, usual)):
            if not grids.WHOLE and crc32(f"{name} {place} {odd}".encode()) % 3:
                # Of each place some, of each odd input many places.
                continue
            if parameter.name == "idempotency_key":
                # With sessions elsewhere, their feedback has keys of its own.
                value += name
            yield place, odd, {**given, parameter.name: value}


def _kinds(hint: Any) -> set[Any]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        return set().union(*(_kinds(each) for each in typing.get_args(hint) if not isinstance(each, str)))
    return {origin or hint}


def _odd(place: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, str):
        for odd, text in TEXTS.items():
            yield place, odd, text
    elif isinstance(value, dict):
        for odd, inner in VALUES.items():
            yield f"{place}.*", odd, {**value, "odd": inner}
        for odd, text in TEXTS.items():
            yield f"{place}.<key>", odd, {**value, text: 1}
        for key, inner in value.items():
            for within, odd, changed in _odd(f"{place}.{key}", inner):
                yield within, odd, {**value, key: changed}
    elif isinstance(value, list):
        for number, inner in enumerate(value[:1]):
            for within, odd, changed in _odd(f"{place}[]", inner):
                yield within, odd, [*value[:number], changed, *value[number + 1 :]]
