"""What every store of sessions must do, on every database that there is one for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_files import write_private
from properties import some
from pymongo import MongoClient
from sqlalchemy import text

from heedful.clock import new_id
from heedful.errors import Conflict
from heedful.ledger.opinions import Counts, FeedbackRow
from heedful.ledger.rating_signals import EntryRow
from heedful.ledger.tallies import TallyQuery
from heedful.model import Metadata
from heedful.notifications.outbox import AlertRow
from heedful.sessions.mongo import MongoSessionStore
from heedful.sessions.session_store import MessageRow, SessionRow, SessionStore
from heedful.sessions.sql_store import SqlSessionStore
from heedful.storage.database import Database
from heedful.storage.opening import open_store

AT = 1_767_225_600_123_457
"""A time that milliseconds can't hold."""

Open = Callable[..., SessionStore]
Dump = Callable[[], str]


class Place:
    """A database that stores are opened on."""

    def __init__(self, open_: Open, dump: Dump, takes_back: bool) -> None:
        self.open = open_
        self.dump = dump
        """All that is stored, as text."""
        self.takes_back = takes_back
        """Whether a change that fails leaves no trace: whether it has transactions."""


@pytest.fixture(params=["sqlite", "mongodb", "standalone_mongodb"])
def place(request: pytest.FixtureRequest, tmp_path: Path, empty_store: bytes) -> Iterator[Place]:
    with ExitStack() as opened:
        if request.param == "sqlite":
            write_private(tmp_path / "sessions.db", empty_store)
            database = open_store(tmp_path / "sessions.db")
            opened.callback(database.close)
            yield Place(
                lambda project="default": SqlSessionStore(database, project, lambda: AT), lambda: _rows(database), True
            )
            return
        url: str = request.getfixturevalue(f"{request.param}_url")

        def opening(project: str = "default") -> SessionStore:
            store = MongoSessionStore(url, project)
            opened.callback(store.close)
            return store

        yield Place(opening, lambda: _documents(url), request.param == "mongodb")


def _rows(database: Database) -> str:
    with database.read() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars().all()
        return repr([connection.execute(text(f'SELECT * FROM "{name}"')).all() for name in names])


def _documents(url: str) -> str:
    with MongoClient[dict[str, Any]](url) as client:
        database = client.get_default_database()
        return repr([list(database[name].find()) for name in database.list_collection_names()])


@pytest.fixture
def store(place: Place) -> SessionStore:
    return place.open()


def create(store: SessionStore, session_id: str = "s", metadata: Metadata | None = None, at: int = AT) -> bool:
    made: bool = store.write(lambda t: t.conversations.create(session_id, metadata or {}, at))
    return made


def opinion(session_id: str = "s", **given: Any) -> FeedbackRow:
    own, at = new_id(), given.get("at", AT)
    row = FeedbackRow(own, own, session_id, "session", session_id, None, "up", None, None, {}, at, at)
    return replace(row, **given)


def add(store: SessionStore, new: FeedbackRow, key: str | None = None) -> FeedbackRow:
    store.write(lambda t: t.feedbacks.add(new, key or f"key/{new.id}", AT))
    return get(store, new.id)


def get(store: SessionStore, feedback_id: str) -> FeedbackRow:
    found: FeedbackRow | None = store.read(lambda t: t.feedbacks.get(feedback_id))
    assert found is not None
    return found


def retraction_of(store: SessionStore, row: FeedbackRow) -> str | None:
    found: str | None = store.read(lambda t: t.feedbacks.retraction_of(row.id))
    return found


def say(store: SessionStore, new: FeedbackRow) -> None:
    """Gives an opinion in place of the one that its author gave before."""

    def body(t: Any) -> None:
        before = [row for row in t.feedbacks.active(new.target_type, [new.target_id]) if row.author == new.author]
        t.feedbacks.withdraw(before, new.author, new.at)
        t.feedbacks.add(new, f"key/{new.id}", AT)

    store.write(body)


def entry(session_id: str = "s", **given: Any) -> EntryRow:
    return replace(EntryRow(new_id(), session_id, "why?", "so.", None, AT, None, None, None, None, None), **given)


def alert(**given: Any) -> AlertRow:
    return replace(AlertRow(new_id(), "mail", {"rating": "down"}, AT, next_at=AT), **given)


def of(store: SessionStore, session_id: str = "s") -> SessionRow:
    found: SessionRow | None = store.read(lambda t: t.conversations.session(session_id))
    assert found is not None
    return found


