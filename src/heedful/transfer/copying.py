"""`heedful copy`: all projects of a store into an empty one. It may be stopped and started again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, Text, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError

from heedful.api.parameters import Progress
from heedful.errors import Conflict, Invalid, quoted
from heedful.model.base import Model
from heedful.storage import Database
from heedful.storage.database import UNFINISHED
from heedful.storage.rows import dialect_of
from heedful.transfer import stores, table_rows
from heedful.transfer.exporting import ProjectChecksum, of_store

Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""A row of the source and the row of the target under the same key; None where one of them lacks it."""


class Copied(Model):
    """A copy that was made and compared with its source."""

    source: str
    """The file, or the address without secrets."""
    target: str
    """The file, or the address without secrets."""
    tables: dict[str, int]
    """How many rows each table has, in the source and in the copy."""
    written: int
    """How many rows this run wrote or removed; fewer than all if it went on where another one was stopped."""
    projects: list[ProjectChecksum]
    """The checksums of all projects, which are the same on both sides."""


def copy(source: str | Path, target: str | Path, *, progress: Progress | None = None) -> Copied:
    """Copies all projects of a store into an empty one, and compares the two.

    It may be stopped and started again; until it ends, the target can't be opened otherwise. Nobody may write to it.
    """
    origin, destination = stores.open_both(source, target)
    try:
        return _Copying(origin, destination, progress).run()
    finally:
        destination.close()
        origin.close()


class _Copying:
    def __init__(self, source: Database, target: Database, progress: Progress | None) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._written = 0
        self._marker = Marker(target, stores.identity(source.name))

    def run(self) -> Copied:
        with self._source.read() as reading:
            counts = _counts(reading)
            try:
                self._fill(reading, sum(counts.values()))
            except IntegrityError as error:
                message = f"the target {self._target.name} can't take a row of the source ({error.orig})"
                remedy = "Nobody else may write to it: empty it, or name another target, and copy again"
                raise Conflict(message, code="copy_differs", remedy=remedy) from error
            checksums = of_store(reading)
            # The columns that give numbers by themselves.
            columns = (table.autoincrement_column for table in table_rows.TABLES)
            numbered = [column for column in columns if column is not None and column.autoincrement is True]
            last = [(column, self._source.last_number(reading, column)) for column in numbered]
        with self._target.read() as connection:
            self._compare(counts, _counts(connection), "rows")
            before, after = (
                {checksum.project: checksum for checksum in found} for found in (checksums, of_store(connection))
            )
            self._compare(before, after, "facts or events of project")
        with self._target.write() as connection:
            self._marker.check(connection)
            for column, number in last:
                self._target.set_last_number(connection, column, number)
            self._marker.remove(connection)
        names = {"source": self._source.name, "target": self._target.name}
        return Copied(**names, tables=counts, written=self._written, projects=checksums)

    def _fill(self, reading: Connection, total: int) -> None:
        if self._marker.resumed:
            for table in reversed(table_rows.TABLES):
                self._remove(reading, table)
        processed = 0
        for table in table_rows.TABLES:
            for run in self._pairs(reading, table):
                self._write(table, run)
                processed += len(run)
                if self._progress is not None:
                    self._progress(processed, total)

    def _remove(self, reading: Connection, table: Table) -> None:
        """Removes the rows that the source no longer has, in the reverse order, so that nothing refers to them."""
        for run in self._pairs(reading, table):
            surplus = [table_rows.key(table, after) for before, after in run if before is None and after is not None]
            if surplus:
                with self._target.write(durable=False) as connection:
                    self._marker.check(connection)
                    table_rows.remove(connection, table, surplus)
                self._written += len(surplus)

    def _write(self, table: Table, run: list[Pair]) -> None:
        new = [before for before, after in run if before is not None and after is None]
        changed = [before for before, after in run if before is not None and after is not None and before != after]
        if not new and not changed:
            return
        try:
            with self._target.write(durable=False) as connection:
                self._marker.check(connection)
                if new:
                    table_rows.insert(connection, table, new)
                if changed:
                    table_rows.update(connection, table, changed)
        except Invalid as error:
            if len(run) > 1:
                # One of them is at fault: the first that is refused alone.
                for pair in run:
                    self._write(table, [pair])
                return
            key = table_rows.key(table, (new + changed)[0])
            message = f"the target can't hold the row {quoted(key)} of {table.name}: {error.message}"
            remedy = "Correct or forget it in the source, and run the same copy again: it resumes where it stopped"
            raise Invalid(message, code=error.code, field=table.name, value=repr(key), remedy=remedy) from error
        self._written += len(new) + len(changed)

    def _pairs(self, reading: Connection, table: Table) -> Iterator[list[Pair]]:
        """The rows of both stores side by side, in batches."""
        with self._target.read() as connection:
            both: Iterator[Pair] = ((row, None) for row in table_rows.streamed(reading, table))
            if self._marker.resumed:
                both = _merge(table, table_rows.streamed(reading, table), table_rows.streamed(connection, table))
            while run := list(islice(both, table_rows.BATCH_SIZE)):
                yield run

    def _compare(self, expected: dict[str, Any], actual: dict[str, Any], subject: str) -> None:
        for name in [*expected, *actual]:
            if expected.get(name) != actual.get(name):
                raise Conflict(
                    f"the copy {self._target.name} differs from its source: {subject} of {name} are "
                    f"{actual.get(name)} instead of {expected.get(name)}",
                    code="copy_differs",
                    remedy="Nobody else may write to it: run the same copy again, and it is corrected",
                )


