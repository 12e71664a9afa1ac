"""What each kind of job does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from heedful.clock import DAY
from heedful.errors import HeedfulError, Invalid, Unavailable, quoted
from heedful.jobs.contract import Queue, Report, Task, logger
from heedful.memory.maintenance import reembed
from heedful.model import Over
from heedful.providers.embedding import Embedder
from heedful.search.postgresql import build_due
from heedful.settings import Retention
from heedful.storage import Database
from heedful.storage.retention import maintain
from heedful.storage.review import watermarks
from heedful.storage.sessions.base import AlertRow

NEW_FEEDBACK: Mapping[str, str] = {"feedback": "new"}
"""The arguments of a job that improves a project by the feedback that was not processed yet."""

SendDigest = Callable[[int, int], Sequence[AlertRow]]
"""Sends the digest of a project for a period; returns its alerts."""


FollowReview = Callable[[], object]
"""Brings the review queue of a project up to date."""


SwitchBack = Callable[[], Sequence[str]]
"""Takes back the changes of policy of a project after which ratings got worse; returns the events."""


class Improvable(Protocol):
    """What `improve` needs of a project."""

    def improve(self, dataset: str | None, session_ids: Sequence[str] | None, report: Report) -> object: ...

    def improve_new(self, report: Report) -> object: ...


class OpenStore(Protocol):
    """What jobs need of an open store."""

    @property
    def database(self) -> Database: ...

    @property
    def queue(self) -> Queue: ...

    @property
    def retention(self) -> Retention:
        """How long things are kept."""

    @property
    def search_in_memory(self) -> int:
        """Larger datasets are searched by the database, if it can."""

    def now(self) -> int: ...

    def improving(self, project: str) -> AbstractContextManager[Improvable]:
        """A project, which is open inside the block."""

    def all_projects(self) -> list[str]:
        """The names of all projects, including those with only sessions in another database."""

    def projects_elsewhere(self) -> list[str]:
        """The names of the projects whose sessions are in another database, if they are kept apart."""

    def digesting(self, project: str) -> AbstractContextManager[SendDigest]:
        """A function that sends the digests of a project, which is open inside the block."""

    def reviewing(self, project: str) -> AbstractContextManager[FollowReview]:
        """A function that brings the review queue of a project up to date."""

    @property
    def reverts_worse_policies(self) -> bool:
        """Whether a change of policy after which ratings got worse is undone."""

    def guarding(self, project: str) -> AbstractContextManager[SwitchBack]:
        """A function that undoes the changes of policy of a project that made ratings worse."""

    def embedder_named(self, name: str) -> Embedder:
        """The model that `--embedding` names."""


def _improve(store: OpenStore, task: Task, report: Report) -> None:
    assert task.project is not None
    with store.improving(task.project) as project:
        if task.arguments == NEW_FEEDBACK:
            project.improve_new(report)
        else:
            project.improve(task.arguments["dataset"], task.arguments["session_ids"], report)


def _reembed(store: OpenStore, task: Task, report: Report) -> None:
    reembed(store.database, store.embedder_named(task.arguments["embedding"]), report)


def _maintain(store: OpenStore, task: Task, report: Report) -> None:
    report(0, 4)
    forget_jobs(store.queue, store.now(), store.retention.job_days)
    report(1, 4)
    maintain(store.database, store.now(), store.retention)
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
    for project in store.all_projects() if store.reverts_worse_policies else ():
        with store.guarding(project) as switch_back:
            done += [f"policy of project {project} changed back, event {event}" for event in switch_back()]
    return done


def follow_reviews(store: OpenStore) -> None:
    """Brings the review queues up to the present that nobody should wait for: those with many opinions, and those whose
    sessions are in another database, which are compared once a day."""
    remote_projects = store.projects_elsewhere()
    with store.database.read() as connection:
        waiting = watermarks.due(connection)
        recently_compared = watermarks.compared_since(connection, store.now() - DAY) if remote_projects else set()
    for project in dict.fromkeys([*waiting, *(name for name in remote_projects if name not in recently_compared)]):
        with store.reviewing(project) as follow:
            follow()


def _index(store: OpenStore, task: Task, report: Report) -> None:
    steps = itertools.count(1)

    def step(words: str) -> None:
        steps_done = next(steps)
        report(steps_done, steps_done)

    build_due(store.database, step, limit=store.search_in_memory)


def _digest(store: OpenStore, task: Task, report: Report) -> None:
    """The digest of every project with opinions. Those that did not arrive stay in the outbox for the next attempt."""
    names, missing = store.all_projects(), []
    for index, name in enumerate(names):
        report(index, len(names))
        try:
            with store.digesting(name) as send:
                waiting = [row for row in send(task.arguments["since"], task.arguments["until"]) if row.next_at]
        except HeedfulError as error:
            logger.warning("the digest of project %s can't be made: %s", name, error)
            missing.append(name)
        else:
            missing += [name] if waiting else []
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
    """Runs a job of any kind."""
    if task.kind not in KINDS:
        raise Invalid(f"unknown job kind {quoted(task.kind)}", field="kind", value=task.kind, remedy="Upgrade heedful")
    KINDS[task.kind](store, task, report)


MAINTENANCE_INTERVAL = DAY // 24
"""Between two rounds of maintenance, in stored time."""


def forget_jobs(queue: Queue, now: int, days: int) -> None:
    """Removes jobs that ended so many days ago; none with 0."""
    while days and queue.forget(now - days * DAY):
        pass


def add_when_due(queue: Queue, now: int) -> None:
    """Adds a maintenance job if the last one is old enough."""
    last = queue.last_added("maintain")
    if last is None or now - last >= MAINTENANCE_INTERVAL:
        queue.add(None, "maintain", {})


def add_improvements(queue: Queue, projects: Sequence[str]) -> None:
    """Adds a job for each of these projects with new feedback, unless one is running: it may be processing it."""
    for project in projects:
        if not queue.listed(project, "running", "improve", None, 1):
            queue.add(project, "improve", NEW_FEEDBACK)


def add_digest_when_due(queue: Queue, now: int, every: Over | None) -> None:
    """Adds a job for the digests of the last full day or week, once; again an hour after a failure."""
    if every is None:
        return
    since, until = last_full_period(every, now)
    newest = queue.listed(None, None, "digest", None, 1)
    due = not newest or newest[0].created_at < until
    if due or (newest[0].status == "failed" and now - newest[0].created_at >= MAINTENANCE_INTERVAL):
        queue.add(None, "digest", {"since": since, "until": until})


def last_full_period(every: Over, now: int) -> tuple[int, int]:
    """The last day or week that is over, in UTC; weeks begin on Mondays.

    >>> last_full_period("day", 5 * DAY + 7)
    (345600000000, 432000000000)
    >>> [moment // DAY for moment in last_full_period("week", 14 * DAY)]
    [4, 11]
    """
    today = now // DAY
    if every == "day":
        return (today - 1) * DAY, today * DAY
    # 1970 began on a Thursday.
    monday = (today + 3) // 7 * 7 - 3
    return (monday - 7) * DAY, monday * DAY
