"""Coming from mongodb_session_manager: its names and calls, on Heedful."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import MongoClient

import heedful.compat.mongodb_session_manager as compat
from heedful import Heedful, HeedfulError, Invalid, Unavailable
from heedful.compat import foreign_api
from heedful.compat.mongodb_session_manager import (
    MongoDBSessionManager,
    MongoDBSessionManagerFactory,
    close_global_factory,
    create_combined_hook,
    create_mongodb_session_manager,
    get_global_factory,
    initialize_global_factory,
)
from heedful.sessions.hooks import AlertHook, AnalyticsHook, audit_hook, validation_hook

DOWN = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"


@pytest.fixture
def database(mongodb_url: str) -> str:
    return mongodb_url.partition("?")[0].rpartition("/")[2]


@pytest.fixture
def manager(mongodb_url: str, database: str) -> Iterator[MongoDBSessionManager]:
    made = create_mongodb_session_manager(session_id="user-123", connection_string=mongodb_url, database_name=database)
    yield made
    made.close()


@pytest.fixture
def factory(mongodb_url: str, database: str) -> Iterator[MongoDBSessionManagerFactory]:
    yield initialize_global_factory(mongodb_url, database, maxPoolSize=4)
    close_global_factory()


def documents(url: str) -> list[dict[str, Any]]:
    with MongoClient[dict[str, Any]](url) as client:
        return list(client.get_default_database()["sessions"].find())


def test_feedback_as_documented(manager: MongoDBSessionManager, mongodb_url: str) -> None:
    items: list[dict[str, Any]] = [
        {"rating": "up", "comment": "The response was very helpful!"},
        {"rating": "down", "comment": "The answer was incomplete"},
        {"rating": None, "comment": "Just saving this for later"},
        {"rating": "up", "comment": ""},
    ]
    ids = [manager.add_feedback(each) for each in items]
    feedbacks = manager.get_feedbacks()
    assert [{"rating": each["rating"], "comment": each["comment"]} for each in feedbacks] == items
    assert [each["id"] for each in feedbacks] == ids
    assert all(abs((datetime.now(UTC) - each["created_at"]).total_seconds()) < 600 for each in feedbacks)
    positive = sum(1 for each in feedbacks if each.get("rating") == "up")
    assert positive / len(feedbacks) * 100 == 50.0
    (document,) = documents(mongodb_url)
    assert document["session_id"] == "user-123"
    shown = [{"rating": each["rating"], "comment": each["comment"]} for each in document["feedbacks"]]
    assert shown == items
    assert isinstance(document["feedbacks"][0]["created_at"], datetime)


def test_bad_feedback_is_an_error(manager: MongoDBSessionManager) -> None:
    for bad in ({"rating": "maybe", "comment": "Not sure"}, {"thumbs": True, "text": "good"}, None, {"comment": 5}):
        with pytest.raises(Invalid):
            manager.add_feedback(bad)  # type: ignore[arg-type]
    assert manager.get_feedbacks() == []


def test_more_than_a_page_of_feedback_is_returned_whole(
    manager: MongoDBSessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_api, "PAGE_LIMIT", 2)
    for number in range(5):
        manager.add_feedback({"rating": "up", "comment": str(number)})
    assert [each["comment"] for each in manager.get_feedbacks()] == ["0", "1", "2", "3", "4"]


def test_metadata_and_the_documented_query(manager: MongoDBSessionManager, mongodb_url: str) -> None:
    assert manager.get_metadata() == {}
    manager.update_metadata({"experiment": "prompt_v2", "variant": "B"})
    manager.update_metadata({"variant": "C", "user.plan": "pro"})
    assert manager.get_metadata() == {"experiment": "prompt_v2", "variant": "C", "user": {"plan": "pro"}}
    manager.delete_metadata(["experiment", "user.plan", "nothing"])
    assert manager.get_metadata() == {"variant": "C", "user": {}}
    manager.update_metadata({"variant": "B"})
    manager.add_feedback({"rating": "up", "comment": "Much better than before!"})
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        sessions = client.get_default_database()["sessions"]
        (found,) = sessions.find({"metadata.variant": "B", "feedbacks.rating": "up"})
        assert found["session_id"] == "user-123"
        assert sessions.find_one({"metadata.variant": "B", "feedbacks.rating": "down"}) is None
    for bad in ({"$set": 1}, {".a": 1}, {"a": {"b.c": 1}}):
        with pytest.raises(Invalid):
            manager.update_metadata(bad)


def test_a_session_that_is_there_is_taken_up(manager: MongoDBSessionManager, mongodb_url: str, database: str) -> None:
    manager.update_metadata({"a": 1})
    manager.add_feedback({"rating": "up"})
    again = MongoDBSessionManager("user-123", mongodb_url, database)
    other = MongoDBSessionManager(session_id="user-456", connection_string=mongodb_url, database_name=database)
    assert again.get_metadata() == {"a": 1}
    assert len(again.get_feedbacks()) == 1
    assert (other.get_metadata(), other.get_feedbacks()) == ({}, [])
    again.close()
    other.close()


def test_hooks_as_documented(mongodb_url: str, database: str, caplog: pytest.LogCaptureFixture) -> None:
    analytics, seen = AnalyticsHook(), []

    def notify(original_func: Callable[..., Any], action: str, session_id: str, **kwargs: Any) -> Any:
        if kwargs["feedback"].get("rating") == "down":
            seen.append((action, session_id, kwargs["feedback"]["comment"]))
        return original_func(kwargs["feedback"])

    manager = MongoDBSessionManager(
        session_id="user-123",
        connection_string=mongodb_url,
        database_name=database,
        feedbackHook=create_combined_hook(validation_hook, audit_hook, analytics, notify),
        metadataHook=audit_hook,
    )
    with caplog.at_level("INFO", "heedful.audit"):
        manager.add_feedback({"rating": "down", "comment": " The response was unclear "})
        with pytest.raises(ValueError, match="comment is required"):
            manager.add_feedback({"rating": "down", "comment": ""})
        manager.update_metadata({"a": 1})
    assert seen == [("add", "user-123", "The response was unclear")]
    assert "_validated_at" in manager.get_feedbacks()[0]
    assert analytics.get_metrics()["negative"] == 1
    assert "update session='user-123'" in caplog.text
    manager.close()


def test_a_hook_that_keeps_feedback_back(mongodb_url: str, database: str) -> None:
    manager = MongoDBSessionManager("s", mongodb_url, database, feedbackHook=lambda *_, **__: None)
    assert manager.add_feedback({"rating": "up"}) is None
    assert manager.get_feedbacks() == []
    manager.close()


def test_a_factory_shares_its_pool(factory: MongoDBSessionManagerFactory) -> None:
    assert get_global_factory() is factory
    managers = [get_global_factory().create_session_manager(f"s{number}") for number in range(5)]
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda manager: manager.add_feedback({"rating": "up"}), managers))
    managers[0].close()
    assert [len(manager.get_feedbacks()) for manager in managers[1:]] == [1] * 4
    hooked = factory.create_session_manager("s0", feedbackHook=validation_hook)
    with pytest.raises(Invalid):
        hooked.add_feedback({"rating": "down"})
    assert len(hooked.get_feedbacks()) == 1


def test_a_hook_that_all_managers_share_counts_for_all(factory: MongoDBSessionManagerFactory) -> None:
    analytics = AnalyticsHook()
    for number, rating in enumerate(("up", "down", "up")):
        factory.create_session_manager(f"s{number}", feedbackHook=analytics).add_feedback({"rating": rating})
    assert analytics.get_metrics()["total"] == 3
    assert analytics.get_metrics()["positive"] == 2


def test_alerts_of_many_managers_have_one_thread(factory: MongoDBSessionManagerFactory) -> None:
    class Desk:
        name = "desk"

        def __init__(self) -> None:
            self.sent: list[str] = []

        def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
            self.sent.append(payload["session_id"])

    desk = Desk()
    for number in range(4):
        manager = factory.create_session_manager(f"s{number}", feedbackHook=AlertHook(desk))
        manager.add_feedback({"rating": "down"})
    assert sum(thread.name == "heedful-alerts desk" for thread in threading.enumerate()) <= 1
    close_global_factory()
    assert sorted(desk.sent) == ["s0", "s1", "s2", "s3"]


def test_the_global_factory_is_made_replaced_and_closed(mongodb_url: str, database: str) -> None:
    close_global_factory()
    with pytest.raises(Unavailable, match="no global factory"):
        get_global_factory()
    first = initialize_global_factory(connection_string=mongodb_url, database_name=database)
    manager = first.create_session_manager("s")
    second = initialize_global_factory(mongodb_url, database)
    assert get_global_factory() is second
    with pytest.raises(Unavailable):
        manager.add_feedback({"rating": "up"})
    second.create_session_manager("s").add_feedback({"rating": "up"})
    close_global_factory()
    close_global_factory()
    with pytest.raises(Unavailable):
        get_global_factory()


def test_a_client_that_is_given_stays_open(mongodb_url: str, database: str) -> None:
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        manager = MongoDBSessionManager("s", mongodb_url, database, client=client)
        manager.add_feedback({"rating": "up"})
        manager.close()
        factory = MongoDBSessionManagerFactory(mongodb_url, database, client=client)
        factory.create_session_manager("t").add_feedback({"rating": "up"})
        factory.close()
        assert client.get_database(database)["sessions"].count_documents({}) == 2


@pytest.mark.slow
def test_a_server_that_is_down_is_unavailable_and_leaves_no_threads(mongodb_url: str) -> None:
    before = threading.active_count()
    with pytest.raises(Unavailable) as error:
        create_mongodb_session_manager("s", DOWN, "nothing")
    assert "127.0.0.1:1" in str(error.value)
    assert threading.active_count() <= before
    factory = MongoDBSessionManagerFactory(DOWN, "nothing")
    with pytest.raises(Unavailable):
        factory.create_session_manager("s")
    factory.close()


@pytest.mark.parametrize("session_id", ["", " ", None, 5, "\0"])
def test_a_session_needs_a_name(factory: MongoDBSessionManagerFactory, session_id: Any) -> None:
    with pytest.raises(Invalid):
        factory.create_session_manager(session_id)


def test_options_of_the_pool_are_pymongos(mongodb_url: str, database: str) -> None:
    manager = create_mongodb_session_manager("s", mongodb_url, database, maxPoolSize=3, minPoolSize=1)
    assert manager.add_feedback({"rating": "up"})
    manager.close()
    for bad in ({"maxPoolSize": "many"}, {"nonsense": 1}):
        with pytest.raises(HeedfulError):
            create_mongodb_session_manager("s", mongodb_url, database, **bad)


def test_its_sessions_are_those_of_a_store_on_the_same_database(
    manager: MongoDBSessionManager, open_store: Callable[..., Heedful], mongodb_url: str
) -> None:
    manager.update_metadata({"variant": "B"})
    kept = manager.add_feedback({"rating": "up", "comment": "x", "page": 3})
    store = open_store(sessions=mongodb_url)
    (feedback,) = store.sessions.feedbacks("user-123").items
    assert (feedback.feedback_id, feedback.extra) == (kept, {"page": 3})
    assert store.insight.satisfaction("variant").variants[0].up == 1
    assert kept is not None
    store.retract(kept)
    assert manager.get_feedbacks() == []


def test_collections_keep_sessions_apart(mongodb_url: str, database: str, manager: MongoDBSessionManager) -> None:
    own = create_mongodb_session_manager("user-123", mongodb_url, database, "chats")
    own.add_feedback({"rating": "up"})
    again = MongoDBSessionManager("user-123", mongodb_url, database_name=database, collection_name="chats")
    shared = MongoDBSessionManagerFactory(mongodb_url, database, collection_name="chats")
    try:
        assert [each["rating"] for each in again.get_feedbacks()] == ["up"]
        assert len(shared.create_session_manager("user-123").get_feedbacks()) == 1
        assert manager.get_feedbacks() == []
    finally:
        for each in (own, again, shared):
            each.close()
    with pytest.raises(Invalid) as caught:
        create_mongodb_session_manager("user-123", mongodb_url, database, collection_name="")
    assert caught.value.field == "collection_name"


def test_every_documented_name_is_there_with_its_parameters() -> None:
    for name in compat.__all__:
        assert hasattr(compat, name)
    documented: dict[Callable[..., Any], list[str]] = {
        MongoDBSessionManager: ["session_id", "connection_string", "database_name", "feedbackHook", "metadataHook"],
        create_mongodb_session_manager: ["session_id", "connection_string", "database_name"],
        initialize_global_factory: ["connection_string", "database_name"],
        MongoDBSessionManagerFactory.create_session_manager: ["session_id", "feedbackHook"],
        MongoDBSessionManager.add_feedback: ["feedback"],
        MongoDBSessionManager.update_metadata: ["metadata"],
    }
    for call, parameters in documented.items():
        assert set(parameters) <= set(inspect.signature(call).parameters)
        assert not inspect.iscoroutinefunction(call)
