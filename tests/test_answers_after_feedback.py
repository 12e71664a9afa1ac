"""What the next answer to a question is made from, after people liked or disliked the one before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heedful import Heedful, Recall
from heedful.ledger.used_facts import DISLIKED
from heedful.memory.answer import MARK
from heedful.testing import ScriptedModel

QUESTION = "When does the Lyon office open?"
OLD = "The Lyon office opens at nine."
NEW = "The Lyon office opens at ten in summer."
OTHER = "The canteen serves soup on Fridays."


def ask(store: Heedful, session: str = "s", question: str = QUESTION) -> Recall:
    found = store.recall(question, session_id=session)
    assert found.qa_id is not None
    return found


def rate(store: Heedful, found: Recall, score: int, author: str = "ada") -> None:
    store.sessions.add_feedback(str(found.session_id), str(found.qa_id), feedback_score=score, author=author)
    store.improve()


@pytest.mark.parametrize("score", [1, 2])
def test_after_one_no_the_next_answer_is_another_and_undo_restores_the_first(store: Heedful, score: int) -> None:
    store.remember([OLD, NEW, OTHER])
    first = ask(store)
    assert first.answer == f"{NEW} [2]"
    rate(store, first, score)
    assert ask(store, "t").answer == f"{OLD} [1]"
    store.sessions.delete_feedback("s", str(first.qa_id), author="ada")
    assert store.recall(QUESTION, answer=True).answer == first.answer


def test_without_a_comparable_fact_the_answer_says_that_it_was_disliked(either: Heedful) -> None:
    (fact,) = either.remember([OLD]).fact_ids
    either.remember(OTHER)
    first = ask(either)
    assert first.answer == f"{OLD} [1]"
    rate(either, first, 1)
    second = ask(either, "t")
    assert second.answer == f"{DISLIKED} {OLD} [1]"
    assert [use.fact_id for use in either.sessions.entry("t", str(second.qa_id)).used or ()] == [fact]
    rate(either, second, 5, "bo")
    rate(either, second, 5, "cy")
    assert ask(either, "u").answer == first.answer


def test_the_notice_is_neither_learnt_nor_detected(open_store: Callable[..., Heedful]) -> None:
    store = open_store(language_model=ScriptedModel(lambda messages: f"{DISLIKED} Nine in the morning [1]."))
    fact, better = store.remember([OLD, "Nothing better was known before, and it was disliked."]).fact_ids
    found = ask(store)
    for author in ("ada", "bo"):
        store.sessions.add_feedback("s", str(found.qa_id), feedback_score=5, author=author)
    assert [lesson.text for lesson in store.improve().learnt] == [f"{QUESTION}\nNine in the morning."]
    shown = store.recall(QUESTION).recall_id
    detected = {each.fact_id: each.signal_type for each in store.detect(f"{DISLIKED} {OLD}", shown)}
    assert detected[fact] == "used"
    assert detected[better] != "used"


def test_what_was_liked_is_quoted_again(store: Heedful) -> None:
    store.remember([OLD, NEW, OTHER])
    assert store.recall(QUESTION, answer=True).answer == f"{NEW} [2]"
    found = store.recall(QUESTION)
    (liked,) = [hit for hit in found if hit.text == OLD]
    entry = store.sessions.add_entry("s", QUESTION, "At nine.", recall_id=found.recall_id, used=[liked.fact_id])
    store.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author="ada")
    store.improve()
    again = ask(store, "t", "When does the Lyon office open")
    assert [use.fact_id for use in store.sessions.entry("t", str(again.qa_id)).used or ()] == [liked.fact_id]


def test_a_question_about_something_else_is_answered_as_before(store: Heedful) -> None:
    store.remember([OLD, NEW, OTHER])
    before = store.recall("What does the canteen serve?", answer=True).answer
    rate(store, ask(store), 1)
    assert store.recall("What does the canteen serve?", answer=True).answer == before


def test_without_boost_feedback_has_no_effect_on_the_answer(store: Heedful) -> None:
    store.remember([OLD, OTHER])
    first = ask(store)
    rate(store, first, 1)
    assert store.recall(QUESTION, answer=True, boost_by_usefulness=False).answer == first.answer


def test_a_language_model_is_told_what_was_disliked(open_store: Callable[..., Heedful]) -> None:
    prompts: list[str] = []

    def answered(messages: object) -> str:
        prompts.append(str(messages))
        return "At nine [1]."

    store = open_store(language_model=ScriptedModel(answered))
    store.remember([OLD, NEW])
    first = ask(store)
    assert MARK not in prompts[-1]
    assert len(store.sessions.entry("s", str(first.qa_id)).used or ()) == 1
    rate(store, first, 1)
    again = store.recall(QUESTION, answer=True)
    assert prompts[-1].count(f"] {MARK}") == 1
    assert DISLIKED in prompts[-1]
    (disliked,) = [hit for hit in again if hit.usefulness < 0.5]
    assert f"[{disliked.rank}] {MARK}" in prompts[-1]


def test_a_rating_credits_what_the_answer_said_and_nothing_else_that_was_shown(store: Heedful) -> None:
    store.remember([OLD, NEW, OTHER, "The Lyon office has a garden.", "Lyon is a city in France."])
    found = store.recall(QUESTION)
    entry = store.sessions.add_entry("s", QUESTION, "The Lyon office opens at nine.", recall_id=found.recall_id)
    store.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author="ada")
    store.improve()
    assert [hit.text for hit in store.recall(QUESTION) if hit.usefulness != 0.5] == [OLD]
