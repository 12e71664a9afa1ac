"""Counts what SQLite does: the same on every machine, however busy it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from heedful import Heedful


@contextmanager
def sqlite_steps(store: Heedful) -> Iterator[Callable[[], int]]:
    """Counts the instructions that SQLite runs inside the block, in tens."""
    background = store._workspace._background._thread
    if background is not None:
        # What it does has nothing to do with the block.
        background.join()
    steps = 0
    inside = True

    def step() -> int:
        nonlocal steps
        steps += inside
        return 0

    def listen_to(driver: Any, record: object, proxy: object) -> None:
        driver.set_progress_handler(step, 10)

    backend: Any = store._workspace.database
    engine = backend.engine
    event.listen(engine, "checkout", listen_to)
    # Writers share a connection, and some wait for the next reader: these were taken before.
    for taken in (backend._writer, *backend._readers):
        if taken is not None:
            listen_to(taken.dbapi_connection, None, None)
    try:
        yield lambda: steps
    finally:
        inside = False
        event.remove(engine, "checkout", listen_to)
