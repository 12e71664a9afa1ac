"""`heedful copy`: a whole store into another one, of the same kind or not.

The target is brought in line with one consistent view of the source, table by table. A run that follows one which was
stopped does the same: it compares what is there already, and so puts right what the source got, changed or lost since.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Table
from sqlalchemy.exc import IntegrityError

from heedful.errors import Conflict
from heedful.memory.remember import Progress
from heedful.moving import checksum, rows, stores
from heedful.moving.marker import Marker
from heedful.moving.results import Copied
from heedful.storage import Database

Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""A row of the source and the row of the target under the same key, where there are such."""


def copy(source: str | Path, target: str | Path, *, progress: Progress | None = None) -> Copied:
    """Copies all projects of a store into an empty one, and compares the two.

    It may be stopped and started again; until it ends, the target can't be opened otherwise. Nobody may write to it.
    """
    origin, made = stores.two(source, target)
    try:
        return _Copying(origin, made, progress).run(stores.identity(origin.name))
    finally:
        made.close()
        origin.close()


class _Copying:
    def __init__(self, source: Database, target: Database, progress: Progress | None) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._written = 0

    def run(self, name: str) -> Copied:
        self._marker = Marker(self._target, name)
        with self._source.read() as reading:
            counts = {table.name: rows.count(reading, table) for table in rows.TABLES}
            try:
                self._fill(reading, sum(counts.values()))
            except IntegrityError as error:
                raise Conflict(
                    f"the target {self._target.name} can't take a row of the source ({error.orig})",
                    code="copy_differs",
                    remedy="Nobody else may write to it: empty it, or name another target, and copy again",
                ) from error
            sums = checksum.of_store(reading)
            last = [(each, self._last(reading, each)) for each in _numbered()]
        with self._target.read() as connection:
            found = {table.name: rows.count(connection, table) for table in rows.TABLES}
            self._compare(counts, found, "rows")
            self._compare(
                {each.project: each for each in sums},
                {each.project: each for each in checksum.of_store(connection)},
                "facts or events of project",
            )
        with self._target.write() as connection:
            self._marker.check(connection)
            for column, number in last:
                self._target.set_last_number(connection, column, number)
            self._marker.remove(connection)
        return Copied(
            source=self._source.name, target=self._target.name, tables=counts, written=self._written, projects=sums
        )

    def _fill(self, reading: Connection, total: int) -> None:
        if self._marker.resumed:
            for table in reversed(rows.TABLES):
                self._remove(reading, table)
        done = 0
        for table in rows.TABLES:
            for run in self._pairs(reading, table):
                self._write(table, run)
                done += len(run)
                if self._progress is not None:
                    self._progress(done, total)

    def _remove(self, reading: Connection, table: Table) -> None:
        """What the source has no longer goes first, in the reverse order, so that nothing refers to it."""
        for run in self._pairs(reading, table):
            gone = [rows.key(table, after) for before, after in run if before is None and after is not None]
            if gone:
                with self._target.write(durable=False) as connection:
                    self._marker.check(connection)
                    rows.remove(connection, table, gone)
                self._written += len(gone)

    def _write(self, table: Table, run: list[Pair]) -> None:
        new = [before for before, after in run if before is not None and after is None]
        changed = [before for before, after in run if before is not None and after is not None and before != after]
        if not new and not changed:
            return
        with self._target.write(durable=False) as connection:
            self._marker.check(connection)
            if new:
                rows.insert(connection, table, new)
            if changed:
                rows.update(connection, table, changed)
        self._written += len(new) + len(changed)

    def _pairs(self, reading: Connection, table: Table) -> Iterator[list[Pair]]:
        """The rows of both stores side by side, in batches."""
        with self._target.read() as connection:
            both: Iterator[Pair] = ((row, None) for row in rows.streamed(reading, table))
            if self._marker.resumed:
                both = _merged(table, rows.streamed(reading, table), rows.streamed(connection, table))
            while run := list(islice(both, rows.TOGETHER)):
                yield run

    def _last(self, reading: Connection, column: Column[int]) -> int:
        return self._source.last_number(reading, column)

    def _compare(self, wanted: dict[str, Any], found: dict[str, Any], what: str) -> None:
        for name in [*wanted, *found]:
            if wanted.get(name) != found.get(name):
                raise Conflict(
                    f"the copy {self._target.name} differs from its source: {what} of {name} are "
                    f"{found.get(name)} instead of {wanted.get(name)}",
                    code="copy_differs",
                    remedy="Nobody else may write to it: run the same copy again, and it is put right",
                )


def _merged(table: Table, source: Iterator[dict[str, Any]], target: Iterator[dict[str, Any]]) -> Iterator[Pair]:
    """Two runs of rows in the order of their keys as one."""
    before, after = next(source, None), next(target, None)
    while before is not None or after is not None:
        one = None if before is None else rows.key(table, before)
        other = None if after is None else rows.key(table, after)
        if other is None or (one is not None and one < other):
            yield before, None
            before = next(source, None)
        elif one is None or other < one:
            yield None, after
            after = next(target, None)
        else:
            yield before, after
            before, after = next(source, None), next(target, None)


def _numbered() -> list[Column[int]]:
    """The columns that give numbers by themselves."""
    found = (table.autoincrement_column for table in rows.TABLES)
    return [column for column in found if column is not None and column.autoincrement is True]
