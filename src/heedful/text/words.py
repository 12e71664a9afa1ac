"""The words of a text as evidence: what they stem from, and whether they name, count or date something."""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache
from typing import Literal, NamedTuple

from snowballstemmer.english_stemmer import EnglishStemmer

from heedful.caching import cache_short
from heedful.text import word_set
from heedful.text.regex import regex

Kind = Literal["word", "name", "number", "common"]


class Word(NamedTuple):
    """One word of a text and its position; forms of one word have one `term`."""

    term: str
    kind: Kind
    start: int
    stop: int


_WORD = regex(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_THOUSANDS = regex(r",(?=\d{3}(?!\d))")
_OPENING = regex(r"[.?!:;\n\"“\[(]")
_SENTENCE_END = regex(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\n+")

# Without "may" and "will", which are also names.
_STOP = word_set("""
a an the and or but if of to in on at by for from with as is are was were be been being am do does did have has had
would can could should i you he she it we they me him her us them my your his its our their this that these those
what which who whom whose when where why how not no so than then there here about into up out just
s t re ve ll d m
""")
_COMMON = _STOP | word_set("""
done having will shall might must some any all more most much many like get got go going went one also too very really
yes hey hi wow thanks oh well yeah st nd rd th im
""")
_NUMBERS = {
    word: str(number)
    for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), start=2)  # noqa: SIM905
}
# Without "may" and "mar", which are rather words.
_MONTHS = {
    form: name
    for name in "january february march april june july august september october november december".split()  # noqa: SIM905
    for form in ({name, name[:3], name[:4]} if name == "september" else {name, name[:3]} - {"mar"})
}


@cache_short(entries=512, characters=2_000)
def words(text: str) -> tuple[Word, ...]:
    """The words of a text, in order.

    >>> [(word.term, word.kind) for word in words("She visited Rome in Sept 2023, paying 1,000 euros")]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('she', 'common'), ('visit', 'word'), ('rome', 'name'), ('in', 'common'), ('september', 'number'),
     ('2023', 'number'), ('pay', 'word'), ('1000', 'number'), ('euro', 'word')]
    """
    found = []
    after = 0
    for match in _WORD.finditer(text):
        opens = after == 0 or _OPENING.search(text, after, match.start()) is not None
        after = match.end()
        term, kind = _read(match.group(), opens)
        found.append(Word(term, kind, match.start(), match.end()))
    return tuple(found)


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, without the white space around them.

    >>> sentences("It rained. All day!\\n- So we stayed in")
    ['It rained.', 'All day!', '- So we stayed in']
    """
    return [stripped for part in _SENTENCE_END.split(text) if (stripped := part.strip())]


def _read(word: str, opens: bool) -> tuple[str, Kind]:
    """The term and kind of a word; a capital says nothing about a word that opens a sentence."""
    if word[0].isdigit():
        return _THOUSANDS.sub("", word).lstrip("0") or "0", "number"
    low = _plain(word.lower().replace("’", "'"))
    if low in _NUMBERS:
        return _NUMBERS[low], "number"
    if low in _MONTHS and word[0].isupper():
        return _MONTHS[low], "number"
    if low in _COMMON or (len(low) < 2 and low.isascii()):
        return low, "common"
    name = (word.isupper() and len(word) > 1) or (word[0].isupper() and not opens)
    return stem(low), "name" if name else "word"


def _plain(low: str) -> str:
    """A word without what an apostrophe adds: "he's" is "he", "didn't" is "did"."""
    if "'" not in low:
        return low
    low = low.removesuffix("'s").removesuffix("n't")
    first = low.split("'")[0]
    return first if first in _COMMON else low.replace("'", "")


MAX_WORD = 100
"""Characters of a word. What is longer is read in parts, and has no stem."""

_TERM = regex(rf"[^\W_]{{1,{MAX_WORD}}}")


@lru_cache(maxsize=1 << 14)
def _term(word: str) -> int | None:
    if word in _STOP:
        return None
    return int.from_bytes(hashlib.blake2b(stem(word).encode(), digest_size=8).digest(), "little")


def terms(text: str) -> list[int]:
    """The terms of a text, in order; a term's number is the same in every process."""
    return [term for word in _TERM.findall(text.lower()) if (term := _term(word)) is not None]


_stemmer = EnglishStemmer()
_stemming = threading.Lock()


@lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    # The stemmer keeps the word it works on in itself.
    with _stemming:
        return str(_stemmer.stemWord(word))


def stem(word: str) -> str:
    """The stem of a word in lower case.

    >>> stem("resets"), stem("resetting")
    ('reset', 'reset')
    """
    return _stem(word) if len(word) <= MAX_WORD else word
