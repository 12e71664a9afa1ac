"""Connecting to MongoDB: URLs, one pool of connections for each server, and errors in our words."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    ExecutionTimeout,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, Unavailable
from heedful.sessions.mongo.collections import Document
from heedful.storage.database import unstorable
from heedful.threads import leave_parent_when_forked


def connect(url: str, **caller_options: Any) -> MongoClient[Document]:
    """A connection pool with our defaults for missing options; the first call connects."""
    try:
        return MongoClient(url, connect=False, **options(url, caller_options))
    except (PyMongoError, ValueError, TypeError) as error:
        # The message may quote the URL, and with it the password.
        raise malformed(f"{type(error).__name__} when reading it or the options") from None


@dataclass(slots=True)
class _Shared:
    client: MongoClient[Document]
    users: int = 0


class Clients:
    """Clients by URL; a client is closed when its last user returns it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[str, _Shared] = {}
        self._inherited: list[_Shared] = []
        self._process = os.getpid()

    def borrow(self, url: str) -> MongoClient[Document]:
        """The client of a URL, to be returned after use."""
        with self._lock:
            shared = self._shared.get(url)
            if shared is None:
                shared = self._shared[url] = _Shared(connect(url))
            shared.users += 1
            return shared.client

    def release(self, url: str) -> None:
        with self._lock:
            shared = self._shared[url]
            shared.users -= 1
            if shared.users:
                return
            del self._shared[url]
        shared.client.close()

    def leave_parent(self) -> None:
        """Starts empty in a forked child; keeps the parent's clients open, since closing would use its connections."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.Lock()
            self._inherited += self._shared.values()
            self._shared = {}


CLIENTS = Clients()
leave_parent_when_forked(CLIENTS)


DEFAULT_DATABASE = "heedful"

DEFAULTS: dict[str, Any] = {
    "serverSelectionTimeoutMS": 5_000,
    "connectTimeoutMS": 5_000,
    "socketTimeoutMS": 30_000,
    "retryWrites": True,
    "retryReads": True,
    "w": "majority",
    "journal": True,
}
"""Defaults for options that are not set; an acknowledged write survives the loss of a server."""

_IMPLIED_BY = {"sockettimeoutms": {"timeoutms"}, "journal": {"w"}}  # Options that exclude the default of another one.


def address(url: str, database: str | None) -> tuple[str, str]:
    """The address of a store in a URL, without secrets, and its database; `database` overrides the one in the path."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("mongodb", "mongodb+srv"):
        raise malformed("it must start with mongodb:// or mongodb+srv://")
    authority, _, path = rest.partition("?")[0].partition("/")
    hosts = authority.rpartition("@")[2]
    # A slash in a password would end up here, and the password in error messages.
    if not hosts or "@" in path:
        raise malformed("it names no host, or has a user name or password with a bare / or @")
    name = database or unquote(path).partition(".")[0] or DEFAULT_DATABASE
    return f"{scheme}://{hosts}/{name}", name


def options(url: str, caller_options: dict[str, Any]) -> dict[str, Any]:
    """The caller's options, and our defaults for missing ones."""
    named_options = {name.lower() for name in caller_options}
    named_options |= {name.lower() for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)}
    open_ = {
        name: value
        for name, value in DEFAULTS.items()
        if name.lower() not in named_options and not _IMPLIED_BY.get(name.lower(), set()) & named_options
    }
    return {**open_, **caller_options}


def malformed(reason: str) -> Invalid:
    """The error for an invalid URL; quotes none of it, since any part may be the password."""
    message = f"the MongoDB URL can't be used: {reason}"
    remedy = "Use mongodb://user:password@host:27017/database, with percent-encoded user and password"
    return Invalid(message, field="url", remedy=remedy)


DUPLICATE_KEY = 11000
_LOGIN = {18, 8000}
_RIGHTS = {13}
_TOO_LARGE = {10334, 17280, 17419, 17420}
_UNSTORABLE = {2, 15, 22, 52, 56, 57}
_SNAPSHOT_GONE = {239, 246}


@contextmanager
def translate_errors(store: object) -> Iterator[None]:
    """Translates errors of pymongo; `store` is the address without secrets."""
    try:
        yield
    except HeedfulError:
        raise
    except (PyMongoError, BSONError, OverflowError) as error:
        raise translate_error(error, store) from error


def translate_error(error: Exception, store: object) -> HeedfulError:
    """The error to raise instead of one from pymongo or bson."""
    code = code_of(error)
    if isinstance(error, DocumentTooLarge) or code in _TOO_LARGE:
        message = "this is too large for a document of MongoDB, which holds up to 16 MB"
        return Invalid(message, code="too_large", remedy="Shorten the text; nothing was stored")
    if isinstance(error, BSONError | OverflowError) or code in _UNSTORABLE:
        return unstorable("MongoDB")
    if is_duplicate(error):
        message = "this was stored already, under the same id or idempotency key"
        return Conflict(message, code="idempotency_key_reused", remedy="Use a new key")
    return _unusable(error, code, store)


def _unusable(error: Exception, code: int | None, store: object) -> HeedfulError:
    if code in _LOGIN:
        return Forbidden(f"{store} refused the login", code="store_login", remedy="Check user, password and authSource")
    if code in _RIGHTS:
        message = f"{store} refused the operation: this user lacks the rights"
        return Forbidden(message, code="store_forbidden", remedy="Grant the role readWrite on the database")
    if isinstance(error, ConfigurationError):
        return Invalid(f"{store} can't be used with these options", field="url", remedy="Check the options of the URL")
    if isinstance(error, ConnectionFailure):
        message = f"{store} can't be reached ({type(error).__name__})"
        remedy = "Check that the server runs and has a primary; a retry with an idempotency key counts once"
        return Unavailable(message, code="store_unreachable", remedy=remedy)
    if isinstance(error, ExecutionTimeout) or is_transient(error):
        return Unavailable(f"{store} is too busy", code="store_busy", remedy="Try again")
    if isinstance(error, InvalidOperation):
        return Unavailable(f"{store} is closed", code="store_closed", remedy="Open it again")
    details = getattr(error, "details", None) or {}
    reason = details.get("codeName") or type(error).__name__
    return Unavailable(f"{store} failed ({reason})", code="store_failed", remedy="See the log of the server")


def is_duplicate(error: Exception) -> bool:
    """Whether a unique key exists already."""
    return isinstance(error, DuplicateKeyError) or code_of(error) == DUPLICATE_KEY


def is_transient(error: Exception) -> bool:
    """Whether a retry may succeed: after a conflict of writers, or a change of the primary."""
    if isinstance(error, ServerSelectionTimeoutError):
        return False
    if isinstance(error, ConnectionFailure):
        return True
    return isinstance(error, PyMongoError) and (
        error.has_error_label("TransientTransactionError") or code_of(error) in _SNAPSHOT_GONE
    )


def code_of(error: Exception) -> int | None:
    """The server's error code; of a bulk write, that of the first failure."""
    if not isinstance(error, OperationFailure):
        return None
    failed = (error.details or {}).get("writeErrors") or [{}]
    code: int | None = failed[0].get("code", error.code)
    return code
