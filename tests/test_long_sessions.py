"""A session with much content is deleted in small transactions, so that nobody waits long for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

import heedful
from heedful import Heedful, NotFound
from heedful.ledger import tallies
from heedful.sessions import sql_store
from heedful.sessions.mongo import conversations as mongo_conversations
from heedful.sessions.mongo.store import MongoSessionStore
from heedful.sessions.session_store import OPINION_ROWS
from heedful.sessions.sql_store import SqlSessionStore
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.slow

MOST = 2 * OPINION_ROWS
"""Rows that a transaction may remove in these tests."""

SIZE = 20
"""Messages and entries of the session. Each entry has an opinion, and every other one a lesson."""


class Writes:
    """The transactions of a session store; the one at `fails_at` fails."""

    def __init__(self) -> None:
        self.left: list[int] = []
        """What each left of the session."""
        self.fails_at: int | None = None


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    writes = Writes()
    for store in (SqlSessionStore, MongoSessionStore):
        monkeypatch.setattr(store, "write", _counting(writes, store.write))
    for module in (sql_store, mongo_conversations):
        monkeypatch.setattr(module, "MAX_ROWS", MOST)
    monkeypatch.setattr(tallies, "FOLD_AFTER", 0)
    return writes


def _counting(writes: Writes, write: Callable[..., Any]) -> Callable[..., Any]:
    def counting(store: Any, body: Callable[[Any], Any]) -> Any:
        def counted(tx: Any) -> tuple[Any, int]:
            result = body(tx)
            parts = (tx.conversations.messages, tx.conversations.entries)
            return result, sum(len(part("long", None, 10_000, False)) for part in parts)

        if writes.fails_at == len(writes.left):
            raise OSError("the disk is full")
        result, left = write(store, counted)
        writes.left.append(left)
        return result

    return counting


@pytest.fixture(params=["sqlite", "postgresql", "mongodb"])
def h(request: pytest.FixtureRequest, writes: Writes) -> Iterator[Heedful]:
    name = "empty_database" if request.param == "postgresql" else "path"
    options = {"sessions": request.getfixturevalue("mongodb_url")} if request.param == "mongodb" else {}
    where = str(request.getfixturevalue(name))
    with heedful.open(where, embedding=WordEmbedder(), worker=False, **options) as opened:
        _fill(opened)
        writes.left.clear()
        yield opened


def _fill(h: Heedful) -> None:
    for name, size in (("long", SIZE), ("short", 2)):
        h.sessions.create(name, metadata={"variant": "A"})
        h.sessions.add_messages(name, [{"role": "user", "content": f"m{place}"} for place in range(size)])
        for place in range(size):
            entry = h.sessions.add_entry(name, f"What is n{place}?", f"It is {place}.", external_id=f"{name}{place}")
            comment = f"No, n{place} is {place + 1}." if place % 2 else None
            h.sessions.add_feedback(name, entry.qa_id, comment, 1 if comment else 5, author="ann")
    h.sessions.add_session_feedback("long", {"rating": "down"})
    h.improve()
    assert counted(h) == (SIZE + 2, SIZE + 2)


def counted(h: Heedful) -> tuple[int, int]:
    """How many answers were given, and how many were rated."""
    entries = h.insight.coverage().answers
    (variant,) = h.insight.satisfaction("variant", target_type="entry").variants
    assert variant.up + variant.down == entries.rated
    return entries.shown, entries.rated


@pytest.mark.nightly
def test_a_long_session_is_deleted_in_small_transactions(h: Heedful, writes: Writes) -> None:
    learnt = len(h.facts(limit=1000).items)
    deleted = h.sessions.delete("long")
    assert (deleted.messages, deleted.entries, deleted.feedbacks) == (SIZE, SIZE, SIZE + 1)
    assert deleted.forgotten_facts == learnt - len(h.facts(limit=1000).items)
    steps = [2 * SIZE, *writes.left]
    assert steps[-1] == 0
    assert max(before - after for before, after in pairwise(steps)) <= MOST
    assert len(steps) > SIZE / (MOST / OPINION_ROWS), "opinions are retracted a few at a time"
    check_gone(h)


@pytest.mark.parametrize("step", [1, 11])
@pytest.mark.nightly
def test_after_a_crash_the_rest_is_consistent_and_can_be_deleted(h: Heedful, writes: Writes, step: int) -> None:
    writes.fails_at = step
    with pytest.raises(OSError, match="full"):
        h.sessions.delete("long")
    writes.fails_at = None
    entries = h.sessions.entries("long", limit=1000).items
    rated = [entry for entry in entries if entry.feedback_score is not None]
    assert counted(h) == (len(entries) + 2, len(rated) + 2)
    assert all(each.ok for each in h.doctor(repair=False))
    assert h.sessions.delete("long").entries == len(entries)
    check_gone(h)


def check_gone(h: Heedful) -> None:
    with pytest.raises(NotFound):
        h.sessions.delete("long")
    assert counted(h) == (2, 2)
    assert [session.session_id for session in h.sessions.list().items] == ["short"]
    assert not [fact for fact in h.facts(limit=1000).items if fact.metadata.get("session_id") == "long"]
    assert h.sessions.add_entry("short", "Why?", "So.", external_id="long0"), "its external ids are free"
    assert all(each.ok for each in h.doctor(repair=False))


def test_a_short_session_takes_one_transaction(h: Heedful, writes: Writes) -> None:
    h.sessions.create("tiny")
    h.sessions.add_messages("tiny", [{"role": "user", "content": "m"}] * 3)
    writes.left.clear()
    assert h.sessions.delete("tiny").messages == 3
    assert len(writes.left) == 1


@pytest.mark.nightly
def test_a_session_made_again_meanwhile_is_left_alone(
    h: Heedful, writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = [False]

    def interfering(write: Callable[..., Any]) -> Callable[..., Any]:
        def interfered(store: Any, body: Callable[[Any], Any]) -> Any:
            result = write(store, body)
            if len(writes.left) == 3 and not busy[0]:
                busy[0] = True
                h.sessions.delete("long")
                h.sessions.create("long", metadata={"new": True})
            return result

        return interfered

    for store in (SqlSessionStore, MongoSessionStore):
        monkeypatch.setattr(store, "write", interfering(store.write))
    assert h.sessions.delete("long").entries == 0
    assert h.sessions.get("long").metadata == {"new": True}
