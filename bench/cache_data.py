"""Questions with their SQL and the database it runs on, in the format of "text2sql-data": NAME.json and NAME.sqlite."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.sql.reuse.values import Column, Known
from heedful.sql.statements import parse

DIALECT = "sqlite"
SECONDS = 10.0
"""Statements that take longer count as not executing."""

VALUES, VALUE_LENGTH = 50_000, 200
"""Distinct texts that are read of one column, and the longest."""

_TEXT = re.compile(r'"([^"]*)"')

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its gold SQL and what that returns."""

    text: str
    sql: str
    template: str
    rows: Rows
    ordered: bool

    @property
    def tuned_on(self) -> bool:
        """Whether its SQL template belongs to the half that rules were tuned on."""
        return int(hashlib.sha256(self.template.encode()).hexdigest(), 16) % 2 == 0

    def answered_by(self, rows: Rows | None) -> bool:
        """Whether rows are the gold answer; their order counts only where the gold SQL sorts."""
        if rows is None:
            return False
        return rows == self.rows if self.ordered else Counter(rows) == Counter(self.rows)


class Database:
    """A read-only SQLite file; each statement runs once."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        self._connection.text_factory = lambda raw: raw.decode(errors="replace")
        self._results: dict[tuple[str, tuple[tuple[str, Any], ...]], Rows | None] = {}

    def run(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows | None:
        """The rows of a statement, or None when it fails or takes too long."""
        key = sql, tuple((parameters or {}).items())
        if key not in self._results:
            until = time.monotonic() + SECONDS
            self._connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)
            try:
                self._results[key] = self._connection.execute(sql, dict(parameters or {})).fetchall()
            except sqlite3.Error:
                self._results[key] = None
        return self._results[key]

    def values(self) -> Known:
        """The texts that each column holds, as far as they are few and short enough."""
        columns: dict[Column, list[str]] = {}
        schema: list[Column] = []
        for (table,) in self.run("SELECT name FROM sqlite_master WHERE type = 'table'") or []:
            for row in self.run(f"PRAGMA table_info({_name(table)})") or []:
                column = _name(row[1])
                schema.append((table, row[1]))
                found = self.run(
                    f"SELECT DISTINCT {column} FROM {_name(table)} "
                    f"WHERE typeof({column}) = 'text' AND length({column}) <= {VALUE_LENGTH} LIMIT {VALUES}"
                )
                if found:
                    columns[table, row[1]] = [value for (value,) in found]
        return Known(columns, schema)


def questions(folder: Path, name: str, database: Database) -> tuple[list[Question], int]:
    """The questions whose SQL executes, and how many there are in all."""
    result = []
    total = 0
    for entry in json.loads((folder / f"{name}.json").read_text(encoding="utf-8")):
        template = entry["sql"][0]
        examples = {each["name"]: each["example"] for each in entry.get("variables", [])}
        for sentence in entry["sentences"]:
            total += 1
            values = {**examples, **sentence["variables"]}
            sql = filled(single_quoted(template), {key: value.replace("'", "''") for key, value in values.items()})
            rows = database.run(sql)
            if rows is not None:
                ordered = parse(sql, DIALECT)[0].args.get("order") is not None
                result.append(Question(filled(sentence["text"], values), sql, template, rows, ordered))
    return result, total


def single_quoted(sql: str) -> str:
    """SQL with its texts in single quotes: the sets have double ones, which are for names in standard SQL."""
    return _TEXT.sub(lambda match: "'" + match[1].replace("'", "''") + "'", sql)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with the values in the place of their names."""
    if not values:
        return text
    names = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
    return re.sub(rf"(?<![^\W_])(?:{names})(?![^\W_])", lambda match: values[match[0]], text)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