def add_entry(store: SessionStore, new: EntryRow) -> None:
    store.write(lambda t: t.conversations.add_entry(new))


def all_pages(page_after: Callable[[int | None], list[Any]]) -> list[Any]:
    """All that a list holds, asked for page by page."""
    seen: list[Any] = []
    while page := page_after(seen[-1].number if seen else None):
        assert len(page) <= 3
        seen += page
    return seen


def test_a_new_store_is_empty_and_sound(store: SessionStore) -> None:
    assert store.read(lambda t: t.conversations.sessions(None, 10, None)) == []
    assert store.read(lambda t: t.conversations.session("s")) is None
    assert store.read(lambda t: t.feedbacks.counts()) == Counts(0, 0, 0, 0, 0, 0)
    assert store.read(lambda t: list(t.conversations.entries_of(None))) == []
    assert store.read(lambda t: t.outbox.due_at(["mail"])) is None
    assert store.check() == "ok"


def test_a_session_comes_back_as_it_was_stored(store: SessionStore) -> None:
    metadata = {"b": 1, "a": {"z": [1, 2.5, "x", None, True, {"y": []}], "c": {}}, "big": 2**62, "ü": "ß\n"}
    assert create(store, "the id/ü", metadata)
    found = of(store, "the id/ü")
    assert (found.session_id, found.metadata, found.created_at, found.updated_at) == ("the id/ü", metadata, AT, AT)
    assert list(found.metadata) == ["b", "a", "big", "ü"]
    assert {type(found.metadata[key]) for key in ("b", "big")} == {int}


def test_a_session_is_created_once(store: SessionStore) -> None:
    assert create(store, metadata={"first": True})
    assert not create(store, metadata={"first": False})
    assert of(store).metadata == {"first": True}


def test_threads_that_create_one_session_agree(store: SessionStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: create(store, metadata={"by": number}), range(8)))
    assert sum(made) == 1
    assert of(store).metadata == {"by": made.index(True)}


def test_touching_moves_the_time_of_the_last_change(store: SessionStore) -> None:
    create(store)
    assert store.write(lambda t: t.conversations.touch("s", AT + 7))
    assert (of(store).created_at, of(store).updated_at) == (AT, AT + 7)
    assert not store.write(lambda t: t.conversations.touch("nobody", AT))


def test_sessions_are_listed_in_pages_with_the_newest_first(store: SessionStore) -> None:
    for number in range(7):
        create(store, f"s{number}")
    items = all_pages(lambda after: store.read(lambda t: t.conversations.sessions(after, 3, None)))
    assert [row.session_id for row in items] == [f"s{number}" for number in reversed(range(7))]


def test_metadata_are_replaced_and_found_by_their_new_values(store: SessionStore) -> None:
    create(store, metadata={"a": 1})
    assert store.write(lambda t: t.conversations.set_metadata(t.conversations.session("s"), {"b": 2}, AT + 1))
    assert (of(store).metadata, of(store).updated_at) == ({"b": 2}, AT + 1)
    assert store.read(lambda t: t.conversations.sessions(None, 10, {"a": 1})) == []
    assert len(store.read(lambda t: t.conversations.sessions(None, 10, {"b": 2}))) == 1


def test_no_change_of_metadata_is_lost_among_threads(store: SessionStore) -> None:
    create(store)

    def note(number: int) -> None:
        def body(t: Any) -> bool:
            session = t.conversations.session("s")
            changed: bool = t.conversations.set_metadata(session, {**session.metadata, f"k{number}": number}, AT)
            return changed

        while not store.write(body):
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(24)))
    assert of(store).metadata == {f"k{number}": number for number in range(24)}


def test_messages_keep_their_order_and_are_read_in_pages(store: SessionStore) -> None:
    create(store)
    sent = [MessageRow(new_id(), "user", f"message {number}", AT + number) for number in range(10)]
    store.write(lambda t: t.conversations.add_messages("s", sent[:4]))
    store.write(lambda t: t.conversations.add_messages("s", sent[4:]))
    assert of(store).updated_at == AT + 9
    items = all_pages(lambda after: store.read(lambda t: t.conversations.messages("s", after, 3, False)))
    assert [replace(row, number=0) for row in items] == sent
    assert all_pages(lambda after: store.read(lambda t: t.conversations.messages("s", after, 3, True))) == items[::-1]
    assert store.read(lambda t: t.conversations.messages("nobody", None, 3, False)) == []


