"""The work of each kind of job."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from heedful.clock import DAY
from heedful.errors import HeedfulError, Invalid, Unavailable, quoted
from heedful.jobs.queue import Queue, Report, Task, logger
from heedful.jobs.retention import maintain
from heedful.memory.doctor import reembed
from heedful.notifications import Channel
from heedful.notifications.outbox import AlertRow
from heedful.providers.embedding import Embedder
from heedful.review import tables
from heedful.search.database_index import build_due
from heedful.settings import Settings
from heedful.storage import Database

NEW_FEEDBACK: Mapping[str, str] = {"feedback": "new"}
"""The arguments of a job that improves a project by the feedback that was not processed yet."""


class OpenProject(Protocol):
    """An open project, as far as jobs need it."""

    def improve(self, dataset: str | None, session_ids: Sequence[str] | None, report: Report) -> object: ...

    def improve_new(self, report: Report) -> object: ...

    def send_digest(self, channels: Sequence[Channel], since: int, until: int) -> Sequence[AlertRow]: ...

    def follow_review(self) -> object: ...

    def switch_policies_back(self) -> Sequence[str]: ...


class OpenStore(Protocol):
    """An open store, as far as jobs need it."""

    database: Database
    queue: Queue
    config: Settings
    digest_channels: tuple[Channel, ...]

    def now(self) -> int: ...

    def working(self, project: str) -> AbstractContextManager[OpenProject]:
        """A project, which is open inside the block."""

    def all_projects(self) -> list[str]:
        """The names of all projects, including those with only sessions in another database."""

    def projects_elsewhere(self) -> list[str]:
        """The names of the projects whose sessions are in another database, if they are kept apart."""

    def embedder_named(self, name: str) -> Embedder:
        """The model that `--embedding` names."""


def _improve(store: OpenStore, task: Task, report: Report) -> None:
    assert task.project is not None
    with store.working(task.project) as project:
        if task.arguments == NEW_FEEDBACK:
            project.improve_new(report)
        else:
            project.improve(task.arguments["dataset"], task.arguments["session_ids"], report)


def _reembed(store: OpenStore, task: Task, report: Report) -> None:
    reembed(store.database, store.embedder_named(task.arguments["embedding"]), report)


def _maintain(store: OpenStore, task: Task, report: Report) -> None:
    report(0, 4)
    forget_jobs(store.queue, store.now(), store.config.job_days)
    report(1, 4)
    maintain(store.database, store.now(), store.config)
    if store.database.searches:
        store.queue.add(None, "index", {})
    report(2, 4)
    follow_reviews(store)
    report(3, 4)
    guard_policies(store)
    report(4, 4)


def guard_policies(store: OpenStore) -> list[str]:
    """Takes back changes of policy after which ratings got worse, if the settings say so; returns what was done."""
    done = []
    for project in store.all_projects() if store.config.revert_worse_policy else ():
        with store.working(project) as opened:
            done += [
                f"policy of project {project} changed back, event {event}" for event in opened.switch_policies_back()
            ]
    return done


def forget_jobs(queue: Queue, now: int, days: int) -> None:
    """Removes jobs that ended so many days ago; none with 0."""
    while days and queue.forget(now - days * DAY):
        pass


def follow_reviews(store: OpenStore) -> None:
    """Brings the review queues up to the present that nobody should wait for: those with many opinions, and those whose
    sessions are in another database, which are compared once a day."""
    remote_projects = store.projects_elsewhere()
    with store.database.read() as connection:
        waiting = tables.due_projects(connection)
        recently_compared = tables.compared_since(connection, store.now() - DAY) if remote_projects else set()
    for project in dict.fromkeys([*waiting, *(name for name in remote_projects if name not in recently_compared)]):
        with store.working(project) as opened:
            opened.follow_review()


def _index(store: OpenStore, task: Task, report: Report) -> None:
    steps = itertools.count(1)

    def step(words: str) -> None:
        done = next(steps)
        report(done, done)

    build_due(store.database, step, limit=store.config.search_in_memory)


def _digest(store: OpenStore, task: Task, report: Report) -> None:
    """The digest of every project with opinions. Those that did not arrive stay in the outbox for the next attempt."""
    names, missing = store.all_projects(), []
    for index, name in enumerate(names):
        report(index, len(names))
        try:
            with store.working(name) as project:
                alerts = project.send_digest(store.digest_channels, task.arguments["since"], task.arguments["until"])
        except HeedfulError as error:
            logger.warning("the digest of project %s can't be made: %s", name, error)
            missing.append(name)
        else:
            missing += [name] if any(alert.next_at for alert in alerts) else []
    report(len(names), len(names))
    if missing:
        raise Unavailable(f"the digests of {len(missing)} projects did not arrive yet: {', '.join(missing[:3])}")


KINDS: Mapping[str, Callable[[OpenStore, Task, Report], object]] = {
    "improve": _improve,
    "reembed": _reembed,
    "maintain": _maintain,
    "index": _index,
    "digest": _digest,
}
"""By name, without `deliver`, which the dispatcher of the process with the channel does."""


def run_job(store: OpenStore, task: Task, report: Report) -> None:
    if task.kind not in KINDS:
        raise Invalid(f"unknown job kind {quoted(task.kind)}", field="kind", value=task.kind, remedy="Upgrade heedful")
    KINDS[task.kind](store, task, report)
