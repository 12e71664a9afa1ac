"""Inflections, and what small words say of the words that they belong to."""

import pytest

from heedful.sql.reuse.grammar import opposition, verbs
from heedful.sql.reuse.question_reading import canonical
from heedful.sql.reuse.question_words import Mark, gerund_of, past_of, singular

SINGULAR = """
planes plane; plans plan; cities city; classes class; houses house; statuses status; viruses virus; boxes box
leaves leave; knives knife; children child; women woman; movies movie; heroes hero; shoes shoe; analyses analysis
courses course; expenses expense; purchases purchase; addresses address; topics topic; lives live; goes go
series series; news news; economics economics; savings savings; bus bus; class class; analysis analysis; texas texas
"""
VERBS = """
rated rating rate; planned planning plan; carried carrying carry; cited citing cite; visited visiting visit
borrowed borrowing borrow; enrolled enrolling enroll; cancelled cancelling cancel; created creating create
changed changing change; called calling call; closed closing close; required requiring require; paid paying pay
"""
APART = [
    ("rate", "rating"),
    ("park", "parking"),
    ("plans", "planes"),
    ("close", "closed"),
    ("economic", "economics"),
    ("call", "called"),
    ("saving", "savings"),
]


def rows(text: str) -> list[tuple[str, ...]]:
    return [tuple(row.split()) for row in text.replace("\n", ";").split(";") if row.strip()]


@pytest.mark.parametrize(("word", "base"), rows(SINGULAR))
def test_a_plural_or_third_person_has_one_base(word: str, base: str) -> None:
    assert singular(word) == base


@pytest.mark.parametrize(("past", "gerund", "verb"), rows(VERBS))
def test_past_forms_and_gerunds_have_the_same_verb(past: str, gerund: str, verb: str) -> None:
    assert (past_of(past), gerund_of(gerund)) == (verb, verb)


@pytest.mark.parametrize(("one", "other"), APART)
def test_words_that_only_begin_alike_stay_apart(one: str, other: str) -> None:
    assert canonical((one, "fee")) != canonical((other, "fee"))


SAID = [
    ("which books are borrowed", "borrowed", Mark("", "passive", "present")),
    ("which books are still being borrowed", "borrowed", Mark("", "passive", "present")),
    ("which books had been borrowed", "borrowed", Mark("", "passive", "past")),
    ("when was the book borrowed", "borrowed", Mark("", "passive", "past")),
    ("which customers have not paid", "paid", Mark("", "active", "past")),
    ("customers who paid", "paid", Mark("", "active", "past")),
    ("which customers called ‹name›", "called", Mark("", "active", "past")),
    ("which books has ‹name› borrowed", "borrowed", Mark("", "active", "past")),
    ("who has a mentor", "mentor", Mark("have", "", "present")),
    ("who is a mentor", "mentor", Mark("be", "", "present")),
    ("which are mentors of managers", "mentors", Mark("", "", "present")),
    ("employees with managers", "managers", Mark("have")),
    ("employees who were managers", "managers", Mark("be", "", "past")),
    ("which city has the largest population", "population", Mark("have", "", "present")),
    ("what was the salary of ‹name›", "salary", Mark("", "", "past")),
    ("who was ‹name› s manager", "manager", Mark("be", "", "past")),
]
UNSAID = [
    "papers presented at ‹venue›",
    "customers called ‹name›",
    "are there any books",
    "how many rivers does ‹state› have",
    "what cities are in ‹state›",
]


@pytest.mark.parametrize(("question", "word", "mark"), SAID)
def test_small_words_say_something_of_another(question: str, word: str, mark: Mark) -> None:
    words = tuple(question.split())
    assert verbs(words).marks == {words.index(word): mark}


@pytest.mark.parametrize("question", UNSAID)
def test_small_words_that_say_nothing(question: str) -> None:
    assert not [mark for mark in verbs(tuple(question.split())).marks.values() if mark.voice or mark.main]


def test_what_is_not_said_opposes_nothing() -> None:
    present, past, unsaid = Mark("", "passive", "present"), Mark("", "passive", "past"), Mark("", "passive", "")
    assert opposition(past, [present])
    assert opposition(past, [present, unsaid])
    assert not opposition(unsaid, [present])
    assert not opposition(past, [unsaid])
    assert not opposition(past, [present, past])
    assert not opposition(past, [])
