"""`improve`: what people say of answers becomes better recall, and nothing is left of what they retract."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_files import write_private
from properties import some
from pymongo import MongoClient

import heedful
from heedful import Entry, Heedful, Improvement, Invalid, NotFound
from heedful.engine import Project
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder

pytestmark = pytest.mark.usefixtures("one_author_teaches")

RETURNS = "Parcels may be returned within 30 days."
SOFTWARE = "Opened software can not be returned."
REFUNDS = "Refunds are paid within two weeks."
QUESTION = "When may parcels be returned?"


class Shop:
    """A store with three facts, and a look at all that feedback can change."""

    def __init__(self, store: Heedful, clock: ManualClock, path: Path) -> None:
        self.store = store
        self.clock = clock
        self._path = path
        self.facts = {each.text: each.fact_id for each in store.remember([RETURNS, SOFTWARE, REFUNDS]).facts}

    def ask(self, session: str = "s", **used: float) -> Entry:
        """Keeps an answer that used facts with these weights: returns, software, refunds."""
        self.clock.advance(minutes=1)
        result = self.store.recall(QUESTION)
        weights = {self.facts[globals()[name.upper()]]: weight for name, weight in (used or {"returns": 1.0}).items()}
        return self.store.sessions.add_entry(session, QUESTION, "", recall_id=result.recall_id, used=weights)

    def rate(self, entry: Entry, score: int | None, text: str | None = None, **options: Any) -> None:
        self.clock.advance(minutes=1)
        session = next(
            each.session_id
            for each in self.store.sessions.list().items
            if any(one.qa_id == entry.qa_id for one in self.store.sessions.entries(each.session_id).items)
        )
        assert self.store.sessions.add_feedback(session, entry.qa_id, text, score, **options)

    def rate_session(self, rating: str | None, session: str = "s", **options: Any) -> str:
        self.clock.advance(minutes=1)
        feedback = self.store.sessions.add_session_feedback(session, {"rating": rating}, **options)
        assert feedback is not None
        return feedback.feedback_id

    def signals(self) -> list[tuple[str, str, float]]:
        """(fact, kind, confidence) of the signals of `improve` that stand, in the order they were given."""
        names = {fact: text for text, fact in self.facts.items()}
        with sqlite3.connect(self._path) as connection:
            rows = connection.execute(
                "SELECT target_id, value, confidence FROM events e WHERE kind = 'signal' AND source = 'improve'"
                " AND NOT EXISTS (SELECT 1 FROM events r WHERE r.kind = 'retraction' AND r.target_id = e.id)"
                " ORDER BY at, seq"
            ).fetchall()
        return [(names.get(fact, fact), kind, confidence) for fact, kind, confidence in rows]

    def state(self) -> Any:
        """All that feedback can change: usefulness, ranks, scores, and what there is to recall."""
        hits = {
            policy: [
                (hit.text, hit.score, hit.usefulness)
                for hit in self.store.recall(QUESTION, boost_by_usefulness=True, usefulness_weight=0.9, policy=policy)
            ]
            for policy in ("documented", "adaptive")
        }
        stats = [
            self.store.fact_stats(fact).model_dump(exclude={"fact_id"})
            for fact in self.facts.values()
            if any(fact == hit.fact_id for hit in self.store.recall(QUESTION))
        ]
        return hits, stats

    def is_well(self) -> bool:
        return all(check.ok for check in self.store.doctor(repair=False))


@pytest.fixture
def shop(either: Heedful, clock: ManualClock, path: Path) -> Shop:
    return Shop(either, clock, path)


@pytest.fixture
def plain(store: Heedful, clock: ManualClock, path: Path) -> Shop:
    """A shop whose sessions are with the facts, for what no store of sessions takes part in."""
    return Shop(store, clock, path)


@pytest.mark.parametrize(
    ("score", "signals", "usefulness"),
    [
        (5, [(RETURNS, "helpful", 1.0)], 0.65),
        (4, [(RETURNS, "helpful", 0.5)], 0.575),
        (3, [], 0.5),
        (2, [(RETURNS, "not_helpful", 0.5)], 0.45),
        (1, [(RETURNS, "not_helpful", 1.0)], 0.4),
    ],
)
@pytest.mark.nightly
def test_a_score_becomes_a_signal(shop: Shop, score: int, signals: list[Any], usefulness: float) -> None:
    shop.rate(shop.ask(), score)
    done = shop.store.improve()
    assert shop.signals() == signals
    assert (done.entries, done.signals_added, done.signals_retracted) == (1, len(signals), 0)
    assert done.updated_facts == [shop.facts[fact] for fact, _, _ in signals]
    assert done.changed is bool(signals)
    assert shop.store.fact_stats(shop.facts[RETURNS]).overall_usefulness == pytest.approx(usefulness, abs=1e-12)


def test_a_rating_is_shared_out_among_the_facts_that_were_used(shop: Shop) -> None:
    shop.rate(shop.ask(returns=0.5, software=0.25, refunds=0.25), 4)
    shop.rate(shop.ask(returns=1.0, refunds=0.5), 1, author="ann")
    shop.store.improve()
    assert shop.signals() == [
        (RETURNS, "helpful", 0.25),
        (SOFTWARE, "helpful", 0.125),
        (REFUNDS, "helpful", 0.125),
        (RETURNS, "not_helpful", 0.666667),
        (REFUNDS, "not_helpful", 0.333333),
    ]


def test_everybodys_rating_counts_at_the_time_it_was_given(shop: Shop) -> None:
    entry = shop.ask()
    for author, score in (("ann", 5), ("bo", 1), (None, 4)):
        shop.rate(entry, score, author=author)
        shop.clock.advance(days=7)
    shop.store.improve()
    assert shop.signals() == [(RETURNS, "helpful", 1.0), (RETURNS, "not_helpful", 1.0), (RETURNS, "helpful", 0.5)]
    stats = shop.store.fact_stats(shop.facts[RETURNS])
    assert stats.signal_breakdown["helpful"] == 2
    assert stats.last_signal_at == shop.clock.now - timedelta(days=7)


def test_words_alone_are_no_signal(shop: Shop) -> None:
    shop.rate(shop.ask(), None, "thanks")
    done = shop.store.improve()
    assert (done.entries, done.changed) == (1, False)


@pytest.mark.parametrize(("rating", "kind"), [("up", "helpful"), ("down", "not_helpful")])
def test_a_rating_of_a_session_is_shared_out_among_its_answers(shop: Shop, rating: str, kind: str) -> None:
    shop.ask(returns=1.0)
    shop.ask(software=0.5, refunds=0.5)
    shop.rate_session(rating)
    shop.ask(refunds=1.0)
    shop.store.improve()
    assert shop.signals() == [(RETURNS, kind, 0.5), (SOFTWARE, kind, 0.25), (REFUNDS, kind, 0.25)]


def test_a_neutral_rating_of_a_session_says_nothing(shop: Shop) -> None:
    shop.ask()
    shop.rate_session(None)
    assert shop.store.improve().changed is False


def test_an_answers_own_rating_says_more_than_that_of_its_session(shop: Shop) -> None:
    first = shop.ask(returns=1.0)
    shop.ask(software=1.0)
    shop.rate(first, 1)
    shop.rate_session("up")
    shop.store.improve()
    assert shop.signals() == [(RETURNS, "not_helpful", 1.0), (SOFTWARE, "helpful", 0.5)]


@pytest.mark.parametrize("session_ids", [None, ["s"]])
@pytest.mark.slow
def test_an_answers_own_rating_takes_the_place_of_that_of_its_session(
    shop: Shop, session_ids: list[str] | None
) -> None:
    entry = shop.ask(returns=1.0)
    shop.rate_session("up")
    shop.store.improve(session_ids=session_ids)
    only_session = shop.state()
    assert shop.signals() == [(RETURNS, "helpful", 1.0)]
    for _ in range(2):
        shop.rate(entry, 1)
        done = shop.store.improve(session_ids=session_ids)
        assert (done.signals_added, done.signals_retracted) == (1, 1)
        assert shop.signals() == [(RETURNS, "not_helpful", 1.0)]
        shop.store.sessions.delete_feedback("s", entry.qa_id)
        shop.store.improve(session_ids=session_ids)
        assert shop.signals() == [(RETURNS, "helpful", 1.0)]
    assert shop.store.improve(session_ids=session_ids).changed is False
    assert shop.store.fact_stats(shop.facts[RETURNS]).signal_count == only_session[1][0]["signal_count"] == 1
    assert shop.is_well()


@pytest.mark.nightly
def test_running_it_again_changes_nothing(shop: Shop) -> None:
    shop.rate(shop.ask(returns=0.5, refunds=0.5), 5)
    shop.rate(shop.ask(session="t"), 1, "No, it is 45 days.")
    shop.rate_session("up")
    first = shop.store.improve()
    assert first.changed
    state = shop.state()
    for session_ids in (None, ["s"], ["s", "t"], []):
        again = shop.store.improve(session_ids=session_ids)
        assert again.changed is False
        assert again.updated_facts == []
        assert shop.state() == state
    assert shop.is_well()


def test_only_the_sessions_that_are_named_are_looked_at(shop: Shop) -> None:
    shop.rate(shop.ask("s", returns=1.0), 5)
    shop.rate(shop.ask("t", software=1.0), 5)
    done = shop.store.improve(session_ids=["t"])
    assert (done.entries, shop.signals()) == (1, [(SOFTWARE, "helpful", 1.0)])
    assert shop.store.improve(session_ids="s").signals_added == 1
    assert shop.store.improve().changed is False


def test_a_session_that_is_not_there_is_named(shop: Shop) -> None:
    shop.rate(shop.ask(), 5)
    with pytest.raises(NotFound, match="'nope'"):
        shop.store.improve(session_ids=["s", "nope"])
    assert shop.signals() == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"dataset": ""}, "dataset"),
        ({"dataset": 5}, "dataset"),
        ({"session_ids": 5}, "session_ids"),
        ({"session_ids": [None]}, "session_id"),
        ({"session_ids": [""]}, "session_id"),
        ({"session_ids": ["s"] * 10_001}, "session_ids"),
    ],
)
def test_bad_arguments_are_refused(store: Heedful, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as error:
        store.improve(**arguments)
    assert error.value.field == field


def test_a_store_without_anything_is_as_good_as_it_can_be(either: Heedful) -> None:
    done = either.improve()
    assert (done.entries, done.changed) == (0, False)
    assert either.datasets() == []


def test_only_the_dataset_that_is_named_changes(shop: Shop) -> None:
    shop.store.remember("Parcels may be returned within 7 days.", dataset="other")
    result = shop.store.recall(QUESTION, dataset="other", session_id="s")
    assert result.qa_id is not None
    shop.store.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    shop.rate(shop.ask(), 1)
    assert shop.store.improve("main_dataset").entries == 1
    assert shop.signals() == [(RETURNS, "not_helpful", 1.0)]
    done = shop.store.improve("other")
    assert (done.dataset, done.entries, done.signals_added) == ("other", 1, 1)
    assert shop.store.improve().changed is False


def test_without_a_name_every_dataset_of_the_sessions_changes(shop: Shop) -> None:
    shop.store.remember("Parcels may be returned within 7 days.", dataset="other")
    result = shop.store.recall(QUESTION, dataset="other", session_id="elsewhere")
    assert result.qa_id is not None
    shop.store.sessions.add_feedback("elsewhere", result.qa_id, feedback_score=5)
    shop.rate(shop.ask(), 1)
    done = shop.store.improve(session_ids=["elsewhere"])
    assert (done.dataset, done.entries, done.signals_added) == ("other", 1, 1)
    done = shop.store.improve()
    assert (done.dataset, done.entries, done.signals_added) == (None, 2, 1)
    assert shop.store.improve().changed is False


@pytest.mark.parametrize("how", ["delete", "retract", "delete session"])
@pytest.mark.nightly
def test_taking_a_rating_back_undoes_exactly_what_it_did(
    open_either: Callable[..., Heedful], how: str, clock: ManualClock, path: Path
) -> None:
    ids: list[str] = []

    def note(original: Any, action: str, session_id: str, **kwargs: Any) -> Any:
        ids.append(original(kwargs["feedback"]))

    shop = Shop(open_either(feedback_hook=note), clock, path)
    shop.rate(shop.ask("t", returns=0.7, software=0.3), 2)
    shop.store.improve()
    entry = shop.ask("s", returns=0.6, refunds=0.4)
    before = shop.state()
    times = clock.now
    shop.rate(entry, 5, "No, it is 45 days.", author="ann")
    shop.store.improve()
    clock.now = times
    assert shop.state() != before
    if how == "delete":
        shop.store.sessions.delete_feedback("s", entry.qa_id)
    elif how == "retract":
        assert sorted(shop.store.retract(ids[-1]).updated_facts) == sorted([shop.facts[RETURNS], shop.facts[REFUNDS]])
    else:
        shop.store.sessions.delete("s")
    assert shop.state() == before
    assert shop.is_well()
    assert shop.store.improve().changed is False
    assert shop.state() == before


def test_changing_a_rating_undoes_the_one_before_at_once(shop: Shop) -> None:
    entry = shop.ask()
    shop.rate(entry, 5)
    shop.store.improve()
    shop.rate(entry, 1)
    assert shop.signals() == []
    assert shop.store.fact_stats(shop.facts[RETURNS]).overall_usefulness == 0.5
    shop.store.improve()
    assert shop.signals() == [(RETURNS, "not_helpful", 1.0)]


def test_saying_the_same_again_leaves_the_signal_as_it_is(shop: Shop) -> None:
    entry = shop.ask()
    shop.rate(entry, 5)
    shop.store.improve()
    shop.rate(entry, 5)
    assert shop.store.improve().changed is False
    assert shop.signals() == [(RETURNS, "helpful", 1.0)]


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["rate", "rate", "rate", "clear", "session", "retract", "improve", "improve some"]),
        st.integers(0, 2),
        st.integers(1, 5),
    ),
    max_size=14,
)


def play(shop: Shop, steps: Sequence[Step], ids: list[str], *, improve: bool) -> None:
    """Takes steps, with `improve` in between or not at all; the clock goes the same way."""
    entries = [("s", shop.ask("s", returns=1.0)), ("s", shop.ask("s", returns=0.4, refunds=0.6))]
    entries.append(("t", shop.ask("t", software=1.0, refunds=0.5)))
    for what, place, score in steps:
        session, entry = entries[place]
        shop.clock.advance(minutes=1)
        if what == "rate":
            author = ("ann", None)[score % 2]
            shop.store.sessions.add_feedback(session, entry.qa_id, feedback_score=score, author=author)
        elif what == "clear":
            shop.store.sessions.delete_feedback(session, entry.qa_id, author="ann" if score > 3 else None)
        elif what == "session":
            shop.store.sessions.add_session_feedback(
                session, {"rating": ("up", "down", None)[score % 3]}, author="bo" if score > 3 else None
            )
        elif what == "retract" and ids:
            shop.store.retract(ids[(place * 5 + score) % len(ids)])
        elif what == "improve" and improve:
            shop.store.improve()
        elif what == "improve some" and improve:
            shop.store.improve(session_ids=[session])
    shop.clock.advance(minutes=1)
    shop.store.improve()


@given(STEPS)
@some(1 / 5)
@pytest.mark.nightly
def test_whatever_happened_the_ratings_that_stand_decide(
    tmp_path_factory: pytest.TempPathFactory, empty_store: bytes, steps: list[Step]
) -> None:
    states, signals = [], []
    for improve in (True, False):
        path = tmp_path_factory.mktemp("shop") / "store.db"
        write_private(path, empty_store)
        ids: list[str] = []

        def note(original: Any, action: str, session_id: str, ids: list[str] = ids, **kwargs: Any) -> None:
            if (made := original(kwargs["feedback"])) not in ids:
                ids.append(made)

        clock = ManualClock()
        with heedful.open(path, clock=clock, embedding=WordEmbedder(), feedback_hook=note) as store:
            shop = Shop(store, clock, path)
            play(shop, steps, ids, improve=improve)
            assert store.improve().changed is False
            assert shop.is_well()
            states.append(shop.state())
            signals.append(sorted(shop.signals()))
    assert signals[0] == signals[1]
    assert states[0] == states[1]


def learnt(store: Heedful) -> list[str]:
    return sorted(hit.text for hit in store.recall(QUESTION, top_k=50) if "learnt_from" in hit.metadata)


@pytest.mark.nightly
def test_a_well_rated_answer_becomes_a_fact_and_goes_with_its_rating(open_either: Callable[..., Heedful]) -> None:
    store = open_either(language_model=ScriptedModel(lambda messages: "A month for parcels [1]; money in 14 days [2]."))
    store.remember([RETURNS, REFUNDS])
    result = store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    store.sessions.add_feedback("s", result.qa_id, feedback_score=3)
    assert store.improve(session_ids=["s"]).learnt == []
    store.sessions.add_feedback("s", result.qa_id, feedback_score=4)
    (lesson,) = store.improve(session_ids=["s"]).learnt
    assert lesson.text == f"{QUESTION}\nA month for parcels; money in 14 days."
    assert (lesson.learnt_from, lesson.session_id, lesson.qa_id, lesson.corrects) == ("answer", "s", result.qa_id, None)
    (hit,) = [hit for hit in store.recall(QUESTION) if hit.fact_id == lesson.fact_id]
    assert hit.metadata.pop("made_from") == [
        used.fact_id for used in store.sessions.entry("s", result.qa_id).used or ()
    ]
    assert hit.metadata == {"learnt_from": "answer", "session_id": "s", "qa_id": result.qa_id}
    store.sessions.add_feedback("s", result.qa_id, feedback_score=1, author="ann")
    assert store.improve().forgotten == [lesson.fact_id]
    assert learnt(store) == []
    store.sessions.delete_feedback("s", result.qa_id, author="ann")
    assert len(store.improve().learnt) == 1
    store.sessions.add_feedback("s", result.qa_id, feedback_score=2)
    assert learnt(store) == []
    store.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    assert len(store.improve().learnt) == 1
    assert store.sessions.delete("s").forgotten_facts == 1
    assert learnt(store) == []


def test_an_answer_that_says_what_a_fact_says_teaches_nothing(shop: Shop) -> None:
    result = shop.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    shop.store.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    assert shop.store.improve().learnt == []


def test_what_was_forgotten_does_not_come_back_in_a_lesson(shop: Shop) -> None:
    result = shop.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    shop.store.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    shop.store.improve()
    shop.store.forget(shop.facts[RETURNS])
    assert shop.store.improve().learnt == []
    assert not any("30 days" in hit.text for hit in shop.store.recall(QUESTION))


@pytest.mark.slow
def test_a_lesson_goes_when_what_it_was_made_from_is_forgotten(open_either: Callable[..., Heedful]) -> None:
    store = open_either(language_model=ScriptedModel(lambda messages: "A month [1]."))
    first = store.remember([RETURNS]).facts[0].fact_id
    store.remember(REFUNDS)
    result = store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    store.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    (lesson,) = store.improve(session_ids=["s"]).learnt
    store.forget(first)
    assert lesson.fact_id not in [hit.fact_id for hit in store.recall(QUESTION)]
    assert not store.improve(session_ids=["s"]).changed
    assert learnt(store) == []


def test_nobody_learns_that_there_is_no_answer(shop: Shop) -> None:
    result = shop.store.recall("zebra quantum?", session_id="s", mode="lexical")
    assert result.qa_id is not None
    shop.store.sessions.add_feedback("s", result.qa_id, feedback_score=5)
    assert shop.store.improve().learnt == []


@pytest.mark.nightly
def test_a_comment_that_corrects_a_fact_becomes_one_and_goes_with_it(shop: Shop) -> None:
    result = shop.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    shop.store.sessions.add_feedback("s", result.qa_id, "Wrong! parcels may be returned within 45 days.", 2)
    (lesson,) = shop.store.improve().learnt
    assert lesson.text == f"{QUESTION}\nParcels may be returned within 45 days."
    assert (lesson.learnt_from, lesson.corrects) == ("feedback", shop.facts[RETURNS])
    assert learnt(shop.store) == [lesson.text]
    shop.store.sessions.add_feedback("s", result.qa_id, "Wrong! parcels may be returned within 60 days.", 2)
    assert learnt(shop.store) == []
    assert [each.text for each in shop.store.improve().learnt] == [
        f"{QUESTION}\nParcels may be returned within 60 days."
    ]
    shop.store.sessions.delete_feedback("s", result.qa_id)
    assert learnt(shop.store) == []
    assert shop.is_well()


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Useless answer.", 1),
        ("I did not like the tone at all", 2),
        ("Is it not 45 days?", 2),
        ("It is 45 days, great!", 5),
        ("Wrong, this is not what I asked about parcels", 1),
        ("It told me the old policy for parcels again and that is just wrong", 1),
        ("I returned my parcel 45 days ago and nobody called", 1),
        ("The parcel of order 48213 was returned after 45 days", 2),
        ("Took 3 tries to have the parcel returned", 2),
        ("The answer should mention that parcels cost 6 euros", 3),
        ("Please tell me how parcels are returned within 45 days", 3),
        ("30 days is a joke for parcels", 1),
    ],
)
@pytest.mark.nightly
def test_complaints_questions_and_praise_correct_nothing(plain: Shop, text: str, score: int) -> None:
    result = plain.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    plain.store.sessions.add_feedback("s", result.qa_id, text, score)
    assert plain.store.improve().learnt == []


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            "Useless! Parcels may be returned within 45 days. Please fix this.",
            "Parcels may be returned within 45 days.",
        ),
        ("That is outdated, the limit for parcels is 45 days", "The limit for parcels is 45 days"),
        ("You have 45 days for parcels, and this is the third time I write it", "You have 45 days for parcels"),
        ("Opened parcels may not be returned", "Opened parcels may not be returned"),
    ],
)
@pytest.mark.nightly
def test_of_a_comment_that_complains_and_corrects_only_what_it_states_is_learnt(
    plain: Shop, text: str, stated: str
) -> None:
    result = plain.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    plain.store.sessions.add_feedback("s", result.qa_id, text, 1)
    assert [each.text for each in plain.store.improve().learnt] == [f"{QUESTION}\n{stated}"]


def test_a_complaint_that_was_learnt_before_is_forgotten(plain: Shop) -> None:
    result = plain.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    complaint = "My parcel took 45 days, not 30"
    plain.store.sessions.add_feedback("s", result.qa_id, complaint, 1)
    about = {"learnt_from": "feedback", "session_id": "s", "qa_id": result.qa_id}
    plain.store.remember(f"{QUESTION}\n{complaint}", source="session/s", metadata=about)
    assert learnt(plain.store) == [f"{QUESTION}\n{complaint}"]
    assert len(plain.store.improve().forgotten) == 1
    assert learnt(plain.store) == []


@pytest.mark.slow
def test_facts_of_a_users_own_are_not_mistaken_for_lessons(shop: Shop) -> None:
    shop.store.remember("Parcels are brown.", source="session/s", metadata={"session_id": "s"})
    shop.rate(shop.ask(), 5)
    shop.store.improve()
    shop.store.sessions.delete("s")
    shop.store.improve()
    assert any(hit.text == "Parcels are brown." for hit in shop.store.recall("Parcels brown"))


def test_an_entry_whose_use_nobody_told_is_looked_through_once(shop: Shop) -> None:
    result = shop.store.recall("Can software be returned?")
    entry = shop.store.sessions.add_entry(
        "s", "Can software be returned?", "Opened software can not be returned.", recall_id=result.recall_id
    )
    assert entry.used is None
    shop.rate(entry, 5)
    shop.store.improve()
    ((fact, kind, _),) = shop.signals()
    assert (fact, kind) == (SOFTWARE, "helpful")
    assert [used.fact_id for used in shop.store.sessions.entry("s", entry.qa_id).used or ()] == [shop.facts[SOFTWARE]]


def test_an_answer_longer_than_can_be_looked_through_stops_nobody(plain: Shop) -> None:
    result = plain.store.recall(QUESTION)
    entry = plain.store.sessions.add_entry("s", QUESTION, f"{RETURNS} {'z' * 120_000}", recall_id=result.recall_id)
    plain.rate(entry, 1)
    assert plain.store.improve().signals_added == 1


def test_facts_that_were_superseded_since_are_still_judged(shop: Shop) -> None:
    entry = shop.ask()
    shop.store.supersede(shop.facts[RETURNS], "Parcels may be returned within 45 days.")
    shop.rate(entry, 1)
    shop.store.improve()
    assert shop.signals() == [(RETURNS, "not_helpful", 1.0)]


@pytest.mark.nightly
def test_facts_that_were_forgotten_since_are_passed_over(shop: Shop) -> None:
    shop.rate(shop.ask(returns=0.5, refunds=0.5), 5)
    shop.store.forget(shop.facts[RETURNS])
    done = shop.store.improve()
    assert (done.signals_added, shop.signals()) == (1, [(REFUNDS, "helpful", 0.5)])
    assert shop.store.improve().changed is False
    shop.store.forget(shop.facts[REFUNDS])
    assert shop.store.improve().changed is False
    assert shop.is_well()


def test_the_ratings_of_a_forgotten_dataset_change_nothing(shop: Shop) -> None:
    entry = shop.ask()
    shop.rate(entry, 5)
    shop.store.improve()
    shop.store.forget(dataset="main_dataset")
    shop.store.sessions.delete_feedback("s", entry.qa_id)
    shop.rate(entry, 1)
    assert shop.store.improve().signals_added == 0
    shop.store.remember(RETURNS)
    assert shop.store.improve().changed is False
    assert shop.is_well()


def test_a_clock_that_steps_back_changes_no_rating(shop: Shop) -> None:
    entry = shop.ask()
    shop.rate(entry, 5)
    shop.clock.advance(days=-30)
    shop.store.improve()
    assert shop.signals() == [(RETURNS, "helpful", 1.0)]
    shop.store.sessions.delete_feedback("s", entry.qa_id)
    assert shop.signals() == []
    assert shop.is_well()


@pytest.mark.slow
def test_two_projects_learn_apart(open_either: Callable[..., Heedful]) -> None:
    scores = {}
    stores = {name: open_either(project=name) for name in ("one", "other")}
    for name, store in stores.items():
        fact = store.remember(RETURNS).facts[0].fact_id
        result = store.recall(QUESTION, session_id="s")
        assert result.qa_id is not None
        store.sessions.add_feedback("s", result.qa_id, feedback_score=5 if name == "one" else 1)
        scores[name] = fact
    stores["one"].improve()
    assert stores["other"].fact_stats(scores["other"]).overall_usefulness == 0.5
    stores["other"].improve()
    stores["one"].sessions.delete("s")
    assert stores["one"].fact_stats(scores["one"]).overall_usefulness == 0.5
    assert stores["other"].fact_stats(scores["other"]).overall_usefulness == pytest.approx(0.4)


@pytest.mark.slow
def test_links_that_led_to_an_answer_are_judged_with_it(shop: Shop) -> None:
    shop.store.remember(["Ada Lovelace works with Charles Babbage.", "Charles Babbage lives in London."])
    question = "Where does the colleague of Ada Lovelace live?"
    before = [(hit.text, hit.score) for hit in shop.store.recall(question, mode="graph")]
    result = shop.store.recall(question, mode="graph", session_id="s")
    assert result.qa_id is not None
    linked = {line.fact_id: line.links for line in shop.store.receipt(result.recall_id).shown if line.links}
    assert linked
    fact, links = next(iter(linked.items()))
    entry = shop.store.sessions.add_entry("t", question, "London.", recall_id=result.recall_id, used=[fact])
    shop.rate(entry, 5)
    done = shop.store.improve(session_ids=["t"])
    assert (done.signals_added, done.link_signals_added) == (1, len(links))
    assert shop.store.improve().changed is False
    shop.store.sessions.delete_feedback("t", entry.qa_id)
    assert [(hit.text, hit.score) for hit in shop.store.recall(question, mode="graph")] == before
    assert shop.store.improve().changed is False
    assert shop.is_well()


def test_the_influence_of_feedback_is_the_weight_of_usefulness(plain: Shop) -> None:
    plain.rate(plain.ask(software=1.0), 5)
    plain.rate(plain.ask(returns=1.0), 1)
    plain.store.improve()

    def scores(**options: Any) -> list[tuple[str, float]]:
        return [(hit.text, hit.score) for hit in plain.store.recall(QUESTION, **options)]

    for influence in (0.0, 0.3, 0.5, 1.0, 1):
        assert scores(feedback_influence=influence) == scores(
            boost_by_usefulness=influence > 0, usefulness_weight=influence
        )
    assert scores(feedback_influence=0.0) == scores(boost_by_usefulness=False)
    assert scores(feedback_influence=1.0)[0][0] == SOFTWARE
    assert scores(feedback_influence=0.2, usefulness_weight=0.9) == scores(feedback_influence=0.2)
    for bad in (-0.1, 1.1, True, "0.5", float("nan")):
        with pytest.raises(Invalid) as error:
            plain.store.recall(QUESTION, feedback_influence=bad)  # type: ignore[arg-type]
        assert error.value.field == "feedback_influence"


@pytest.mark.slow
def test_what_a_crash_left_between_two_databases_is_fixed(
    open_store: Callable[..., Heedful], mongodb_url: str, clock: ManualClock, path: Path
) -> None:
    shop = Shop(open_store(sessions=mongodb_url), clock, path)
    result = shop.store.recall(QUESTION, session_id="s")
    assert result.qa_id is not None
    before = shop.state()
    shop.store.sessions.add_feedback("s", result.qa_id, "No, parcels may be returned within 45 days.", 1)
    assert shop.store.improve().learnt
    store = shop.store._project.sessions.store
    store.write(lambda tx: tx.feedbacks.withdraw(tx.feedbacks.active("entry", [result.qa_id]), None, 0))
    assert shop.signals() != []
    done = shop.store.improve()
    assert (done.signals_retracted, len(done.forgotten)) == (1, 1)
    assert shop.state() == before
    assert shop.store.improve().changed is False
    assert shop.is_well()


@pytest.mark.slow
def test_what_a_crash_left_of_a_deleted_session_is_fixed(
    open_store: Callable[..., Heedful], mongodb_url: str, clock: ManualClock, path: Path
) -> None:
    shop = Shop(open_store(sessions=mongodb_url), clock, path)
    before = shop.state()
    shop.rate(shop.ask(), 5)
    shop.rate_session("up")
    shop.store.improve()
    shop.store._project.sessions.store.write(lambda tx: tx.conversations.delete("s", 0))
    assert shop.store.improve().signals_retracted == 1
    clock.now = ManualClock().now
    assert shop.state() == before


def test_a_mongodb_that_lost_its_sessions_takes_their_signals_with_it(
    open_store: Callable[..., Heedful], mongodb_url: str, clock: ManualClock, path: Path
) -> None:
    shop = Shop(open_store(sessions=mongodb_url), clock, path)
    shop.rate(shop.ask(), 5)
    shop.store.improve()
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        for name in ("sessions", "entries", "feedbacks", "events"):
            client.get_default_database()[name].delete_many({})
    assert shop.store.improve().signals_retracted == 1
    assert shop.signals() == []


@pytest.mark.slow
def test_processes_that_improve_at_once_count_everything_once(
    open_either: Callable[..., Heedful], clock: ManualClock, path: Path
) -> None:
    stores = [open_either() for _ in range(3)]
    shop = Shop(stores[0], clock, path)
    entries = [shop.ask(f"s{number % 3}", returns=0.5, refunds=0.5) for number in range(6)]
    for number, entry in enumerate(entries):
        shop.rate(entry, (1, 5)[number % 2], "No, it is 45 days.")
    with ThreadPoolExecutor(3) as pool:
        done: list[Improvement] = list(pool.map(lambda store: store.improve(), stores))
    assert sum(each.signals_added for each in done) == 12
    assert len(shop.signals()) == 12
    assert sum(each.signals_retracted for each in done) == 0
    assert shop.store.improve().changed is False
    assert shop.is_well()


@pytest.mark.parametrize("rated", ["before", "meanwhile"])
def test_what_another_process_improves_meanwhile_is_neither_lost_nor_counted_twice(
    open_either: Callable[..., Heedful], clock: ManualClock, path: Path, monkeypatch: pytest.MonkeyPatch, rated: str
) -> None:
    slow, quick = open_either(), open_either()
    shop = Shop(quick, clock, path)
    entry = shop.ask()
    if rated == "before":
        shop.rate(entry, 5)
    read, written = threading.Event(), threading.Event()
    original = slow._project.sessions.store.read

    def reading(body: Any) -> Any:
        result = original(body)
        if threading.current_thread() is not threading.main_thread() and not read.is_set():
            read.set()
            assert written.wait(20)
        return result

    monkeypatch.setattr(slow._project.sessions.store, "read", reading)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(slow.improve)
        assert read.wait(20)
        if rated == "meanwhile":
            shop.rate(entry, 5)
        assert quick.improve().signals_added == 1
        written.set()
        assert running.result().signals_added == 0
    assert quick.improve().changed is False
    assert shop.signals() == [(RETURNS, "helpful", 1.0)]


def test_improving_runs_in_the_background_when_facts_are_remembered(shop: Shop) -> None:
    shop.rate(shop.ask(), 5)
    shop.store.remember("Parcels are weighed.")
    assert shop.signals() == []
    shop.store.remember("Parcels are stamped.", self_improvement=True)
    shop.store.close()
    assert shop.signals() == [(RETURNS, "helpful", 1.0)]


@pytest.mark.slow
def test_a_failure_in_the_background_is_logged_and_tried_again(
    plain: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain.rate(plain.ask(), 5)
    improvement = Project.improve
    failures = iter([RuntimeError("no such luck")])

    def improve(*arguments: Any) -> Improvement:
        for failure in failures:
            raise failure
        return improvement(*arguments)

    monkeypatch.setattr(Project, "improve", improve)
    with caplog.at_level(logging.ERROR, "heedful"):
        plain.store.remember("Parcels are weighed.", self_improvement=True)
        deadline = time.monotonic() + 60
        while (job := plain.store.jobs.list().items[0]).status != "done":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        plain.store.close()
    assert plain.signals() == [(RETURNS, "helpful", 1.0)]
    assert (job.attempts, job.error) == (2, None)
    assert [record.getMessage() for record in caplog.records] == ["improve failed in the background (attempt 1)"]


@pytest.mark.usefixtures("warm_processes")
@pytest.mark.slow
def test_improving_in_the_background_is_done_before_the_process_exits(plain: Shop, path: Path) -> None:
    plain.rate(plain.ask(), 5)
    program = """
