"""Which ratings become which lines of training data."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from heedful.evaluation.rated import Votes
from heedful.evaluation.training import Need, Schema, Thing, lines, split_of
from heedful.model import TrainingFormat

QUESTION = "How long may I return a parcel?"
SCHEMAS = {"c1": Schema("shop", "sqlite", "sales (year INTEGER)")}
RETURNS = ("f1", "Parcels return in 30 days.")
CARDS = ("f2", "Gift cards never expire.")


def votes(good: int = 0, bad: int = 0) -> Votes:
    sides = [True] * good + [False] * bad
    return Votes({f"author-{number}": (number, is_good) for number, is_good in enumerate(sides)})


def answer(text: str, *, good: int = 0, bad: int = 0, question: str = QUESTION, **more: Any) -> Thing:
    return Thing("answer", "main", question, text, votes(good, bad), **more)


def correction(text: str, author: str, *, of: str, terms: tuple[str, ...], at: int = 1, **more: Any) -> Thing:
    said = Votes({author: (at, True)})
    return Thing("correction", "main", QUESTION, text, said, facts=(RETURNS,), corrects=of, terms=terms, **more)


def fact(of: tuple[str, str], *, good: int = 0, bad: int = 0, **more: Any) -> Thing:
    return Thing("fact", "main", QUESTION, of[1], votes(good, bad), facts=(of,), **more)


def made(format: TrainingFormat, *things: Thing, scope: str = "main") -> tuple[list[dict[str, Any]], dict[str, int]]:
    need = Need(scope, [Thing.unpacked(thing.packed()) for thing in things])
    found = [orjson.loads(line) for _, line in lines(format, "0f" * 8, need, "train", SCHEMAS)]
    assert all(line["need"] == "0f" * 8 and line["split"] == "train" for line in found)
    return found, {reason: count for reason, count in need.left_out.items() if count}


def said(messages: list[dict[str, str]]) -> str:
    (message,) = messages
    return message["content"]


def test_most_authors_decide_on_the_label_and_a_tie_has_none() -> None:
    found, left_out = made(
        "kto", answer("30 days", good=2, bad=1), answer("Never", bad=3), answer("Perhaps", good=1, bad=1)
    )
    labels = {said(line["completion"]): (line["label"], line["agreement"], line["votes"]) for line in found}
    assert labels == {"30 days": (True, 0.6667, 3), "Never": (False, 1.0, 3)}
    assert left_out == {"tied": 1}


def test_one_author_has_one_vote_about_the_same_words() -> None:
    first = Thing("answer", "main", QUESTION, "30 days", Votes({"ann": (1, True), "bob": (1, True)}))
    later = Thing("answer", "main", QUESTION.lower(), "30 days", Votes({"ann": (9, False), "bob": (2, False)}))
    ((line,), _) = made("kto", later, first)
    assert (line["label"], line["votes"], line["agreement"]) == (False, 2, 1.0)
    assert made("kto", first, later) == made("kto", later, first)


def test_what_rests_on_outdated_facts_is_wrong_or_nothing() -> None:
    found, left_out = made("kto", answer("30 days", good=2, is_current=False), answer("Never", bad=1, is_current=False))
    assert [(said(line["completion"]), line["label"]) for line in found] == [("Never", False)]
    assert left_out == {"outdated": 1}
    assert made("sft", answer("30 days", good=2, is_current=False)) == ([], {"outdated": 1})


def test_pairs_are_two_answers_to_one_need_preferably_to_the_same_words() -> None:
    other = "For how long can parcels be returned?"
    found, left_out = made(
        "dpo",
        answer("30 days", good=1),
        answer("Thirty days", good=3, question=other),
        answer("Never", bad=2),
        answer("Always", bad=1, question=other),
    )
    pairs = {(said(line["chosen"]), said(line["rejected"])) for line in found}
    assert pairs == {("30 days", "Never"), ("Thirty days", "Always")}
    assert left_out == {}


def test_answers_without_a_counterpart_are_counted() -> None:
    assert made("dpo", answer("30 days", good=1), answer("Thirty", good=1)) == ([], {"unpaired": 2})


def test_a_correction_is_chosen_over_its_answer_and_taught() -> None:
    wrong = answer("60 days", bad=1)
    right = correction("It is 30 days.", "ann", of="60 days", terms=("30",))
    ((line,), left_out) = made("dpo", wrong, right)
    assert (said(line["chosen"]), said(line["rejected"]), left_out) == ("It is 30 days.", "60 days", {})
    ((line,), _) = made("sft", wrong, right)
    assert [message["content"] for message in line["messages"]] == [QUESTION, "It is 30 days."]


def test_corrections_go_by_majority_of_those_who_correct_each_with_their_last_words() -> None:
    things = [
        correction("It is 45 days.", "ann", of="30 days", terms=("45",)),
        correction("45 days it is.", "bob", of="30 days", terms=("45",)),
        correction("It is 60 days.", "cy", of="30 days", terms=("60",)),
        correction("It is 45 days.", "cy", of="30 days", terms=("45",), at=0),
    ]
    ((line,), _) = made("dpo", answer("30 days", bad=1), *things)
    assert (said(line["chosen"]), line["agreement"], line["votes"]) == ("45 days it is.", 0.6667, 3)
    found, left_out = made("dpo", answer("30 days", bad=1), *things[1:3])
    assert (found, left_out) == ([], {"tied": 1, "unpaired": 1})


def test_an_answer_that_most_call_right_is_not_corrected() -> None:
    things = (answer("30 days", good=2), correction("It is 45 days.", "eve", of="30 days", terms=("45",)))
    assert [line["messages"][1]["content"] for line in made("sft", *things)[0]] == ["30 days"]


def test_a_correction_that_was_superseded_is_not_taught() -> None:
    old = correction("It is 45 days.", "ann", of="30 days", terms=("45",), is_current=False)
    assert made("sft", old) == ([], {"outdated": 1})


def test_triplets_have_facts_that_helped_and_facts_that_did_not() -> None:
    shown = Thing("shown", "main", QUESTION, "Norway takes five days.")
    ((line,), _) = made("triplets", fact(RETURNS, good=2), fact(CARDS, bad=1), shown)
    assert (line["query"], line["positive"]) == (QUESTION, RETURNS[1])
    assert (line["negatives"], line["unrated"]) == ([CARDS[1]], ["Norway takes five days."])
    assert made("triplets", fact(CARDS, bad=1)) == ([], {"unpaired": 1})


def test_ratings_of_a_fact_itself_go_before_those_of_answers() -> None:
    right = answer("30 days", good=3, facts=(RETURNS,))
    ((line,), _) = made("triplets", right)
    assert (line["positive"], line["votes"]) == (RETURNS[1], 3)
    assert made("triplets", right, fact(RETURNS, bad=1)) == ([], {"unpaired": 1})
    # An answer may be wrong while its fact is right.
    ((line,), _) = made("triplets", fact(RETURNS, good=1), answer("Never", bad=3, facts=(CARDS,)))
    assert line["negatives"] == []


def test_evals_expect_the_answer_most_agree_on_and_its_facts() -> None:
    ((line,), _) = made(
        "evals", answer("30 days", good=2, facts=(RETURNS,)), answer("A month", good=2, bad=1), fact(CARDS, good=1)
    )
    assert (line["input"], line["reference"]) == (QUESTION, "30 days")
    assert [each["fact_id"] for each in line["facts"]] == ["f1", "f2"]


def test_a_fact_that_is_corrected_is_not_expected() -> None:
    ((line,), _) = made("evals", correction("It is 45 days.", "ann", of="30 days", terms=("45",)))
    assert (line["reference"], line["facts"]) == ("It is 45 days.", [])
    ((line,), _) = made("evals", correction("Parcels return in 30 days.", "ann", of="60 days", terms=()))
    assert [each["fact_id"] for each in line["facts"]] == ["f1"]


def test_only_proven_sql_is_taught() -> None:
    things = [
        Thing("sql", "c1", "How many sales?", text, votes(good, bad), parameters="{}")
        for text, good, bad in (("SELECT count(*) FROM sales", 2, 1), ("SELECT 1", 0, 1), ("SELECT 2", 1, 1))
    ]
    ((line,), left_out) = made("text2sql", *things, scope="c1")
    assert (line["sql"], line["schema"], line["dialect"]) == (things[0].text, "sales (year INTEGER)", "sqlite")
    assert (line["connector"], line["parameters"], left_out) == ("shop", "{}", {"tied": 1})


@pytest.mark.parametrize("format", ["kto", "dpo", "sft", "triplets", "evals"])
def test_the_order_in_which_things_are_read_changes_nothing(format: TrainingFormat) -> None:
    things = [
        answer("30 days", good=2, facts=(RETURNS,)),
        answer("Never", bad=2),
        correction("It is 45 days.", "ann", of="Never", terms=("45",)),
        fact(RETURNS, good=1),
        fact(CARDS, bad=1),
    ]
    assert made(format, *things) == made(format, *reversed(things))
    assert made(format, *things)[0]


def test_about_as_many_needs_are_for_testing_as_asked() -> None:
    names = [f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}" for number in range(1000)]
    for share in (0.0, 0.1, 0.5, 1.0):
        tested = sum(split_of(name, share) == "test" for name in names)
        assert abs(tested - 1000 * share) <= 20
    assert {name for name in names if split_of(name, 0.1) == "test"} <= {
        name for name in names if split_of(name, 0.2) == "test"
    }
