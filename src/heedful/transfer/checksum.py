"""Checksums over facts and ledger that are the same in every store with the same content, and damaged rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson
from sqlalchemy import JSON, Column, ColumnElement, Connection, Table, select

from heedful.ranking.signals import WEIGHTS
from heedful.storage.dialects import dialect_of
from heedful.storage.ledger import LINK_SIGNAL, SIGNAL
from heedful.storage.schema import events, metadata, projects
from heedful.transfer.lines import KINDS, Line, broken, in_project, lines
from heedful.transfer.names import Names
from heedful.transfer.results import ProjectChecksum
from heedful.transfer.table_rows import BATCH_SIZE

_LEFT_OUT = frozenset({"type", "vector", "entities"})


class Checksum:
    """Folds lines in their order; vectors and what is derived are left out."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self.count = 0

    def add(self, line: Line) -> None:
        fields = {name: value for name, value in line.items() if name not in _LEFT_OUT}
        self._digest.update(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
        self.count += 1

    @property
    def value(self) -> str:
        return self._digest.hexdigest()


def of_project(connection: Connection, number: int, name: str) -> ProjectChecksum:
    """The checksums of one project, in the order of its facts and events."""
    names = Names(connection, number)
    checksums = {}
    for kind in ("fact", "event"):
        checksums[kind] = Checksum()
        for run in lines(connection, KINDS[kind], number, names):
            for line in run:
                checksums[kind].add(line)
    return ProjectChecksum(
        project=name,
        facts=checksums["fact"].count,
        events=checksums["event"].count,
        facts_checksum=checksums["fact"].value,
        ledger_checksum=checksums["event"].value,
    )


def of_store(connection: Connection) -> list[ProjectChecksum]:
    """The checksums of all projects, oldest first."""
    rows = connection.execute(select(projects.c.id, projects.c.name).order_by(projects.c.id)).all()
    return [of_project(connection, row.id, row.name) for row in rows]


def raw_json(connection: Connection, column: Column[Any]) -> ColumnElement[Any]:
    """JSON as it is in a column, whatever that is; SQLite lets anything in."""
    return dialect_of(connection).raw_json(column).label(column.name)


def damaged(connection: Connection, project: int | None) -> Iterator[tuple[str, str, list[str]]]:
    """Tables, what is wrong with the JSON in them, and the ids of the rows where it is: those of a project, or with
    None those that belong to no project."""
    for table, columns in _with_json().items():
        condition = _without_project(table) if project is None else in_project(table, project)
        if condition is None:
            continue
        key = [table.c.id] if "id" in table.columns else list(table.primary_key)
        ids_by_fault: dict[str, list[str]] = {}
        statement = select(*key, *(raw_json(connection, column) for column in columns)).where(condition).order_by(*key)
        for row in connection.execution_options(yield_per=BATCH_SIZE).execute(statement):
            for column, value in zip(columns, row[len(key) :], strict=True):
                fault = broken(table.name, column.name, value, nullable=bool(column.nullable))
                if fault is not None:
                    ids_by_fault.setdefault(fault, []).append("/".join(str(part) for part in row[: len(key)]))
        for fault, ids in sorted(ids_by_fault.items()):
            yield table.name, fault, ids


def _with_json() -> dict[Table, list[Column[Any]]]:
    json_columns = {
        table: [column for column in table.columns if isinstance(column.type, JSON)] for table in metadata.sorted_tables
    }
    return {table: columns for table, columns in json_columns.items() if columns}


def _without_project(table: Table) -> ColumnElement[bool] | None:
    column = table.columns.get("project_id")
    return column.is_(None) if column is not None and column.nullable else None


def unknown_signals(connection: Connection, project: int) -> list[str]:
    """The events of signals that are worth nothing that is known: no score can be folded from them."""
    statement = select(events.c.id).where(
        events.c.project_id == project,
        events.c.kind.in_((SIGNAL, LINK_SIGNAL)),
        events.c.value.is_(None) | events.c.value.not_in(sorted(WEIGHTS)),
    )
    return [row.id for row in connection.execute(statement.order_by(events.c.id))]
