"""How well corrections are told from complaints: on comments that the rules were made with, held out, and unseen.

A comment is a correction if it says, of what a used fact is about, something that another reader would want recalled.
What somebody went through, wants or thinks of the answer is none. A complaint that is taken for a correction is
recalled for ever, and a correction that is missed waits for review: so precision counts for more. Some that are missed
are exceptions ("private matches can have 16 players"): learnt as corrections, they would take the rule out of answers.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful.text.corrections import corrected

COMMENTS = Path(__file__).parent / "comments"


class Matter(NamedTuple):
    """A question, the facts that its answer used, and what people said of the answer."""

    question: str
    facts: list[str]
    corrections: list[str]
    complaints: list[str]


def matters(part: str) -> list[Matter]:
    return [Matter(**each) for each in tomllib.loads((COMMENTS / f"{part}.toml").read_text("utf-8")).values()]


def learnt(matter: Matter, comments: list[str]) -> list[str]:
    return [each for each in comments if corrected(each, matter.facts, matter.question) is not None]


@pytest.mark.parametrize(
    ("part", "precision", "recall"), [("built_on", 0.98, 0.84), ("held_out", 0.98, 0.83), ("unseen", 0.95, 0.58)]
)
def test_corrections_are_told_from_complaints(part: str, precision: float, recall: float) -> None:
    right = [each for matter in matters(part) for each in learnt(matter, matter.corrections)]
    wrong = [each for matter in matters(part) for each in learnt(matter, matter.complaints)]
    assert len(right) / (len(right) + len(wrong)) >= precision, wrong
    assert len(right) / sum(len(matter.corrections) for matter in matters(part)) >= recall


def test_no_comment_is_in_two_parts_or_judged_twice() -> None:
    parts = [matter for part in ("built_on", "held_out", "unseen") for matter in matters(part)]
    opinions = [each for matter in parts for each in matter.corrections + matter.complaints]
    assert len(opinions) == len(set(opinions))
