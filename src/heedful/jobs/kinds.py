"""What each kind of job does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from heedful.embedding import Embedder
from heedful.errors import Invalid
from heedful.jobs.base import Queue, Report, Task
from heedful.jobs.upkeep import UPKEEP
from heedful.memory.reembed import reembed
from heedful.storage import Database

Improve = Callable[[str, Sequence[str] | None, Report], object]
"""`improve` of a project, for a dataset and some sessions or all, with reports."""


class Host(Protocol):
    """What jobs need of an open store."""

    @property
    def database(self) -> Database: ...

    @property
    def queue(self) -> Queue: ...

    def now(self) -> int: ...

    def improving(self, project: str) -> AbstractContextManager[Improve]:
        """What improves a project, which is open for as long as it is needed."""

    def embedder_named(self, name: str) -> Embedder:
        """A model by what `--embedding` calls it."""


def _improve(host: Host, task: Task, report: Report) -> None:
    assert task.project is not None
    with host.improving(task.project) as improve:
        improve(task.arguments["dataset"], task.arguments["session_ids"], report)


def _reembed(host: Host, task: Task, report: Report) -> None:
    reembed(host.database, host.embedder_named(task.arguments["embedding"]), report)


def _upkeep(host: Host, task: Task, report: Report) -> None:
    for done, each in enumerate(UPKEEP):
        report(done, len(UPKEEP))
        each(host.database, host.queue, host.now())
    report(len(UPKEEP), len(UPKEEP))


KINDS: Mapping[str, Callable[[Host, Task, Report], object]] = {
    "improve": _improve,
    "reembed": _reembed,
    "upkeep": _upkeep,
}
"""By name. `deliver` is not among them: the courier of the process that has the channel does it."""


def do(host: Host, task: Task, report: Report) -> None:
    """Does a job of any kind."""
    if task.kind not in KINDS:
        raise Invalid(
            f"no kind of job is called {task.kind!r}", field="kind", value=task.kind, remedy="Upgrade heedful"
        )
    KINDS[task.kind](host, task, report)
