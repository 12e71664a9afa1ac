"""The values of columns that hold too many to keep in memory: an index on disk, of this process alone."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Set

from cachetools import LRUCache

from heedful.sql.reuse.values import Column, Spellings, ValuesByText, grouped, lowered, plain

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


class ValueIndex(ValuesByText):
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
        place = self._places.setdefault(column, len(self._columns))
        if place == len(self._columns):
            self._columns.append(column)
        self._database.executemany("INSERT INTO added VALUES (?, ?)", ((place, value) for value in values))

    def finish(self) -> None:
        """Makes what was added ready to be found."""
        for statement in (_HASHED, "DROP TABLE added", _INDEX, "COMMIT"):
            self._database.execute(statement)
        counts = self._database.execute("SELECT place, COUNT(*) FROM spellings GROUP BY place")
        sizes = {self._columns[place]: count for place, count in counts}
        shared: dict[Column, dict[Column, int]] = {column: {} for column in self._columns}
        for mine, other, count in self._database.execute(_SHARED):
            shared[self._columns[mine]][self._columns[other]] = count
        self._kinds = grouped(sizes, shared)

    def _hash(self, value: str) -> int | None:
        """What a value is found by, or None if it is none that is looked for."""
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
