"""The rows of an export, from wherever they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from heedful.errors import Invalid, quoted
from heedful.memory.workspace import Workspace
from heedful.model import ExportTable
from heedful.storage import exports, scopes
from heedful.storage.exports import ExportQuery, Rows, misplaced
from heedful.storage.sessions import SessionStore

BATCH_SIZE = 10_000
"""Rows that are read at once."""

SESSION_TABLES = ("sessions", "messages", "entries")
"""Tables that are all where sessions are."""
SPLIT_TABLES = ("feedback", "events")
"""Tables of which a part is where sessions are."""

MAIN_STORE, SESSION_STORE = "a", "b"
"""What a cursor begins with: the database of facts, and that of sessions, where it is another one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of one project."""

    workspace: Workspace
    store: SessionStore

    def all(self, table: ExportTable, query: ExportQuery) -> Iterator[Rows]:
        """All rows, in pages. What is in one SQL database is as it was at one moment."""
        for store in self._places(table):
            if store == MAIN_STORE:
                yield from self._main_store_rows(table, query)
            else:
                yield from self._session_store_rows(table, query)

    def page(self, table: ExportTable, query: ExportQuery, cursor: Any, limit: int) -> tuple[Rows, str | None]:
        """Some rows, and the cursor behind them; None at the end."""
        places = self._places(table)
        store, after = _read(cursor) if cursor is not None else (places[0], None)
        if store not in places:
            raise misplaced(cursor)
        if store == MAIN_STORE:
            with self.workspace.read() as connection:
                rows, following = self._sql(connection, table, query, after, limit)
        else:
            rows, following = self._stored(table, query, after, limit)
        if following is not None:
            return rows, f"{store}.{following}"
        remaining = places[places.index(store) + 1 :]
        return rows, f"{remaining[0]}." if remaining else None

    def _places(self, table: ExportTable) -> list[str]:
        if not self.store.remote:
            return [MAIN_STORE]
        return (
            [SESSION_STORE]
            if table.name in SESSION_TABLES
            else [MAIN_STORE, SESSION_STORE]
            if table.name in SPLIT_TABLES
            else [MAIN_STORE]
        )

    def _main_store_rows(self, table: ExportTable, query: ExportQuery) -> Iterator[Rows]:
        with self.workspace.read() as connection:
            project = scopes.project_id(connection, self.workspace.project)
            if project is not None:
                yield from exports.every(connection, project, table.name, query, BATCH_SIZE)

    def _session_store_rows(self, table: ExportTable, query: ExportQuery) -> Iterator[Rows]:
        after: str | None = None
        while True:
            # Each in a view of its own: a long one is more than the server keeps.
            rows, after = self._stored(table, query, after, BATCH_SIZE)
            yield rows
            if after is None:
                return

    def _sql(
        self, connection: Connection, table: ExportTable, query: ExportQuery, after: str | None, limit: int
    ) -> tuple[Rows, str | None]:
        project = scopes.project_id(connection, self.workspace.project)
        if project is None:
            return [], None
        return exports.page(connection, project, table.name, query, after, limit)

    def _stored(self, table: ExportTable, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        page: tuple[Rows, str | None] = self.store.read(lambda tx: tx.exports.page(table.name, query, after, limit))
        return page


def _read(cursor: Any) -> tuple[str, str | None]:
    if not isinstance(cursor, str):
        raise Invalid(
            f"invalid cursor {quoted(cursor)}",
            field="cursor",
            value=cursor,
            remedy="Use the next_cursor of the page before",
        )
    store, dot, after = cursor.partition(".")
    if not dot or "\0" in after:
        raise misplaced(cursor)
    return store, after or None
