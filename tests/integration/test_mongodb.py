"""What only MongoDB can get wrong: the shape of its documents, its indexes, crashes, failovers and connections."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mongodb import Mongod, free_port, new_database
from pymongo import MongoClient
from pymongo.monitoring import CommandListener
from pymongo.uri_parser import parse_uri

from heedful.clock import from_stored, new_id, to_stored
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, Unavailable
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.rating_signals import EntryRow
from heedful.notifications.outbox import AlertRow
from heedful.sessions.mongo import MongoSessionStore
from heedful.sessions.mongo.feedback import MAX_EMBEDDED
from heedful.sessions.session_store import MessageRow, SessionRow

AT = to_stored(datetime(2026, 1, 1, 12, 0, 0, 123_457, tzinfo=UTC))
SECRET = "pa55word-of-ours"

Document = dict[str, Any]
Open = Callable[..., MongoSessionStore]


@pytest.fixture
def opening(started: Callable[..., Mongod]) -> Iterator[Open]:
    """Opens stores that are closed at the end, before the servers are."""
    with ExitStack() as opened:

        def open_(url: str, project: str = "default", **options: Any) -> MongoSessionStore:
            store = MongoSessionStore(url, project, **options)
            opened.callback(store.close)
            return store

        yield open_


@pytest.fixture
def mongodb_url(mongodb_server: str) -> Iterator[str]:
    """A database without anything: what is in it, the store makes."""
    with new_database(mongodb_server) as url:
        yield url


@pytest.fixture
def store(opening: Open, mongodb_url: str) -> MongoSessionStore:
    return opening(mongodb_url)


@pytest.fixture
def database(mongodb_url: str) -> Iterator[Any]:
    with MongoClient[Document](mongodb_url, tz_aware=True) as client:
        yield client.get_default_database()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Mongod]]:
    """Starts servers that a test may kill."""
    with ExitStack() as servers:

        def start(**options: Any) -> Mongod:
            server = Mongod(tmp_path / f"mongod{free_port()}", **options)
            servers.callback(server.kill)
            return server.start()

        yield start


def opinion(session_id: str = "s", **given: Any) -> FeedbackRow:
    own, at = new_id(), given.get("at", AT)
    row = FeedbackRow(own, own, session_id, "session", session_id, None, "up", None, None, {}, at, at)
    return replace(row, **given)


def create(store: MongoSessionStore, session_id: str = "s", **metadata: Any) -> None:
    store.write(lambda t: t.conversations.create(session_id, metadata, AT))


def session_of(store: MongoSessionStore) -> SessionRow:
    found = store.read(lambda t: t.conversations.session("s"))
    assert found is not None
    return found


def add(store: MongoSessionStore, new: FeedbackRow) -> FeedbackRow:
    """Stores an opinion, unless an earlier attempt did."""

    def body(t: Any) -> None:
        if t.feedbacks.with_key(f"key/{new.id}") is None:
            t.feedbacks.add(new, f"key/{new.id}", AT)

    store.write(body)
    return new


def entry(**given: Any) -> EntryRow:
    return replace(EntryRow(new_id(), "s", "why?", "so.", None, AT, None, None, None, None, None), **given)


def test_a_session_is_one_document_in_the_documented_shape(store: MongoSessionStore, database: Any) -> None:
    create(store, "user-123", variant="B", nested={"a": [1, {"b": 2}]})
    up = add(store, opinion("user-123", comment="Very helpful!", extra={"source": "web"}))
    add(store, opinion("user-123", target_type="entry", target_id=new_id(), score=2, rating="down"))
    (found,) = database.sessions.find()
    moment = from_stored(AT).replace(microsecond=123_000)
    assert (found["_id"], found["session_id"], found["project"]) == ("user-123", "user-123", "default")
    assert found["metadata"] == {"variant": "B", "nested": {"a": [1, {"b": 2}]}}
    assert found["created_at"] == found["updated_at"] == moment
    assert found["feedbacks"] == [
        {"id": up.id, "rating": "up", "comment": "Very helpful!", "created_at": moment, "source": "web"}
    ]


def test_sessions_of_other_projects_cannot_collide(opening: Open, mongodb_url: str, database: Any) -> None:
    for project in ("default", "a", "b"):
        create(opening(mongodb_url, project), "s")
    keys = [found["_id"] for found in database.sessions.find().sort("number")]
    assert sorted(map(repr, keys)) == sorted(
        map(repr, ["s", {"project": "a", "session_id": "s"}, {"project": "b", "session_id": "s"}])
    )


@pytest.mark.slow
def test_the_documented_query_works_by_an_index(store: MongoSessionStore, database: Any) -> None:
    for number in range(30):
        create(store, f"s{number}", variant="AB"[number % 2], deep={"n": number})
        add(store, opinion(f"s{number}", rating=("up", "down", None)[number % 3]))
    expected = {"metadata.variant": "B", "feedbacks.rating": "up"}
    found = database.sessions.find(expected)
    assert {each["_id"] for each in found} == {f"s{number}" for number in range(30) if number % 2 and not number % 3}
    assert stages(database.sessions.find(expected).explain()) >= {"FETCH", "IXSCAN"}
    assert "COLLSCAN" not in stages(database.sessions.find({"metadata.deep.n": 7}).explain())


def test_pages_are_read_by_an_index_and_never_sorted(store: MongoSessionStore, database: Any) -> None:
    create(store)
    add(store, opinion())
    for name, wanted in (
        ("messages", {"project": "default", "session": 1, "number": {"$gt": 5}}),
        ("entries", {"project": "default", "session": 1, "number": {"$gt": 5}}),
        ("feedbacks", {"project": "default", "target_type": "session", "target_id": "s", "active": True}),
        ("sessions", {"project": "default", "number": {"$lt": 5}}),
        ("outbox", {"project": "default", "number": {"$lt": 5}}),
    ):
        plan = stages(database[name].find(wanted).sort("number", -1).limit(3).explain())
        assert "IXSCAN" in plan, name
        assert not plan & {"COLLSCAN", "SORT"}, name


def stages(explained: Document) -> set[str]:
    """The stages of the plan that won."""

    def walk(plan: Document) -> Iterator[str]:
        yield plan["stage"]
        for below in [plan[key] for key in ("inputStage",) if key in plan] + plan.get("inputStages", []):
            yield from walk(below)

    return set(walk(explained["queryPlanner"]["winningPlan"]))


def test_the_indexes_are_those_that_queries_need(store: MongoSessionStore, database: Any) -> None:
    create(store)
    result = {name: {tuple(index["key"]) for index in database[name].list_indexes()} for name in ("sessions", "events")}
    assert result["sessions"] >= {
        ("_id",),
        ("project", "number"),
        ("project", "tags.key", "tags.value"),
        ("metadata.$**",),
        ("feedbacks.rating",),
    }
    unique = {tuple(index["key"]) for index in database.events.list_indexes() if index.get("unique")}
    assert unique == {("project", "idempotency_key")}


@pytest.mark.slow
def test_a_session_shows_the_newest_opinions_and_the_collection_has_all(
    store: MongoSessionStore, database: Any
) -> None:
    create(store)
    items = [opinion(comment=str(number)) for number in range(MAX_EMBEDDED + 5)]

    def body(t: Any) -> None:
        for each in items:
            t.feedbacks.add(each, f"key/{each.id}", AT)

    def shown() -> list[str]:
        return [each["id"] for each in database.sessions.find_one()["feedbacks"]]

    store.write(body)
    ids = [each.id for each in items]
    assert shown() == ids[-MAX_EMBEDDED:]
    assert database.feedbacks.count_documents({}) == len(items)
    store.write(lambda t: t.feedbacks.withdraw([items[-1], items[50], items[0]], None, AT))
    assert shown() == [each for each in ids[:-1] if each != ids[50]][-MAX_EMBEDDED:]
    assert store.check() == "ok"


def test_the_ledger_keeps_every_field_and_no_words(store: MongoSessionStore, database: Any) -> None:
    create(store)
    feedback = add(store, opinion(author="ann", comment="secret words"))
    (retraction,) = store.write(lambda t: t.feedbacks.withdraw([feedback], "bob", AT + 1))
    first, second = database.events.find().sort("seq")
    common = {"project": "default", "session": 1, "dataset_id": None, "query_id": None, "confidence": None}
    common |= {"receipt_id": None, "rank": None, "body": None}
    about: Document = {
        "target_type": "session",
        "target_id": "s",
        "author": "ann",
        "author_kind": "visitor",
        "source": "add_feedback",
        "value": "up",
    }
    assert first == {
        **common,
        **about,
        "_id": feedback.id,
        "kind": "feedback",
        "at": AT,
        "recorded_at": AT,
        "idempotency_key": f"key/{feedback.id}",
        "seq": 1,
    }
    about = {"target_type": "event", "target_id": feedback.id, "author": "bob", "source": "retract", "value": None}
    assert second == {
        **common,
        **about,
        "_id": retraction,
        "author_kind": "named",
        "kind": "retraction",
        "at": AT + 1,
        "recorded_at": AT + 1,
        "idempotency_key": f"retract/{feedback.id}",
        "seq": 2,
    }


def test_metadata_that_were_seen_before_another_change_are_not_overwritten(store: MongoSessionStore) -> None:
    create(store)
    seen = session_of(store)
    assert store.write(lambda t: t.conversations.set_metadata(seen, {"first": 1}, AT))
    assert not store.write(lambda t: t.conversations.set_metadata(seen, {"second": 2}, AT))
    assert session_of(store).metadata == {"first": 1}


@pytest.mark.nightly
def test_a_key_that_was_used_is_a_conflict(opening: Open, mongodb_url: str, standalone_mongodb_url: str) -> None:
    for url in (mongodb_url, standalone_mongodb_url):
        store = opening(url)
        create(store)
        add(store, first := opinion())
        with pytest.raises(Conflict) as refused:
            store.write(lambda t: t.feedbacks.add(opinion(), f"key/{first.id}", AT))
        assert refused.value.code == "idempotency_key_reused"
        assert store.read(lambda t: t.feedbacks.counts()).up == 1
        assert store.check() == "ok"


@pytest.mark.parametrize("server", ["mongodb_url", "standalone_mongodb_url"])
@pytest.mark.slow
def test_what_a_document_cannot_hold_is_refused_whole(
    request: pytest.FixtureRequest, opening: Open, server: str
) -> None:
    store = opening(request.getfixturevalue(server))
    create(store)
    huge = "x" * 17_000_000

    def together(t: Any) -> None:
        for number in range(2):
            t.feedbacks.add(opinion(comment="x" * 9_000_000), f"key/{number}", AT)

    changes: list[tuple[str, Callable[[Any], None]]] = [
        ("too_large", lambda t: t.conversations.add_entry(entry(answer=huge))),
        ("too_large", lambda t: t.feedbacks.add(opinion(comment=huge), "key/1", AT)),
        ("too_large", together),
        ("unstorable", lambda t: t.conversations.add_entry(entry(usage={"n": 2**64}))),
    ]
    for code, body in changes:
        with pytest.raises(Invalid) as refused:
            store.write(body)
        assert refused.value.code == code
        assert huge[:100] not in str(refused.value)
    assert store.read(lambda t: t.conversations.entries("s", None, 9, False)) == []
    assert store.check() == "ok"


def test_an_acknowledged_write_is_on_the_disks_of_most_servers(
    opening: Open, mongodb_url: str, standalone_mongodb_url: str
) -> None:
    class RecordingListener(CommandListener):
        def __init__(self) -> None:
            self.concerns: dict[str, Any] = {}

        def started(self, event: Any) -> None:
            if "writeConcern" in event.command:
                self.concerns[event.command_name] = event.command["writeConcern"]

        def succeeded(self, event: Any) -> None:
            """Of no interest."""

        def failed(self, event: Any) -> None:
            """Of no interest."""

    durable = {"w": "majority", "j": True}
    for url, command in ((mongodb_url, "commitTransaction"), (standalone_mongodb_url, "insert")):
        for options, expected in (("", durable), ("&w=1", {"w": 1})):
            recorded = RecordingListener()
            create(opening(url + options, event_listeners=[recorded]), f"s{options}")
            assert recorded.concerns[command] == expected


def test_a_client_that_is_passed_in_is_shared_and_left_open(mongodb_url: str) -> None:
    with MongoClient[Document](mongodb_url) as client:
        store = MongoSessionStore(mongodb_url, "default", client=client)
        create(store)
        store.close()
        with pytest.raises(Unavailable) as refused:
            store.read(lambda t: t.conversations.session("s"))
        assert refused.value.code == "store_closed"
        assert client.get_default_database()["sessions"].count_documents({}) == 1


def test_projects_share_connections_which_go_with_the_last(mongodb_url: str, database: Any) -> None:
    # By the name of the application: the server also counts connections that other tests leave behind or open.
    name = "forty_projects"
    url = f"{mongodb_url}&appName={name}"

    def connections() -> int:
        stages = [{"$currentOp": {"allUsers": True, "idleConnections": True}}, {"$match": {"appName": name}}]
        return len(list(database.client.admin.aggregate(stages)))

    stores = [MongoSessionStore(url, f"project {number}") for number in range(40)]
    for store in stores:
        assert store.read(lambda tx: tx.conversations.session("s")) is None
    # A client has one for calls, and two that watch the server.
    assert 1 <= connections() <= 4
    for store in stores[:-1]:
        store.close()
        store.close()
    assert stores[-1].read(lambda tx: tx.conversations.session("s")) is None
    with pytest.raises(Unavailable, match="closed"):
        stores[0].read(lambda tx: tx.conversations.session("s"))
    stores[-1].close()
    with closing(MongoSessionStore(url, "another")) as store:
        assert store.read(lambda tx: tx.conversations.session("s")) is None


def test_the_database_is_the_one_in_the_url_unless_one_is_named(
    opening: Open, mongodb_server: str, mongodb_url: str
) -> None:
    name = parse_uri(mongodb_url)["database"]
    elsewhere = mongodb_server.replace("DATABASE", "")
    create(opening(elsewhere, database=name), "s")
    assert opening(mongodb_url).read(lambda t: t.conversations.session("s")) is not None
    assert opening(elsewhere).name.endswith("/heedful")
    assert opening(mongodb_url).name.endswith(f"/{name}")


@pytest.mark.slow
def test_a_server_that_is_down_is_named_without_its_password(opening: Open) -> None:
    port = free_port()
    url = f"mongodb://ann:{SECRET}@127.0.0.1:{port}/db?serverSelectionTimeoutMS=200"
    store = opening(url)
    for call in (
        lambda: create(store),
        lambda: store.read(lambda t: t.conversations.session("s")),
        store.check,
        store.repair,
    ):
        with pytest.raises(Unavailable) as refused:
            call()
        assert refused.value.code == "store_unreachable"
        assert f"127.0.0.1:{port}" in str(refused.value)
        assert SECRET not in error_text(refused.value)
    assert SECRET not in repr(store) + store.name


def error_text(error: BaseException | None) -> str:
    """All that an error and those behind it show."""
    return "" if error is None else f"{error!r} {error} {vars(error)}" + error_text(error.__cause__)


@pytest.mark.slow
def test_a_login_that_fails_tells_what_to_check(opening: Open, started: Callable[..., Mongod]) -> None:
    server = started(replica_set=False, arguments=["--auth"])
    with server.direct() as client:
        client.admin.command("createUser", "root", pwd="root", roles=["root"])
    with MongoClient[Document](f"mongodb://root:root@127.0.0.1:{server.port}/?directConnection=true") as client:
        client.admin.command("createUser", "ann", pwd=SECRET, roles=[{"role": "read", "db": "db"}])
    place = f"127.0.0.1:{server.port}/db?directConnection=true&authSource=admin"
    with pytest.raises(Forbidden, match="Check user") as refused:
        create(opening(f"mongodb://ann:{SECRET}-wrong@{place}"))
    assert SECRET not in error_text(refused.value)
    with pytest.raises(Forbidden, match="readWrite") as refused:
        create(opening(f"mongodb://ann:{SECRET}@{place}"))
    assert SECRET not in error_text(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@host/db",
        f"mongodb://ann:{SECRET}/x@host/db",
        f"mongodb://ann:12/{SECRET}@host/db",
        f"mongodb://ann:{SECRET}@x@host/db",
        f"mongodb://ann:{SECRET}@host:port/db",
        f"mongodb://ann:{SECRET}@/db",
        f"mongodb://ann:{SECRET}@host/d b$",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(HeedfulError) as refused, closing(MongoSessionStore(url, "default")) as store:
        store.check()
    assert isinstance(refused.value, Invalid)
    assert refused.value.field == "url"
    assert SECRET not in error_text(refused.value)


MANAGERS = "import heedful.compat.mongodb_session_manager as m; "


@pytest.mark.parametrize(
    "use",
    [
        "import heedful.sessions.mongo",
        MANAGERS + "m.MongoDBSessionManager('chat-1')",
        MANAGERS + "m.MongoDBSessionManagerFactory()",
    ],
)
@pytest.mark.nightly
def test_without_pymongo_the_remedy_is_told(use: str) -> None:
    code = f"import sys; sys.modules['pymongo'] = None; {use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Unavailable" in done.stderr
    assert 'pip install "heedful[mongodb]"' in done.stderr


@pytest.mark.nightly
def test_a_forked_child_has_connections_of_its_own(mongodb_url: str) -> None:
    code = """
