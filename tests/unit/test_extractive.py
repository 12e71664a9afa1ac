"""Answers without a language model: which sentences are quoted, and when none is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.memory.answer import LEARNT, MAX_LIST_SENTENCES, MAX_SENTENCES, NO_ANSWER, Use, Written, extract
from heedful.model import Hit
from heedful.providers.embedding import Embedder
from heedful.text.sentences import MAX_SENTENCE, answer_kind, asks_for_a_list, cited, sentences

SILENT = Written(NO_ANSWER, [], None, None)


def hits(*texts: str) -> list[Hit]:
    return [
        Hit(
            fact_id=f"fact-{place}",
            text=text,
            score=0.9 - 0.05 * place,
            relevance=0.9 - 0.05 * place,
            usefulness=0.5,
            usefulness_source="neutral",
            metadata={},
            rank=place,
        )
        for place, text in enumerate(texts, start=1)
    ]


def text(question: str, *texts: str) -> str:
    return extract(question, hits(*texts)).text


def test_the_sentence_that_answers_is_quoted_with_its_number() -> None:
    found = extract(
        "When does the Lyon office open?",
        hits(
            "The canteen is closed on Fridays. It serves lunch.",
            "Our Lyon office is near the river. The Lyon office opens at 9:30. Bring your badge.",
        ),
    )
    assert found == Written("The Lyon office opens at 9:30. [2]", [Use("fact-2", 1.0)], None, None)


def test_without_hits_nothing_answers() -> None:
    assert extract("When?", []) == SILENT


def test_facts_with_nothing_in_common_do_not_answer() -> None:
    found = extract(
        "What is the boiling point of mercury?", hits("The canteen is closed.", "The office opens at nine.")
    )
    assert found == SILENT


def test_a_question_without_any_word_is_not_answered() -> None:
    assert extract("???", hits("The canteen is closed.")) == SILENT
    assert extract("", hits("The canteen is closed.")) == SILENT


def test_a_question_is_no_answer() -> None:
    facts = ("When does the Lyon office open?", "Ada: When does the Lyon office open?!")
    assert text("When does the Lyon office open?", *facts) == NO_ANSWER
    assert text("When does the Lyon office open?", *facts, "The Lyon office opens at nine.").endswith("[3]")


def test_a_fact_that_is_a_question_with_its_answer_answers_that_question() -> None:
    facts = ("How long can I return shoes?\nIt is 45 days now.", "Shoes can be returned within 30 days.")
    assert text("How long can I return shoes?", *facts).startswith("It is 45 days now. [1]")


def test_what_was_learnt_does_not_answer_with_its_own_question() -> None:
    question = "return window for shoes"
    (learnt,) = hits(f"{question}\nIt is 45 days now.")
    found = extract(question, [learnt.model_copy(update={"metadata": {LEARNT: "feedback"}})])
    assert found.text == "It is 45 days now. [1]"


def test_the_same_is_said_once() -> None:
    said = "The Lyon office opens at nine."
    assert (
        text("When does the Lyon office open?", said, said.upper(), "The office in Lyon opens at nine.")
        == f"{said} [1]"
    )


def test_who_speaks_is_said_with_every_sentence() -> None:
    found = text("Where did Ada buy the telescope?", "Ada: What a day! I bought the telescope in Geneva.")
    assert found == "Ada: I bought the telescope in Geneva. [1]"


def test_few_sentences_are_quoted_and_more_for_a_list() -> None:
    facts = [
        f"One of the sponsors of the marathon is {name}."
        for name in ("Aral", "Bosch", "Canon", "Dior", "Esprit", "Fiat")
    ]
    question = "Who is a sponsor of the marathon?"
    few = extract(question, hits(*facts))
    many = extract("What are the sponsors of the marathon?", hits(*facts))
    assert 1 <= len(few.used) <= MAX_SENTENCES
    assert MAX_SENTENCES < len(many.used) <= MAX_LIST_SENTENCES


def test_shares_are_those_of_the_sentences() -> None:
    found = extract(
        "What are the rules of the library?",
        hits("The library rules say: no food. Library rules forbid phones in the hall.", "A library rule is silence."),
    )
    assert found.used == [Use("fact-1", 2 / 3), Use("fact-2", 1 / 3)]
    assert cited(found.text, 2) == pytest.approx({1: 2 / 3, 2: 1 / 3})


def test_sentences_of_one_fact_stay_in_their_order_and_together() -> None:
    found = text(
        "What are the steps to restart the gateway?",
        "First, to restart the gateway, stop its workers. The next step is to restart the gateway service itself.",
        "Another step: the gateway restart is logged to the audit file.",
    )
    assert found.index("First") < found.index("The next step") < found.index("Another step")


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        (
            "When was the bridge built?",
            "The bridge was built in 1932.",
            "The bridge was built with great care by many.",
        ),
        (
            "How many people built the bridge?",
            "The bridge was built by 240 workers.",
            "The bridge was built by workers.",
        ),
        ("Who built the bridge?", "The bridge was built by Otto Lindner.", "The bridge was built by local workers."),
        ("Where was the bridge built?", "The bridge was built near Passau.", "The bridge was built rather quickly."),
    ],
)
def test_the_kind_of_answer_that_is_asked_for_comes_first(question: str, answer: str, other: str) -> None:
    assert text(question, other, answer).startswith(f"{answer} [2]")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did it rain?", "time"),
        ("What year was that?", "time"),
        ("How long did it take?", "time"),
        ("How many are there?", "number"),
        ("Who was there when it rained?", "person"),
        ("Whose is it?", "person"),
        ("In which city was it?", "place"),
        ("Why?", None),
        ("Wann war das?", None),
    ],
)
def test_what_is_asked_for_is_told_from_the_question(question: str, kind: str | None) -> None:
    assert answer_kind(question) == kind


@pytest.mark.parametrize(
    ("question", "is_list"),
    [
        ("What are the steps?", True),
        ("List the sponsors.", True),
        ("Name all sponsors", True),
        ("Which books did she read?", True),
        ("What kinds of cheese are there?", True),
        ("What does she do?", False),
        ("Which class did she take?", False),
        ("When does it open?", False),
    ],
)
def test_lists_are_told_from_the_question(question: str, is_list: bool) -> None:
    assert asks_for_a_list(question) is is_list


def test_closeness_in_meaning_finds_what_words_do_not() -> None:
    facts = hits("The vessel left the harbour.", "The invoice was paid.")
    near = {"The vessel left the harbour.": 0.7, "The invoice was paid.": 0.1}
    questions: list[Sequence[str]] = []

    def similarity(texts: Sequence[str]) -> list[float]:
        questions.append(texts)
        return [near[each] for each in texts]

    assert extract("Did the ship depart?", facts) == SILENT
    assert extract("Did the ship depart?", facts, similarity).text == "The vessel left the harbour. [1]"
    assert questions == [["The vessel left the harbour.", "The invoice was paid."]]


def test_a_real_model_tells_what_answers_from_what_does_not(bundled: Embedder) -> None:
    facts = hits("The vessel departed at dawn. The crew had slept badly.", "We paid the invoice last week.")

    def ask(question: str) -> Written:
        return extract(question, facts, lambda texts: (bundled.embed(texts) @ bundled.embed([question])[0]).tolist())

    assert ask("What time did the ship leave?").text == "The vessel departed at dawn. [1]"
    assert ask("Which port does PostgreSQL listen on?") == SILENT


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Wann öffnet das Büro in Köln?", "Das Büro in Köln öffnet um 9 Uhr.", "Die Kantine ist freitags geschlossen."),
        ("Où se trouve la bibliothèque ?", "La bibliothèque se trouve à Lyon.", "Il pleut depuis hier."),
        ("東京タワーの高さは？", "東京タワーの高さは333メートルです。", "今日は雨が降っています。"),
        ("Когда открывается музей?", "Музей открывается в десять часов.", "Вчера шёл дождь."),
        ("متى يفتح المتحف؟", "يفتح المتحف في العاشرة.", "أمطرت أمس."),
    ],
)
def test_other_languages_are_answered_too(question: str, answer: str, other: str) -> None:
    assert (
        text(question, other, f"{answer}{other}" if answer.endswith("。") else f"{answer} {other}") == f"{answer} [2]"
    )


def test_a_text_without_punctuation_is_cut_at_words_and_shows_it() -> None:
    endless = " ".join(f"word{number}" for number in range(200)) + " the telescope costs 90 euros " + "and so on " * 40
    found = text("What does the telescope cost?", endless)
    assert "the telescope costs 90 euros" in found
    assert found.startswith("… ")
    assert len(found) <= MAX_SENTENCES * (MAX_SENTENCE + 10)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("Dr. Smith met Mr. J. Jones. They left.", ["Dr. Smith met Mr. J. Jones.", "They left."]),
        ("It costs 3.50 euros, e.g. for tea. Cheap!", ["It costs 3.50 euros, e.g. for tea.", "Cheap!"]),
        ("# Heading\n\n- One thing\n- Another thing\n1. First\n", ["One thing", "Another thing", "First"]),
        ("A line that is\nwrapped here. Next.", ["A line that is wrapped here.", "Next."]),
        ("Title\nBody starts.", ["Title", "Body starts."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("一つ。二つ！三つ", ["一つ。", "二つ！", "三つ"]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        (" \n\t\n", []),
    ],
)
def test_sentences_can_stand_alone(given_text: str, expected: list[str]) -> None:
    assert sentences(given_text) == expected


def test_a_word_without_an_end_is_cut() -> None:
    pieces = sentences("x" * 5000)
    assert all(len(piece) <= MAX_SENTENCE for piece in pieces)
    assert sum(piece.count("x") for piece in pieces) == 5000


@given(st.text(max_size=60), st.lists(st.text(max_size=900), max_size=5))
def test_any_text_gives_an_answer_that_cites_what_it_used(question: str, texts: list[str]) -> None:
    facts = hits(*texts)
    found = extract(question, facts)
    assert found == extract(question, facts)
    if found.used:
        assert sum(use.share for use in found.used) == pytest.approx(1.0)
        assert {use.fact_id for use in found.used} <= {hit.fact_id for hit in facts}
    else:
        assert found.text == NO_ANSWER


@given(
    st.lists(
        st.sampled_from(["Ada", "ran", "3.", "9:30.", "Dr.", "to", "it!", "?", "\n", "…", "。", "(x)"]), max_size=300
    )
)
def test_sentences_lose_no_word(parts: list[str]) -> None:
    body = "x " + " ".join(parts).replace("\n 3.", "\n")
    found = sentences(body)
    assert "".join("".join(found).split()).replace("…", "") == "".join(body.split()).replace("…", "")
    assert all(len(each) <= MAX_SENTENCE for each in found)


@given(st.text(max_size=2000))
def test_any_text_has_sentences_of_bounded_length(body: str) -> None:
    assert all(0 < len(each) <= MAX_SENTENCE for each in sentences(body))
