"""The questions that were asked or signalled, and their vectors once somebody needs them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, and_, bindparam, select, text, update

from heedful.storage.database import Database
from heedful.storage.rows import Direct, Prepared, batches
from heedful.storage.schema import datasets, queries


def digest(text: str) -> bytes:
    """What makes a query the same query: its words, but for the white space."""
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest()


def ensure(
    database: Database,
    connection: Connection,
    dataset: int,
    texts: Sequence[str],
) -> dict[str, int]:
    """The number of each query; new ones are stored, to be embedded when somebody needs that."""
    distinct = {digest(text): text for text in texts}
    numbers = _numbers(connection, dataset, list(distinct))
    new = [key for key in distinct if key not in numbers]
    rows = [{"dataset_id": dataset, "digest": key, "text": distinct[key]} for key in new]
    database.upsert(connection, queries, rows, keys=["dataset_id", "digest"], changed=[])
    numbers |= _numbers(connection, dataset, new)
    return {text: numbers[digest(text)] for text in texts}


_NUMBERS = select(queries.c.digest, queries.c.id).where(
    queries.c.dataset_id == bindparam("of"), queries.c.digest.in_(bindparam("digests", expanding=True))
)


def _numbers(connection: Connection, dataset: int, digests: Sequence[bytes]) -> dict[bytes, int]:
    numbers: dict[bytes, int] = {}
    for run in batches(digests):
        rows = connection.execute(_NUMBERS, {"of": dataset, "digests": list(run)})
        numbers.update({row.digest: row.id for row in rows})
    return numbers


_FIND = Prepared(
    select(datasets.c.id.label("dataset"), queries.c.id.label("query"))
    .select_from(
        datasets.outerjoin(
            queries, and_(queries.c.dataset_id == datasets.c.id, queries.c.digest == bindparam("wanted"))
        )
    )
    .where(datasets.c.id == bindparam("of"))
    # Whoever forgets the dataset waits for us, or we for them.
    .with_for_update(read=True, key_share=True, of=datasets)
)
_ADD = Prepared(
    text(
        "INSERT INTO queries (dataset_id, digest, text, model_id, vector) "
        "VALUES (:dataset_id, :digest, :text, :model_id, :vector) ON CONFLICT DO NOTHING RETURNING id"
    )
)


def ensure_query(direct: Direct, dataset: int, words: str, model: int | None, vector: bytes | None) -> int | None:
    """The number of a query that is asked, stored if it is new; None if the dataset was deleted."""
    key = digest(words)
    found = direct.run(_FIND, of=dataset, wanted=key)
    if not found or found[0][1] is not None:
        return int(found[0][1]) if found else None
    made = direct.run(_ADD, dataset_id=dataset, digest=key, text=words, model_id=model, vector=vector)
    # Somebody else may have asked the same at this moment.
    return int(made[0][0] if made else direct.run(_FIND, of=dataset, wanted=key)[0][1])


Row = tuple[int, str, int | None, bytes | None]
"""A query: its number, text, model and vector."""


def load(connection: Connection, ids: Sequence[int]) -> list[Row]:
    """Queries by their numbers."""
    found = []
    for run in batches(ids):
        rows = connection.execute(
            select(queries.c.id, queries.c.text, queries.c.model_id, queries.c.vector).where(queries.c.id.in_(run))
        )
        found += [(row.id, row.text, row.model_id, row.vector) for row in rows]
    return found


def set_vectors(connection: Connection, model: int, made: Sequence[tuple[int, bytes]]) -> None:
    """Stores vectors that were made after the query was."""
    for query, vector in made:
        connection.execute(update(queries).where(queries.c.id == query).values(model_id=model, vector=vector))
