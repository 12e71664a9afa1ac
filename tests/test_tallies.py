"""Counts of opinions are folds: whenever they were brought up to date, they are what counting everything would give."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some
from sqlalchemy import func, select, update
from sqlite_steps import sqlite_steps

from heedful import Heedful, Signal
from heedful.jobs.retention import maintain
from heedful.ledger import tallies
from heedful.ledger.tallies import TallyQuery
from heedful.settings import Retention
from heedful.storage import schema, scopes
from heedful.testing import ManualClock

KEYS = ("", "variant")

STEP = st.tuples(
    st.sampled_from(
        (
            *("session", "entry", "rate", "again", "whole", "delete", "metadata", "signal", "retract"),
            *("run", "judge", "unjudge", "drop", "fold", "wait"),
        )
    ),
    st.integers(0, 1_000),
)


class Life:
    """What happens to a store, step by step."""

    def __init__(self, store: Heedful, clock: ManualClock, folder: Path) -> None:
        self.store, self.clock = store, clock
        self.facts = store.remember(["one fact", "another fact"]).fact_ids
        sqlite3.connect(folder / "empty.sqlite").close()
        store.connectors.create("empty", f"sqlite:///{folder / 'empty.sqlite'}")
        self.sessions: list[str] = []
        self.entries: list[tuple[str, str]] = []
        self.feedbacks: list[str] = []
        self.signals: list[str] = []
        self.runs: list[str] = []
        self.opinions: list[str] = []

    def do(self, kind: str, number: int) -> None:
        getattr(self, f"do_{kind}")(number)

    def do_session(self, number: int) -> None:
        name = f"s{len(self.sessions)}-{number}"
        self.store.sessions.create(name, metadata={"variant": "AB"[number % 2]})
        self.sessions.append(name)

    def do_entry(self, number: int) -> None:
        if self.sessions:
            session = self.sessions[number % len(self.sessions)]
            entry = self.store.sessions.add_entry(session, "why?", "because")
            self.entries.append((session, entry.qa_id))

    def do_rate(self, number: int) -> None:
        if self.entries:
            session, entry = self.entries[number % len(self.entries)]
            author = [None, "ann", "judge", "visitor-1"][number % 4]
            self.store.sessions.add_feedback(session, entry, feedback_score=1 + number % 5, author=author)

    def do_again(self, number: int) -> None:
        self.do_rate(number + 1)
        if self.entries and number % 3 == 0:
            self.store.sessions.delete_feedback(*self.entries[number % len(self.entries)])

    def do_whole(self, number: int) -> None:
        if self.sessions:
            session = self.sessions[number % len(self.sessions)]
            rating = [None, "up", "down"][number % 3]
            feedback = self.store.sessions.add_session_feedback(session, {"rating": rating})
            assert feedback is not None
            self.feedbacks.append(feedback.feedback_id)

    def do_delete(self, number: int) -> None:
        if self.sessions and number % 2:
            session = self.sessions.pop(number % len(self.sessions))
            self.store.sessions.delete(session)
            self.entries = [each for each in self.entries if each[0] != session]
            self.feedbacks = []

    def do_metadata(self, number: int) -> None:
        if self.sessions:
            session = self.sessions[number % len(self.sessions)]
            self.store.sessions.update_metadata(session, {"variant": ["A", "B", ["A", "B"], 3][number % 4]})

    def do_signal(self, number: int) -> None:
        kind: Any = ["used", "ignored", "helpful", "not_helpful"][number % 4]
        result = self.store.signal(Signal(fact_id=self.facts[number % 2], signal_type=kind, query="why?"))
        self.signals += result.event_ids

    def do_retract(self, number: int) -> None:
        for known in (self.signals, self.feedbacks):
            if known:
                self.store.retract(known.pop(number % len(known)))

    def do_run(self, number: int) -> None:
        self.runs.append(self.store.executions.execute_query("SELECT 1").execution_id)

    def do_judge(self, number: int) -> None:
        if self.runs:
            run = self.runs[number % len(self.runs)]
            author = ["ann", None][number % 2]
            feedback = self.store.feedback.create(is_positive=number % 3 == 0, execution_id=run, author=author)
            self.opinions.append(feedback.id)

    def do_unjudge(self, number: int) -> None:
        if self.opinions:
            said = self.opinions.pop(number % len(self.opinions))
            self.store.feedback.bulk_delete([said])

    def do_drop(self, number: int) -> None:
        if self.runs:
            self.store.executions.delete(self.runs.pop(number % len(self.runs)))

    def do_wait(self, number: int) -> None:
        self.clock.advance(hours=number % 40)

    def do_fold(self, number: int) -> None:
        workspace = self.store._workspace
        with workspace.write() as connection:
            project = scopes.ensure_project(connection, workspace.project, workspace.now())
            tallies.fold(connection, project, KEYS[number % 2])


def everything(store: Heedful) -> list[Any]:
    """All that the counts say, by all that they can be asked by."""
    workspace = store._workspace
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        assert project is not None
        return [
            sorted(tallies.counts(connection, project, TallyQuery(by=by, key=key, over=over)), key=str)
            for key in (None, "variant")
            for by in ((None,) if key else (None, "dataset", "model", "source", "author_kind", "target_type"))
            for over in (None, "day", "week")
        ]


@some(1 / 5)
@given(st.lists(STEP, max_size=60), st.sampled_from([3, tallies.MAX_READ]))
@pytest.mark.nightly
def test_counts_are_what_a_fold_from_the_beginning_gives(
    new_store: Callable[..., Heedful], tmp_path: Path, steps: list[tuple[str, int]], most: int
) -> None:
    clock = ManualClock()
    with pytest.MonkeyPatch.context() as patched, new_store(clock) as store:
        patched.setattr(tallies, "MAX_READ", most)
        patched.setattr(tallies, "MAX_ROWS", most)
        life = Life(store, clock, tmp_path)
        for step in steps:
            life.do(*step)
        workspace = store._workspace
        found = everything(store)
        with workspace.write() as connection:
            project = scopes.project_id(connection, workspace.project)
            assert project is not None
            assert tallies.differences(connection, project) == []
            for key in KEYS:
                tallies.refold(connection, project, key)
        assert everything(store) == found


def test_the_counts_of_a_long_life_are_brought_up_to_date_by_whoever_asks(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "FOLD_AFTER", 3)
    store = open_store()
    for number in range(5):
        store.sessions.create(f"s{number}", metadata={"variant": "A"})
        store.sessions.add_session_feedback(f"s{number}", {"rating": "up"})
    assert store.insight.satisfaction("variant").variants[0].up == 5
    workspace = store._workspace
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        assert project is not None
        assert tallies.folded_keys(connection, project) == ["variant"]
    store.sessions.delete("s0")
    assert store.insight.satisfaction("variant").variants[0].up == 4
    store.sessions.update_metadata("s1", {"variant": "B"})
    assert {each.value: each.up for each in store.insight.satisfaction("variant").variants} == {"A": 3, "B": 1}


def test_nothing_is_left_of_a_value_when_its_last_session_is_deleted(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "FOLD_AFTER", 0)
    store = open_store()
    store.sessions.create("s", metadata={"customer": "Jane Doe"})
    store.sessions.add_session_feedback("s", {"rating": "down"})
    assert store.insight.satisfaction("customer").variants[0].down == 1
    store.sessions.delete("s")
    with store._workspace.read() as connection:
        rows = connection.execute(select(schema.tallies).where(schema.tallies.c.value.contains("Jane"))).all()
    assert rows == []


@pytest.mark.nightly
def test_moments_inside_a_day_are_told_apart_in_folded_counts(store: Heedful, clock: ManualClock) -> None:
    store.sessions.create("s", metadata={"variant": "A"})
    moments = []
    for _ in range(9):
        clock.advance(hours=7)
        moments.append(clock.now)
        store.sessions.add_session_feedback("s", {"rating": "up"})
    fact = store.remember("a fact").fact_ids[0]
    store.signal(Signal(fact_id=fact, signal_type="helpful", query="why?"))

    def counted() -> list[int]:
        result = []
        for place, moment in enumerate(moments):
            for later in moments[place + 1 :]:
                among = store.insight.satisfaction("target_type", since=moment, until=later).variants
                result.append(sum(each.up for each in among))
        return result

    expected = [later - place for place in range(9) for later in range(place + 1, 9)]
    assert counted() == expected
    workspace = store._workspace
    with workspace.write() as connection:
        project = scopes.project_id(connection, workspace.project)
        assert project is not None
        tallies.fold(connection, project, "")
    assert counted() == expected


def test_maintenance_counts_the_opinions_of_all_projects(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "FOLD_AFTER", 2)
    busy, quiet = open_store(project="busy"), open_store(project="quiet")
    for store, opinions in ((busy, 4), (quiet, 1)):
        store.sessions.create("s")
        for _ in range(opinions):
            store.sessions.add_session_feedback("s", {"rating": "up"})
    database, now = busy._workspace.database, busy._workspace.now()
    assert maintain(database, now, Retention())[-1:] == ["counted the opinions of busy"]
    assert [line for line in maintain(database, now, Retention()) if "counted" in line] == []
    with busy._workspace.read() as connection:
        assert connection.execute(select(func.sum(schema.tallies.c.up))).scalar() == 4


def test_the_doctor_fixes_counts(store: Heedful) -> None:
    store.sessions.create("s")
    store.sessions.add_session_feedback("s", {"rating": "up"})
    workspace = store._workspace
    with workspace.write() as connection:
        project = scopes.project_id(connection, workspace.project)
        assert project is not None
        tallies.fold(connection, project, "")
        connection.execute(update(schema.tallies).values(up=schema.tallies.c.up + 5))
    (found,) = [check for check in store.doctor(repair=False) if check.name == "counts"]
    assert (found.ok, found.repaired) == (False, False)
    (found,) = [check for check in store.doctor() if check.name == "counts"]
    assert (found.ok, found.repaired) == (True, True)
    assert sum(each.up for each in store.insight.satisfaction("target_type").variants) == 1


@pytest.mark.slow
def test_to_change_what_was_said_reads_no_more_in_a_long_ledger(
    new_store: Callable[..., Heedful], clock: ManualClock, tmp_path: Path
) -> None:
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    with new_store(clock) as store:
        many, one = store.remember(["a fact that many signals are about", "one fact"]).fact_ids
        store.connectors.create("empty", f"sqlite:///{tmp_path / 'empty.sqlite'}")

        def steps_of(name: str) -> dict[str, int]:
            """What SQLite does to undo each kind of opinion, once it is counted."""
            result = store.recall("one fact", top_k=1)
            signals = store.signal_recall(result.recall_id, used=[one]).event_ids
            store.sessions.create(name)
            entry = store.sessions.add_entry(name, "one fact", "It is so.", recall_id=result.recall_id, used=[one])
            store.sessions.add_feedback(name, entry.qa_id, None, 5, author="ann")
            run = store.executions.execute_query("SELECT 1").execution_id
            store.feedback.create_positive(execution_id=run, author="ann")
            with store._workspace.write() as connection:
                project = scopes.project_id(connection, "default")
                assert project is not None
                tallies.fold(connection, project, "")
            undone: dict[str, Callable[[], object]] = {
                "a signal": lambda: store.retract(signals[0]),
                "an execution": lambda: store.executions.delete(run),
                "a session": lambda: store.sessions.delete(name),
            }
            values = {}
            for what, undo in undone.items():
                with sqlite_steps(store) as steps:
                    undo()
                values[what] = steps()
            return values

        steps_of("warm")
        before = steps_of("short")
        for place in range(20):
            used = Signal(fact_id=many, signal_type="used", query=f"question {place}")
            store.signal([used] * 200, idempotency_key=f"report {place}")
        after = steps_of("long")
    assert {what for what, steps in before.items() if after[what] > 1.3 * steps + 50} == set(), (before, after)
