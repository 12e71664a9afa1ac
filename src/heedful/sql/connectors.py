"""`.connectors`: the databases that questions are asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import new_id
from heedful.errors import Conflict, HeedfulError, Invalid, Unavailable, quoted
from heedful.model import Connector, Metadata
from heedful.sql import records, secrets
from heedful.sql.databases.schema import Schema, fingerprint, is_listed
from heedful.sql.records import SENSITIVE, dialect_of
from heedful.sql.space import PRIVILEGED, RESTRICTED, ExecutionSpace, with_absolute_path
from heedful.storage import Database, audit
from heedful.storage.rows import AnyRow, to_model

REMOVAL_BATCH_SIZE = 20
"""Executions that one transaction removes: each may have a result of many megabytes."""


def create_connector(
    space: ExecutionSpace, name: str, url: str, role: str | None, privileged: bool, sensitive_columns: Sequence[str]
) -> Connector:
    checks.name("name", name)
    if not isinstance(url, str) or not url.strip():
        raise Invalid(f"url must be a SQLAlchemy URL, got {quoted(url)}", field="url", value=url)
    full_url = with_absolute_path(url)
    options = _options(space, full_url, None if role is None else checks.name("role", role), privileged)
    options[SENSITIVE] = list(sensitive_columns)
    space.check_url(full_url, options)
    stored = secrets.encode_url(full_url, secrets.keys_from())
    schema = space.queries.read_schema(space.target_at(stored, options))
    _check_sensitive(sensitive_columns, schema)
    connector_id = new_id()
    with space.workspace.write() as connection:
        project = space.own_project(connection)
        if records.get_connector(connection, project, name) is not None:
            message = f"project {space.workspace.project!r} already has a connector {name!r}"
            remedy = "Choose another name, or delete it first"
            raise Conflict(message, field="name", value=name, remedy=remedy)
        now = space.now()
        records.add_connector(connection, project, connector_id, name, stored, options, now)
        _keep(space, connection, connector_id, schema)
        audit.note_action(connection, "connectors.create", now, project, connector_id)
        return _to_connector(space.connector(connection, connector_id))


def get_connector(space: ExecutionSpace, connector_id: str) -> Connector:
    return _to_connector(space.read_connector(connector_id))


def list_connectors(space: ExecutionSpace) -> list[Connector]:
    with space.workspace.read() as connection:
        return [_to_connector(row) for row in records.list_connectors(connection, space.project(connection))]


def refresh_connector(space: ExecutionSpace, connector_id: str, sensitive_columns: Sequence[str] | None) -> Connector:
    row = space.read_connector(connector_id)
    options = row.options if sensitive_columns is None else row.options | {SENSITIVE: sensitive_columns}
    schema = space.queries.read_schema(space.target(row))
    _check_sensitive(sensitive_columns or (), schema)
    with space.workspace.write() as connection:
        records.change_connector(connection, row.id, options=options)
        _keep(space, connection, row.id, schema)
        changed = space.connector(connection, row.id)
    space.proofs.forget(row.id)
    return _to_connector(changed)


def confirm_connector(space: ExecutionSpace, connector_id: str, privileged: bool) -> Connector:
    row = space.read_connector(connector_id)
    if row.enabled:
        return _to_connector(row)
    options = _options(space, secrets.decrypt_url(row.url, secrets.keys_from()), row.options.get("role"), privileged)
    options[SENSITIVE] = row.options.get(SENSITIVE, [])
    schema = space.queries.read_schema(space.target_at(row.url, options))
    with space.workspace.write() as connection:
        records.change_connector(connection, row.id, enabled=1, options=options)
        audit.note_action(connection, "connectors.confirm", space.now(), row.project_id, row.id)
        _keep(space, connection, row.id, schema)
        return _to_connector(space.connector(connection, row.id))


def connector_schema(space: ExecutionSpace, connector_id: str) -> Metadata:
    schema: Metadata = space.read_connector(connector_id).schema
    return schema


def delete_connector(space: ExecutionSpace, connector_id: str) -> bool:
    while True:
        with space.workspace.write() as connection:
            row = space.connector(connection, connector_id)
            ids = records.newest_runs(connection, row.id, REMOVAL_BATCH_SIZE)
            records.remove_runs(connection, row.project_id, row.id, ids)
            if len(ids) < REMOVAL_BATCH_SIZE:
                records.remove_connector(connection, row.id)
                audit.note_action(connection, "connectors.delete", space.now(), row.project_id, row.id)
                return True


def _options(space: ExecutionSpace, url: str, role: str | None, privileged: bool) -> Metadata:
    options: Metadata = {} if role is None else {"role": role}
    options["dialect"] = secrets.parse_url(url).get_backend_name()
    if privileged:
        space.permissions.check_operator()
        options[PRIVILEGED] = True
    return options if space.permissions.everywhere else options | {RESTRICTED: True}


def _check_sensitive(columns: Sequence[str], schema: Schema) -> None:
    """Refuses names that are no columns: a column that is misspelt would be read."""
    for name in columns:
        if not any(is_listed(table, column.name, [name]) for table in schema.tables for column in table.columns):
            message, remedy = f"there is no column {quoted(name)}", "Name it as table.column, or schema.table.column"
            raise Invalid(message, code="unknown_column", field=SENSITIVE, value=name, remedy=remedy)


def _keep(space: ExecutionSpace, connection: Connection, connector_id: str, schema: Schema) -> None:
    changes = {"schema": asdict(schema), "fingerprint": fingerprint(schema), "schema_at": space.now()}
    records.change_connector(connection, connector_id, **changes)


def _to_connector(row: AnyRow) -> Connector:
    return to_model(
        Connector,
        row,
        connector_id=row.id,
        url=secrets.masked_url(row.url, secrets.keys_from()),
        dialect=dialect_of(row),
        privileged=row.options.get(PRIVILEGED) is True,
        sensitive_columns=row.options.get(SENSITIVE, []),
        tables=None if row.schema is None else len(row.schema["tables"]),
    )


def reencrypt(database: Database) -> int:
    """Re-encrypts encrypted URLs with the first key of HEEDFUL_SECRET_KEY, all or none; returns how many."""
    keys = secrets.keys_from()
    if not keys:
        message = "there is no key to encrypt connectors' URLs with"
        remedy = f"Set {secrets.KEY_VARIABLE} to the new key and the old ones, separated by commas"
        raise Unavailable(message, code="secret_key_missing", remedy=remedy)
    with database.write() as connection:
        encrypted = [row for row in records.all_connectors(connection) if secrets.is_encrypted(row.url)]
        for row in encrypted:
            try:
                url = secrets.reencrypt_url(row.url, keys)
            except HeedfulError as error:
                message = f"connector {row.name!r}: {error.message}"
                raise type(error)(message, code=error.code, field=error.field, remedy=error.remedy) from error
            records.change_connector(connection, row.id, url=url)
    return len(encrypted)
