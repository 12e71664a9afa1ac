"""Which values the columns of a database hold: what tells a name in a question from a word."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Protocol

from heedful.caching import cache_short

Column = tuple[str, str]
"""(table, column), in lower case."""

_WORD = re.compile(
    r"\d{4}-\d{2}-\d{2}|(?<![\w.)])-?(?:\d+(?:[.,]\d+)*|\.\d+)(?:k|mn?|bn)?(?![^\W_])|[^\W_]+"
    r"|!=|<>|[<>]=|!(?=[^\W_])|[<>=≤≥≠$€£¥%+#√‰±≈~°′″§¬^×÷∞\u0334-\u0338\u2600-\u27bf\U0001f000-\U0001faff]",
    re.IGNORECASE,
)
_TYPED = re.compile(rf"[^\W_]+n['’]t(?![^\W_])|{_WORD.pattern}", re.IGNORECASE)
_ACCENTS = re.compile("[\u0300-\u0333\u0339-\u036f]")  # Not what strikes through.
_MINUS = re.compile(r"(?<![\w)])[\u2010-\u2015\u2212](?=[\d.])")
_RAISED = re.compile("[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u215f\u2189\u2460-\u24ff]")
"""Numbers that are no digits: powers, fractions and those in circles."""
_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_COUNTED = {word: count for count, word in enumerate(_ONES.split())} | {
    word: 10 * count for count, word in enumerate(_TENS.split(), start=2)
}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_SCALES |= {"mn": 1_000_000, "bn": 1_000_000_000}
_LARGEST = Decimal(10) ** 20  # What is scaled further is no number that somebody means.
_COMPOUND = frozenset((*_SCALES, *_TENS.split()))
_SAME_SHARE = 0.6  # The share of a column's values that another one has when both name the same kind of thing.


def split(text: str) -> list[str]:
    """The words of a text in lower case, without accents and punctuation, but with signs that compare or are units.
    A number in several words is one.

    >>> split("Saint-Étienne, on 2024-05-01: over 1,500")
    ['saint', 'etienne', 'on', '2024-05-01', 'over', '1,500']
    >>> split("more than two hundred and fifty thousand"), split("half a dozen")
    (['more', 'than', '250000'], ['6'])
    """
    text = text.casefold().replace("’", "'").replace("can't", "can not").replace("won't", "will not")
    if not text.isascii():
        text = _RAISED.sub(" ^ ", _MINUS.sub("-", text))
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    words = _WORD.findall(text.replace("n't", " not"))
    return words if _COMPOUND.isdisjoint(words) else _with_numbers(words)


@cache_short(entries=4_096, characters=500)
def places(text: str) -> tuple[tuple[str, int, int], ...]:
    """Each word of a text as it is compared, and where it begins and ends there; "don't" is two."""
    return tuple((word, *found.span()) for found in _TYPED.finditer(text) for word in split(found.group()))


def _with_numbers(words: Sequence[str]) -> list[str]:
    """The words, with numbers of several words as one: "twenty-five", "two hundred and five", "2.5 million"."""
    made, place = [], 0
    while place < len(words):
        length, value = _number(words, place)
        made.append(format(value.normalize(), "f") if length > 1 else words[place])
        place += length
    return made


def _number(words: Sequence[str], start: int) -> tuple[int, Decimal]:
    """How many words from `start` on are one number, and its value; 1 where there is none."""
    follows = words[start + 1] if start + 1 < len(words) else ""
    total, current, place = Decimal(0), Decimal(0), start
    if (
        words[start] == "half"
        and follows in ("a", "an")
        and not _SCALES.keys().isdisjoint(words[start + 2 : start + 3])
    ):
        current, place = Decimal("0.5"), start + 2
    elif follows in _SCALES and (words[start] in ("a", "an") or _DIGITS.fullmatch(words[start])):
        current, place = Decimal(1 if words[start] in ("a", "an") else words[start].replace(",", "")), start + 1
    while place < len(words):
        word = words[place]
        follows = words[place + 1] if place + 1 < len(words) else ""
        if word in _SCALES and 0 < current < _LARGEST:
            scale = _SCALES[word]
            total, current = (total, current * scale) if scale <= 100 else (total + current * scale, Decimal(0))
        elif word in _COUNTED and _follows(current, _COUNTED[word]):
            current += _COUNTED[word]
        elif word != "and" or not (total or current >= 100) or follows not in _COUNTED or current % 100:
            break
        place += 1
    return max(1, place - start), total + current


def _follows(current: Decimal, count: int) -> bool:
    """Whether a count may stand behind a number: "twenty" before "five", "hundred" before anything."""
    tens = current % 100
    return not tens or (tens >= 20 and not tens % 10 and 0 < count < 10)


def other_numbers(word: str) -> tuple[str, ...]:
    """The singular or the plural that a noun may be of.

    >>> other_numbers("cities"), other_numbers("boxes"), other_numbers("car")
    (('city',), ('box', 'boxe'), ('cars', 'cares'))
    """
    if len(word) < 3 or not word.isalpha():
        return ()
    if word.endswith("ies") and len(word) > 4:
        return (f"{word[:-3]}y",)
    if word.endswith("es"):
        return word[:-2], word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return (word[:-1],)
    if word.endswith("y") and word[-2] not in "aeiou":
        return (f"{word[:-1]}ies",)
    return f"{word}s", f"{word}es"


def plain(value: str) -> str:
    """A value as it is compared: its words, whatever their case and punctuation."""
    return " ".join(split(value))


class Values(Protocol):
    """The text values of a database, compared without case and punctuation."""

    @property
    def columns(self) -> frozenset[Column]:
        """All columns of the schema, also those that hold no texts."""
        ...

    def columns_of(self, value: str) -> set[Column]:
        """The columns in which the value occurs."""
        ...

    def has(self, table: str, column: str, value: str) -> bool:
        """Whether the value occurs in the column."""
        ...

    def spellings(self, table: str, column: str, value: str) -> set[str]:
        """How the column writes the value."""
        ...

    def kind(self, table: str, column: str) -> str:
        """What the column's values name: columns that share most of their values have one kind."""
        ...

    def longest(self, words: Sequence[str], start: int) -> int:
        """How many words the longest value has that begins at `start`; 0 when none does."""
        ...

    def among(self, texts: Set[str]) -> set[str]:
        """Those of many texts, as they are compared, that are values."""
        ...


