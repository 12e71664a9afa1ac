"""DuckDB: a file opened for reading, without access to anything outside of it, and a query that can be interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import URL

from heedful.errors import HeedfulError
from heedful.results import Column, Result
from heedful.sql.databases import errors
from heedful.sql.databases.any_database import Deadline, Limits, Parameters, bound, collect, file_version
from heedful.sql.databases.schema import ForeignKey, Schema, SchemaColumn, Table
from heedful.sql.guard import CheckedStatement

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CONFIG: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
    "threads": 2,
}
_SHARE = 0.6
"""DuckDB's share of a query's memory; the rest is for the driver and the result."""

_COLUMNS = """
SELECT schema_name, table_name,
       table_name IN (SELECT view_name FROM duckdb_views() v WHERE v.schema_name = c.schema_name),
       column_name, data_type, is_nullable
FROM duckdb_columns() c WHERE NOT internal AND database_name = current_database()
ORDER BY schema_name, table_name, column_index
"""

_KEYS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') AND database_name = current_database()
"""


class DuckDB:
    dialect = "duckdb"

    def __init__(self, url: URL, memory: int, disk: int) -> None:
        path = url.database or ""
        if not path or path.startswith((":memory:", "md:", "motherduck:")):
            raise errors.no_file("DuckDB")
        self._path = Path(path).absolute()
        self._config = {
            **_CONFIG,
            "memory_limit": f"{int(memory * _SHARE)}MiB",
            "max_temp_directory_size": f"{disk}MiB",
        }
        self.address = f"duckdb:///{self._path}"

    @contextmanager
    def session(self) -> Iterator[DuckDBSession]:
        with closing(self._connect()) as connection:
            yield DuckDBSession(connection)

    def read_schema(self) -> Schema:
        with closing(self._connect()) as connection:
            columns = connection.execute(_COLUMNS).fetchall()
            keys = connection.execute(_KEYS).fetchall()
        tables = [
            _table(schema, name, is_view, list(rows), [key for key in keys if key[:2] == (schema, name)])
            for (schema, name, is_view), rows in groupby(columns, key=lambda row: (row[0], row[1], row[2]))
        ]
        return Schema(tuple(sorted(tables, key=lambda table: table.full_name)))

    def check_rights(self) -> None:
        """Nothing to check: the file is opened read-only."""

    def data_version(self) -> str | None:
        """Derived from the file and its log."""
        path = errors.existing_file(self._path, "DuckDB")
        return file_version(path, path.with_name(f"{path.name}.wal"))

    def _connect(self) -> DuckDBPyConnection:
        try:
            import duckdb
        except ImportError:
            raise errors.missing_driver("duckdb", "duckdb") from None
        errors.existing_file(self._path, "DuckDB")
        try:
            return duckdb.connect(str(self._path), read_only=True, config=self._config)
        except duckdb.ConnectionException:
            raise errors.in_use(self.address) from None
        except duckdb.IOException as error:
            if "lock" in str(error):
                raise errors.in_use(self.address) from None
            raise errors.not_a_database(self._path, "DuckDB") from None
        except duckdb.PermissionException:
            # A file of another database, which needs an extension.
            raise errors.not_a_database(self._path, "DuckDB") from None
        except duckdb.Error as error:
            raise errors.unreachable(self.address, type(error).__name__) from None


class DuckDBSession:
    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement that DuckDB itself parses as a SELECT."""
        import duckdb

        values = bound(query, parameters)
        deadline = Deadline(limits.seconds, self._connection.interrupt)
        try:
            with deadline:
                return self._fetch(query.written(lambda name: f"${name}"), values, limits)
        except (duckdb.Error, RuntimeError, OverflowError) as error:
            if deadline.fired:
                raise errors.timed_out(limits.seconds) from None
            raise _translate_error(error) from error

    def _fetch(self, sql: str, values: dict[str, Any], limits: Limits) -> Result:
        from duckdb import StatementType

        started = monotonic()
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != StatementType.SELECT:
            raise errors.changes_data("it is not one SELECT statement")
        cursor = self._connection.execute(statements[0], values)
        columns = [Column(field[0], str(field[1]).strip('"').lower()) for field in cursor.description or ()]
        documents = [index for index, column in enumerate(columns) if column.type == "json"]
        return collect(columns, lambda count: _parse_json(cursor.fetchmany(count), documents), limits, started)


def _parse_json(rows: list[tuple[Any, ...]], documents: list[int]) -> list[tuple[Any, ...]]:
    """Parses JSON columns, which DuckDB returns as text."""
    if not documents:
        return rows
    return [
        tuple(
            json.loads(value) if index in documents and isinstance(value, str) else value
            for index, value in enumerate(row)
        )
        for row in rows
    ]


def _table(schema: str, name: str, is_view: bool, columns: list[Any], keys: list[Any]) -> Table:
    return Table(
        name,
        tuple(SchemaColumn(row[3], row[4], row[5], row[4] == "VARCHAR") for row in columns),
        next((tuple(key[3]) for key in keys if key[2] == "PRIMARY KEY"), ()),
        tuple(ForeignKey(tuple(key[3]), key[4], tuple(key[5])) for key in keys if key[2] == "FOREIGN KEY"),
        None if schema == "main" else schema,
        is_view,
    )


def _translate_error(error: Exception) -> HeedfulError:
    import duckdb

    message = str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return errors.out_of_disk() if "max_temp_directory_size" in message else errors.out_of_memory()
    if "pytz" in message:
        return errors.missing_driver("pytz", "duckdb")
    if isinstance(error, duckdb.PermissionException) or "read-only" in message:
        return errors.changes_data(error)
    if isinstance(error, duckdb.CatalogException) and "Table with name" in message:
        return errors.unknown_table(error)
    if isinstance(error, duckdb.BinderException) and "column" in message.lower() and "not found" in message:
        return errors.unknown_column(error)
    return errors.failed(error)
