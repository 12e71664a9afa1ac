"""What threads share in memory, hammered by sixteen of them: no error, nothing stale or mixed, the same end."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cities import make_cities
from server import running

from heedful import Heedful
from heedful.errors import Forbidden, NotFound, Unavailable
from heedful.interfaces.http import state
from heedful.jobs.retention import maintain
from heedful.ledger import tallies
from heedful.ledger.opinions import FeedbackRow, SqlFeedbacks
from heedful.model import CacheLookup
from heedful.settings import Retention
from heedful.sql.reuse.candidates import Limits
from heedful.sql.reuse.lookup import judge
from heedful.storage import database
from heedful.store import Store
from heedful.testing import WordEmbedder

THREADS = 16


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads take turns after every few instructions, so that what can go wrong between two of them does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def hammer(work: Callable[[int, random.Random], object], threads: int = THREADS) -> None:
    """Does the work in all threads at once, each with its number; the first error is raised."""
    start = threading.Barrier(threads)

    def run(number: int) -> None:
        start.wait()
        work(number, random.Random(number))

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, number) for number in range(threads)]:
            done.result()


COUNTRIES = [f"land{number:02}" for number in range(76)]
CITIES = "How many cities are in {}?"


LIMITS = Limits(None, 0.5, 50, only_positive_feedback=False, examples=False, explained=50)


def counting(place: int) -> str:
    """SQL that counts the cities of a country; each place has a template of its own."""
    return f"SELECT count(*) AS n{place} FROM city WHERE country = '{COUNTRIES[place]}'"


@pytest.mark.nightly
def test_the_evidence_of_the_cache(open_store: Callable[..., Heedful], tmp_path: Path) -> None:
    store = open_store()
    cities = make_cities(tmp_path)
    rows = ", ".join(f"({100 + place}, 'x', '{name}', 1)" for place, name in enumerate(COUNTRIES))
    cities.write(f"INSERT INTO city VALUES {rows}")
    store.connectors.create("geo", cities.url)
    known = [(CITIES.format(COUNTRIES[place]), counting(place)) for place in range(60)]
    store.golden_examples.import_examples([{"question": asked, "sql_query": sql} for asked, sql in known])
    for question, sql in known[:12]:
        store.executions.execute_query(sql, question=question)
    space = store._project.executions
    with space.workspace.read() as connection:
        geo = space.connector(connection, "geo")
    streets = "How many streets are there?"
    done = store.executions.execute_query("SELECT count(*) AS n FROM street", question=streets).execution_id

    def look(heedful: Heedful, question: str, **options: Any) -> CacheLookup:
        return heedful.chat.execution_cache_lookup(question, reuse="result", top_n=20, **options)

    def work(number: int, draw: random.Random) -> None:
        if number < 4:
            for place in [*range(60 + 4 * number, 64 + 4 * number)] * 2:
                made = store.golden_examples.create(CITIES.format(COUNTRIES[place]), counting(place))
                if draw.random() < 0.8:
                    store.golden_examples.delete(made.id)
                else:
                    store.golden_examples.update(made.id, question=f"Which is number {draw.random()}?")
        elif number == 4:
            # Only here this is rated, so that it is known what must hold.
            for _ in range(4):
                feedback = store.feedback.create_negative(execution_id=done)
                assert not look(store, streets).cache_hit, "it is wrong, and is served"
                store.feedback.update(feedback.id, is_positive=True)
                assert look(store, streets, only_positive_feedback=True).cache_hit
                store.retract(feedback.id)
        else:
            for _ in range(40):
                question = CITIES.format(draw.choice(COUNTRIES))
                found, _ = judge(space, geo, question, space.workspace.embed([question])[0], LIMITS, "sql")
                # Sixty of them never go, and contradict each other whatever the others do, but for the very same words.
                others = [each for each in found if each.candidate.row.question != question]
                assert all(each.decision == "refuse" for each in others)
                assert "conflict" in {each.gate for each in found}

    hammer(work)
    again = open_store()
    for country in COUNTRIES[::9]:
        assert look(store, CITIES.format(country)) == look(again, CITIES.format(country))


def test_the_evidence_waits_for_no_other_connector_and_in_no_transaction(
    open_store: Callable[..., Heedful], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    for name in ("quick", "slow"):
        store.connectors.create(name, make_cities(tmp_path, f"{name}.db").url)
        store.executions.execute_query("SELECT count(*) FROM street", question="How many streets?", connector_id=name)
    asking, answer = threading.Event(), threading.Event()
    queries, engine = store._project.executions.queries, store._workspace.database.engine
    text_values = type(queries).text_values
    held: list[int] = []

    def slowly(self: Any, target: Any) -> Any:
        if "slow.db" in target.url:
            held.append(engine.pool.checkedout())  # type: ignore[attr-defined]
            asking.set()
            assert answer.wait(30)
        return text_values(self, target)

    monkeypatch.setattr(type(queries), "text_values", slowly)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.chat.execution_cache_lookup, "How many streets?", connector_id="slow")
        try:
            assert asking.wait(30)
            assert store.chat.execution_cache_lookup("How many streets?", connector_id="quick").cache_hit
            assert not waiting.done()
        finally:
            answer.set()
        assert waiting.result().cache_hit
    assert held == [0]


@pytest.mark.nightly
def test_the_indexes_of_facts_and_of_queries_with_signals(open_store: Callable[..., Heedful]) -> None:
    store = open_store()
    store.remember([f"common ground number{number}" for number in range(30)])

    def work(number: int, draw: random.Random) -> None:
        for turn in range(3):
            query = f"own{number}x{turn}"
            kept, gone = store.remember([f"{query} is kept", f"{query} is forgotten"]).fact_ids
            store.signal([{"fact_id": kept, "signal_type": "helpful", "query": query}])
            store.forget(gone)
            for options in ({}, {"boost_by_usefulness": True}, {"mode": "graph"}):
                found = store.recall(query, top_k=5, **options).hits
                assert found[0].fact_id == kept, "what was stored is not found"
                assert gone not in {hit.fact_id for hit in found}, "what was forgotten is found"
            assert store.fact_stats(kept).signal_count == 1
            assert len(store.recall(f"common number{draw.randrange(30)}", top_k=3)) == 3

    hammer(work)
    assert all(check.ok for check in store.doctor(repair=False))
    again = open_store()
    for number in range(THREADS):
        query = f"own{number}x1 common"
        messages = [
            [(hit.fact_id, hit.score, hit.usefulness) for hit in each.recall(query, boost_by_usefulness=True)]
            for each in (store, again)
        ]
        assert messages[0] == messages[1]


def ups(store: Heedful) -> int:
    return sum(variant.up for variant in store.insight.satisfaction("target_type").variants)


@pytest.mark.slow
def test_the_counts_of_opinions(open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    monkeypatch.setattr(tallies, "FOLD_AFTER", 10)
    lock = threading.Lock()
    begun, done = {"given": 0, "taken": 0}, {"given": 0, "taken": 0}

    def count(what: dict[str, int], name: str) -> None:
        with lock:
            what[name] += 1

    def work(number: int, draw: random.Random) -> None:
        for turn in range(5):
            if number % 4 == 3:
                with lock:
                    least, most = done["given"], -done["taken"]
                told = ups(store)
                with lock:
                    assert least - begun["taken"] <= told <= begun["given"] + most
                if number == 3:
                    maintain(store._workspace.database, store._workspace.now(), Retention())
                continue
            session = store.sessions.create(f"s{number}-{turn}").session_id
            count(begun, "given")
            feedback = store.sessions.add_session_feedback(session, {"rating": "up"})
            assert feedback is not None
            count(done, "given")
            if draw.random() < 0.4:
                count(begun, "taken")
                store.retract(feedback.feedback_id)
                count(done, "taken")

    hammer(work)
    stand = done["given"] - done["taken"]
    assert [ups(each) for each in (store, open_store())] == [stand, stand]
    assert all(check.ok for check in store.doctor(repair=False))


def test_the_keys_that_a_server_remembers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_CALLERS", 4)
    monkeypatch.setattr(state, "LAST_USED_SECONDS", 0.0)
    opened = Store(path, embedding=WordEmbedder())
    with opened.open("p") as store:
        known = state.Callers(opened, "admin-key-of-the-test-0123456789")
        shared = [store.keys.create(f"shared {number}", scopes=["read"]) for number in range(8)]

        def work(number: int, draw: random.Random) -> None:
            own = store.keys.create(f"own {number}", scopes=["feedback"])
            for _ in range(15):
                key = draw.choice([*shared, own])
                caller = known.remembered(key.api_key) or known.find(key.api_key)
                assert (caller.key_id, caller.project) == (key.key_id, "p"), "it is somebody else"
                assert caller.scopes == set(key.scopes)
            store.keys.revoke(own.key_id)
            with pytest.raises(Forbidden):
                known.find(own.api_key)

        hammer(work)
        assert len(known._cache) <= 4
    opened.close()


@pytest.mark.slow
def test_writers_who_share_a_transaction(open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    store.sessions.create("chat")
    add, commit, commits = SqlFeedbacks.add, database._Group.end, itertools.count()

    def add_or_fail(self: SqlFeedbacks, new: FeedbackRow, key: str, recorded_at: int) -> bool:
        added = add(self, new, key, recorded_at)
        if new.comment is not None and new.comment.startswith("refused"):
            raise ValueError("refused after it was written")
        return added

    def commit_or_fail(self: database._Group, error: BaseException | None = None) -> None:
        commit(self, OSError("the disk is gone") if error is None and next(commits) % 5 == 4 else error)

    stored: list[str] = []
    refused: list[str] = []
    failed: list[str] = []

    def work(number: int, chance: random.Random) -> None:
        for turn in range(12):
            name = f"{chance.choice(['good', 'good', 'refused'])} {number} {turn}"
            try:
                store.sessions.add_session_feedback("chat", {"rating": "up", "comment": name})
            except ValueError:
                refused.append(name)
            except OSError:
                failed.append(name)
            else:
                assert name in comments(store), "acknowledged before it was committed"
                stored.append(name)

    with monkeypatch.context() as faults:
        faults.setattr(SqlFeedbacks, "add", add_or_fail)
        faults.setattr(database._Group, "end", commit_or_fail)
        # However slow the machine is, a transaction waits for the next writer.
        faults.setattr(database, "MAX_SECONDS", 60.0)
        hammer(work)
    assert sorted(comments(store)) == sorted(stored)
    assert all(name.startswith("good") for name in stored + failed)
    assert next(commits) < len(stored + failed), "none of them shared a transaction"
    assert failed
    assert len(stored + refused + failed) == THREADS * 12


def test_calls_of_a_thread_share_a_transaction(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    store.sessions.create("chat")
    commit, ended = database._Group.end, list[bool]()
    fails = False

    def end(self: database._Group, error: BaseException | None = None) -> None:
        ended.append(fails)
        commit(self, OSError("the disk is gone") if error is None and fails else error)

    def rate(comment: str, session: str = "chat") -> None:
        store.sessions.add_session_feedback(session, {"rating": "up", "comment": comment})

    def read_back() -> None:
        rate("read back")
        assert "read back" in comments(store)

    def write_otherwise() -> None:
        rate("and a fact")
        store.remember("Berlin has a river.")

    def make(*calls: Callable[[], object]) -> list[type[BaseException] | None]:
        return [None if error is None else type(error) for _, error in database.together(calls)]

    monkeypatch.setattr(database._Group, "end", end)
    monkeypatch.setattr(database, "MAX_SECONDS", 60)
    assert make(lambda: rate("a"), lambda: rate("b", "none"), lambda: rate("c"), lambda: None) == [
        *(None, NotFound, None, None)
    ]
    assert (comments(store), len(ended)) == (["c", "a"], 1)
    assert make(lambda: rate("d"), read_back, write_otherwise, lambda: rate("e")) == [None] * 4
    assert comments(store) == ["e", "and a fact", "read back", "d", "c", "a"]
    fails = True
    assert make(lambda: rate("f"), lambda: None, lambda: rate("g")) == [OSError, None, OSError]
    assert comments(store) == ["e", "and a fact", "read back", "d", "c", "a"]
    # The turn was given back, to this thread and to others.
    fails = False
    hammer(lambda number, chance: rate(f"later {number}"), threads=2)
    assert len(comments(store)) == 8


def test_feedback_that_waits_at_a_server_shares_a_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, commits = database._Group.end, list[int]()

    def end(self: database._Group, error: BaseException | None = None) -> None:
        commits.append(self._writers)
        commit(self, error)

    with running(path) as server, server.connect() as store, ThreadPoolExecutor(24) as pool:
        store.sessions.create("chat")
        monkeypatch.setattr(database._Group, "end", end)
        monkeypatch.setattr(database, "MAX_SECONDS", 60)
        with server.state.store.database.direct("default", write=True):
            opinion = {"rating": "up", "comment": "yes"}
            sent = [pool.submit(store.sessions.add_session_feedback, "chat", opinion) for _ in range(24)]
            while server.state._shares._running["feedback"] < 24:
                time.sleep(0.01)
        assert all(each.result() for each in sent)
        assert len(store.sessions.feedbacks("chat", limit=100).items) == 24
    assert max(commits) > 8


def comments(store: Heedful) -> list[str]:
    return [each.comment or "" for each in store.sessions.feedbacks("chat", limit=1000, newest_first=True).items]


def test_a_writer_waits_only_so_long_for_the_others(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    store.sessions.create("chat")
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with ThreadPoolExecutor(1) as pool:
        with store._project.workspace.direct(write=True):
            late = pool.submit(store.sessions.add_session_feedback, "chat", {"rating": "up", "comment": "late"})
            with pytest.raises(Unavailable) as busy:
                late.result()
        assert busy.value.code == "store_busy"
    store.sessions.add_session_feedback("chat", {"rating": "up", "comment": "later"})
    assert comments(store) == ["later"]
