"""MySQL and MariaDB, through SQLAlchemy: a read-only transaction that is rolled back, and a time limit that the server
itself keeps."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from heedful.errors import HeedfulError
from heedful.results import Column, Result
from heedful.sql.databases import CONNECT_SECONDS, errors
from heedful.sql.databases.any_database import Deadline, Limits, Parameters, bound, collect
from heedful.sql.databases.schema import Schema, reflected
from heedful.sql.guard import CheckedStatement
from heedful.sql.statements import parser_dialect
from heedful.text.regex import regex

# In another encoding a byte of a character may be a quote or a backslash.
_NAMES = "SET NAMES utf8mb4"
# The guard reads a backslash as an escape and "…" as a text; the server must not read them in another way. So only
# modes that concern values and results are left on.
_MODES = (
    "ALLOW_INVALID_DATES ERROR_FOR_DIVISION_BY_ZERO NO_UNSIGNED_SUBTRACTION NO_ZERO_DATE NO_ZERO_IN_DATE "
    "ONLY_FULL_GROUP_BY PAD_CHAR_TO_FULL_LENGTH STRICT_ALL_TABLES STRICT_TRANS_TABLES TIME_ROUND_FRACTIONAL"
)
_READ_ONLY = "SET SESSION TRANSACTION READ ONLY"
_MARIADB_LIMIT = "SET SESSION max_statement_time = :seconds"
_MYSQL_LIMIT = "SET SESSION max_execution_time = :milliseconds"

_GRANT = regex(r"GRANT (?P<rights>.+?) ON (?P<place>.+?) TO .*?(?P<option>WITH GRANT OPTION)?", re.DOTALL)
_ROLES = regex(r"GRANT (?P<roles>[`'][^()]*?) TO [^()]*?(?P<option>WITH ADMIN OPTION)?")
_ROLE = regex(r"`(?:[^`]|``)+`(?:@`(?:[^`]|``)*`)?")
# They give nothing: a default, and what MySQL takes away again.
_NO_GRANT = ("SET DEFAULT ROLE ", "REVOKE ")
# Privileges that only read; functions run in the same read-only transaction as their query.
_READING = frozenset({"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "EXECUTE"})

_ERRORS: Mapping[int, Callable[[object], HeedfulError]] = (
    dict.fromkeys((1051, 1146), errors.unknown_table)
    | dict.fromkeys((1054,), errors.unknown_column)
    | dict.fromkeys((1290, 1792, 1836), errors.changes_data)
    | dict.fromkeys((1044, 1142, 1143, 1227, 1370), errors.not_allowed)
)
_STOPPED = {1317, 1969, 3024}


class MySQL:
    def __init__(self, url: URL) -> None:
        self.dialect = parser_dialect(url.get_backend_name())
        self.address = errors.address(url)
        try:
            import pymysql  # noqa: F401
        except ImportError:
            raise errors.missing_driver("pymysql", "mysql") from None
        if "+" not in url.drivername:
            url = url.set(drivername=f"{url.drivername}+pymysql")
        seconds = str(url.query.get("connect_timeout", CONNECT_SECONDS))
        # The driver's limit ends with the TCP connection; a server that accepts it and never greets needs another.
        url = url.update_query_dict({"connect_timeout": seconds, "read_timeout": seconds})
        self._engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
        event.listen(self._engine, "connect", _wait_for_queries)

    @contextmanager
    def session(self) -> Iterator[MySQLSession]:
        with self._connected() as connection:
            modes = str(connection.execute(text("SELECT @@sql_mode")).scalar()).split(",")
            connection.execute(text(_NAMES))
            connection.execute(text("SET SESSION sql_mode = :mode"), {"mode": ",".join({*_MODES.split()} & set(modes))})
            connection.execute(text(_READ_ONLY))
            connection.rollback()
            yield MySQLSession(connection)

    def read_schema(self) -> Schema:
        with self._connected() as connection:
            try:
                return reflected(connection)
            except DBAPIError as error:
                raise errors.failed(error.orig) from error

    def check_rights(self) -> None:
        """Fails if the user, with any of their roles, may do more than read."""
        with self._connected() as connection:
            granted = _grants(connection)
            user = str(connection.execute(text("SELECT CURRENT_USER()")).scalar())
        rights = [right for grant in granted for right in _more_than_reading(grant)]
        if rights:
            advice = [
                "CREATE USER 'heedful_reader'@'%' IDENTIFIED BY 'change me'",
                f"GRANT SELECT ON `{self._engine.url.database or '*'}`.* TO 'heedful_reader'@'%'",
            ]
            raise errors.privileged(user, self.address, rights, advice)

    def data_version(self) -> str | None:
        """Can't be determined here."""
        return None

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            connection = self._engine.connect()
        except SQLAlchemyError as error:
            reason = "timeout" if "timed out" in str(error) else type(error).__name__
            raise errors.unreachable(self.address, reason) from None
        with connection:
            try:
                yield connection
            except DBAPIError as error:
                raise _translate_error(error.orig) from error


