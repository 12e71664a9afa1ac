"""The queries of one store: who may start one now, on which process, within which limits."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import make_url

from heedful import request_context
from heedful.errors import HeedfulError, Unavailable
from heedful.results import Result, decode
from heedful.sql.databases.contract import CONNECT_SECONDS, Limits, timed_out
from heedful.sql.databases.errors import address, out_of_memory, unreachable
from heedful.sql.databases.schema import Schema
from heedful.sql.databases.values import TextValues
from heedful.sql.sandbox.confine import QueryLimits
from heedful.sql.sandbox.process import Process, ProcessDied
from heedful.sql.sandbox.protocol import decode_error, decode_schema, encode_parameters
from heedful.sql.statements import check_text

logger = logging.getLogger("heedful.sql")


class Pool:
    """Asks processes on behalf of the projects of one store."""

    def __init__(self, limits: QueryLimits | None = None) -> None:
        self.limits = limits or QueryLimits()
        self._gate = ConcurrencyLimit(self.limits.max_processes, self.limits.max_per_caller, self.limits.wait)
        self._lock = threading.Lock()
        self._is_open = False

    def ask(
        self,
        project: str,
        request: dict[str, Any],
        stages: Mapping[str, float],
        seconds: float,
        take: Callable[[Any], None] | None = None,
    ) -> Any:
        """What a process answers to a request; what it refuses is raised here. `seconds` is what a query may take, and
        `take` gets what comes before the answer."""
        self._open()
        request = {"seconds": seconds, "memory": self.limits.memory, "disk": self.limits.disk, **request}
        with self._gate.slot(project, request_context.subject() or None):
            process = IDLE_PROCESSES.take()
            try:
                answer = process.ask(request, stages, take)
            except BaseException as error:
                IDLE_PROCESSES.replace()
                if isinstance(error, ProcessDied):
                    if error.expired and error.stage == "start" and "url" in request:
                        raise _no_answer_error(request["url"], stages["start"]) from None
                    raise _death_error(error, seconds) from None
                raise
            if answer["last"]:
                process.end()
                IDLE_PROCESSES.replace()
            else:
                IDLE_PROCESSES.release(process)
        if "error" in answer:
            raise decode_error(answer["error"])
        if "fault" in answer:
            logger.error("a query process failed: %s", answer["fault"])
            raise _crashed("it failed; the log says how")
        return answer["result"]

    def close(self) -> None:
        """Ends the processes."""
        with self._lock:
            if self._is_open:
                IDLE_PROCESSES.close(self.limits.max_processes)
            self._is_open = False

    def _open(self) -> None:
        with self._lock:
            if not self._is_open:
                IDLE_PROCESSES.open(self.limits.max_processes)
            self._is_open = True


def _no_answer_error(url: str, seconds: float) -> HeedfulError:
    """The error for a database that didn't answer before the query started."""
    return unreachable(address(make_url(url)), f"no answer within {seconds:g} seconds")


def _death_error(died: ProcessDied, seconds: float) -> HeedfulError:
    if died.out_of_time:
        return timed_out(Limits(seconds))
    if died.status in (-signal.SIGABRT, 1):
        # C++ and Python both fail when memory runs out.
        return out_of_memory()
    return _crashed(f"status {died.status}; memory may have run out")


def _crashed(how: str) -> Unavailable:
    return Unavailable(
        f"the process that ran this query has ended ({how})",
        code="query_crashed",
        remedy="Ask for less; if it happens again with any query, look at the database driver and the system's log",
    )


RETRY_SECONDS = 1
"""The Retry-After of a caller who is refused."""


