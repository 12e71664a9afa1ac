"""`.keys`: who may call a server about this project. Keys and tokens as texts: how a key looks and is compared; tokens
for browsers, which say what they may rate, under whose name and until when, signed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from pydantic import TypeAdapter, ValidationError

from heedful.api import checks
from heedful.clock import from_stored, new_id
from heedful.errors import Forbidden, Invalid, NotFound, quoted
from heedful.ledger.votes import ANYONE, kind_of
from heedful.model import SCOPES, VISITOR, FeedbackToken, Key, NewKey, Scope, SigningRotation, Target, limits
from heedful.storage import audit
from heedful.storage import key_rows as keys
from heedful.storage.rows import AnyRow, to_model
from heedful.storage.scopes import ensure_project, project_id
from heedful.workspace import Workspace

PREFIX = "hf_"


def new_secret(key_id: str) -> str:
    """A fresh key: its id, and a secret of 256 bits."""
    return f"{PREFIX}{UUID(key_id).hex}_{secrets.token_urlsafe(32)}"


def id_of(api_key: str) -> str | None:
    """The id that a key names; None if it doesn't look like a key."""
    number, _, secret = api_key.removeprefix(PREFIX).partition("_")
    if not api_key.startswith(PREFIX) or not secret or len(number) != 32:
        return None
    try:
        return str(UUID(number))
    except ValueError:
        return None


def digest(api_key: str) -> bytes:
    """The part of a key that is kept. It has 256 random bits, so that a plain sum can't be guessed back."""
    return hashlib.sha256(api_key.encode(errors="replace")).digest()


def matches(api_key: str, stored: bytes) -> bool:
    """Whether this is the key, compared in constant time."""
    return hmac.compare_digest(digest(api_key), stored)


def sign(body: bytes, secret: bytes, purpose: str) -> str:
    """The body with its seal, in letters that addresses and cookies can hold."""
    return f"{_encode(body)}.{_encode(_signature(body, secret, purpose))}"


def verify(text: str, secrets: Sequence[bytes], purpose: str) -> bytes | None:
    """The body, if it was sealed with one of these secrets for this purpose; None otherwise."""
    body, _, seal = text.partition(".")
    try:
        plain, signature = _decode(body), _decode(seal)
    except (Error, UnicodeEncodeError, ValueError):
        return None
    good = any(hmac.compare_digest(_signature(plain, secret, purpose), signature) for secret in secrets)
    return plain if good else None


def _signature(body: bytes, secret: bytes, purpose: str) -> bytes:
    return hmac.digest(secret, f"{purpose}.".encode() + body, hashlib.sha256)


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if _encode(data) != text:
        raise ValueError("this is not the canonical encoding")
    return data


TOKEN_PREFIX = "hft_"
_PURPOSE = "feedback-token"


@dataclass(frozen=True, slots=True)
class Claims:
    """The content of a token."""

    project: str
    author: str
    targets: tuple[dict[str, str], ...]
    expires_at: int  # In stored time.

    def names(self, target: dict[str, str]) -> bool:
        """Whether it allows feedback about this."""
        return target in self.targets


def sign_claims(claims: Claims, secret: bytes) -> str:
    body = orjson.dumps([claims.project, claims.author, list(claims.targets), claims.expires_at])
    return TOKEN_PREFIX + sign(body, secret, _PURPOSE)


def verify_token(token: str, secrets: Sequence[bytes], now: int) -> Claims:
    """The content of a token, if it was signed here and has not expired."""
    plain = verify(token.removeprefix(TOKEN_PREFIX), secrets, _PURPOSE)
    if plain is None:
        raise Forbidden("the token is not valid", code="token_invalid", remedy="Ask your own server for a new one")
    project, author, targets, expires_at = orjson.loads(plain)
    if now >= expires_at:
        raise Forbidden("the token has expired", code="token_expired", remedy="Ask your own server for a new one")
    return Claims(project, author, tuple(targets), expires_at)


def target_claim(**ids: Any) -> dict[str, str]:
    """A target in the form that tokens hold."""
    return {name: value for name, value in sorted(ids.items()) if value is not None}


SECOND = 1_000_000

_TARGETS = TypeAdapter(dict[str, list[Target]])


