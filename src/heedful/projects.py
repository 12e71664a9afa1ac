"""Many projects of one store that is opened once: those in use stay open, those that nobody uses are closed."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from heedful.aio import AsyncHeedful
from heedful.bootstrap import Host
from heedful.engine import Heedful
from heedful.errors import no_project
from heedful.jobs import kinds
from heedful.jobs.contract import Work
from heedful.jobs.kinds import FollowReview, Improve, SendDigest
from heedful.memory import checks
from heedful.storage import scopes

MAX_OPEN_PROJECTS = 256
"""Projects that stay open while nobody uses them."""


class Projects:
    """Projects of one store, opened when they are first used; those in use are never closed."""

    def __init__(
        self, host: Host, *, most: int = MAX_OPEN_PROJECTS, background_jobs: bool = False, embedded: bool = False
    ) -> None:
        """At most `most` stay open while nobody uses them. With `background_jobs`, the jobs that a project adds
        run in a thread beside it; without, by whoever works for the store. Callers are held to what the operator allows
        over HTTP, unless they are the operator: in an `embedded` store."""
        self.host = host
        self._embedded = embedded
        self._most = most
        self._work: Work | None = partial(kinds.run_job, ServedStore(self)) if background_jobs else None
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Heedful] = OrderedDict()
        self._users: dict[str, int] = {}
        self._known: set[str] = {host.default_project}

    def check_known(self, name: str) -> None:
        """`NotFound` for a project that nothing was written to, but for the default one."""
        if checks.name("project", name) in self._known:
            return
        known = self.host.all_projects()
        self._known.update(known)
        if name not in known:
            raise no_project(name, known)

    @contextmanager
    def using(self, name: str) -> Iterator[Heedful]:
        """One project, for as long as it is needed."""
        with self._lock:
            self._users[name] = self._users.get(name, 0) + 1
        try:
            yield self.opened(name)
        finally:
            with self._lock:
                self._users[name] -= 1
                if not self._users[name]:
                    del self._users[name]
                idle = self._idle()
            for project in idle:
                project.close()

    def projects(self) -> list[str]:
        return self.host.projects()

    def known(self, project: str) -> bool:
        with self.host.database.read() as connection:
            return scopes.project_id(connection, project) is not None

    def close(self) -> None:
        while True:
            with self._lock:
                still = list(self._open.values())
                self._open.clear()
            for project in still:
                project.close()
            # A job that was finished first may have opened its project again.
            if not still:
                break
        self.host.close()

    def opened(self, name: str) -> Heedful:
        """One project, which may be closed when others are used; `using` keeps it open."""
        with self._lock:
            if name not in self._open:
                project = self.host.project(name, self._work)
                self._open[name] = project if self._embedded else project._limited(self.host.served)
            self._open.move_to_end(name)
            return self._open[name]

    def in_memory(self, name: str | None) -> list[Heedful]:
        """This project, or all of them, as far as they are open."""
        with self._lock:
            return [project for known, project in self._open.items() if name in (None, known)]

    def _idle(self) -> list[Heedful]:
        names = [name for name in self._open if name not in self._users]
        return [self._open.pop(name) for name in names[: max(0, len(self._open) - self._most)]]


class ServedStore:
    """What jobs need of a store that is served: projects that are open anyway are used."""

    def __init__(self, projects: Projects) -> None:
        host = projects.host
        self.database, self.queue = host.database, host.queue
        self.now, self.embedder_named = host.now, host.embedder_named
        self.retention, self.search_in_memory = host.retention, host.search_in_memory
        self.all_projects, self.projects_elsewhere = host.all_projects, host.projects_elsewhere
        self._channels = host.digest_channels
        self._projects = projects

    @contextmanager
    def digesting(self, project: str) -> Iterator[SendDigest]:
        """What sends the digests of a project."""
        with self._projects.using(project) as opened:
            yield partial(opened._send_digest, self._channels)

    @contextmanager
    def improving(self, project: str) -> Iterator[Improve]:
        """What improves a project."""
        with self._projects.using(project) as opened:
            yield opened._improve_reporting

    @contextmanager
    def reviewing(self, project: str) -> Iterator[FollowReview]:
        """What brings the review queue of a project up to the present."""
        with self._projects.using(project) as opened:
            yield opened._follow_review


def async_project(projects: Projects, project: str, pool: ThreadPoolExecutor) -> AsyncHeedful:
    """One of many projects, for asyncio: it is open while a call runs. Whoever calls closes `projects` and `pool`."""

    def call(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with projects.using(project) as heedful:
            return getattr(getattr(heedful, namespace) if namespace else heedful, name)(*args, **kwargs)

    async def run(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(pool, call, namespace, name, args, kwargs)

    async def close() -> None:
        """Others may use the store."""

    return AsyncHeedful(run, close, f"<AsyncHeedful {projects.host.database.name} project={project!r}>")
