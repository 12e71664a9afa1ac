"""Whatever reports were asked for, and however much was said: a change holds the writer for a bounded time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, select
from sqlite_steps import sqlite_steps

from heedful import Heedful
from heedful.jobs.retention import maintain
from heedful.ledger import tallies
from heedful.settings import Retention
from heedful.storage import schema, scopes

KEYS = 40


@pytest.fixture(autouse=True)
def _counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "FOLD_AFTER", 5)


def with_answers(store: Heedful, name: str, count: int, metadata: dict[str, Any] | None = None) -> list[str]:
    """A session with rated answers."""
    store.sessions.create(name, metadata=metadata)
    answers = [store.sessions.add_entry(name, "why?", "because").qa_id for _ in range(count)]
    for answer in answers:
        store.sessions.add_feedback(name, answer, feedback_score=5, author="ann")
    return answers


def folded_keys(store: Heedful) -> list[str]:
    with store._workspace.read() as connection:
        return sorted(tallies.folded_keys(connection, project_of(store, connection)))


def project_of(store: Heedful, connection: Connection) -> int:
    project = scopes.project_id(connection, store._workspace.project)
    assert project is not None
    return project


def check_counts(store: Heedful) -> None:
    (counts,) = [check for check in store.doctor(repair=False) if check.name == "counts"]
    assert counts.ok, counts.detail


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that run inside the block."""
    found: list[str] = []

    def executed(_: Connection, __: Any, statement: str, *rest: Any) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", executed)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", executed)


@pytest.mark.slow
def test_a_change_costs_the_same_however_many_keys_were_asked_for(
    open_store: Callable[..., Heedful], tmp_path: Path
) -> None:
    """Each key that anybody had asked a report by took several statements: a minute for a thousand."""

    def costs(asked: int) -> dict[str, tuple[int, int]]:
        """The statements and the steps of SQLite for each change."""
        store = open_store(tmp_path / f"{asked}.db")
        with_answers(store, "many", 10, {f"key{place}": "A" for place in range(KEYS)})
        (answer,) = with_answers(store, "plain", 1, {"other": "A"})
        for place in range(asked):
            store.insight.satisfaction(f"key{place}")
        undone: dict[str, Callable[[], object]] = {
            "metadata": lambda: store.sessions.update_metadata("plain", {"other": "B"}),
            "rating": lambda: store.sessions.add_feedback("plain", answer, feedback_score=1, author="ann"),
            "session": lambda: store.sessions.delete("plain"),
        }
        cost = {}
        for what, undo in undone.items():
            with statements() as found, sqlite_steps(store) as steps:
                undo()
            cost[what] = len(found), steps()
        check_counts(store)
        return cost

    few, many = costs(1), costs(KEYS)
    for what, (count, steps) in few.items():
        assert many[what][0] == count
        assert many[what][1] < steps + 20 * tallies.MAX_KEYS


@pytest.mark.nightly
def test_a_project_has_stored_counts_by_a_few_keys_only(any_store: str, open_store: Callable[..., Heedful]) -> None:
    store = open_store(any_store)
    with_answers(store, "s", 10, {f"key{place}": "A" for place in range(KEYS)})
    for place in range(KEYS):
        (variant,) = store.insight.satisfaction(f"key{place}").variants
        assert (variant.value, variant.up, variant.sessions) == ("A", 10, 1)
    assert len(folded_keys(store)) == tallies.MAX_KEYS
    store.sessions.update_metadata("s", {f"key{place}": "B" for place in range(KEYS)})
    assert {store.insight.satisfaction(f"key{place}").variants[0].value for place in range(KEYS)} == {"B"}
    check_counts(store)


