"""Texts of any kind into sentences that are complete on their own."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

from heedful.text.regex import regex
from heedful.text.words import words

MAX_SENTENCE = 320
"""Characters of a sentence at most; what is longer is cut, and shows it."""

_HEADING = regex(r"\s*#{1,6}\s")
_BULLET = regex(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_WRAPPED = 60  # a line from this length on may go on in the next one
_CLOSING = "\"'”’»)]"
# Only from the first of several stops, and without going back: a run of them is read once.
_END = regex(rf"(?<![.!?…])[.!?…]++[{re.escape(_CLOSING)}]*+\s++|[。！？]++[」』”’）]*+\s*+")
_STOP = (".", "!", "?", "…", "。", "！", "？", ":", ";")
_ABBREVIATED = regex(
    r"(?:\b(?:dr|mrs?|ms|prof|st|jr|sr|vs|no|nr|fig|approx|inc|ltd|bzw|e\.g|i\.e|z\.b|p\.ex)|\b[^\W\d_])\.$",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 8  # characters, with its stop and the one before it
_CUTS = (regex(r"[;,:–—]\s+"), regex(r"\s+"))


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without headings and bullets; none is longer than `MAX_SENTENCE`.

    A line that goes on in the next one is one sentence with it; an abbreviation ends none.
    """
    found: list[str] = []
    for paragraph in _paragraphs(text):
        for sentence in _split(paragraph):
            found += _cut(sentence)
    return found


def _paragraphs(text: str) -> list[str]:
    """Lines, put together where one goes on in the next."""
    found: list[list[str]] = []
    goes_on = False
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or _HEADING.match(line):
            goes_on = False
            continue
        bullet = _BULLET.match(line)
        if goes_on and bullet is None and (stripped[0].islower() or len(found[-1][-1]) >= _WRAPPED):
            found[-1].append(stripped)
        else:
            found.append([stripped if bullet is None else line[bullet.end() :].strip()])
        goes_on = not stripped.endswith(_STOP)
    return [" ".join(paragraph.split()) for lines in found if (paragraph := "\n".join(lines))]


def _split(paragraph: str) -> list[str]:
    found = []
    start = 0
    for match in _END.finditer(paragraph):
        end = match.end()
        stop = end - (paragraph[end - 1] == " ")
        if paragraph[end : end + 1].islower():
            continue
        if _ABBREVIATED.search(paragraph, max(start, stop - _LONGEST_ABBREVIATION), stop):
            continue
        found.append(paragraph[start:stop].strip())
        start = end
    rest = paragraph[start:].strip()
    return [*found, rest] if rest else found


