"""A writer: does one deed after the other, and says so when it is done.

What can't be done now is tried again until it can.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from deeds import Deed, Facts

import heedful
from heedful.errors import Unavailable
from heedful.providers.configured import embedder_from
from heedful.testing import WordEmbedder

PAUSE = 0.02
SHOWN = 1500
"""Characters of an error that are told, so that a line is written whole or not at all."""


class JumpingClock:
    """A clock that steps by seconds, hours, days and years, back and forth, each time it is asked."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def __call__(self) -> datetime:
        span = self._random.choice([1, 3600, 86400, 20 * 365 * 86400])
        return datetime(2026, 6, 1, tzinfo=UTC) + timedelta(seconds=self._random.uniform(-span, span))


def say(writer: str, **line: Any) -> None:
    """A line on standard output, which several processes share."""
    os.write(1, json.dumps({"writer": writer, **line}).encode() + b"\n")


def write(told: dict[str, Any], stopped: threading.Event) -> None:
    """Works until it is stopped."""
    store = _persist(told, stopped, lambda: _opened(told))
    number = told["first"]
    while not stopped.is_set():
        deed = Deed(told["writer"], number)
        say(told["writer"], begun=number)
        made = _persist(told, stopped, lambda deed=deed: deed.do(store, Facts(**told["facts"])))  # type: ignore[misc]
        if made is None:
            break
        say(told["writer"], done=number, id=made)
        number += 1
    if store is not None:
        store.close()


def _persist(told: dict[str, Any], stopped: threading.Event, attempt: Callable[[], Any]) -> Any:
    """What the first attempt returns that succeeds; None if it is stopped before."""
    while True:
        try:
            return attempt()
        except Unavailable as error:
            say(told["writer"], error=error.code, said=str(error)[:SHOWN])
            if stopped.wait(PAUSE):
                return None


def _opened(told: dict[str, Any]) -> Any:
    where, project = told["where"], told["project"]
    if where.startswith("http"):
        return heedful.connect(where, api_key=told["key"], project=project)
    embedder = WordEmbedder() if told["embedding"] is None else embedder_from(told["embedding"])
    clock = JumpingClock(f"{told['writer']}/{told['first']}") if told["jumping"] else None
    return heedful.open(where, project=project, embedding=embedder, clock=clock)
