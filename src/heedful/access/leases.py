"""Renews the leases of calls under way, so that a long call keeps its place and that of a dead process ends soon."""

from __future__ import annotations

import contextvars
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from heedful.errors import HeedfulError

EVERY = 15.0
"""Seconds between two renewals."""

logger = logging.getLogger("heedful")


class Heartbeat:
    """Renews what is under way in one thread, which is there only while there is something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renewals: dict[object, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def renewing(self, renew: Callable[[], object]) -> Iterator[None]:
        """Calls `renew` now and then until the block ends, in the context of the caller."""
        context, mark = contextvars.copy_context(), object()
        with self._lock:
            self._renewals[mark] = lambda: context.run(renew)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heedful-leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._renewals[mark]

    def beat(self) -> None:
        """Renews all that is under way once."""
        with self._lock:
            renewals = list(self._renewals.values())
        for renew in renewals:
            try:
                renew()
            except HeedfulError as error:
                # The next one may succeed, long before the lease ends.
                logger.warning("the lease of a call can't be renewed: %s", error)

    def leave_parent(self) -> None:
        """A forked child has neither the thread nor the calls of its parent."""
        self._lock = threading.Lock()
        self._renewals = {}
        self._thread = None

    def _run(self) -> None:
        stop = threading.Event()
        while True:
            stop.wait(EVERY)
            with self._lock:
                if not self._renewals:
                    self._thread = None
                    return
            self.beat()


HEARTBEAT = Heartbeat()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HEARTBEAT.leave_parent)