def _cut(sentence: str) -> list[str]:
    """A sentence that is too long, in pieces; each shows where it was cut."""
    pieces = []
    start, before = 0, ""
    while len(before) + len(sentence) - start > MAX_SENTENCE:
        head = before + sentence[start : start + MAX_SENTENCE]
        at = next((end for pattern in _CUTS if (end := _last(pattern, head)) > MAX_SENTENCE // 3), MAX_SENTENCE - 4)
        pieces.append(f"{head[:at].strip()} …")
        start += at - len(before)
        start += sentence.startswith(" ", start)
        before = "… "
    return [*pieces, before + sentence[start:]]


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match ends that leaves a piece which is short enough; 0 if there is none."""
    return max((match.end() for match in pattern.finditer(text, 0, MAX_SENTENCE - 4)), default=0)


AnswerKind = Literal["time", "number", "person", "place"]

_KINDS: dict[AnswerKind, re.Pattern[str]] = {
    "time": regex(r"\b(?:when|how (?:long|often|recently)|(?:what|which) (?:date|day|time|year|month|week)s?)\b"),
    "number": regex(r"\bhow (?:many|much|old|far|tall|big|large|high)\b|\bwhat (?:number|percentage|price|cost)\b"),
    "person": regex(r"\b(?:who|whom|whose)\b"),
    "place": regex(r"\b(?:where|(?:what|which) (?:city|country|place|state|town|location|address))\b"),
}
_LIST = regex(
    r"\b(?:list|name (?:all|the|some)|(?:what|which) (?:are|were|kinds?|types?|sorts?)|all (?:of )?the|"
    r"(?:what|which) (?:\w+ ){0,2}(?:\w{2,}[^s\W]s) (?:do|does|did|are|were|has|have)|both)\b"
)
_TIME = regex(
    r"\b(?:\d{4}|\d{1,2}:\d{2}|\d{1,2} ?[ap]\.?m|yesterday|today|tonight|tomorrow|ago|since|last|next|recently|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:week|month|year|day|hour|minute|decade)s?|weekend|morning|"
    r"evening|afternoon|noon|midnight|summer|winter|spring|autumn|jan(?:uary)?|feb(?:ruary)?|march|april|may \d|june|"
    r"july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_PLACE = regex(r"\b(?:in|at|from|to|near|into|around|through|visited|outside|inside) (?:the )?[A-Z]")
_PLACE_WORD = regex(r"\b(?:at|in|near|to|from) (?:the|a|my|our|his|her|their) \w+")
_NUMBER_WORD = regex(r"\b(?:once|twice|dozens?|hundreds?|thousands?|millions?|half|a couple|several|one)\b")


def answer_kind(question: str) -> AnswerKind | None:
    """The kind of answer, where the question says."""
    low = question.lower()
    places = [(match.start(), kind) for kind, pattern in _KINDS.items() if (match := pattern.search(low))]
    return min(places)[1] if places else None


def asks_for_a_list(question: str) -> bool:
    """Whether more than one thing is asked for."""
    return _LIST.search(question.lower()) is not None


def has(kind: AnswerKind, sentence: str, known: frozenset[str]) -> float:
    """The probability, in [0, 1], that a sentence holds that kind of answer; `known` are the question's own terms."""
    found = words(sentence)
    if kind == "time":
        return float(_TIME.search(sentence.lower()) is not None)
    if kind == "number":
        numbers = any(word.kind == "number" and word.term not in known for word in found)
        return 1.0 if numbers else 0.5 * (_NUMBER_WORD.search(sentence.lower()) is not None)
    named = any(word.kind == "name" and word.term not in known for word in found)
    if kind == "person":
        return float(named)
    if _PLACE.search(sentence):
        return 1.0
    return 0.5 * (_PLACE_WORD.search(sentence.lower()) is not None)


_NUMBER = r"\d{1,4}"
_CITATION = rf"[\[【]\s*{_NUMBER}(?:\s*(?:[,;&–-]|and)\s*{_NUMBER})*\s*[\]】](?!\()"
_CITATIONS = regex(_CITATION)
_RANGE = regex(rf"({_NUMBER})\s*[–-]\s*({_NUMBER})|({_NUMBER})")
_BEHIND_THE_STOP = regex(rf"(?<![.!?…。！？])([.!?…。！？]++[\"'”’»)]*+)[ \t]*+((?:{_CITATION}[ \t]*+)+)")
_WITH_SPACE = regex(rf"(?:(?<![ \t])[ \t]++)?+{_CITATION}")


def cited(text: str, count: int) -> dict[int, float]:
    """The share of each number from 1 to `count` that is cited, in the order of the text; the shares sum to 1.

    A number has the share of its sentences among all that cite. Numbers beyond `count` name nothing, and are left out.
    """
    sentences_of: Counter[int] = Counter()
    # A citation behind the full stop belongs to the sentence that ends there.
    for sentence in sentences(_BEHIND_THE_STOP.sub(r" \2\1 ", text)):
        sentences_of.update(dict.fromkeys(_numbers(sentence, count), 1))
    total = sentences_of.total()
    return {number: times / total for number, times in sentences_of.items()}


def without_citations(text: str) -> str:
    """A text whose citations would mean something else elsewhere."""
    return _WITH_SPACE.sub("", text)


def _numbers(sentence: str, count: int) -> list[int]:
    found: dict[int, None] = {}
    for citation in _CITATIONS.findall(sentence):
        for low, high, single in _RANGE.findall(citation):
            first, last = (int(single), int(single)) if single else sorted((int(low), int(high)))
            found.update(dict.fromkeys(range(max(first, 1), min(last, count) + 1)))
    return list(found)
