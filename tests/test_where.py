"""`where=`: each operator, dotted keys, lists, and what is no condition."""

from __future__ import annotations

from typing import Any

import pytest
from statements import watched

from heedful import Heedful, Invalid
from heedful.model.limits import MAX_CHOICES, MAX_CONDITIONS, MAX_KEY

FACTS: dict[str, dict[str, Any]] = {
    "none": {},
    "english": {"lang": "en", "year": 2020, "tags": ["news", "sport"], "by": {"name": "Ann", "age": 30}, "ok": True},
    "german": {"lang": "de", "year": 2021.0, "tags": ["news"], "by": {"name": "Bob", "age": 41}, "ok": False},
    "text year": {"lang": "en-GB", "year": "2020", "tags": [], "by": None, "ratio": 0.5},
    "null": {"lang": None, "year": -3, "tags": [1, "1"], "ratio": 1},
}


@pytest.fixture
def filled(store: Heedful) -> Heedful:
    store.remember(list(FACTS), metadata=list(FACTS.values()))
    return store


def found(store: Heedful, where: dict[str, Any]) -> set[str]:
    return {hit.text for hit in store.recall("anything at all", mode="semantic", where=where)}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, set(FACTS)),
        ({"lang": "en"}, {"english"}),
        ({"lang": {"=": "en"}}, {"english"}),
        ({"lang": {"!=": "en"}}, set(FACTS) - {"english"}),
        ({"lang": None}, {"null"}),
        ({"lang": ["en", "de"]}, {"english", "german"}),
        ({"lang": {"in": ["de", "xx"]}}, {"german"}),
        ({"lang": []}, set()),
        ({"lang": {"only": ["en"]}}, {"english", "none"}),
        ({"lang": {"only": ["en", None]}}, {"english", "null", "none"}),
        ({"lang": {"only": []}}, {"none"}),
        ({"tags": {"only": ["news"]}}, set(FACTS) - {"english", "null"}),
        ({"no such key": {"only": ["en"]}}, set(FACTS)),
        ({"lang": {"exists": True}}, {"english", "german", "text year", "null"}),
        ({"lang": {"exists": False}}, {"none"}),
        ({"lang": {">=": "de"}}, {"english", "german", "text year"}),
        ({"lang": {">": "de", "<": "en-"}}, {"english"}),
        ({"year": 2020}, {"english"}),
        ({"year": 2020.0}, {"english"}),
        ({"year": "2020"}, {"text year"}),
        ({"year": 2021}, {"german"}),
        ({"year": {">": 2020}}, {"german"}),
        ({"year": {">=": 2020}}, {"english", "german"}),
        ({"year": {"<": 2020}}, {"null"}),
        ({"year": {"<=": 2020}}, {"english", "null"}),
        ({"year": {">=": 2000, "<": 2021}}, {"english"}),
        ({"year": {">=": "2019"}}, {"text year"}),
        ({"ratio": {">": 0.4}}, {"text year", "null"}),
        ({"ratio": 1.0}, {"null"}),
        ({"tags": "news"}, {"english", "german"}),
        ({"tags": {"!=": "sport"}}, set(FACTS) - {"english"}),
        ({"tags": 1}, {"null"}),
        ({"tags": "1"}, {"null"}),
        ({"tags": ["sport", "1"]}, {"english", "null"}),
        ({"by.name": "Ann"}, {"english"}),
        ({"by.age": {">": 35}}, {"german"}),
        ({"ok": True}, {"english"}),
        ({"ok": False}, {"german"}),
        ({"ok": 1}, set()),
        ({"lang": "en", "by.age": {"<": 35}}, {"english"}),
        ({"lang": "en", "year": 2021}, set()),
        ({"no such key": 1}, set()),
    ],
)
def test_a_filter_finds_the_facts_it_describes(filled: Heedful, where: dict[str, Any], expected: set[str]) -> None:
    assert found(filled, where) == expected


@pytest.mark.parametrize(
    "where",
    [
        {"year": {"~": 3}},
        {"year": {}},
        {"year": {">": [1]}},
        {"year": {">": True}},
        {"year": {">": None}},
        {"year": {"in": 3}},
        {"year": {"only": 3}},
        {"year": {"only": [[1]]}},
        {"year": {"in": [[1]]}},
        {"year": [{"a": 1}]},
        {"year": {"=": {"a": 1}}},
        {"": 1},
        {" ": 1},
        {"year": float("nan")},
        {"year": object()},
        {1: 2},
        "year = 3",
        [("year", 3)],
    ],
)
def test_what_is_no_condition_is_refused_by_name(filled: Heedful, where: Any) -> None:
    with pytest.raises(Invalid) as caught:
        filled.recall("x", where=where)
    assert caught.value.field == "where"
    assert "where" in str(caught.value)


