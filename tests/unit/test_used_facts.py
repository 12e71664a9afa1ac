import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.ledger.used_facts import Attribution, attribute, rarity_among
from heedful.testing import WordEmbedder
from heedful.text.same_question import PLAIN
from heedful.text.words import sentences, words

FACTS = [
    "The office in Lisbon opens at nine and closes at six.",
    "Maria adopted a greyhound called Biscuit last spring.",
    "Invoices over 5,000 euros need a second signature.",
    "The roof garden is watered by the night porter.",
    "Parking permits are renewed every January by the front desk.",
]


def attributed(answer: str, facts: list[str], query: str = "") -> list[Attribution]:
    """The attributions, with cosines by words."""
    parts = sentences(answer)
    embed = WordEmbedder(256).embed
    vectors = embed(facts) if facts else np.zeros((0, 256), np.float32)
    near = embed(parts) @ vectors.T if parts else np.zeros((0, len(facts)), np.float32)
    overall = embed([f"{query} {answer}"])[0] @ vectors.T
    return attribute(parts, facts, near, overall, query=query, calibration=PLAIN)


def signals(answer: str, facts: list[str], query: str = "") -> list[str | None]:
    return [each.signal_type for each in attributed(answer, facts, query)]


@pytest.mark.parametrize("place", range(len(FACTS)))
def test_a_copied_sentence_is_used_and_the_others_are_ignored(place: int) -> None:
    found = attributed(FACTS[place], FACTS)
    assert found[place].signal_type == "used"
    assert found[place].confidence > 0.95
    for other in found[:place] + found[place + 1 :]:
        assert other.signal_type == "ignored"
        assert other.confidence > 0.9


def test_one_copied_fact_that_was_shown_alone_is_used() -> None:
    assert signals(FACTS[1], FACTS[1:2]) == ["used"]


def test_an_answer_about_something_else_used_none() -> None:
    answer = "Copper conducts electricity better than iron, which is why most household cables contain it."
    assert signals(answer, FACTS) == ["ignored"] * len(FACTS)
    assert signals(answer, FACTS[:1]) == ["ignored"]


def test_each_of_two_facts_in_one_sentence_is_used() -> None:
    answer = "Biscuit, the greyhound Maria adopted, likes the roof garden that the night porter waters."
    assert signals(answer, FACTS) == ["ignored", "used", "ignored", "used", "ignored"]


def test_other_forms_of_the_words_count() -> None:
    assert signals("Renewing a parking permit is done at the front desk.", FACTS)[4] == "used"


def test_a_paraphrase_in_other_words_leaves_its_fact_open() -> None:
    near = np.array([[0.45, 0.32, 0.10]])
    facts = ["The desk is staffed Monday to Friday.", "Refunds take a week.", "Shipping is free."]
    found = attribute(["You may phone our people any weekday during normal business hours."], facts, near)
    assert [each.signal_type for each in found] == [None, "ignored", "ignored"]


def test_what_all_facts_say_proves_nothing() -> None:
    facts = [f"Acme support notes, internal use only: {told}" for told in ("routers blink", "cables fray", "fans hum")]
    assert "used" not in signals("From the Acme support notes, internal use only.", facts)
    assert signals("From the Acme support notes, internal use only: cables fray.", facts) == [
        "ignored",
        "used",
        "ignored",
    ]


@pytest.mark.parametrize(
    ("answer", "used"), [("Revenue was 41 million euros in 2023.", 0), ("In 2024, 57 million.", 1)]
)
@pytest.mark.parametrize("others", [[], FACTS])
def test_numbers_decide_between_facts_that_are_nearly_the_same(answer: str, used: int, others: list[str]) -> None:
    facts = ["Revenue in 2023 was 41 million euros.", "Revenue in 2024 was 57 million euros.", *others]
    found = signals(answer, facts)
    assert found[used] == "used"
    assert found.count("used") == 1


def test_another_number_is_no_proof() -> None:
    fact = "Revenue in 2023 was 41 million euros."
    assert signals("Revenue in 2024 was 57 million euros.", [fact, *FACTS])[0] != "used"
    assert signals("Revenue in 2024 was 57 million euros.", [fact]) != ["used"]


def test_repeating_the_question_is_no_proof() -> None:
    question = "Who called the greyhound Biscuit?"
    assert "used" in signals("Somebody called the greyhound Biscuit.", FACTS)
    assert "used" not in signals("Somebody called the greyhound Biscuit.", FACTS, question)


