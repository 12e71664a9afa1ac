"""The query processes of this process, whichever of its stores they work for: started when needed, then kept warm."""

from __future__ import annotations

import atexit
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from heedful.errors import Unavailable
from heedful.executions.sandbox.process import Process


class Stock:
    """Idle processes. They end with the last store that uses them, and with the interpreter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Process] = []
        self._stores: list[int] = []
        self._starter: ThreadPoolExecutor | None = None
        atexit.register(self.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def open(self, most: int) -> None:
        """Counts a store in that uses up to so many at once."""
        with self._lock:
            self._stores.append(most)

    def close(self, most: int) -> None:
        """Counts a store out."""
        with self._lock:
            if most in self._stores:
                self._stores.remove(most)
        self._trim()

    def take(self) -> Process:
        """A process that nobody else has; a new one, if none is idle."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                process = self._idle.pop()
            if process.alive:
                return process
            process.end()
        return self._start().result()

    def give_back(self, process: Process) -> None:
        """Takes one back that is ready for more."""
        with self._lock:
            self._idle.append(process)
        self._trim()

    def replace(self) -> None:
        """Starts one in place of one that has ended, so that the next query need not wait for it."""
        with self._lock:
            wanted = len(self._idle) < max(self._stores, default=0)
        if wanted:
            self._start().add_done_callback(self._add)

    def end(self) -> None:
        """Ends all that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _add(self, started: Future[Process]) -> None:
        # If it could not be started, the next query finds out why.
        if started.exception() is None:
            self.give_back(started.result())

    def _trim(self) -> None:
        with self._lock:
            most = max(self._stores, default=0)
            surplus, self._idle = self._idle[most:], self._idle[:most]
        for process in surplus:
            process.end()

    def _start(self) -> Future[Process]:
        with self._lock:
            # Linux ends a process with the thread that started it, so that has to be one that stays.
            if self._starter is None:
                self._starter = ThreadPoolExecutor(1, thread_name_prefix="heedful-start")
            try:
                return self._starter.submit(Process)
            except RuntimeError as error:
                raise Unavailable(
                    "this process is about to end, and starts no more queries", code="query_process"
                ) from error

    def _after_fork(self) -> None:
        """A copy of this process must not speak to the processes of the first one."""
        self._lock = threading.Lock()
        for process in self._idle:
            process.forget()
        self._idle = []
        self._starter = None


STOCK = Stock()
