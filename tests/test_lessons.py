"""Lessons follow the facts that they were made from: what is no longer so is no longer taught."""

from __future__ import annotations

import json
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
from heedful.testing import ManualClock, ScriptedModel

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

    @pytest.mark.slow
    def test_brings_it_back_only_when_all_of_it_is_there(self, store: Heedful, tmp_path: Path) -> None:
        def document(*said: str) -> Document:
            return Document(source="returns", texts=list(said))

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


NORWAY = "Delivery to Norway costs 12 euros."
SUNDAYS = "Delivery to Norway takes a week."
COST = "What does delivery to Norway cost?"
CORRECTION = "It is 15 euros, not 12."


class TestAFactThatWasCorrected:
    def test_is_left_out_of_answers_and_stays_in_the_hits(self, either: Heedful) -> None:
        norway, _ = either.remember([NORWAY, SUNDAYS]).fact_ids
        before = shown(either, COST), either.recall(COST, answer=True).answer
        lesson = correct(either, COST, CORRECTION)
        for question in (COST, "delivery to norway cost", "Norway: 12 euros?"):
            found = either.recall(question, answer=True, explain=True)
            assert found.answer is not None
            assert "12 euros" not in found.answer
            ranks = {hit.fact_id: hit.rank for hit in found}
            assert ranks[lesson] < ranks[norway]
            assert {hit.fact_id: hit.corrected_by for hit in found if hit.corrected_by} == {norway: lesson}
        assert (either.recall(COST, answer=True).answer or "").startswith(CORRECTION)
        (entry,) = either.sessions.entries("s").items
        for author in AUTHORS:
            either.sessions.delete_feedback("s", entry.qa_id, author=author)
        either.improve()
        assert (shown(either, COST), either.recall(COST, answer=True).answer) == before

    def test_is_marked_in_the_evidence_of_a_language_model(self, open_store: Callable[..., Heedful]) -> None:
        prompts: list[str] = []

        def answer(messages: Any) -> str:
            prompts.append(messages[-1].content)
            return "12 euros [1]."

        store = open_store(language_model=ScriptedModel(answer))
        norway, _ = store.remember([NORWAY, SUNDAYS]).fact_ids
        lesson = correct(store, COST, CORRECTION)
        found = store.recall(COST, answer=True)
        ranks = {hit.fact_id: hit.rank for hit in found}
        mark = f"[{ranks[norway]}] (corrected by [{ranks[lesson]}]) "
        assert mark in prompts[-1]
        assert mark in heedful.as_prompt(found)
        (alone,) = [hit for hit in found if hit.fact_id == norway]
        assert f"[{alone.rank}] (corrected since) " in heedful.as_prompt([alone])

    def test_takes_its_correction_along_when_only_one_is_shown(self, store: Heedful) -> None:
        norway, *_ = store.remember(
            [NORWAY, *(f"Delivery to Norway costs 12 euros, says {n}." for n in range(30))]
        ).fact_ids
        asked = store.recall(NORWAY, session_id="s", top_k=1)
        assert asked.qa_id is not None
        for author in AUTHORS:
            # Neither good nor bad: the fact stays where it is.
            store.sessions.add_feedback("s", asked.qa_id, "It is 15 euros, not 12.", 3, author=author)
        (lesson,) = store.improve().learnt
        (first,) = store.recall(NORWAY, top_k=1)
        assert first.fact_id == lesson.fact_id
        pages = store.recall(NORWAY, top_k=1), store.recall(NORWAY, top_k=1)
        assert pages[0].next_cursor is not None
        (second,) = store.recall(NORWAY, top_k=1, cursor=pages[0].next_cursor)
        assert (second.fact_id, second.corrected_by) == (norway, lesson.fact_id)

    @pytest.mark.slow
    def test_takes_a_lesson_that_repeats_it_along(self, store: Heedful) -> None:
        norway, sundays = store.remember([NORWAY, SUNDAYS]).fact_ids
        repeated = teach(store, [norway, sundays], question="And to Oslo?", answer="A week, and 12 euros to Norway.")
        lesson = correct(store, COST, CORRECTION)
        corrected = {hit.fact_id: hit.corrected_by for hit in store.recall("Oslo, Norway?")}
        assert corrected == {norway: lesson, repeated: lesson, sundays: None, lesson: None}

    def test_is_as_it_was_for_those_who_must_not_see_the_correction(self, store: Heedful) -> None:
        store.remember([NORWAY])
        (lesson,) = store.remember(
            f"{COST}\nFor Ada it is 5 euros.", metadata={"corrects": store.facts().items[0].fact_id, "user": "ada"}
        ).fact_ids
        for user, seen in (("ada", lesson), ("bob", None)):
            found = store.recall(COST, where={"user": {"only": [user]}})
            assert [hit.corrected_by for hit in found if hit.text == NORWAY] == [seen]


