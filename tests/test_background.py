"""Jobs of a program: done beside its own work, by whoever is there, and never lost with a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
import pytest
from patience import until
from searching import NO_GRAPHS, can_build_graphs

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound
from heedful.bootstrap import store_jobs
from heedful.engine import Project
from heedful.jobs import worker
from heedful.jobs.queue import Queue, Report, Task, WorkerTiming
from heedful.jobs.worker import BackgroundWorker, Worker
from heedful.ledger import tallies
from heedful.review import tables
from heedful.search import DatabaseIndex, DatasetIndex
from heedful.sessions import improve
from heedful.sessions.hooks import AlertHook
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")

SOON = 60.0
QUESTIONS = ["Who leads the company", "Who cooks on Mondays", "Where is the printer", "When does the office open"]
FACTS = [
    "Anna leads the company",
    "Bob cooks on Mondays",
    "The printer is in the hall, where else",
    "The office does open at eight, when people come",
]


@pytest.fixture
def opening(any_store: str, clock: ManualClock) -> Iterator[Callable[..., Heedful]]:
    opened: list[Heedful] = []

    def opening(**options: Any) -> Heedful:
        opened.append(heedful.open(any_store, clock=clock, embedding=WordEmbedder(), **options))
        return opened[-1]

    yield opening
    for each in opened:
        each.close()


def rated(store: Heedful) -> None:
    """Answers that people liked, for `improve` to learn from."""
    store.remember(FACTS)
    for question in QUESTIONS:
        result = store.recall(question, session_id="chat", top_k=1)
        assert result.qa_id is not None
        store.sessions.add_feedback("chat", result.qa_id, feedback_score=5)


def learnt(store: Heedful) -> dict[str, Any]:
    """What is known of each fact, but for its id."""
    result = {each.text: store.fact_stats(each.fact_id) for each in store.facts().items}
    return {text: (stats.overall_usefulness, stats.signal_breakdown) for text, stats in sorted(result.items())}


@pytest.mark.slow
def test_what_is_added_is_done_at_once_beside_other_work(opening: Callable[..., Heedful]) -> None:
    store = opening()
    rated(store)
    added = store.jobs.improve()
    assert (added.status, added.kind, added.project, added.attempts) == ("waiting", "improve", "default", 0)
    assert added.arguments == {"dataset": None, "session_ids": None}
    done = until(lambda: (job := store.jobs.get(added.job_id)).status == "done" and job)
    assert (done.done, done.total, done.attempts, done.error) == (4, 4, 1, None)
    assert store.usefulness_stats().total_signals == 4


def test_closing_waits_for_what_was_added(opening: Callable[..., Heedful]) -> None:
    store = opening()
    rated(store)
    added = store.jobs.improve()
    store.close()
    assert opening(worker=False).jobs.get(added.job_id).status == "done"


@pytest.mark.slow
def test_without_a_worker_it_is_left_to_the_next_process_that_opens_the_store(opening: Callable[..., Heedful]) -> None:
    with opening(worker=False) as store:
        rated(store)
        store.remember("Cats sleep", self_improvement=True)
        (left,) = store.jobs.list().items
        assert left.status == "waiting"
    store = opening()
    until(lambda: store.jobs.get(left.job_id).status == "done")
    assert store.usefulness_stats().total_signals == 4


def test_what_others_left_is_not_waited_for(any_store: str, opening: Callable[..., Heedful]) -> None:
    opening(worker=False).jobs.improve()
    begun, go_on = threading.Event(), threading.Event()
    steps: list[int] = []

    def work(task: Task, report: Report) -> None:
        for step in range(3):
            steps.append(step)
            begun.set()
            assert go_on.wait(SOON)
            report(step, 3)

    opened = Store(any_store, embedding=WordEmbedder())
    background = BackgroundWorker(opened.queue, work, "default")
    background.start_due()
    assert begun.wait(SOON)
    closing = threading.Thread(target=background.close)
    closing.start()
    until(lambda: background._closing)
    go_on.set()
    closing.join(SOON)
    assert steps == [0]
    (job,) = opening(worker=False).jobs.list().items
    assert (job.status, job.attempts) == ("waiting", 0)
    opened.close()


def test_no_thread_is_there_before_there_is_work_nor_after_it(opening: Callable[..., Heedful]) -> None:
    store = opening()

    def threads() -> int:
        return sum(each.name == "heedful-background" for each in threading.enumerate())

    assert threads() == 0
    added = store.jobs.improve()
    until(lambda: store.jobs.get(added.job_id).status == "done" and threads() == 0)


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)"])
@pytest.mark.nightly
def test_a_program_that_ends_without_closing_does_its_jobs_first(
    any_store: str, opening: Callable[..., Heedful], end: str
) -> None:
    rated(opening(worker=False))
    program = f"""
