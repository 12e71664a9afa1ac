"""What a server process has: the open store, its callers, its threads, and indexes that follow what others write."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from heedful.access.audit import Refusals
from heedful.errors import HeedfulError
from heedful.interfaces.http.answers import Answer
from heedful.interfaces.http.callers import RATE, Caller, Callers, presented_key
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import KNOWN_AS, is_caller_gone
from heedful.interfaces.http.executor import ShortCalls
from heedful.interfaces.http.limits import Account, RateLimiter, Room, RoomLimiter, WriteLimiter
from heedful.interfaces.http.reading import BodyLimit, body_of, expected_size, path_of
from heedful.interfaces.http.shares import BYTE_SECONDS, Lane, Shares, server_busy
from heedful.interfaces.operations import Operation
from heedful.interfaces.problems import Wire
from heedful.model import Scope
from heedful.sql.sandbox.pool import busy as query_busy
from heedful.storage.stored_bytes import counting
from heedful.store import Store, worker_of
from heedful.threads import give_way, rest

logger = logging.getLogger("heedful")


class Follower:
    """A thread that waits for notices. A recall reads what it lacks in any case: what it finds is never old."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heedful-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        for changed in self._store.database.notices(self._stopped):
            for project in self._store.open_projects(changed):
                try:
                    project.workspace.follow()
                except HeedfulError as error:
                    # The next recall meets the same fault, and reports it to its caller.
                    logger.warning("the indexes of a project can't follow its store: %s", error)


Result = TypeVar("Result")

MAX_PARSED_AT_ONCE = 16_384
"""Bytes of a body that is read where all requests are accepted: longer ones would keep the others waiting."""

WAIT = 30.0
"""Seconds that a call waits for its turn."""

CLOSE_SECONDS = 10.0
"""Seconds in which threads must end and the store be closed when the server is stopped."""

FEEDBACK_THREADS = 8
"""How many calls that write feedback to a file run at once: as many share a transaction, and the wait for the disk."""


