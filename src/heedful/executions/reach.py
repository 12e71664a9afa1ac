"""From a connector to its database: with secrets in place, its schema, and the values of its columns."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from heedful.executions import secrets
from heedful.executions.databases import Schema
from heedful.executions.sandbox.queries import Queries, Target
from heedful.model import Metadata
from heedful.storage.rows import AnyRow

FILES = ("sqlite", "duckdb")
"""Databases that are files."""

TELL_CHANGES = frozenset({"sqlite", "duckdb"})
"""Databases that can always tell when their data changed, but for a moment after a change."""


def target_of(connector: AnyRow) -> Target:
    """The database behind a connector, with its secrets in place."""
    return _target(connector.url, connector.options)


def located(url: str) -> str:
    """The URL with the whole path of a file, so that it means the same from every folder."""
    address = secrets.parsed(url)
    file = address.database
    if address.get_backend_name() not in FILES or not file or file.startswith((":", "file:")) or "${" in url:
        return url
    return address.set(database=str(Path(file).expanduser().absolute())).render_as_string(hide_password=False)


def read_schema(queries: Queries, url: str, options: Metadata) -> Schema:
    """The schema of a database that is not a connector yet, or anew."""
    return queries.read_schema(_target(url, options))


def _target(url: str, options: Metadata) -> Target:
    # A process that runs queries may have been started in another folder.
    return Target(located(secrets.opened(url, secrets.keys_from())), options.get("role"))


def dialect_of(connector: AnyRow) -> str:
    """The SQL that a connector's database speaks."""
    dialect: str = connector.options["dialect"]
    return dialect


def schema_stored(schema: Schema) -> Metadata:
    """A schema as it is stored."""
    return asdict(schema)


def schema_in_words(connector: AnyRow) -> str:
    """The schema for a language model: one line for each table."""
    lines = []
    for table in (connector.schema or {"tables": []})["tables"]:
        name = f"{table['schema']}.{table['name']}" if table["schema"] else table["name"]
        columns = ", ".join(f"{column['name']} {column['type']}" for column in table["columns"])
        keys = "".join(
            f"; ({', '.join(key['columns'])}) refers to {key['table']} ({', '.join(key['referred'])})"
            for key in table["foreign_keys"]
        )
        lines.append(f"{name} ({columns}){keys}")
    return "\n".join(lines)
