"""`heedful backup`: a copy of the file of a store, taken while others write to it."""

from __future__ import annotations

import os
import secrets
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Table
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from heedful import files, settings
from heedful.errors import Conflict, Invalid, NotFound, Unavailable, quoted
from heedful.files import write_error
from heedful.protocols.engine import Progress
from heedful.storage import Database
from heedful.storage.backend import BUSY_SECONDS
from heedful.storage.database import UNFINISHED
from heedful.storage.dialects import SCHEMA
from heedful.storage.postgresql.backend import EVERYTHING
from heedful.storage.schema import events, facts, logins, signing
from heedful.storage.sqlite import translate_error
from heedful.transfer import checksum, stores, table_rows, targets
from heedful.transfer.marker import Marker
from heedful.transfer.results import BackedUp, Copied

NEW_DATABASE = "NEW_DATABASE"
"""A placeholder for the database to restore into, which must not be the source."""

PAGES = 2048
"""Pages that are copied at once, after which progress is reported."""


def backup(
    url_or_path: str | Path | None,
    file: str | Path,
    *,
    force: bool = False,
    with_signing: bool = False,
    progress: Progress | None = None,
) -> BackedUp:
    """Copies a store of SQLite to a file, which is there when it is whole and was checked.

    Writers are not kept waiting. All that was stored before it begins is in it, but for the secret that tokens and
    logins are signed with: a store that is restored makes a new one. `with_signing` copies that, too.
    """
    store = settings.load().store if url_or_path is None else url_or_path
    target = Path(file)
    url = stores.address(store)
    if url is not None and url.get_backend_name() == "postgresql":
        raise _use_pg_dump(url, target)
    source = stores.identity(store)
    if not Path(source).is_file():
        name = stores.display_name(source)
        raise NotFound(f"there is no store at {name}", code="store_missing", value=name, remedy="Check its name")
    targets.check(source, target, force=force)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        # To be written, it must be a file that can be: SQLite would say less about what is wrong.
        files.create(partial).close()
        _copy(source, partial, progress)
        if not with_signing:
            _remove_signing(partial)
        counts = _check_backup(partial)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        size = partial.stat().st_size
        partial.replace(target)
    except OSError as error:
        raise write_error(target, error) from error
    finally:
        for suffix in targets.SQLITE_SUFFIXES:
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)
    return BackedUp(file=str(target), bytes=size, tables=counts)


def _copy(source: str, target: Path, progress: Progress | None) -> None:
    def show(status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    try:
        with _open_backup(source) as reading, closing(sqlite3.connect(target)) as writing:
            # Held to one view of the store: otherwise each write of another process would start it over.
            reading.execute("BEGIN")
            _check_store(source, reading)
            reading.backup(writing, pages=PAGES, progress=show, sleep=0)
    except sqlite3.Error as error:
        raise translate_error(error, None) or error from error


def _remove_signing(file: Path) -> None:
    """Removes the secret and the logins that depend on it, and the bytes they had."""
    with closing(sqlite3.connect(file, isolation_level=None)) as copy:
        copy.execute("PRAGMA secure_delete = ON")
        # A copy of a store of an older version has no logins.
        tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in {signing.name, logins.name} & tables:
            copy.execute(f"DELETE FROM {table}")


def _open_backup(file: str) -> closing[sqlite3.Connection]:
    """Neither makes a file nor upgrades a store: a backup is taken before that."""
    connection = sqlite3.connect(f"{Path(file).as_uri()}?mode=rw", uri=True, isolation_level=None)
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    return closing(connection)


def _check_store(file: str, connection: sqlite3.Connection) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"alembic_version", events.name, facts.name} <= tables:
        raise Conflict(f"{file} is not a store of Heedful", code="store_foreign", remedy="Name another file")
    if UNFINISHED in tables:
        raise Conflict(
            f"store {file} is a copy that was not finished",
            code="store_unfinished",
            remedy="Run the same heedful copy again: it resumes where it stopped",
        )


def _check_backup(file: Path) -> dict[str, int]:
    """How many rows each table has; what is damaged is an error."""
    with closing(sqlite3.connect(file)) as copy:
        result = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if result != "ok":
            raise Unavailable(
                f"the copy is damaged ({result})",
                code="store_damaged",
                remedy="The store itself may be damaged, too: run heedful doctor",
            )
        rows = copy.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        return {name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in rows}


