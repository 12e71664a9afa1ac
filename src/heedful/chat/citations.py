"""Which of the numbered texts an answer cites: [1], [1, 2], [1][2], [1-3]."""

from __future__ import annotations

import re
from collections import Counter

from heedful.chat.sentences import sentences

_NUMBER = r"\d{1,4}"
_CITATION = rf"[\[【]\s*{_NUMBER}(?:\s*(?:[,;&–-]|and)\s*{_NUMBER})*\s*[\]】](?!\()"
_CITATIONS = re.compile(_CITATION)
_RANGE = re.compile(rf"({_NUMBER})\s*[–-]\s*({_NUMBER})|({_NUMBER})")
_BEHIND_THE_STOP = re.compile(rf"([.!?…。！？]+[\"'”’»)]*)[ \t]*((?:{_CITATION}[ \t]*)+)")


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
    return re.sub(rf"[ \t]*{_CITATION}", "", text)


def _numbers(sentence: str, count: int) -> list[int]:
    found: dict[int, None] = {}
    for citation in _CITATIONS.findall(sentence):
        for low, high, single in _RANGE.findall(citation):
            first, last = (int(single), int(single)) if single else sorted((int(low), int(high)))
            found.update(dict.fromkeys(range(max(first, 1), min(last, count) + 1)))
    return list(found)
