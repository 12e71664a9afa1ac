"""Sessions: conversations, their messages and metadata, in either database."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from heedful import Conflict, Heedful, Invalid, NotFound, Session, Unavailable
from heedful.model import Message
from heedful.testing import ManualClock, WordEmbedder

ODD = [
    "שלום עולם",
    "مرحبا بالعالم",
    "🙂👩‍👩‍👧",
    "日本語",
    "a/b\\c?d#e%f",
    "' OR 1=1 --",
    "$where",
    "a.b",
    " padded ",
]


def names(either: Heedful, **options: Any) -> list[str]:
    return [each.session_id for each in either.sessions.list(**options).items]


def contents(either: Heedful, session_id: str, **options: Any) -> list[str]:
    return [each.content for each in either.sessions.messages(session_id, **options).items]


def test_a_session_is_made_once_and_stays_as_it_is(either: Heedful, clock: ManualClock) -> None:
    made = either.sessions.create("s", metadata={"variant": "B"})
    assert made == Session(session_id="s", metadata={"variant": "B"}, created_at=clock.now, updated_at=clock.now)
    clock.advance(hours=1)
    assert either.sessions.create("s") == made == either.sessions.get("s")


def test_creating_it_again_merges_metadata(either: Heedful) -> None:
    either.sessions.create("s", metadata={"a": 1, "b": {"c": 2}})
    assert either.sessions.create("s", metadata={"b.d": 3, "e": 4}).metadata == {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}


def test_a_session_without_a_name_gets_one(either: Heedful) -> None:
    one, other = either.sessions.create(), either.sessions.create(metadata={"a": 1})
    assert one.session_id != other.session_id
    assert either.sessions.get(other.session_id) == other


@pytest.mark.parametrize("name", ODD)
def test_a_name_may_be_any_text(either: Heedful, name: str) -> None:
    either.sessions.add_message(name, "user", name)
    assert names(either) == [name]
    assert contents(either, name) == [name]
    assert either.sessions.delete(name).messages == 1


def test_a_message_is_changed_in_its_place(either: Heedful, clock: ManualClock) -> None:
    first, second, third = either.sessions.add_messages("s", [{"role": "user", "content": text} for text in "abc"])
    clock.advance(hours=1)
    changed = either.sessions.update_message("s", second.message_id, "B")
    assert changed == second.model_copy(update={"content": "B"})
    assert either.sessions.messages("s").items == [first, changed, third]
    assert either.sessions.get("s").updated_at == clock.now
    page = either.sessions.messages("s", limit=2)
    assert either.sessions.messages("s", limit=2, cursor=page.next_cursor).items == [third]
    clock.advance(hours=1)
    assert either.sessions.update_message("s", second.message_id, "B") == changed
    assert either.sessions.get("s").updated_at == clock.now - timedelta(hours=1)


def test_a_message_is_removed_and_its_neighbours_stay(either: Heedful) -> None:
    first, second, third = either.sessions.add_messages("s", [{"role": "user", "content": text} for text in "abc"])
    page = either.sessions.messages("s", limit=2)
    assert either.sessions.delete_message("s", second.message_id) is True
    assert either.sessions.messages("s", limit=2, cursor=page.next_cursor).items == [third]
    assert either.sessions.messages("s").items == [first, third]
    either.sessions.add_message("s", "user", "d")
    assert contents(either, "s") == ["a", "c", "d"]
    assert either.sessions.delete("s").messages == 3


def test_a_message_of_another_session_is_not_found(either: Heedful) -> None:
    message = either.sessions.add_message("s", "user", "hello")
    either.sessions.create("t")
    for session, message_id in (("t", message.message_id), ("nobody", message.message_id), ("s", "nothing")):
        with pytest.raises(NotFound, match="has no message") as refused:
            either.sessions.update_message(session, message_id, "x")
        assert refused.value.field == "message_id"
        with pytest.raises(NotFound, match="has no message"):
            either.sessions.delete_message(session, message_id)
    with pytest.raises(Invalid, match="content"):
        either.sessions.update_message("s", message.message_id, 5)  # type: ignore[arg-type]
    assert either.sessions.messages("s").items == [message]


def test_opinions_outlast_the_message_they_are_about(either: Heedful) -> None:
    message = either.sessions.add_message("s", "assistant", "At eight.")
    opinion = either.feedback.create(is_positive=False, chat_message_id=message.message_id, feedback="At nine!")
    events = either.insight.rows("events").items
    either.sessions.update_message("s", message.message_id, "At nine.")
    either.sessions.delete_message("s", message.message_id)
    assert either.feedback.get(opinion.id) == opinion
    assert either.insight.rows("events").items == events
    assert either.doctor(repair=False)


def test_changed_messages_are_exported_and_erased(either: Heedful) -> None:
    either.sessions.create("s", metadata={"user_id": "Ada"})
    edited, removed = either.sessions.add_messages("s", [{"role": "user", "content": text} for text in "ab"])
    either.sessions.update_message("s", edited.message_id, "I am Ada.")
    either.sessions.delete_message("s", removed.message_id)
    rows = either.insight.rows("messages").items
    assert [row["content"] for row in rows] == ["I am Ada."]
    either.forget(author="Ada")
    assert contents(either, "s") == [""]


@pytest.mark.parametrize("name", ["", " \t", "x" * 201, "nul\0", "\ud800", None, 7, b"s"])
def test_what_can_not_be_a_name_is_refused_everywhere(store: Heedful, name: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: store.sessions.get(name),
        lambda: store.sessions.exists(name),
        lambda: store.sessions.delete(name),
        lambda: store.sessions.add_message(name, "user", "hi"),
        lambda: store.sessions.messages(name),
        lambda: store.sessions.update_message(name, "m", "hi"),
        lambda: store.sessions.delete_message(name, "m"),
        lambda: store.sessions.update_metadata(name, {}),
        lambda: store.sessions.delete_metadata(name, "k"),
        lambda: store.sessions.get_metadata(name),
        lambda: store.sessions.add_entry(name, "q", "a"),
        lambda: store.sessions.entries(name),
        lambda: store.sessions.entry(name, "q"),
        lambda: store.sessions.add_feedback(name, "q", feedback_score=5),
        lambda: store.sessions.delete_feedback(name, "q"),
        lambda: store.sessions.add_session_feedback(name, {"rating": "up"}),
        lambda: store.sessions.feedbacks(name),
        lambda: store.improve(session_ids=[name]),
    ]
    if name is not None:
        calls += [lambda: store.sessions.create(name), lambda: store.recall("q", session_id=name)]
    for call in calls:
        with pytest.raises(Invalid) as error:
            call()
        assert error.value.field == "session_id"
    assert names(store) == []


def test_reading_never_makes_a_session(either: Heedful) -> None:
    for call in (
        lambda: either.sessions.get("s"),
        lambda: either.sessions.messages("s"),
        lambda: either.sessions.entries("s"),
        lambda: either.sessions.entry("s", "q"),
        lambda: either.sessions.feedbacks("s"),
        lambda: either.sessions.get_metadata("s"),
        lambda: either.sessions.delete("s"),
        lambda: either.sessions.update_metadata("s", {"a": 1}),
        lambda: either.sessions.delete_metadata("s", "a"),
        lambda: either.sessions.add_session_feedback("s", {"rating": "up"}),
        lambda: either.improve(session_ids=["s"]),
    ):
        with pytest.raises(NotFound):
            call()
    assert not either.sessions.exists("s")
    assert either.sessions.add_feedback("s", "q", feedback_score=5) is False
    assert either.sessions.delete_feedback("s", "q") is False
    assert names(either) == []


def test_sessions_are_listed_newest_first_in_pages(either: Heedful) -> None:
    made = [either.sessions.create(f"s{number}").session_id for number in range(8)]
    first = either.sessions.list(limit=3)
    either.sessions.create("later")
    either.sessions.delete("s2")
    second = either.sessions.list(limit=3, cursor=first.next_cursor)
    third = either.sessions.list(limit=3, cursor=second.next_cursor)
    result = [each.session_id for page in (first, second, third) for each in page.items]
    assert result == [name for name in reversed(made) if name != "s2"]
    assert third.next_cursor is None


def test_a_page_that_ends_with_the_list_has_no_next(either: Heedful) -> None:
    for number in range(3):
        either.sessions.create(str(number))
    assert either.sessions.list(limit=3).next_cursor is None


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"variant": "B"}, ["b", "both"]),
        ({"user.plan": "pro"}, ["a"]),
        ({"tags": "x"}, ["both"]),
        ({"beta": True}, ["a"]),
        ({"beta": 1}, []),
        ({"variant": None}, []),
        ({"variant": "B", "tags": "y"}, ["both"]),
        ({"nothing": "B"}, []),
        ({}, ["both", "b", "a"]),
    ],
)
def test_sessions_are_chosen_by_metadata(either: Heedful, where: dict[str, Any], found: list[str]) -> None:
    either.sessions.create("a", metadata={"variant": "A", "user": {"plan": "pro"}, "beta": True})
    either.sessions.create("b", metadata={"variant": "B"})
    either.sessions.create("both", metadata={"variant": ["A", "B"], "tags": ["x", "y"]})
    assert sorted(names(either, where=where)) == sorted(found)


@pytest.mark.parametrize("limit", [0, -1, 1001, True, 2.0, "3", None])
def test_a_bad_limit_is_refused(store: Heedful, limit: Any) -> None:
    store.sessions.create("s")
    for call in (
        lambda: store.sessions.list(limit=limit),
        lambda: store.sessions.messages("s", limit=limit),
        lambda: store.sessions.entries("s", limit=limit),
        lambda: store.sessions.feedbacks("s", limit=limit),
        lambda: store.sessions.alerts(limit=limit),
    ):
        with pytest.raises(Invalid, match="limit"):
            call()


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "9" * 19, "²", "١", 5, b"1"])
def test_a_bad_cursor_is_refused(store: Heedful, cursor: Any) -> None:
    store.sessions.create("s")
    for call in (
        lambda: store.sessions.list(cursor=cursor),
        lambda: store.sessions.messages("s", cursor=cursor),
        lambda: store.sessions.entries("s", cursor=cursor),
        lambda: store.sessions.feedbacks("s", cursor=cursor),
        lambda: store.sessions.alerts(cursor=cursor),
    ):
        with pytest.raises(Invalid, match="cursor"):
            call()


def test_a_cursor_of_another_list_shows_nothing_of_that_list(either: Heedful) -> None:
    for session in ("a", "b"):
        either.sessions.add_messages(session, [{"role": "user", "content": f"{session}{n}"} for n in range(3)])
    cursor = either.sessions.messages("a", limit=1).next_cursor
    assert set(contents(either, "b", cursor=cursor)) <= {"b0", "b1", "b2"}
    assert set(names(either, cursor=cursor)) <= {"a", "b"}


def test_a_deleted_session_takes_all_it_had_with_it(either: Heedful) -> None:
    either.remember("Parcels may be returned within 30 days.")
    result = either.recall("When may parcels be returned?", session_id="s")
    assert result.qa_id is not None
    either.sessions.add_message("s", "user", "hi")
    either.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    either.sessions.add_session_feedback("s", {"rating": "up"})
    deletion = either.sessions.delete("s")
    assert (deletion.messages, deletion.entries, deletion.feedbacks, deletion.forgotten_facts) == (1, 1, 2, 0)
    assert not either.sessions.exists("s")
    assert either.sessions.feedback_metrics().total == 0
    with pytest.raises(NotFound):
        either.sessions.delete("s")
    either.sessions.create("s")
    assert contents(either, "s") == []
    assert either.sessions.entries("s").items == []
    assert either.sessions.feedbacks("s").items == []
    assert either.sessions.add_feedback("s", result.qa_id, feedback_score=5) is False


def test_projects_have_sessions_of_their_own(open_either: Callable[..., Heedful]) -> None:
    one, other = open_either(project="one"), open_either(project="other")
    one.sessions.create("s", metadata={"variant": "A"})
    one.sessions.add_message("s", "user", "for one")
    entry = one.sessions.add_entry("s", "q", "a")
    feedback = one.sessions.add_session_feedback("s", {"rating": "up"}, idempotency_key="k")
    assert feedback is not None
    assert not other.sessions.exists("s")
    other.sessions.add_message("s", "user", "for other")
    assert contents(one, "s") == ["for one"]
    assert contents(other, "s") == ["for other"]
    assert other.sessions.get_metadata("s") == {}
    assert other.sessions.add_feedback("s", entry.qa_id, feedback_score=1) is False
    with pytest.raises(NotFound):
        other.sessions.entry("s", entry.qa_id)
    with pytest.raises(NotFound):
        other.retract(feedback.feedback_id)
    assert other.sessions.add_session_feedback("s", {"rating": "down"}, idempotency_key="k") is not None
    assert other.insight.satisfaction("variant").variants == []
    other.sessions.delete("s")
    assert one.sessions.feedback_metrics().positive == 1
    assert contents(one, "s") == ["for one"]


def test_messages_are_kept_in_order_with_role_content_and_time(either: Heedful, clock: ManualClock) -> None:
    earlier = clock.now - timedelta(days=3, microseconds=1)
    first = either.sessions.add_message("s", "user", "Hello\nthere", at=earlier)
    second = either.sessions.add_message("s", "assistant", "")
    assert (first.at, second.at) == (earlier, clock.now)
    assert either.sessions.messages("s").items == [first, second]
    assert either.sessions.messages("s", newest_first=True).items == [second, first]


def test_a_time_without_a_zone_is_utc(either: Heedful) -> None:
    added = either.sessions.add_message("s", "user", "hi", at=datetime(2020, 2, 29, 12))
    assert added.at == datetime(2020, 2, 29, 12, tzinfo=UTC)


def test_an_old_message_is_written_now(either: Heedful, clock: ManualClock) -> None:
    either.sessions.create("s")
    clock.advance(days=1)
    either.sessions.add_message("s", "user", "hi", at=datetime(2020, 1, 1, tzinfo=UTC))
    assert either.sessions.get("s").updated_at == clock.now


def test_everything_that_is_written_moves_the_time_of_the_session(either: Heedful, clock: ManualClock) -> None:
    made = either.sessions.create("s").created_at
    entry = either.sessions.add_entry("s", "q", "a")
    for write in (
        lambda: either.sessions.add_message("s", "user", "hi"),
        lambda: either.sessions.update_metadata("s", {"a": 1}),
        lambda: either.sessions.delete_metadata("s", "a"),
        lambda: either.sessions.add_entry("s", "q", "a"),
        lambda: either.sessions.add_feedback("s", entry.qa_id, feedback_score=3),
        lambda: either.sessions.add_session_feedback("s", {"rating": "up"}),
    ):
        clock.advance(minutes=1)
        write()
        assert either.sessions.get("s").updated_at == clock.now
    assert either.sessions.get("s").created_at == made


def test_messages_come_in_pages_both_ways(either: Heedful) -> None:
    either.sessions.add_messages("s", [{"role": "user", "content": str(number)} for number in range(25)])
    either.sessions.add_message("t", "user", "elsewhere")
    for newest_first in (False, True):
        result: list[str] = []
        cursor = None
        while True:
            page = either.sessions.messages("s", limit=10, cursor=cursor, newest_first=newest_first)
            result += [each.content for each in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert result == [str(number) for number in (range(24, -1, -1) if newest_first else range(25))]


def test_messages_can_be_copied_from_one_session_to_another(either: Heedful) -> None:
    either.sessions.add_messages("a", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
    opinions = either.sessions.messages("a").items
    copied = either.sessions.add_messages("b", opinions)
    assert [(each.role, each.content, each.at) for each in copied] == [
        (each.role, each.content, each.at) for each in opinions
    ]
    assert either.sessions.messages("b").items == copied
    assert either.sessions.messages("a").items == opinions


@pytest.mark.parametrize("text", [*ODD, "x" * 1_000_000, "\u2028\r\n\t", "مرحبا \u202e بالعالم"])
def test_a_message_comes_back_as_it_was_given(either: Heedful, text: str) -> None:
    either.sessions.add_message("s", "user", text)
    assert contents(either, "s") == [text]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "", "content": "x"}, ".role"),
        ({"role": "r" * 51, "content": "x"}, ".role"),
        ({"role": 5, "content": "x"}, ".role"),
        ({"role": "user\0", "content": "x"}, ".role"),
        ({"content": "x"}, ".role"),
        ({"role": "user"}, ".content"),
        ({"role": "user", "content": None}, ".content"),
        ({"role": "user", "content": b"x"}, ".content"),
        ({"role": "user", "content": "nul\0"}, ".content"),
        ({"role": "user", "content": "\udfff"}, ".content"),
        ({"role": "user", "content": "x" * 1_000_001}, ".content"),
        ({"role": "user", "content": "x", "at": "yesterday"}, ".at"),
        ({"role": "user", "content": "x", "name": "Ann"}, ".name"),
        ("hello", ""),
        (Message(message_id="m", role=" ", content="x", at=datetime(2026, 1, 1)), ".role"),
        (Message(message_id="m", role="user", content="\0", at=datetime(2026, 1, 1)), ".content"),
    ],
)
def test_one_bad_message_keeps_all_out(store: Heedful, message: Any, field: str) -> None:
    with pytest.raises(Invalid) as error:
        store.sessions.add_messages("s", [{"role": "user", "content": "good"}, message])
    assert error.value.field == f"messages[1]{field}"
    assert not store.sessions.exists("s")


@pytest.mark.parametrize("value", ["hello", {"role": "user", "content": "x"}, 5, None])
def test_messages_are_a_list(store: Heedful, value: Any) -> None:
    with pytest.raises(Invalid, match="messages must be a list"):
        store.sessions.add_messages("s", value)


def test_too_many_messages_at_once_are_refused(store: Heedful) -> None:
    with pytest.raises(Invalid, match="10001 items"):
        store.sessions.add_messages("s", [{"role": "user", "content": "x"}] * 10_001)
    assert store.sessions.add_messages("s", iter([])) == []


def test_metadata_are_merged_by_key(either: Heedful) -> None:
    either.sessions.create("s", metadata={"a": 1, "b": {"c": [1, {"d": None}], "e": "x"}})
    assert either.sessions.update_metadata("s", {"a": {"deep": True}, "b.e": 2.5, "b.new.deeper": "ü", "f": []}) == {
        "a": {"deep": True},
        "b": {"c": [1, {"d": None}], "e": 2.5, "new": {"deeper": "ü"}},
        "f": [],
    }
    assert either.sessions.update_metadata("s", {"b": 0}) == {"a": {"deep": True}, "b": 0, "f": []}
    assert (
        either.sessions.get_metadata("s") == either.sessions.get("s").metadata == {"a": {"deep": True}, "b": 0, "f": []}
    )
    assert either.sessions.update_metadata("s", {}) == either.sessions.get_metadata("s")


def test_metadata_are_deleted_by_key(either: Heedful) -> None:
    either.sessions.create("s", metadata={"a": 1, "b": {"c": 2, "d": 3}, "e": [1]})
    assert either.sessions.delete_metadata("s", "a") == {"b": {"c": 2, "d": 3}, "e": [1]}
    assert either.sessions.delete_metadata("s", ["b.c", "nothing", "e.0", "b.c.x"]) == {"b": {"d": 3}, "e": [1]}
    assert either.sessions.delete_metadata("s", ("b", "e")) == {} == either.sessions.get_metadata("s")
    assert either.sessions.list(where={"b.d": 3}).items == []


def test_a_dotted_key_reaches_into_mappings_only(either: Heedful) -> None:
    either.sessions.create("s", metadata={"a": 1})
    with pytest.raises(Invalid, match=r"reaches into 'a'"):
        either.sessions.update_metadata("s", {"b": 2, "a.b": 3})
    assert either.sessions.get_metadata("s") == {"a": 1}


@pytest.mark.parametrize(
    "metadata",
    [
        {"$set": 1},
        {".a": 1},
        {"a.": 1},
        {"a..b": 1},
        {"": 1},
        {" ": 1},
        {"a.$b": 1},
        {"a": {"b.c": 1}},
        {"a": {"$b": 1}},
        {"a": [{"": 1}]},
        {"a\0b": 1},
        {"\ud800": 1},
        {"a": "\ud800"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": {1, 2}},
        {"a": object()},
        {"a": 2**70},
        {1: "a"},
        {"a": "x" * 70_000},
        [("a", 1)],
        "a=1",
        5,
    ],
)
def test_bad_metadata_are_refused_whole(store: Heedful, metadata: Any) -> None:
    store.sessions.create("s", metadata={"kept": 1})
    for call in (
        lambda: store.sessions.update_metadata("s", metadata),
        lambda: store.sessions.create("s", metadata=metadata),
        lambda: store.sessions.create("new", metadata=metadata),
    ):
        with pytest.raises(Invalid) as error:
            call()
        assert error.value.field == "metadata"
    assert store.sessions.get_metadata("s") == {"kept": 1}
    assert not store.sessions.exists("new")


@pytest.mark.parametrize("keys", ["", ".", "a..b", "$a", ["a", ""], [5], 5, {"a"}, None])
def test_bad_keys_to_delete_are_refused(store: Heedful, keys: Any) -> None:
    store.sessions.create("s", metadata={"a": 1})
    with pytest.raises(Invalid) as error:
        store.sessions.delete_metadata("s", keys)
    assert error.value.field == "keys"
    assert store.sessions.get_metadata("s") == {"a": 1}


def test_metadata_that_would_outgrow_their_limit_stay_as_they_are(either: Heedful) -> None:
    either.sessions.create("s", metadata={"a": "x" * 40_000})
    with pytest.raises(Invalid, match="metadata would take"):
        either.sessions.update_metadata("s", {"b": "x" * 40_000})
    assert list(either.sessions.get_metadata("s")) == ["a"]


def test_threads_that_create_the_same_session_make_one(either: Heedful) -> None:
    def create(number: int) -> str:
        return either.sessions.create("s", metadata={f"k{number}": number}).session_id

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(create, range(24))) == {"s"}
    assert either.sessions.get_metadata("s") == {f"k{number}": number for number in range(24)}
    assert names(either) == ["s"]


def test_threads_that_change_metadata_lose_nothing(open_either: Callable[..., Heedful]) -> None:
    stores = [open_either(), open_either()]
    stores[0].sessions.create("s", metadata={"gone": 1, "n": {}})

    def update(number: int) -> None:
        stores[number % 2].sessions.update_metadata("s", {f"n.k{number}": number})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(update, range(20)))
        pool.submit(stores[1].sessions.delete_metadata, "s", "gone").result()
    assert stores[0].sessions.get_metadata("s") == {"n": {f"k{number}": number for number in range(20)}}


def test_threads_that_add_messages_lose_none_and_keep_their_own_order(either: Heedful) -> None:
    def add(thread: int) -> None:
        for number in range(6):
            either.sessions.add_messages("s", [{"role": "user", "content": f"{thread}.{number}.{n}"} for n in range(2)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    found = contents(either, "s")
    assert len(found) == 48
    for thread in range(4):
        own = [each for each in found if each.startswith(f"{thread}.")]
        assert own == [f"{thread}.{number}.{n}" for number in range(6) for n in range(2)]


def test_threads_that_delete_a_session_delete_it_once(either: Heedful) -> None:
    either.sessions.add_message("s", "user", "hi")

    def delete(_: int) -> bool:
        try:
            either.sessions.delete("s")
        except NotFound:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(delete, range(6))) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_writes_to_the_same_sessions(either: Heedful) -> None:
    either.sessions.add_message("s", "user", "parent")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            either.sessions.add_message("s", "user", "child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert contents(either, "s") == ["parent", "child"]


def test_sessions_survive_the_process_that_made_them(open_either: Callable[..., Heedful]) -> None:
    with open_either() as first:
        first.sessions.create("s", metadata={"a": 1})
        first.sessions.add_message("s", "user", "hi")
    again = open_either()
    assert again.sessions.get_metadata("s") == {"a": 1}
    assert contents(again, "s") == ["hi"]


def test_a_closed_store_says_so(open_either: Callable[..., Heedful]) -> None:
    closed = open_either()
    closed.close()
    for call in (lambda: closed.sessions.list(), lambda: closed.sessions.create("s")):
        with pytest.raises(Unavailable, match="closed"):
            call()


def test_sessions_can_be_kept_in_memory() -> None:
    import heedful

    with heedful.open(":memory:", embedding=WordEmbedder()) as store:
        store.sessions.add_message("s", "user", "hi")
        assert contents(store, "s") == ["hi"]


DOWN = "mongodb://127.0.0.1:1/nothing?serverSelectionTimeoutMS=200"


@pytest.mark.nightly
def test_with_its_mongodb_down_facts_are_served_and_sessions_are_unavailable(
    open_store: Callable[..., Heedful],
) -> None:
    store = open_store(sessions=DOWN)
    store.remember("Parcels may be returned within 30 days.")
    assert len(store.recall("parcels returned")) == 1
    for call in (
        lambda: store.sessions.create("s"),
        lambda: store.sessions.list(),
        lambda: store.sessions.add_message("s", "user", "hi"),
        lambda: store.recall("parcels returned", session_id="s"),
        lambda: store.sessions.add_feedback("s", "q", feedback_score=5),
        lambda: store.sessions.add_session_feedback("s", {"rating": "up"}),
        lambda: store.improve(),
    ):
        with pytest.raises(Unavailable) as error:
            call()
        assert "127.0.0.1:1" in str(error.value)
    with pytest.raises(Invalid):
        store.sessions.add_feedback("s", "q", feedback_score=6)


@pytest.mark.parametrize("url", ["postgres://host/db", "heedful.db", "", "mongodb://"])
def test_sessions_are_kept_in_a_mongodb_or_with_the_facts(open_store: Callable[..., Heedful], url: str) -> None:
    with pytest.raises(Invalid):
        open_store(sessions=url)


def test_a_large_conversation_does_not_outgrow_a_document(either: Heedful) -> None:
    either.sessions.add_messages("s", [{"role": "user", "content": "x" * 1_000_000}] * 20)
    assert len(contents(either, "s", limit=20)) == 20


def test_changes_of_metadata_by_too_many_at_once_are_a_conflict(
    either: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.sessions import conversations

    either.sessions.create("s")
    monkeypatch.setattr(conversations, "ATTEMPTS", 0)
    with pytest.raises(Conflict, match="too many callers at once"):
        either.sessions.update_metadata("s", {"a": 1})