def test_a_message_that_is_changed_or_deleted_leaves_no_text_behind(place: Place, store: SessionStore) -> None:
    marker = "MARKER" + uuid4().hex
    create(store)
    sent = [MessageRow(new_id(), "user", marker + str(n), AT + n) for n in range(3)]
    store.write(lambda t: t.conversations.add_messages("s", sent))
    first, second, third = store.read(lambda t: t.conversations.messages("s", None, 9, False))
    store.write(lambda t: t.conversations.set_content(first.id, "another"))
    store.write(lambda t: t.conversations.delete_message(second.id))
    rows = store.read(lambda t: t.conversations.messages("s", None, 9, False))
    assert rows == [replace(first, content="another"), third]
    assert store.read(lambda t: t.conversations.message(first.id, "s")) == rows[0]
    assert store.read(lambda t: t.conversations.message(first.id, "other")) is None
    store.write(lambda t: t.conversations.delete_message(third.id))
    assert marker not in place.dump()
    other = place.open("other")
    other.write(lambda t: t.conversations.set_content(first.id, "not theirs"))
    other.write(lambda t: t.conversations.delete_message(first.id))
    assert store.read(lambda t: t.conversations.message(first.id)) == rows[0]


def test_an_entry_comes_back_as_it_was_stored(store: SessionStore) -> None:
    create(store)
    used = [("fact", 0.25, ["link"]), ("other", 0.75, [])]
    full = entry(
        context="all of it",
        dataset="d",
        recall_id=new_id(),
        used=used,
        model="m",
        usage={"prompt_tokens": 3, "completion_tokens": None},
        at=AT + 5,
    )
    bare = entry()
    for new in (full, bare):
        add_entry(store, new)
    first, second = store.read(lambda t: t.conversations.entries("s", None, 10, False))
    assert (replace(first, number=0), replace(second, number=0)) == (full, bare)
    assert store.read(lambda t: t.conversations.entry("s", full.id)) == first
    assert store.read(lambda t: t.conversations.entry("other", full.id)) is None
    assert of(store).updated_at == AT


def test_nothing_is_kept_in_a_session_that_is_not_there(store: SessionStore) -> None:
    create(store, "other")
    assert not store.write(lambda t: t.conversations.add_entry(entry()))
    assert not store.write(lambda t: t.feedbacks.add(opinion(), "key/1", AT))
    assert store.read(lambda t: list(t.conversations.entries_of(None))) == []
    assert store.read(lambda t: list(t.feedbacks.of_sessions(None))) == []
    assert store.read(lambda t: t.feedbacks.with_key("key/1")) is None


def test_what_one_author_says_is_found_among_others(store: SessionStore) -> None:
    create(store)
    result = {author: add(store, opinion(author=author)) for author in ("ann", None, "bob")}
    add(store, opinion(author="ann", target_type="entry", target_id="a"))
    for author, row in result.items():
        assert store.read(lambda t: t.feedbacks.active_by(author, "session", "s")) == [row]  # noqa: B023
    store.write(lambda t: t.feedbacks.withdraw([result["ann"]], "ann", AT))
    assert store.read(lambda t: t.feedbacks.active_by("ann", "session", "s")) == []


def test_an_opinion_moves_the_time_of_the_last_change(store: SessionStore) -> None:
    create(store)
    add(store, opinion(at=AT + 7))
    assert of(store).updated_at == AT + 7


def test_what_an_answer_used_can_be_told_later(store: SessionStore) -> None:
    create(store)
    new = entry()
    add_entry(store, new)
    store.write(lambda t: t.conversations.set_used(new.id, [("fact", 1.0, [])]))
    assert store.read(lambda t: t.conversations.entry("s", new.id)).used == [("fact", 1.0, [])]


def test_entries_of_sessions_come_in_their_order(store: SessionStore) -> None:
    for session in ("a", "b", "c"):
        create(store, session)
    for number in range(6):
        add_entry(store, entry("abc"[number % 3], question=str(number)))
    entries = store.read(lambda t: list(t.conversations.entries_of(["c", "a", "nobody"])))
    result = {session: [each.question for each in entries if each.session_id == session] for session in "abc"}
    assert result == {"a": ["0", "3"], "b": [], "c": ["2", "5"]}
    assert len(store.read(lambda t: list(t.conversations.entries_of(None)))) == 6


