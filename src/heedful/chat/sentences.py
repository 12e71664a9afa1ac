"""Texts of any kind into sentences that can stand alone."""

from __future__ import annotations

import re

LONGEST = 320
"""Characters of a sentence at most; what is longer is cut, and shows it."""

_HEADING = re.compile(r"\s*#{1,6}\s")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_WRAPPED = 60  # a line from this length on may go on in the next one
_CLOSING = "\"'”’»)]"
_END = re.compile(rf"[.!?…]+[{re.escape(_CLOSING)}]*\s+|[。！？]+[」』”’）]*\s*")
_STOP = (".", "!", "?", "…", "。", "！", "？", ":", ";")
_ABBREVIATED = re.compile(
    r"(?:\b(?:dr|mrs?|ms|prof|st|jr|sr|vs|no|nr|fig|approx|inc|ltd|bzw|e\.g|i\.e|z\.b|p\.ex)|\b[^\W\d_])\.$",
    re.IGNORECASE,
)
_CUTS = (re.compile(r"[;,:–—]\s+"), re.compile(r"\s+"))


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without headings and bullets; none is longer than `LONGEST`.

    A line that goes on in the next one is one sentence with it; an abbreviation ends none.
    """
    found: list[str] = []
    for paragraph in _paragraphs(text):
        for sentence in _split(paragraph):
            found += _cut(sentence)
    return found


def _paragraphs(text: str) -> list[str]:
    """Lines, put together where one goes on in the next."""
    found: list[str] = []
    goes_on = False
    for line in text.splitlines():
        told = line.strip()
        if not told or _HEADING.match(line):
            goes_on = False
            continue
        bullet = _BULLET.match(line)
        if goes_on and bullet is None and (told[0].islower() or len(found[-1].split("\n")[-1]) >= _WRAPPED):
            found[-1] += f"\n{told}"
        else:
            found.append(told if bullet is None else line[bullet.end() :].strip())
        goes_on = not told.endswith(_STOP)
    return [" ".join(paragraph.split()) for paragraph in found if paragraph]


def _split(paragraph: str) -> list[str]:
    found = []
    start = 0
    for match in _END.finditer(paragraph):
        told = paragraph[start : match.end()].strip()
        following = paragraph[match.end() : match.end() + 1]
        if following.islower() or _ABBREVIATED.search(told):
            continue
        found.append(told)
        start = match.end()
    rest = paragraph[start:].strip()
    return [*found, rest] if rest else found


def _cut(sentence: str) -> list[str]:
    """A sentence that is too long, in pieces; each shows where it was cut."""
    pieces = []
    rest = sentence
    while len(rest) > LONGEST:
        at = next((end for pattern in _CUTS if (end := _last(pattern, rest)) > LONGEST // 3), LONGEST - 4)
        pieces.append(f"{rest[:at].strip()} …")
        rest = f"… {rest[at:].strip()}"
    return [*pieces, rest]


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match ends that leaves a piece which is short enough; 0 if there is none."""
    return max((match.end() for match in pattern.finditer(text, 0, LONGEST - 4)), default=0)