def test_an_unknown_operator_is_answered_with_those_there_are(filled: Heedful) -> None:
    with pytest.raises(Invalid, match="'~'") as caught:
        filled.recall("x", where={"year": {"~": 3}})
    assert caught.value.remedy == "Use one of =, !=, <, <=, >, >=, in, only, exists"


def test_an_unknown_operator_is_refused_in_an_empty_store_too(store: Heedful) -> None:
    with pytest.raises(Invalid):
        store.recall("x", where={"year": {"~": 3}})


def test_texts_are_compared_to_the_letter_not_as_patterns(store: Heedful) -> None:
    store.remember(["percent", "letters"], metadata=[{"k": "a%b_c"}, {"k": "axbyc"}])
    assert found(store, {"k": "a%b_c"}) == {"percent"}
    assert found(store, {"k": "A%b_c"}) == set()


def test_long_texts_that_differ_at_the_end_are_told_apart(store: Heedful) -> None:
    store.remember(["one", "two"], metadata=[{"k": "x" * 5000 + "1"}, {"k": "x" * 5000 + "2"}])
    assert found(store, {"k": "x" * 5000 + "1"}) == {"one"}
    assert found(store, {"k": {"in": ["x" * 5000 + "2"]}}) == {"two"}


def test_a_quote_in_a_value_is_only_a_quote(store: Heedful) -> None:
    store.remember(["quoted"], metadata={"k": '"; DROP TABLE facts; --'})
    assert found(store, {"k": '"; DROP TABLE facts; --'}) == {"quoted"}
    assert found(store, {'k"': 1}) == set()


@pytest.mark.parametrize(
    "where",
    [
        {f"k{number}": 1 for number in range(MAX_CONDITIONS)},
        {"year": dict.fromkeys(("=", "!=", "<", ">"), 1) | {"in": list(range(MAX_CHOICES))}},
        {"lang": {"only": [str(number) for number in range(MAX_CHOICES)]}},
        {"k" * MAX_KEY: 1},
    ],
)
def test_a_filter_at_the_limits_is_understood(filled: Heedful, where: dict[str, Any]) -> None:
    filled.recall("anything", where=where)
    filled.facts(where=where)
    filled.sessions.list(where=where)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ({f"k{number}": 1 for number in range(MAX_CONDITIONS + 1)}, "101 conditions, the limit is 100"),
        ({f"k{number}": {"!=": 1, "<": 3} for number in range(60)}, "120 conditions, the limit is 100"),
        ({"year": list(range(MAX_CHOICES + 1))}, "lists 1001 values, the limit is 1000"),
        ({"year": {"only": list(range(MAX_CHOICES + 1))}}, "lists 1001 values, the limit is 1000"),
        ({"year": list(range(1_000_000))}, "bytes, the limit is 16384"),
        ({f"k{number}": {"!=": 1} for number in range(1_000_000)}, "bytes, the limit is 16384"),
        ({"k" * (MAX_KEY + 1): 1}, "a key of 201 characters, the limit is 200"),
        ({"lang": "a\0b"}, "NUL"),
        ({"a\0b": 1}, "NUL"),
        ({"year": 2**63}, "64 bits"),
        ({"year": {">": 10**400}}, "64 bits"),
    ],
)
@pytest.mark.nightly
def test_a_filter_over_the_limits_is_refused_before_anything_is_asked(
    filled: Heedful, where: dict[str, Any], problem: str
) -> None:
    asked: list[str] = []
    with watched(lambda statement, _: asked.append(statement)):
        for call in (lambda: filled.recall("q", where=where), lambda: filled.facts(where=where)):
            with pytest.raises(Invalid, match=problem) as caught:
                call()
            assert caught.value.field == "where"
            assert len(str(caught.value)) < 400
        with pytest.raises(Invalid, match=problem):
            filled.sessions.list(where=where)
    assert asked == []


def test_filters_and_boosts_go_together(store: Heedful) -> None:
    ids = store.remember(["alpha one", "alpha two"], metadata=[{"n": 1}, {"n": 2}]).fact_ids
    store.signal([{"fact_id": ids[0], "signal_type": "helpful", "query": "alpha"}])
    hits = store.recall("alpha", where={"n": 2}, boost_by_usefulness=True)
    assert [hit.fact_id for hit in hits] == [ids[1]]
