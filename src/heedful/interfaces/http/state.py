"""What a server process keeps: the open store, its callers, and indexes that follow what others write."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from starlette.requests import Request

from heedful.access.refusals import Refusals
from heedful.bootstrap import Host
from heedful.errors import HeedfulError
from heedful.interfaces.http.callers import Caller, Callers, presented_key
from heedful.interfaces.http.config import Config, Limiter
from heedful.interfaces.http.connections import UNKNOWN
from heedful.interfaces.http.executors import ConcurrencyLimiter, SerialExecutor
from heedful.interfaces.http.targets import RATE
from heedful.jobs.kinds import run_job
from heedful.jobs.worker import Worker
from heedful.model import Scope
from heedful.projects import Projects, ServedStore

logger = logging.getLogger("heedful")


class Follower:
    """A thread that waits for notices. A recall reads what it lacks in any case: what it finds is never old."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heedful-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        for changed in self._projects.host.database.notices(self._stopped):
            for project in self._projects.in_memory(changed):
                try:
                    project._workspace.follow()
                except HeedfulError as error:
                    # The next recall meets the same fault, and tells its caller.
                    logger.warning("the indexes of a project can't follow its store: %s", error)


Result = TypeVar("Result")


class State:
    """The store, its projects, its callers, and the threads that work."""

    def __init__(self, config: Config, host: Host) -> None:
        self.config = config
        self.projects = Projects(host)
        self.refusals = Refusals(host.database, host.now)
        self._callers = Callers(host, config.admin_key)
        self._limiter = Limiter()
        self._pool = ThreadPoolExecutor(config.threads, thread_name_prefix="heedful-call")
        # Who waits for a language model must not keep others from being let in.
        self._auth_pool = ThreadPoolExecutor(2, thread_name_prefix="heedful-auth")
        # More threads than processors only take turns; what waits for others has the pool above.
        self._cpu_pool = ThreadPoolExecutor((os.cpu_count() or 1) + 1, thread_name_prefix="heedful-recall")
        # A query takes as long as a database does; who waits for one must not keep others waiting.
        self._querying = ThreadPoolExecutor(config.threads, thread_name_prefix="heedful-query")
        self._concurrency = ConcurrencyLimiter(
            max(1, config.threads // 4), max(1, config.threads // 2), host.pool.limits.wait
        )
        # A file has one writer at a time; a server has many.
        self._serial = None if host.sessions or host.database.many_writers else SerialExecutor("heedful-feedback")
        self._follower = Follower(self.projects)
        self._worker = _worker(self.projects) if config.worker else None

    def start(self) -> None:
        """Begins to do jobs."""
        if self._worker is not None:
            self.projects.host.added = self._worker.wake
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

    async def query(self, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what may ask a connector's database: apart from the rest, and only so much for each caller at a time."""
        async with self._concurrency.slot(project, caller.key_id):
            return await asyncio.get_running_loop().run_in_executor(self._querying, work)

    async def run_serially(self, work: Callable[[], Result]) -> Result:
        """Runs what is short and writes to the store: one after the other, where the store does the same."""
        return await (self.run(work) if self._serial is None else self._serial.run(work))

    async def caller(self, request: Request, scope: Scope | None) -> Caller:
        """Who calls, if they may do this now."""
        given = presented_key(request.headers.get("authorization"), request.headers.get("x-api-key"))
        caller = self._callers.remembered(given)
        if caller is None:
            caller = await self.run_lookup(lambda: self._callers.find(given))
        request.scope["heedful.caller"] = caller.key_id
        if UNKNOWN in request.scope:
            request.scope[UNKNOWN].known()
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
        """Waits for the calls under way and the batch of the job that runs, and lets go of the store."""
        if self._worker is not None:
            self._worker.stop()
        self._follower.close()
        if self._serial is not None:
            self._serial.close()
        self._cpu_pool.shutdown()
        self._querying.shutdown()
        self._pool.shutdown()
        self._auth_pool.shutdown()
        if self._worker is not None:
            self._worker.close()
        self.refusals.close()
        self.projects.close()


def _worker(projects: Projects) -> Worker:
    host = projects.host
    return Worker(host.queue, partial(run_job, ServedStore(projects)), host.now, digest_every=host.digest_every)