def test_an_opinion_comes_back_as_it_was_given(store: SessionStore) -> None:
    create(store)
    given_ = opinion(author="ann", rating="down", comment="no " * 1000, extra={"tags": ["x"], "n": {"m": 1}}, at=AT + 1)
    assert replace(add(store, given_), number=0) == given_
    scored = opinion(target_type="entry", target_id=new_id(), rating=None, score=3, comment="")
    assert replace(add(store, scored), number=0) == scored
    assert store.read(lambda t: t.feedbacks.get("nobody")) is None


def test_a_large_comment_is_kept_whole(store: SessionStore) -> None:
    create(store)
    assert add(store, opinion(comment="ü" * 1_000_000)).comment == "ü" * 1_000_000


def test_a_key_leads_to_the_opinion_it_was_given_with(store: SessionStore) -> None:
    create(store)
    feedback = add(store, opinion(), "key/mine")
    assert store.read(lambda t: t.feedbacks.with_key("key/mine")) == feedback
    assert store.read(lambda t: t.feedbacks.with_key("key/other")) is None


def test_threads_that_retry_with_one_key_store_one_opinion(store: SessionStore) -> None:
    create(store)

    def give(number: int) -> str:
        new = opinion(comment=str(number))

        def body(t: Any) -> str:
            before = t.feedbacks.with_key("key/mine")
            if before is not None:
                return str(before.id)
            t.feedbacks.add(new, "key/mine", AT)
            return new.id

        return store.write(body)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(give, range(16)))) == 1
    assert store.read(lambda t: t.feedbacks.counts()).up == 1
    assert store.check() == "ok"


def test_what_is_withdrawn_no_longer_stands_and_stays_in_history(store: SessionStore) -> None:
    create(store)
    first, second = add(store, opinion(author="ann")), add(store, opinion(author="bob"))
    assert store.read(lambda t: t.feedbacks.active("session", ["s"])) == [first, second]
    assert store.read(lambda t: t.feedbacks.retraction_of(first.id)) is None
    (retraction,) = store.write(lambda t: t.feedbacks.withdraw([first], "ann", AT + 1))
    assert store.read(lambda t: t.feedbacks.retraction_of(first.id)) == retraction
    assert store.read(lambda t: t.feedbacks.active("session", ["s"])) == [second]
    assert store.read(lambda t: t.feedbacks.of_session("s", None, 10, False)) == [second]
    assert store.read(lambda t: list(t.feedbacks.of_sessions(None))) == [second]
    assert store.read(lambda t: t.feedbacks.get(first.id)) == replace(first, active=False)
    assert store.read(lambda t: t.feedbacks.counts()).up == 1


def test_opinions_of_several_sessions_are_withdrawn_together(store: SessionStore) -> None:
    rows = []
    for session in ("b", "a", "b"):
        create(store, session)
        rows.append(add(store, opinion(session)))
    retractions = store.write(lambda t: t.feedbacks.withdraw(rows, None, AT))
    assert [retraction_of(store, row) for row in rows] == retractions
    assert store.write(lambda t: t.feedbacks.withdraw([], None, AT)) == []
    assert store.read(lambda t: list(t.feedbacks.of_sessions(["a", "b"]))) == []


def test_opinions_about_a_session_are_read_in_pages(store: SessionStore) -> None:
    create(store)
    rows = [add(store, opinion(comment=str(number))) for number in range(7)]
    add(store, opinion(target_type="entry", target_id=new_id(), score=5))
    assert all_pages(lambda after: store.read(lambda t: t.feedbacks.of_session("s", after, 3, False))) == rows
    assert all_pages(lambda after: store.read(lambda t: t.feedbacks.of_session("s", after, 3, True))) == rows[::-1]


def test_of_one_author_one_opinion_stands_whatever_threads_do(store: SessionStore) -> None:
    create(store)
    given_ = [opinion(author="ann", comment=str(number)) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda new: say(store, new), given_))
    (stands,) = store.read(lambda t: t.feedbacks.active("session", ["s"]))
    rows = [get(store, new.id) for new in given_]
    assert [row.id for row in rows if row.active] == [stands.id]
    assert [retraction_of(store, row) for row in rows].count(None) == 1
    assert store.check() == "ok"


