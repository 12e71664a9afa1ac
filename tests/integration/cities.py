"""A small SQLite database of cities, and a way to change it that isn't ours."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

TABLES = """
CREATE TABLE city (id integer PRIMARY KEY, name text NOT NULL, country text, people integer);
CREATE TABLE street (id integer PRIMARY KEY, city_id integer REFERENCES city (id), name text);
INSERT INTO city VALUES
    (1, 'Rome', 'Italy', 2800000), (2, 'Oslo', 'Norway', 700000), (3, 'Nice', 'France', NULL),
    (4, 'Milan', 'Italy', 1400000), (5, 'Paris', 'France', 2100000);
INSERT INTO street VALUES (1, 1, 'Via Appia'), (2, 1, 'Via Veneto'), (3, 2, 'Karl Johan');
"""

LONG_AGO = 1_600_000_000

IN_ITALY = "How many cities are in Italy?"
IN_ITALY_SQL = "SELECT count(*) AS cities FROM city WHERE country = 'Italy'"


@dataclass(frozen=True)
class Cities:
    """The database's file, and its URL."""

    file: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    def write(self, sql: str, *, settled: bool = True) -> None:
        """Changes the database, as somebody else would; if `settled`, some time ago."""
        before = self.file.stat().st_mtime if self.file.exists() else LONG_AGO
        connection = sqlite3.connect(self.file)
        with connection:
            connection.executescript(sql)
        connection.close()
        if settled:
            os.utime(self.file, (before + 10, before + 10))


def make_cities(folder: Path, name: str = "cities.db") -> Cities:
    """The database in a folder."""
    made = Cities(folder / name)
    made.write(TABLES)
    return made
