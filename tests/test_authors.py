"""Names of authors: what is a name, who is a visitor, and that no spelling of a name makes somebody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from server import KEY
from wires import served

import heedful
from heedful import Heedful, Invalid, Signal, api
from heedful.testing import ManualClock

QUESTION = "When does the gym open?"
FACTS = ["The gym opens at six.", "The gym opens its doors at six in summer."]
UP = {"rating": "up"}

CALLS: dict[str, Callable[[Any, str, Any], Any]] = {
    "signal_recall": lambda store, fact, author: store.signal_recall("r", used=[fact], author=author),
    "retract": lambda store, fact, author: store.retract("e", author=author),
    "supersede": lambda store, fact, author: store.supersede(fact, "It opens at seven.", author=author),
    "forget": lambda store, fact, author: store.forget(author=author),
    "sessions.add_feedback": lambda store, fact, author: store.sessions.add_feedback(
        "s", "q", "Good", 5, author=author
    ),
    "sessions.rate": lambda store, fact, author: store.sessions.rate("run-1", "up", author=author),
    "sessions.delete_feedback": lambda store, fact, author: store.sessions.delete_feedback("s", "q", author=author),
    "sessions.add_session_feedback": lambda store, fact, author: store.sessions.add_session_feedback(
        "s", UP, author=author
    ),
    "feedback.create": lambda store, fact, author: store.feedback.create(
        is_positive=True, execution_id="x", author=author
    ),
    "feedback.create_positive": lambda store, fact, author: store.feedback.create_positive(
        execution_id="x", author=author
    ),
    "feedback.create_negative": lambda store, fact, author: store.feedback.create_negative(
        execution_id="x", author=author
    ),
    "chat.confirm_suggestion": lambda store, fact, author: store.chat.confirm_suggestion(QUESTION, "x", author=author),
    "chat.chat_to_sql": lambda store, fact, author: store.chat.chat_to_sql("s", QUESTION, author=author),
    "chat.chat_to_answer": lambda store, fact, author: store.chat.chat_to_answer("s", QUESTION, author=author),
    "chat.execution_cache_lookup": lambda store, fact, author: store.chat.execution_cache_lookup(
        QUESTION, author=author
    ),
    "keys.create_token": lambda store, fact, author: store.keys.create_token([{"session_id": "s"}], author=author),
    "review.assign": lambda store, fact, author: store.review.assign("i", "mara", author=author),
    "review.resolve": lambda store, fact, author: store.review.resolve("i", author=author),
    "review.dismiss": lambda store, fact, author: store.review.dismiss("i", author=author),
    "review.reopen": lambda store, fact, author: store.review.reopen("i", author=author),
    "review.fix": lambda store, fact, author: store.review.fix("i", "retract", event_id="e", author=author),
    "review.undo": lambda store, fact, author: store.review.undo("e", author=author),
}


def test_every_call_with_an_author_is_tried() -> None:
    named = {name for name, operation in api.CALLS.items() if "author" in operation.request.model_fields}
    assert set(CALLS) == named


@pytest.mark.parametrize("author", ["", " \t\n", "\u200b", "x" * 201, "a\0b", 7])
def test_what_is_no_name_is_refused_by_every_call(store: Heedful, author: Any) -> None:
    (fact,) = store.remember(FACTS[0]).fact_ids
    with served(store) as url, heedful.connect(url, api_key=KEY) as remote:
        for memory in (store, remote):
            for name, call in CALLS.items():
                with pytest.raises(Invalid) as caught:
                    call(memory, fact, author)
                assert caught.value.field == "author", name
            with pytest.raises(Invalid) as caught:
                memory.signal([{"fact_id": fact, "signal_type": "used", "query": QUESTION, "author": author}])
            assert caught.value.field == "signals[0].author"


def test_the_error_says_what_to_do(store: Heedful) -> None:
    with pytest.raises(Invalid) as caught:
        store.sessions.rate("run-1", "up", author=" ")
    assert str(caught.value).startswith("author must be a name, got ' '")
    assert caught.value.remedy == "Leave it out if your program itself gives the feedback"
    with pytest.raises(Invalid, match="author has 201 characters, the limit is 200"):
        store.sessions.rate("run-1", "up", author="x" * 201)


def test_white_space_around_a_name_makes_nobody_else(either: Heedful) -> None:
    either.remember(FACTS)
    answered = either.recall(QUESTION, session_id="s", top_k=1)
    for number, name in enumerate(["ada", " ada", "ada\t", "\u3000ada\u200b"]):
        assert either.sessions.add_feedback("s", str(answered.qa_id), "No, it opens at nine.", 1, author=name)
        either.sessions.add_session_feedback("s", {"rating": "up", "comment": str(number)}, author=name)
    assert [each.author for each in either.sessions.feedbacks("s").items] == ["ada"]
    assert either.improve().learnt == [], "one author under four spellings"
    assert either.sessions.delete_feedback("s", str(answered.qa_id), author="ada ")
    assert either.sessions.entry("s", str(answered.qa_id)).feedback_score is None
    assert either.forget(author=" ada").erased is not None
    assert [each.author_kind for each in either.sessions.feedbacks("s").items] == ["named"]
    assert "ada" not in [each.author for each in either.sessions.feedbacks("s").items]


@pytest.mark.parametrize("name", ["visitor-7", "Visitor-7", " VISITOR-7", "\u200bvisitor-7\n"])
@pytest.mark.nightly
def test_no_spelling_of_a_visitors_name_is_a_named_author(either: Heedful, name: str) -> None:
    facts = either.remember(FACTS).fact_ids
    before = [(hit.fact_id, hit.score) for hit in either.recall(QUESTION)]
    answered = either.recall(QUESTION, session_id="s", top_k=1)
    either.sessions.rate("run-1", "up", author=name)
    either.sessions.add_entry("s", QUESTION, "At six.", external_id="run-1")
    either.sessions.add_feedback("s", str(answered.qa_id), "No, it opens at nine.", 1, author=name)
    either.sessions.add_session_feedback("s", UP, author=name)
    either.signal([Signal(fact_id=facts[1], signal_type="helpful", query=QUESTION, author=name)])
    either.signal_recall(answered.recall_id, helpful=[facts[0]], author=name)
    opinions = either.sessions.feedbacks("s").items
    assert {(each.author, each.author_kind) for each in opinions} == {("visitor-7", "visitor")}
    done = either.improve()
    assert (done.learnt, done.signals_added, done.visitor_ratings) == ([], 0, 3)
    assert [(hit.fact_id, hit.score) for hit in either.recall(QUESTION)] == before
    token = either.keys.create_token({"session_id": "s"}, author=name)
    assert (token.author, token.author_kind) == ("visitor-7", "visitor")


def test_scores_are_the_same_after_reopening_whatever_the_names(
    open_store: Callable[..., Heedful], clock: ManualClock
) -> None:
    store = open_store()
    fact = store.remember(FACTS).fact_ids[1]
    for author in (None, None, "ada", " ada", "Visitor-1", "ben\u200b", "x" * 200):
        store.signal([Signal(fact_id=fact, signal_type="helpful", query=QUESTION, author=author)])
        clock.advance(seconds=1)
    with pytest.raises(Invalid):
        store.signal([{"fact_id": fact, "signal_type": "helpful", "query": QUESTION, "author": ""}])

    def scores(opened: Heedful) -> list[tuple[str, float, float]]:
        return [(hit.fact_id, hit.score, hit.usefulness) for hit in opened.recall(QUESTION)]

    before = scores(store)
    store.close()
    assert scores(open_store()) == before