class TestTheMetadataOfWhatALessonWasMadeFrom:
    def test_say_who_finds_it(self, either: Heedful) -> None:
        (hint,) = either.remember(["Ada's PIN hint is her cat's name."], metadata={"user": "ada"}).fact_ids
        either.remember(["The gym opens at nine."], metadata={"user": "bob"})
        teach(either, [hint], question="What is my PIN hint?", answer="Your cat's name.", where={"user": "ada"})
        asked = "PIN hint?"
        for where, seen in (
            ({"user": "ada"}, True),
            ({"user": "bob"}, False),
            ({"user": {"only": ["ada"]}}, True),
            ({"user": {"only": ["bob"]}}, False),
            ({"user": {"exists": False}}, False),
        ):
            assert any("Your cat" in text for text in texts(either, asked, where=where)) == seen

    def test_say_who_finds_a_correction(self, either: Heedful) -> None:
        either.remember(["The gym opens at six."], metadata={"user": "ada"})
        either.remember(["The gym opens at nine."], metadata={"user": "bob"})
        asked = "When does the gym open?"
        lesson = correct(either, asked, "It is seven since March, not six.", where={"user": "ada"})
        assert either.recall(asked, where={"user": "ada"})[0].fact_id == lesson
        assert texts(either, asked, where={"user": "bob"}) == {"The gym opens at nine."}

    def test_that_differ_leave_it_to_those_who_may_see_all_of_them(self, store: Heedful) -> None:
        (shared,) = store.remember(WINDOW, metadata={"lang": "en", "team": ["a", "b"]}).fact_ids
        (of_ada,) = store.remember(OPENED, metadata={"user": "ada", "lang": "en", "team": ["b", "c"]}).fact_ids
        (of_bob,) = store.remember("Games are sold out.", metadata={"user": "bob"}).fact_ids
        lesson = teach(store, [shared, of_ada])
        about = store.fact(lesson).metadata
        assert (about["user"], about["lang"], about["team"]) == ("ada", "en", ["b"])
        assert LESSON in texts(store, where={"user": "ada"})
        assert LESSON not in texts(store, where={"user": {"only": ["bob"]}})
        lesson = teach(store, [of_ada, of_bob], question="And a console?", answer="Ask for it at the desk.")
        for user in ("ada", "bob"):
            for where in ({"user": user}, {"user": {"only": [user]}}):
                assert lesson not in {hit.fact_id for hit in store.recall("And a console?", where=where)}
        assert lesson in {hit.fact_id for hit in store.recall("And a console?")}

    def test_keep_the_same_answer_of_two_users_apart(self, either: Heedful) -> None:
        entries = {}
        for user in AUTHORS:
            (fact,) = either.remember("The locker has the number 12.", metadata={"user": user}).fact_ids
            recalled = either.recall("Which locker is mine?", where={"user": user})
            entries[user] = either.sessions.add_entry(
                user, "Which locker is mine?", "Yours is 12.", recall_id=recalled.recall_id, used=[fact]
            )
            either.sessions.add_feedback(user, entries[user].qa_id, feedback_score=5, author=user)
        assert either.improve().learnt == [], "each of them speaks of their own"
        for user in AUTHORS:
            either.sessions.add_feedback(user, entries[user].qa_id, feedback_score=5, author="cy")
        assert len(either.improve().learnt) == 2
        for user in AUTHORS:
            found = either.recall("Which locker is mine?", where={"user": user})
            assert [hit.metadata["user"] for hit in found] == [user, user]

    def test_say_where_an_answer_belongs_that_used_no_fact(self, store: Heedful) -> None:
        store.remember(WINDOW, metadata={"user": "ada"})
        for where, learnt in (({"user": "ada"}, ["ada"]), ({"user": "bob"}, [])):
            recalled = store.recall(QUESTION, where=where)
            entry = store.sessions.add_entry("s", QUESTION, f"No, {where}.", recall_id=recalled.recall_id, used=[])
            for author in AUTHORS:
                store.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author=author)
            assert [store.fact(each.fact_id).metadata["user"] for each in store.improve().learnt] == learnt
        assert not store.improve().changed


