"""The queries of one store: who may start one now, on which process, within which limits.

A process is started, asked, watched, and killed when its time is up.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import make_url

from heedful import request_context
from heedful.errors import HeedfulError, Unavailable
from heedful.results import Result, decode
from heedful.settings import Settings
from heedful.sql.databases import CONNECT_SECONDS, errors
from heedful.sql.databases.schema import Schema, TextValues
from heedful.sql.sandbox import worker
from heedful.sql.sandbox.protocol import BadFrame, decode_error, encode_parameters, receive, send

logger = logging.getLogger("heedful.sql")


class Pool:
    """Asks processes on behalf of the projects of one store."""

    def __init__(self, config: Settings) -> None:
        self.config = config
        self._processes = config.query_processes or max(4, os.cpu_count() or 1)
        per_caller = min(config.query_processes_per_caller or max(1, self._processes // 2), self._processes)
        self._gate = ConcurrencyLimit(self._processes, per_caller, config.query_wait)
        self._lock = threading.Lock()
        self._is_open = False

    def ask(
        self,
        project: str,
        request: dict[str, Any],
        stages: Mapping[str, float],
        take: Callable[[Any], None] | None = None,
    ) -> Any:
        """The answer of a process to a request; an error from there is raised here. `take` gets what comes before the
        answer."""
        with self._lock:
            if not self._is_open:
                IDLE_PROCESSES.open(self._processes)
            self._is_open = True
        seconds, config = self.config.query_seconds, self.config
        request = {"seconds": seconds, "memory": config.query_memory, "disk": config.query_disk, **request}
        with self._gate.slot(project, request_context.subject() or None):
            process = IDLE_PROCESSES.take()
            try:
                answer = process.ask(request, stages, take)
            except BaseException as error:
                IDLE_PROCESSES.replace()
                if not isinstance(error, ProcessDied):
                    raise
                if error.expired and error.stage == "start" and "url" in request:
                    reason = f"no answer within {stages['start']:g} seconds"
                    raise errors.unreachable(errors.address(make_url(request["url"])), reason) from None
                raise _death_error(error, seconds) from None
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
        with self._lock:
            if self._is_open:
                IDLE_PROCESSES.close(self._processes)
            self._is_open = False


def _death_error(died: ProcessDied, seconds: float) -> HeedfulError:
    if died.expired or died.status == -getattr(signal, "SIGXCPU", math.inf):
        return errors.timed_out(seconds)
    if died.status in (-signal.SIGABRT, 1):
        # C++ and Python both fail when memory runs out.
        return errors.out_of_memory()
    return _crashed(f"status {died.status}; memory may have run out")


def _crashed(how: str) -> Unavailable:
    message = f"the process that ran this query has ended ({how})"
    remedy = "Ask for less; if it happens again with any query, look at the database driver and the system's log"
    return Unavailable(message, code="query_crashed", remedy=remedy)


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
    remedy = "Wait for them to end and send it again, or raise query_processes in the settings"
    return Unavailable("too many queries are running", code="query_busy", value=RETRY_SECONDS, remedy=remedy)


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
                message = "this process is shutting down and starts no further queries"
                raise Unavailable(message, code="query_process") from error

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
_SCHEMAS = TypeAdapter(Schema)


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
class Statement:
    """SQL to run. `display`, if any, is stored instead: the SQL with the parameters' values written out."""

    sql: str
    parameters: dict[str, Any]
    display: str | None = None


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


def _check_text(sql: str) -> None:
    # The parser takes a while to load, and whoever recalls needs none.
    from heedful.sql.statements import check_text

    check_text(sql)


class Queries:
    """The queries of one project."""

    def __init__(self, pool: Pool, project: str) -> None:
        self._pool = pool
        self._project = project

    def check(self, sql: str, dialect: str) -> Checked:
        """The SQL after the guard, which raises if it refuses."""
        _check_text(sql)
        reply = self._pool.ask(self._project, {"do": "check", "sql": sql, "dialect": dialect}, _CHECK)
        return Checked(reply["sql"], tuple(reply["parameters"]), bytes.fromhex(reply["template"]))

    def run(self, target: Target, statement: Statement) -> QueryRun:
        reply = self._run(target, statement, self._pool.config.query_rows, keep=True)
        result, hashed = reply["result"], bytes.fromhex(reply["template"])
        return QueryRun(reply["sql"], hashed, decode(result), result, reply["version"])

    def dry_run(self, target: Target, statement: Statement) -> None:
        """Tries a statement by fetching one row."""
        self._run(target, replace(statement, display=None), 1, keep=False)

    def _run(self, target: Target, statement: Statement, rows: int, *, keep: bool) -> dict[str, Any]:
        _check_text(statement.sql)
        reply: dict[str, Any] = self._ask(
            target,
            _CONNECT | {"running": self._running_seconds, "answering": _ANSWERING},
            do="run",
            sql=statement.sql,
            parameters=encode_parameters(statement.parameters),
            display=statement.display,
            rows=rows,
            bytes=self._pool.config.query_bytes,
            keep=keep,
        )
        return reply

    def read_schema(self, target: Target) -> Schema:
        """The tables and views of a database, after checking its user's rights."""
        return _SCHEMAS.validate_python(self._ask(target, _SCHEMA, do="schema", privileged=target.privileged))

    def text_values(self, target: Target) -> TextValues:
        """The texts that stand in the columns of a database, as far as they are few and not sensitive."""
        reply = self._ask(target, _SCHEMA, do="values", without=target.sensitive)
        values = {(table, column): tuple(texts) for table, column, texts, _ in reply["texts"]}
        partial = frozenset((table, column) for table, column, _, is_partial in reply["texts"] if is_partial)
        return TextValues(values, partial, frozenset((table, column) for table, column in reply["columns"]))

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
        stages, (table, name) = _SCHEMA | {"running": self._running_seconds}, column
        wanted = {"table": table, "column": name, "rows": rows, "ordered": ordered, "after": after}
        last: str | None = self._ask(target, stages, take, do="column", **wanted)
        return last

    def data_version(self, target: Target) -> str | None:
        version: str | None = self._ask(target, _CONNECT, do="version")
        return version

    @property
    def _running_seconds(self) -> float:
        return self._pool.config.query_seconds + GRACE_SECONDS

    def _ask(
        self, target: Target, stages: Mapping[str, float], take: Callable[[Any], None] | None = None, **request: Any
    ) -> Any:
        return self._pool.ask(self._project, {"url": target.url, "role": target.role, **request}, stages, take)


