"""Indexes that one process keeps for the next, in PostgreSQL; on SQLite, files beside the store do that."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, Integer, LargeBinary, Table, delete, select
from sqlalchemy.dialects.postgresql import insert

from heedful.storage import scopes
from heedful.storage.dialects import dialect_of
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
    # In binary, because text takes twice as long. One statement sees all parts of one index.
    driver = connection.connection.driver_connection
    assert driver is not None
    with driver.cursor(binary=True) as cursor:
        cursor.execute(
            "SELECT content FROM saved_indexes WHERE dataset_id = %s AND model_id = %s ORDER BY part", (dataset, model)
        )
        return b"".join(content for (content,) in cursor) or None


def write(connection: Connection, dataset: int, model: int, change: int, content: bytes, *, replace: bool) -> None:
    """Saves an index; one after a later change stays, unless `replace` is set. A dataset that is gone has none."""
    if scopes.project_of(connection, dataset) is None:
        return
    of_dataset = saved_indexes.c.dataset_id == dataset
    # The first part is locked until the transaction ends, so that two processes don't mix theirs.
    last = connection.execute(
        select(saved_indexes.c.change)
        .where(of_dataset, saved_indexes.c.model_id == model, saved_indexes.c.part == 0)
        .with_for_update()
    ).scalar()
    if last is not None and last > change and not replace:
        return
    starts = range(0, len(content), PART_BYTES)
    for part, start in enumerate(starts):
        row = {"change": change, "content": content[start : start + PART_BYTES]}
        connection.execute(
            insert(saved_indexes)
            .values(dataset_id=dataset, model_id=model, part=part, **row)
            .on_conflict_do_update(index_elements=["dataset_id", "model_id", "part"], set_=row)
        )
    other = (saved_indexes.c.model_id != model) | (saved_indexes.c.part >= len(starts))
    connection.execute(delete(saved_indexes).where(of_dataset, other))


def remove(connection: Connection, dataset: int) -> None:
    """Deletes the saved indexes of a dataset, where tables hold them."""
    if dialect_of(connection).searches:
        connection.execute(delete(saved_indexes).where(saved_indexes.c.dataset_id == dataset))
