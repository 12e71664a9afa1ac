"""One typing error in a question: a long word that nothing knows, and the only known word that it may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from string import ascii_lowercase

from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.question_reading import Span, canonical, is_common, vocabulary
from heedful.sql.reuse.values import other_numbers, places

MIN_LETTERS, MAX_LETTERS = 7, 30
"""Letters of a word in which one may be wrong: many shorter words differ in one letter, and no word is longer."""

_ENDINGS = frozenset(("", *"d e r s y ed ee er es rs ees ers".split()))  # noqa: SIM905
"""What relatives of one word end with: "arrives" is no error for "arrived", nor "employer" for "employee"."""


def corrected(question: str, words: Sequence[str], spans: Sequence[Span], evidence: Evidence) -> str | None:
    """The question with one word put right, or None when no word is wrong, or it may be several."""
    values = {place for span in spans for place in range(span.start, span.stop)}
    unknown = [at for at, word in enumerate(words) if at not in values and _is_unknown(word, evidence)]
    if len(unknown) != 1:
        return None
    (place,) = unknown
    wrong = words[place]
    known = _known(words, place, {*_edits(wrong)} - {wrong}, evidence)
    meant = {each for each in known if not _are_related(wrong, each)}
    if len({canonical((each,)) for each in meant}) != 1:
        return None
    right = min(meant, key=lambda each: (each[-1] != wrong[-1], each))
    start, stop = next((start, stop) for word, start, stop in places(question) if word == wrong)
    return f"{question[:start]}{right.capitalize() if question[start].isupper() else right}{question[stop:]}"


def _is_unknown(word: str, evidence: Evidence) -> bool:
    if not MIN_LETTERS <= len(word) <= MAX_LETTERS or not (word.isascii() and word.isalpha()) or is_common(word):
        return False
    names = vocabulary(evidence.values).names
    return not any(each in evidence.vocabulary or each in names for each in (word, *other_numbers(word)))


def _known(words: Sequence[str], place: int, edits: Set[str], evidence: Evidence) -> set[str]:
    """The words that proven questions have, or columns hold, alone or with the word before or after it."""
    texts = {each: each for each in edits}
    for at, form in ((place - 1, "{0} {1}"), (place + 1, "{1} {0}")):
        if 0 <= at < len(words) and not is_common(words[at]):
            texts |= {form.format(words[at], each): each for each in edits}
    held = {texts[each] for each in evidence.values.among(texts.keys())}
    return held | {each for each in edits if each in evidence.vocabulary}


def _edits(word: str) -> Iterator[str]:
    """The words that a letter more, less, other or in place of the next makes of one, but for its first letter: there,
    it may mean the opposite ("atypical")."""
    for at in range(1, len(word) + 1):
        left, right = word[:at], word[at:]
        yield left + right[1:]
        yield left + right[1:2] + right[:1] + right[2:]
        for letter in ascii_lowercase:
            yield left + letter + right
            yield left + letter + right[1:]


def _are_related(one: str, other: str) -> bool:
    """Whether two words differ only in what forms of one word end with."""
    stem = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return {one[stem:], other[stem:]} <= _ENDINGS
