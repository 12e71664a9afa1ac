"""Logins: a key is presented once, and a signed cookie replaces it until it expires or the key is revoked."""

from __future__ import annotations

import secrets as random
import time
from dataclasses import dataclass
from typing import Any

import orjson

from heedful import request_context
from heedful.access import secrets, tokens
from heedful.errors import Forbidden
from heedful.interfaces.http.callers import KEY_CACHE_SECONDS, Caller, Callers, caller_of
from heedful.model import SCOPES
from heedful.request_context import CallerIdentity
from heedful.storage import audit, keys
from heedful.store import Store

SECOND = 1_000_000
LOGIN, FORM = "dashboard-login", "dashboard-form"
ADMIN = "admin"

EXPIRED = "Your login has expired."
LOGGED_OUT = "You have logged out."
REVOKED = "The key that you logged in with is not valid any more: it was revoked or replaced."


@dataclass(frozen=True, slots=True)
class Login:
    """What the cookie says."""

    key_id: str
    name: str
    """What the person typed as their name; may be empty."""
    expires_at: int
    number: str
    """Random, and another for each login."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody whose login is good."""

    caller: Caller
    login: Login
    key_name: str

    @property
    def author(self) -> str:
        """Under whose name things are done."""
        return self.login.name or self.key_name


class Logins:
    """Makes logins and forms of a store, and knows its own again."""

    def __init__(self, store: Store, admin_key: str | None, hours: float) -> None:
        self._store = store
        self._callers = Callers(store, admin_key)
        with store.database.write() as connection:
            keys.ensure_signing_secret(connection, store.now())
        self._secrets: tuple[list[bytes], float] = ([], -KEY_CACHE_SECONDS)
        # Another admin key makes the logins of the former one useless.
        self._admin = None if admin_key is None else f"{ADMIN}:{secrets.digest(admin_key).hex()[:16]}"
        self.seconds = int(hours * 3600)

    def close(self) -> None:
        """Writes what is left to note of keys."""
        self._callers.close()

    def enter(self, api_key: str, name: str, address: str | None) -> str:
        """The cookie for a key that is good; `Forbidden` otherwise, in the same words for every reason."""
        try:
            if api_key.startswith(tokens.PREFIX):
                raise Forbidden("a token is not a key")
            caller = self._callers.find(api_key)
        except Forbidden:
            raise Forbidden(
                "This key is not valid", code="key_invalid", remedy="Make one with: heedful keys add NAME"
            ) from None
        caller.check("read")
        key_id = self._admin if caller.key_id == ADMIN and self._admin is not None else caller.key_id
        now = self._store.now()
        login = Login(key_id, name, now + self.seconds * SECOND, random.token_urlsafe(12))
        with (
            request_context.acting_as(CallerIdentity(caller.key_id, address)),
            self._store.database.write() as connection,
        ):
            keys.add_login(connection, _digest(login), login.key_id, now, login.expires_at)
            audit.note_action(connection, "dashboard.login", now, None, None)
        return self.sealed(LOGIN, [login.key_id, login.name, login.expires_at, login.number])

    def leave(self, login: Login, address: str | None) -> None:
        """Ends a login: its cookie is good for nothing from now on, in every process."""
        key_id = login.key_id.partition(":")[0]
        with request_context.acting_as(CallerIdentity(key_id, address)), self._store.database.write() as connection:
            keys.end_login(connection, _digest(login))
            audit.note_action(connection, "dashboard.logout", self._store.now(), None, None)

    def read(self, cookie: str | None) -> Login | None:
        """What a cookie says, expired or not, if it was made here."""
        values = None if cookie is None else self.opened(LOGIN, cookie)
        return None if values is None else Login(*values)

    def visitor(self, cookie: str | None) -> Visitor | None:
        """The login of a cookie; None if it has expired, its login was ended or its key was revoked."""
        login = self.read(cookie)
        if login is None or self._store.now() >= login.expires_at:
            return None
        with self._store.database.read() as connection:
            if not keys.has_login(connection, _digest(login)):
                return None
            row = keys.get(connection, login.key_id)
        if login.key_id.startswith(f"{ADMIN}:"):
            good = login.key_id == self._admin
            return Visitor(Caller(ADMIN, None, frozenset(SCOPES)), login, ADMIN) if good else None
        if row is None or row.revoked_at is not None:
            return None
        return Visitor(caller_of(row), login, row.name)

    def ended(self, cookie: str | None) -> str | None:
        """Why a login that was made here is not good any more."""
        login = self.read(cookie)
        if login is None or self.visitor(cookie) is not None:
            return None
        if self._store.now() >= login.expires_at:
            return EXPIRED
        with self._store.database.read() as connection:
            return REVOKED if keys.has_login(connection, _digest(login)) else LOGGED_OUT

    def form(self, login: Login) -> str:
        """A token for one form of one login."""
        return self.sealed(FORM, [login.key_id, login.number, random.token_urlsafe(9)])

    def form_of(self, token: str) -> tuple[str, str, str] | None:
        """The key, the login and the number of a form whose token was made here."""
        values = self.opened(FORM, token)
        return None if values is None else (values[0], values[1], values[2])

    def sealed(self, purpose: str, value: object) -> str:
        """A value that comes back as it was."""
        return secrets.sign(orjson.dumps(value), self._good_secrets()[0], purpose)

    def opened(self, purpose: str, text: str) -> list[Any] | None:
        """The value of a text that was sealed here for this purpose."""
        plain = secrets.verify(text, self._good_secrets(), purpose)
        if plain is None:
            return None
        values: list[Any] = orjson.loads(plain)
        return values

    def _good_secrets(self) -> list[bytes]:
        """What may have sealed something, looked up again after a second: another process may rotate it."""
        signing_secrets, at = self._secrets
        if not signing_secrets or time.monotonic() - at >= KEY_CACHE_SECONDS:
            with self._store.database.read() as connection:
                signing_secrets = keys.signing_secrets(connection, self._store.now())
            self._secrets = (signing_secrets, time.monotonic())
        return signing_secrets


def _digest(login: Login) -> bytes:
    return secrets.digest(login.number)