import sys, heedful
from heedful.testing import WordEmbedder
store = heedful.open(sys.argv[1], embedding=WordEmbedder())
store.jobs.improve()
{end}
"""
    # By its name: looking that up is done in a thread, by default.
    where = any_store.replace("127.0.0.1", "localhost")
    ended = subprocess.run([sys.executable, "-c", program, where], capture_output=True, text=True, timeout=SOON)
    assert (ended.returncode, ended.stderr) == (3 if end else 0, "")
    store = opening(worker=False)
    assert [each.status for each in store.jobs.list().items] == ["done"]
    assert store.usefulness_stats().total_signals == 4


def test_a_job_is_done_where_no_thread_can_be_started_for_it(
    opening: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.jobs.queue.start_unless_ending", lambda thread: False)
    store = opening()
    added = store.jobs.improve()
    until(lambda: store.jobs.get(added.job_id).status == "done")


@pytest.mark.nightly
def test_a_program_does_not_wait_for_a_job_that_failed_for_now(any_store: str, opening: Callable[..., Heedful]) -> None:
    rated(opening(worker=False))
    program = """
import logging, sys, heedful
from heedful.testing import WordEmbedder
logging.disable()
store = heedful.open(sys.argv[1], embedding=WordEmbedder())
def fail(*arguments):
    raise heedful.Unavailable("not today")
from heedful.engine import Project
Project.improve = fail
store.jobs.improve()
"""
    subprocess.run([sys.executable, "-c", program, any_store], check=True, timeout=SOON)
    (job,) = opening(worker=False).jobs.list().items
    assert (job.status, job.error) == ("waiting", "not today")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.nightly
def test_a_forked_child_does_its_own_jobs_and_waits_for_nobody(
    opening: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opening()
    rated(store)
    begun, busy = threading.Event(), threading.Event()
    improvement = Project.improve

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert busy.wait(SOON)
        return improvement(*arguments)

    monkeypatch.setattr(Project, "improve", slow)
    store.jobs.improve("main_dataset", ["chat"])
    assert begun.wait(SOON)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            monkeypatch.undo()
            added = store.jobs.improve()
            store._project.finish()
            code = 0 if store.jobs.get(added.job_id).status == "done" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    busy.set()
    until(lambda: all(each.status == "done" for each in store.jobs.list().items))


@pytest.mark.nightly
def test_a_worker_that_is_killed_in_the_middle_is_replaced_and_the_result_is_the_same(
    any_store: str, opening: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = heedful.open(":memory:", clock=ManualClock(), embedding=WordEmbedder())
    rated(undisturbed)
    undisturbed.improve()
    store = opening(worker=False)
    rated(store)
    added = store.jobs.improve()
    program = """
import sys, time
from heedful.jobs.queue import WorkerTiming
from heedful.jobs.queue import Queue
from heedful.store import Store
from heedful.sessions import improve
from heedful.sessions.hooks import AlertHook
from heedful.testing import WordEmbedder
improve.BATCH_SIZE = 1
opened = Store(sys.argv[1], embedding=WordEmbedder())
def work(task, report):
    def until_the_middle(done, total):
        report(done, total)
        if done == 2:
            print("in the middle", flush=True)
            time.sleep(600)
    opened.run_job(task, until_the_middle)
Queue(opened.database, opened.now, WorkerTiming(lease=2.0, poll=0.1)).work(work, None, lambda: False, once=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program, any_store], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    process.send_signal(signal.SIGKILL)
    process.wait(SOON)
    process.stdout.close()
    job = store.jobs.get(added.job_id)
    assert (job.status, job.done, job.total) == ("running", 2, 4)
    assert store.usefulness_stats().total_signals == 2

    monkeypatch.setattr(improve, "BATCH_SIZE", 1)
    opened = Store(any_store, clock=ManualClock(), embedding=WordEmbedder())
    queue = Queue(opened.database, opened.now, WorkerTiming(lease=2.0, poll=0.1))

    def is_done() -> bool:
        queue.work(opened.run_job, None, lambda: False, once=True)
        return store.jobs.get(added.job_id).status == "done"

    until(is_done)
    opened.close()
    job = store.jobs.get(added.job_id)
    assert (job.attempts, job.error) == (2, None)
    assert learnt(store) == learnt(undisturbed)
    undisturbed.close()


