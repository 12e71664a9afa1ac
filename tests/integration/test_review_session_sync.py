"""The review queue follows sessions in MongoDB: exactly, whoever writes and when, and without reading all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some
from pymongo import MongoClient

import heedful
from heedful import Heedful
from heedful.clock import new_id
from heedful.jobs.kinds import follow_reviews
from heedful.ledger.opinions import FeedbackRow
from heedful.model import Feedback, ReviewCase
from heedful.review import follow
from heedful.sessions.mongo import MongoSessionStore
from heedful.sessions.mongo.collections import PARTITIONS
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import export_file, import_file

Document = dict[str, Any]
SERVERS = ["mongodb_url", "standalone_mongodb_url"]


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def database(url: str) -> Iterator[Any]:
    with MongoClient[Document](url) as client:
        yield client.get_default_database()


@pytest.fixture
def store(open_store: Callable[..., Heedful], url: str) -> Heedful:
    return open_store(sessions=url)


def dislike(store: Heedful, session_id: str, author: str | None = None) -> None:
    store.sessions.create(session_id)
    store.sessions.add_session_feedback(session_id, {"rating": "down", "comment": "No."}, author=author)


def compare(store: Heedful) -> None:
    """Does what a worker does to the queue now and then."""
    store._project.follow_review()


def cases(store: Heedful) -> list[ReviewCase]:
    return [store.review.get(item.item_id) for item in store.review.list().items]


def open_items(store: Heedful) -> int:
    return len(store.review.list().items)


def examined(database: Any, look: Callable[[], Any]) -> dict[str, int]:
    """How many opinions and events the server reads for a look."""
    database.command("profile", 2)
    look()
    database.command("profile", 0)
    read = dict.fromkeys(("feedbacks", "events"), 0)
    for each in database["system.profile"].find():
        name = each["ns"].rpartition(".")[2]
        if name in read:
            read[name] += each.get("docsExamined", 0) + each.get("keysExamined", 0)
    database["system.profile"].drop()
    return read


@pytest.mark.nightly
def test_a_look_reads_only_what_is_new(store: Heedful, database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine the first look would leave some of it to a worker, and the second would read that.
    monkeypatch.setattr(follow, "CATCH_UP_SECONDS", 60.0)
    for number in range(40):
        dislike(store, f"s{number}")

    def look() -> None:
        # Nothing of this kind is there, so that nothing is read to be shown.
        assert store.review.list(status="dismissed").items == []

    assert examined(database, look)["feedbacks"] >= 40
    assert examined(database, look) == {"feedbacks": 0, "events": 0}
    dislike(store, "one more")
    (latest,) = store.sessions.feedbacks("one more").items
    assert 0 < sum(examined(database, look).values()) < 15
    assert store.review.list(status=None).items[0].opinions == 1
    store.retract(latest.feedback_id)
    assert 0 < sum(examined(database, look).values()) < 15
    assert open_items(store) == 40
    assert examined(database, look) == {"feedbacks": 0, "events": 0}


@pytest.mark.nightly
def test_only_a_worker_compares_all(store: Heedful, url: str, database: Any, clock: ManualClock) -> None:
    for number in range(40):
        dislike(store, f"s{number}")
    assert open_items(store) == 40
    for _ in range(2):
        clock.advance(days=2)
        assert examined(database, lambda: store.review.list(status="dismissed")) == {"feedbacks": 0, "events": 0}
    opened = Store(store._workspace.database.name, sessions=url, clock=clock, embedding=WordEmbedder())
    try:
        assert examined(database, lambda: follow_reviews(opened))["feedbacks"] >= 40
        assert examined(database, lambda: follow_reviews(opened))["feedbacks"] == 0
    finally:
        opened.close()


@pytest.mark.nightly
def test_what_is_taken_back_changed_or_deleted_drops_out(store: Heedful) -> None:
    for name in ("taken back", "changed", "deleted", "kept"):
        dislike(store, name, "ida")
    assert open_items(store) == 4
    store.retract(store.sessions.feedbacks("taken back").items[0].feedback_id)
    store.sessions.add_session_feedback("changed", {"rating": "up", "comment": "Yes."}, author="ida")
    store.sessions.delete("deleted")
    assert open_items(store) == 1
    assert sorted(item.opinions for item in store.review.list(status=None).items) == [0, 0, 1]
    dislike(store, "changed", "ida")
    assert open_items(store) == 2


@pytest.mark.parametrize("apart", [1, PARTITIONS])
def test_a_writer_who_commits_late_is_not_missed(
    open_store: Callable[..., Heedful], mongodb_url: str, apart: int
) -> None:
    store = open_store(sessions=mongodb_url)
    for number in range(apart + 1):
        store.sessions.create(f"s{number}")
    open_items(store)
    written, go_on = threading.Event(), threading.Event()

    def late(tx: Any) -> None:
        own = new_id()
        row = FeedbackRow(own, own, "s0", "session", "s0", None, "down", None, "Late.", {}, 1, 1)
        tx.feedbacks.add(row, f"key/{row.id}", 1)
        written.set()
        assert go_on.wait(20)

    with closing(MongoSessionStore(mongodb_url, "default")) as elsewhere:
        slow = threading.Thread(target=elsewhere.write, args=(late,))
        slow.start()
        assert written.wait(20)
        quick = threading.Thread(target=dislike, args=(store, f"s{apart}"))
        quick.start()
        if apart % PARTITIONS:
            quick.join()
            assert open_items(store) == 1
        else:
            assert open_items(store) == 0
        go_on.set()
        for each in (slow, quick):
            each.join()
    assert open_items(store) == 2


def as_older_versions_wrote(database: Any) -> None:
    """Takes away what tells where opinions stand."""
    for name in ("events", "feedbacks"):
        database[name].update_many({}, {"$unset": {"partition": "", "place": ""}})


@pytest.mark.slow
def test_what_older_versions_wrote_is_found_too(store: Heedful, database: Any, clock: ManualClock) -> None:
    dislike(store, "before")
    as_older_versions_wrote(database)
    database.drop_collection("partitions")
    compare(store)
    assert open_items(store) == 1
    dislike(store, "after")
    assert open_items(store) == 2
    # An older version that still writes: its words are found with the next comparison.
    dislike(store, "of another machine")
    store.sessions.delete("before")
    as_older_versions_wrote(database)
    clock.advance(days=1)
    compare(store)
    assert {item.target_type for item in store.review.list().items} == {"session"}
    assert open_items(store) == 2


@pytest.mark.slow
def test_a_database_that_was_put_back_is_compared_as_a_whole(store: Heedful, database: Any) -> None:
    dislike(store, "kept")
    remaining = {name: list(database[name].find()) for name in database.list_collection_names()}
    dislike(store, "lost")
    store.sessions.add_session_feedback("kept", {"rating": "down", "comment": "Lost, too."})
    assert open_items(store) == 2
    for name, documents in remaining.items():
        database[name].delete_many({})
        if documents:
            database[name].insert_many(documents)
    # What is new since then is seen at once; what is gone, when a worker has compared all.
    dislike(store, "since")
    assert "since" in {each.target_id for case in cases(store) for each in case.opinions}
    store.sessions.delete("since")
    compare(store)
    (item,) = store.review.list().items
    assert item.opinions == 1


@pytest.mark.slow
def test_two_queues_of_the_same_sessions_both_have_all(
    store: Heedful, open_store: Callable[..., Heedful], tmp_path: Path, url: str
) -> None:
    second = open_store(tmp_path / "second.db", sessions=url)
    for number in range(3):
        dislike(store, f"s{number}")
        assert open_items(store) == open_items(second) == number + 1
    store.sessions.delete("s1")
    assert open_items(store) == open_items(second) == 2


@pytest.mark.nightly
def test_an_exported_queue_about_these_sessions_goes_on_beside_them(
    store: Heedful, open_store: Callable[..., Heedful], path: Path, tmp_path: Path, url: str
) -> None:
    for name in ("first", "second"):
        dislike(store, name, "ida")
    done, left = store.review.list().items
    opinion = store.review.get(done.item_id).opinions[0]
    back = store.review.fix(done.item_id, "retract", event_id=opinion.event_id, note="By mistake.")
    store.review.resolve(left.item_id, note="Better now.", author="eva")
    before = [store.review.get(each.item_id) for each in store.review.list(status=None).items]
    export_file(path, tmp_path / "queue.jsonl", project="default")
    import_file(tmp_path / "moved.db", tmp_path / "queue.jsonl", embedding=WordEmbedder())
    moved = open_store(tmp_path / "moved.db", sessions=url)
    assert [moved.review.get(each.item_id) for each in moved.review.list(status=None).items] == before
    moved.review.undo(back.event_id)
    assert [item.item_id for item in moved.review.list().items] == [done.item_id]


STEPS = st.lists(
    st.tuples(st.sampled_from(["dislike", "like", "retract", "delete", "look"]), st.integers(0, 2)), max_size=14
)


@pytest.mark.parametrize("server", SERVERS)
@some(1 / 6)
@given(steps=STEPS)
@pytest.mark.nightly
def test_the_queue_has_what_stands_whatever_happened(
    request: pytest.FixtureRequest, server: str, steps: list[tuple[str, int]]
) -> None:
    url = request.getfixturevalue(server)
    with (
        pytest.MonkeyPatch.context() as patched,
        heedful.open(
            ":memory:", project=new_id(), sessions=url, clock=ManualClock(), embedding=WordEmbedder()
        ) as store,
    ):
        patched.setattr(follow, "BATCH_SIZE", 2)
        for step, number in [*steps, ("look", 0)]:
            name = f"s{number}"
            if step == "dislike":
                dislike(store, name)
            elif step == "delete" and store.sessions.exists(name):
                store.sessions.delete(name)
            elif step == "look":
                open_items(store)
            elif step == "like":
                store.sessions.create(name)
                store.sessions.add_session_feedback(name, {"rating": "up", "comment": ""})
            elif step == "retract" and (said := disliked(store, name)):
                store.retract(said[0].feedback_id)
        stand = {f"s{number}": len(disliked(store, f"s{number}")) for number in range(3)}
        shown = {case.opinions[0].target_id: case.item.opinions for case in cases(store)}
        assert shown == {name: count for name, count in stand.items() if count}


def disliked(store: Heedful, session_id: str) -> list[Feedback]:
    """The negative opinions about a session that stand."""
    if not store.sessions.exists(session_id):
        return []
    return [each for each in store.sessions.feedbacks(session_id).items if each.rating == "down"]
