"""Indexes that one process keeps for the next, in PostgreSQL; on SQLite, files beside the store do that."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, Integer, LargeBinary, Table, delete, func, insert, select

from heedful.storage import scopes
from heedful.storage.dialects import dialect_of
from heedful.storage.locks import lock_exclusive
from heedful.storage.rows import binary_cursor
from heedful.storage.words import inside

PART_BYTES = 4 * 2**20
"""An index is stored in parts of so many bytes."""

saved_indexes = Table(
    "saved_indexes",
    inside,
    Column("dataset_id", BigInteger, primary_key=True),
    Column("model_id", BigInteger, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("change", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
"""An index as it was after a change. Deleting a dataset deletes it."""


def read(connection: Connection, dataset: int, model: int) -> bytes | None:
    """The index of a dataset as it was last saved."""
    with binary_cursor(connection) as cursor:
        cursor.execute(
            "SELECT content FROM saved_indexes WHERE dataset_id = %s AND model_id = %s ORDER BY part", (dataset, model)
        )
        return b"".join(content for (content,) in cursor) or None


def write(connection: Connection, dataset: int, model: int, change: int, content: bytes, *, replace: bool) -> None:
    """Saves an index; one after a later change stays, unless `replace` is set. A dataset that is gone has none."""
    # One process at a time, or two could mix their parts.
    lock_exclusive(connection, f"saved index {dataset}")
    if scopes.project_of(connection, dataset) is None:
        return
    last = connection.execute(
        select(func.max(saved_indexes.c.change)).where(
            saved_indexes.c.dataset_id == dataset, saved_indexes.c.model_id == model
        )
    ).scalar()
    if last is not None and last > change and not replace:
        return
    remove(connection, dataset)
    for part, start in enumerate(range(0, len(content), PART_BYTES)):
        row = {"dataset_id": dataset, "model_id": model, "part": part, "change": change}
        connection.execute(insert(saved_indexes).values(**row, content=content[start : start + PART_BYTES]))


def remove(connection: Connection, dataset: int) -> None:
    """Deletes the saved indexes of a dataset, where tables hold them."""
    if dialect_of(connection).searches:
        connection.execute(delete(saved_indexes).where(saved_indexes.c.dataset_id == dataset))
