"""Long texts into pieces that a question can find, at headings, paragraphs and sentence ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

LONGEST = 1000
"""Characters of a piece at most; what the bundled model reads at once."""

_HEADING = re.compile(r"(?m)^(?=#{1,6} )")
_PARAGRAPH = re.compile(r"(?<=\n)\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text and where it stands in it."""

    text: str
    start: int
    stop: int


def split(text: str, longest: int = LONGEST) -> list[Piece]:
    """The pieces of a text, in order, none longer than `longest`; a short text is one piece.

    >>> [piece.text for piece in split("# A\\nOne. Two.\\n# B\\nThree.", longest=12)]
    ['# A\\nOne.', 'Two.', '# B\\nThree.']
    """
    if len(text.strip()) <= longest:
        return _trimmed(text, [(0, len(text))])
    spans = []
    for section in _cut(text, (0, len(text)), _HEADING):
        spans += _packed(text, section, [_PARAGRAPH, _SENTENCE, _SPACE], longest)
    return _trimmed(text, spans)


Span = tuple[int, int]


def _packed(text: str, span: Span, boundaries: list[re.Pattern[str]], longest: int) -> list[Span]:
    """Spans no longer than `longest`, cut at the coarsest boundary that allows it, and filled up."""
    if span[1] - span[0] <= longest:
        return [span]
    if not boundaries:
        return [(start, min(start + longest, span[1])) for start in range(span[0], span[1], longest)]
    parts: list[Span] = []
    for part in _cut(text, span, boundaries[0]):
        parts += _packed(text, part, boundaries[1:], longest)
    filled = [parts[0]]
    for start, stop in parts[1:]:
        if stop - filled[-1][0] <= longest:
            filled[-1] = (filled[-1][0], stop)
        else:
            filled.append((start, stop))
    return filled


def _cut(text: str, span: Span, boundary: re.Pattern[str]) -> list[Span]:
    cuts = [match.end() for match in boundary.finditer(text, *span)]
    edges = sorted({span[0], *cuts, span[1]})
    return list(pairwise(edges))


def _trimmed(text: str, spans: list[Span]) -> list[Piece]:
    pieces = []
    for start, stop in spans:
        body = text[start:stop]
        inner = body.strip()
        if inner:
            first = start + len(body) - len(body.lstrip())
            pieces.append(Piece(inner, first, first + len(inner)))
    return pieces
