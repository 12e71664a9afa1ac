"""What went wrong at MongoDB, in our words. No message quotes the server: what it says may quote stored texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bson.errors import BSONError
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

DUPLICATE_KEY = 11000
_LOGIN = {18, 8000}
_RIGHTS = {13}
_TOO_LARGE = {10334, 17280, 17419, 17420}
_UNSTORABLE = {2, 15, 22, 52, 56, 57}
_SNAPSHOT_GONE = {239, 246}


@contextmanager
def translated(place: object) -> Iterator[None]:
    """Lets no error of pymongo through; `place` is the store's address without secrets."""
    try:
        yield
    except HeedfulError:
        raise
    except (PyMongoError, BSONError, OverflowError) as error:
        raise in_our_words(error, place) from error


def in_our_words(error: Exception, place: object) -> HeedfulError:
    """The error to raise instead of one from pymongo or bson."""
    code = code_of(error)
    if isinstance(error, DocumentTooLarge) or code in _TOO_LARGE:
        return Invalid(
            "this is too large for a document of MongoDB, which holds up to 16 MB",
            code="too_large",
            remedy="Shorten the text; nothing was stored",
        )
    if isinstance(error, BSONError | OverflowError) or code in _UNSTORABLE:
        return Invalid(
            "this holds a value that MongoDB can't store",
            code="unstorable",
            remedy="Use whole numbers within 64 bits and less than 100 levels; nothing was stored",
        )
    if is_duplicate(error):
        return Conflict(
            "this was stored already, under the same id or idempotency key",
            code="idempotency_key_reused",
            remedy="Use a new key",
        )
    return _unusable(error, code, place)


def _unusable(error: Exception, code: int | None, place: object) -> HeedfulError:
    if code in _LOGIN:
        return Forbidden(f"{place} refused the login", code="store_login", remedy="Check user, password and authSource")
    if code in _RIGHTS:
        return Forbidden(
            f"{place} does not let this user do that",
            code="store_forbidden",
            remedy="Grant the role readWrite on the database",
        )
    if isinstance(error, ConfigurationError):
        return Invalid(f"{place} can't be used with these options", field="url", remedy="Check the options of the URL")
    if isinstance(error, ConnectionFailure):
        return Unavailable(
            f"{place} can't be reached ({type(error).__name__})",
            code="store_unreachable",
            remedy="Check that the server runs and has a primary; a retry with an idempotency key counts once",
        )
    if isinstance(error, ExecutionTimeout) or is_passing(error):
        return Unavailable(f"{place} is too busy", code="store_busy", remedy="Try again")
    if isinstance(error, InvalidOperation):
        return Unavailable(f"{place} is closed", code="store_closed", remedy="Open it again")
    name = getattr(error, "details", None) or {}
    shown = name.get("codeName") or type(error).__name__
    return Unavailable(f"{place} failed ({shown})", code="store_failed", remedy="See the log of the server")


def is_duplicate(error: Exception) -> bool:
    """Whether a unique key was there already."""
    return isinstance(error, DuplicateKeyError) or code_of(error) == DUPLICATE_KEY


def is_passing(error: Exception) -> bool:
    """Whether the same change may well succeed if it is tried again: a conflict of writers, a change of primary."""
    if isinstance(error, ServerSelectionTimeoutError):
        return False
    if isinstance(error, ConnectionFailure):
        return True
    return isinstance(error, PyMongoError) and (
        error.has_error_label("TransientTransactionError") or code_of(error) in _SNAPSHOT_GONE
    )


def code_of(error: Exception) -> int | None:
    """The server's number for the error; of many writes, that of the first that failed."""
    if not isinstance(error, OperationFailure):
        return None
    failed = (error.details or {}).get("writeErrors") or [{}]
    code: int | None = failed[0].get("code", error.code)
    return code
