"""From a connector to its database: what it may reach, with secrets in place, and its schema."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from sqlalchemy.engine import URL

from heedful.errors import Forbidden
from heedful.executions import secrets
from heedful.executions.databases import Schema, errors, kinds
from heedful.executions.permissions import Permissions
from heedful.executions.sandbox.queries import Target
from heedful.model import Metadata
from heedful.storage.rows import AnyRow

FILES = ("sqlite", "duckdb")
"""Databases that are files."""

TELL_CHANGES = frozenset({"sqlite", "duckdb"})
"""Databases that can always tell when their data changed, but for a moment after a change."""

LISTED = "listed"
"""The option of a connector that was created within the operator's lists, and stays within them."""


def target_of(connector: AnyRow, permissions: Permissions, store: URL) -> Target:
    """The database behind a connector, with its secrets in place; `store` is the one that the connector is kept in."""
    if not connector.enabled:
        raise Forbidden(
            f"connector {connector.name!r} was imported, and nobody has confirmed where it leads",
            code="connector_unconfirmed",
            field="connector_id",
            value=connector.id,
            remedy=f"Look at its URL and confirm it: connectors.confirm({connector.name!r}), or heedful connectors "
            f"confirm {connector.name}",
        )
    return target_at(connector.url, connector.options, permissions, store)


def target_at(kept: str, options: Metadata, permissions: Permissions, store: URL) -> Target:
    """The database at a URL as it is kept, once it has passed all rules."""
    url = secrets.plain(kept, secrets.keys_from())
    check(url, options, permissions)
    _check_other_file(secrets.parsed(url), store)
    # A process that runs queries may have been started in another folder.
    return Target(located(secrets.resolved(url, permissions.secrets)), options.get("role"))


def check(url: str, options: Metadata, permissions: Permissions) -> None:
    """Fails if a connector may not have such a URL, or not lead there; nothing is looked up."""
    address = secrets.parsed(url)
    kind = kinds.checked(address)
    if options.get(LISTED):
        permissions.check(address, kind)


def located(url: str) -> str:
    """The URL with the whole path of a file, so that it means the same from every folder."""
    address = secrets.parsed(url)
    file = address.database
    if address.get_backend_name() not in FILES or not file or file.startswith((":", "file:")):
        return url
    try:
        path = Path(file).expanduser().absolute()
    except RuntimeError:
        raise errors.no_file(address.get_backend_name()) from None
    return address.set(database=str(path)).render_as_string(hide_password=False)


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


def _check_other_file(address: URL, store: URL) -> None:
    """Fails if a file is the store itself, by whatever name; other stores are known by their tables."""
    files = [each.database for each in (address, store) if each.get_backend_name() in FILES and each.database]
    if len(files) < 2:
        return
    try:
        same = os.path.samefile(*files)
    except (OSError, ValueError):
        # It is not there, which those who open it say better.
        same = False
    if same:
        raise errors.our_own(files[0])
