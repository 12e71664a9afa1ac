"""Which hosts and files connectors may use: any for the operator, those in the settings for others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy.engine import URL

from heedful.errors import Forbidden, Invalid, quoted
from heedful.model import Metadata
from heedful.sql import secrets
from heedful.sql.databases import Schema, errors, kinds
from heedful.sql.databases.kinds import Kind
from heedful.sql.databases.values import is_listed
from heedful.sql.sandbox.pool import Target
from heedful.storage.rows import AnyRow

SYSTEM = "system"
"""The option's value for the certificates that this machine trusts."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Which hosts, files and variables the connectors of one caller may use."""

    everywhere: bool = True
    """Whether any host and any file is allowed."""
    hosts: Sequence[str] = ()
    """Each `host`, for the usual port, or `host:port`."""
    folders: Sequence[str] = ()
    secrets: frozenset[str] | None = None
    """The environment variables that URLs may reference; None for all but those of Heedful."""

    def check(self, address: URL, kind: Kind) -> None:
        """Refuses an address that this caller may not use, without revealing what is there."""
        if self.everywhere:
            return
        certificates = address.query.get(kind.certificates or "", SYSTEM)
        if certificates != SYSTEM:
            self._check_file(str(certificates))
        if kind.is_file:
            self._check_file(address.database or "")
        elif _host_and_port(address.host, address.port or kind.port, kind) not in {
            _listed(host, kind) for host in self.hosts
        }:
            raise Forbidden(
                "only a server-wide key may connect a host that is not listed",
                code="connector_host",
                field="url",
                remedy="Have the operator add host:port to connector_hosts (HEEDFUL_CONNECTOR_HOSTS), or create it "
                "with a server-wide key",
            )

    def check_operator(self, field: str) -> None:
        """Refuses a privileged login unless this caller may accept one."""
        if not self.everywhere:
            raise Forbidden(
                "only a server-wide key may accept a login that may do more than read",
                code="role_privileged",
                field=field,
                remedy="Connect as a role that may only read, or have the operator create the connector",
            )

    def _check_file(self, file: str) -> None:
        try:
            path = Path(file).expanduser().resolve()
            allowed = any(path.is_relative_to(Path(folder).expanduser().resolve()) for folder in self.folders)
        except (OSError, RuntimeError, ValueError):
            # A symbolic link that points to itself, or an unknown home folder.
            allowed = False
        if not allowed:
            raise Forbidden(
                "only a server-wide key may name a file outside of the folders that are listed",
                code="connector_folder",
                field="url",
                remedy="Have the operator add its folder to connector_folders (HEEDFUL_CONNECTOR_FOLDERS), or create "
                "it with a server-wide key",
            )


OPERATOR = Permissions()
"""The permissions of a program that opens the store itself."""


def _host_and_port(host: str | None, port: int | None, kind: Kind) -> tuple[str, int | None]:
    return (host or "").strip("[]").lower(), port or kind.port


def _listed(entry: str, kind: Kind) -> tuple[str, int | None]:
    host, colon, port = entry.rpartition(":")
    # An IPv6 address contains colons, and is in brackets if a port follows.
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return _host_and_port(host, int(port), kind)
    return _host_and_port(entry, None, kind)


FILES = ("sqlite", "duckdb")
"""Databases that are files."""

NOTICE_CHANGES = frozenset({"sqlite", "duckdb"})
"""Databases that reliably detect changes of their data, except for a moment right after one."""

PRIVILEGED = "privileged"
"""The option of a connector for which the operator accepted a login that may do more than read."""

RESTRICTED = "listed"
"""The option of a connector that is restricted to the operator's lists."""


SENSITIVE = "sensitive_columns"
"""The option of a connector that lists columns whose values are never read to recognise them in questions."""


def target_of(connector: AnyRow, permissions: Permissions, store: URL) -> Target:
    """The database behind a connector, with its secrets in place; `store` is the one that the connector is kept in."""
    if not connector.enabled:
        raise Forbidden(
            f"connector {connector.name!r} was imported, and its URL has not been confirmed",
            code="connector_unconfirmed",
            field="connector_id",
            value=connector.id,
            remedy=f"Look at its URL and confirm it: connectors.confirm({connector.name!r}), or heedful connectors "
            f"confirm {connector.name}",
        )
    return target_at(connector.url, connector.options, permissions, store)


def target_at(stored_url: str, options: Metadata, permissions: Permissions, store: URL) -> Target:
    """The database at a stored URL, after all checks."""
    url = secrets.decrypt_url(stored_url, secrets.keys_from())
    address = check(url, options, permissions)
    _check_other_file(address, store)
    if "${" in url:
        address = secrets.parse_url(secrets.resolve_references(url, permissions.secrets))
    # The query process may run in another folder.
    return Target(
        _with_absolute_path(address).render_as_string(hide_password=False),
        options.get("role"),
        privileged=is_privileged(options),
        sensitive=tuple(options.get(SENSITIVE, ())),
    )


def check(url: str, options: Metadata, permissions: Permissions) -> URL:
    """Checks a connector's URL against the rules, without connecting; returns it parsed."""
    address = secrets.parse_url(url)
    kind = kinds.check_url(address)
    if options.get(RESTRICTED):
        permissions.check(address, kind)
    return address


def with_absolute_path(url: str) -> str:
    """The URL with an absolute path, so that it means the same from every folder."""
    address = secrets.parse_url(url)
    absolute = _with_absolute_path(address)
    return url if absolute is address else absolute.render_as_string(hide_password=False)


def _with_absolute_path(address: URL) -> URL:
    file = address.database
    if address.get_backend_name() not in FILES or not file or file.startswith((":", "file:")):
        return address
    try:
        path = Path(file).expanduser().absolute()
    except RuntimeError:
        raise errors.no_file(address.get_backend_name()) from None
    return address.set(database=str(path))


def is_privileged(options: Metadata) -> bool:
    """Whether the operator has accepted a login that may do more than read."""
    return options.get(PRIVILEGED) is True


def dialect_of(connector: AnyRow) -> str:
    """The SQL dialect of a connector's database."""
    dialect: str = connector.options["dialect"]
    return dialect


def check_sensitive(columns: Sequence[str], schema: Schema) -> None:
    """Refuses names that are no columns: a column that is misspelt would be read."""
    for name in columns:
        if not any(is_listed(table, column.name, [name]) for table in schema.tables for column in table.columns):
            raise Invalid(
                f"there is no column {quoted(name)}",
                code="unknown_column",
                field=SENSITIVE,
                value=name,
                remedy="Name it as table.column, or schema.table.column",
            )


def stored_schema(schema: Schema) -> Metadata:
    """A schema as it is stored."""
    return asdict(schema)


def describe_schema(connector: AnyRow) -> str:
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
    """Refuses a connector to the store's own file; other stores are recognised by their tables."""
    files = [url.database for url in (address, store) if url.get_backend_name() in FILES and url.database]
    if len(files) < 2:
        return
    try:
        same = os.path.samefile(*files)
    except (OSError, ValueError):
        # It doesn't exist; opening it gives a better error.
        same = False
    if same:
        raise errors.own_store(files[0])