def _with_rest(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        rest()


class State:
    """The store, its projects, its callers, and the threads that work."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self.has_abandoned = False
        """Whether it was closed while calls were still running."""
        store.serve_others()
        self.refusals = Refusals(store.database, store.now)
        self._callers = Callers(store, config.admin_key)
        self._limiter = RateLimiter()
        processors = os.cpu_count() or 1
        # A database of many writers, or one on the network, keeps more threads waiting.
        shared = store.sessions or store.database.many_writers
        # More threads than processors only take turns, unless they wait for something else.
        self.calls = Lane("call", config.threads, processors + 1, config.threads)
        self.recalls = Lane("recall", processors + 1, processors + 1, processors + 1)
        self.short = self.calls if shared else Lane("feedback", FEEDBACK_THREADS, FEEDBACK_THREADS, FEEDBACK_THREADS)
        slow = max(1, processors // 2)
        self._shares = Shares((self.calls, self.recalls, self.short), slow, WAIT, time.monotonic)
        self._pool = ThreadPoolExecutor(config.threads + processors + 1, thread_name_prefix="heedful-call")
        self._slow_pool = ThreadPoolExecutor(slow, thread_name_prefix="heedful-slow", initializer=give_way)
        # Who waits for a language model must not keep others from being let in.
        self._auth_pool = ThreadPoolExecutor(2, thread_name_prefix="heedful-auth")
        # A query takes as long as a database does; who waits for one must not keep others waiting.
        self._querying = ThreadPoolExecutor(config.threads, thread_name_prefix="heedful-query")
        # A quarter for a caller, half for a project.
        self._most_queries = max(1, config.threads // 4)
        queries = Room(self._most_queries, max(1, config.threads // 2))
        self._queries = RoomLimiter(queries, store.pool.limits.wait, query_busy)
        bodies = Room(2 * config.max_body, 4 * config.max_body, 8 * config.max_body)
        self._bodies = RoomLimiter(bodies, WAIT, server_busy)
        # Nobody waits for others to read: what waits is in memory, too.
        self._answers = RoomLimiter(bodies, 0.0, server_busy)
        self._written = WriteLimiter(config.max_written) if config.max_written else None
        self._feedback = None if shared else ShortCalls(FEEDBACK_THREADS, "heedful-feedback")
        self._follower = Follower(store)
        self._worker = worker_of(store) if config.worker else None

    def start(self) -> None:
        """Begins to do jobs."""
        if self._worker is not None:
            self.store.job_added = self._worker.wake
            self._worker.start()

    async def run(self, lane: Lane, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what takes the processor or the store in a thread, when it is its turn."""

        def execute(measured: Callable[[], Result], is_slow: bool) -> Awaitable[Result]:
            if is_caller_gone():
                raise ClientDisconnect
            if lane is self.short and self._feedback is not None and not is_slow:
                return self._feedback.run(measured)
            if is_slow:
                return asyncio.get_running_loop().run_in_executor(self._slow_pool, _with_rest, measured)
            return asyncio.get_running_loop().run_in_executor(self._pool, measured)

        return await self._shares.run(lane, project, caller.share, work, execute)

    def answer(
        self, content: bytes, project: str, caller: Caller, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A response with JSON, which takes its place in memory until it is sent."""
        return Answer(content, self._answers, project, caller.share, status, headers)

    async def run_lookup(self, work: Callable[[], Result]) -> Result:
        """Runs what only looks something up, however busy the others are."""
        return await asyncio.get_running_loop().run_in_executor(self._auth_pool, work)

    @asynccontextmanager
    async def body(self, request: Request, project: str, caller: Caller, limit: BodyLimit) -> AsyncIterator[bytes]:
        """The body of a request, within its limit. It takes its place in memory while the block runs."""
        size = expected_size(request, limit)
        if size > MAX_PARSED_AT_ONCE:
            await self._shares.admit(project, caller.share, size * BYTE_SECONDS)
        async with self._bodies.taking(project, caller.share, size) if size > MAX_PARSED_AT_ONCE else nullcontext():
            yield await body_of(request, limit)

    @contextmanager
    def storing(self, project: str, call: Operation | Wire) -> Iterator[None]:
        """Counts what a call stores inside the block for its project, which must not have used up its share. What is
        asked for with GET, or deleted, is done in any case."""
        if self._written is None:
            yield
            return
        account: Account = (project, "read" if call.scope == "read" else "write")
        if call.method not in ("GET", "DELETE"):
            self._written.check(account, time.monotonic())
        with counting() as stored:
            try:
                yield
            finally:
                self._written.charge(account, stored.total, time.monotonic())

    async def parse(self, raw: bytes, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what reads a body: in a thread, unless it is short."""
        return work() if len(raw) <= MAX_PARSED_AT_ONCE else await self.run(self.calls, project, caller, work)

    async def query(self, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what may ask a connector's database: apart from the rest, and only so much for each caller at a time."""

        def execute(measured: Callable[[], Result]) -> Awaitable[Result]:
            return asyncio.get_running_loop().run_in_executor(self._querying, measured)

        # Who takes more of the processor than others is done one at a time.
        weight = self._most_queries if self._shares.takes_more(project, caller.share) else 1
        async with self._queries.taking(project, caller.share, weight):
            return await self._shares.measured(project, caller.share, work, execute)

    async def caller(self, request: Request, scope: Scope | None) -> Caller:
        """Who calls, if they may do this now."""
        key = presented_key(request.headers.get("authorization"), request.headers.get("x-api-key"))
        caller = self._callers.remembered(key)
        if caller is None:
            caller = await self.run_lookup(lambda: self._callers.find(key))
        await self.admit(request, caller)
        if scope is not None:
            caller.check(scope)
        return caller

    async def admit(self, request: Request, caller: Caller) -> None:
        """Counts a request and its connection for its caller; `Unavailable` if they have too many. Who takes more of
        the processor than others waits."""
        request.scope["heedful.caller"] = caller.key_id
        if KNOWN_AS in request.scope:
            request.scope[KNOWN_AS](caller.key_id, caller.project, is_visitor=caller.claims is not None)
        if caller.project is not None:
            request.scope["heedful.project"] = caller.project
        rate = caller.rate_limit or self.config.rate_limit
        if caller.claims is not None:
            rate = min(rate, RATE)
        if rate:
            self._limiter.check(caller.key_id, rate, time.monotonic())
        project = caller.project or path_of(request.path_params).get("project") or self.store.default_project
        await self._shares.admit(project, caller.share)

    def close(self) -> None:
        """Waits for running calls and the batch of the running job, and closes the store. What takes longer than
        `CLOSE_SECONDS` is abandoned."""
        closing = threading.Thread(target=self._close, name="heedful-closing", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        self.has_abandoned = closing.is_alive()
        if self.has_abandoned:
            logger.warning("calls or jobs that don't end are abandoned: what they had not stored by now is lost")

    def _close(self) -> None:
        if self._worker is not None:
            self._worker.stop()
        self._follower.close()
        if self._feedback is not None:
            self._feedback.close()
        self._slow_pool.shutdown()
        self._querying.shutdown()
        self._pool.shutdown()
        self._auth_pool.shutdown()
        self._callers.close()
        if self._worker is not None:
            self._worker.close()
        self.refusals.close()
        self.store.close()
