"""The queries of one store: who may start one now, on which process, within which limits."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping
from typing import Any

from sqlalchemy import make_url

from heedful import calling
from heedful.errors import HeedfulError, Unavailable
from heedful.executions.databases.base import Limits, timed_out
from heedful.executions.databases.errors import address, out_of_memory, unreachable
from heedful.executions.sandbox.gate import Gate
from heedful.executions.sandbox.limits import QueryLimits
from heedful.executions.sandbox.messages import error_received
from heedful.executions.sandbox.process import Died
from heedful.executions.sandbox.stock import STOCK

logger = logging.getLogger("heedful.executions")


class Pool:
    """Asks processes on behalf of the projects of one store."""

    def __init__(self, limits: QueryLimits | None = None) -> None:
        self.limits = limits or QueryLimits()
        self._gate = Gate(self.limits.most, self.limits.most_per_caller, self.limits.wait)
        self._lock = threading.Lock()
        self._is_open = False

    def ask(self, project: str, request: dict[str, Any], stages: Mapping[str, float], seconds: float) -> Any:
        """What a process answers to a request; what it refuses is raised here. `seconds` is what a query may take."""
        self._open()
        request = {"seconds": seconds, "memory": self.limits.memory, "disk": self.limits.disk, **request}
        with self._gate.turn(project, calling.subject() or None):
            process = STOCK.take()
            try:
                answer = process.ask(request, stages)
            except BaseException as error:
                STOCK.replace()
                if isinstance(error, Died):
                    if error.expired and error.stage == "start" and "url" in request:
                        raise _silent(request["url"], stages["start"]) from None
                    raise _why(error, seconds) from None
                raise
            if answer["last"]:
                process.end()
                STOCK.replace()
            else:
                STOCK.give_back(process)
        if "error" in answer:
            raise error_received(answer["error"])
        if "fault" in answer:
            logger.error("a query process failed: %s", answer["fault"])
            raise _crashed("it failed; the log says how")
        return answer["result"]

    def close(self) -> None:
        """Lets go of the processes."""
        with self._lock:
            if self._is_open:
                STOCK.close(self.limits.most)
            self._is_open = False

    def _open(self) -> None:
        with self._lock:
            if not self._is_open:
                STOCK.open(self.limits.most)
            self._is_open = True


def _silent(url: str, seconds: float) -> HeedfulError:
    """The error for a database that was connected to, or should have been, and didn't answer before the query began."""
    return unreachable(address(make_url(url)), f"no answer within {seconds:g} seconds")


def _why(died: Died, seconds: float) -> HeedfulError:
    if died.out_of_time:
        return timed_out(Limits(seconds))
    if died.status in (-signal.SIGABRT, 1):
        # Neither C++ nor Python get far without memory.
        return out_of_memory()
    return _crashed(f"status {died.status}; memory may have run out")


def _crashed(how: str) -> Unavailable:
    return Unavailable(
        f"the process that ran this query has ended ({how})",
        code="query_crashed",
        remedy="Ask for less; if it happens again with any query, look at the database driver and the system's log",
    )
