"""Jobs: the queue, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from job_queues import QUICK

from heedful.errors import Invalid, Unavailable
from heedful.jobs.queue import Queue, Report, Task, WorkerTiming
from heedful.storage import Database

SOON = 60.0


def until(condition: Callable[[], Any]) -> Any:
    """Waits for something to come true."""
    deadline = time.monotonic() + SOON
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found


def never() -> bool:
    return False


def drain(queue: Queue, work: Callable[[Task, Report], object], project: str | None = None) -> bool:
    """Does what is due."""
    queue.work(work, project, never, once=True)
    return False


def status(queue: Queue, job_id: str) -> str:
    row = queue.get(job_id)
    assert row is not None
    return str(row.status)


def test_a_job_waits_until_it_is_done(queue: Queue) -> None:
    added = queue.add("shop", "improve", {"dataset": "main"})
    assert (added.status, added.attempts, added.project, added.kind) == ("waiting", 0, "shop", "improve")
    seen: list[Task] = []

    def work(task: Task, report: Report) -> None:
        seen.append(task)
        assert status(queue, task.job_id) == "running"
        report(1, 3)
        row = queue.get(task.job_id)
        assert row is not None
        assert (row.done, row.total, row.attempts) == (1, 3, 1)

    drain(queue, work)
    assert seen == [Task(added.id, "shop", "improve", {"dataset": "main"}, 1)]
    row = queue.get(added.id)
    assert row is not None
    assert (row.status, row.attempts, row.error) == ("done", 1, None)
    assert row.created_at <= row.started_at <= row.finished_at
    drain(queue, work)
    assert len(seen) == 1


def test_jobs_are_done_in_the_order_they_came(queue: Queue) -> None:
    added = [queue.add("shop", "improve", {"dataset": str(number)}).id for number in range(5)]
    done: list[str] = []
    drain(queue, lambda task, report: done.append(task.job_id))
    assert done == added


def test_the_same_job_waits_once_and_may_be_added_again_while_it_runs(queue: Queue) -> None:
    first = queue.add("shop", "improve", {"dataset": "a"})
    assert queue.add("shop", "improve", {"dataset": "a"}).id == first.id
    others = [
        queue.add("shop", "improve", {"dataset": "b"}).id,
        queue.add("kiosk", "improve", {"dataset": "a"}).id,
        queue.add(None, "maintain", {}).id,
    ]
    assert len({first.id, *others}) == 4
    again: list[str] = []

    def work(task: Task, report: Report) -> None:
        if task.job_id == first.id:
            again.append(queue.add("shop", "improve", {"dataset": "a"}).id)

    drain(queue, work)
    assert again[0] != first.id
    assert [row.status for row in queue.listed(None, None, None, None, 10)] == ["done"] * 5


def test_a_worker_of_a_project_does_that_project_s_jobs_alone(queue: Queue) -> None:
    mine = queue.add("shop", "improve", {})
    other = queue.add("kiosk", "improve", {})
    of_store = queue.add(None, "maintain", {})
    assert queue.due_in("shop") == 0
    drain(queue, lambda task, report: None, "shop")
    assert [status(queue, each.id) for each in (mine, other, of_store)] == ["done", "waiting", "waiting"]
    assert queue.due_in("shop") is None
    assert queue.due_in("nobody") is None
    drain(queue, lambda task, report: None, "nobody")
    drain(queue, lambda task, report: None)
    assert [status(queue, each.id) for each in (mine, other, of_store)] == ["done"] * 3


def test_jobs_are_listed_by_project_status_and_kind_newest_first(queue: Queue) -> None:
    ids = [queue.add("shop", "improve", {"dataset": str(number)}).id for number in range(3)]
    queue.add("kiosk", "improve", {})
    of_maintenance = queue.add(None, "maintain", {}).id
    queue.cancel(ids[1])
    assert [row.id for row in queue.listed("shop", None, None, None, 10)] == ids[::-1]
    assert [row.id for row in queue.listed("shop", "waiting", None, None, 10)] == [ids[2], ids[0]]
    assert [row.id for row in queue.listed("shop", "cancelled", "improve", None, 10)] == [ids[1]]
    assert [row.id for row in queue.listed(None, None, "maintain", None, 10)] == [of_maintenance]
    assert queue.listed("shop", None, "maintain", None, 10) == []
    first = queue.listed(None, None, None, None, 2)
    rest = queue.listed(None, None, None, first[-1].number, 10)
    assert len(first) == 2
    assert len(rest) == 3


def test_a_job_that_fails_is_tried_again_and_then_given_up_with_its_error(queue: Queue) -> None:
    added = queue.add("shop", "improve", {})
    attempts: list[int] = []

    def work(task: Task, report: Report) -> None:
        attempts.append(task.attempts)
        if task.attempts == 2:
            raise ZeroDivisionError("the password is sesame")
        raise Invalid("this can't be done")

    until(lambda: drain(queue, work) or status(queue, added.id) == "failed")
    assert attempts == [1, 2, 3]
    row = queue.get(added.id)
    assert row is not None
    assert (row.attempts, row.error) == (3, "this can't be done")
    assert row.finished_at is not None
    drain(queue, work)
    assert len(attempts) == 3


def test_between_attempts_it_waits_and_others_go_first(queue: Queue, database: Database) -> None:
    patient = Queue(database, lambda: 0, WorkerTiming(attempts=3, pause=1000.0))
    failing = patient.add("shop", "improve", {"dataset": "a"})
    following = patient.add("shop", "improve", {"dataset": "b"})

    def work(task: Task, report: Report) -> None:
        if task.job_id == failing.id:
            raise Unavailable("the model is asleep")

    drain(patient, work)
    row = patient.get(failing.id)
    assert row is not None
    assert (row.status, row.attempts, row.error) == ("waiting", 1, "the model is asleep")
    assert status(patient, following.id) == "done"
    due = patient.due_in("shop")
    assert due is not None
    assert 900 < due <= 1000
    drain(patient, work)
    assert status(patient, failing.id) == "waiting"


def test_what_failed_once_and_then_went_well_is_done(queue: Queue) -> None:
    added = queue.add("shop", "improve", {})

    def work(task: Task, report: Report) -> None:
        if task.attempts == 1:
            raise Unavailable("not now")

    until(lambda: drain(queue, work) or status(queue, added.id) == "done")
    row = queue.get(added.id)
    assert row is not None
    assert (row.attempts, row.error) == (2, None)


def test_a_job_that_waits_is_cancelled_at_once(queue: Queue) -> None:
    added = queue.add("shop", "improve", {})
    queue.cancel(added.id)
    row = queue.get(added.id)
    assert row is not None
    assert (row.status, row.attempts) == ("cancelled", 0)
    assert row.finished_at is not None
    done: list[Task] = []
    drain(queue, lambda task, report: done.append(task))
    assert done == []
    queue.cancel(added.id)
    queue.cancel("nobody")
    assert status(queue, added.id) == "cancelled"


def test_a_job_that_runs_is_cancelled_at_its_next_report(queue: Queue) -> None:
    added = queue.add("shop", "improve", {})
    steps: list[int] = []

    def work(task: Task, report: Report) -> None:
        for step in range(10):
            steps.append(step)
            if step == 2:
                queue.cancel(task.job_id)
                assert status(queue, task.job_id) == "running"
            report(step, 10)

    drain(queue, work)
    assert steps == [0, 1, 2]
    row = queue.get(added.id)
    assert row is not None
    assert (row.status, row.error, row.done) == ("cancelled", None, 2)
    assert row.finished_at is not None


def test_a_job_that_fails_after_it_was_cancelled_is_not_tried_again(queue: Queue) -> None:
    added = queue.add("shop", "improve", {})

    def work(task: Task, report: Report) -> None:
        queue.cancel(task.job_id)
        raise Unavailable("the model is asleep")

    drain(queue, work)
    assert status(queue, added.id) == "cancelled"


def test_a_worker_that_is_stopped_ends_after_its_batch_and_another_one_goes_on(queue: Queue) -> None:
    added = queue.add("shop", "improve", {})
    stopped = threading.Event()
    seen: list[tuple[int, int]] = []

    def work(task: Task, report: Report) -> None:
        for step in range(3):
            seen.append((task.attempts, step))
            if len(seen) == 2:
                stopped.set()
            report(step, 3)

    queue.work(work, None, stopped.is_set, once=False)
    assert seen == [(1, 0), (1, 1)]
    assert status(queue, added.id) == "waiting"
    drain(queue, work)
    # What was stopped on purpose does not count as an attempt.
    assert seen[2:] == [(1, 0), (1, 1), (1, 2)]
    assert status(queue, added.id) == "done"


@pytest.mark.slow
def test_two_workers_never_do_the_same_job(queue: Queue, database: Database) -> None:
    ids = {queue.add("shop", "improve", {"dataset": str(number)}).id for number in range(30)}
    done: list[str] = []
    running: set[str] = set()

    def work(task: Task, report: Report) -> None:
        assert task.job_id not in running
        running.add(task.job_id)
        report(0, 1)
        done.append(task.job_id)

    workers = [threading.Thread(target=drain, args=(Queue(database, lambda: 0, QUICK), work)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(SOON)
    assert sorted(done) == sorted(ids)


def test_work_on_the_whole_store_is_done_one_at_a_time(queue: Queue, database: Database) -> None:
    first = queue.add(None, "reembed", {"embedding": "a"})
    second = queue.add(None, "reembed", {"embedding": "b"})
    order: list[str] = []

    def other(task: Task, report: Report) -> None:
        order.append(task.job_id)

    def work(task: Task, report: Report) -> None:
        order.append(task.job_id)
        if task.job_id == first.id:
            drain(Queue(database, lambda: 0, QUICK), other)
            assert order == [first.id]

    drain(queue, work)
    assert order == [first.id, second.id]


def test_a_worker_that_runs_takes_up_what_others_add(queue: Queue, database: Database) -> None:
    stopped = threading.Event()
    worker = threading.Thread(target=lambda: queue.work(lambda task, report: None, None, stopped.is_set, once=False))
    worker.start()
    added = Queue(database, lambda: 0, QUICK).add("shop", "improve", {})
    until(lambda: status(queue, added.id) == "done")
    stopped.set()
    worker.join(SOON)
    assert not worker.is_alive()


def test_a_lost_job_is_not_settled_by_the_worker_that_lost_it(queue: Queue, database: Database) -> None:
    hasty = Queue(database, lambda: 0, WorkerTiming(attempts=9, lease=0.2, poll=0.05))
    added = Queue(database, lambda: 0, QUICK).add("shop", "improve", {})
    begun, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    def first(task: Task, report: Report) -> None:
        begun.set()
        _forget_worker(database, task)
        assert go_on.wait(SOON)
        try:
            report(1, 2)
        finally:
            ended.append("first")

    def second(task: Task, report: Report) -> None:
        go_on.set()
        until(lambda: ended)
        report(2, 2)
        ended.append("second")

    workers = [threading.Thread(target=drain, args=(hasty, first))]
    workers[0].start()
    assert begun.wait(SOON)
    workers.append(threading.Thread(target=lambda: until(lambda: drain(queue, second) or "second" in ended)))
    workers[1].start()
    for worker in workers:
        worker.join(SOON)
    assert ended == ["first", "second"]
    row = queue.get(added.id)
    assert row is not None
    assert (row.status, row.attempts, row.done) == ("done", 2, 2)


def test_a_job_that_is_cancelled_after_its_worker_died_is_not_done_again(queue: Queue, database: Database) -> None:
    added = queue.add("shop", "improve", {})
    begun: list[str] = []

    def work(task: Task, report: Report) -> None:
        begun.append(task.job_id)
        _forget_worker(database, task)
        queue.cancel(task.job_id)
        drain(queue, work)
        assert status(queue, task.job_id) == "cancelled"

    drain(queue, work)
    assert begun == [added.id]
    assert status(queue, added.id) == "cancelled"


def _forget_worker(database: Database, task: Task) -> None:
    """What others see of a worker that was frozen for long."""
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE jobs SET leased_until = 0, owner = 'another'")


def test_jobs_that_ended_long_ago_are_forgotten(queue: Queue) -> None:
    ended = queue.add("shop", "improve", {"dataset": "a"})
    drain(queue, lambda task, report: None)
    waiting = queue.add("shop", "improve", {"dataset": "b"})
    row = queue.get(ended.id)
    assert row is not None
    assert queue.forget(row.finished_at) == 0
    assert queue.forget(row.finished_at + 1) == 1
    assert queue.get(ended.id) is None
    assert status(queue, waiting.id) == "waiting"