def test_counts_tell_ratings_scores_and_characters(store: SessionStore) -> None:
    create(store)
    for given_ in (
        {"rating": "up", "comment": "größe🎉"},
        {"rating": "down", "score": 1, "target_type": "entry", "target_id": new_id()},
        {"rating": None, "score": 3, "target_type": "entry", "target_id": new_id(), "comment": ""},
        {"rating": None},
    ):
        add(store, opinion(**given_))
    assert store.read(lambda t: t.feedbacks.counts()) == Counts(1, 1, 2, 2, 4, 6)


def test_feedback_is_counted_by_each_value_of_a_metadata_key(store: SessionStore) -> None:
    create(store, "a", {"ab": {"variant": "A"}, "n": 1})
    create(store, "b", {"ab": {"variant": ["B", "C", "B"]}, "n": 1.0})
    create(store, "c", {"ab": {"variant": "1"}, "n": None})
    create(store, "d", {"other": True})
    add(store, opinion("a", at=AT))
    add(store, opinion("a", rating="down", at=AT + 10))
    add(store, opinion("b", rating=None, score=4, comment="xy", at=AT + 10))
    deleted = add(store, opinion("c"))
    store.write(lambda t: t.feedbacks.withdraw([deleted], None, AT))

    def by(key: str, since: int | None = None) -> dict[str, tuple[int, ...]]:
        lines = store.read(lambda t: t.feedbacks.tallies(TallyQuery(key=key, since=since)))
        sums: dict[str, tuple[int, ...]] = {}
        for line in lines:
            before = sums.get(line.value, (0,) * 5)
            sums[line.value] = tuple(one + other for one, other in zip(before, line[2:7], strict=True))
        return sums

    said_of_b = (0, 0, 1, 1, 4)
    assert store.read(lambda t: t.feedbacks.values("ab.variant")) == {'"A': 1, '"B': 1, '"C': 1, '"1': 1}
    assert by("ab.variant") == {'"A': (1, 1, 0, 0, 0), '"B': said_of_b, '"C': said_of_b}
    assert by("ab.variant", AT + 1)['"A'] == (0, 1, 0, 0, 0)
    assert store.read(lambda t: t.feedbacks.values("n")) == {"1": 2, "null": 1}
    assert by("n") == {"1": (1, 1, 1, 1, 4)}
    assert store.read(lambda t: t.feedbacks.values("ab")) == {}
    assert by("ab") == {}
    assert store.read(lambda t: t.feedbacks.keys(9)) == ["ab.variant", "n", "other"]
    assert store.read(lambda t: t.feedbacks.keys(2)) == ["ab.variant", "n"]
    assert store.read(lambda t: t.feedbacks.variants("ab.variant", 9)) == ['"1', '"A', '"B', '"C']
    some = store.read(lambda t: t.feedbacks.variants("ab.variant", 2))
    assert len(some) == 2
    assert some == sorted(some)
    assert set(some) < {'"1', '"A', '"B', '"C'}
    assert store.read(lambda t: t.feedbacks.variants("nothing", 9)) == []


def test_a_deleted_session_leaves_no_text_behind(place: Place, store: SessionStore) -> None:
    marker = "MARKER" + uuid4().hex
    create(store, "s", {"note": marker})
    create(store, "kept", {"note": "kept"})
    store.write(lambda t: t.conversations.add_messages("s", [MessageRow(new_id(), "user", marker, AT)]))
    answer = entry(question=marker, answer=marker, context=marker, usage={marker: 1})
    store.write(lambda t: t.conversations.add_entry(answer))
    active = add(store, opinion(comment=marker, extra={"x": marker}), "key/1")
    old = add(store, opinion(comment=marker))
    store.write(lambda t: t.feedbacks.withdraw([old], None, AT))
    rated = add(store, opinion(target_type="entry", target_id=answer.id, score=1, comment=marker))
    other = add(store, opinion("kept", comment="kept"))
    store.write(lambda t: t.outbox.add("s", [alert(payload={"comment": marker})]))
    assert marker in place.dump()

    removed = store.write(lambda t: t.conversations.delete("s", AT + 1))

    assert (removed.messages, removed.entries, removed.feedbacks) == (1, 1, [active, rated])
    assert marker not in place.dump()
    assert store.read(lambda t: t.conversations.session("s")) is None
    assert store.read(lambda t: t.feedbacks.retraction_of(active.id)) is not None
    assert store.read(lambda t: list(t.feedbacks.of_sessions(None))) == [other]
    assert store.read(lambda t: t.outbox.list(None, 10, False)) == []
    with pytest.raises(Conflict) as refused:
        store.read(lambda t: t.feedbacks.with_key("key/1"))
    assert refused.value.code == "idempotency_key_reused"
    assert store.write(lambda t: t.conversations.delete("s", AT)) is None
    assert store.check() == "ok"


