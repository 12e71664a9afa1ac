"""Texts that repeat themselves: whatever is repeated, reading a text takes time in proportion to its length."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import grids
import numpy as np
import pytest

from heedful import Heedful
from heedful.ledger import used_facts
from heedful.memory import answer, documents
from heedful.model import Hit
from heedful.notifications import channels
from heedful.sql import generation
from heedful.sql.reuse import (
    decision,
    evidence,
    ownership,
    question_periods,
    question_reading,
    question_words,
    sql_dates,
    values,
)
from heedful.text import (
    complaints,
    conflicts,
    corrections,
    entities,
    same_question,
    sentences,
    themes,
    words,
)

LENGTH = 12_000
"""More than the longest question or comment."""

QUICK = 0.1
"""Seconds of the processor for which nobody asks how they grow."""

MAX_GROWTH = 9
"""How many times as long a text that is four times as long may take: in one pass it is four times, over all pairs of
characters sixteen."""

RUNS = (
    *(" ", "\n", "\t", "\u00a0", "\u2003", ".", "?", "!", "…", "。", ",", ";", ":", "-", "–", "'", '"', "“", "‘", "’"),
    *("`", "(", ")", "[", "]", "{", "#", "*", "$", "%", "@", "/", "\\", "_", "a", "A", "é", "中", "1", "0"),
    *(
        "a ",
        "a. ",
        "A. ",
        "a.",
        "A.",
        "a-",
        "a_",
        "a'",
        "a\n",
        "A\n",
        "A b\n",
        "- a\n",
        "a, ",
        "A B, ",
        "Aa ",
        "ab\n\n",
    ),
    *("1 ", "1. ", "1.", "1,", "1, ", "1-", "1:2 ", "1,000 ", "$1 ", "12. ", "5 days ", "00:", "2023-01-01 "),
    *(
        "[1]",
        "[1] ",
        " [1]",
        "[1, ",
        ". [1] ",
        ".[1",
        "[ ",
        "【1",
        "] [",
        '." ',
        '.") ',
        "? ",
        "?) ",
        " ,",
        " - ",
        " : ",
    ),
    *("“a ", "“a” ", "'a ", '"a" ', '"a', "```", "```sql ", "```sql\n", "Dr. ", "e.g. ", "no ", "no, ", "well, "),
    *("is ", "not ", "the ", "you just ", "should be ", "instead of ", "no, it is ", "what ", "which a ", "last 3 "),
    *("the A is not B but C, ", "X is the Y of Z and ", "from 1 to 2 ", "Ab is 5 days. ", "it's ", "I waited, "),
    *("http://a.b/ ", "a@b ", "www.", "A: ", "Ada Ab ", "Ada's ", "one hundred ", "twenty-", "or not ", "2 out of 5 "),
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DATED = "SELECT count(*) FROM loan WHERE day = '2025-12-20'"

FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "complaints.is_story": complaints.is_story,
    "complaints.is_remark": complaints.is_remark,
    "complaints.is_unfair": complaints.is_unfair,
    "complaints.compares": complaints.compares,
    "complaints.personal_data": complaints.personal_data,
    "conflicts.conflict": lambda text: conflicts.conflict(text, "Shipping takes 3 days."),
    "conflicts.states_value": conflicts.states_value,
    "corrections.corrected": lambda text: corrections.corrected(text, ["Shipping takes 3 days.", text], "how long?"),
    "corrections.confirmed": lambda text: corrections.confirmed(text, ["Shipping takes 3 days.", text]),
    "corrections.replaced": lambda text: corrections.replaced(text, "Shipping takes 3 days."),
    "entities.entities": entities.entities,
    "entities.entity": entities.entity,
    "entities.mentions": entities.mentions,
    "sentences.sentences": sentences.sentences,
    "sentences.answer_kind": sentences.answer_kind,
    "sentences.asks_for_a_list": sentences.asks_for_a_list,
    "sentences.has": lambda text: [sentences.has(k, text, frozenset()) for k in ("time", "number", "person", "place")],
    "sentences.cited": lambda text: sentences.cited(text, 10),
    "sentences.without_citations": lambda text: sentences.without_citations(text * 5),
    "complaints.statement": complaints.statement,
    "complaints.contrasts": complaints.contrasts,
    "complaints.has_verb": complaints.has_verb,
    "complaints.verb": complaints.verb,
    "themes.considered": themes.considered,
    "themes.terms": themes.terms,
    "themes.english": themes.english,
    "themes.shortened": themes.shortened,
    "words.words": words.words,
    "words.sentences": words.sentences,
    "words.terms": words.terms,
    "words.stem": words.stem,
    "similarity.difference": lambda text: same_question.difference(text, f"how long {text}"),
    "question_reading.read": question_reading.read,
    "question_reading.quoted": lambda text: question_reading.quoted(text * 5),
    "question_words.split": question_words.split,
    "question_words.places": question_words.places,
    "question_words.plain": question_words.plain,
    "periods.written_dates": lambda text: [*question_periods.written_dates(text)],
    "moments.unnamed": lambda text: sql_dates.unnamed(text, DATED, "sqlite", NOW),
    "periods.periods": lambda text: [
        each.ranges(NOW) for each in question_periods.periods(tuple(question_words.split(text)))
    ],
    "periods.impossible": lambda text: question_periods.impossible(question_words.split(text)),
    "asker.may_be_personal": ownership.may_be_personal,
    "moments.outdated": lambda text: sql_dates.outdated(text, DATED, "sqlite", NOW, NOW - timedelta(days=9)),
    "documents.split": documents.split,
    "answer.extract": lambda text: answer.extract("How long does shipping take?", [hit(text)]),
    "generation._extract_sql": generation._extract_sql,
    "channels.one_line": lambda text: channels.one_line(text, 200),
}


def hit(text: str) -> Hit:
    return Hit.model_construct(
        fact_id="f",
        text=text,
        usefulness_source="neutral",
        score=1.0,
        relevance=1.0,
        usefulness=0.5,
        metadata={},
        rank=1,
    )


def seconds(name: str, run: str, length: int, attempt: int = 0) -> float:
    # Another text in each attempt: some functions keep what they have read.
    text = f"Is it 3? {(run * length)[:length]}x{attempt}"
    started = time.thread_time()
    FUNCTIONS[name](text)
    return time.thread_time() - started


def grows_too_fast(name: str, run: str) -> bool:
    """Whether a longer run takes more than its share, however often that is tried: a busy machine makes some attempts
    slow, and none of them quick."""
    short = long = float("inf")
    for attempt in range(1, 11):
        short = min(short, seconds(name, run, LENGTH // 4, attempt))
        long = min(long, seconds(name, run, LENGTH, attempt))
        if long <= MAX_GROWTH * short:
            return False
    return True


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.nightly
def test_a_run_is_read_in_one_pass(name: str) -> None:
    # Of each function some, of each run several functions.
    runs = RUNS if grids.WHOLE else RUNS[crc32(name.encode()) % 6 :: 6]
    assert [run for run in runs if seconds(name, run, LENGTH) > QUICK and grows_too_fast(name, run)] == []


VALUES = values.Known({("loan", "day"): ["alpha beta"]})

PAIRS: dict[str, Callable[[str, str], Any]] = {
    "attribution.attribute": lambda a, b: used_facts.attribute([a], [b, a], np.zeros((1, 2))),
    "conflicts.conflict": lambda a, b: conflicts.conflict(f"{a} is 3 days.", f"{b} is 4 days."),
    "corrections.corrected": lambda a, b: corrections.corrected(a, [b], "how long?"),
    "corrections.confirmed": lambda a, b: corrections.confirmed(a, [b]),
    "corrections.replaced": corrections.replaced,
    "corrections.replacement_terms": lambda a, b: corrections.replacement_terms(a, b, "how long?"),
    "conflicts.have_same_values": conflicts.have_same_values,
    "decision.decide": lambda a, b: decision.decide(
        a, b, DATED, dialect="sqlite", values=VALUES, now=NOW, proven_at=NOW
    ),
    "similarity.difference": same_question.difference,
    "exchanges.exchanges": lambda a, b: evidence.exchanges(tuple(a.split()), tuple(b.split())),
}
"""What compares two texts that callers send."""


def steps(name: str, count: int) -> int:
    """Lines that are run to compare two texts of so many words that repeat each other in another order."""
    # Others for each function: some keep what they have read.
    texts = f"{name} {'alpha beta ' * (count // 2)}", f"{name} {'beta alpha gamma ' * (count // 3)}"
    lines = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        PAIRS[name](*texts)
    finally:
        sys.settrace(usual)
    return lines


@pytest.mark.parametrize("name", PAIRS)
def test_texts_that_repeat_each_other_are_compared_in_one_pass(name: str) -> None:
    steps(name, 30)  # Patterns are compiled when they are needed first.
    assert steps(name, 600) <= 2.5 * steps(name, 300)


@pytest.mark.slow
def test_an_answer_that_repeats_itself_is_attributed(store: Heedful) -> None:
    store.remember(["alpha beta " * 2_000, "beta alpha gamma " * 2_000])
    recalled = store.recall("alpha beta?")
    assert len(store.detect("beta gamma alpha beta alpha " * 3_000, recalled.recall_id)) == len(recalled.hits)


def test_every_public_function_of_texts_is_tried() -> None:
    public = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (complaints, conflicts, corrections, entities, sentences, themes, words)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
        if "str" in inspect.signature(value).parameters[next(iter(inspect.signature(value).parameters))].annotation
    }
    # Of one word each, and the themes of texts whose words are read first.
    assert public - {*FUNCTIONS, *PAIRS} <= {"corrections.is_beside_value", "corrections.unit_family", "themes.themes"}
