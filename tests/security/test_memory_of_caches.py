"""What is kept of texts that callers send: of long ones little, however many come."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest

import heedful
from heedful.memory import answer
from heedful.sql import guard, statements
from heedful.sql.reuse import (
    consensus,
    evidence,
    ownership,
    query_parts,
    question_periods,
    question_reading,
    question_words,
    sql_dates,
)
from heedful.text import conflicts, same_question, words

LETTERS = 10_000
"""Of a question at its limit; of a word."""

TEXTS: dict[str, Callable[[str], Any]] = {
    "answer._terms": answer._terms,
    "words.words": words.words,
    "words.stem": words.stem,
    "words.terms": words.terms,
    "conflicts._statements": conflicts._statements,
    "similarity._query": same_question._query,
    "asker._person": ownership._person,
    "question_reading._key": lambda text: question_reading._key((text,)),
    "question_words.places": question_words.places,
    "moments._named": lambda text: sql_dates._named(text, date(2026, 1, 1)),
    "periods.periods": lambda text: question_periods.periods((text,)),
    "question_words.singular": question_words.singular,
    "question_words.past_of": question_words.past_of,
    "question_words.gerund_of": question_words.gerund_of,
    "consensus._names": lambda text: consensus._names(f"‹{text}.name›"),
    "consensus._returned": consensus._returned,
    "exchanges.exchanges": lambda text: evidence.exchanges((text,), ("a",)),
    "exchanges.is_never_exchanged": lambda text: evidence.is_never_exchanged((text,), ("a",)),
}

SQL: dict[str, Callable[[str, str], Any]] = {
    "query_parts.canonical": query_parts.canonical,
    "query_parts.parsed_tokens": query_parts.parsed_tokens,
    "query_parts.parse_query": query_parts.parse_query,
    "query_parts.nondeterminism": query_parts.nondeterminism,
    "ownership._values": ownership._values,
    "moments.moments": sql_dates.moments,
    "moments.names_time": sql_dates.names_time,
    "statements.template": statements.template,
    "guard.check_statement": guard.check_statement,
}


def growth(call: Callable[[str], Any], made: Callable[[int], str]) -> int:
    """Bytes that a dozen calls leave behind, after those that leave the few results that are kept of long texts."""
    tracemalloc.start()
    try:
        sizes = []
        for calls in (range(10), range(10, 22)):
            for number in calls:
                call(made(number))
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        return sizes[1] - sizes[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.slow
def test_no_more_is_kept_of_many_long_texts(name: str) -> None:
    assert growth(TEXTS[name], lambda number: f"x{number:03}x" + "a" * LETTERS) < 5 * LETTERS


@pytest.mark.parametrize("name", SQL)
@pytest.mark.slow
def test_no_more_is_kept_of_many_long_statements(name: str) -> None:
    def made(number: int) -> str:
        return f"SELECT a{number + 1} FROM t WHERE b = '{'x' * LETTERS}'"

    assert growth(lambda sql: SQL[name](sql, "sqlite"), made) < 5 * LETTERS


def caches() -> Iterator[str]:
    """The caches of the whole package, by module and name, that keep what is long as well."""
    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if module.name.endswith(("__main__", ".env")) or ".integrations" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            cached = isinstance(value, functools._lru_cache_wrapper) and value.__module__ == module.name
            if cached and inspect.signature(value).parameters:
                yield f"{module.name.removeprefix('heedful.')}.{name}"


@pytest.mark.parametrize("name", ["answer._terms", "words.words", "words.terms", "conflicts._statements"])
@pytest.mark.nightly
def test_nothing_is_kept_of_facts_at_their_limit(name: str) -> None:
    assert growth(TEXTS[name], lambda number: f"x{number:03}x " + "a " * 20_000) < 40_000


def test_a_word_without_an_end_is_not_stemmed(monkeypatch: pytest.MonkeyPatch) -> None:
    stemmed: list[int] = []

    class Noting:
        def stemWord(self, word: str) -> str:  # noqa: N802
            stemmed.append(len(word))
            return word

    monkeypatch.setattr(words, "_stemmer", Noting())
    words.terms("q" * 5_000_001)
    words.words("Q" * 5_000_003)
    words.stem("q" * 5_000_005)
    assert max(stemmed) <= words.MAX_WORD


def test_every_other_cache_is_of_names_that_we_made_or_bound() -> None:
    assert set(caches()) == {
        "api.result_fields.attribute_docs",
        "interfaces.dashboard.rendering.content",  # Files of ours.
        "interfaces.mcp.serving._tool_definition",  # Tools.
        "interfaces.reports._template",
        "providers.embedding.verified",
        "search.relevance._number",  # A source, which has a limit.
        "settings._warn",
        "sql.guard._calls",
        "sql.guard._denied_tables",
        "storage.isolation._compiler",  # Kinds of databases.
        "storage.rows._fields",  # Models.
        "storage.rows.upsert",
        "sessions.mongo.collections._keys",
        "ledger.tallies._add_selected",
        "ledger.tallies._count_selected",
        "text.words._stem",  # Words of at most MAX_WORD characters.
        "text.words._term",
    }
