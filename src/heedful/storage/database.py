"""One store: its connection and its version."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Table, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from heedful.clock import system_clock, to_stored
from heedful.errors import Conflict, Invalid, NotFound, Unavailable, quoted
from heedful.storage.migrations import HEAD, REVISIONS
from heedful.storage.postgresql.backend import PostgreSql
from heedful.storage.rows import SCHEMA, Direct, dialect_of, insert_many, upsert
from heedful.storage.schema import events, facts
from heedful.storage.sqlite import Sqlite


def _backend(url: URL) -> Sqlite | PostgreSql:
    return PostgreSql(url) if url.get_backend_name() == "postgresql" else Sqlite(url)


class Database:
    """A store, opened and migrated to the current version."""

    def __init__(self, url_or_path: str | Path, *, create: bool = True, unfinished: bool = False) -> None:
        """`create` creates a missing store; `unfinished` opens one that a copy has not filled yet."""
        self._backend = backend = _backend(store_url(url_or_path))
        self._closed = False
        self.name = backend.name
        """Its name: its file, or its address without secrets."""
        self.url = backend.engine.url
        """Its address, with secrets."""
        self.folder = backend.folder
        """Where indexes are kept; None where the database searches itself."""
        self.searches = backend.folder is None
        """Whether the database can search large datasets itself."""
        self.many_writers = backend.many_writers
        """Whether writers of different projects run concurrently."""
        self.notices = backend.notices
        """Yields soon after others have changed facts, until the event that is given: the project, or None if it is
        unknown. Some changes may be missed, so it can only speed up what happens anyway."""
        self.last_number = backend.last_number
        """The last number that a column generated, even if its row was deleted."""
        self.set_last_number = backend.set_last_number
        """Makes a column continue after a number."""
        self._prepare(create, unfinished)
        self.read_only = backend.read_only
        """Whether it is a read-only replica."""
        _OPEN.add(self)

    def outside(self, name: str) -> AbstractContextManager[Connection | None]:
        """A connection without a transaction, on PostgreSQL only; None while another caller has one by this name."""
        self._check_open()
        assert isinstance(self._backend, PostgreSql)
        return self._backend.outside(name)

    def read(self, project: str | None = None) -> AbstractContextManager[Connection]:
        """A read transaction: one consistent snapshot."""
        self._check_open()
        return self._backend.begin(project, write=False, durable=True, exclusive=False)

    def write(
        self, project: str | None = None, *, durable: bool = True, exclusive: bool = True
    ) -> AbstractContextManager[Connection]:
        """A transaction, committed at the end, or rolled back on an error.

        What is not `durable` survives the death of the process, but perhaps not of the machine. `exclusive` keeps other
        writers of the project away until it ends.
        """
        self._check_open()
        return self._backend.begin(project, write=True, durable=durable, exclusive=exclusive)

    def direct(
        self, project: str, *, write: bool, durable: bool = True, exclusive: bool = True
    ) -> AbstractContextManager[Direct]:
        """A transaction for prepared statements, without the overhead of SQLAlchemy; see `write`."""
        self._check_open()
        return self._backend.direct(project, write=write, durable=durable, exclusive=exclusive)

    def upsert(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[dict[str, Any]],
        *,
        keys: list[str],
        changed: list[str],
    ) -> None:
        """Inserts rows; where `keys` are there already, overwrites `changed` (or nothing)."""
        statement = upsert(dialect_of(connection), table, tuple(keys), tuple(changed))
        insert_many(connection, table, statement, rows, kind="upsert")

    def integrity(self) -> str:
        """ "ok", or what is wrong with the file."""
        with self.read() as connection:
            return self._backend.integrity(connection)

    def close(self) -> None:
        self._closed = True
        self._backend.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(f"store {self.name} is closed", code="store_closed", remedy="Open it again")

    def _prepare(self, create: bool, unfinished: bool) -> None:
        try:
            if not create and not self._backend.exists():
                raise NotFound(
                    f"there is no store at {self.name}", code="store_missing", value=self.name, remedy="Check its name"
                )
            if create:
                self._backend.reserve()
            with self.read() as connection:
                version = _version(connection)
                if not unfinished:
                    _check_finished(connection, self.name)
            if create or version != HEAD:
                # Only when creating: a reader may lack the right to write.
                self._backend.prepare()
            if version != HEAD:
                self._migrate(version)
        except BaseException:
            self.close()
            raise

    def _migrate(self, current: str | None) -> None:
        if current is not None and current not in REVISIONS:
            raise Conflict(
                f"store {self.name} has revision {current}, which this Heedful does not know (its newest is {HEAD})",
                code="store_newer",
                remedy="Upgrade heedful, or open it with the version that made it; nothing was changed",
            )
        from heedful.storage.migrations.run import upgrade
        from heedful.storage.postgresql.tables import ensure_partitions

        # Several processes may open a new store at once: the write lock decides who migrates it. The library that
        # migrates serves one thread at a time.
        with _MIGRATING, self.write() as connection:
            self._backend.migrating(connection)
            if _version(connection) != HEAD:
                upgrade(connection)
                ensure_partitions(connection, to_stored(system_clock()))


UNFINISHED = "unfinished_copy"
"""A table that exists while a store is being copied into this one."""


def _check_finished(connection: Connection, name: str) -> None:
    if inspect(connection).has_table(UNFINISHED, dialect_of(connection).schema):
        raise Conflict(
            f"store {name} is a copy that was not finished",
            code="store_unfinished",
            remedy="Run the same heedful copy again: it resumes where it stopped",
        )


_MIGRATING = threading.Lock()


_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()


def _forget_connections() -> None:
    """A forked child must not use its parent's connections, nor wait for its parent's threads."""
    for database in list(_OPEN):
        database._backend.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


def _version(connection: Connection) -> str | None:
    schema = dialect_of(connection).schema
    names = set(inspect(connection).get_table_names(schema))
    if {"alembic_version", events.name, facts.name} <= names:
        if schema is not None and not connection.execute(_HAS_SCHEMA_USAGE).scalar():
            raise Unavailable(
                f"the schema {schema} of store {connection.engine.url.database} belongs to another user",
                code="store_read_only",
                remedy="Open it as that user, or have an administrator hand all of it over: REASSIGN OWNED BY … TO …",
            )
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if names:
        raise Conflict(
            f"{connection.engine.url.database} belongs to another program",
            code="store_foreign",
            remedy="Name another one; nothing was changed",
        )
    return None


_HAS_SCHEMA_USAGE = text(f"SELECT has_schema_privilege('{SCHEMA}', 'USAGE')")


def store_url(url_or_path: str | Path) -> URL:
    """The URL of a store, from a path or any form of URL."""
    if not isinstance(url_or_path, str | Path):
        raise _bad_url(f"must be a path or a URL, got {quoted(url_or_path)}", url_or_path)
    text_form = str(url_or_path)
    if not text_form.strip():
        raise _bad_url("must not be empty", url_or_path)
    if text_form == ":memory:":
        return URL.create("sqlite")
    scheme, colon, rest = text_form.partition(":")
    if rest.startswith("//"):
        text_form = f"{scheme.lower()}{colon}{rest}"
    without_user = text_form.partition("@")[2]
    displayed = without_user or text_form
    if text_form.startswith(("http://", "https://")):
        raise _bad_url("names a server, and a store is a file", displayed, "This is a server: use heedful.connect(url)")
    if text_form.startswith(("mongodb:", "mongodb+srv:")):
        raise _bad_url(
            "is a MongoDB URL; MongoDB can only store sessions and feedback, not facts",
            displayed,
            'Use open("heedful.db", sessions="mongodb://…")',
        )
    if scheme.lower() == "postgres" and rest.startswith("//"):
        text_form = f"postgresql{colon}{rest}"
    if text_form.startswith(("postgresql/", "postgres/")):
        raise _bad_url("has no colon after its scheme", without_user, "Use postgresql://user@host/database")
    if "://" not in text_form:
        return URL.create("sqlite", database=str(Path(text_form).expanduser()))
    try:
        url = make_url(text_form)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        displayed = text_form.partition("@")[2] or text_form
        raise _bad_url(f"{quoted(displayed)} is not a store's URL ({error})", displayed, _URL_REMEDY) from error
    return _openable(url, text_form)


def _openable(url: URL, text_form: str) -> URL:
    if url.get_backend_name() == "sqlite" and url.host:
        file = f"{url.host}{'/' + url.database if url.database else ''}"
        problem = f"{quoted(text_form)} has a host, and a SQLite store is a file"
        raise _bad_url(problem, text_form, f"Use three slashes: sqlite:///{file}")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"):
        problem = f"names a {url.drivername} store, which this version can't open"
        raise _bad_url(problem, url.render_as_string(), _URL_REMEDY)
    return url


_URL_REMEDY = 'Use a path, "sqlite:///file.db" or "postgresql://user@host/database"'


def _bad_url(problem: str, value: object, remedy: str | None = None) -> Invalid:
    return Invalid(f"url_or_path {problem}", field="url_or_path", value=value, remedy=remedy)
