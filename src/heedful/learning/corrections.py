"""Comments that correct a fact, told from those that only complain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heedful.learning.words import Word, words

LEAST_WORDS = 3
"""A statement without a number or a name has at least this many words that tell something."""

_VALUES = ("name", "number")

_OPENING = re.compile(
    r"^(?:no|nope|wrong|incorrect|not (?:true|right|correct)|false|outdated|actually|sorry|hm+|well)\b[\s,.;:!—–-]*",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\b(?:actually|should be|should have been|is now|are now|no longer|not any ?more|any more|instead|rather than|"
    r"changed to|moved to|correct(?:ion|ly)?|in fact|it'?s|they'?re|really is|used to|since|has been|wrong|"
    r"outdated)\b|\bnot\b.+\bbut\b|,\s*not\b",
    re.IGNORECASE,
)
_VERDICTS = frozenset(
    word.term
    for word in words(
        "answer wrong bad good great useless helpful unhelpful incorrect right correct incomplete unclear confusing "
        "outdated false true terrible poor nice thanks response reply help please better worse"
    )
)


def statement(comment: str) -> str | None:
    """What a comment states, less its verdict; None if it states nothing.

    >>> statement("Wrong! the window is 45 days, not 30.")
    'The window is 45 days, not 30.'
    >>> statement("The answer was bad")
    """
    text = comment.strip()
    while (shorter := _OPENING.sub("", text, count=1)) != text:
        text = shorter
    telling = [word for word in _content(text) if word.term not in _VERDICTS]
    if text.endswith("?") or not telling:
        return None
    if len(telling) < LEAST_WORDS and not _values(telling):
        return None
    return text[0].upper() + text[1:]


def corrected(comment: str, facts: Sequence[str], question: str) -> int | None:
    """The place of the fact that a comment corrects: about the same thing, and saying something else of it.

    >>> facts = ["Returns are accepted within 30 days", "Returns must be in the box"]
    >>> corrected("No, it is 45 days", facts, "How many days do I have for returns?")
    0
    >>> corrected("I did not like the tone at all", facts, "How many days do I have for returns?")
    """
    said = _content(comment)
    terms, about = {word.term for word in said}, {word.term for word in _content(question)}
    found: list[tuple[int, int, int]] = []
    for place, fact in enumerate(facts):
        held = _content(fact)
        known = {word.term for word in held}
        if not known & (terms | about):
            continue
        new = terms - known - about - _VERDICTS
        replaced = any(_values(said, kind) - known and _values(held, kind) - terms for kind in _VALUES)
        if new and terms & (known | about) and (replaced or _CUE.search(comment)):
            found.append((-int(replaced), -len(terms & known), place))
    return min(found)[2] if found else None


def _content(text: str) -> list[Word]:
    return [word for word in words(text) if word.kind != "common"]


def _values(found: Sequence[Word], *kinds: str) -> set[str]:
    """The names, numbers and dates among words, or one kind of them: what a correction most often replaces."""
    return {word.term for word in found if word.kind in (kinds or _VALUES)}
