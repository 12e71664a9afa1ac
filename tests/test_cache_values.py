"""Values of columns that hold more than is kept in memory: found through an index, on every kind of connector."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cities import make_cities
from kinds import KINDS, Place

from heedful import Heedful
from heedful.errors import Invalid, Unavailable
from heedful.model import CacheLookup
from heedful.sql.reuse import proofs
from heedful.sql.sandbox.pool import Queries

PEOPLE = 2_500
SQL = "SELECT age FROM person WHERE name = '{}'"


def name(number: int) -> str:
    """Names whose order in a column is not that of their numbers."""
    return f"Zoë Person{number * 7919 % PEOPLE:04}"


def tables(first: int = 0, last: int = PEOPLE) -> str:
    rows = ", ".join(f"('{name(number)}', {number})" for number in range(first, last))
    return f"CREATE TABLE person (name varchar(40), age integer); INSERT INTO person VALUES {rows};"


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = KINDS[request.param](request, tmp_path)
    made.write(tables())
    return made


def prove(store: Heedful, number: int) -> None:
    done = store.executions.execute_query(SQL.format(name(number)), question=f"How old is {name(number)}?")
    store.feedback.create_positive(execution_id=done.execution_id)


def indexed(store: Heedful, question: str) -> CacheLookup:
    """What a lookup finds once the values are indexed."""
    store.chat.execution_cache_lookup(question)
    for thread in threading.enumerate():
        if thread.name == "heedful-values":
            thread.join(60)
    return store.chat.execution_cache_lookup(question)


@pytest.mark.slow
def test_any_value_of_a_large_column_is_recognised(
    store: Heedful, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.sql.reuse.proofs.BATCH_VALUES", 600)
    store.connectors.create("people", place.url)
    prove(store, 3)
    for number in (4, 1_999, PEOPLE - 1):
        found = indexed(store, f"how old is {name(number).lower().replace('ë', 'e')}?")
        assert found.cache_hit, found.matches
        assert found.matches[0].decision == "rebind"
        assert found.matches[0].execution["result"].rows == [[number]]
    refused = store.chat.execution_cache_lookup("How old is Zoë Person9999?")
    assert not refused.cache_hit


def test_new_values_are_found_when_the_data_change(
    store: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cities = make_cities(tmp_path)
    cities.write(tables(0, PEOPLE - 1))
    store.connectors.create("people", cities.url)
    prove(store, 3)
    asked = f"How old is {name(PEOPLE - 1)}?"
    assert not indexed(store, asked).cache_hit
    cities.write(f"INSERT INTO person VALUES ('{name(PEOPLE - 1)}', 41)")
    assert not store.chat.execution_cache_lookup(asked).cache_hit
    store.connectors.refresh("people")
    assert indexed(store, asked).cache_hit
    monkeypatch.setattr(proofs, "VALUES_TTL_SECONDS", -1.0)
    asked_of_database: list[str] = []
    stream, text = Queries.stream_values, Queries.text_values
    counted: dict[str, Callable[..., object]] = {"stream_values": stream, "text_values": text}
    for called, real in counted.items():

        def counting(*given: object, called: str = called, real: Callable[..., object] = real) -> object:
            asked_of_database.append(called)
            return real(*given)

        monkeypatch.setattr(Queries, called, counting)
    assert indexed(store, asked).cache_hit
    assert asked_of_database == []  # The file has not changed.


@pytest.mark.slow
def test_what_comes_before_the_time_is_up_is_known(
    store: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cities = make_cities(tmp_path)
    cities.write(tables())
    store.connectors.create("people", cities.url)
    prove(store, 3)
    monkeypatch.setattr("heedful.sql.reuse.proofs.MAX_COLUMN_VALUES", 1_500)
    found = [indexed(store, f"How old is {name(number)}?").cache_hit for number in (1_200, 2_200)]
    assert found == [True, False]


def test_a_column_that_takes_too_long_to_sort_is_read_in_any_order(
    store: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Queries.stream_values

    def slow(*given: Any, ordered: bool = True, **named: Any) -> str | None:
        if ordered:
            raise Unavailable("it took too long", code="query_timeout")
        return stream(*given, ordered=ordered, **named)

    monkeypatch.setattr(Queries, "stream_values", slow)
    cities = make_cities(tmp_path)
    cities.write(tables())
    store.connectors.create("people", cities.url)
    prove(store, 3)
    assert indexed(store, f"How old is {name(1_999)}?").cache_hit


@pytest.mark.nightly
def test_values_of_sensitive_columns_are_never_read(store: Heedful, place: Place) -> None:
    asked = f"How old is {name(1_999)}?"
    store.connectors.create("people", place.url, sensitive_columns=["Person.Name"])
    prove(store, 3)
    assert not indexed(store, asked).cache_hit
    assert indexed(store, f"How old is {name(3)}?").cache_hit  # What was proven is served as it is.
    assert store.connectors.get("people").sensitive_columns == ["Person.Name"]
    store.connectors.refresh("people")
    assert not indexed(store, asked).cache_hit
    store.connectors.refresh("people", sensitive_columns=[])
    assert indexed(store, asked).cache_hit
    store.connectors.refresh("people", sensitive_columns=["person.name"])
    assert not indexed(store, asked).cache_hit


def test_a_sensitive_column_that_is_misspelt_is_refused(store: Heedful, tmp_path: Path) -> None:
    cities = make_cities(tmp_path)
    with pytest.raises(Invalid, match=r"no column 'city\.nmae'") as caught:
        store.connectors.create("geo", cities.url, sensitive_columns=["city.nmae"])
    assert (caught.value.code, caught.value.field) == ("unknown_column", "sensitive_columns")
    assert store.connectors.list() == []
