"""PostgreSQL: a read-only transaction that is always rolled back, a cursor at the server, and cancelling.

The query is declared as a cursor. PostgreSQL itself refuses to declare anything but one statement that returns rows.
Every parameter is passed to its library by name: left to itself, it takes what isn't said from `PG*` variables,
password files, service files and certificates in the home folder, and so would log in with rights that belong to the
operator and not to the connector. A login that may do more than read is refused, for the day on which the guard or the
read-only transaction has a hole.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from heedful.errors import HeedfulError
from heedful.results import Column, Result
from heedful.sql.databases import CONNECT_SECONDS, errors
from heedful.sql.databases.any_database import Deadline, Limits, Parameters, bound, collect
from heedful.sql.databases.schema import STORE_TABLES, Schema, reflected
from heedful.sql.guard import CheckedStatement, connects_out, is_denied

if TYPE_CHECKING:
    import psycopg

_OPTIONS = "-c default_transaction_read_only=on -c standard_conforming_strings=on"
_GRACE_SECONDS = 5.0

_ERRORS: dict[str | None, Callable[[object], HeedfulError]] = {
    "42P01": errors.unknown_table,
    "3F000": errors.unknown_table,
    "42703": errors.unknown_column,
    "25006": errors.changes_data,
    "42501": errors.not_allowed,
}
_STOPPED = {"57014"}

# Written rows take a new transaction id, so equal snapshots see equal data; foreign tables change without one.
_VERSION = """
SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_table)
THEN pg_catalog.pg_current_snapshot()::text || ' ' || extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text
END
"""

_STORES = """
SELECT count(*) FROM (
  SELECT FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p') AND relname = ANY(%s)
  GROUP BY relnamespace HAVING count(*) = %s
) AS stores
"""


class PostgreSQL:
    """A database of a PostgreSQL server; `role` is what its queries run as."""

    dialect = "postgres"

    def __init__(self, url: URL, role: str | None = None) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise errors.missing_driver("psycopg", "postgresql") from None
        self._url = url.set(drivername="postgresql+psycopg")
        self._role = role
        self.address = errors.address(url)

    @contextmanager
    def session(self) -> Iterator[PostgreSQLSession]:
        with closing(self._connect()) as connection:
            yield PostgreSQLSession(connection, self._role)

    def read_schema(self) -> Schema:
        """The tables and views that the connector's user, or its role, may see."""
        engine = create_engine(self._url, creator=self._connect, poolclass=NullPool, hide_parameters=True)
        try:
            with engine.connect() as connection:
                if self._role:
                    quoted = engine.dialect.identifier_preparer.quote_identifier(self._role)
                    connection.execute(text(f"SET LOCAL ROLE {quoted}"))
                return reflected(connection)
        except DBAPIError as error:
            raise _translate_error(error.orig or error) from error
        finally:
            engine.dispose()

    def check_rights(self) -> None:
        """Fails if the login, or a role that it can switch to, may do more than read."""
        with closing(self._connect()) as connection, _translated():
            check(connection, self.address)

    def data_version(self) -> str | None:
        """The snapshot that a query would see now, and since when the server runs."""
        with closing(self._connect()) as connection, _translated():
            snapshot: str | None = connection.execute(_VERSION).fetchone()[0]
            connection.rollback()
            return snapshot

    def _connect(self) -> Any:
        import psycopg

        try:
            connection = psycopg.connect(**parameters(self._url, psycopg.pq.version(), _OPTIONS))
        except psycopg.ProgrammingError:
            raise errors.unreachable(self.address, "the URL has an option that is not known") from None
        except psycopg.Error as error:
            raise _connect_error(str(error), self.address) from None
        try:
            self._check_no_store(connection)
        except BaseException:
            connection.close()
            raise
        connection.read_only = True
        _read_leniently(connection)
        return connection

    def _check_no_store(self, connection: psycopg.Connection[Any]) -> None:
        """Checked on every connection, because a store may be created there later."""
        connection.autocommit = True
        with _translated():
            row = connection.execute(_STORES, (list(STORE_TABLES), len(STORE_TABLES))).fetchone()
        if row is None or row[0]:
            raise errors.own_store(self.address)
        connection.autocommit = False


