"""What people rated well, as `evaluation.rated` reads it from the ledger, and the needs behind the questions."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from heedful import Entry, Heedful, Invalid, NotFound, Signal, SignalResult
from heedful.engine import project_of
from heedful.evaluation.needs import needs_of
from heedful.evaluation.rated import (
    Period,
    RatedAnswer,
    RatedExecution,
    RatedQuestion,
    rated_answers,
    rated_executions,
    rated_questions,
)
from heedful.model import SignalType
from heedful.providers.configured import embedder_from
from heedful.testing import ManualClock, WordEmbedder

ALL = Period()


def questions(store: Heedful, period: Period = ALL) -> list[RatedQuestion]:
    return rated_questions(project_of(store).workspace, period)


def answers(store: Heedful, period: Period = ALL) -> list[RatedAnswer]:
    return rated_answers(project_of(store).sessions, period)


def executions(store: Heedful, period: Period = ALL) -> list[RatedExecution]:
    return rated_executions(project_of(store).workspace, period)


def say(store: Heedful, fact: str, kind: SignalType, author: str | None = None, **options: Any) -> SignalResult:
    """Somebody says how useful a fact was for a query."""
    return store.signal([Signal(fact_id=fact, signal_type=kind, author=author, **{"query": "parcels", **options})])


def answered(store: Heedful, **used: float) -> tuple[Entry, list[str]]:
    """An answer to a recall, and the facts that it used with these shares."""
    facts = store.remember([f"{name} parcels" for name in used]).fact_ids
    recall = store.recall("parcels?")
    shares = dict(zip(facts, used.values(), strict=True))
    return store.sessions.add_entry("s", "parcels?", "30 days", recall_id=recall.recall_id, used=shares), facts


def two_facts(store: Heedful, **options: Any) -> list[str]:
    return store.remember(["Parcels return in 30 days.", "Gift cards never expire."], **options).fact_ids


def test_facts_that_people_call_helpful_are_read_with_one_vote_an_author(store: Heedful, clock: ManualClock) -> None:
    parcels, cards = two_facts(store)
    recall = store.recall("When may parcels return?")
    for author, is_good in (("ann", False), ("ann", True), ("bob", True), ("cy", False)):
        clock.advance(minutes=1)
        good, bad = ([parcels], []) if is_good else ([], [parcels])
        store.signal_recall(recall.recall_id, helpful=good, not_helpful=bad, author=author)
    store.signal_recall(recall.recall_id, not_helpful=[cards], author="ann")
    (found,) = questions(store)
    assert (found.dataset, found.question, found.receipts) == ("main_dataset", recall.query, (recall.recall_id,))
    assert (found.helpful, found.not_helpful) == ([parcels], [cards])
    votes = found.facts[parcels]
    assert (votes.good, votes.bad) == ({"ann", "bob"}, {"cy"})
    assert votes.agreement == pytest.approx(2 / 3)


def test_a_tie_is_neither_good_nor_bad(store: Heedful) -> None:
    fact, _ = two_facts(store)
    say(store, fact, "helpful", author="ann")
    say(store, fact, "not_helpful", author="bob")
    (found,) = questions(store)
    assert (found.helpful, found.not_helpful, found.facts[fact].agreement) == ([], [], 0.5)


def test_visitors_count_only_if_they_are_asked_for(store: Heedful) -> None:
    fact, _ = two_facts(store)
    say(store, fact, "helpful", author="visitor-x")
    assert questions(store) == []
    (found,) = questions(store, Period(visitors=True))
    assert found.facts[fact].good == {"visitor-x"}


def test_the_program_is_one_author(store: Heedful, clock: ManualClock) -> None:
    fact, _ = two_facts(store)
    for _ in range(3):
        clock.advance(minutes=1)
        say(store, fact, "helpful")
    (found,) = questions(store)
    assert found.facts[fact].good == {None}


def test_retracted_votes_are_gone(store: Heedful) -> None:
    fact, _ = two_facts(store)
    given = say(store, fact, "helpful", author="ann")
    store.retract(given.event_ids[0])
    assert questions(store) == []


def test_weaker_signals_are_no_ratings(store: Heedful) -> None:
    fact, other = two_facts(store)
    say(store, fact, "used", author="ann")
    say(store, other, "ignored", author="ann")
    assert questions(store) == []


def test_signals_derived_from_the_rating_of_an_answer_are_not_read_twice(store: Heedful) -> None:
    entry, (fact,) = answered(store, fact=1.0)
    store.sessions.add_feedback("s", entry.qa_id, None, 5, author="ann")
    assert store.improve().signals_added == 1
    assert questions(store) == []
    (answer,) = answers(store)
    assert answer.facts == [fact]


def test_votes_about_forgotten_facts_are_still_read(store: Heedful) -> None:
    fact, _ = two_facts(store)
    say(store, fact, "helpful", author="ann")
    store.forget(fact)
    (found,) = questions(store)
    assert found.helpful == [fact]


def test_a_dataset_and_a_period_limit_what_is_read(store: Heedful, clock: ManualClock) -> None:
    first, _ = two_facts(store)
    second, _ = two_facts(store, dataset="other")
    start = clock()
    say(store, first, "helpful", author="ann")
    clock.advance(days=2)
    say(store, second, "helpful", query="cards", author="ann")
    assert [found.question for found in questions(store)] == ["parcels", "cards"]
    assert [found.dataset for found in questions(store, Period.checked("other", None))] == ["other"]
    later = Period.checked(None, start + timedelta(days=1))
    assert [found.question for found in questions(store, later)] == ["cards"]
    earlier = Period.checked(None, None, start + timedelta(days=1))
    assert [found.question for found in questions(store, earlier)] == ["parcels"]
    with pytest.raises(NotFound, match="nowhere"):
        questions(store, Period.checked("nowhere", None))
    with pytest.raises(Invalid, match="since"):
        Period.checked(None, "yesterday")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("score", "good", "bad"), [(5, {"ann"}, set()), (4, {"ann"}, set()), (2, set(), {"ann"}), (1, set(), {"ann"})]
)
def test_scores_of_answers(open_either: Callable[..., Heedful], score: int, good: set[str], bad: set[str]) -> None:
    store = open_either()
    entry, (fact,) = answered(store, fact=1.0)
    store.sessions.add_feedback("s", entry.qa_id, None, score, author="ann")
    (answer,) = answers(store)
    assert (answer.question, answer.entry.answer, answer.facts) == ("parcels?", "30 days", [fact])
    assert (answer.votes.good, answer.votes.bad) == (good, bad)
    assert answers(store, Period(dataset="other")) == []


def test_a_neutral_score_without_words_says_nothing(store: Heedful) -> None:
    entry = store.sessions.add_entry("s", "parcels?", "30 days")
    store.sessions.add_feedback("s", entry.qa_id, None, 3, author="ann")
    assert answers(store) == []


def test_corrections_come_without_their_complaints(open_either: Callable[..., Heedful]) -> None:
    store = open_either()
    entry = store.sessions.add_entry("s", "parcels?", "30 days")
    store.sessions.add_feedback("s", entry.qa_id, "Wrong! The window is 45 days, not 30.", 1, author="ann")
    store.sessions.add_feedback("s", entry.qa_id, "The window is 60 days.", 1, author="visitor-x")
    store.sessions.add_feedback("s", entry.qa_id, "The window is 30 days, thank you.", 5, author="bob")
    (answer,) = answers(store)
    assert [(each.author, each.text) for each in answer.corrections] == [("ann", "The window is 45 days, not 30.")]
    assert (answer.votes.good, answer.votes.bad) == ({"bob"}, {"ann"})


def test_an_answer_rests_on_the_facts_with_the_largest_shares(store: Heedful) -> None:
    entry, facts = answered(store, one=0.2, two=0.5, three=0.3)
    store.sessions.add_feedback("s", entry.qa_id, None, 5, author="ann")
    (answer,) = answers(store)
    assert answer.facts == [facts[1], facts[2]]


@pytest.fixture
def shop(store: Heedful, tmp_path: Path) -> Heedful:
    """A store with a connector to a small database."""
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as made:
        made.executescript("CREATE TABLE sales (year INTEGER); INSERT INTO sales VALUES (2023), (2024)")
    store.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.sqlite'}")
    return store


def test_executions_are_read_with_what_people_say_of_them(shop: Heedful) -> None:
    run = shop.executions.execute_query("SELECT count(*) FROM sales", question="How many sales?")
    untold = shop.executions.execute_query("SELECT 1")
    for execution in (run, untold):
        shop.feedback.create_positive(execution_id=execution.execution_id, author="ann")
    shop.feedback.create_negative(execution_id=run.execution_id, author="bob")
    shop.feedback.create_positive(execution_id=run.execution_id, author="visitor-x")
    (found,) = executions(shop)
    assert (found.execution_id, found.question) == (run.execution_id, "How many sales?")
    assert (found.votes.good, found.votes.bad) == ({"ann"}, {"bob"})
    assert executions(shop, Period(dataset="main_dataset")) == []
    assert executions(shop, Period(since=found.votes.at + 1)) == []


def test_phrasings_of_one_need_are_found_in_any_order() -> None:
    texts = [
        "How long can I return a parcel?",
        "how long can I return a parcel",
        "Do gift cards expire?",
        "How long may I return a parcel?",
        "Sales in 2023",
        "Sales in 2024",
    ]
    bundled = embedder_from("bundled")
    first = needs_of(bundled, texts)
    assert first[0] == first[1] == first[3]
    assert len(set(first)) == 4
    order = list(range(len(texts)))
    random.Random(3).shuffle(order)
    again = needs_of(bundled, [texts[place] for place in order])
    assert [again[order.index(place)] for place in range(len(texts))] == first


def test_needs_are_embedded_in_steps_and_report_how_far_they_are() -> None:
    texts = [f"question{number} about topic{number}" for number in range(600)]
    seen: list[tuple[int, int]] = []
    needs = needs_of(WordEmbedder(), [*texts, *texts], lambda done, total: seen.append((done, total)))
    assert needs[:600] == needs[600:]
    assert seen == [(256, 600), (512, 600), (600, 600)]
    assert needs_of(WordEmbedder(), []) == []