def list_keys(workspace: Workspace) -> list[Key]:
    with workspace.read() as connection:
        project = project_id(connection, workspace.project)
        return [] if project is None else [to_key(row) for row in keys.list_keys(connection, project)]


def revoke_key(workspace: Workspace, key_id: str) -> Key:
    checks.identifier("key_id", key_id)
    with workspace.write() as connection:
        row = keys.get(connection, key_id)
        if row is None or row.project != workspace.project:
            raise NotFound.in_project(workspace.project, "key", key_id, "key_id")
        if row.revoked_at is None:
            keys.revoke(connection, key_id, workspace.now())
            audit.note_action(connection, "keys.revoke", workspace.now(), row.project_id, key_id)
        row = keys.get(connection, key_id)
        assert row is not None
        return to_key(row)


def create_token(
    workspace: Workspace,
    targets: Target | Mapping[str, Any] | Sequence[Target | Mapping[str, Any]],
    author: str | None,
    subject: str | None,
    expires_in: int,
) -> FeedbackToken:
    allowed = _targets([targets] if isinstance(targets, Target | Mapping) else targets)
    if author is not None and subject is not None:
        remedy = "Pass author for somebody you can name, or subject for a visitor"
        raise Invalid("author and subject can't be combined", field="subject", value=subject, remedy=remedy)
    identity = checks.author("author", author) or ANYONE
    if subject is not None:
        apart = f"{workspace.project}\0{checks.name('subject', subject)}"
        identity = VISITOR + hashlib.sha256(apart.encode()).hexdigest()[:12]
    now = workspace.now()
    # In sight of all projects: the secret is none of a project's own.
    with workspace.database.write() as connection:
        secret = keys.ensure_signing_secret(connection, now)
    until = now + expires_in * SECOND
    plain = tuple(target_claim(**target.plain()) for target in allowed)
    claims = Claims(workspace.project, identity, plain, until)
    return FeedbackToken(
        token=sign_claims(claims, secret),
        author=identity,
        author_kind=kind_of(identity),
        targets=allowed,
        expires_at=from_stored(until),
    )


def rotate_signing(workspace: Workspace, grace: int) -> SigningRotation:
    now = workspace.now()
    until = now + grace * SECOND
    with workspace.database.write() as connection:
        keys.rotate_signing_secret(connection, now, until)
        audit.note_action(connection, "keys.rotate_signing", now, None, None)
    return SigningRotation(rotated_at=from_stored(now), former_good_until=from_stored(until))


def create_key(
    workspace: Workspace, name: str, scopes: Sequence[Scope], rate_limit: int | None, *, of_all_projects: bool = False
) -> NewKey:
    checks.name("name", name)
    checked = _scopes(scopes)
    project = None if of_all_projects else workspace.project
    key_id = new_id()
    api_key = new_secret(key_id)
    with workspace.database.write(project) as connection:
        now = workspace.now()
        number = None if project is None else ensure_project(connection, project, now)
        keys.add(connection, key_id, number, name, digest(api_key), checked, rate_limit, now)
        audit.note_action(connection, "keys.create", now, number, key_id)
        row = keys.get(connection, key_id)
    assert row is not None
    return NewKey(api_key=api_key, **dict(to_key(row)))


def to_key(row: AnyRow) -> Key:
    return to_model(Key, row, key_id=row.id)


def _targets(targets: Any) -> list[Target]:
    if isinstance(targets, str) or not isinstance(targets, Sequence) or not targets:
        raise Invalid.got("targets", "must be a non-empty list", targets, "Name the targets that may be rated")
    checks.batch("targets", targets, limits.MAX_TARGETS)
    try:
        return _TARGETS.validate_python({"targets": list(targets)})["targets"]
    except ValidationError as error:
        raise Invalid.from_validation(error) from None


def _scopes(scopes: Any) -> list[Scope]:
    remedy = f"Use some of {', '.join(SCOPES)}"
    if isinstance(scopes, str) or not isinstance(scopes, Sequence) or not scopes:
        raise Invalid.got("scopes", "must be a list of scopes", scopes, remedy)
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise Invalid(f"scopes has {quoted(unknown[0])}", field="scopes", value=unknown[0], remedy=remedy)
    return [scope for scope in SCOPES if scope in scopes]
