"""Values that the columns of a database hold, in memory or in an index on disk: they tell a name from a word."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from cachetools import LRUCache

from heedful.sql.reuse.question_words import plain, split

Column = tuple[str, str]
"""(table, column), in lower case."""

_SAME_SHARE = 0.6  # The share of a column's values that another one has when both name the same kind of thing.


Spellings = Mapping[Column, Set[str]]


class Values:
    """The text values of a database, compared without case and punctuation."""

    columns: frozenset[Column]
    """All columns of the schema, also those that hold no texts."""
    _kinds: Mapping[Column, str]

    def _find(self, text: str) -> Spellings:
        """The spellings of a text, by the columns that hold it."""
        raise NotImplementedError

    def _most_words(self, first: str) -> int:
        """The number of words that a value may have which begins with this one."""
        raise NotImplementedError

    def columns_of(self, value: str) -> set[Column]:
        """The columns in which the value occurs."""
        return set(self._find(plain(value)))

    def has(self, table: str, column: str, value: str) -> bool:
        """Whether the value occurs in the column."""
        return bool(self.spellings(table, column, value))

    def spellings(self, table: str, column: str, value: str) -> set[str]:
        """The spellings of the value in the column."""
        return set(self._find(plain(value)).get((table.lower(), column.lower()), ()))

    def kind(self, table: str, column: str) -> str:
        """The kind of the column's values: columns that share most of them have one kind."""
        table, column = table.lower(), column.lower()
        return self._kinds.get((table, column), f"{table}.{column}")

    def longest(self, words: Sequence[str], start: int) -> int:
        """The number of words of the longest value that begins at `start`; 0 when none does."""
        for length in range(min(self._most_words(words[start]), len(words) - start), 0, -1):
            if self._find(" ".join(words[start : start + length])):
                return length
        return 0

    def among(self, texts: Set[str]) -> set[str]:
        """Those of many texts, as they are compared, that are values."""
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


class Known(Values):
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


MAX_VALUE_WORDS = 12
"""Words of a value beyond which it isn't looked for in questions."""

_MAX_CACHED = 20_000
_MAX_CACHED_TEXT = 200
_CACHE_PAGES = -16_000  # KiB of the file that SQLite keeps in memory.
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = {pages};
CREATE TABLE added (place INTEGER NOT NULL, spelling TEXT NOT NULL);
CREATE TABLE spellings (hash INTEGER NOT NULL, place INTEGER NOT NULL, spelling TEXT NOT NULL);
"""
_HASHED = """
INSERT INTO spellings SELECT hash, place, spelling FROM (SELECT hash_of(spelling) hash, place, spelling FROM added)
WHERE hash IS NOT NULL
"""
_INDEX = "CREATE INDEX by_hash ON spellings (hash, place)"
_SHARED = """
SELECT mine.place, other.place, COUNT(DISTINCT mine.hash) FROM spellings mine
JOIN spellings other ON other.hash = mine.hash AND other.place <> mine.place GROUP BY mine.place, other.place
"""
_AMONG = "SELECT DISTINCT hash FROM spellings WHERE hash IN ({})"
_FIND = "SELECT place, spelling FROM spellings WHERE hash = ?"


class ValueIndex(Values):
    """`Values` in a file without a name, which is gone when this object is. Add the values of columns, then `finish`.

    >>> index = ValueIndex()
    >>> index.add(("city", "name"), ["Paris", "New York"])
    >>> index.finish()
    >>> index.columns_of("new york"), index.spellings("city", "name", "PARIS")
    ({('city', 'name')}, {'Paris'})
    """

    def __init__(self, columns: Iterable[Column] = ()) -> None:
        # An empty name is a temporary file that SQLite has removed already.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_SCHEMA.format(pages=_CACHE_PAGES))
        self._database.create_function("hash_of", 1, self._hash)
        self._database.execute("BEGIN")
        self.columns = lowered(columns)
        self._places: dict[Column, int] = {}
        self._columns: list[Column] = []
        self._kinds: Mapping[Column, str] = {}
        self._longest = 1
        self._found: LRUCache[str, Spellings] = LRUCache(_MAX_CACHED)
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def is_usable(self) -> bool:
        """Not in a process that was forked from the one that made it: they would share the file's connection."""
        return self._process == os.getpid()

    def add(self, column: Column, values: Iterable[str]) -> None:
        """Takes values of a column in, as quickly as it can: meanwhile, the database that they come from waits."""
        column = (column[0].lower(), column[1].lower())
        place = self._places.setdefault(column, len(self._places))
        self._database.executemany("INSERT INTO added VALUES (?, ?)", ((place, value) for value in values))

    def finish(self) -> None:
        """Makes what was added ready to be found."""
        for statement in (_HASHED, "DROP TABLE added", _INDEX, "COMMIT"):
            self._database.execute(statement)
        self._columns = list(self._places)
        counts = self._database.execute("SELECT place, COUNT(*) FROM spellings GROUP BY place")
        sizes = {self._columns[place]: count for place, count in counts}
        shared: dict[Column, dict[Column, int]] = {column: {} for column in self._columns}
        for mine, other, count in self._database.execute(_SHARED):
            shared[self._columns[mine]][self._columns[other]] = count
        self._kinds = grouped(sizes, shared)

    def _hash(self, value: str) -> int | None:
        """The hash that finds a value, or None if it is none that is looked for."""
        text = plain(value)
        words = text.count(" ") + 1
        if not text or words > MAX_VALUE_WORDS:
            return None
        self._longest = max(self._longest, words)
        # Hashes of texts hold for one process, as the file does.
        return hash(text)

    def among(self, texts: Set[str]) -> set[str]:
        if not self.is_usable:
            return set()
        hashes = [hash(text) for text in texts]
        with self._lock:
            rows = self._database.execute(_AMONG.format(", ".join("?" * len(hashes))), hashes).fetchall()
        found = {row[0] for row in rows}
        return super().among({text for text in texts if hash(text) in found})

    def _find(self, text: str) -> Spellings:
        if not self.is_usable:
            return {}
        with self._lock:
            found = self._found.get(text)
            if found is None:
                found = self._read(text)
                if len(text) <= _MAX_CACHED_TEXT:
                    self._found[text] = found
            return found

    def _read(self, text: str) -> Spellings:
        found: dict[Column, set[str]] = {}
        for place, spelling in self._database.execute(_FIND, (hash(text),)):
            if plain(spelling) == text:
                found.setdefault(self._columns[place], set()).add(spelling)
        return found

    def _most_words(self, first: str) -> int:
        return self._longest
