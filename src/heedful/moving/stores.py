"""The stores that are moved: opened only if they are there, and told apart."""

from __future__ import annotations

from pathlib import Path

from heedful import settings
from heedful.errors import Invalid
from heedful.storage import Database

SQLITE = "sqlite:///"


def existing(url_or_path: str | Path | None) -> Database:
    """A store that is there; the one of the settings if none is named."""
    return Database(_lasting("store", settings.load().store if url_or_path is None else url_or_path), create=False)


def two(source: str | Path, target: str | Path) -> tuple[Database, Database]:
    """The store to copy from, which must be there, and the one to copy to."""
    first, second = _lasting("source", source), _lasting("target", target)
    if identity(first) == identity(second):
        raise Invalid(
            f"source and target are the same store, {target}",
            field="target",
            value=str(target),
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
    given = str(url_or_path)
    if "://" in given and not given.startswith(SQLITE):
        return given
    return str(Path(given.removeprefix(SQLITE)).expanduser().resolve())


def _lasting(field: str, url_or_path: str | Path) -> str | Path:
    if str(url_or_path) in (":memory:", "sqlite://", f"{SQLITE}:memory:"):
        raise Invalid(
            f"{field} is a store in memory, which nobody else can see",
            field=field,
            value=str(url_or_path),
            remedy="Name a file, or postgresql://…",
        )
    return url_or_path
