"""The stores that are moved: opened only if they exist, and distinguished."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from heedful import settings
from heedful.errors import Invalid
from heedful.storage import Database

SQLITE = "sqlite:///"

_SECRETS = ("password", "sslpassword")
"""Options in the query part of an address that are for the server alone."""


def open_existing(url_or_path: str | Path | None) -> Database:
    """A store that is there; the one of the settings if none is named."""
    return Database(
        _check_persistent("store", settings.load().store if url_or_path is None else url_or_path), create=False
    )


def open_both(source: str | Path, target: str | Path) -> tuple[Database, Database]:
    """The store to copy from, which must be there, and the one to copy to."""
    first, second = _check_persistent("source", source), _check_persistent("target", target)
    if identity(first) == identity(second):
        raise Invalid(
            f"source and target are the same store, {display_name(target)}",
            field="target",
            value=display_name(target),
            remedy="Name another target; nothing was changed",
        )
    opened = Database(first, create=False)
    try:
        return opened, Database(second, unfinished=True)
    except BaseException:
        opened.close()
        raise


def identity(url_or_path: str | Path) -> str:
    """What stays the same however a file is named."""
    url = address(url_or_path)
    if url is None:
        return str(Path(url_or_path).expanduser().resolve())
    if url.get_backend_name() == "sqlite" and url.database is not None:
        return str(Path(url.database).expanduser().resolve())
    return str(url_or_path)


def display_name(url_or_path: str | Path) -> str:
    """A store as messages name it: without secrets."""
    url = address(url_or_path)
    if url is None:
        return str(url_or_path)
    return url.difference_update_query(_SECRETS).render_as_string(hide_password=True)


def without_secrets(url: URL) -> URL:
    """An address that programs can use which ask for the password, or know where it is."""
    # With `set`, None would leave the password as it is.
    return url.difference_update_query(_SECRETS)._replace(password=None)


def address(url_or_path: str | Path) -> URL | None:
    """A store that is named by a URL; None if it is named by a path."""
    scheme, colon, rest = str(url_or_path).partition("://")
    if not colon:
        return None
    try:
        return make_url(f"{scheme.lower()}{colon}{rest}")
    except (ArgumentError, ValueError) as error:
        # What can't be read may hold a password anywhere.
        raise Invalid(
            "store is not a valid URL",
            field="store",
            remedy='Use a path, "sqlite:///file.db" or "postgresql://user@host/database"',
        ) from error


def _check_persistent(field: str, url_or_path: str | Path) -> str | Path:
    if str(url_or_path) in (":memory:", "sqlite://", f"{SQLITE}:memory:"):
        raise Invalid(
            f"{field} is a store in memory, which nobody else can see",
            field=field,
            value=str(url_or_path),
            remedy="Name a file, or postgresql://…",
        )
    return url_or_path