def test_a_session_that_is_created_again_starts_empty(store: SessionStore) -> None:
    create(store)
    store.write(lambda t: t.conversations.add_messages("s", [MessageRow(new_id(), "user", "old", AT)]))
    add(store, opinion())
    store.write(lambda t: t.conversations.delete("s", AT))
    assert create(store)
    assert store.read(lambda t: t.conversations.messages("s", None, 10, False)) == []
    assert store.read(lambda t: t.feedbacks.of_session("s", None, 10, False)) == []


def test_projects_see_nothing_of_each_other(place: Place) -> None:
    ours, theirs = place.open("default"), place.open("other")
    for store, name in ((ours, "ours"), (theirs, "theirs")):
        assert create(store, "s", {"of": name})
        store.write(lambda t: t.conversations.add_messages("s", [MessageRow(new_id(), "user", "hello", AT)]))
        add_entry(store, entry(question=name))
        add(store, opinion(comment=name), "key/same")
        store.write(lambda t: t.outbox.add("s", [alert()]))
    for store, name in ((ours, "ours"), (theirs, "theirs")):
        assert [row.metadata for row in store.read(lambda t: t.conversations.sessions(None, 9, None))] == [{"of": name}]
        assert [row.question for row in store.read(lambda t: list(t.conversations.entries_of(None)))] == [name]
        assert [row.comment for row in store.read(lambda t: t.feedbacks.active("session", ["s"]))] == [name]
        assert store.read(lambda t: t.feedbacks.with_key("key/same")).comment == name
        assert store.read(lambda t: t.feedbacks.counts()).up == 1
        assert list(store.read(lambda t: t.feedbacks.values("of"))) == [f'"{name}']
        assert sum(line.up for line in store.read(lambda t: t.feedbacks.tallies(TallyQuery(key="of")))) == 1
        assert len(store.read(lambda t: t.outbox.list(None, 9, False))) == 1
    ours.write(lambda t: t.conversations.delete("s", AT))
    assert theirs.read(lambda t: t.conversations.messages("s", None, 9, False)) != []
    assert theirs.read(lambda t: t.feedbacks.counts()).up == 1
    hidden = theirs.read(lambda t: list(t.feedbacks.of_sessions(None)))[0]
    assert ours.read(lambda t: t.feedbacks.get(hidden.id)) is None


def test_alerts_are_claimed_settled_and_listed(store: SessionStore) -> None:
    create(store)
    first, second = alert(next_at=AT + 5), alert(channel="hook", next_at=AT + 3)
    store.write(lambda t: t.outbox.add("s", [first, second]))
    store.write(lambda t: t.outbox.add("s", []))
    assert store.read(lambda t: t.outbox.due_at(["mail", "hook"])) == AT + 3
    assert store.read(lambda t: t.outbox.due_at(["pager"])) is None
    assert store.write(lambda t: t.outbox.claim(["mail", "hook"], AT + 2, AT + 60, 10)) == []
    due = store.write(lambda t: t.outbox.claim(["mail", "hook"], AT + 5, AT + 60, 10))
    assert [replace(row, number=0) for row in due] == [second, first]
    assert store.write(lambda t: t.outbox.claim(["mail", "hook"], AT + 5, AT + 60, 10)) == []
    store.write(lambda t: t.outbox.settle(first.id, 1, None, AT + 6, None))
    store.write(lambda t: t.outbox.settle(second.id, 1, AT + 9, None, "refused"))
    listed = store.read(lambda t: t.outbox.list(None, 10, False))
    assert [row.id for row in listed] == [second.id, first.id]
    assert [row.id for row in store.read(lambda t: t.outbox.list(listed[0].number, 10, False))] == [first.id]
    assert [row.id for row in store.read(lambda t: t.outbox.list(None, 10, True))] == [second.id]
    settled = store.read(lambda t: t.outbox.get(first.id))
    assert (settled.attempts, settled.next_at, settled.delivered_at, settled.error) == (1, None, AT + 6, None)
    assert store.read(lambda t: t.outbox.get(second.id)).error == "refused"
    assert store.read(lambda t: t.outbox.get("nobody")) is None


