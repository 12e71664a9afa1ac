"""The review queue: what becomes an item, which opinions are one, who is assigned, and what state it is in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from hypothesis import given
from hypothesis import strategies as st
from properties import some

from heedful import Heedful, Signal, etag
from heedful.errors import Conflict, Invalid, NotFound
from heedful.model import ReviewItem
from heedful.review import follow
from heedful.review.items import CLOSES, ReviewAct, fold
from heedful.testing import ManualClock

OPENING = "When does the Lisbon office open?"
FACT = "The Lisbon office opens at eight in the morning."


def ask(store: Heedful, question: str = OPENING, session_id: str = "monday") -> str:
    """An entry with evidence; its id."""
    if not store.datasets():
        store.remember([FACT, "Visitors sign in at the desk."])
    result = store.recall(question, session_id=session_id)
    assert result.qa_id is not None
    return result.qa_id


def dislike(store: Heedful, qa_id: str, author: str = "ida", text: str | None = None, session: str = "monday") -> None:
    assert store.sessions.add_feedback(session, qa_id, text, 1, author=author)


def only(store: Heedful, **wanted: str | None) -> ReviewItem:
    (item,) = store.review.list(**wanted).items  # type: ignore[arg-type]
    return item


def test_an_empty_project_has_nothing_to_review(either: Heedful) -> None:
    assert either.review.list().items == []
    with pytest.raises(NotFound) as caught:
        either.review.get("nothing")
    assert caught.value.field == "item_id"


@pytest.mark.parametrize("field", ["status", "target_type"])
def test_whoever_asks_for_all_by_a_word_is_told_that_none_is_all(store: Heedful, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        store.review.list(**{field: "all"})  # type: ignore[arg-type]
    assert (caught.value.field, str(caught.value.remedy)[-16:]) == (field, ", or None for all"[-16:])


def test_a_disliked_answer_is_an_item_with_its_evidence(either: Heedful, clock: ManualClock) -> None:
    qa_id = ask(either)
    given = clock.now
    dislike(either, qa_id, text="It opens at nine.")
    item = only(either)
    assert (item.kind, item.target_type, item.status, item.assignee) == ("negative", "entry", "open", None)
    assert (item.question, item.dataset, item.opinions, item.positive) == (OPENING, "main_dataset", 1, 0)
    assert (item.comment, item.opened_at, item.last_at) == ("It opens at nine.", given, given)
    case = either.review.get(item.item_id)
    entry = either.sessions.entry("monday", qa_id)
    assert case.item == item
    assert (case.answer, case.recall_id) == (entry.answer, entry.recall_id)
    shown = either.receipt(str(entry.recall_id)).shown
    assert [(each.fact_id, each.rank, each.score) for each in case.evidence] == [
        (each.fact_id, each.rank, each.score) for each in shown
    ]
    assert case.evidence[0].text == FACT
    assert sum(each.share or 0 for each in case.evidence) == pytest.approx(1)
    (opinion,) = case.opinions
    assert (opinion.author, opinion.score, opinion.comment, opinion.positive) == ("ida", 1, "It opens at nine.", False)
    assert (opinion.target_id, opinion.session_id) == (qa_id, "monday")
    assert case.fixes == ["supersede", "retract", "teach"]
    assert case.history == []


def test_what_is_good_or_neutral_is_no_item(either: Heedful) -> None:
    qa_id = ask(either)
    either.sessions.add_feedback("monday", qa_id, "Hm.", 3, author="ida")
    either.sessions.add_feedback("monday", qa_id, None, 5, author="ole")
    either.sessions.add_session_feedback("monday", {"rating": None, "comment": "Well."})
    assert either.review.list(status=None).items == []


def test_opinions_about_the_same_question_are_one_item(either: Heedful) -> None:
    dislike(either, ask(either), "ida")
    dislike(either, ask(either, "when does  the Lisbon office open"), "ole")
    dislike(either, ask(either, session_id="tuesday"), "eva", session="tuesday")
    dislike(either, ask(either, "Where do visitors sign in?"), "ida")
    items = either.review.list().items
    assert [(item.question, item.opinions) for item in items] == [
        (OPENING, 3),
        ("Where do visitors sign in?", 1),
    ]


@pytest.mark.slow
def test_a_question_that_asks_for_the_same_joins_an_open_item_only(either: Heedful, clock: ManualClock) -> None:
    like = "When does the Lisbon office open please?"
    dislike(either, ask(either))
    first = only(either)
    dislike(either, ask(either, like))
    assert only(either).opinions == 2
    either.review.resolve(first.item_id, author="rev")
    clock.advance(seconds=1)
    dislike(either, ask(either, "When does the Lisbon office open then?"))
    other = only(either)
    assert other.item_id != first.item_id
    assert only(either, status="resolved").opinions == 2


def test_another_dataset_is_another_item(store: Heedful) -> None:
    store.remember(FACT, dataset="other")
    store.remember(FACT)
    for dataset in ("main_dataset", "other"):
        result = store.recall(OPENING, dataset=dataset, session_id="monday")
        dislike(store, str(result.qa_id))
    assert [item.opinions for item in store.review.list().items] == [1, 1]
    assert only(store, dataset="other").dataset == "other"


def test_sessions_are_items_of_their_own(either: Heedful) -> None:
    for session_id in ("monday", "tuesday"):
        either.sessions.create(session_id)
        either.sessions.add_session_feedback(session_id, {"rating": "down", "comment": session_id}, author="ida")
    items = either.review.list(target_type="session").items
    assert [(item.comment, item.question) for item in items] == [("tuesday", None), ("monday", None)]
    assert either.review.get(items[0].item_id).fixes == ["retract"]


def test_executions_with_the_same_sql_are_one_item(store: Heedful, tmp_path: Path) -> None:
    store.connectors.create("geo", make_cities(tmp_path).url)
    runs = [
        store.executions.execute_query(f"SELECT name FROM city WHERE country = '{name}'", question=f"Cities of {name}?")
        for name in ("Italy", "France")
    ]
    other = store.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    for run in (*runs, other):
        store.feedback.create_negative(execution_id=run.execution_id, feedback="Wrong.", author="ida")
    same, alone = store.review.list(target_type="execution").items
    assert (same.opinions, alone.opinions, alone.question) == (2, 1, IN_ITALY)
    case = store.review.get(alone.item_id)
    assert (case.sql_query, case.execution_id) == (other.sql_query, other.execution_id)
    assert case.fixes == ["retract", "block", "promote", "add_example"]


def test_signals_are_items_and_what_improve_makes_of_them_is_not(store: Heedful) -> None:
    dislike(store, ask(store))
    store.improve()
    fact_id = store.facts().items[0].fact_id
    assert [item.target_type for item in store.review.list().items] == ["entry"]
    store.signal(Signal(fact_id=fact_id, signal_type="not_helpful", query="opening hours", author="ole"))
    store.signal(Signal(fact_id=fact_id, signal_type="helpful", query="opening hours", author="eva"))
    item = only(store, target_type="fact")
    assert (item.kind, item.question, item.opinions, item.positive) == ("contradictory", "opening hours", 1, 1)
    case = store.review.get(item.item_id)
    assert {(each.author, each.positive) for each in case.opinions} == {("ole", False), ("eva", True)}
    assert [each.fact_id for each in case.evidence] == [fact_id]


def test_contrary_opinions_are_told(either: Heedful) -> None:
    qa_id = ask(either)
    dislike(either, qa_id)
    assert only(either).kind == "negative"
    either.sessions.add_feedback("monday", qa_id, "Right.", 5, author="ole")
    item = only(either)
    assert (item.kind, item.opinions, item.positive) == ("contradictory", 1, 1)


def test_what_is_taken_back_no_longer_counts(either: Heedful) -> None:
    qa_id = ask(either)
    dislike(either, qa_id, "ida")
    dislike(either, qa_id, "ole")
    assert only(either).opinions == 2
    either.sessions.delete_feedback("monday", qa_id, author="ole")
    assert only(either).opinions == 1
    either.sessions.add_feedback("monday", qa_id, "Oh, it was right.", 5, author="ida")
    assert either.review.list().items == []
    assert only(either, status=None).opinions == 0


def test_changed_feedback_about_an_execution_counts_once(store: Heedful, tmp_path: Path) -> None:
    store.connectors.create("geo", make_cities(tmp_path).url)
    run = store.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    feedback = store.feedback.create_negative(execution_id=run, feedback="Wrong.", author="ida")
    assert only(store).comment == "Wrong."
    store.feedback.update(feedback.id, feedback="All wrong.")
    item = only(store)
    assert (item.comment, item.opinions) == ("All wrong.", 1)
    store.feedback.update(feedback.id, is_positive=True)
    assert store.review.list().items == []


def test_items_with_the_most_opinions_come_first_in_pages(store: Heedful, clock: ManualClock) -> None:
    for place, (question, times) in enumerate([("one?", 1), ("two?", 3), ("three?", 1), ("four?", 2)]):
        for author in range(times):
            clock.advance(seconds=1)
            dislike(store, ask(store, question, f"s{place}"), str(author), session=f"s{place}")
    seen, cursor = [], None
    while True:
        page = store.review.list(cursor=cursor, limit=1)
        seen += [item.question for item in page.items]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == ["two?", "four?", "three?", "one?"]
    with pytest.raises(Invalid):
        store.review.list(cursor="5")


@pytest.mark.slow
def test_many_old_opinions_are_taken_in_batches(store: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "BATCH_SIZE", 3)
    for number in range(10):
        dislike(store, ask(store, f"What is in room number {number}?"), f"author {number}")
        dislike(store, ask(store), f"author {number}")
    items = store.review.list().items
    assert sum(item.opinions for item in items) == 20
    assert items[0].opinions >= 10


@pytest.mark.slow
def test_assigning_resolving_and_reopening_are_told_in_the_history(either: Heedful, clock: ManualClock) -> None:
    dislike(either, ask(either))
    item_id = only(either).item_id
    clock.advance(seconds=1)
    assert either.review.assign(item_id, "eva", author="rev").assignee == "eva"
    assert only(either, assignee="eva").item_id == item_id
    resolved = either.review.resolve(item_id, note="Corrected.", author="eva")
    assert (resolved.status, resolved.changed_at) == ("resolved", clock.now)
    assert either.review.list().items == []
    assert either.review.reopen(item_id, note="Not yet.", author="eva").status == "open"
    assert either.review.dismiss(item_id, author="eva").status == "dismissed"
    history = either.review.get(item_id).history
    assert [(each.action, each.author, each.note) for each in history] == [
        ("assign", "rev", None),
        ("resolve", "eva", "Corrected."),
        ("reopen", "eva", "Not yet."),
        ("dismiss", "eva", None),
    ]
    for event in reversed(history):
        assert either.review.undo(event.event_id, author="rev").undone
        either.review.undo(event.event_id)
    item = only(either)
    assert (item.status, item.assignee) == ("open", None)


@pytest.mark.slow
def test_the_second_reviewer_is_told(store: Heedful, clock: ManualClock) -> None:
    dislike(store, ask(store))
    item = only(store)
    clock.advance(seconds=1)
    store.review.resolve(item.item_id, author="ida")
    for act in (store.review.resolve, store.review.dismiss):
        with pytest.raises(Conflict) as caught:
            act(item.item_id, author="ole")
        assert caught.value.code == "closed_already"
        assert f"ida resolved item {item.item_id}" in caught.value.message
    with pytest.raises(Conflict) as caught:
        store.review.dismiss(item.item_id, author="ole", if_match=etag(item))
    assert caught.value.code == "changed_meanwhile"
    assert store.review.resolve(item.item_id, author="ida").status == "resolved"
    assert len(store.review.get(item.item_id).history) == 1
    current = store.review.get(item.item_id).item
    assert store.review.dismiss(item.item_id, author="ole", if_match=etag(current)).status == "dismissed"
    for act in (store.review.reopen, store.review.resolve):
        with pytest.raises(Conflict):
            act(item.item_id, if_match=etag(item))
    with pytest.raises(Conflict):
        store.review.assign(item.item_id, "eva", if_match=etag(item))


@pytest.mark.parametrize("action", ["resolve", "dismiss"])
def test_a_second_note_is_kept_and_said_twice_it_is_one(store: Heedful, clock: ManualClock, action: str) -> None:
    dislike(store, ask(store))
    item_id = only(store).item_id
    for note in ("first", "second", "second", None):
        clock.advance(seconds=1)
        getattr(store.review, action)(item_id, note=note, author="eva")
    history = store.review.get(item_id).history
    assert [(each.action, each.note) for each in history] == [(action, "first"), (action, "second")]
    store.review.undo(history[1].event_id)
    assert store.review.get(item_id).item.status == CLOSES[action]


def test_an_opinion_that_opens_an_item_again_is_told_in_the_history(either: Heedful, clock: ManualClock) -> None:
    qa_id = ask(either)
    dislike(either, qa_id)
    item_id = only(either).item_id
    either.review.resolve(item_id, author="rev")
    for author in ("ole", "eva"):
        clock.advance(seconds=1)
        dislike(either, qa_id, author)
    first = clock.now - timedelta(seconds=1)
    either.review.assign(item_id, "rev", author="rev")
    case = either.review.get(item_id)
    assert [(each.action, each.author) for each in case.history] == [
        ("resolve", "rev"),
        ("reopen", "ole"),
        ("assign", "rev"),
    ]
    opened = case.history[1]
    event_id = next(each.event_id for each in case.opinions if each.author == "ole")
    assert (opened.event_id, opened.details, opened.at, opened.undone) == (
        event_id,
        {"opinion": event_id},
        first,
        False,
    )
    with pytest.raises(Invalid, match="is an opinion") as caught:
        either.review.undo(event_id)
    assert "retract" in str(caught.value.remedy)
    clock.advance(seconds=1)
    either.review.resolve(item_id, author="rev")
    assert [each.action for each in either.review.get(item_id).history] == ["resolve", "reopen", "assign", "resolve"]
    either.retract(event_id)
    assert [each.author for each in either.review.get(item_id).history if each.action == "reopen"] == ["eva"]


def test_news_opens_what_was_resolved_and_not_what_was_dismissed(either: Heedful, clock: ManualClock) -> None:
    qa_id = ask(either)
    dislike(either, qa_id)
    item_id = only(either).item_id
    either.review.resolve(item_id, author="rev")
    clock.advance(seconds=1)
    dislike(either, qa_id, "ole")
    assert only(either).opinions == 2
    either.sessions.delete_feedback("monday", qa_id, author="ole")
    assert only(either, status="resolved").opinions == 1
    either.review.dismiss(item_id, author="rev")
    clock.advance(seconds=1)
    dislike(either, qa_id, "eva")
    assert either.review.list().items == []
    assert only(either, status="dismissed").opinions == 2


@pytest.mark.slow
def test_what_goes_with_its_session_leaves_the_queue(either: Heedful) -> None:
    dislike(either, ask(either))
    dislike(either, ask(either, session_id="tuesday"), session="tuesday", text="SECRET")
    item_id = only(either).item_id
    either.review.resolve(item_id, note="A note.", author="rev")
    either.sessions.delete("tuesday")
    assert only(either, status=None).opinions == 1
    either.sessions.delete("monday")
    assert either.review.list(status=None).items == []
    with pytest.raises(NotFound):
        either.review.get(item_id)
    assert row_counts(either, "review_items", "review_members", "review_notes") == [0, 0, 0]


def test_a_session_that_was_gone_before_anybody_looked_is_passed_over(either: Heedful) -> None:
    dislike(either, ask(either))
    either.sessions.delete("monday")
    assert either.review.list(status=None).items == []


@pytest.mark.slow
def test_what_is_about_a_forgotten_fact_leaves_the_queue(store: Heedful) -> None:
    store.remember([FACT, "Visitors sign in at the desk."])
    opens, desk = store.facts().items
    for fact in (opens, desk):
        store.signal(Signal(fact_id=fact.fact_id, signal_type="not_helpful", query="opening hours"))
    assert len(store.review.list().items) == 2
    store.forget(opens.fact_id)
    (item,) = store.review.list().items
    assert store.review.get(item.item_id).evidence[0].fact_id == desk.fact_id
    store.forget(dataset="main_dataset")
    assert store.review.list(status=None).items == []


def test_projects_do_not_see_each_other(open_either: Callable[..., Heedful]) -> None:
    ours, theirs = open_either(project="ours"), open_either(project="theirs")
    dislike(ours, ask(ours))
    item = only(ours)
    ours.review.assign(item.item_id, "eva")
    (event,) = ours.review.get(item.item_id).history
    assert theirs.review.list(status=None).items == []
    for call in (theirs.review.get, theirs.review.resolve, theirs.review.ask_again):
        with pytest.raises(NotFound):
            call(item.item_id)
    with pytest.raises(NotFound):
        theirs.review.undo(event.event_id)
    with pytest.raises(NotFound):
        theirs.retract(event.event_id)


def test_values_that_are_none_are_refused(store: Heedful) -> None:
    for arguments in ({"status": "done"}, {"target_type": "dream"}, {"limit": 0}, {"cursor": "x"}, {"dataset": ""}):
        with pytest.raises(Invalid) as caught:
            store.review.list(**arguments)
        assert caught.value.field == next(iter(arguments))


TIMES = st.integers(0, 20)
ACTS = st.lists(
    st.builds(
        ReviewAct, st.sampled_from(["assign", "resolve", "dismiss", "reopen", "block"]), TIMES, st.none(), st.none()
    )
)


@given(ACTS, st.none() | TIMES)
def test_only_an_opinion_given_later_opens_and_only_what_was_resolved(
    acts: list[ReviewAct], last_at: int | None
) -> None:
    without = fold(acts, None)
    state = fold(acts, last_at)
    news = without.closed is not None and last_at is not None and last_at > without.closed.at
    assert state.status == ("open" if without.status == "resolved" and news else without.status)
    assert (state.closed is None) == (state.status == "open")


STEPS = st.lists(st.sampled_from(["like", "dislike", "resolve", "dismiss", "reopen", "assign", "undo", "look"]))


@some(1 / 5)
@given(STEPS)
@pytest.mark.slow
def test_what_the_list_shows_is_the_fold_of_the_events(new_store: Callable[..., Heedful], steps: list[str]) -> None:
    clock = ManualClock()
    with new_store(clock) as store:
        store.sessions.create("monday")
        qa_id = store.sessions.add_entry("monday", OPENING, "At eight.").qa_id
        dislike(store, qa_id)
        item_id = only(store).item_id
        feedback = {"ida": (0, True)}
        done: list[tuple[str, int, str | None]] = []
        for number, step in enumerate(steps, 1):
            clock.advance(seconds=1)
            if step in ("like", "dislike"):
                author = ("ida", "ole")[number % 2]
                store.sessions.add_feedback("monday", qa_id, str(number), 1 if step == "dislike" else 5, author=author)
                feedback[author] = (number, step == "dislike")
            elif step in ("resolve", "dismiss", "reopen"):
                before = {each.event_id for each in store.review.get(item_id).history}
                getattr(store.review, step)(item_id, author="rev")
                if {each.event_id for each in store.review.get(item_id).history} > before:
                    done.append((step, number, None))
            elif step == "assign":
                store.review.assign(item_id, str(number), author="rev")
                done.append((step, number, str(number)))
            elif step == "undo" and done:
                history = store.review.get(item_id).history
                active = [each for each in history if not each.undone and "opinion" not in each.details]
                store.review.undo(active[-1].event_id)
                done.pop()
        store.review.list()
        item = only(store, status=None)
        negative = [at for at, is_negative in feedback.values() if is_negative]
        expected = fold(
            [ReviewAct(action, at, "rev", assignee) for action, at, assignee in done], max(negative, default=None)
        )
        assert (item.status, item.assignee, item.opinions) == (expected.status, expected.assignee, len(negative))


def row_counts(store: Heedful, *tables: str) -> list[int]:
    """How many rows tables have."""
    counted = [sqlalchemy.text(f"SELECT count(*) FROM {table} WHERE project_id = :own_project") for table in tables]
    with store._workspace.read() as connection:
        return [connection.execute(each).scalar_one() for each in counted]
