"""What a real database would call for a statement, found out without running it."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from typing import Any

import duckdb
import psycopg

_CALL = re.compile(r'"?(\w+)"?\(')
_STRING = re.compile(r"'(?:[^']|'')*'")


class PostgreSQLWitness:
    """A superuser who asks for the plan."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url)

    def calls(self, sql: str) -> set[str] | None:
        """The functions in the plan of a statement; None if PostgreSQL doesn't understand it."""
        with contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute("SAVEPOINT before")
            try:
                cursor.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {sql}".encode())
                plan = "\n".join(row[0] for row in cursor.fetchall())
            except psycopg.Error:
                return None
            finally:
                cursor.execute("ROLLBACK TO SAVEPOINT before")
        return {name.lower() for name in _CALL.findall(_STRING.sub("''", plan))}


class DuckDBWitness:
    """DuckDB's own parser."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"enable_external_access": "false"})

    def calls(self, sql: str) -> set[str] | None:
        """The functions in a statement; None if DuckDB doesn't understand it, or it is no SELECT."""
        try:
            found = self.connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        except duckdb.Error:
            return None
        tree = json.loads(found[0]) if found else {"error": True}
        return None if tree.get("error") else set(_function_names(tree))


class SQLiteWitness:
    """SQLite's authorizer, which is told of every function and action when a statement is prepared."""

    def __init__(self, schema: str) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(schema)
        self.actions: set[int] = set()
        self._called: set[str] = set()
        self.connection.set_authorizer(self._authorize)

    def calls(self, sql: str) -> set[str] | None:
        """The functions that a statement calls, and the tables that are functions; None if SQLite refuses it."""
        self.actions, self._called = set(), set()
        try:
            self.connection.execute(f"EXPLAIN {sql}").close()
        except sqlite3.Error:
            # What it was told before it gave up counts: another version may know what this one doesn't.
            return self._called or None
        return self._called

    def _authorize(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        self.actions.add(action)
        if action == sqlite3.SQLITE_FUNCTION:
            self._called.add((second or "").lower())
        elif action == sqlite3.SQLITE_READ:
            self._called.add((first or "").lower())
        return sqlite3.SQLITE_OK


def _function_names(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for each in node for name in _function_names(each)]
    if not isinstance(node, dict):
        return []
    own = [node["function_name"].lower()] if node.get("function_name") else []
    return own + [name for each in node.values() for name in _function_names(each)]