@pytest.mark.nightly
def test_a_job_whose_workers_die_again_and_again_is_given_up(any_store: str, opening: Callable[..., Heedful]) -> None:
    store = opening(worker=False)
    added = store.jobs.improve()
    program = """
import os, sys
from heedful.jobs.queue import WorkerTiming
from heedful.jobs.queue import Queue
from heedful.store import Store
from heedful.testing import WordEmbedder
opened = Store(sys.argv[1], embedding=WordEmbedder())
queue = Queue(opened.database, opened.now, WorkerTiming(attempts=2, lease=0.1, poll=0.1))
queue.work(lambda task, report: os.kill(os.getpid(), 9), None, lambda: False, once=True)
"""

    def is_over() -> bool:
        subprocess.run([sys.executable, "-c", program, any_store], check=False, timeout=SOON)
        return store.jobs.get(added.job_id).status == "failed"

    until(is_over)
    job = store.jobs.get(added.job_id)
    assert (job.attempts, job.error) == (2, "the worker died")


@pytest.mark.nightly
def test_a_worker_of_the_whole_store_does_all_projects_and_maintenance(
    any_store: str, opening: Callable[..., Heedful]
) -> None:
    stores = [opening(project=name, worker=False) for name in ("shop", "kiosk")]
    for store in stores:
        rated(store)
        store.jobs.improve()
    opened = Store(any_store, embedding=WordEmbedder())
    working = Worker(opened.queue, opened.run_job, opened.now)
    working.start()
    expected = {("improve", "kiosk"), ("improve", "shop"), ("maintain", None)}
    if opened.database.searches:
        expected.add(("index", None))
    with store_jobs(any_store) as jobs:
        until(lambda: {(each.kind, each.project) for each in jobs.list().items if each.status == "done"} == expected)
    working.close()
    opened.close()
    assert [store.usefulness_stats().total_signals for store in stores] == [4, 4]