START_SECONDS = 60.0
MAX_ANSWER = 64_000_000

_PASSED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ")
"""The environment variables passed to a query process: no passwords, nothing that changes where it connects."""

_FIXED = {
    # libpq also reads passwords and addresses from files.
    "PGPASSFILE": os.devnull,
    "PGSERVICEFILE": os.devnull,
    "PGSYSCONFDIR": os.devnull,
    # Otherwise each thread of a database reserves far more memory than it uses, which counts.
    "MALLOC_ARENA_MAX": "2",
}


class ProcessDied(Exception):
    """The process ended without an answer."""

    def __init__(self, status: int | None, *, expired: bool, stage: str | None = None) -> None:
        super().__init__(status, expired)
        self.stage = stage
        """The stage that it was in."""
        self.status = status
        self.expired = expired
        """Whether it was killed because its time was up."""


class Process:
    """A process that answers one request at a time."""

    def __init__(self) -> None:
        module_paths = dict.fromkeys(os.path.abspath(path) for path in sys.path if path)
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", worker.__file__, str(os.getpid()), *module_paths],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={name: os.environ[name] for name in _PASSED if name in os.environ} | _FIXED,
            )
        except OSError as error:
            message = f"a process for queries can't be started ({error.strerror})"
            remedy = "Check the limits on processes and open files of this user"
            raise Unavailable(message, code="query_process", remedy=remedy) from error
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._requests, self._replies = self._popen.stdin, self._popen.stdout
        self._is_ready = False
        self._expired = False
        self._stage: str | None = None

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def ask(
        self, request: dict[str, Any], stages: Mapping[str, float], take: Callable[[Any], None] | None = None
    ) -> dict[str, Any]:
        """The answer to a request; `stages` says how many seconds each part of it may take, from `start` on. `take`
        gets what comes before the answer.

        Whatever goes wrong, the process is gone afterwards: nobody can tell what it would answer next.
        """
        try:
            if not self._is_ready:
                WATCHDOG.watch(self, START_SECONDS)
                self._receive()
                self._is_ready = True
            self._enter("start", stages)
            send(self._requests.fileno(), request)
            while True:
                answer = self._receive()
                if "stage" in answer:
                    self._enter(answer["stage"], stages)
                elif "part" in answer and take is not None:
                    take(answer["part"])
                else:
                    return answer
        except BrokenPipeError:
            raise self._died() from None
        except BaseException:
            self.end()
            raise
        finally:
            WATCHDOG.watch(self, None)

    def end(self) -> None:
        """Kills the process and waits for its end."""
        WATCHDOG.watch(self, None)
        with contextlib.suppress(ProcessLookupError):
            self._popen.kill()
        self._popen.wait()
        self._close()

    def forget(self) -> None:
        """Detaches without ending it: after a fork, it belongs to the parent."""
        self._popen.returncode = 0
        self._close()

    def _close(self) -> None:
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                pipe.close()

    def _receive(self) -> dict[str, Any]:
        try:
            message = receive(self._replies.fileno(), MAX_ANSWER)
        except BadFrame:
            message = None
            self._popen.kill()
        if message is None:
            raise self._died()
        return message

    def _died(self) -> ProcessDied:
        self.end()
        return ProcessDied(self._popen.returncode, expired=self._expired, stage=self._stage)

    def _enter(self, stage: str, stages: Mapping[str, float]) -> None:
        self._stage = stage
        WATCHDOG.watch(self, stages[stage])

    def expire(self) -> None:
        """Kills the process because its time is up."""
        self._expired = True
        self._popen.kill()


class Watchdog:
    """A thread that kills processes whose time is up; a timer for each stage of each query would cost more than some
    queries do."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[Process, float] = {}
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None
        if hasattr(os, "register_at_fork"):
            # The threads and processes of a parent are not those of its child, and the lock may be held.
            os.register_at_fork(after_in_child=self._after_fork)

    def watch(self, process: Process, seconds: float | None) -> None:
        """Gives a process so many seconds from now; None for as long as it likes. When it returns, an earlier deadline
        no longer applies."""
        with self._changed:
            if seconds is None:
                self._deadlines.pop(process, None)
                return
            deadline = self._deadlines[process] = monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heedful-watchdog", daemon=True)
                self._thread.start()
            elif deadline < self._wakes_at:
                self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                now = monotonic()
                for process in [process for process, deadline in self._deadlines.items() if deadline <= now]:
                    del self._deadlines[process]
                    process.expire()
                self._wakes_at = min(self._deadlines.values(), default=math.inf)
                self._changed.wait(None if self._wakes_at == math.inf else max(0.0, self._wakes_at - now))

    def _after_fork(self) -> None:
        self._changed = threading.Condition()
        self._deadlines = {}
        self._wakes_at = math.inf
        self._thread = None


WATCHDOG = Watchdog()
