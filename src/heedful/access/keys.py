"""`.keys`: who may call a server about this project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from heedful.access import secrets, tokens
from heedful.clock import from_stored
from heedful.errors import Invalid, NotFound, quoted
from heedful.ids import new_id
from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.model import SCOPES, VISITOR, FeedbackToken, Key, NewKey, Scope, SigningRotation, Target, limits
from heedful.protocols.access import DEFAULT_SCOPES, KeyList, KeysProtocol
from heedful.ranking.signals import ANYONE, kind_of
from heedful.storage import audit, keys, scopes
from heedful.storage.rows import AnyRow

SECOND = 1_000_000

_TARGETS = TypeAdapter(dict[str, list[Target]])


class Keys(KeysProtocol):
    """The keys of one project. A key's secret is shown once; the store keeps only its hash."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def create(self, name: str, *, scopes: Sequence[Scope] = DEFAULT_SCOPES, rate_limit: int | None = None) -> NewKey:
        return create_key(self._workspace, self._workspace.project, name, scopes, rate_limit)

    def list(self) -> KeyList:
        with self._workspace.read() as connection:
            project = scopes.project_id(connection, self._workspace.project)
            return [] if project is None else [to_key(row) for row in keys.list_keys(connection, project)]

    def revoke(self, key_id: str) -> Key:
        checks.identifier("key_id", key_id)
        with self._workspace.write() as connection:
            row = keys.get(connection, key_id)
            if row is None or row.project != self._workspace.project:
                raise NotFound(
                    f"no key {key_id!r} in project {self._workspace.project!r}", field="key_id", value=key_id
                )
            if row.revoked_at is None:
                keys.revoke(connection, key_id, self._workspace.now())
                audit.note_action(connection, "keys.revoke", self._workspace.now(), row.project_id, key_id)
            row = keys.get(connection, key_id)
            assert row is not None
            return to_key(row)

    def create_token(
        self,
        targets: Target | Mapping[str, Any] | Sequence[Target | Mapping[str, Any]],
        *,
        author: str | None = None,
        subject: str | None = None,
        expires_in: int = 600,
    ) -> FeedbackToken:
        allowed = _targets([targets] if isinstance(targets, Target | Mapping) else targets)
        if isinstance(expires_in, bool) or not isinstance(expires_in, int) or not 1 <= expires_in <= limits.MAX_SECONDS:
            raise Invalid(
                f"expires_in must be whole seconds from 1 to {limits.MAX_SECONDS}, got {quoted(expires_in)}",
                field="expires_in",
                value=expires_in,
            )
        if author is not None and subject is not None:
            raise Invalid(
                "author and subject can't be combined",
                field="subject",
                value=subject,
                remedy="Pass author for somebody you can name, or subject for a visitor",
            )
        identity = checks.author(author) or _visitor(self._workspace.project, subject)
        now = self._workspace.now()
        # In sight of all projects: the secret is none of a project's own.
        with self._workspace.database.write() as connection:
            secret = keys.ensure_signing_secret(connection, now)
        until = now + expires_in * SECOND
        plain = tuple(tokens.target(**each.plain()) for each in allowed)
        claims = tokens.Claims(self._workspace.project, identity, plain, until)
        return FeedbackToken(
            token=tokens.sign(claims, secret),
            author=identity,
            author_kind=kind_of(identity),
            targets=allowed,
            expires_at=from_stored(until),
        )

    def rotate_signing(self, *, grace: int = 0) -> SigningRotation:
        if isinstance(grace, bool) or not isinstance(grace, int) or not 0 <= grace <= limits.MAX_GRACE:
            raise Invalid(
                f"grace must be whole seconds from 0 to {limits.MAX_GRACE}, got {quoted(grace)}",
                field="grace",
                value=grace,
            )
        now = self._workspace.now()
        until = now + grace * SECOND
        with self._workspace.database.write() as connection:
            keys.rotate_signing_secret(connection, now, until)
            audit.note_action(connection, "keys.rotate_signing", now, None, None)
        return SigningRotation(rotated_at=from_stored(now), former_good_until=from_stored(until))


def create_key(
    workspace: Workspace, project: str | None, name: str, key_scopes: Sequence[Scope], rate_limit: int | None
) -> NewKey:
    """A new key of a project, or of all."""
    checks.name("name", name)
    checked = _scopes(key_scopes)
    if rate_limit is not None and (
        isinstance(rate_limit, bool) or not isinstance(rate_limit, int) or not 1 <= rate_limit <= limits.MAX_RATE
    ):
        raise Invalid(
            f"rate_limit must be a whole number from 1 to {limits.MAX_RATE}, got {quoted(rate_limit)}",
            field="rate_limit",
            value=rate_limit,
        )
    key_id = new_id()
    api_key = secrets.new_key(key_id)
    with workspace.database.write(project) as connection:
        now = workspace.now()
        number = None if project is None else scopes.ensure_project(connection, project, now)
        keys.add(connection, key_id, number, name, secrets.digest(api_key), checked, rate_limit, now)
        audit.note_action(connection, "keys.create", now, number, key_id)
        row = keys.get(connection, key_id)
    assert row is not None
    return NewKey(api_key=api_key, **dict(to_key(row)))


def to_key(row: AnyRow) -> Key:
    """A key as callers see it."""
    return Key(
        key_id=row.id,
        name=row.name,
        project=row.project,
        scopes=row.scopes,
        rate_limit=row.rate_limit,
        created_at=from_stored(row.created_at),
        last_used_at=None if row.last_used_at is None else from_stored(row.last_used_at),
        revoked_at=None if row.revoked_at is None else from_stored(row.revoked_at),
    )


def _visitor(project: str, subject: str | None) -> str:
    """The name under which a visitor speaks."""
    if subject is None:
        return ANYONE
    checks.name("subject", subject)
    return VISITOR + hashlib.sha256(f"{project}\0{subject}".encode()).hexdigest()[:12]


def _targets(targets: Any) -> list[Target]:
    if isinstance(targets, str) or not isinstance(targets, Sequence) or not targets:
        raise Invalid(
            f"targets must be a non-empty list, got {quoted(targets)}",
            field="targets",
            value=targets,
            remedy="Name the targets that may be rated",
        )
    checks.batch("targets", targets, limits.MAX_TARGETS)
    try:
        return _TARGETS.validate_python({"targets": list(targets)})["targets"]
    except ValidationError as error:
        raise Invalid.from_validation(error) from None


def _scopes(scopes: Any) -> list[Scope]:
    if isinstance(scopes, str) or not isinstance(scopes, Sequence) or not scopes:
        raise Invalid(
            f"scopes must be a list of scopes, got {quoted(scopes)}",
            field="scopes",
            value=scopes,
            remedy=f"Use some of {', '.join(SCOPES)}",
        )
    unknown = [each for each in scopes if each not in SCOPES]
    if unknown:
        raise Invalid(
            f"scopes has {quoted(unknown[0])}",
            field="scopes",
            value=unknown[0],
            remedy=f"Use some of {', '.join(SCOPES)}",
        )
    return [scope for scope in SCOPES if scope in scopes]
