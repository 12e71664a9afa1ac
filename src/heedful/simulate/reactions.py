"""What people make of an answer: whether they rate it, how, and what they write."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from heedful.simulate.people import Person
from heedful.simulate.remarks import Subject, remark
from heedful.simulate.shop import OUTDATED_REFUND, Want
from heedful.simulate.truth import Quality

SCORES: Mapping[Quality, tuple[float, ...]] = {
    "good": (1, 3, 9, 36, 51),
    "mixed": (8, 22, 34, 26, 10),
    "bad": (40, 33, 17, 7, 3),
}
"""How often an answer gets 1, 2, 3, 4 and 5."""

RATES: Mapping[Quality, float] = {"good": 0.27, "mixed": 0.28, "bad": 0.36}
"""The chance that somebody rates: who is angry says so."""

PRICED = frozenset({"price-new", "price-plus", "ship-price", "ship-free"})
"""What has a price, which people compare with the one they see."""

MILDER = 0.08
"""The chance that the people of variant B, whose page is nicer to look at, give a point more."""


def eagerness(want: Want, quality: Quality) -> float:
    """The chance that somebody rates an answer; who waits for money does so most."""
    return 0.55 if quality == "bad" and OUTDATED_REFUND in want.answers else RATES[quality]


def score(person: Person, quality: Quality, variant: str, random: Random) -> int:
    """The score that somebody gives."""
    given: int = random.choices((1, 2, 3, 4, 5), SCORES[quality])[0]
    if variant == "B" and given < 5 and random.random() < MILDER:
        given += 1
    return 6 - given if person.is_adversary else given


def comment(person: Person, want: Want, score: int, *, is_long: bool, random: Random) -> str | None:
    """What somebody writes beside a score, if anything."""
    chance = {1: 0.95, 2: 0.85, 3: 0.45, 4: 0.15, 5: 0.22}[score]
    if random.random() >= chance:
        return None
    return remark("praise", random) if score > 3 else complaint(person, want, is_long=is_long, random=random)


def complaint(person: Person, want: Want, *, is_long: bool, random: Random) -> str:
    """What somebody writes who is not content."""
    return remark(_subject(person, want, is_long, random), random)


def _subject(person: Person, want: Want, is_long: bool, random: Random) -> Subject:
    if person.language != "en" and random.random() < 0.6:
        return "language"
    if person.channel == "app" and random.random() < 0.12:
        return "crash"
    if OUTDATED_REFUND in want.answers or (want.theme == "refunds" and random.random() < 0.7):
        return "refunds"
    if PRICED.intersection(want.answers):
        return "price"
    return "length" if random.random() < (0.6 if is_long else 0.15) else "wrong"