class MySQLSession:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement in a read-only transaction that is rolled back."""
        _limit(self._connection, limits.seconds)
        values = bound(query, parameters)
        deadline = Deadline(limits.seconds, lambda: _close_connection(self._connection))
        try:
            with deadline:
                return self._fetch(query, values, limits)
        except DBAPIError as error:
            if deadline.fired or _code(error.orig) in _STOPPED:
                raise errors.timed_out(limits.seconds) from None
            raise _translate_error(error.orig) from error
        finally:
            if deadline.fired:
                self._connection.invalidate()
            else:
                self._connection.rollback()

    def _fetch(self, query: CheckedStatement, values: dict[str, Any], limits: Limits) -> Result:
        started = monotonic()
        statement = text(query.written(lambda name: f":{name}", lambda part: part.replace(":", "\\:")))
        with self._connection.execution_options(stream_results=True).execute(statement, values) as result:
            description = result.cursor.description if result.cursor else ()
            columns = [Column(name, _type(code)) for name, code, *_ in description]
            return collect(columns, result.fetchmany, limits, started)


def _close_connection(connection: Connection) -> None:
    """Stops a query from another thread: the driver can't cancel it."""
    raw = connection.connection.dbapi_connection
    with contextlib.suppress(Exception):
        raw.close()  # type: ignore[union-attr]


def _type(code: Any) -> str:
    return "unknown" if code is None else str(getattr(code, "__name__", code)).lower()


def _wait_for_queries(connection: Any, record: Any) -> None:
    """Once a server has greeted, its answers may take as long as the limits of queries say."""
    connection._read_timeout = None


def _limit(connection: Connection, seconds: float) -> None:
    """The server's own limit, a second later than ours, in case this process goes away before it can stop a query."""
    later = seconds + 1
    mariadb = getattr(connection.dialect, "is_mariadb", False)
    statement = _MARIADB_LIMIT if mariadb else _MYSQL_LIMIT
    connection.execute(text(statement), {"seconds": later} if mariadb else {"milliseconds": int(later * 1000)})
    connection.rollback()


def _grants(connection: Connection) -> list[str]:
    """The lines of SHOW GRANTS without a role and with each role of the user, since it lists what is active."""
    granted = _shown(connection)
    if any(_ROLES.fullmatch(grant) for grant in granted):
        connection.execute(text("SET ROLE NONE"))
        granted = _shown(connection)
        direct = [match["roles"] for grant in granted if (match := _ROLES.fullmatch(grant))]
        for role in (role for roles in direct for role in _ROLE.findall(roles)):
            connection.execute(text(f"SET ROLE {role}".replace(":", "\\:")))
            granted += _shown(connection)
    return list(dict.fromkeys(granted))


def _shown(connection: Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute(text("SHOW GRANTS"))]


def _more_than_reading(grant: str) -> Iterator[str]:
    """The privileges in a line of SHOW GRANTS that allow more than reading."""
    if grant.startswith(_NO_GRANT):
        return
    if match := _ROLES.fullmatch(grant):
        if match["option"]:
            yield f"pass on the role {match['roles']}"
        return
    match = _GRANT.fullmatch(grant)
    if match is None:
        # What follows may be a password's hash.
        yield f"use the grant {grant.partition(' TO ')[0]!r}, which can't be read here"
        return
    for right in re.sub(r"\(.*?\)", "", match["rights"]).split(","):
        if right.strip() not in _READING:
            yield f"{right.strip()} on {match['place']}"
    if match["option"]:
        yield f"grant that to others on {match['place']}"


def _code(error: BaseException | None) -> Any:
    return error.args[0] if error is not None and error.args else None


def _translate_error(error: BaseException | None) -> HeedfulError:
    message = error.args[-1] if error is not None and error.args else error
    return _ERRORS.get(_code(error), errors.failed)(message)
