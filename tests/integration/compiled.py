"""SQL that is compiled once for all stores of a test process: each store has an engine of its own, which would start
with nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

from heedful.storage import sqlite
from heedful.storage.postgresql import backend as postgresql

STATEMENTS = 3000
"""How many are kept for each kind of database."""


class Compiled(MutableMapping[Any, Any]):
    """Compiled statements by all that makes them different, except the engine they were first compiled for."""

    def __init__(self) -> None:
        self._found: LRUCache[Any, Any] = LRUCache(STATEMENTS)

    def __getitem__(self, key: Any) -> Any:
        return self._found[_shared(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._found[_shared(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._found[_shared(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _shared(key: Any) -> Any:
    dialect, *others = key
    return dialect.statement_compiler, *others


Engines = tuple[Engine, Engine]


@contextmanager
def compiled_once() -> Iterator[None]:
    """Stores that are opened meanwhile share what was compiled."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (sqlite, postgresql):
            patched.setattr(module, "new_engines", _sharing(module.new_engines, Compiled()))
        yield


def _sharing(create: Callable[..., Engines], compiled: Compiled) -> Callable[..., Engines]:
    return partial(create, execution_options={"compiled_cache": compiled})
