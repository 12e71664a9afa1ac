"""Names by a language model: what can be read of its answer, and what is believed."""

from __future__ import annotations

import json

import pytest

from heedful.memory.graph_recall import MAX_NAME, name_entities
from heedful.testing import ScriptedModel

TEXTS = ["Ada Lovelace met Charles Babbage.", "It rained in London\nall day.", "Nothing."]
NAMES = [["Ada Lovelace", "Charles Babbage"], ["London"], []]


def rows(*names: list[str]) -> str:
    return "\n".join(json.dumps({"text": number, "names": each}) for number, each in enumerate(names, start=1))


def test_all_texts_are_asked_about_at_once() -> None:
    model = ScriptedModel([rows(*NAMES)])
    assert name_entities(model, TEXTS) == NAMES
    (asked,) = model.prompts
    assert asked[-1].content.split("\n") == [
        '1. "Ada Lovelace met Charles Babbage."',
        '2. "It rained in London all day."',
        '3. "Nothing."',
    ]


def test_without_texts_nothing_is_asked() -> None:
    assert name_entities(ScriptedModel([]), []) == []


@pytest.mark.parametrize(
    "answer",
    [
        f"Here they are:\n```json\n{rows(*NAMES)}\n```\nAnything else?",
        f"[{rows(*NAMES)}]".replace("\n", ","),
        json.dumps([{"text": str(number), "names": each} for number, each in enumerate(NAMES, start=1)], indent=2),
        json.dumps({str(number): each for number, each in enumerate(NAMES, start=1)}),
        json.dumps({"result": {str(number): each for number, each in enumerate(NAMES, start=1)}}),
        json.dumps({"texts": [{"text": number, "names": each} for number, each in enumerate(NAMES, start=1)]}),
        "\n".join(reversed(rows(*NAMES).split("\n"))),
        rows(*NAMES) + '\n{"text": 1, "names": ["Babbage"]}\n{"text": 9, "names": ["Ada"]}',
        "{oops [" + rows(*NAMES),
    ],
)
def test_an_answer_may_be_written_in_many_ways(answer: str) -> None:
    assert name_entities(ScriptedModel([answer]), TEXTS) == NAMES


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I can't do that.",
        "[[[[",
        "[" * 100_000,
        "null",
        '"London"',
        '{"text": 2}',
        '{"text": 2, "names": "London"}',
        '{"text": null, "names": ["London"]}',
        '{"text": 2, "names": [1, null, ["London"]]}',
        '{"text": 2.5, "names": ["London"]}',
        "[1, 2, 3]",
    ],
)
def test_an_answer_that_can_not_be_read_names_nothing(answer: str) -> None:
    assert name_entities(ScriptedModel([answer]), TEXTS) == [[], [], []]


def test_a_line_that_is_broken_does_not_spoil_the_others() -> None:
    answer = '{"text": 1, "names": ["Ada Lovelace", \n{"text": 2, "names": ["London"]}\n{"text": 3, "na'
    assert name_entities(ScriptedModel([answer]), TEXTS) == [[], ["London"], []]


def test_names_that_are_not_in_the_text_are_dropped() -> None:
    answer = rows(["ada lovelace", "Paris", "Ada  Lovelace", "Love", "", " "], ["LONDON", "on"], ["Nothing", "x" * 300])
    assert name_entities(ScriptedModel([answer]), TEXTS) == [["ada lovelace"], ["LONDON"], ["Nothing"]]


def test_a_name_may_go_over_a_line_end_and_have_signs_in_it() -> None:
    texts = ["We use New\nYork (C++) and Node.js.", "東京タワーに行った。"]
    answer = rows(["New York", "C++", "Node.js"], ["東京タワー"])
    assert name_entities(ScriptedModel([answer]), texts) == [["New York", "C++", "Node.js"], ["東京タワー"]]


def test_a_name_is_not_a_whole_text() -> None:
    text = "word " * 100
    assert name_entities(ScriptedModel([rows([text, "word"])]), [text]) == [["word"]]
    assert len(text) > MAX_NAME
