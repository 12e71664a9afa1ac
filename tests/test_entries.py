"""Entries: questions with their answers, and the evidence that these were made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from heedful import Heedful, Invalid, NotFound, Unavailable
from heedful.providers.llm import ChatMessage, Completion
from heedful.testing import ManualClock, ScriptedModel

FACTS = [
    "Parcels may be returned within 30 days.",
    "Opened software can not be returned.",
    "Refunds are paid within two weeks.",
]
QUESTION = "When may parcels be returned?"


@pytest.fixture
def remembered(either: Heedful) -> Heedful:
    either.remember(FACTS)
    return either


def with_model(open_either: Callable[..., Heedful], answers: Any) -> tuple[Heedful, ScriptedModel]:
    model = ScriptedModel(answers)
    store = open_either(language_model=model)
    store.remember(FACTS)
    return store, model


def fact(store: Heedful, start: str) -> str:
    return next(hit.fact_id for hit in store.recall(start, top_k=10) if hit.text.startswith(start))


def test_a_recall_in_a_session_keeps_question_answer_and_evidence(remembered: Heedful, clock: ManualClock) -> None:
    result = remembered.recall(QUESTION, session_id="s")
    assert result.session_id == "s"
    assert result.answer == "Parcels may be returned within 30 days. [1]"
    (entry,) = remembered.sessions.entries("s").items
    assert entry == remembered.sessions.entry("s", entry.qa_id)
    assert (entry.qa_id, entry.question, entry.answer, entry.time) == (result.qa_id, QUESTION, result.answer, clock.now)
    assert (entry.recall_id, entry.dataset, entry.model, entry.usage) == (result.recall_id, "main_dataset", None, None)
    assert (entry.feedback_text, entry.feedback_score) == (None, None)
    assert [(used.fact_id, used.share) for used in entry.used or ()] == [(result[0].fact_id, 1.0)]


def test_the_context_is_what_was_shown(remembered: Heedful) -> None:
    result = remembered.recall(QUESTION, session_id="s", top_k=2)
    (entry,) = remembered.sessions.entries("s").items
    assert entry.context == "\n\n".join(f"[{hit.rank}] {hit.text}" for hit in result)
    assert [line.fact_id for line in remembered.receipt(result.recall_id).shown] == [hit.fact_id for hit in result]
    remembered.remember("Parcels may be returned within 90 days, as of now.")
    assert remembered.sessions.entries("s").items == [entry]


def test_a_forgotten_fact_is_gone_from_the_context(remembered: Heedful) -> None:
    result = remembered.recall(QUESTION, session_id="s")
    remembered.forget(result[1].fact_id)
    (entry,) = remembered.sessions.entries("s").items
    assert entry.context == f"[1] {result[0].text}\n\n[3] {result[2].text}"
    remembered.forget(dataset="main_dataset")
    (entry,) = remembered.sessions.entries("s").items
    assert entry.context == ""
    assert entry.answer == result.answer


def test_a_superseded_fact_stays_the_evidence_it_was(remembered: Heedful) -> None:
    result = remembered.recall(QUESTION, session_id="s")
    remembered.supersede(result[0].fact_id, "Parcels may be returned within 45 days.")
    (entry,) = remembered.sessions.entries("s").items
    assert entry.context.startswith("[1] Parcels may be returned within 30 days.")
    assert remembered.recall(QUESTION, session_id="s").answer == "Parcels may be returned within 45 days. [1]"


def test_without_a_session_nothing_is_kept(remembered: Heedful) -> None:
    result = remembered.recall(QUESTION, answer=True)
    assert result.answer == "Parcels may be returned within 30 days. [1]"
    assert (result.session_id, result.qa_id) == (None, None)
    assert remembered.recall(QUESTION).answer is None
    assert remembered.sessions.list().items == []


def test_a_question_that_nothing_answers_is_kept_too(either: Heedful) -> None:
    either.remember(FACTS)
    result = either.recall("zebra quantum?", session_id="s", mode="lexical")
    assert result.answer == "Nothing that is remembered answers this."
    (entry,) = either.sessions.entries("s").items
    assert entry.used == []


def test_the_same_question_has_the_same_answer(remembered: Heedful) -> None:
    answers = {remembered.recall("What can be returned?", session_id=f"s{n}").answer for n in range(3)}
    assert len(answers) == 1


def test_entries_come_in_order_and_in_pages(either: Heedful) -> None:
    made = [either.sessions.add_entry("s", f"q{number}", f"a{number}") for number in range(5)]
    either.sessions.add_entry("t", "elsewhere", "a")
    first = either.sessions.entries("s", limit=2)
    second = either.sessions.entries("s", limit=2, cursor=first.next_cursor)
    third = either.sessions.entries("s", limit=2, cursor=second.next_cursor)
    assert [*first.items, *second.items, *third.items] == made
    assert third.next_cursor is None
    newest = either.sessions.entries("s", limit=3, newest_first=True)
    assert newest.items == made[:1:-1]
    rest = either.sessions.entries("s", limit=3, newest_first=True, cursor=newest.next_cursor)
    assert rest.items == made[1::-1]


def test_an_entry_belongs_to_its_session(either: Heedful) -> None:
    entry = either.sessions.add_entry("s", "q", "a")
    either.sessions.create("t")
    for session, qa_id in (("t", entry.qa_id), ("s", "nope"), ("nowhere", entry.qa_id)):
        with pytest.raises(NotFound):
            either.sessions.entry(session, qa_id)
    for bad in (None, 5, "", "\0", "\ud800"):
        with pytest.raises(Invalid):
            either.sessions.entry("s", bad)  # type: ignore[arg-type]


def test_an_answer_made_elsewhere_is_kept_with_its_evidence(remembered: Heedful) -> None:
    result = remembered.recall(QUESTION)
    entry = remembered.sessions.add_entry(
        "s", QUESTION, "A month.", recall_id=result.recall_id, used={result[0].fact_id: 0.6, result[1].fact_id: 0.2}
    )
    assert [(used.fact_id, used.share) for used in entry.used or ()] == [
        (result[0].fact_id, 0.75),
        (result[1].fact_id, 0.25),
    ]
    assert entry.context.startswith("[1] Parcels")
    assert entry == remembered.sessions.entry("s", entry.qa_id)
    named = remembered.sessions.add_entry(
        "s", "q", "a", recall_id=result.recall_id, used=[hit.fact_id for hit in result]
    )
    assert [used.share for used in named.used or ()] == [0.333333] * 3
    none = remembered.sessions.add_entry("s", "q", "a", recall_id=result.recall_id, used=[])
    assert none.used == []
    own = remembered.sessions.add_entry("s", "q", "", context="what I read")
    assert (own.context, own.answer, own.used, own.dataset) == ("what I read", "", None, None)


def test_weights_of_nothing_are_no_use(remembered: Heedful) -> None:
    result = remembered.recall(QUESTION)
    entry = remembered.sessions.add_entry("s", "q", "a", recall_id=result.recall_id, used={result[0].fact_id: 0})
    assert entry.used == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"question": ""}, "question"),
        ({"question": " "}, "question"),
        ({"question": None}, "question"),
        ({"question": "x" * 10_001}, "question"),
        ({"question": "\0"}, "question"),
        ({"answer": None}, "answer"),
        ({"answer": "\ud800"}, "answer"),
        ({"answer": "x" * 1_000_001}, "answer"),
        ({"context": 5}, "context"),
        ({"context": "\0"}, "context"),
        ({"recall_id": 5}, "recall_id"),
        ({"used": ["a-fact"]}, "used"),
    ],
)
def test_a_bad_entry_is_refused_by_name(store: Heedful, values: dict[str, Any], field: str) -> None:
    arguments: dict[str, Any] = {"question": "q", "answer": "a", **values}
    with pytest.raises(Invalid) as error:
        store.sessions.add_entry("s", **arguments)
    assert error.value.field == field
    assert not store.sessions.exists("s")


@pytest.mark.parametrize("used", ["ID", ["nope"], {"nope": 1.0}, {"ID": 2}, {"ID": True}, {"ID": float("nan")}, [5], 5])
def test_facts_that_were_not_shown_can_not_have_been_used(store: Heedful, used: Any) -> None:
    store.remember(FACTS)
    result = store.recall(QUESTION)
    first = result[0].fact_id
    given = first if used == "ID" else {first: used["ID"]} if isinstance(used, dict) and "ID" in used else used
    unknown = isinstance(used, list | dict) and "nope" in used
    with pytest.raises(NotFound if unknown else Invalid) as error:
        store.sessions.add_entry("s", "q", "a", recall_id=result.recall_id, used=given)
    assert getattr(error.value, "field", None) == "used"
    assert not store.sessions.exists("s")


def test_a_recall_of_another_project_is_no_evidence(open_either: Callable[..., Heedful]) -> None:
    one, other = open_either(project="one"), open_either(project="other")
    one.remember(FACTS)
    result = one.recall(QUESTION)
    for recall_id in (result.recall_id, "nope"):
        with pytest.raises(NotFound):
            other.sessions.add_entry("s", "q", "a", recall_id=recall_id)
    assert not other.sessions.exists("s")


def test_a_language_model_writes_and_what_it_cites_was_used(open_either: Callable[..., Heedful]) -> None:
    store, model = with_model(open_either, ["Within 30 days [1]. Refunds take two weeks [2][1]."])
    shown = store.recall(QUESTION)
    parts: list[str] = []
    result = store.recall(QUESTION, session_id="s", on_token=parts.append)
    assert result.answer == "Within 30 days [1]. Refunds take two weeks [2][1]." == "".join(parts)
    (entry,) = store.sessions.entries("s").items
    assert entry.model == model.name
    assert entry.usage is not None
    assert entry.usage.completion_tokens == 9
    assert (entry.usage.prompt_tokens or 0) > 30
    shares = {used.fact_id: used.share for used in entry.used or ()}
    assert shares == {
        shown[0].fact_id: pytest.approx(2 / 3, abs=1e-6),
        shown[1].fact_id: pytest.approx(1 / 3, abs=1e-6),
    }
    prompt = model.prompts[0][-1].content
    assert all(hit.text in prompt for hit in shown)
    assert QUESTION in prompt


def test_a_language_model_is_told_the_turns_before(open_either: Callable[..., Heedful]) -> None:
    store, model = with_model(open_either, [f"Answer {number} [1]." for number in range(9)])
    store.recall("An other conversation?", session_id="t")
    for number in range(8):
        store.recall(f"Question {number}?", session_id="s")
    messages = [(message.role, message.content) for message in model.prompts[-1][1:-1]]
    assert messages == [
        turn
        for number in range(1, 7)
        for turn in (("user", f"Question {number}?"), ("assistant", f"Answer {number + 1}."))
    ]


def test_of_an_answer_without_citations_it_is_detected_what_it_used(open_either: Callable[..., Heedful]) -> None:
    store, _ = with_model(open_either, ["Opened software can not be returned.", "I don't know.", "See [7]."])
    store.recall("Can software be returned?", session_id="s")
    (entry,) = store.sessions.entries("s").items
    assert [used.fact_id for used in entry.used or ()] == [fact(store, "Opened software")]
    assert sum(used.share for used in entry.used or ()) == pytest.approx(1)
    store.recall("zebra?", session_id="s")
    store.recall("zebra?", session_id="s")
    assert [each.used for each in store.sessions.entries("s").items[1:]] == [[], []]


class Failing:
    """A language model that gives up in the middle of a sentence."""

    name = "failing"

    def complete(self, messages: Sequence[ChatMessage], *, on_token: Callable[[str], None] | None = None) -> Completion:
        if on_token is not None:
            on_token("Within")
        raise Unavailable("the model is gone")


def test_when_the_language_model_fails_nothing_is_kept(open_either: Callable[..., Heedful]) -> None:
    store = open_either(language_model=Failing())
    store.remember(FACTS)
    parts: list[str] = []
    with pytest.raises(Unavailable, match="the model is gone"):
        store.recall(QUESTION, session_id="s", on_token=parts.append)
    assert parts == ["Within"]
    assert not store.sessions.exists("s")


@pytest.mark.parametrize("scripted", [True, False])
def test_an_error_of_on_token_reaches_the_caller_and_nothing_is_kept(
    open_either: Callable[..., Heedful], scripted: bool
) -> None:
    store = open_either(language_model=ScriptedModel(["Within 30 days [1]."]) if scripted else None)
    store.remember(FACTS)

    def broken(part: str) -> None:
        raise BrokenPipeError(part)

    with pytest.raises(BrokenPipeError):
        store.recall(QUESTION, session_id="s", on_token=broken)
    assert not store.sessions.exists("s")


def test_on_token_without_an_answer_is_refused(store: Heedful) -> None:
    store.remember(FACTS)
    with pytest.raises(Invalid) as error:
        store.recall(QUESTION, on_token=print)
    assert error.value.field == "on_token"


def test_on_token_gets_an_answer_that_no_model_wrote(store: Heedful) -> None:
    store.remember(FACTS)
    parts: list[str] = []
    result = store.recall(QUESTION, answer=True, on_token=parts.append)
    assert "".join(parts) == result.answer


def test_what_no_store_can_hold_is_taken_out_of_an_answer(open_either: Callable[..., Heedful]) -> None:
    store, _ = with_model(open_either, ["Within\0 30 \ud800days [1]."])
    result = store.recall(QUESTION, session_id="s")
    (entry,) = store.sessions.entries("s").items
    assert result.answer == entry.answer == "Within 30 ?days [1]."


def test_a_very_long_answer_is_kept_and_looked_through(open_either: Callable[..., Heedful]) -> None:
    # One long sentence, because looking through many takes its time.
    store, _ = with_model(open_either, ["Opened software can not be returned. " + "z" * 120_000])
    store.recall("Can software be returned?", session_id="s")
    (entry,) = store.sessions.entries("s").items
    assert len(entry.answer) > 120_000
    assert [used.fact_id for used in entry.used or ()] == [fact(store, "Opened software")]


def test_an_answer_kept_by_one_process_is_read_by_another(open_either: Callable[..., Heedful]) -> None:
    with open_either() as first:
        first.remember(FACTS)
        result = first.recall(QUESTION, session_id="s")
    (entry,) = open_either().sessions.entries("s").items
    assert (entry.qa_id, entry.answer) == (result.qa_id, result.answer)
    assert entry.context.startswith("[1] Parcels")


def test_other_datasets_answer_for_themselves(remembered: Heedful) -> None:
    remembered.remember("Parcels may be returned within 7 days.", dataset="other")
    result = remembered.recall(QUESTION, dataset="other", session_id="s")
    assert result.answer == "Parcels may be returned within 7 days. [1]"
    (entry,) = remembered.sessions.entries("s").items
    assert entry.dataset == "other"


def test_a_recall_that_can_not_be_made_leaves_no_session(remembered: Heedful) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: remembered.recall(" ", session_id="s"),
        lambda: remembered.recall(QUESTION, session_id="s", dataset="nope"),
        lambda: remembered.recall(QUESTION, session_id="s", top_k=0),
        lambda: remembered.recall(QUESTION, session_id="s", feedback_influence=1.5),
    ]
    for call in calls:
        with pytest.raises((Invalid, NotFound)):
            call()
    assert remembered.sessions.list().items == []
