"""Keys in the store, and the secret that tokens are signed with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, insert, select, update

from heedful.storage.locks import lock
from heedful.storage.rows import AnyRow
from heedful.storage.schema import keys, projects, signing

_TOKENS = "tokens"


def add(
    connection: Connection,
    key_id: str,
    project: int | None,
    name: str,
    digest: bytes,
    scopes: Sequence[str],
    rate_limit: int | None,
    at: int,
) -> None:
    connection.execute(
        insert(keys).values(
            id=key_id,
            project_id=project,
            name=name,
            digest=digest,
            scopes=list(scopes),
            rate_limit=rate_limit,
            created_at=at,
        )
    )


def get(connection: Connection, key_id: str) -> AnyRow | None:
    """A key of any project, with the project's name."""
    return connection.execute(_rows().where(keys.c.id == key_id)).first()


def listed(connection: Connection, project: int | None) -> list[AnyRow]:
    """The keys of a project, oldest first; those that open all projects, if none is named."""
    return list(
        connection.execute(
            _rows()
            .where(keys.c.project_id.is_(project) if project is None else keys.c.project_id == project)
            .order_by(keys.c.seq)
        )
    )


def revoke(connection: Connection, key_id: str, at: int) -> None:
    connection.execute(update(keys).where(keys.c.id == key_id, keys.c.revoked_at.is_(None)).values(revoked_at=at))


def used(connection: Connection, key_id: str, at: int) -> None:
    """Notes when a key was last used."""
    connection.execute(update(keys).where(keys.c.id == key_id).values(last_used_at=at))


def signing_secret(connection: Connection) -> bytes | None:
    """What tokens are signed with; None before the first one."""
    return connection.execute(select(signing.c.secret).where(signing.c.name == _TOKENS)).scalar()


def ensure_signing_secret(connection: Connection) -> bytes:
    """What tokens are signed with, made if there is none."""
    found = signing_secret(connection)
    if found is None:
        lock(connection, "signing")
        found = signing_secret(connection)
    if found is None:
        found = os.urandom(32)
        connection.execute(insert(signing).values(name=_TOKENS, secret=found))
    return found


def _rows() -> Select[Any]:
    return select(keys, projects.c.name.label("project")).select_from(keys.outerjoin(projects))
