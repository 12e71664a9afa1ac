"""The schema of a database, its fingerprint, and the texts in its columns."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SAWarning
from sqlalchemy.sql.sqltypes import NullType, String

STORE_TABLES = frozenset({"alembic_version", "projects", "datasets", "facts", "events"})
"""Tables by which a Heedful store is recognised."""

_SYSTEM = ("information_schema", "performance_schema", "mysql", "sys")


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    name: str
    type: str
    nullable: bool = True
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that refer to those of another table."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view; `schema` is None in the default one."""

    name: str
    columns: tuple[SchemaColumn, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    schema: str | None = None
    is_view: bool = False

    @property
    def full_name(self) -> str:
        """The name as SQL has it, with the schema if it isn't the default one."""
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables and views of a database, sorted by name."""

    tables: tuple[Table, ...]

    def table(self, full_name: str) -> Table | None:
        """The table of this name, ignoring case."""
        return next((table for table in self.tables if table.full_name.lower() == full_name.lower()), None)


@dataclass(frozen=True, slots=True)
class TextValues:
    """The distinct texts of each (table, column); columns in `partial` may have more. `columns` are all of the schema,
    also those of views and those that hold no texts."""

    values: dict[tuple[str, str], tuple[str, ...]]
    partial: frozenset[tuple[str, str]]
    columns: frozenset[tuple[str, str]] = frozenset()


def is_listed(table: Table, column: str, names: Collection[str]) -> bool:
    """Whether a list names a column, as `table.column` or `schema.table.column`, in any case."""
    listed = {name.lower() for name in names}
    return not listed.isdisjoint({f"{table.full_name}.{column}".lower(), f"{table.name}.{column}".lower()})


def fingerprint(schema: Schema) -> str:
    """A hash that changes with tables, columns, types and keys, but not with their order."""
    tables = sorted(
        (
            {**asdict(table), "columns": _sorted(table.columns), "foreign_keys": _sorted(table.foreign_keys)}
            for table in schema.tables
        ),
        key=orjson.dumps,
    )
    return hashlib.sha256(orjson.dumps(tables)).hexdigest()[:32]


def _sorted(parts: Iterable[Any]) -> list[dict[str, Any]]:
    return sorted((asdict(part) for part in parts), key=orjson.dumps)


def reflected(connection: Connection) -> Schema:
    """The schema as SQLAlchemy reads it."""
    inspector = inspect(connection)
    tables: list[Table] = []
    with warnings.catch_warnings():
        # A type that SQLAlchemy doesn't know is no reason to warn: its name is not used.
        warnings.simplefilter("ignore", SAWarning)
        for schema in inspector.get_schema_names():
            if schema in _SYSTEM or schema.startswith("pg_"):
                continue
            qualifier = None if schema == inspector.default_schema_name else schema
            tables += _tables_in(inspector, qualifier)
    return Schema(tuple(sorted(tables, key=lambda table: table.full_name)))


def _tables_in(inspector: Any, schema: str | None) -> Iterable[Table]:
    names = [(name, False) for name in inspector.get_table_names(schema)]
    names += [(name, True) for name in inspector.get_view_names(schema)]
    for name, is_view in names:
        key = [] if is_view else inspector.get_pk_constraint(name, schema)["constrained_columns"]
        references = [] if is_view else inspector.get_foreign_keys(name, schema)
        yield Table(
            name,
            tuple(_column(column) for column in inspector.get_columns(name, schema)),
            tuple(key),
            tuple(_reference(reference, inspector.default_schema_name) for reference in references),
            schema,
            is_view,
        )


def _column(column: dict[str, Any]) -> SchemaColumn:
    kind = column["type"]
    name = "unknown" if isinstance(kind, NullType) else str(kind)
    return SchemaColumn(column["name"], name, bool(column["nullable"]), isinstance(kind, String))


def _reference(reference: dict[str, Any], default: str | None) -> ForeignKey:
    schema = reference["referred_schema"]
    table = reference["referred_table"] if schema in (None, default) else f"{schema}.{reference['referred_table']}"
    return ForeignKey(tuple(reference["constrained_columns"]), table, tuple(reference["referred_columns"]))
