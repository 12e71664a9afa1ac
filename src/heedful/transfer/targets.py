"""The files that are written: checked before anything is, so that nothing precious is replaced."""

from __future__ import annotations

from pathlib import Path

from heedful.errors import Conflict, Invalid
from heedful.transfer import stores

SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""A store of SQLite is its file and what SQLite puts beside it."""


def check(store: str | Path, target: Path, *, force: bool) -> None:
    """Fails if a file is the store it is made from, is no plain file, or is there and may not be replaced."""
    if _is_part(store, target):
        raise Invalid(
            f"file is the store itself, {target}", field="file", value=str(target), remedy="Name another file"
        )
    if target.exists() and not target.is_file():
        raise Invalid(
            f"{target} is a folder or a device, not a file",
            field="file",
            value=str(target),
            remedy="Name a file",
        )
    if target.exists() and not force:
        raise Conflict(
            f"{target} already exists",
            field="file",
            value=str(target),
            remedy="Name another file, or pass --force to replace it",
        )
    if target.with_name(f"{target.name}-wal").exists():
        raise Conflict(
            f"{target} is a store that is open or was not closed",
            field="file",
            value=str(target),
            remedy="Name another file",
        )


def _is_part(store: str | Path, target: Path) -> bool:
    file = stores.identity(store)
    if "://" in file:
        return False
    parts = [Path(file + suffix) for suffix in SQLITE_SUFFIXES]
    # By the names, too: what is beside a store comes and goes.
    return target.resolve() in parts or (
        target.exists() and any(part.exists() and part.samefile(target) for part in parts)
    )