import os, sys
from heedful.sessions.mongo import MongoSessionStore
store = MongoSessionStore(sys.argv[1], "default")
store.write(lambda t: t.conversations.create("before", {}, 1))
child = os.fork()
store.write(lambda t: t.conversations.create("parent" if child else "child", {}, 1))
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(sorted(row.session_id for row in store.read(lambda t: t.conversations.sessions(None, 9, None))))
store.close()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, mongodb_url], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("['before', 'child', 'parent']\n", "")


class Cut:
    """Cuts the connections of one store off, from one of its writes on."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def after(self, writes: int) -> None:
        self._set({"skip": writes} if writes else "alwaysOn", ["insert", "update", "findAndModify", "delete"])

    def commits(self, times: int) -> None:
        self._set({"times": times}, ["commitTransaction"])

    def fix(self) -> None:
        self._client.admin.command("configureFailPoint", "failCommand", mode="off")

    def _set(self, mode: Any, commands: list[str]) -> None:
        data = {"failCommands": commands, "closeConnection": True, "appName": "cut"}
        self._client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)


TESTABLE = ["--setParameter", "enableTestCommands=1"]


@pytest.mark.nightly
def test_a_change_that_is_cut_off_anywhere_is_fixed_by_the_next(opening: Open, started: Callable[..., Mongod]) -> None:
    server = started(replica_set=False, arguments=TESTABLE)
    with server.direct() as client:
        cut = Cut(client)
        for kind, change in CHANGES.items():
            # The first write takes the lease; before it, nothing can be left open.
            for writes in itertools.count(1):
                calm = opening(server.url("db"), f"{kind}{writes}")
                create(calm)
                calm.write(lambda t: t.conversations.add_messages("s", [MessageRow(new_id(), "user", "hi", AT)]))
                active = [add(calm, opinion(comment="stands")) for _ in range(2)]
                store = opening(server.url("db", "&appName=cut"), f"{kind}{writes}")
                store.check()
                cut.after(writes)
                done = tried(store, lambda t: change(t, active))  # noqa: B023
                cut.fix()
                assert store.check() == "ok", (kind, writes)
                assert_whole(calm, kind, active, done)
                calm.close()
                store.close()
                if done:
                    break
            assert writes > 3, kind


def tried(store: MongoSessionStore, body: Callable[[Any], Any]) -> bool:
    """Whether a change was acknowledged."""
    try:
        store.write(body)
    except Unavailable:
        return False
    return True


def _change(t: Any, stood: list[FeedbackRow]) -> None:
    t.feedbacks.withdraw(stood[:1], None, AT)
    t.feedbacks.add(opinion(comment="new"), "key/new", AT)


CHANGES: dict[str, Callable[[Any, list[FeedbackRow]], Any]] = {
    "add": lambda t, stood: t.feedbacks.add(opinion(comment="new"), "key/new", AT),
    "withdraw": lambda t, stood: t.feedbacks.withdraw(stood, None, AT),
    "change": _change,
    "delete": lambda t, stood: t.conversations.delete("s", AT),
}


def assert_whole(store: MongoSessionStore, kind: str, stood: list[FeedbackRow], done: bool) -> None:
    """That each step of a change took effect wholly or not at all, and all of them if it was acknowledged."""
    rows = store.read(lambda t: list(t.feedbacks.of_sessions(None)))
    session = store.read(lambda t: t.conversations.session("s"))
    added = store.read(lambda t: t.feedbacks.with_key("key/new"))
    retracted = [row for row in stood if store.read(lambda t: t.feedbacks.retraction_of(row.id))]  # noqa: B023
    active = {row.id for row in stood} - {row.id for row in retracted} | ({added.id} if added else set())
    assert {row.id for row in rows} == (active if session else set())
    if session is None:
        assert kind == "delete"
        assert retracted == stood
    if done:
        expected = {"add": (2, True, 0), "withdraw": (0, True, 2), "change": (1, True, 1), "delete": (0, False, 2)}
        count, there, taken = expected[kind]
        assert (len(rows) - bool(added), session is not None, len(retracted)) == (count, there, taken)
        assert bool(added) == (kind in ("add", "change"))


@pytest.mark.nightly
def test_a_commit_whose_answer_is_lost_counts_once(opening: Open, started: Callable[..., Mongod]) -> None:
    server = started(replica_set=True, arguments=TESTABLE)
    store = opening(server.url("db", "&appName=cut"))
    create(store)
    with server.direct() as client:
        for times in (1, 2, 3):
            Cut(client).commits(times)
            store.write(lambda t: t.feedbacks.add(new := opinion(), f"key/{new.id}", AT))
    assert store.read(lambda t: t.feedbacks.counts()).up == 3
    assert store.check() == "ok"


def test_a_writer_that_died_in_its_turn_does_not_block_others(opening: Open, standalone_mongodb_url: str) -> None:
    store = opening(standalone_mongodb_url)
    create(store)
    feedback = add(store, opinion())
    with MongoClient[Document](standalone_mongodb_url) as client:
        database = client.get_default_database()
        database.leases.update_one({}, {"$set": {"holder": "the dead", "until": datetime(2020, 1, 1, tzinfo=UTC)}})
        database.events.delete_one({"_id": feedback.id})
        create(store, "next")
        assert database.events.count_documents({"_id": feedback.id}) == 1


def test_check_tells_what_is_wrong_and_repair_fixes_it(store: MongoSessionStore, database: Any) -> None:
    create(store)
    unrecorded, retracted, kept = (add(store, opinion()) for _ in range(3))
    store.write(lambda t: t.feedbacks.withdraw([retracted], None, AT))
    database.events.delete_one({"_id": unrecorded.id})
    database.feedbacks.update_one({"_id": retracted.id}, {"$set": {"active": True}})
    database.sessions.update_one({}, {"$set": {"feedbacks": []}})
    database.messages.insert_one({"_id": "m", "project": "default", "session": 77, "number": 1})
    told_ = store.check()
    for part in ("1 leftovers", "1 opinions without an event", "1 retracted opinions", "1 sessions with outdated"):
        assert part in told_
    assert told_ in store.repair()
    assert store.check() == "ok"
    assert store.repair() == ""
    current = store.read(lambda t: t.feedbacks.active("session", ["s"]))
    assert [row.id for row in current] == [unrecorded.id, kept.id]
    assert [each["id"] for each in database.sessions.find_one()["feedbacks"]] == [unrecorded.id, kept.id]
    assert database.messages.count_documents({}) == 0


class Writers:
    """Threads that give opinions, each with a key under which it tries again until it is acknowledged."""

    def __init__(self, store: MongoSessionStore, count: int = 3) -> None:
        self._store = store
        self._ended = threading.Event()
        self._moved = threading.Condition()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]
        self.acknowledged: list[str] = []
        self.failures: list[str] = []

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def wait(self, more: int) -> None:
        """Until so many more were acknowledged."""
        with self._moved:
            goal = len(self.acknowledged) + more
            assert self._moved.wait_for(lambda: len(self.acknowledged) >= goal, 90), self.failures

    def _write(self, number: int) -> None:
        while not self._ended.is_set():
            new = opinion(f"s{number}")
            while True:
                try:
                    add(self._store, new)
                    break
                except Unavailable as error:
                    self.failures.append(error.code)
            with self._moved:
                self.acknowledged.append(new.id)
                self._moved.notify_all()


@pytest.mark.parametrize("replica_set", [True, False])
@pytest.mark.nightly
def test_what_was_acknowledged_before_a_crash_of_the_server_is_there_once(
    opening: Open, started: Callable[..., Mongod], replica_set: bool
) -> None:
    server = started(replica_set=replica_set)
    store = opening(server.url("db"))
    for number in range(3):
        create(store, f"s{number}")
    with Writers(store) as writers:
        for _ in range(2):
            writers.wait(30)
            server.kill()
            server.start()
        writers.wait(30)
    assert store.check() == "ok"
    rows = [row.id for row in store.read(lambda t: list(t.feedbacks.of_sessions(None)))]
    assert sorted(rows) == sorted(writers.acknowledged)
    with server.direct() as client:
        events = [event["_id"] for event in client.db.events.find()]
    assert sorted(events) == sorted(rows)


@pytest.mark.nightly
def test_writes_go_on_when_the_primary_is_lost(opening: Open, tmp_path: Path) -> None:
    servers = [Mongod(tmp_path / str(number), replica_set=True) for number in range(3)]
    with ExitStack() as running:
        for server in servers:
            running.callback(server.kill)
            server.launch()
        ports = [server.port for server in servers]
        servers[0].initiate(ports)
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        store = opening(f"mongodb://{hosts}/db?replicaSet=rs0")
        for number in range(3):
            create(store, f"s{number}")
        with Writers(store) as writers, MongoClient[Document](f"mongodb://{hosts}/?replicaSet=rs0") as client:
            writers.wait(20)
            primary = client.primary
            assert primary is not None
            servers[ports.index(primary[1])].kill()
            writers.wait(20)
        assert writers.failures == []
        rows = [row.id for row in store.read(lambda t: list(t.feedbacks.of_sessions(None)))]
        assert sorted(rows) == sorted(writers.acknowledged)
        assert store.check() == "ok"


@pytest.mark.nightly
def test_writes_go_on_when_the_primary_steps_down(opening: Open, started: Callable[..., Mongod]) -> None:
    server = started(replica_set=True)
    store = opening(server.url("db"))
    for number in range(3):
        create(store, f"s{number}")
    with Writers(store) as writers, server.direct() as client:
        writers.wait(20)
        client.admin.command("replSetStepDown", 2, force=True)
        writers.wait(20)
    assert writers.failures == []
    rows = [row.id for row in store.read(lambda t: list(t.feedbacks.of_sessions(None)))]
    assert sorted(rows) == sorted(writers.acknowledged)


def test_an_alert_is_stored_with_its_opinion_or_not_at_all(store: MongoSessionStore) -> None:
    create(store)

    def body(t: Any) -> None:
        t.outbox.add("s", [AlertRow(new_id(), "mail", {}, AT, next_at=AT)])
        t.feedbacks.add(opinion(comment="x" * 17_000_000), "key/1", AT)

    with pytest.raises(Invalid):
        store.write(body)
    assert store.read(lambda t: t.outbox.list(None, 9, False)) == []
