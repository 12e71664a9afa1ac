"""The stores that are moved: opened only if they exist, and distinguished; and the files that are written: checked
before anything is, so that nothing precious is replaced."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from heedful import settings
from heedful.errors import Conflict, Invalid
from heedful.storage import Database, open_store

SECRETS = ("password", "sslpassword")
"""Options in the query part of an address that are for the server alone."""


def open_existing(url_or_path: str | Path | None) -> Database:
    """An existing store; the one of the settings if none is named."""
    named = settings.load().store if url_or_path is None else url_or_path
    return open_store(_check_persistent("store", named), create=False)


def open_both(source: str | Path, target: str | Path) -> tuple[Database, Database]:
    """The store to copy from, which must exist, and the one to copy to."""
    first, second = _check_persistent("source", source), _check_persistent("target", target)
    if identity(first) == identity(second):
        message = f"source and target are the same store, {display_name(target)}"
        remedy = "Name another target; nothing was changed"
        raise Invalid(message, field="target", value=display_name(target), remedy=remedy)
    opened = open_store(first, create=False)
    try:
        return opened, open_store(second, unfinished=True)
    except BaseException:
        opened.close()
        raise


def identity(url_or_path: str | Path) -> str:
    """A name that stays the same however a file is named."""
    url = address(url_or_path)
    if url is not None and (url.get_backend_name() != "sqlite" or url.database is None):
        return str(url_or_path)
    return str(Path(url_or_path if url is None else str(url.database)).expanduser().resolve())


def display_name(url_or_path: str | Path) -> str:
    """A store as messages name it: without secrets."""
    url = address(url_or_path)
    if url is None:
        return str(url_or_path)
    return url.difference_update_query(SECRETS).render_as_string(hide_password=True)


def address(url_or_path: str | Path) -> URL | None:
    """A store that is named by a URL; None if it is named by a path."""
    scheme, colon, rest = str(url_or_path).partition("://")
    if not colon:
        return None
    try:
        return make_url(f"{scheme.lower()}{colon}{rest}")
    except (ArgumentError, ValueError) as error:
        # An address that can't be read may hold a password anywhere.
        remedy = 'Use a path, "sqlite:///file.db" or "postgresql://user@host/database"'
        raise Invalid("store is not a valid URL", field="store", remedy=remedy) from error


def _check_persistent(field: str, url_or_path: str | Path) -> str | Path:
    if str(url_or_path) in (":memory:", "sqlite://", "sqlite:///:memory:"):
        message = f"{field} is a store in memory, which nobody else can see"
        raise Invalid(message, field=field, value=str(url_or_path), remedy="Name a file, or postgresql://…")
    return url_or_path


SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""A store of SQLite is its file and what SQLite puts beside it."""


def check_target(store: str | Path, target: Path, *, force: bool) -> None:
    """Fails if a file is the store it is made from, is no plain file, or exists and may not be replaced."""
    name = str(target)
    if _is_part(store, target):
        raise Invalid(f"file is the store itself, {name}", field="file", value=name, remedy="Name another file")
    if target.exists() and not target.is_file():
        problem = f"{name} is a folder or a device, not a file"
        raise Invalid(problem, field="file", value=name, remedy="Name a file")
    if target.exists() and not force:
        remedy = "Name another file, or pass --force to replace it"
        raise Conflict(f"{name} already exists", field="file", value=name, remedy=remedy)
    if target.with_name(f"{target.name}-wal").exists():
        problem = f"{name} is a store that is open or was not closed"
        raise Conflict(problem, field="file", value=name, remedy="Name another file")


def _is_part(store: str | Path, target: Path) -> bool:
    file = identity(store)
    if "://" in file:
        return False
    parts = [Path(file + suffix) for suffix in SQLITE_SUFFIXES]
    # By the names, too: the files beside a store come and go.
    return target.resolve() in parts or any(
        target.exists() and part.exists() and part.samefile(target) for part in parts
    )
