"""What a server process has: the open store, its callers, its threads, and indexes that follow what others write."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request

from heedful.access.audit import Refusals
from heedful.errors import HeedfulError
from heedful.interfaces.http.callers import RATE, Caller, Callers, presented_key
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import UNKNOWN
from heedful.interfaces.http.executor import ShortCalls
from heedful.interfaces.http.limits import ConcurrencyLimiter, RateLimiter
from heedful.model import Scope
from heedful.store import Store, worker_of

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

FEEDBACK_THREADS = 8
"""How many calls that write feedback to a file run at once: as many share a transaction, and the wait for the disk."""


class State:
    """The store, its projects, its callers, and the threads that work."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        store.serve_others()
        self.refusals = Refusals(store.database, store.now)
        self._callers = Callers(store, config.admin_key)
        self._limiter = RateLimiter()
        self._pool = ThreadPoolExecutor(config.threads, thread_name_prefix="heedful-call")
        # Who waits for a language model must not keep others from being let in.
        self._auth_pool = ThreadPoolExecutor(2, thread_name_prefix="heedful-auth")
        # More threads than processors only take turns; what waits for others has the pool above.
        self._cpu_pool = ThreadPoolExecutor((os.cpu_count() or 1) + 1, thread_name_prefix="heedful-recall")
        # A query takes as long as a database does; who waits for one must not keep others waiting.
        self._querying = ThreadPoolExecutor(config.threads, thread_name_prefix="heedful-query")
        self._concurrency = ConcurrencyLimiter(
            max(1, config.threads // 4), max(1, config.threads // 2), store.pool.limits.wait
        )
        # A database of many writers, or one on the network, keeps more threads waiting.
        shared = store.sessions or store.database.many_writers
        self._feedback = None if shared else ShortCalls(FEEDBACK_THREADS, "heedful-feedback")
        self._follower = Follower(store)
        self._worker = worker_of(store) if config.worker else None

    def start(self) -> None:
        """Begins to do jobs."""
        if self._worker is not None:
            self.store.job_added = self._worker.wake
            self._worker.start()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs what blocks in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def run_lookup(self, work: Callable[[], Result]) -> Result:
        """Runs what only looks something up, however busy the others are."""
        return await asyncio.get_running_loop().run_in_executor(self._auth_pool, work)

    async def run_on_cpu(self, work: Callable[[], Result]) -> Result:
        """Runs what takes the processor all the time."""
        return await asyncio.get_running_loop().run_in_executor(self._cpu_pool, work)

    async def parse(self, raw: bytes, work: Callable[[], Result]) -> Result:
        """Runs what reads a body: in a thread, unless it is short."""
        return work() if len(raw) <= MAX_PARSED_AT_ONCE else await self.run_on_cpu(work)

    async def query(self, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what may ask a connector's database: apart from the rest, and only so much for each caller at a time."""
        async with self._concurrency.slot(project, caller.key_id):
            return await asyncio.get_running_loop().run_in_executor(self._querying, work)

    async def run_feedback(self, work: Callable[[], Result]) -> Result:
        """Runs what is short and writes to the store."""
        return await (self.run(work) if self._feedback is None else self._feedback.run(work))

    async def caller(self, request: Request, scope: Scope | None) -> Caller:
        """Who calls, if they may do this now."""
        key = presented_key(request.headers.get("authorization"), request.headers.get("x-api-key"))
        caller = self._callers.remembered(key)
        if caller is None:
            caller = await self.run_lookup(lambda: self._callers.find(key))
        request.scope["heedful.caller"] = caller.key_id
        if UNKNOWN in request.scope:
            request.scope[UNKNOWN].mark_known()
        if caller.project is not None:
            request.scope["heedful.project"] = caller.project
        rate = caller.rate_limit or self.config.rate_limit
        if caller.claims is not None:
            rate = min(rate, RATE)
        if rate:
            self._limiter.take(caller.key_id, rate, asyncio.get_running_loop().time())
        if scope is not None:
            caller.check(scope)
        return caller

    def close(self) -> None:
        """Waits for running calls and the batch of the running job, and closes the store."""
        if self._worker is not None:
            self._worker.stop()
        self._follower.close()
        if self._feedback is not None:
            self._feedback.close()
        self._cpu_pool.shutdown()
        self._querying.shutdown()
        self._pool.shutdown()
        self._auth_pool.shutdown()
        if self._worker is not None:
            self._worker.close()
        self.refusals.close()
        self.store.close()