def test_a_key_that_nobody_asks_for_makes_room(store: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MAX_KEYS", 2)
    metadata = {"old": "A", "used": "A", "new": "A"}
    with_answers(store, "s", 10, metadata)
    for key in ("old", "used", "new"):
        store.insight.satisfaction(key)
    assert folded_keys(store) == ["old", "used"]
    with_answers(store, "t", 10, metadata)
    for key in ("used", "new"):
        assert store.insight.satisfaction(key).variants[0].up == 20
    assert folded_keys(store) == ["new", "used"]
    assert store.insight.satisfaction("old").variants[0].up == 20
    check_counts(store)


@pytest.mark.slow
def test_counts_that_too_large_a_change_concerns_are_made_again(
    any_store: str, open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(any_store)
    metadata = {"small": "A", "large": [f"value {place}" for place in range(10)]}
    with_answers(store, "s", 10, metadata)
    with_answers(store, "t", 2, metadata)
    for key in ("small", "large", "target_type"):
        store.insight.satisfaction(key)
    assert folded_keys(store) == ["", "large", "small"]
    monkeypatch.setattr(tallies, "MAX_READ", 50)
    monkeypatch.setattr(tallies, "MAX_ROWS", 3)
    store.sessions.update_metadata("s", {"small": "B", "large": ["value 1"]})
    assert folded_keys(store) == ["", "small"]
    check_counts(store)
    assert {each.value: each.up for each in store.insight.satisfaction("small").variants} == {"A": 2, "B": 10}
    by_value = {each.value: each.up for each in store.insight.satisfaction("large").variants}
    assert by_value == {f"value {place}": 12 if place == 1 else 2 for place in range(10)}
    assert folded_keys(store) == ["", "large", "small"]
    check_counts(store)


@pytest.mark.slow
def test_maintenance_removes_discarded_counts(store: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    with_answers(store, "s", 10, {"customer": "Jane Doe"})
    store.insight.satisfaction("customer")
    monkeypatch.setattr(tallies, "MAX_READ", 5)
    store.sessions.delete("s")
    database, now = store._workspace.database, store._workspace.now()
    maintain(database, now, Retention())
    with store._workspace.read() as connection:
        assert connection.execute(select(schema.tallies).where(schema.tallies.c.value.contains("Jane"))).all() == []
    assert maintain(database, now, Retention()) == []


def test_a_fold_is_made_in_runs(store: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MAX_READ", 4)
    with_answers(store, "s", 22, {"variant": "A"})
    with statements() as found:
        assert store.insight.satisfaction("variant").variants[0].up == 22
    assert sum("INSERT INTO watermarks" in each for each in found) == 6
    check_counts(store)


@pytest.mark.slow
def test_a_target_that_was_rated_often_is_read_once(open_store: Callable[..., Heedful], tmp_path: Path) -> None:
    """Each opinion looked for an earlier one among all that were replaced."""
    taken = []
    for count in (40, 80):
        store = open_store(tmp_path / f"{count}.db")
        store.sessions.create("s")
        answer = store.sessions.add_entry("s", "why?", "because").qa_id
        for place in range(count):
            store.sessions.add_feedback("s", answer, feedback_score=1 + place % 5, author="ann")
        store.sessions.delete_feedback("s", answer)
        for place in range(count):
            store.sessions.add_feedback("s", answer, feedback_score=5, author=f"p{place}")
        store.insight.satisfaction("target_type")
        with sqlite_steps(store) as steps:
            store.sessions.delete("s")
        taken.append(steps())
        check_counts(store)
    assert 0 < taken[1] < 2.5 * taken[0]


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.nightly
def test_twice_the_facts_that_turn_out_not_to_be_ignored_are_twice_the_work(
    open_store: Callable[..., Heedful], tmp_path: Path, others: int
) -> None:
    """Each was retracted by itself, and read all signals of the recall: a minute for a thousand facts."""
    taken, asked = [], []
    for count in (50, 100):
        store = open_store(tmp_path / f"{count}.db")
        store.remember([f"Room {place} is blue." for place in range(count)])
        recall = store.recall("blue room", top_k=count)
        facts = [hit.fact_id for hit in recall]
        for place in range(others):
            store.signal_recall(recall.recall_id, helpful=facts, author=f"p{place}")
        store.signal_recall(recall.recall_id, used=facts[:1], author="ann")
        store.insight.satisfaction("target_type")
        assert folded_keys(store) == [""]
        with statements() as found, sqlite_steps(store) as steps:
            store.signal_recall(recall.recall_id, helpful=facts[1:], author="ann")
        taken.append(steps())
        asked.append(len(found))
        check_counts(store)
        assert store.fact_stats(facts[1]).signal_breakdown["helpful"] == 1 + others
    assert asked[0] == asked[1]
    assert 0 < taken[1] < 2.5 * taken[0]
