"""What came of calls in a form that can be compared, and the places where they are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from scenario import Failure, hook, model
from server import running

import heedful
from heedful.testing import ManualClock, WordEmbedder

CHANGING = {"execution_time_ms": 0, "next_cursor": "a cursor", "api_key": "a key", "token": "a token"}
"""What differs from run to run by its nature: stopwatches, places in lists, and secrets."""

BACKGROUND = {"attempts", "next_at", "error"}
"""What a thread changes meanwhile: how often an alert was tried."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|visitor-[0-9a-f]{12}")

_STORE = re.compile(r"(/\S*\.db|postgresql://\S+): ")


class Plain:
    """Values as they can be compared: types beside values, and ids by the order in which they came."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, BaseModel):
            fields = {name: self._field(name, getattr(value, name)) for name in type(value).model_fields}
            # A page is a page, whether it was told of what or not.
            kind = type(value).__pydantic_generic_metadata__["origin"] or type(value)
            return kind.__name__, fields
        if isinstance(value, dict):
            return {self.of(name): self._field(name, each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value).__name__, [self.of(each) for each in value]
        if isinstance(value, Failure):
            return "Failure", value.kind, value.code, value.field, self.of(value.message), self.of(value.remedy)
        if isinstance(value, str):
            value = _STORE.sub("the store", value)
            return _ID.sub(lambda found: self._ids.setdefault(found[0], f"id {len(self._ids)}"), value)
        return type(value).__name__, value

    def _field(self, name: Any, value: Any) -> Any:
        if name in BACKGROUND:
            return "a thread's"
        return CHANGING[name] if name in CHANGING and value is not None else self.of(value)


@contextmanager
def embedded(path: Path | str, sessions: str | None = None) -> Iterator[tuple[Any, ManualClock]]:
    clock = ManualClock()
    with heedful.open(
        path,
        sessions=sessions,
        clock=clock,
        embedding=WordEmbedder(),
        language_model=model(),
        feedback_hook=hook(),
        worker=False,
    ) as engine:
        yield engine, clock


@contextmanager
def remote(path: Path | str) -> Iterator[tuple[Any, ManualClock]]:
    with (
        running(path, language_model=model(), feedback_hook=hook(), worker=False) as server,
        server.connect() as engine,
    ):
        yield engine, server.clock