Spellings = Mapping[Column, Set[str]]


class ValuesByText:
    """`Values` of something that finds the spellings of a text."""

    columns: frozenset[Column]
    _kinds: Mapping[Column, str]

    def _find(self, text: str) -> Spellings:
        """How each column that holds a text writes it."""
        raise NotImplementedError

    def _most_words(self, first: str) -> int:
        """How many words a value may have that begins with this one."""
        raise NotImplementedError

    def columns_of(self, value: str) -> set[Column]:
        return set(self._find(plain(value)))

    def has(self, table: str, column: str, value: str) -> bool:
        return bool(self.spellings(table, column, value))

    def spellings(self, table: str, column: str, value: str) -> set[str]:
        return set(self._find(plain(value)).get((table.lower(), column.lower()), ()))

    def kind(self, table: str, column: str) -> str:
        table, column = table.lower(), column.lower()
        return self._kinds.get((table, column), f"{table}.{column}")

    def longest(self, words: Sequence[str], start: int) -> int:
        for length in range(min(self._most_words(words[start]), len(words) - start), 0, -1):
            if self._find(" ".join(words[start : start + length])):
                return length
        return 0

    def among(self, texts: Set[str]) -> set[str]:
        return {text for text in texts if self._find(text)}


def lowered(columns: Iterable[Column]) -> frozenset[Column]:
    """Columns in lower case."""
    return frozenset((table.lower(), name.lower()) for table, name in columns)


def grouped(sizes: Mapping[Column, int], shared: Mapping[Column, Mapping[Column, int]]) -> dict[Column, str]:
    """Each column's kind, named by the largest column that has most of its values; `shared` counts those that two
    columns have in common."""
    kinds = {}
    for column, size in sizes.items():
        alike = [(sizes[other], other) for other, count in shared[column].items() if count >= _SAME_SHARE * size]
        kinds[column] = ".".join(max([*alike, (size, column)])[1])
    return kinds


class Known(ValuesByText):
    """`Values` in memory, from the distinct texts of each column; `schema` has the other columns.

    >>> known = Known({("city", "name"): ["Paris", "New York"], ("state", "name"): ["New York", "Ohio"]})
    >>> sorted(known.columns_of("new york")), known.longest(["in", "new", "york"], 1)
    ([('city', 'name'), ('state', 'name')], 2)
    """

    def __init__(self, columns: Mapping[Column, Iterable[str]], schema: Iterable[Column] = ()) -> None:
        self.columns = lowered((*columns, *schema))
        self._spellings: dict[str, dict[Column, set[str]]] = {}
        self._longest: dict[str, int] = {}
        sizes: Counter[Column] = Counter()
        for (table, name), values in columns.items():
            column = (table.lower(), name.lower())
            for value in values:
                words = split(value)
                if not words:
                    continue
                known = self._spellings.setdefault(" ".join(words), {})
                sizes[column] += column not in known
                known.setdefault(column, set()).add(value)
                self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))
        shared: dict[Column, Counter[Column]] = {column: Counter() for column in sizes}
        for holding in self._spellings.values():
            for column in holding:
                shared[column].update(holding.keys())
        self._kinds = grouped(sizes, shared)

    def _find(self, text: str) -> Spellings:
        return self._spellings.get(text, {})

    def _most_words(self, first: str) -> int:
        return self._longest.get(first, 0)