@pytest.mark.slow
def test_maintenance_takes_many_opinions_into_the_review_queue(
    any_store: str, opening: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((tallies, "FOLD_AFTER"), (tables, "MAX_BACKLOG")):
        monkeypatch.setattr(module, name, 2)
    for project, opinions in (("busy", 5), ("quiet", 1)):
        store = opening(project=project, worker=False)
        for number in range(opinions):
            qa_id = store.sessions.add_entry("s", f"Question {number}?", "No.").qa_id
            store.sessions.add_feedback("s", qa_id, feedback_score=1)
    opened = Store(any_store, embedding=WordEmbedder())

    def in_queues() -> int:
        with opened.database.read() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM review_members").scalar_one())

    assert in_queues() == 0
    opened.queue.add(None, "maintain", {})
    opened.queue.work(opened.run_job, None, lambda: False, once=True)
    assert in_queues() == 5
    opened.close()


def test_maintenance_drops_old_receipts_and_has_large_datasets_indexed(
    any_store: str, opening: Callable[..., Heedful], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    if any_store.startswith("postgresql") and not can_build_graphs():
        pytest.skip(NO_GRAPHS)
    monkeypatch.setenv("HEEDFUL_RECEIPT_DAYS", "7")
    monkeypatch.setenv("HEEDFUL_SEARCH_IN_MEMORY", "5")
    store = opening(worker=False)
    store.remember([f"the number {number} is odd" for number in range(20)])
    old = store.recall("odd")
    clock.advance(days=40)
    new = store.recall("odd")
    opened = Store(any_store, embedding=WordEmbedder(), clock=clock)
    opened.queue.add(None, "maintain", {})
    # What one job adds, the next round does.
    for _ in range(2):
        opened.queue.work(opened.run_job, None, lambda: False, once=True)
    searches = opened.database.searches
    opened.close()
    with pytest.raises(NotFound):
        store.signal_recall(old.recall_id, used=[old[0].fact_id])
    assert store.signal_recall(new.recall_id, used=[new[0].fact_id]).errors == []
    with store._workspace.read() as connection:
        model = store._workspace.model(connection)
        assert model is not None
        index = store._workspace.index(connection, 1, model)
    assert isinstance(index, DatabaseIndex if searches else DatasetIndex)
    assert store.recall("number 7", mode="lexical")[0].text == "the number 7 is odd"


def test_a_worker_survives_a_store_that_fails(
    any_store: str, opening: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "STORE_RETRY_SECONDS", 0.01)
    opened = Store(any_store, embedding=WordEmbedder())
    whole = opened.queue.work
    failures = iter([heedful.Unavailable("the store is asleep")])

    def work(*arguments: Any, **options: Any) -> None:
        for failure in failures:
            raise failure
        whole(*arguments, **options)

    monkeypatch.setattr(opened.queue, "work", work)
    working = Worker(opened.queue, opened.run_job, opened.now)
    working.start()
    store = opening(worker=False)
    added = store.jobs.improve()
    until(lambda: store.jobs.get(added.job_id).status == "done")
    working.close()
    opened.close()
    assert "jobs wait: the store is asleep" in caplog.text


@pytest.mark.slow
def test_a_worker_survives_the_loss_of_all_connections(
    empty_database: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "STORE_RETRY_SECONDS", 0.01)
    opened = Store(empty_database, embedding=WordEmbedder())
    working = Worker(opened.queue, opened.run_job, opened.now)
    working.start()
    with heedful.open(empty_database, clock=clock, embedding=WordEmbedder(), worker=False) as store:
        for dataset in ("before", "after"):
            store.create_dataset(dataset)
            added = store.jobs.improve(dataset)
            until(lambda added=added: store.jobs.get(added.job_id).status == "done")  # type: ignore[misc]
            with psycopg.connect(empty_database, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        working.close()
    opened.close()


def test_vectors_are_rebuilt_in_the_background(any_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shorter(WordEmbedder):
        name = "shorter"

    with heedful.open(any_store, embedding=WordEmbedder()) as store:
        store.remember(FACTS)
    opened = Store(any_store, embedding=WordEmbedder())
    monkeypatch.setattr(opened, "embedder_named", {"shorter": Shorter()}.__getitem__)
    with store_jobs(any_store) as jobs:
        added = jobs.reembed("shorter")
        Worker(opened.queue, opened.run_job, opened.now).drain()
        done = jobs.get(added.job_id)
    assert (done.status, done.done, done.total, done.project) == ("done", 4, 4, None)
    opened.close()
    with heedful.open(any_store, embedding=Shorter()) as store:
        assert store.recall("Who cooks").hits[0].text == FACTS[1]


def test_a_project_sees_its_own_jobs_alone(any_store: str, opening: Callable[..., Heedful]) -> None:
    shop, kiosk = (opening(project=name, worker=False) for name in ("shop", "kiosk"))
    result = shop.jobs.improve()
    with store_jobs(any_store) as jobs:
        of_store = jobs.reembed("fast")
        assert [each.job_id for each in jobs.list().items] == [of_store.job_id, result.job_id]
    assert [each.job_id for each in shop.jobs.list().items] == [result.job_id]
    assert kiosk.jobs.list().items == []
    for call in (kiosk.jobs.get, kiosk.jobs.cancel, kiosk.jobs.retry):
        for job_id in (result.job_id, of_store.job_id):
            with pytest.raises(NotFound):
                call(job_id)
    assert shop.jobs.get(result.job_id).status == "waiting"


def test_what_was_cancelled_can_be_tried_again_and_what_goes_well_can_not(opening: Callable[..., Heedful]) -> None:
    store = opening(worker=False)
    store.create_dataset("notes")
    store.sessions.create("chat")
    added = store.jobs.improve("notes", "chat")
    assert added.arguments == {"dataset": "notes", "session_ids": ["chat"]}
    with pytest.raises(Conflict) as caught:
        store.jobs.retry(added.job_id)
    assert caught.value.code == "job_not_ended"
    cancelled = store.jobs.cancel(added.job_id)
    assert cancelled.status == "cancelled"
    assert cancelled.finished_at is not None
    assert store.jobs.cancel(added.job_id) == cancelled
    again = store.jobs.retry(added.job_id)
    assert again.job_id != added.job_id
    assert again.arguments == added.arguments
    assert store.jobs.retry(added.job_id) == again


def test_jobs_are_paged(opening: Callable[..., Heedful]) -> None:
    store = opening(worker=False)
    names = [store.create_dataset(f"d{number}").name for number in range(5)]
    added = [store.jobs.improve(name).job_id for name in names]
    result: list[str] = []
    cursor = None
    while True:
        page = store.jobs.list(limit=2, cursor=cursor)
        result += [each.job_id for each in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert result == added[::-1]


@pytest.mark.parametrize("options", [{"status": "lost"}, {"kind": "dance"}, {"limit": 0}, {"cursor": "x"}])
def test_what_can_not_be_listed_is_refused(store: Heedful, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        store.jobs.list(**options)
    assert caught.value.field == next(iter(options))


class Broken:
    """A channel that is out of order."""

    name = "pager"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        raise heedful.Unavailable("nobody answers")


def test_alerts_on_their_way_are_jobs_too(opening: Callable[..., Heedful]) -> None:
    store = opening(feedback_hook=AlertHook(Broken()))
    store.sessions.create("chat")
    store.sessions.add_session_feedback("chat", {"rating": "down", "comment": "no"})
    alert = until(
        lambda: (found := store.jobs.list(kind="deliver", status="waiting").items) and found[0].error and found[0]
    )
    assert (alert.kind, alert.arguments, alert.error) == ("deliver", {"channel": "pager"}, "nobody answers")
    store.sessions.discard_alert(alert.job_id)
    assert [each.status for each in store.jobs.list(kind="deliver").items] == ["cancelled"]
    with pytest.raises(Invalid):
        store.jobs.list(kind="deliver", status="failed")
