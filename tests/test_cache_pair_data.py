"""The pairs that reuse is measured on tell right from wrong: their SQL runs, and the wrong SQL has other rows."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from bench.cache_pairs import REFUSE, SCHEMAS, Pair, Rows, comparable, pairs, statements

CLASSES = 12


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[str, str], Rows]]:
    """The rows of a statement on a schema."""
    databases = {schema: sqlite3.connect(":memory:") for schema in SCHEMAS}
    for schema, database in databases.items():
        for statement in statements(schema):
            database.execute(statement)
    yield lambda schema, sql: comparable(databases[schema].execute(sql), sql)
    for database in databases.values():
        database.close()


def test_the_proven_sql_never_answers_a_question_that_means_something_else(run: Callable[[str, str], Rows]) -> None:
    alike = [
        pair.id
        for pair in pairs()
        if not pair.means_same and pair.right != REFUSE
        for proven in pair.proven
        if run(pair.schema, proven.sql) == run(pair.schema, pair.right)
    ]
    assert alike == []


def test_other_values_give_other_rows(run: Callable[[str, str], Rows]) -> None:
    alike = [
        pair.id
        for pair in pairs()
        if pair.means_same and pair.right != pair.proven[0].sql
        if run(pair.schema, pair.proven[0].sql) == run(pair.schema, pair.right)
    ]
    assert alike == []


def test_every_proven_query_has_rows(run: Callable[[str, str], Rows]) -> None:
    assert [pair.id for pair in pairs() for proven in pair.proven if not run(pair.schema, proven.sql)] == []


def test_classes_schemas_and_halves_are_balanced() -> None:
    every = pairs()
    assert len(every) >= 400
    assert len({pair.id for pair in every}) == len(every)
    assert len({pair.kind for pair in every}) == CLASSES
    for least, key in [(33, _class), (10, _class_and_schema), (15, _class_and_half), (8, _class_half_and_verdict)]:
        counts = Counter(map(key, every))
        assert min(counts.values()) >= least, counts


def _class(pair: Pair) -> object:
    return pair.kind


def _class_and_schema(pair: Pair) -> object:
    return pair.kind, pair.schema


def _class_and_half(pair: Pair) -> object:
    return pair.kind, pair.half


def _class_half_and_verdict(pair: Pair) -> object:
    return pair.kind, pair.half, pair.means_same