class PostgreSQLSession:
    def __init__(self, connection: psycopg.Connection[Any], role: str | None) -> None:
        self._connection = connection
        self._role = role

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement in a transaction that is rolled back."""
        import psycopg

        values = bound(query, parameters)
        sql = query.written(lambda name: f"%({name})s", lambda part: part.replace("%", "%%")) if values else query.sql
        deadline = Deadline(limits.seconds, _Stop(self._connection))
        try:
            with deadline, _translated():
                return self._fetch(sql, values, limits)
        except HeedfulError:
            if deadline.fired:
                raise errors.timed_out(limits.seconds) from None
            raise
        finally:
            # A lost connection has nothing to roll back.
            with contextlib.suppress(psycopg.Error):
                self._connection.rollback()

    def _fetch(self, sql: str, values: dict[str, Any], limits: Limits) -> Result:
        from psycopg import sql as writing

        started = monotonic()
        # In case this process dies before it can cancel.
        self._connection.execute(
            writing.SQL("SET LOCAL statement_timeout = {}").format(int((limits.seconds + 1) * 1000))
        )
        if self._role:
            self._connection.execute(writing.SQL("SET LOCAL ROLE {}").format(writing.Identifier(self._role)))
        with self._connection.cursor(name="heedful") as cursor:
            cursor.execute(sql.encode(), values or None)
            columns = [Column(field.name, field.type_display) for field in cursor.description or ()]
            return collect(columns, cursor.fetchmany, limits, started)


def _read_leniently(connection: psycopg.Connection[Any]) -> None:
    """Returns infinite and far dates, which Python can't represent, as text, instead of failing the query."""
    from psycopg import DataError
    from psycopg.types import datetime as loaders

    def lenient(strict: Any) -> Any:
        class Lenient(strict):  # type: ignore[misc]
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return Lenient

    for name in ("date", "time", "timetz", "timestamp", "timestamptz", "interval"):
        connection.adapters.register_loader(name, lenient(getattr(loaders, f"{name.capitalize()}Loader")))


