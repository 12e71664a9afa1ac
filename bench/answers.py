"""Answers whose sources are known: sentences of facts, put into other words by rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from heedful.text.words import sentences

MOST_FACTS = 3
LEAST_WORDS = 5
"""Shorter sentences are greetings and the like, which many facts share."""

JOINED = 0.3
"""How often two sentences become one."""

# Who tells a fact speaks of themselves; an answer speaks of them.
_PERSONS = {
    "i": "{}", "i'm": "{} is", "i've": "{} has", "i'd": "{} would", "i'll": "{} will", "me": "them", "my": "their",
    "mine": "theirs", "myself": "themselves", "we": "they", "we're": "they are", "we've": "they have", "our": "their",
    "us": "them",
}  # fmt: skip
_ENDINGS = (("ing", "ed"), ("ed", "ing"), ("ies", "y"), ("s", ""))
_CLAUSE = re.compile(r",\s+|\s+-\s+|\s+(?=(?:and|but|because|so)\s)")


@dataclass(frozen=True, slots=True)
class Rewording:
    """How far an answer departs from the facts: the share of words left out and of words with another ending."""

    dropped: float
    inflected: float


def extracted(facts: Sequence[str], rewording: Rewording, random: Random) -> tuple[str, frozenset[int]]:
    """An answer from one to three of the facts ("Speaker: what they say"), and the places of these facts."""
    usable = {place: told for place, fact in enumerate(facts) if (told := _sentences(fact))}
    chosen = random.sample(sorted(usable), min(len(usable), random.randint(1, MOST_FACTS)))
    answer = ""
    for place in chosen:
        speaker = facts[place].partition(": ")[0]
        part = reworded(_third_person(random.choice(usable[place]), speaker), rewording, random)
        joint = "" if not answer else ", and " if random.random() < JOINED else ". "
        answer += joint + part
    return f"{answer}.", frozenset(chosen)


def reworded(sentence: str, rewording: Rewording, random: Random) -> str:
    """The sentence with its clauses turned round, some words left out, and others with another ending."""
    clauses = _CLAUSE.split(sentence.rstrip(".!?"))
    if len(clauses) > 1 and random.random() < 0.5:
        cut = random.randrange(1, len(clauses))
        clauses = clauses[cut:] + clauses[:cut]
    every = ", ".join(clauses).split()
    remaining = [word for word in every if random.random() >= rewording.dropped]
    return " ".join(
        _inflected(word, random) if random.random() < rewording.inflected else word
        for word in (remaining if len(remaining) >= 3 else every)
    )


def _sentences(fact: str) -> list[str]:
    told = fact.partition(": ")[2].partition(" [shares")[0]
    return [each for each in sentences(told) if len(each.split()) >= LEAST_WORDS]


def _third_person(sentence: str, speaker: str) -> str:
    return re.sub(
        r"[A-Za-z']+",
        lambda found: _PERSONS.get(found[0].lower(), found[0]).format(speaker),
        sentence.replace("’", "'"),
    )


def _inflected(word: str, random: Random) -> str:
    if not (word.isalpha() and word.islower() and len(word) > 3):
        return word
    for ending, other in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending) + other
    return word + random.choice(("s", "ing"))