def _use_pg_dump(url: URL, file: Path) -> Invalid:
    # The password stays out of it: pg_dump asks for it, or reads PGPASSWORD or ~/.pgpass.
    plain = stores.without_secrets(url).set(drivername="postgresql")
    address = plain.render_as_string()
    # It must say that it wants the rows of all projects.
    unrestricted = f"{address}{'&' if '?' in address else '?'}options=-c%20{EVERYTHING}%3Don"
    dump = (
        f"pg_dump --format=custom --schema={SCHEMA} --enable-row-security --exclude-table-data={SCHEMA}.signing "
        f"--exclude-table-data={SCHEMA}.logins --file={shlex.quote(str(file))} "
        f"{shlex.quote(unrestricted)}"
    )
    new = shlex.quote(plain.set(database=NEW_DATABASE).render_as_string())
    extension = f"psql --dbname={new} --command='CREATE EXTENSION vector SCHEMA public'"
    restore = f"pg_restore --exit-on-error --dbname={new} {shlex.quote(str(file))}"
    return Invalid(
        "a store on PostgreSQL is backed up with PostgreSQL's own tools",
        field="store",
        value=address,
        remedy=f"Run: {dump}\n  and to restore it into an empty database, first: {extension}\n  and then: {restore}",
    )


Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""A row of the source and the row of the target under the same key, where there are such."""


def copy(source: str | Path, target: str | Path, *, progress: Progress | None = None) -> Copied:
    """Copies all projects of a store into an empty one, and compares the two.

    It may be stopped and started again; until it ends, the target can't be opened otherwise. Nobody may write to it.
    """
    origin, destination = stores.open_both(source, target)
    try:
        return _Copying(origin, destination, progress).run(stores.identity(origin.name))
    finally:
        destination.close()
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
            counts = {table.name: table_rows.count(reading, table) for table in table_rows.TABLES}
            try:
                self._fill(reading, sum(counts.values()))
            except IntegrityError as error:
                raise Conflict(
                    f"the target {self._target.name} can't take a row of the source ({error.orig})",
                    code="copy_differs",
                    remedy="Nobody else may write to it: empty it, or name another target, and copy again",
                ) from error
            checksums = checksum.of_store(reading)
            last = [(each, self._last(reading, each)) for each in _sequence_columns()]
        with self._target.read() as connection:
            copied = {table.name: table_rows.count(connection, table) for table in table_rows.TABLES}
            self._compare(counts, copied, "rows")
            self._compare(
                {each.project: each for each in checksums},
                {each.project: each for each in checksum.of_store(connection)},
                "facts or events of project",
            )
        with self._target.write() as connection:
            self._marker.check(connection)
            for column, number in last:
                self._target.set_last_number(connection, column, number)
            self._marker.remove(connection)
        return Copied(
            source=self._source.name, target=self._target.name, tables=counts, written=self._written, projects=checksums
        )

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
        """What the source has no longer goes first, in the reverse order, so that nothing refers to it."""
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
            raise Invalid(
                f"the target can't hold the row {quoted(key)} of {table.name}: {error.message}",
                code=error.code,
                field=table.name,
                value=repr(key),
                remedy="Correct or forget it in the source, and run the same copy again: it resumes where it stopped",
            ) from error
        self._written += len(new) + len(changed)

    def _pairs(self, reading: Connection, table: Table) -> Iterator[list[Pair]]:
        """The rows of both stores side by side, in batches."""
        with self._target.read() as connection:
            both: Iterator[Pair] = ((row, None) for row in table_rows.streamed(reading, table))
            if self._marker.resumed:
                both = _merge(table, table_rows.streamed(reading, table), table_rows.streamed(connection, table))
            while run := list(islice(both, table_rows.BATCH_SIZE)):
                yield run

    def _last(self, reading: Connection, column: Column[int]) -> int:
        return self._source.last_number(reading, column)

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


def _sequence_columns() -> list[Column[int]]:
    """The columns that give numbers by themselves."""
    columns = (table.autoincrement_column for table in table_rows.TABLES)
    return [column for column in columns if column is not None and column.autoincrement is True]