class _Stop:
    """Asks the server to cancel; closes the connection if it doesn't within some seconds."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._first: float | None = None

    def __call__(self) -> None:
        import psycopg

        self._first = self._first or monotonic()
        with contextlib.suppress(psycopg.Error, OSError):
            if monotonic() - self._first < _GRACE_SECONDS:
                self._connection.cancel_safe(timeout=1.0)
            else:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)


@contextmanager
def _translated() -> Iterator[None]:
    import psycopg

    try:
        yield
    except (psycopg.Error, OverflowError) as error:
        raise _translate_error(error) from error


def _translate_error(error: BaseException) -> HeedfulError:
    state = getattr(error, "sqlstate", None)
    if state in _ERRORS:
        return _ERRORS[state](error)
    if state is None and "out of memory" in str(error):
        # libpq's message for a row that doesn't fit into memory.
        return errors.out_of_memory()
    if state is None or state in _STOPPED or state.startswith(("08", "57P")):
        return errors.unreachable("the PostgreSQL server", errors.one_line(error))
    return errors.failed(error)


def _connect_error(message: str, address: str) -> HeedfulError:
    """Errors of connecting have no code in libpq, only a message."""
    text = message.lower()
    if "does not exist" in text and "database" in text:
        return errors.missing_database(address)
    if any(word in text for word in ("password", "authentication", "no pg_hba.conf", "role")):
        return errors.refused_login(address)
    if any(word in text for word in ("ssl", "certificate", "tls")):
        return errors.no_tls(address)
    if "startup parameter" in text:
        return errors.unreachable(address, "a pooler refuses the parameter options: see its ignore_startup_parameters")
    return errors.unreachable(address, "timeout" if "timeout" in text else "no connection")


_SHOWN = 3

# The login, and all roles that it could switch to with `SET ROLE`.
_ROLES = "WITH roles AS (SELECT * FROM pg_catalog.pg_roles WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER'))"

_ATTRIBUTES = f"""
{_ROLES} SELECT rolname, rolsuper, rolbypassrls, rolreplication, rolcreaterole, rolcreatedb FROM roles ORDER BY rolname
"""

_TABLES = f"""
{_ROLES} SELECT c.oid::pg_catalog.regclass::text FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND EXISTS (SELECT FROM roles WHERE pg_catalog.has_table_privilege(roles.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    OR pg_catalog.has_any_column_privilege(roles.oid, c.oid, 'INSERT, UPDATE'))
ORDER BY 1
"""

_SCHEMAS = f"""
{_ROLES} SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.has_schema_privilege('public', n.oid, 'CREATE')
FROM pg_catalog.pg_namespace n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND EXISTS (SELECT FROM roles WHERE pg_catalog.has_schema_privilege(roles.oid, n.oid, 'CREATE'))
ORDER BY 1
"""

_DATABASE = f"""
{_ROLES} SELECT pg_catalog.quote_ident(pg_catalog.current_database()),
    pg_catalog.has_database_privilege('public', pg_catalog.current_database(), 'CREATE')
WHERE EXISTS (SELECT FROM roles WHERE pg_catalog.has_database_privilege(oid, pg_catalog.current_database(), 'CREATE'))
"""

_SERVERS = f"""
{_ROLES} SELECT 'SERVER', pg_catalog.quote_ident(s.srvname), pg_catalog.has_server_privilege('public', s.oid, 'USAGE')
FROM pg_catalog.pg_foreign_server s
WHERE EXISTS (SELECT FROM roles WHERE pg_catalog.has_server_privilege(roles.oid, s.oid, 'USAGE'))
UNION ALL
SELECT 'DATA WRAPPER', pg_catalog.quote_ident(w.fdwname),
    pg_catalog.has_foreign_data_wrapper_privilege('public', w.oid, 'USAGE')
FROM pg_catalog.pg_foreign_data_wrapper w
WHERE EXISTS (SELECT FROM roles WHERE pg_catalog.has_foreign_data_wrapper_privilege(roles.oid, w.oid, 'USAGE'))
ORDER BY 1, 2
"""

# Objects with lower numbers are built into PostgreSQL.
_FUNCTIONS = f"""
{_ROLES} SELECT n.nspname, p.proname, p.oid::pg_catalog.regprocedure::text, l.lanispl AND NOT l.lanpltrusted,
    pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE')
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE p.oid >= 16384
AND EXISTS (SELECT FROM roles WHERE pg_catalog.has_function_privilege(roles.oid, p.oid, 'EXECUTE')
    AND pg_catalog.has_schema_privilege(roles.oid, n.oid, 'USAGE'))
ORDER BY 3
"""

# Other ways to call a function than by its name.
_OTHER_NAMES = """
SELECT 'the operator ' || o.oid::pg_catalog.regoperator::text, p.proname
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode WHERE o.oid >= 16384
UNION ALL
SELECT 'the cast from ' || pg_catalog.format_type(c.castsource, NULL) || ' to '
    || pg_catalog.format_type(c.casttarget, NULL), p.proname
FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc WHERE c.oid >= 16384
UNION ALL
SELECT 'the aggregate ' || a.aggfnoid::pg_catalog.regproc::text, p.proname
FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc p ON p.oid IN (a.aggtransfn, a.aggfinalfn)
WHERE a.aggfnoid >= 16384
ORDER BY 1
"""

_MEANINGS = {
    "pg_execute_server_program": "run programs on the server",
    "pg_read_server_files": "read files of the server",
    "pg_write_server_files": "write files of the server",
    "pg_write_all_data": "write to all tables",
    "pg_signal_backend": "end other sessions",
    "pg_maintain": "maintain all tables",
    "pg_checkpoint": "force checkpoints",
    "pg_create_subscription": "subscribe to other servers",
}
_FLAGS = ("bypass row-level security", "replicate", "create roles", "create databases")

Finding = tuple[str, str | None]
"""A right of the login, and the SQL that revokes it from PUBLIC, if PUBLIC has it."""


def check(connection: Any, address: str) -> None:
    """Fails if the login, or a role that it can switch to, may do more than read."""
    (user,) = connection.execute("SELECT pg_catalog.quote_ident(session_user)").fetchone()
    findings = list(_findings(connection))
    if findings:
        (database,) = connection.execute("SELECT pg_catalog.quote_ident(pg_catalog.current_database())").fetchone()
        revoked = dict.fromkeys(sql for _, sql in findings if sql)
        raise errors.privileged(user, address, [may for may, _ in findings], [*reader(database), *revoked])


def reader(database: str) -> list[str]:
    """The SQL that creates a read-only login for a database; its name is quoted where needed."""
    return [
        "CREATE ROLE heedful_reader LOGIN PASSWORD 'change me' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"
        " NOBYPASSRLS",
        "ALTER ROLE heedful_reader SET default_transaction_read_only = on",
        f"GRANT CONNECT ON DATABASE {database} TO heedful_reader",
        "GRANT USAGE ON SCHEMA public TO heedful_reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO heedful_reader",
    ]


def _findings(connection: Any) -> Iterator[Finding]:
    roles = connection.execute(_ATTRIBUTES).fetchall()
    if any(row[1] for row in roles):
        yield "do everything, as a superuser", None
        return
    for flag, what in enumerate(_FLAGS, 2):
        if any(row[flag] for row in roles):
            yield what, None
    yield from ((_MEANINGS[row[0]], None) for row in roles if row[0] in _MEANINGS)
    yield from _writing(connection)
    yield from _outside_access(connection)
    for where, function in connection.execute(_OTHER_NAMES).fetchall():
        if is_denied(function, "postgres"):
            yield f"call {function} through {where}", None


def _writing(connection: Any) -> Iterator[Finding]:
    tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
    if tables:
        yield f"write to tables ({_join_some(tables)})", None
    for name, is_public in connection.execute(_SCHEMAS).fetchall():
        yield f"create tables in the schema {name}", _revoked(is_public, f"CREATE ON SCHEMA {name}")
    for name, is_public in connection.execute(_DATABASE).fetchall():
        yield f"create schemas in the database {name}", _revoked(is_public, f"CREATE ON DATABASE {name}")


def _outside_access(connection: Any) -> Iterator[Finding]:
    for kind, name, is_public in connection.execute(_SERVERS).fetchall():
        yield f"use the foreign {kind.lower()} {name}", _revoked(is_public, f"USAGE ON FOREIGN {kind} {name}")
    functions = connection.execute(_FUNCTIONS).fetchall()
    yield from _calling("which reach other systems", [row for row in functions if connects_out(row[0], row[1])])
    yield from _calling("which can do anything on the server", [row for row in functions if row[3]])


def _calling(why: str, functions: Sequence[Sequence[Any]]) -> Iterator[Finding]:
    if functions:
        names = list(dict.fromkeys(row[1] for row in functions))
        open_to_all = [row[2] for row in functions if row[4]]
        revoked = _revoked(bool(open_to_all), f"EXECUTE ON FUNCTION {', '.join(open_to_all)}")
        yield f"call functions {why} ({_join_some(names)})", revoked


def _revoked(is_public: bool, grant: str) -> str | None:
    return f"REVOKE {grant} FROM PUBLIC" if is_public else None


def _join_some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


_NOWHERE = "/dev/null/none"
"""A path that can't exist; an empty one would mean the file in the home folder."""

_ALWAYS = (
    f"host= hostaddr= port=5432 user= dbname= password= passfile={_NOWHERE} channel_binding=prefer "
    f"client_encoding=UTF8 application_name=heedful connect_timeout={CONNECT_SECONDS} keepalives=1 "
    "keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=60000 sslmode=prefer "
    f"sslcompression=0 sslcert={_NOWHERE} sslkey={_NOWHERE} sslpassword= sslrootcert= sslcrl= "
    "ssl_min_protocol_version=TLSv1.2 ssl_max_protocol_version= requirepeer= gssencmode=disable "
    "krbsrvname=postgres gsslib= target_session_attrs=any "
)
_SINCE = {
    140000: {"sslcrldir": "", "sslsni": "1"},
    # Nor may it use the operator's Kerberos ticket.
    160000: {"sslcertmode": "disable", "require_auth": "!gss,!sspi", "load_balance_hosts": "disable"},
    170000: {"sslnegotiation": "postgres", "gssdelegation": "0"},
    180000: {"min_protocol_version": "3.0", "max_protocol_version": "3.0"},
}
"""Parameters that newer versions of the library have in addition."""


def parameters(address: URL, version: int, options: str) -> dict[str, Any]:
    """All parameters for a library of this version; `options` are those of the server."""
    result = dict(word.split("=") for word in _ALWAYS.split())
    for since, extra in _SINCE.items():
        if version >= since:
            result |= extra
    address_parts = {
        "host": address.host,
        "port": None if address.port is None else str(address.port),
        "user": address.username,
        "password": address.password,
        "dbname": address.database,
    }
    result |= {name: value for name, value in address_parts.items() if value}
    result |= {name: str(value) for name, value in address.query.items()}
    return result | {"options": options}
