"""Which comments correct a fact, which one, and what they state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.complaints import statement
from heedful.text.corrections import corrected

FACTS = [
    "Returns are accepted within 30 days.",
    "Returns must be in the box.",
    "Our office is in Berlin.",
    "The support line opens at nine.",
]


@pytest.mark.parametrize(
    ("comment", "stated"),
    [
        ("Wrong! the window is 45 days, not 30.", "The window is 45 days, not 30."),
        ("No, it is 45 days", "It is 45 days"),
        ("no no, wrong: actually it is 45 days", "It is 45 days"),
        ("The office moved to Hamburg.", "The office moved to Hamburg."),
        ("  Outdated — support opens at ten now ", "Support opens at ten now"),
        ("45", "45"),
        ("The parcels must be wrapped in paper", "The parcels must be wrapped in paper"),
        ("No refunds are paid on Sundays", "No refunds are paid on Sundays"),
        ("no it is 45 days", "It is 45 days"),
        ("Terrible. It is 45 days. Please fix it!", "It is 45 days."),
        ("Dr. Novak retired, Dr. Kim sees the children", "Dr. Novak retired, Dr. Kim sees the children"),
        ("Am 11. Juli beginnen die Ferien. Schlecht!", "Am 11. Juli beginnen die Ferien."),
        ("That is wrong, and the port is 6432", "The port is 6432"),
        ("The right answer is 45 days", "The right answer is 45 days"),
    ],
)
def test_what_a_comment_states(comment: str, stated: str) -> None:
    assert statement(comment) == stated


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "   ",
        "No.",
        "Wrong!",
        "no, no, no",
        "The answer was bad",
        "useless",
        "not correct",
        "Terrible response, please help",
        "Is it not 45 days?",
        "my refund took 4 weeks, not 5 days",
        "If the box is missing, you are wrong",
        "Thanks for nothing, bicycle expert",
        "Maybe it is 45 days",
        "2 out of 10",
        "Why is it 30?",
        "Thanks, great answer",
        "!!!",
        "…",
        "👎",
    ],
)
def test_what_states_nothing(comment: str) -> None:
    assert statement(comment) is None


@pytest.mark.parametrize(
    ("comment", "question", "place"),
    [
        ("No, it is 45 days", "How many days do I have for returns?", 0),
        ("Returns are accepted within 45 days", "How long?", 0),
        ("It's Hamburg, not Berlin", "Where is the office?", 2),
        ("The office moved to Hamburg", "Where is the office?", 2),
        ("Support opens at ten, not nine", "When does support open?", 3),
        ("Returns no longer need the box", "Do returns need a box?", 1),
    ],
)
def test_which_fact_is_corrected(comment: str, question: str, place: int) -> None:
    assert corrected(comment, FACTS, question) == place


@pytest.mark.parametrize(
    ("comment", "question"),
    [
        ("I did not like the tone at all", "How many days do I have for returns?"),
        ("The answer was incomplete", "How many days do I have for returns?"),
        ("Returns are accepted within 30 days.", "How many days do I have for returns?"),
        ("It is in Hamburg", "How many days do I have for returns?"),
        ("My cat sleeps on the keyboard", "How many days do I have for returns?"),
        ("", "How many days do I have for returns?"),
    ],
)
def test_what_corrects_nothing(comment: str, question: str) -> None:
    assert corrected(comment, FACTS, question) is None


def comments(name: str) -> list[tuple[str, list[str], str, int | None]]:
    groups = json.loads((Path(__file__).parents[1] / "data" / f"{name}.json").read_text())
    return [(group["question"], group["facts"], *each) for group in groups for each in group["comments"]]


@pytest.mark.parametrize(
    ("cases", "missed"),
    [
        pytest.param(comments("comments")[::2], 1, id="tuned"),
        pytest.param(comments("comments")[1::2], 2, id="held-out"),
        pytest.param(comments("comments_unseen"), 1, id="unseen"),
    ],
)
def test_no_comment_in_five_languages_is_misunderstood(
    cases: list[tuple[str, list[str], str, int | None]], missed: int
) -> None:
    read = [(comment, corrected(comment, facts, question), place) for question, facts, comment, place in cases]
    assert [each for each in read if each[1] not in (None, each[2])] == []
    assert len([each for each in read if each[1] is None and each[2] is not None]) == missed


def test_without_facts_nothing_is_corrected() -> None:
    assert corrected("No, it is 45 days", [], "How many days?") is None


@given(st.text(max_size=200), st.lists(st.text(max_size=60), max_size=4), st.text(max_size=60))
def test_any_text_can_be_judged(comment: str, facts: list[str], question: str) -> None:
    stated = statement(comment)
    assert stated is None or stated.strip()
    place = corrected(comment, facts, question)
    assert place is None or 0 <= place < len(facts)
