"""Which values the columns of a database hold: what tells a name in a question from a word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

Column = tuple[str, str]
"""(table, column), in lower case."""

_WORD = re.compile(r"\d{4}-\d{2}-\d{2}|(?<![\w.)])-?\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+|!=|<>|[<>]=|[<>=≤≥≠$€£¥%+#]")
_SAME_SHARE = 0.6  # The share of a column's values that another one has when both name the same kind of thing.


def split(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation, but with signs that compare or are units.

    >>> split("St. Louis, on 2024-05-01: over 1,500")
    ['st', 'louis', 'on', '2024-05-01', 'over', '1,500']
    """
    text = text.casefold().replace("’", "'").replace("can't", "can not").replace("won't", "will not")
    return _WORD.findall(text.replace("n't", " not"))


def plain(value: str) -> str:
    """A value as it is compared: its words, whatever their case and punctuation."""
    return " ".join(split(value))


class Values(Protocol):
    """The text values of a database, compared without case and punctuation."""

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


class Known:
    """`Values` in memory, from the distinct texts of each column.

    >>> known = Known({("city", "name"): ["Paris", "New York"], ("state", "name"): ["New York", "Ohio"]})
    >>> sorted(known.columns_of("new york")), known.longest(["in", "new", "york"], 1)
    ([('city', 'name'), ('state', 'name')], 2)
    """

    def __init__(self, columns: Mapping[Column, Iterable[str]]) -> None:
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
        self._kinds = self._grouped(sizes)

    def columns_of(self, value: str) -> set[Column]:
        return set(self._spellings.get(plain(value), ()))

    def has(self, table: str, column: str, value: str) -> bool:
        return bool(self.spellings(table, column, value))

    def spellings(self, table: str, column: str, value: str) -> set[str]:
        return self._spellings.get(plain(value), {}).get((table.lower(), column.lower()), set())

    def kind(self, table: str, column: str) -> str:
        table, column = table.lower(), column.lower()
        return self._kinds.get((table, column), f"{table}.{column}")

    def longest(self, words: Sequence[str], start: int) -> int:
        for length in range(min(self._longest.get(words[start], 0), len(words) - start), 0, -1):
            if " ".join(words[start : start + length]) in self._spellings:
                return length
        return 0

    def _grouped(self, sizes: Mapping[Column, int]) -> dict[Column, str]:
        """Each column's kind, named by the largest column that has most of its values."""
        shared: dict[Column, Counter[Column]] = {column: Counter() for column in sizes}
        for columns in self._spellings.values():
            for column in columns:
                shared[column].update(columns.keys())
        kinds = {}
        for column, others in shared.items():
            alike = [(sizes[other], other) for other, count in others.items() if count >= _SAME_SHARE * sizes[column]]
            kinds[column] = ".".join(max(alike)[1])
        return kinds
