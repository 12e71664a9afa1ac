"""A lock that many may hold to read, and one alone to write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Readers share it; a writer has it alone, and comes before readers that come later. It is not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0
        self._writing = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._writers)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: not self._readers and not self._writing)
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writers -= 1
                self._writing = False
                self._changed.notify_all()