def _merge(table: Table, source: Iterator[dict[str, Any]], target: Iterator[dict[str, Any]]) -> Iterator[Pair]:
    """Two runs of rows in the order of their keys as one."""
    before, after = next(source, None), next(target, None)
    while before is not None or after is not None:
        source_key = None if before is None else table_rows.key(table, before)
        target_key = None if after is None else table_rows.key(table, after)
        if target_key is None or (source_key is not None and source_key < target_key):
            yield before, None
            before = next(source, None)
        elif source_key is None or target_key < source_key:
            yield None, after
            after = next(target, None)
        else:
            yield before, after
            before, after = next(source, None), next(target, None)


def _counts(connection: Connection) -> dict[str, int]:
    return {table.name: table_rows.count(connection, table) for table in table_rows.TABLES}


_MARKER = Table(
    UNFINISHED, MetaData(), Column("source", Text, nullable=False), Column("run", String(36), nullable=False)
)


class Marker:
    """One run of a copy, and whether the target is still its own. The table on a target that is not filled yet names
    what it is a copy of, so that a stopped copy can go on."""

    def __init__(self, target: Database, source: str) -> None:
        """Takes the target, if it is empty or an unfinished copy of the same source."""
        self._run = str(uuid.uuid4())
        self._name = target.name
        with target.write() as connection:
            self.resumed = inspect(connection).has_table(UNFINISHED, dialect_of(connection).schema)
            if self.resumed:
                self._take_over(connection, source)
            else:
                self._take(connection, source)

    def check(self, connection: Connection) -> None:
        """Fails if another copy to the same target has begun; else keeps it out until the transaction ends."""
        statement = update(_MARKER).where(_MARKER.c.run == self._run).values(run=self._run)
        if not connection.execute(statement).rowcount:
            remedy = "Wait for it to finish; this copy has stopped"
            raise Conflict(f"another heedful copy to {self._name} has begun", code="copy_taken_over", remedy=remedy)

    def remove(self, connection: Connection) -> None:
        """The copy is whole."""
        _MARKER.drop(connection)

    def _take(self, connection: Connection, source: str) -> None:
        for table in table_rows.TABLES:
            if not table_rows.is_empty(connection, table):
                message = f"the target {self._name} is not empty (it has rows in {table.name})"
                remedy = "Name a new file or an empty database; nothing was changed"
                raise Conflict(message, code="target_not_empty", field="target", value=self._name, remedy=remedy)
        _MARKER.create(connection)
        connection.execute(insert(_MARKER).values(source=source, run=self._run))

    def _take_over(self, connection: Connection, source: str) -> None:
        previous_source = connection.execute(select(_MARKER.c.source)).scalar_one()
        if previous_source != source:
            message = f"the target {self._name} is an unfinished copy of {previous_source}, not of {source}"
            remedy = "Finish that copy, or name a new file or an empty database; nothing was changed"
            raise Conflict(message, code="target_not_empty", field="target", value=self._name, remedy=remedy)
        connection.execute(update(_MARKER).values(run=self._run))
