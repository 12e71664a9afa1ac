"""Work that may be done later: one thread, which outlives an error and ends before the process does."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

logger = logging.getLogger("heedful")


class Background:
    """Runs calls one after the other. What was given is done before the process exits, also without `close`."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._lock = Lock()

    def submit(self, name: str, call: Callable[[], object]) -> None:
        """Has `call` run soon; an exception is logged under `name`, and the next call runs all the same."""
        with self._lock:
            # A forked child has none of its parent's threads.
            if self._pool is None or self._process != os.getpid():
                self._process = os.getpid()
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="heedful-background")
            self._pool.submit(self._run, name, call)

    def close(self) -> None:
        """Waits until everything is done."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.shutdown()

    @staticmethod
    def _run(name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:
            logger.exception("%s failed in the background", name)