@pytest.mark.parametrize("answer", ["", "  \n", "Yes.", "No, it is not.", "…"])
def test_an_answer_that_says_nothing_leaves_it_open(answer: str) -> None:
    found = attributed(answer, FACTS)
    assert [each.signal_type for each in found] == [None] * len(FACTS)
    assert {each.confidence for each in found} == {0.0}


def test_no_facts() -> None:
    assert attributed("Anything.", []) == []
    assert attributed("", []) == []


def test_two_equal_facts_get_the_same() -> None:
    first, second, *_ = attributed(FACTS[0], [FACTS[0], FACTS[0], *FACTS[1:]])
    assert first == second
    assert signals(FACTS[0], [FACTS[0]] * 2) == [None, None]


def test_reasons_name_what_was_found() -> None:
    reasons = attributed("Invoices over 5000 euros need another signature, says Maria.", FACTS)[2].reasons
    assert reasons[0] == 'both say "Invoices over 5000 euros need"'
    assert "numbers in common: 5000" in reasons


def test_rarity_from_the_caller_is_used() -> None:
    near = np.zeros((1, 2))
    facts = ["blue whale", "green parrot"]
    assert attribute(["A whale"], facts, near)[0].probability > 0.5
    assert attribute(["A whale"], facts, near, rarity=lambda term: 0.0)[0].probability < 0.5


@pytest.mark.parametrize(("near", "overall"), [((2, 2), None), ((1, 3), None), ((1, 2), (3,))])
def test_cosines_of_another_shape_are_refused(near: tuple[int, int], overall: tuple[int] | None) -> None:
    with pytest.raises(ValueError, match="1 sentences and 2 facts"):
        attribute(["a"], ["b", "c"], np.zeros(near), None if overall is None else np.zeros(overall))


def test_cosines_that_are_no_numbers_count_as_none() -> None:
    near = np.full((1, 2), np.nan)
    assert attribute([FACTS[0]], FACTS[:2], near) == attribute([FACTS[0]], FACTS[:2], np.zeros((1, 2)))


VOCABULARY = ["the", "a", "in", "Maria", "Lisbon", "ACME", "cat", "cats", "blue", "2023", "7", "ten", "May", "不", "."]
texts = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join))
fact_lists = st.lists(texts, max_size=6)


@given(texts, fact_lists, texts)
def test_bounds(answer: str, facts: list[str], query: str) -> None:
    found = attributed(answer, facts, query)
    assert len(found) == len(facts)
    for each in found:
        assert 0.0 <= each.probability <= 1.0
        assert 0.0 <= each.confidence <= 1.0
        assert (each.confidence == 0.0) == (each.signal_type is None)
        assert each.reasons or each.signal_type == "used"


@given(texts, fact_lists, st.randoms(use_true_random=False))
@pytest.mark.slow
def test_the_order_of_facts_does_not_matter(answer: str, facts: list[str], random: Random) -> None:
    order = list(range(len(facts)))
    random.shuffle(order)
    straight = attributed(answer, facts)
    for place, each in zip(order, attributed(answer, [facts[place] for place in order]), strict=True):
        assert each.probability == pytest.approx(straight[place].probability, abs=1e-6)


@given(fact_lists.filter(bool), st.text(max_size=10))
def test_rarity_is_a_fraction(facts: list[str], term: str) -> None:
    rarity = rarity_among(facts)
    for each in [term, *(word.term for fact in facts for word in words(fact))]:
        assert 0.0 <= rarity(each) <= 1.0
        assert math.isfinite(rarity(each))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("1,000 and 1000", ["1000", "1000"]),
        ("on 15April, the 15th", ["15", "april", "15"]),
        ("2023-05-08", ["2023", "5", "8"]),
        ("ten dogs, a dog's dinner", ["10", "dog", "dog", "dinner"]),
        ("I didn't, he's, they’ll", []),
        ("we may march in March", ["may", "march", "march"]),
    ],
)
def test_words_meet_in_one_term(text: str, terms: list[str]) -> None:
    assert [word.term for word in words(text) if word.kind != "common"] == terms


def test_names_are_told_by_capitals_inside_a_sentence() -> None:
    kinds = {word.term: word.kind for word in words("Yesterday Bo met NASA staff. Everybody sang")}
    assert kinds == {"yesterday": "word", "bo": "name", "met": "word", "nasa": "name", "staff": "word"} | {
        "everybodi": "word",
        "sang": "word",
    }
