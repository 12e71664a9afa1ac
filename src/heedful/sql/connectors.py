"""`.connectors`: the databases that questions are asked of."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.errors import Conflict, HeedfulError, Invalid, Unavailable, quoted
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import Connector, Metadata
from heedful.protocols.sql import ConnectorList, ConnectorsProtocol
from heedful.sql import connector_access, secrets
from heedful.sql.databases import Schema, fingerprint
from heedful.sql.space import ExecutionSpace
from heedful.storage import Database, audit
from heedful.storage.executions import connectors, runs
from heedful.storage.rows import AnyRow

REMOVAL_BATCH_SIZE = 20
"""Executions that one transaction removes: each may have a result of many megabytes."""


class Connectors(ConnectorsProtocol):
    """The connectors of one project, by id or by name."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def create(
        self,
        name: str,
        url: str,
        *,
        role: str | None = None,
        privileged: bool = False,
        sensitive_columns: Sequence[str] = (),
    ) -> Connector:
        values.name("name", name)
        if not isinstance(url, str) or not url.strip():
            raise Invalid(f"url must be a SQLAlchemy URL, got {quoted(url)}", field="url", value=url)
        full_url = connector_access.with_absolute_path(url)
        options = self._options(full_url, None if role is None else values.name("role", role), privileged)
        options |= _sensitive(sensitive_columns)
        connector_access.check(full_url, options, self._space.permissions)
        stored = secrets.encode_url(full_url, secrets.keys_from())
        schema = self._read_schema(stored, options)
        connector_access.check_sensitive(sensitive_columns, schema)
        connector_id = new_id()
        with self._space.workspace.write() as connection:
            project = self._space.own_project(connection)
            if connectors.get(connection, project, name) is not None:
                raise Conflict(
                    f"project {self._space.workspace.project!r} already has a connector {name!r}",
                    field="name",
                    value=name,
                    remedy="Choose another name, or delete it first",
                )
            now = self._space.now()
            connectors.add(connection, project, connector_id, name, stored, options, now)
            self._keep(connection, connector_id, schema)
            audit.note_action(connection, "connectors.create", now, project, connector_id)
            return _to_connector(self._space.connector(connection, connector_id))

    def get(self, connector_id: str) -> Connector:
        with self._space.workspace.read() as connection:
            return _to_connector(self._row(connection, connector_id))

    def list(self) -> ConnectorList:
        with self._space.workspace.read() as connection:
            return [
                _to_connector(row) for row in connectors.list_connectors(connection, self._space.project(connection))
            ]

    def refresh(self, connector_id: str, *, sensitive_columns: Sequence[str] | None = None) -> Connector:
        with self._space.workspace.read() as connection:
            row = self._row(connection, connector_id)
        options = row.options if sensitive_columns is None else row.options | _sensitive(sensitive_columns)
        schema = self._space.queries.read_schema(self._space.target(row))
        connector_access.check_sensitive(sensitive_columns or (), schema)
        with self._space.workspace.write() as connection:
            connectors.change(connection, row.id, options=options)
            self._keep(connection, row.id, schema)
            changed = self._row(connection, row.id)
        self._space.proofs.forget(row.id)
        return _to_connector(changed)

    def confirm(self, connector_id: str, *, privileged: bool = False) -> Connector:
        with self._space.workspace.read() as connection:
            row = self._row(connection, connector_id)
        if row.enabled:
            return _to_connector(row)
        options = self._options(secrets.decrypt_url(row.url, secrets.keys_from()), row.options.get("role"), privileged)
        options |= _sensitive(row.options.get(connector_access.SENSITIVE, ()))
        schema = self._read_schema(row.url, options)
        with self._space.workspace.write() as connection:
            connectors.change(connection, row.id, enabled=1, options=options)
            audit.note_action(connection, "connectors.confirm", self._space.now(), row.project_id, row.id)
            self._keep(connection, row.id, schema)
            return _to_connector(self._row(connection, row.id))

    def schema(self, connector_id: str) -> Metadata:
        with self._space.workspace.read() as connection:
            schema: Metadata = self._row(connection, connector_id).schema
        return schema

    def delete(self, connector_id: str) -> bool:
        removed = REMOVAL_BATCH_SIZE
        while removed == REMOVAL_BATCH_SIZE:
            with self._space.workspace.write() as connection:
                row = self._row(connection, connector_id)
                removed = runs.remove_newest(connection, row.project_id, row.id, REMOVAL_BATCH_SIZE)
                if removed < REMOVAL_BATCH_SIZE:
                    connectors.remove(connection, row.id)
                    audit.note_action(connection, "connectors.delete", self._space.now(), row.project_id, row.id)
        return True

    def _row(self, connection: Connection, connector_id: str) -> AnyRow:
        return self._space.connector(connection, values.identifier("connector_id", connector_id))

    def _options(self, url: str, role: str | None, privileged: bool) -> Metadata:
        options: Metadata = {} if role is None else {"role": role}
        options["dialect"] = secrets.parse_url(url).get_backend_name()
        if values.flag("privileged", privileged):
            self._space.permissions.check_operator("privileged")
            options[connector_access.PRIVILEGED] = True
        return options if self._space.permissions.everywhere else options | {connector_access.RESTRICTED: True}

    def _read_schema(self, stored: str, options: Metadata) -> Schema:
        space = self._space
        target = connector_access.target_at(stored, options, space.permissions, space.workspace.database.url)
        return space.queries.read_schema(target)

    def _keep(self, connection: Connection, connector_id: str, schema: Schema) -> None:
        connectors.change(
            connection,
            connector_id,
            schema=connector_access.stored_schema(schema),
            fingerprint=fingerprint(schema),
            schema_at=self._space.now(),
        )


def _sensitive(columns: Sequence[str]) -> Metadata:
    if isinstance(columns, str):
        raise Invalid(
            f"sensitive_columns must be a list, got {quoted(columns)}", field="sensitive_columns", value=columns
        )
    return {connector_access.SENSITIVE: [values.name("sensitive_columns", column) for column in columns]}


def _to_connector(row: AnyRow) -> Connector:
    return Connector(
        connector_id=row.id,
        name=row.name,
        url=secrets.masked_url(row.url, secrets.keys_from()),
        dialect=connector_access.dialect_of(row),
        enabled=bool(row.enabled),
        privileged=connector_access.is_privileged(row.options),
        sensitive_columns=row.options.get(connector_access.SENSITIVE, []),
        tables=None if row.schema is None else len(row.schema["tables"]),
        fingerprint=row.fingerprint,
        schema_at=None if row.schema_at is None else from_stored(row.schema_at),
        created_at=from_stored(row.created_at),
    )


def reencrypt(database: Database) -> int:
    """Re-encrypts encrypted URLs with the first key of HEEDFUL_SECRET_KEY, all or none; returns how many."""
    keys = secrets.keys_from()
    if not keys:
        raise Unavailable(
            "there is no key to encrypt connectors' URLs with",
            code="secret_key_missing",
            remedy=f"Set {secrets.KEY_VARIABLE} to the new key and the old ones, separated by commas",
        )
    with database.write() as connection:
        encrypted = [row for row in connectors.every(connection) if secrets.is_encrypted(row.url)]
        for row in encrypted:
            try:
                url = secrets.reencrypt_url(row.url, keys)
            except HeedfulError as error:
                raise type(error)(
                    f"connector {row.name!r}: {error.message}", code=error.code, field=error.field, remedy=error.remedy
                ) from error
            connectors.change(connection, row.id, url=url)
    return len(encrypted)