import sys, heedful
from heedful.testing import WordEmbedder
store = heedful.open(sys.argv[1], embedding=WordEmbedder())
store.remember("Parcels are weighed.", self_improvement=True)
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert plain.signals() == [(RETURNS, "helpful", 1.0)]


def test_a_language_model_that_fails_while_it_reads_facts_undoes_no_signal(
    open_store: Callable[..., Heedful], clock: ManualClock, path: Path
) -> None:
    def broken(messages: Any) -> str:
        raise heedful.Unavailable("the model is gone")

    shop = Shop(open_store(language_model=ScriptedModel(broken)), clock, path)
    shop.rate(shop.ask(), 5)
    with pytest.raises(heedful.Unavailable):
        shop.store.improve()
    assert shop.signals() == [(RETURNS, "helpful", 1.0)]
    assert shop.is_well()


class TestWhatIsForgotten:
    def test_takes_the_lesson_that_was_made_from_it_along(self, either: Heedful) -> None:
        fact, _ = either.remember(["Parcels can be returned for 30 days", "Bob cooks"]).fact_ids
        recall = either.recall("return window")
        entry = either.sessions.add_entry(
            "s", "What is the return window?", "Thirty days, from delivery.", recall_id=recall.recall_id, used=[fact]
        )
        either.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
        assert len(either.improve().learnt) == 1
        either.forget(fact)
        assert [hit.text for hit in either.recall("return window")] == ["Bob cooks"]
        assert either.improve().learnt == []

    def test_a_signal_of_ones_own_survives_the_rating_that_said_the_same(self, either: Heedful) -> None:
        fact, _ = either.remember(["Parcels can be returned for 30 days", "Bob cooks"]).fact_ids
        recall = either.recall("return window", session_id="s")
        assert recall.qa_id is not None
        entry = either.sessions.entry("s", recall.qa_id)
        assert entry.used is not None
        assert [used.fact_id for used in entry.used] == [fact]
        either.sessions.add_feedback("s", recall.qa_id, feedback_score=5)
        either.improve()
        either.signal_recall(recall.recall_id, helpful=[fact])
        assert either.fact_stats(fact).signal_count == 2
        either.sessions.delete_feedback("s", recall.qa_id)
        assert either.fact_stats(fact).signal_count == 1


def test_rated_answers_that_use_no_known_fact_are_counted(shop: Shop) -> None:
    sessions = shop.store.sessions
    shop.rate(shop.ask(), 5)
    shown = shop.store.recall(QUESTION)
    for recall_id in (shown.recall_id, None):
        entry = sessions.add_entry("s", QUESTION, "No.", recall_id=recall_id)
        assert sessions.add_feedback("s", entry.qa_id, feedback_score=1)
    for done in (shop.store.improve(), shop.store.improve(session_ids=["s"])):
        assert (done.entries, done.without_facts) == (3, 2)
    assert shop.store.improve("main_dataset").without_facts == 1
