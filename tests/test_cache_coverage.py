"""What the cache says that it knows, that it refuses, and that should be proven next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities

import heedful
from heedful import Heedful
from heedful.model import CacheCoverage
from heedful.testing import ManualClock, WordEmbedder


@pytest.fixture
def towns(any_store: str, clock: ManualClock, tmp_path: Path) -> Iterator[Heedful]:
    with heedful.open(any_store, clock=clock, embedding=WordEmbedder()) as store:
        yield proven(store, tmp_path)


def proven(store: Heedful, tmp_path: Path) -> Heedful:
    store.connectors.create("towns", make_cities(tmp_path).url)
    for question, sql in (
        (IN_ITALY, IN_ITALY_SQL),
        (IN_ITALY.replace("Italy", "Norway"), IN_ITALY_SQL.replace("Italy", "Norway")),
        ("How many streets are there?", "SELECT count(*) FROM street"),
    ):
        done = store.executions.execute_query(sql, question=question)
        store.feedback.create_positive(execution_id=done.execution_id)
    return store


def asked(store: Heedful, *questions: str) -> CacheCoverage:
    for question in questions:
        store.chat.execution_cache_lookup(question)
    return store.chat.execution_cache_coverage()


def test_proven_questions_are_counted_by_the_sql_without_its_values(towns: Heedful) -> None:
    found = towns.chat.execution_cache_coverage()
    assert (found.proven_questions, found.proven_kinds) == (3, 2)
    assert [kind.questions for kind in found.proven] == [2, 1]
    assert "…" in found.proven[0].sql_template
    assert (found.refused, found.missing) == ([], [])


@pytest.mark.slow
def test_what_is_asked_and_refused_is_counted_by_gate(towns: Heedful) -> None:
    found = asked(
        towns,
        "How many cities are not in Italy?",
        "How many cities are not in Italy?",
        "How many streets are in Rome?",
        IN_ITALY,
    )
    by_gate = {each.gate: each for each in found.refused}
    assert (by_gate["negation"].asked, by_gate["negation"].questions) == (2, 1)
    assert by_gate["negation"].examples == ["How many cities are not in Italy?"]
    assert sum(each.asked for each in found.refused) == 3


@pytest.mark.slow
def test_the_example_that_would_open_most_comes_first_and_opens_them(towns: Heedful) -> None:
    found = asked(
        towns, "Which streets does Rome have?", "Which streets does Oslo have?", "the population of Milan", "who?"
    )
    best = found.missing[0]
    assert (best.asked, best.questions) == (2, 2)
    assert best.question in ("Which streets does Rome have?", "Which streets does Oslo have?")
    sql = "SELECT s.name FROM street s JOIN city c ON c.id = s.city_id WHERE c.name = '{}'"
    done = towns.executions.execute_query(sql.format(best.question.split()[3]), question=best.question)
    said = towns.feedback.create_positive(execution_id=done.execution_id)
    opened = towns.chat.execution_cache_coverage()
    assert not any("streets" in each.question for each in opened.missing)
    towns.retract(said.id)
    assert towns.chat.execution_cache_coverage().missing == found.missing


@pytest.mark.slow
def test_only_what_was_asked_lately_counts(towns: Heedful, clock: ManualClock) -> None:
    asked(towns, "the population of Milan")
    clock.advance(days=40)
    assert towns.chat.execution_cache_coverage().missing == []
    assert len(towns.chat.execution_cache_coverage(max_age_days=60).missing) == 1