class ConcurrencyLimit:
    """Limits concurrent queries. No caller, and no project with callers, can take all of them."""

    def __init__(self, limit: int, per_caller: int, wait: float) -> None:
        self._limit = limit
        self._per_caller = per_caller
        self._per_project = max(1, limit - 1)
        self._wait = wait
        self._changed = threading.Condition()
        self._all = 0
        self._by_project: Counter[str] = Counter()
        self._by_caller: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def slot(self, project: str, caller: str | None) -> Iterator[None]:
        """Waits for a free slot and holds it while the block runs; `Unavailable` if none is free in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(project, caller), self._wait):
                raise busy()
            self._count(project, caller, 1)
        try:
            yield
        finally:
            with self._changed:
                self._count(project, caller, -1)
                self._changed.notify_all()

    def _has_room(self, project: str, caller: str | None) -> bool:
        if self._all >= self._limit:
            return False
        if caller is None:
            return True
        return self._by_project[project] < self._per_project and self._by_caller[project, caller] < self._per_caller

    def _count(self, project: str, caller: str | None, step: int) -> None:
        self._all += step
        if caller is None:
            return
        self._by_project[project] += step
        self._by_caller[project, caller] += step
        # Unused names are removed.
        self._by_project += Counter()
        self._by_caller += Counter()


def busy() -> Unavailable:
    """The error for a query that found no free slot."""
    return Unavailable(
        "too many queries are running",
        code="query_busy",
        value=RETRY_SECONDS,
        remedy="Wait for them to end and send it again, or raise query_processes in the settings",
    )


class IdleProcesses:
    """Idle processes. They end with the last store that uses them, and with the interpreter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Process] = []
        self._stores: list[int] = []
        self._starter: ThreadPoolExecutor | None = None
        atexit.register(self.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def open(self, limit: int) -> None:
        """Registers a store that uses up to `limit` processes at once."""
        with self._lock:
            self._stores.append(limit)

    def close(self, limit: int) -> None:
        """Unregisters a store."""
        with self._lock:
            if limit in self._stores:
                self._stores.remove(limit)
        self._trim()

    def take(self) -> Process:
        """An idle process, or a new one."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                process = self._idle.pop()
            if process.alive:
                return process
            process.end()
        return self._start().result()

    def release(self, process: Process) -> None:
        """Returns a process that can take another request."""
        with self._lock:
            self._idle.append(process)
        self._trim()

    def replace(self) -> None:
        """Starts a replacement for a process that has ended, so that the next query need not wait."""
        with self._lock:
            is_missing = len(self._idle) < max(self._stores, default=0)
        if is_missing:
            self._start().add_done_callback(self._add)

    def end(self) -> None:
        """Ends all that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _add(self, started: Future[Process]) -> None:
        # If it failed to start, the next query reports why.
        if started.exception() is None:
            self.release(started.result())

    def _trim(self) -> None:
        with self._lock:
            limit = max(self._stores, default=0)
            surplus, self._idle = self._idle[limit:], self._idle[:limit]
        for process in surplus:
            process.end()

    def _start(self) -> Future[Process]:
        with self._lock:
            # Linux kills a process with the thread that started it, so a permanent thread starts them.
            if self._starter is None:
                self._starter = ThreadPoolExecutor(1, thread_name_prefix="heedful-start")
            try:
                return self._starter.submit(Process)
            except RuntimeError as error:
                raise Unavailable(
                    "this process is shutting down and starts no further queries", code="query_process"
                ) from error

    def _after_fork(self) -> None:
        """A forked child must not use its parent's query processes."""
        self._lock = threading.Lock()
        for process in self._idle:
            process.forget()
        self._idle = []
        self._starter = None


IDLE_PROCESSES = IdleProcesses()


GRACE_SECONDS = 2.0
"""Seconds that a query has beyond its limit to stop by itself, before its process is killed."""

_CHECK = {"start": 10.0}
_CONNECT = {"start": 10.0 + 2 * CONNECT_SECONDS}
_SCHEMA = {"start": 60.0 + CONNECT_SECONDS}
_ANSWERING = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """A database to ask; its URL holds secrets."""

    url: str
    role: str | None = None
    privileged: bool = False
    """Whether its user may do more than read."""
    sensitive: tuple[str, ...] = ()
    """The columns whose values are never read to recognise them in questions."""

    def __repr__(self) -> str:
        return "Target(…)"


@dataclass(frozen=True, slots=True)
class Checked:
    """SQL that only reads: without comments, with the names of its parameters, and a hash of it without values."""

    sql: str
    parameters: tuple[str, ...]
    template: bytes


@dataclass(frozen=True, slots=True)
class QueryRun:
    """A statement that ran: as it is kept, a hash of it without values, its result, and the state of the data."""

    sql: str
    template: bytes
    result: Result
    encoded: dict[str, Any]
    """The result as it is stored."""
    version: str | None


class Queries:
    """The queries of one project."""

    def __init__(self, pool: Pool, project: str) -> None:
        self._pool = pool
        self._project = project

    def check(self, sql: str, dialect: str) -> Checked:
        """The SQL after the guard, which raises if it refuses."""
        check_text(sql)
        reply = self._ask({"do": "check", "sql": sql, "dialect": dialect}, _CHECK)
        return Checked(reply["sql"], tuple(reply["parameters"]), bytes.fromhex(reply["template"]))

    def run(self, target: Target, sql: str, parameters: Mapping[str, Any], display: str | None = None) -> QueryRun:
        """Runs one read-only statement. `display`, if any, is stored instead of its SQL."""
        reply = self._run(target, sql, parameters, display, self._pool.limits.rows, keep=True)
        return QueryRun(
            reply["sql"], bytes.fromhex(reply["template"]), decode(reply["result"]), reply["result"], reply["version"]
        )

    def dry_run(self, target: Target, sql: str, parameters: Mapping[str, Any]) -> None:
        """Tries a statement by fetching one row."""
        self._run(target, sql, parameters, None, 1, keep=False)

    def read_schema(self, target: Target) -> Schema:
        """The tables and views of a database, after checking its user's rights."""
        request = {"do": "schema", **_connection_fields(target), "privileged": target.privileged}
        return decode_schema(self._ask(request, _SCHEMA))

    def text_values(self, target: Target) -> TextValues:
        """The texts that stand in the columns of a database, as far as they are few and not sensitive."""
        request = {"do": "values", **_connection_fields(target), "without": target.sensitive}
        found = self._ask(request, _SCHEMA)
        values = {(table, column): tuple(texts) for table, column, texts, _ in found["texts"]}
        partial = frozenset((table, column) for table, column, _, is_partial in found["texts"] if is_partial)
        return TextValues(values, partial, frozenset((table, column) for table, column in found["columns"]))

    def stream_values(
        self,
        target: Target,
        column: tuple[str, str],
        rows: int,
        take: Callable[[list[str]], None],
        *,
        ordered: bool = True,
        after: str | None = None,
    ) -> str | None:
        """Hands on the texts of one column, up to so many, in parts: those `after` one in the database's order, or any.
        Returns the last one if there may be more."""
        wanted = {"table": column[0], "column": column[1], "rows": rows, "ordered": ordered, "after": after}
        running = self._pool.limits.seconds + GRACE_SECONDS
        request = {"do": "column", **_connection_fields(target), **wanted}
        last: str | None = self._ask(request, {**_SCHEMA, "running": running}, take)
        return last

    def data_version(self, target: Target) -> str | None:
        """A value that changes whenever data change; None if the database has none."""
        version: str | None = self._ask({"do": "version", **_connection_fields(target)}, _CONNECT)
        return version

    def _run(
        self,
        target: Target,
        sql: str,
        parameters: Mapping[str, Any],
        display: str | None,
        rows: int,
        *,
        keep: bool,
    ) -> dict[str, Any]:
        check_text(sql)
        request = {
            "do": "run",
            **_connection_fields(target),
            "sql": sql,
            "parameters": encode_parameters(parameters),
            "display": display,
            "rows": rows,
            "bytes": self._pool.limits.bytes,
            "keep": keep,
        }
        running = self._pool.limits.seconds + GRACE_SECONDS
        reply: dict[str, Any] = self._ask(request, {**_CONNECT, "running": running, "answering": _ANSWERING})
        return reply

    def _ask(
        self, request: dict[str, Any], stages: Mapping[str, float], take: Callable[[Any], None] | None = None
    ) -> Any:
        return self._pool.ask(self._project, request, stages, self._pool.limits.seconds, take)


def _connection_fields(target: Target) -> dict[str, Any]:
    return {"url": target.url, "role": target.role}
