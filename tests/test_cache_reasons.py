"""Why the cache uses or refuses a proven query: one plain sentence, in the words that people typed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from heedful import Heedful
from heedful.errors import Unavailable
from heedful.model import CacheMatch
from heedful.sql.reuse.reasons import Difference, shown_the_same

SCHEMA = """
CREATE TABLE patient (name TEXT, city TEXT, state TEXT, age INTEGER, since TEXT, allergy TEXT);
INSERT INTO patient VALUES ('Ann Lee', 'Boston', 'Ohio', 40, '2024-01-05', 'Peanuts'),
  ('Bob Ray', 'Denver', 'Maine', 50, '2025-01-05', 'Milk'), ('Cy Moss', 'Paris', 'Ohio', 60, '2025-02-05', 'Milk');
CREATE TABLE river (name TEXT, length INTEGER);
INSERT INTO river VALUES ('Ohio', 981), ('Rhine', 820);
CREATE TABLE flight (origin TEXT, goal TEXT);
INSERT INTO flight VALUES ('Boston', 'Denver'), ('Denver', 'Paris'), ('Paris', 'Boston');
CREATE TABLE film (title TEXT, genre TEXT);
INSERT INTO film VALUES ('Alien', 'Horror'), ('Aliens', 'Action'), ('Heat', 'Action');
CREATE TABLE tag (label TEXT);
INSERT INTO tag VALUES ('urgent'), ('Urgent'), ('late');
"""
CITY = "SELECT COUNT(*) FROM patient WHERE city = '{}'"
BORDER = "SELECT name FROM patient WHERE state = 'Maine'"


def write(folder: Path, sql: str) -> None:
    """Changes the database of the clinic, as somebody did some time ago."""
    path = folder / "clinic.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(sql)
    then = path.stat().st_mtime - 60
    os.utime(path, (then, then))


@pytest.fixture
def clinic(store: Heedful, tmp_path: Path) -> Heedful:
    write(tmp_path, SCHEMA)
    store.connectors.create("clinic", f"sqlite:///{tmp_path / 'clinic.sqlite'}")
    return store


def prove(store: Heedful, question: str, sql: str) -> str:
    done = store.executions.execute_query(sql, question=question).execution_id
    store.feedback.create_positive(execution_id=done)
    return done


def look(store: Heedful, question: str, **options: object) -> CacheMatch:
    return store.chat.execution_cache_lookup(question, similarity_threshold=0.0, **options).matches[0]  # type: ignore[arg-type]


REASONS = [
    ("How old did Bob Ray get in 2025?",
     "SELECT age FROM patient WHERE name = 'Bob Ray' AND since BETWEEN '2025-01-01' AND '2025-12-31'",
     "How old did Zoe get in 2025?", "scope",
     "You said “Zoe” and “2025”; the proven question says “bob ray in 2025”."),
    ("How many patients live in Boston?", CITY.format("Boston"), "how many patients live in Boston", "same",
     "The question is the same."),
    ("How many patients live in Boston?", CITY.format("Boston"), "How many patients live in Denver?", "rebind",
     "Only values differ: “Denver” for “Boston”."),
    ("Who is the oldest patient?", "SELECT name FROM patient ORDER BY age DESC LIMIT 1", "Who is the youngest patient?",
     "operators", "You asked for the “youngest”; proven is the “oldest”."),
    ("Which is the biggest river?", "SELECT name FROM river ORDER BY length DESC LIMIT 1",
     "Which is the smallest river?", "operators", "You asked for the “smallest”; proven is the “biggest”."),
    ("Which patients are over 45?", "SELECT name FROM patient WHERE age > 45", "Which patients are under 45?",
     "operators", "You asked for “under”; proven is “over”."),
    ("Which patients live in Boston?", "SELECT name FROM patient WHERE city = 'Boston'",
     "Which patients do not live in Boston?", "negation", "Only the question you asked says “do not”."),
    ("Which patients do not live in Boston?", "SELECT name FROM patient WHERE city <> 'Boston'",
     "Which patients live in Boston?", "negation", "Only the proven question says “do not”."),
    ("Which patients live in Boston?", "SELECT name FROM patient WHERE city = 'Boston'",
     "How many patients live in Boston?", "aggregate", "Only the question you asked says “How many”."),
    ("What is the average age of patients?", "SELECT AVG(age) FROM patient", "What is the total age of patients?",
     "aggregate", "You asked “total”; proven is “average”."),
    ("Which patients live in Boston?", "SELECT name FROM patient WHERE city = 'Boston'",
     "Do patients live in Boston?", "form", "Only the question you asked expects yes or no."),
    ("Do patients live in Boston?", "SELECT COUNT(*) > 0 FROM patient WHERE city = 'Boston'",
     "Which patients live in Boston?", "form", "Only the proven question expects yes or no."),
    ("Patients by city", "SELECT city, name FROM patient", "Patients by state", "words",
     "You said “state”; the proven question says “city”."),
    ("Which patients live in Boston or Denver?", "SELECT name FROM patient WHERE city IN ('Boston', 'Denver')",
     "Which patients live in Boston and Denver?", "scope", "You said “and”; the proven question says “or”."),
    ("Which comedies did Ann Lee see?", "SELECT 1 WHERE 'Ann Lee' = 'Ann Lee'", "Which dramas did Ann Lee see?",
     "words", "You said “dramas”; the proven question says “comedies”."),
    ("Which patients commented?", "SELECT name FROM patient", "Which patients?", "words",
     "Only the proven question says “commented”."),
    ("Which is the longest river?", "SELECT name FROM river ORDER BY length DESC LIMIT 1",
     "Which are the longest rivers?", "words", "You said “rivers”; the proven question says “river”."),
    ("Which doctors call patients?", "SELECT 1", "Which patients call doctors?", "argument_order",
     "The same words are in another order: you asked “patients call doctors”; proven is “doctors call patients”."),
    ("How many patients live in Boston?", CITY.format("Boston"), "How many patients live in Atlantis?", "literals",
     "You asked about “Atlantis”; proven is “Boston”."),
    ("How many patients live in Boston?", CITY.format("Boston"), "How many patients live?", "literals",
     "Only the proven question names “Boston”."),
    ("How many patients are there?", "SELECT COUNT(*) FROM patient", "How many patients are there in Boston?",
     "literals", "Only the question you asked names “Boston”."),
    ("Which patients of the 7 doctors are ill?", "SELECT name FROM patient", "Which patients of the 8 doctors are ill?",
     "literals", "The proven SQL doesn't use “7”, so it can't use “8” either."),
    ("How many patients live in Boston?", CITY.format("Boston"), "How many patients live in Denver, the Denver?",
     "literals", "Only the question you asked names “Denver”."),
    ("Which patients are from the state Ohio?", "SELECT name FROM patient WHERE state = 'Ohio'",
     "Which patients are from the state Rhine?", "literals", "You asked about “Rhine”; proven is “Ohio”."),
    ("Which patients see the Ohio?", "SELECT name FROM patient", "Which patients see Maine?", "literals",
     "You asked about “Maine”; proven is “Ohio”."),
    ("Which patients see Maine?", BORDER, "Which patients see Ohio?", "kind",
     "“Ohio” can also be a value of river.name."),
    ("Which heat films are like Aliens?", "SELECT genre FROM film WHERE title = 'Aliens'",
     "Which heat films are like Heat?", "literals", "“heat” appears more than once in the question."),
    ("Which patients are over 45?", "SELECT name FROM patient WHERE age > 45 OR age = 45",
     "Which patients are over 55?", "literals", "One proven question doesn't show where “45” goes in its SQL."),
    ("Top 2 rivers by length", "SELECT name FROM river ORDER BY length DESC LIMIT 2", "Top 2.5 rivers by length",
     "literals", "“2.5” is not a number of rows."),
    ("Which genre has Alien?", "SELECT genre FROM film WHERE title = 'Alien'", "Which genre has Heats?",
     "kind", "“Heats” is not a value of film.title; only “heat” is."),
    ("How many tags say late?", "SELECT COUNT(*) FROM tag WHERE label = 'late'", "How many tags say URGENT?",
     "kind", "tag.label has several spellings of “URGENT”."),
    ("How many patients live in Boston?", "SELECT COUNT(*) FROM patient WHERE LOWER(city) = 'boston'",
     "How many patients live in Denver?", "kind", "The proven SQL spells “Boston” differently from patient.city."),
    ("Which tags are “blue”?", "SELECT label FROM tag", "Which tags are “red”?", "words",
     "You said “red”; the proven question says “blue”."),
    ('Which tags come "the" late?', "SELECT label FROM tag", "Which tags come late?", "literals",
     "Only the proven question names “the”."),
    ("Who came last month?", "SELECT name FROM patient WHERE since >= '2025-12-01'", "Who came last week?",
     "relative_dates", "The proven SQL has only one end of “last week”."),
    ("What are the allergies?", "SELECT allergy FROM patient", "What are my allergies?", "asker",
     "Only the question you asked is in the first person."),
    ("Which patients are called Ann?", "SELECT allergy FROM patient", "Which patients called Ann?", "words",
     "You said “called”; the proven question says “are called”."),
    ("Who came on 2025-12-01?", "SELECT name FROM patient WHERE since = '2025-12-01'", "Who came on 2025-02-29?",
     "literals", "“2025-02-29” is not a date of the calendar."),
    ("Who came last month?", "SELECT name FROM patient", "Who came last week?",
     "relative_dates", "You asked about “last week” (2025-12-22 to 2025-12-28); "
     "proven is “last month” (2025-12-01 to 2025-12-31)."),
    ("Who came last month?", "SELECT name FROM patient", "Who came?",
     "relative_dates", "Only the proven question names “last month” (2025-12-01 to 2025-12-31)."),
    ("Who came yesterday?", "SELECT name FROM patient", "Who came today?",
     "relative_dates", "You asked about “today” (2026-01-01); proven is “yesterday” (2025-12-31)."),
    ("Which patients are ill?", f"SELECT name FROM patient WHERE age IN ({', '.join(map(str, range(1500)))})",
     "Which patients are ill?", "sql", "The proven SQL can't be read as one statement with all its values."),
    ("Which patients are ill?", "SELECT name FROM patient LIMIT 2", "Which patients are ill?", "determinism",
     "LIMIT without ORDER BY picks any rows."),
    ("Which patients are ill?", "SELECT name FROM patient", f"Which patients are ill{40 * ', where are they ill'}?",
     "words", "Questions of more than 100 words are only reused word for word."),
    ("What are my allergies?", "SELECT allergy FROM patient", "What are my allergies?", "asker",
     "A question in the first person is only reused for the author who proved it, or in the chat session where it was "
     "proven."),
]  # fmt: skip


@pytest.mark.parametrize(("proven", "sql", "asked", "gate", "sentence"), REASONS)
def test_the_reason_is_one_sentence_in_the_words_that_were_typed(
    clinic: Heedful, proven: str, sql: str, asked: str, gate: str, sentence: str
) -> None:
    prove(clinic, proven, sql)
    match = look(clinic, asked)
    assert (match.gate, match.reason) == (gate, sentence)


def test_words_that_other_questions_explain_are_named_as_they_were_typed(clinic: Heedful) -> None:
    for verb in ("treats", "cures"):
        prove(clinic, f"Who {verb} the patients of Boston?", "SELECT name FROM patient WHERE city = 'Boston'")
        prove(clinic, f"How many patients are there that Boston {verb}?", CITY.format("Boston"))
    prove(clinic, "Which states have somebody who treats patients of Boston?", "SELECT state FROM patient")
    match = look(clinic, "Which states have somebody who cures patients of Boston?")
    assert (match.decision, match.reason) == ("serve", "Other proven questions show that “cures” means “treats”.")
    assert match.differences == [match.reason]


def test_a_word_that_changes_nothing_is_named_once() -> None:
    learned = [Difference("learned", "value", ""), Difference("learned", "", "value")]
    assert shown_the_same(learned) == "Other proven questions show that “value” changes nothing."


def test_a_difference_is_a_sentence(clinic: Heedful) -> None:
    prove(clinic, "Which is the longest river in Ohio?", "SELECT name FROM river ORDER BY length DESC LIMIT 1")
    found = look(clinic, "Which are the shortest rivers in Ohio?").differences
    assert found == [
        "You asked for the “shortest”; proven is the “longest”.",
        "You said “rivers”; the proven question says “river”.",
    ]


def test_proven_questions_that_contradict_each_other_say_so(clinic: Heedful) -> None:
    prove(clinic, "Who is ill?", "SELECT name FROM patient")
    prove(clinic, "Who is ill?", "SELECT city FROM patient")
    assert look(clinic, "Who is ill?").reason == "The same words are also proven with different SQL."


def test_what_people_say_is_quoted(clinic: Heedful) -> None:
    done = prove(clinic, "Who is ill?", "SELECT name FROM patient")
    for author in ("ann", "bo"):
        clinic.feedback.create_negative(execution_id=done, feedback="The healthy ones, too", author=author)
    assert look(clinic, "Who is ill?").reason == (
        "Somebody marked this SQL, or the same SQL with other values, as wrong: “The healthy ones, too”."
    )


def test_a_stored_result_says_why_it_is_not_used(clinic: Heedful, tmp_path: Path) -> None:
    prove(clinic, "How many patients live in Boston?", CITY.format("Boston"))
    other = look(clinic, "How many patients live in Denver?", reuse="result")
    assert other.reason == "There is no stored result for other values."
    write(tmp_path, "DELETE FROM patient WHERE name = 'Ann Lee'")
    changed = look(clinic, "How many patients live in Boston?", reuse="result")
    assert changed.reason == "The data have changed since this SQL ran."
    write(tmp_path, "DROP TABLE patient")
    gone = look(clinic, "How many patients live in Boston?")
    assert gone.reason == "The database can't run this: no such table: patient."
    clinic.connectors.refresh("clinic")
    assert look(clinic, "How many patients live in Boston?").reason == "The schema has changed since this SQL ran."


def test_a_question_like_no_other_says_so_in_the_report(clinic: Heedful) -> None:
    assert clinic.chat.execution_cache_lookup("Who is ill?").matches == []
    assert clinic.insight.cache().newest[0].reason == "No stored question is similar."


def test_a_chat_reads_as_sentences(clinic: Heedful) -> None:
    prove(clinic, "Who is the oldest patient?", "SELECT name FROM patient ORDER BY age DESC LIMIT 1")
    session = clinic.chat_sessions.create().id
    with pytest.raises(Unavailable) as refused:
        clinic.chat.chat_to_answer(session, "Who is the youngest patient?")
    assert refused.value.message.endswith(
        "no language model to write it. The nearest, “Who is the oldest patient?”, is not used: "
        "You asked for the “youngest”; proven is the “oldest”"
    )
    assert ".." not in str(refused.value)
    answer = clinic.chat.chat_to_answer(session, "who is the oldest patient")
    assert answer.explanation == "The question is the same. It was proven for: Who is the oldest patient?"