def test_threads_that_claim_alerts_get_each_once(store: SessionStore) -> None:
    create(store)
    new = [alert() for _ in range(20)]
    store.write(lambda t: t.outbox.add("s", new))
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda _: store.write(lambda t: t.outbox.claim(["mail"], AT, AT + 60, 5)), range(8)))
    claimed = [row.id for claim in claims for row in claim]
    assert sorted(claimed) == sorted(row.id for row in new)


def leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from leaves(f"{key}.{name}" if key else name, below)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(key, item)
    else:
        yield key, value


def alike(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def holds(metadata: Metadata, key: str, how: str, wanted: Any) -> bool:
    """A condition as the documentation puts it."""
    values = [value for name, value in leaves("", metadata) if name == key]
    if how == "exists":
        return bool(values) == bool(wanted)
    if how in ("=", "!="):
        return any(alike(value, wanted) for value in values) == (how == "=")
    if how == "in":
        return any(alike(value, each) for value in values for each in wanted)
    if how == "only":
        return all(any(alike(value, each) for each in wanted) for value in values)
    kinds = (str,) if isinstance(wanted, str) else (int, float)
    comparable = [value for value in values if isinstance(value, kinds) and not isinstance(value, bool)]
    return any(COMPARED[how](value, wanted) for value in comparable)


NAMES = st.sampled_from(["a", "b", "0", "ü"])
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, 1.0, -0.0, -2.0, 2**53, 1e15, 1e-9]))
TEXTS = st.sampled_from(
    ["", "a", "b", "1", "1.0", "true", "null", '"', "#", "ab", "ä", "\U0001f600", "\uffee", "%", "_"]
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=5,
)
METADATA = st.dictionaries(NAMES, VALUES, max_size=3)
KEYS = st.one_of(NAMES, st.tuples(NAMES, NAMES).map(".".join))
CONDITIONS = st.one_of(
    st.tuples(KEYS, st.sampled_from(["=", "!="]), SCALARS),
    st.tuples(KEYS, st.sampled_from(["in", "only"]), st.lists(SCALARS, max_size=3)),
    st.tuples(KEYS, st.just("exists"), st.booleans()),
    st.tuples(KEYS, st.sampled_from(sorted(COMPARED)), st.one_of(NUMBERS, TEXTS)),
)


def sessions_where(store: SessionStore, where: Metadata) -> set[str]:
    return {row.session_id for row in store.read(lambda t: t.conversations.sessions(None, 99, where))}


@some(1 / 4)
@given(described=st.lists(METADATA, min_size=1, max_size=4), question=st.lists(CONDITIONS, min_size=10, max_size=20))
@pytest.mark.slow
def test_a_filter_finds_the_sessions_it_describes(
    place: Place, described: list[Metadata], question: list[tuple[str, str, Any]]
) -> None:
    store = place.open(uuid4().hex)

    def fill(t: Any) -> None:
        for number, metadata in enumerate(described):
            t.conversations.create(str(number), metadata, AT)

    store.write(fill)
    for key, how, wanted in question:
        where = {key: {how: wanted}}
        found = sessions_where(store, where)
        expected = {str(number) for number, each in enumerate(described) if holds(each, key, how, wanted)}
        assert found == expected, where


def test_long_texts_are_told_apart_by_their_ends(store: SessionStore) -> None:
    create(store, "a", {"text": "x" * 5000 + "a"})
    create(store, "b", {"text": "x" * 5000 + "b"})
    assert sessions_where(store, {"text": "x" * 5000 + "a"}) == {"a"}


def test_several_conditions_must_all_hold(store: SessionStore) -> None:
    for number in range(6):
        create(store, str(number), {"n": number, "even": number % 2 == 0})
    found = store.read(lambda t: t.conversations.sessions(None, 2, {"n": {">": 0, "<": 5}, "even": True}))
    assert [row.session_id for row in found] == ["4", "2"]
    found = store.read(lambda t: t.conversations.sessions(found[-1].number, 2, {"even": True}))
    assert [row.session_id for row in found] == ["0"]


def test_a_change_that_fails_leaves_the_store_sound(place: Place, store: SessionStore) -> None:
    create(store)
    kept = add(store, opinion(comment="kept"))

    def body(t: Any) -> None:
        t.feedbacks.withdraw([kept], None, AT)
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        store.write(body)
    current = store.read(lambda t: t.feedbacks.active("session", ["s"]))
    assert current == ([kept] if place.takes_back else [])
    assert store.check() == "ok"
