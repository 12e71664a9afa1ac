"""What kind of answer a question asks for, and whether a sentence has one."""

from __future__ import annotations

import re
from typing import Literal

from heedful.learning.words import words

Asked = Literal["time", "number", "person", "place"]

_KINDS: tuple[tuple[Asked, re.Pattern[str]], ...] = (
    (
        "time",
        re.compile(r"\b(?:when|how (?:long|often|recently)|(?:what|which) (?:date|day|time|year|month|week)s?)\b"),
    ),
    (
        "number",
        re.compile(r"\b(?:how (?:many|much|old|far|tall|big|large|high)|what (?:number|percentage|price|cost))\b"),
    ),
    ("person", re.compile(r"\b(?:who|whom|whose)\b")),
    ("place", re.compile(r"\b(?:where|(?:what|which) (?:city|country|place|state|town|location|address))\b")),
)
_LIST = re.compile(
    r"\b(?:list|name (?:all|the|some)|(?:what|which) (?:are|were|kinds?|types?|sorts?)|all (?:of )?the|"
    r"(?:what|which) (?:\w+ ){0,2}(?:\w{2,}[^s\W]s) (?:do|does|did|are|were|has|have)|both)\b"
)
_TIME = re.compile(
    r"\b(?:\d{4}|\d{1,2}:\d{2}|\d{1,2} ?[ap]\.?m|yesterday|today|tonight|tomorrow|ago|since|last|next|recently|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:week|month|year|day|hour|minute|decade)s?|weekend|morning|"
    r"evening|afternoon|noon|midnight|summer|winter|spring|autumn|jan(?:uary)?|feb(?:ruary)?|march|april|may \d|june|"
    r"july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_PLACE = re.compile(r"\b(?:in|at|from|to|near|into|around|through|visited|outside|inside) (?:the )?[A-Z]")
_PLACE_WORD = re.compile(r"\b(?:at|in|near|to|from) (?:the|a|my|our|his|her|their) \w+")
_NUMBER_WORD = re.compile(r"\b(?:once|twice|dozens?|hundreds?|thousands?|millions?|half|a couple|several|one)\b")


def asked_for(question: str) -> Asked | None:
    """The kind of answer, where the question says."""
    low = question.lower()
    places = [(match.start(), kind) for kind, pattern in _KINDS if (match := pattern.search(low))]
    return min(places)[1] if places else None


def asks_for_a_list(question: str) -> bool:
    """Whether more than one thing is asked for."""
    return _LIST.search(question.lower()) is not None


def has(kind: Asked, sentence: str, known: frozenset[str]) -> float:
    """How surely a sentence holds that kind of answer, in [0, 1]; `known` are the question's own terms."""
    told = words(sentence)
    if kind == "time":
        return float(_TIME.search(sentence.lower()) is not None)
    if kind == "number":
        numbers = any(word.kind == "number" and word.term not in known for word in told)
        return 1.0 if numbers else 0.5 * (_NUMBER_WORD.search(sentence.lower()) is not None)
    named = any(word.kind == "name" and word.term not in known for word in told)
    if kind == "person":
        return float(named)
    if _PLACE.search(sentence):
        return 1.0
    return 0.5 * (_PLACE_WORD.search(sentence.lower()) is not None)
