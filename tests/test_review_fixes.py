"""What reviewers do about items, and undoing it: everything becomes as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from sqlalchemy import select

from heedful import Heedful, Signal, etag
from heedful.errors import Conflict, Invalid, NotFound
from heedful.model import Fix, ReviewItem
from heedful.storage.schema import events
from heedful.testing import ManualClock

OPENING = "When does the Lisbon office open?"
FACT = "The Lisbon office opens at eight in the morning."
RIGHT = "The Lisbon office opens at nine in the morning."


@pytest.fixture
def disliked(either: Heedful) -> str:
    """The id of an entry that somebody disliked."""
    either.remember([FACT, "Visitors sign in at the desk."])
    qa_id = str(either.recall(OPENING, session_id="monday").qa_id)
    either.sessions.add_feedback("monday", qa_id, "It opens at nine.", 2, author="ida")
    return qa_id


@pytest.fixture
def geo(store: Heedful, tmp_path: Path) -> Heedful:
    store.connectors.create("geo", make_cities(tmp_path).url)
    return store


@pytest.fixture
def run(geo: Heedful) -> str:
    return geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id


def only(store: Heedful, **wanted: Any) -> ReviewItem:
    (item,) = store.review.list(**wanted).items
    return item


def recalled(store: Heedful) -> list[tuple[Any, ...]]:
    """What a boosted recall finds, and why."""
    hits = store.recall(OPENING, boost_by_usefulness=True, explain=True).hits
    return [(hit.text, hit.score, hit.usefulness, hit.explanation and hit.explanation.arithmetic) for hit in hits]


def given(store: Heedful) -> list[tuple[Any, ...]]:
    """What is said of the entries of the session."""
    entries = store.sessions.entries("monday").items
    return [(each.qa_id, each.feedback_score, each.feedback_text) for each in entries]


def execution_feedback(store: Heedful) -> list[Any]:
    """What is said of executions."""
    return store.feedback.list().items


def cached(store: Heedful) -> tuple[bool, str | None, str | None]:
    result = store.chat.execution_cache_lookup(IN_ITALY)
    if not result.matches:
        return result.cache_hit, None, None
    return result.cache_hit, result.matches[0].gate, result.matches[0].reason


@pytest.mark.slow
def test_a_fact_is_corrected_and_back(either: Heedful, disliked: str) -> None:
    item = only(either)
    before = recalled(either)
    fact_id = either.review.get(item.item_id).evidence[0].fact_id
    event = either.review.fix(item.item_id, "supersede", fact_id=fact_id, text=RIGHT, note="Since May.", author="rev")
    assert (event.action, event.author, event.note, event.undone) == ("supersede", "rev", "Since May.", False)
    assert event.details["fact_id"] == fact_id
    assert recalled(either)[0][0] == RIGHT
    case = either.review.get(item.item_id)
    assert case.evidence[0].superseded
    assert case.history == [event]
    with pytest.raises(Conflict):
        either.review.fix(item.item_id, "supersede", fact_id=fact_id, text="At ten.", author="ole")
    assert len(either.review.get(item.item_id).history) == 1
    undone = either.review.undo(event.event_id, author="ole")
    assert undone == event.model_copy(update={"undone": True})
    assert either.review.undo(event.event_id) == undone
    assert recalled(either) == before
    assert not either.review.get(item.item_id).evidence[0].superseded


@pytest.mark.slow
def test_an_opinion_is_taken_back_and_given_again_as_it_was(either: Heedful, disliked: str, clock: ManualClock) -> None:
    either.sessions.add_session_feedback("monday", {"rating": "down", "comment": "Bad.", "page": 3}, author="ole")
    either.improve()
    before, opinions, whole = recalled(either), given(either), either.sessions.feedbacks("monday").items
    for item in either.review.list().items:
        (opinion,) = either.review.get(item.item_id).opinions
        clock.advance(seconds=1)
        event = either.review.fix(item.item_id, "retract", event_id=opinion.event_id, author="rev")
        assert event.details["event_id"] == opinion.event_id
        assert item.item_id not in [each.item_id for each in either.review.list().items]
        with pytest.raises(Conflict):
            either.review.fix(item.item_id, "retract", event_id=opinion.event_id, author="ole")
        clock.advance(seconds=1)
        for _ in range(2):
            either.review.undo(event.event_id, author="rev")
        again = next(each for each in either.review.list().items if each.item_id == item.item_id)
        assert (again.opinions, again.comment, again.last_at) == (1, item.comment, item.last_at)
        (back,) = either.review.get(item.item_id).opinions
        assert back.model_copy(update={"event_id": opinion.event_id}) == opinion
    clock.now = whole[0].created_at
    assert (recalled(either), given(either)) == (before, opinions)
    remaining = either.sessions.feedbacks("monday").items
    assert [each.model_dump(exclude={"feedback_id"}) for each in remaining] == [
        each.model_dump(exclude={"feedback_id"}) for each in whole
    ]


def test_what_an_author_said_since_stays_when_the_first_word_is_given_again(either: Heedful, disliked: str) -> None:
    item = only(either)
    (opinion,) = either.review.get(item.item_id).opinions
    event = either.review.fix(item.item_id, "retract", event_id=opinion.event_id, author="rev")
    either.sessions.add_feedback("monday", disliked, "Oh, it was right.", 5, author="ida")
    either.review.undo(event.event_id)
    assert given(either) == [(disliked, 5, "Oh, it was right.")]


def test_a_positive_opinion_can_be_taken_back_too(either: Heedful, disliked: str) -> None:
    either.sessions.add_feedback("monday", disliked, "Fine.", 5, author="ole")
    item = only(either)
    (opinion,) = (each for each in either.review.get(item.item_id).opinions if each.positive)
    event = either.review.fix(item.item_id, "retract", event_id=opinion.event_id, author="rev")
    assert only(either).kind == "negative"
    either.review.undo(event.event_id)
    assert only(either).kind == "contradictory"


@pytest.mark.slow
def test_the_words_of_a_retracted_opinion_go_with_their_session(either: Heedful, disliked: str) -> None:
    either.recall(OPENING, session_id="tuesday")
    item = only(either)
    (opinion,) = either.review.get(item.item_id).opinions
    event = either.review.fix(item.item_id, "retract", event_id=opinion.event_id, note="Odd.", author="rev")
    assert "It opens at nine." in comments(either)
    either.sessions.delete("monday")
    either.review.list()
    assert comments(either) == []
    with pytest.raises(Conflict):
        either.review.undo(event.event_id)


def test_a_signal_is_taken_back_and_given_again(store: Heedful, clock: ManualClock) -> None:
    store.remember([FACT, "Visitors sign in at the desk."])
    result = store.recall(OPENING)
    fact_id = result.hits[0].fact_id
    store.signal(Signal(fact_id=fact_id, signal_type="used", query=OPENING, confidence=0.4, author="eva"))
    clock.advance(days=1)
    store.signal_recall(result.recall_id, not_helpful=[fact_id], confidence=0.7, author="ida")
    clock.advance(days=1)
    before, stats = recalled(store), store.fact_stats(fact_id)
    item = only(store, target_type="fact")
    case = store.review.get(item.item_id)
    assert (case.recall_id, case.evidence[0].rank) == (result.recall_id, 1)
    event = store.review.fix(item.item_id, "retract", event_id=case.opinions[0].event_id, author="rev")
    assert recalled(store) != before
    store.retract(event.event_id, author="rev")
    assert recalled(store) == before
    assert store.fact_stats(fact_id) == stats
    assert only(store, target_type="fact").opinions == 1


def test_an_execution_is_blocked_and_back(geo: Heedful, run: str, clock: ManualClock) -> None:
    geo.feedback.create_positive(execution_id=run, feedback_text="Right.", author="ida")
    other = geo.executions.execute_query("SELECT name FROM city", question="Which cities are there?").execution_id
    geo.feedback.create_negative(execution_id=other, author="ole")
    item = only(geo)
    clock.advance(seconds=1)
    before, cache = execution_feedback(geo), cached(geo)
    assert cache[0]
    event = geo.review.fix(item.item_id, "block", execution_id=run, note="Counts villages.", author="rev")
    hit, gate, reason = cached(geo)
    assert (hit, gate) == (False, "feedback")
    assert "Counts villages." in str(reason)
    with pytest.raises(Conflict):
        geo.review.fix(item.item_id, "block", execution_id=run, author="rev")
    geo.review.undo(event.event_id, author="rev")
    assert execution_feedback(geo) == before
    assert cached(geo)[0]


def test_a_reviewers_own_earlier_word_comes_back_with_the_undoing(geo: Heedful, run: str, clock: ManualClock) -> None:
    geo.feedback.create_negative(execution_id=run, feedback="Wrong.", author="ida")
    own = geo.feedback.create_positive(execution_id=run, feedback_text="Right.", author="rev")
    item = only(geo)
    before = execution_feedback(geo)
    clock.advance(seconds=1)
    event = geo.review.fix(item.item_id, "block", execution_id=run, author="rev")
    assert not geo.feedback.get(own.id).is_positive
    clock.advance(seconds=1)
    geo.review.undo(event.event_id)
    assert sorted(execution_feedback(geo), key=lambda each: each.id) == sorted(before, key=lambda each: each.id)
    later = geo.review.fix(item.item_id, "block", execution_id=run, author="rev")
    geo.feedback.update(own.id, is_positive=True, feedback="Right after all.")
    geo.review.undo(later.event_id)
    assert geo.feedback.get(own.id).feedback == "Right after all."


def test_feedback_about_an_execution_is_taken_back_and_given_again(geo: Heedful, run: str, clock: ManualClock) -> None:
    geo.feedback.create_negative(execution_id=run, feedback="Wrong.", author="ida")
    before, cache = execution_feedback(geo), cached(geo)
    item = only(geo)
    (opinion,) = geo.review.get(item.item_id).opinions
    clock.advance(seconds=1)
    event = geo.review.fix(item.item_id, "retract", event_id=opinion.event_id, author="rev")
    assert (execution_feedback(geo), geo.review.list().items) == ([], [])
    remaining = geo.review.get(item.item_id)
    assert (remaining.item.question, remaining.item.opinions, remaining.sql_query, remaining.opinions) == (
        IN_ITALY,
        0,
        IN_ITALY_SQL,
        [],
    )
    assert cached(geo) != cache
    geo.review.undo(event.event_id)
    assert execution_feedback(geo) == before
    assert cached(geo)[1] == "feedback"
    assert only(geo).last_at == item.last_at


@pytest.mark.slow
def test_an_execution_is_promoted_by_the_reviewers_word_and_back(geo: Heedful, run: str) -> None:
    wrong = geo.executions.execute_query("SELECT count(*) FROM city", question=IN_ITALY).execution_id
    geo.feedback.create_negative(execution_id=wrong, author="ida")
    item = only(geo)
    with pytest.raises(Conflict) as caught:
        geo.review.fix(item.item_id, "promote", execution_id=wrong, author="rev")
    assert caught.value.code == "not_proven"
    assert "ida" in caught.value.message
    before = execution_feedback(geo)
    event = geo.review.fix(item.item_id, "promote", execution_id=run, author="rev")
    (example,) = geo.golden_examples.list()
    assert (example.id, example.execution_id) == (event.details["example_id"], run)
    assert [each.author for each in execution_feedback(geo)] == ["rev", "ida"]
    geo.review.undo(event.event_id)
    assert (geo.golden_examples.list(), execution_feedback(geo)) == ([], before)
    right = geo.feedback.create_positive(execution_id=run, author="ole")
    event = geo.review.fix(item.item_id, "promote", execution_id=run, question="Italian cities?", author="rev")
    assert [each.question for each in geo.golden_examples.list()] == ["Italian cities?"]
    geo.review.undo(event.event_id)
    assert geo.feedback.get(right.id) == right
    assert geo.golden_examples.list() == []


@pytest.mark.slow
def test_an_example_is_added_for_the_items_question_and_back(geo: Heedful) -> None:
    wrong = geo.executions.execute_query("SELECT count(*) FROM city", question=IN_ITALY).execution_id
    geo.feedback.create_negative(execution_id=wrong, author="ida")
    item = only(geo)
    before = geo.review.ask_again(item.item_id)
    assert (before.before, before.after, before.changed) == ("SELECT count(*) FROM city", None, True)
    event = geo.review.fix(item.item_id, "add_example", sql_query=IN_ITALY_SQL, author="rev")
    (example,) = geo.golden_examples.list()
    assert (example.question, example.sql_query) == (IN_ITALY, IN_ITALY_SQL)
    assert geo.review.ask_again(item.item_id).after == IN_ITALY_SQL
    with pytest.raises(Conflict):
        geo.review.fix(item.item_id, "add_example", sql_query=IN_ITALY_SQL, author="ole")
    geo.review.undo(event.event_id)
    assert geo.golden_examples.list() == []
    assert geo.review.ask_again(item.item_id) == before


def test_a_question_is_asked_again_without_leaving_a_trace(either: Heedful, disliked: str) -> None:
    item = only(either)
    entries, receipts = given(either), count(either, "receipts")
    same = either.review.ask_again(item.item_id)
    assert (same.question, same.changed) == (OPENING, False)
    assert same.before == same.after
    assert [hit.fact_id for hit in same.evidence_after] == [each.fact_id for each in same.evidence_before]
    fact_id = same.evidence_before[0].fact_id
    either.review.fix(item.item_id, "supersede", fact_id=fact_id, text=RIGHT)
    fixed = either.review.ask_again(item.item_id)
    assert fixed.changed
    assert "nine" in str(fixed.after)
    assert fixed.evidence_after[0].text == RIGHT
    assert (given(either), count(either, "receipts")) == (entries, receipts)


def test_a_session_has_no_question_to_ask_again(store: Heedful) -> None:
    store.sessions.create("monday")
    store.sessions.add_session_feedback("monday", {"rating": "down", "comment": ""})
    with pytest.raises(Invalid) as caught:
        store.review.ask_again(only(store).item_id)
    assert caught.value.field == "item_id"


@pytest.mark.parametrize(
    ("field", "action", "arguments"),
    [
        ("action", "ignore", {}),
        ("fact_id", "supersede", {"text": "x"}),
        ("text", "supersede", {"fact_id": "x"}),
        ("sql_query", "supersede", {"fact_id": "x", "text": "x", "sql_query": "x"}),
        ("event_id", "retract", {}),
        ("execution_id", "retract", {"event_id": "x", "execution_id": "x"}),
        ("execution_id", "block", {}),
        ("question", "block", {"execution_id": "x", "question": "x"}),
        ("sql_query", "add_example", {"question": "x"}),
        ("fact_id", "promote", {"fact_id": "x", "execution_id": "x"}),
    ],
)
def test_a_fix_takes_its_own_arguments_alone(
    either: Heedful, disliked: str, field: str, action: Any, arguments: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as caught:
        either.review.fix(only(either).item_id, action, **arguments)
    assert caught.value.field == field


def test_what_is_not_there_can_not_be_fixed(geo: Heedful, run: str) -> None:
    geo.feedback.create_negative(execution_id=run, author="ida")
    item_id = only(geo).item_id
    calls: list[Callable[[], object]] = [
        lambda: geo.review.fix("nothing", "block", execution_id=run),
        lambda: geo.review.fix(item_id, "block", execution_id="nothing"),
        lambda: geo.review.fix(item_id, "promote", execution_id="nothing"),
        lambda: geo.review.fix(item_id, "retract", event_id="nothing"),
        lambda: geo.review.fix(item_id, "supersede", fact_id="nothing", text="x"),
        lambda: geo.review.fix(item_id, "add_example", sql_query="SELECT 1", connector_id="nothing"),
        lambda: geo.review.undo("nothing"),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            call()
    assert geo.review.get(item_id).history == []


def test_two_reviewers_do_not_fix_the_same_twice(geo: Heedful, run: str) -> None:
    geo.feedback.create_negative(execution_id=run, author="ida")
    seen = only(geo)
    geo.review.fix(seen.item_id, "block", execution_id=run, author="rev", if_match=etag(seen))
    with pytest.raises(Conflict) as caught:
        geo.review.fix(seen.item_id, "block", execution_id=run, author="ole", if_match=etag(seen))
    assert caught.value.code == "changed_meanwhile"
    assert [each.author for each in execution_feedback(geo)] == ["rev", "ida"]


def test_events_of_the_queue_have_no_words(geo: Heedful, run: str) -> None:
    geo.feedback.create_negative(execution_id=run, feedback="SECRET word", author="ida")
    item_id = only(geo).item_id
    (opinion,) = geo.review.get(item_id).opinions
    geo.review.fix(item_id, "retract", event_id=opinion.event_id, note="SECRET note", author="rev")
    geo.review.resolve(item_id, note="SECRET end", author="rev")
    with geo._workspace.read() as connection:
        rows = connection.execute(select(events).where(events.c.kind == "review").order_by(events.c.seq)).all()
    assert [(row.target_type, row.target_id, row.value, row.author) for row in rows] == [
        ("review_item", item_id, "retract", "rev"),
        ("review_item", item_id, "resolve", "rev"),
    ]
    assert not any("SECRET" in str(row) for row in rows)


def comments(store: Heedful) -> list[str]:
    page = store.insight.rows("feedback")
    found = page.items
    while page.next_cursor is not None:
        page = store.insight.rows("feedback", cursor=page.next_cursor)
        found += page.items
    return [row["comment"] for row in found]


def count(store: Heedful, table: str) -> int:
    counted = sqlalchemy.text(f"SELECT count(*) FROM {table} WHERE project_id = :own_project")
    with store._workspace.read() as connection:
        return int(connection.execute(counted).scalar_one())


@pytest.mark.parametrize(
    ("action", "values"),
    [("supersede", {"fact_id": "nope", "text": RIGHT}), ("block", {"execution_id": "nope"})],
)
def test_what_is_not_there_is_told_with_where_to_look(store: Heedful, action: Fix, values: dict[str, str]) -> None:
    store.remember("The Lisbon office opens at eight.")
    result = store.recall("When does the Lisbon office open?", session_id="monday")
    store.sessions.add_feedback("monday", str(result.qa_id), None, 1, author="ida")
    with pytest.raises(NotFound) as caught:
        store.review.fix(only(store).item_id, action, **values)
    assert caught.value.remedy
