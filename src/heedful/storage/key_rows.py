"""Keys in the store, the secret that tokens are signed with, and logins."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update

from heedful.storage.rows import AnyRow, lock_exclusive
from heedful.storage.schema import keys, logins, projects, signing

_TOKENS, _FORMER = "tokens", "former"
SECRET_BYTES = 32
_ROWS = select(keys, projects.c.name.label("project")).select_from(keys.outerjoin(projects))


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
    row = {"id": key_id, "project_id": project, "name": name, "digest": digest, "scopes": list(scopes)}
    connection.execute(insert(keys).values(**row, rate_limit=rate_limit, created_at=at))


def get(connection: Connection, key_id: str) -> AnyRow | None:
    """A key of any project, with the project's name."""
    return connection.execute(_ROWS.where(keys.c.id == key_id)).first()


def list_keys(connection: Connection, project: int | None) -> list[AnyRow]:
    """The keys of a project, oldest first; those that open all projects, if none is named."""
    of_project = keys.c.project_id.is_(None) if project is None else keys.c.project_id == project
    return list(connection.execute(_ROWS.where(of_project).order_by(keys.c.seq)))


def revoke(connection: Connection, key_id: str, at: int) -> None:
    connection.execute(update(keys).where(keys.c.id == key_id, keys.c.revoked_at.is_(None)).values(revoked_at=at))


def used(connection: Connection, key_id: str, at: int) -> None:
    """Notes when a key was last used."""
    connection.execute(update(keys).where(keys.c.id == key_id).values(last_used_at=at))


def signing_secrets(connection: Connection, now: int) -> list[bytes]:
    """The valid signing secrets: the current one, then the former one while it is valid."""
    rows = connection.execute(select(signing.c.name, signing.c.secret, signing.c.until))
    secrets = {row.name: row.secret for row in rows if row.until is None or row.until > now}
    return [secrets[name] for name in (_TOKENS, _FORMER) if name in secrets]


def ensure_signing_secret(connection: Connection, now: int) -> bytes:
    """The current signing secret, created if there is none."""
    secrets = signing_secrets(connection, now)
    if not secrets:
        lock_exclusive(connection, "signing")
        secrets = signing_secrets(connection, now)
    if not secrets:
        secrets = [os.urandom(SECRET_BYTES)]
        connection.execute(insert(signing).values(name=_TOKENS, secret=secrets[0]))
    return secrets[0]


def rotate_signing_secret(connection: Connection, now: int, until: int) -> None:
    """Creates a new secret; the current one stays valid until `until`, the former one is dropped."""
    lock_exclusive(connection, "signing")
    former = ensure_signing_secret(connection, now)
    connection.execute(delete(signing).where(signing.c.name == _FORMER))
    connection.execute(update(signing).where(signing.c.name == _TOKENS).values(secret=os.urandom(SECRET_BYTES)))
    if until > now:
        connection.execute(insert(signing).values(name=_FORMER, secret=former, until=until))


def add_login(connection: Connection, digest: bytes, key_id: str, now: int, expires_at: int) -> None:
    """Stores a login, and removes expired ones."""
    connection.execute(delete(logins).where(logins.c.expires_at <= now))
    connection.execute(insert(logins).values(digest=digest, key_id=key_id, expires_at=expires_at))


def has_login(connection: Connection, digest: bytes) -> bool:
    """Whether a login exists and has not ended."""
    return connection.execute(select(logins.c.key_id).where(logins.c.digest == digest)).first() is not None


def end_login(connection: Connection, digest: bytes) -> None:
    connection.execute(delete(logins).where(logins.c.digest == digest))
