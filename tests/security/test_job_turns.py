"""The background jobs of one project don't keep those of another waiting: projects take turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from job_queues import QUICK

from heedful import Heedful
from heedful.errors import Unavailable
from heedful.jobs.queue import Queue, Report, Task
from heedful.model import limits
from heedful.storage import Database


def add(queue: Queue, project: str | None, number: int, kind: str = "improve") -> str:
    return str(queue.add(project, kind, {"dataset": str(number)}).id)


def order(queue: Queue, then: Callable[[Task], object] = lambda task: None) -> list[str | None]:
    """Whose jobs are done, one after the other."""
    done: list[str | None] = []

    def work(task: Task, report: Report) -> None:
        done.append(task.project)
        then(task)

    queue.work(work, None, lambda: False, once=True)
    return done


@pytest.mark.slow
def test_a_job_of_another_project_waits_for_one_job_and_not_for_all(queue: Queue) -> None:
    for number in range(12):
        add(queue, "neighbour", number)
    for number in range(2):
        add(queue, "quiet", number)
    assert order(queue)[:4] == ["neighbour", "quiet", "neighbour", "quiet"]


def test_a_job_that_comes_later_is_the_next_one(queue: Queue) -> None:
    for number in range(8):
        add(queue, "neighbour", number)
    done = 0

    def then(task: Task) -> None:
        nonlocal done
        done += 1
        if done == 3:
            add(queue, "quiet", 0)

    assert order(queue, then) == [*["neighbour"] * 3, "quiet", *["neighbour"] * 5]


def test_jobs_of_the_store_have_their_turn_among_those_of_projects(queue: Queue) -> None:
    for number in range(4):
        add(queue, "neighbour", number)
    for number in range(2):
        add(queue, None, number, "maintain")
    assert order(queue) == ["neighbour", None, "neighbour", None, "neighbour", "neighbour"]


def test_work_that_may_not_run_yet_does_not_take_the_turn_of_a_project(queue: Queue, database: Database) -> None:
    other = Queue(database, lambda: time.time_ns() // 1000, QUICK)
    meanwhile: list[str | None] = []
    add(queue, None, 0, "maintain")

    def then(task: Task) -> None:
        if task.kind == "maintain" and not meanwhile:
            add(queue, None, 1, "maintain")
            add(queue, "quiet", 0)
            thread = threading.Thread(target=lambda: meanwhile.extend(order(other)))
            thread.start()
            thread.join(60)

    assert order(queue, then) == [None, None]
    assert meanwhile == ["quiet"]


def test_so_many_jobs_of_a_project_wait_and_no_more(queue: Queue) -> None:
    first, *_ = [queue.add("neighbour", "improve", {"dataset": str(number)}, most=3).id for number in range(3)]
    with pytest.raises(Unavailable, match="3 jobs of this project are waiting") as caught:
        queue.add("neighbour", "improve", {"dataset": "3"}, most=3)
    assert (caught.value.code, caught.value.value) == ("server_busy", 30)
    # What waits already is no further job, and others have room of their own.
    assert queue.add("neighbour", "improve", {"dataset": "0"}, most=3).id == first
    queue.add("quiet", "improve", {"dataset": "0"}, most=3)
    queue.cancel(first)
    queue.add("neighbour", "improve", {"dataset": "3"}, most=3)
    assert len(order(queue)) == 4


def test_improve_and_retry_are_refused_when_too_many_jobs_wait(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_WAITING_JOBS", 2)
    store = open_store(worker=False)
    for name in "abc":
        store.sessions.create(name)
    cancelled = store.jobs.cancel(store.jobs.improve(session_ids=["a"]).job_id)
    for name in "ab":
        store.jobs.improve(session_ids=[name, "c"])
    with pytest.raises(Unavailable) as caught:
        store.jobs.improve(session_ids=["c"])
    assert caught.value.code == "server_busy"
    with pytest.raises(Unavailable) as caught:
        store.jobs.retry(cancelled.job_id)
    assert caught.value.code == "server_busy"
