"""`heedful backup`: a copy of the file of a store, taken while others write to it."""

from __future__ import annotations

import os
import secrets
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL

from heedful import files, settings
from heedful.api.parameters import Progress
from heedful.errors import Conflict, Invalid, NotFound, Unavailable
from heedful.files import write_error
from heedful.model.base import Model
from heedful.storage.database import BUSY_SECONDS, UNFINISHED
from heedful.storage.rows import SCHEMA
from heedful.storage.schema import events, facts, logins, signing
from heedful.storage.sqlite import translate_error
from heedful.transfer import stores

NEW_DATABASE = "NEW_DATABASE"
"""A placeholder for the database to restore into, which must not be the source."""

PAGES = 2048
"""Pages that are copied at once, after which progress is reported."""


class BackedUp(Model):
    """A backup that was checked."""

    file: str
    """Where it is."""
    bytes: int
    """How large it is."""
    tables: dict[str, int]
    """How many rows each table has."""


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
    stores.check_target(source, target, force=force)
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
        for suffix in stores.SQLITE_SUFFIXES:
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)
    return BackedUp(file=str(target), bytes=size, tables=counts)


def _copy(source: str, target: Path, progress: Progress | None) -> None:
    def show(status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    # Neither makes a file nor upgrades a store: a backup is taken before that.
    address = f"{Path(source).as_uri()}?mode=rw"
    try:
        with (
            closing(sqlite3.connect(address, uri=True, isolation_level=None)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            reading.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
            # Held to one view of the store: otherwise each write of another process would start it over.
            reading.execute("BEGIN")
            _check_store(source, reading)
            reading.backup(writing, pages=PAGES, progress=show, sleep=0)
    except sqlite3.Error as error:
        raise translate_error(error, None) or error from error


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return [name for (name,) in rows]


def _remove_signing(file: Path) -> None:
    """Removes the secret and the logins that depend on it, and the bytes they had."""
    with closing(sqlite3.connect(file, isolation_level=None)) as copy:
        copy.execute("PRAGMA secure_delete = ON")
        # A copy of a store of an older version has no logins.
        for table in {signing.name, logins.name} & set(_tables(copy)):
            copy.execute(f"DELETE FROM {table}")


def _check_store(file: str, connection: sqlite3.Connection) -> None:
    tables = set(_tables(connection))
    if not {"alembic_version", events.name, facts.name} <= tables:
        raise Conflict(f"{file} is not a store of Heedful", code="store_foreign", remedy="Name another file")
    if UNFINISHED in tables:
        remedy = "Run the same heedful copy again: it resumes where it stopped"
        raise Conflict(f"store {file} is a copy that was not finished", code="store_unfinished", remedy=remedy)


def _check_backup(file: Path) -> dict[str, int]:
    """How many rows each table has; fails if the file is damaged."""
    with closing(sqlite3.connect(file)) as copy:
        result = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if result != "ok":
            remedy = "The store itself may be damaged, too: run heedful doctor"
            raise Unavailable(f"the copy is damaged ({result})", code="store_damaged", remedy=remedy)
        return {name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in _tables(copy)}


def _use_pg_dump(url: URL, file: Path) -> Invalid:
    # The password stays out of it: pg_dump asks for it, or reads PGPASSWORD or ~/.pgpass. With `set`, None would leave
    # the password as it is.
    plain = url.difference_update_query(stores.SECRETS)._replace(password=None).set(drivername="postgresql")
    address = plain.render_as_string()
    # It must say that it wants the rows of all projects.
    unrestricted = f"{address}{'&' if '?' in address else '?'}options=-c%20heedful.everything%3Don"
    dump = (
        f"pg_dump --format=custom --schema={SCHEMA} --enable-row-security --exclude-table-data={SCHEMA}.signing "
        f"--exclude-table-data={SCHEMA}.logins --file={shlex.quote(str(file))} "
        f"{shlex.quote(unrestricted)}"
    )
    new = shlex.quote(plain.set(database=NEW_DATABASE).render_as_string())
    extension = f"psql --dbname={new} --command='CREATE EXTENSION vector SCHEMA public'"
    restore = f"pg_restore --exit-on-error --dbname={new} {shlex.quote(str(file))}"
    message = "a store on PostgreSQL is backed up with PostgreSQL's own tools"
    remedy = f"Run: {dump}\n  and to restore it into an empty database, first: {extension}\n  and then: {restore}"
    return Invalid(message, field="store", value=address, remedy=remedy)