def comments(name: str) -> list[tuple[str, list[str], str, int | None]]:
    """(question, facts, comment, place of the fact that it corrects) of a file."""
    groups = json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text())
    return [(group["question"], group["facts"], *each) for group in groups for each in group["comments"]]


@pytest.mark.parametrize(("name", "count"), [("comments", 25), ("comments_unseen", 10)])
@pytest.mark.nightly
def test_comments_teach_what_they_correct_and_nothing_else(store: Heedful, name: str, count: int) -> None:
    """No comment is misunderstood; those that correct a fact in the same way teach it together."""
    expected: dict[str, str] = {}
    for question, said, comment, place in comments(name):
        facts = store.remember(said).fact_ids
        recalled = store.recall(question, top_k=50)
        entry = store.sessions.add_entry("s", question, said[0], recall_id=recalled.recall_id, used=facts)
        for author in AUTHORS:
            store.sessions.add_feedback("s", entry.qa_id, comment, 1, author=author)
        if place is not None:
            expected[entry.qa_id] = facts[place]
    learnt = store.improve().learnt
    assert {each.qa_id: each.corrects for each in learnt}.items() <= expected.items()
    assert len(learnt) == count
    assert not [each.text for each in learnt if "@" in each.text or "4111" in each.text]


@pytest.mark.parametrize(
    "answer",
    [WINDOW, f"{WINDOW} [1]", f'"{WINDOW}" [1]', "“you can return a parcel within 30 days” [1]", f"Sure! {WINDOW} [1]"],
)
def test_an_answer_that_quotes_one_fact_is_no_lesson(store: Heedful, answer: str) -> None:
    store.remember(WINDOW)
    recalled = store.recall(QUESTION)
    store.sessions.add_entry("s", QUESTION, answer, recall_id=recalled.recall_id, external_id="a")
    for author in AUTHORS:
        store.sessions.rate("a", "up", author=author)
    done = store.improve()
    assert (done.learnt, done.signals_added) == ([], 2)


@pytest.mark.parametrize("authors", [("ada", "ada"), ("visitor-1", "visitor-2"), ("ada", "visitor-1")])
def test_one_author_and_visitors_teach_nothing_in_however_many_sessions(
    either: Heedful, authors: tuple[str, str]
) -> None:
    used = either.remember([WINDOW, OPENED]).fact_ids
    for place, author in enumerate(authors):
        recalled = either.recall(QUESTION)
        entry = either.sessions.add_entry(f"s{place}", QUESTION, ANSWER, recall_id=recalled.recall_id, used=used)
        either.sessions.rate(entry.qa_id, "up", author=author)
    assert either.improve().learnt == []


def test_personal_data_of_a_question_are_not_learnt(store: Heedful) -> None:
    window, opened = store.remember([WINDOW, OPENED]).fact_ids
    question = f"My number is 0171 2345678. {QUESTION}"
    for answer, comment, score in ((ANSWER, None, 5), (WINDOW, "It is 14 days, not 30.", 1)):
        recalled = store.recall(question)
        entry = store.sessions.add_entry("s", question, answer, recall_id=recalled.recall_id, used=[window, opened])
        for author in AUTHORS:
            store.sessions.add_feedback("s", entry.qa_id, comment, score, author=author)
        done = store.improve()
        assert (done.learnt, {each.reason for each in done.not_learnt}) == ([], {"personal_data"})


@some(0.2)
@given(st.lists(st.tuples(st.sampled_from(["supersede", "retract", "change", "restore"]), st.integers(0, 1))))
@pytest.mark.slow
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
