"""The vectors of facts as half floats, and the model that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, select, update

from heedful.storage.half_vectors import unpack_sent
from heedful.storage.isolation import OWN
from heedful.storage.rows import SIZE, binary_cursor, lock_exclusive, lock_shared, select_in
from heedful.storage.schema import facts, models, queries, vectors

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """The model that a store's vectors were made with."""

    id: int
    name: str
    dimensions: int


def pack(vector: Vectors) -> bytes:
    """A vector as it is stored."""
    return vector.astype(np.float16).tobytes()


def unpack(blobs: list[bytes], dimensions: int) -> Vectors:
    """Stored vectors as rows of floats."""
    joined = np.frombuffer(b"".join(blobs), np.float16).reshape(len(blobs), dimensions)
    return joined.astype(np.float32)


def of_facts(connection: Connection, model: ModelRow, seqs: Sequence[int]) -> dict[int, Vectors]:
    """The vectors of these facts, by number."""
    statement = select(vectors.c.fact_seq, vectors.c.vector).where(vectors.c.model_id == model.id)
    rows = list(select_in(connection, statement, vectors.c.fact_seq, seqs))
    unpacked = unpack([row.vector for row in rows], model.dimensions)
    return {row.fact_seq: vector for row, vector in zip(rows, unpacked, strict=True)}


def active_model(connection: Connection) -> ModelRow | None:
    """The active model; None before the first fact."""
    row = connection.execute(select(models).where(models.c.active == 1)).first()
    return None if row is None else ModelRow(row.id, row.name, row.dimensions)


def ensure_model(connection: Connection, name: str, dimensions: int) -> int:
    """The number of a model, which becomes the active one if there is none. Until the transaction ends, nobody makes
    another one active."""
    number = _number(connection, name)
    lock = lock_exclusive if number is None or active_model(connection) is None else lock_shared
    lock(connection, _MODELS)
    number = _number(connection, name)
    if number is None:
        row = {"name": name, "dimensions": dimensions, "active": 0}
        number = connection.execute(insert(models).values(row).returning(models.c.id)).scalar_one()
    if active_model(connection) is None:
        connection.execute(update(models).where(models.c.id == number).values(active=1))
    return int(number)


_MODELS = "models"


def _number(connection: Connection, name: str) -> int | None:
    return connection.execute(select(models.c.id).where(models.c.name == name)).scalar()


def lock_writes(connection: Connection) -> None:
    """Waits for writers of vectors, and excludes others until the transaction ends."""
    lock_exclusive(connection, _MODELS)


def activate(connection: Connection, model: int) -> None:
    """Makes `model` the active one and deletes vectors of the others."""
    connection.execute(update(models).values(active=0))
    connection.execute(update(models).where(models.c.id == model).values(active=1))
    connection.execute(delete(vectors).where(vectors.c.model_id != model))
    connection.execute(update(queries).where(queries.c.model_id != model).values(vector=None, model_id=None))


def read_rows(connection: Connection, model: ModelRow, seqs: NDArray[np.int64]) -> Vectors:
    """The vectors of facts in PostgreSQL, a row each; a fact without one has zeros."""
    found = np.zeros((len(seqs), model.dimensions), np.float32)
    order = np.argsort(seqs)
    with binary_cursor(connection) as cursor:
        # As one value: a row each would take ten times as long.
        for run in (order[start : start + SIZE] for start in range(0, len(order), SIZE)):
            asked = seqs[run]
            cursor.execute(_JOINED, (connection.info[OWN], model.id, asked.tolist()))
            numbers, sent = cursor.fetchone()
            if numbers is not None:
                places = np.searchsorted(asked, np.frombuffer(numbers, ">i8"))
                found[run[places]] = unpack_sent(sent, model.dimensions)
    return found


_JOINED = (
    "SELECT string_agg(int8send(fact_seq), '' ORDER BY fact_seq), "
    "string_agg(halfvec_send(vector), '' ORDER BY fact_seq) FROM vectors "
    "WHERE project_id = %s AND model_id = %s AND fact_seq = ANY(%s)"
)


def facts_without(connection: Connection, model: int, limit: int) -> list[tuple[int, str]]:
    """Facts that have no vector of `model` yet, as (seq, text)."""
    its_vector = (vectors.c.fact_seq == facts.c.seq) & (vectors.c.project_id == facts.c.project_id)
    joined = select(facts.c.seq, facts.c.text).outerjoin(vectors, its_vector & (vectors.c.model_id == model))
    rows = connection.execute(joined.where(vectors.c.fact_seq.is_(None)).order_by(facts.c.seq).limit(limit))
    return [(row.seq, row.text) for row in rows]


def count_without(connection: Connection, model: int) -> int:
    """How many facts have no vector of `model` yet."""
    embedded = select(func.count()).select_from(vectors).where(vectors.c.model_id == model).scalar_subquery()
    total = select(func.count()).select_from(facts).scalar_subquery()
    return int(connection.execute(select(total - embedded)).scalar_one())


def store(connection: Connection, model: int, new_vectors: list[tuple[int, bytes]]) -> None:
    """Stores vectors as (fact seq, packed vector); skips facts that were forgotten meanwhile."""
    seqs = [seq for seq, _ in new_vectors]
    of = select(facts.c.seq, facts.c.project_id, facts.c.dataset_id).where(facts.c.seq.in_(seqs))
    found = {row.seq: row._mapping for row in connection.execute(of)}
    new = [
        {"fact_seq": seq, "model_id": model, "vector": blob}
        | {name: found[seq][name] for name in ("project_id", "dataset_id")}
        for seq, blob in new_vectors
        if seq in found
    ]
    if new:
        connection.execute(insert(vectors), new)
