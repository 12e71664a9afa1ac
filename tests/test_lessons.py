"""Lessons follow the facts that they were made from: what is no longer so is no longer taught."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

import heedful
from heedful import Document, Heedful
from heedful.testing import ManualClock, WordEmbedder

WINDOW = "You can return a parcel within 30 days."
OPENED = "Opened software can't be returned."
SHORTER = "You can return a parcel within 14 days."
QUESTION = "Can I give back a game?"
ANSWER = "Yes, within 30 days, as long as you have not opened it."
LESSON = f"{QUESTION}\n{ANSWER}"
AUTHORS = ("ada", "ben")


def teach(store: Heedful, used: list[str], *, question: str = QUESTION, answer: str = ANSWER, **recall: Any) -> str:
    """Has two authors rate an answer that used these facts, and returns the fact that is learnt from it."""
    recalled = store.recall(question, top_k=50, **recall)
    entry = store.sessions.add_entry("s", question, answer, recall_id=recalled.recall_id, used=used)
    for author in AUTHORS:
        store.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author=author)
    (lesson,) = store.improve(dataset=recalled.dataset).learnt
    return lesson.fact_id


def correct(store: Heedful, question: str, comment: str, **recall: Any) -> str:
    """Has two authors comment on an answer, and returns the fact that is learnt from it."""
    asked = store.recall(question, session_id="s", **recall)
    assert asked.qa_id is not None
    for author in AUTHORS:
        store.sessions.add_feedback("s", asked.qa_id, comment, 1, author=author)
    (lesson,) = store.improve().learnt
    return lesson.fact_id


def shown(store: Heedful, question: str = QUESTION, **recall: Any) -> list[Any]:
    return [(hit.fact_id, hit.text, hit.score) for hit in store.recall(question, **recall)]


def texts(store: Heedful, question: str = QUESTION, **recall: Any) -> set[str]:
    return {hit.text for hit in store.recall(question, **recall)}


class TestWhatALessonWasMadeFrom:
    def test_takes_it_along_when_it_is_superseded_and_brings_it_back(self, either: Heedful) -> None:
        window, opened = either.remember([WINDOW, OPENED]).fact_ids
        teach(either, [window, opened])
        before = shown(either)
        done = either.supersede(window, SHORTER)
        assert texts(either) == {SHORTER, OPENED}
        improved = either.improve()
        assert (improved.learnt, improved.forgotten) == ([], [])
        assert {fact.text for fact in either.facts().items} == {SHORTER, OPENED}
        either.retract(done.event_id)
        assert shown(either) == before
        assert not either.improve().changed

    def test_takes_it_along_when_its_file_changes_and_brings_it_back(self, either: Heedful, tmp_path: Path) -> None:
        file = tmp_path / "returns.md"
        file.write_text(f"{WINDOW}\n\n{OPENED}\n")
        teach(either, either.remember(file).fact_ids)
        before = shown(either)
        file.write_text(f"{SHORTER}\n\n{OPENED}\n")
        changed = either.remember(file)
        assert changed.removed == changed.added > 0
        assert not any("30 days" in text for text in texts(either))
        assert either.remember(file).removed == 0, "what was removed is not removed again"
        assert either.improve().forgotten == []
        file.write_text(f"{WINDOW}\n\n{OPENED}\n")
        either.remember(file)
        assert shown(either) == before
        assert not either.improve().changed

    def test_takes_it_along_when_it_expires(self, either: Heedful, clock: ManualClock) -> None:
        window, opened = either.remember([WINDOW, OPENED]).fact_ids
        lesson = teach(either, [window, opened])
        end = clock() + timedelta(hours=1)
        either.remember(WINDOW, expires_at=end)
        assert either.fact(lesson).expires_at == end
        either.remember(WINDOW)
        assert either.fact(lesson).expires_at is None
        either.remember(WINDOW, expires_at=end)
        clock.advance(hours=1)
        assert texts(either) == {OPENED}

    def test_may_be_a_lesson_itself(self, store: Heedful) -> None:
        window, opened = store.remember([WINDOW, OPENED]).fact_ids
        lesson = teach(store, [window, opened])
        teach(store, [lesson], question="Is a console a game?", answer="No, and it can be given back for 30 days.")
        before = shown(store)
        done = store.supersede(window, SHORTER)
        assert texts(store) == {SHORTER, OPENED}
        store.retract(done.event_id)
        assert shown(store) == before
        store.forget(window)
        assert texts(store) == {OPENED}

    def test_may_be_what_a_comment_corrects(self, either: Heedful) -> None:
        (window,) = either.remember([WINDOW]).fact_ids
        correct(either, "How long can I return a parcel?", "It is 14 days, not 30.")
        before = shown(either)
        done = either.supersede(window, "You can return a parcel within 21 days.")
        assert texts(either) == {"You can return a parcel within 21 days."}
        either.retract(done.event_id)
        assert shown(either) == before

    def test_does_not_bring_it_back_when_nobody_teaches_it_any_more(self, either: Heedful) -> None:
        window, opened = either.remember([WINDOW, OPENED]).fact_ids
        teach(either, [window, opened])
        done = either.supersede(window, SHORTER)
        (entry,) = either.sessions.entries("s").items
        for author in AUTHORS:
            either.sessions.delete_feedback("s", entry.qa_id, author=author)
        either.improve()
        either.retract(done.event_id)
        assert texts(either) == {WINDOW, OPENED}

    def test_brings_it_back_only_when_all_of_it_is_there(self, store: Heedful, tmp_path: Path) -> None:
        def document(*said: str) -> Document:
            return Document(source="returns", texts=said)

        window, opened = store.remember([document(WINDOW, OPENED)]).fact_ids
        teach(store, [window, opened])
        before = shown(store)
        done = store.supersede(window, SHORTER)
        store.remember([document("Games are sold out.")])
        store.retract(done.event_id)
        assert texts(store) == {"Games are sold out."}
        store.remember([document(WINDOW)])
        assert texts(store) == {WINDOW}
        store.remember([document(WINDOW, OPENED)])
        assert shown(store) == before
        assert all(check.ok for check in store.doctor(repair=False))

    def test_another_process_sees_it_at_once(self, open_store: Callable[..., Heedful]) -> None:
        one, other = open_store(), open_store()
        window, opened = one.remember([WINDOW, OPENED]).fact_ids
        teach(one, [window, opened])
        before = shown(other)
        assert LESSON in texts(other)
        done = one.supersede(window, SHORTER)
        assert texts(other) == {SHORTER, OPENED}
        other.retract(done.event_id)
        assert shown(one) == before

    def test_is_forgotten_with_it_even_while_it_is_suspended(self, store: Heedful) -> None:
        window, opened = store.remember([WINDOW, OPENED]).fact_ids
        lesson = teach(store, [window, opened])
        store.supersede(window, SHORTER)
        store.forget(opened)
        with pytest.raises(heedful.NotFound):
            store.fact(lesson)


@some(0.2)
@given(st.lists(st.tuples(st.sampled_from(["supersede", "retract", "change", "restore"]), st.integers(0, 1))))
def test_whatever_happens_to_two_facts_a_lesson_is_taught_while_both_are_so(
    new_store: Callable[..., Heedful], steps: list[tuple[str, int]]
) -> None:
    store = new_store(ManualClock())
    said = [WINDOW, OPENED]
    facts = [store.remember([Document(source=text, texts=[text])]).fact_ids[0] for text in said]
    teach(store, facts)
    before = shown(store)
    active: list[str | None] = [None, None]
    for step, place in steps:
        superseded = active[place]
        if step == "supersede" and superseded is None and said[place] in texts(store):
            active[place] = store.supersede(facts[place], f"Another fact, {place}.").event_id
        elif step == "retract" and superseded is not None:
            store.retract(superseded)
            active[place] = None
        elif step in ("change", "restore"):
            store.remember([Document(source=said[place], texts=[said[place] if step == "restore" else "Moved."])])
        found = texts(store)
        assert (LESSON in found) == (set(said) <= found)
    for event in filter(None, active):
        store.retract(event)
    for text in said:
        store.remember([Document(source=text, texts=[text])])
    assert shown(store) == before
    store.close()
