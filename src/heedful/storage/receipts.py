"""Queries, and what each recall showed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, and_, bindparam, delete, insert, select, text, update

from heedful.storage import external_ids, graph, scopes, tallies
from heedful.storage.database import Database
from heedful.storage.rows import AnyRow, Direct, Prepared, batches
from heedful.storage.schema import datasets, projects, queries, receipts

Line = tuple[str, float, float, float, str, float] | tuple[str, float, float, float, str, float, list[str]]
"""One fact that was shown: id, score, relevance, usefulness, where that came from, and the chance it had to stand
there; then the links that carried it, if any did. Its place is its rank."""


@dataclass(frozen=True, slots=True)
class NewReceipt:
    """A receipt about to be stored."""

    id: str
    dataset_id: int
    query_id: int
    mode: str
    policy: str
    weight: float
    at: int
    shown: list[Line]


_ADD = Prepared(insert(receipts), list(NewReceipt.__slots__))


def add(direct: Direct, new: NewReceipt) -> None:
    values = {name: getattr(new, name) for name in NewReceipt.__slots__}
    direct.run(_ADD, **values | {"shown": orjson.dumps(new.shown).decode()})


def get(connection: Connection, project: str, receipt_id: str) -> AnyRow | None:
    """A receipt of a project, with the text of its query and the name of its dataset, by its id or the external id of
    its recall."""
    row = _get(connection, project, receipt_id)
    return external(connection, project, receipt_id) if row is None else row


def external(connection: Connection, project: str, external_id: str) -> AnyRow | None:
    """The receipt of the recall with this external id."""
    number = scopes.project_id(connection, project)
    target = None if number is None else external_ids.target(connection, number, "recall", external_id)
    return None if target is None else _get(connection, project, target)


def _get(connection: Connection, project: str, receipt_id: str) -> AnyRow | None:
    return connection.execute(
        select(receipts, queries.c.text.label("query"), datasets.c.name.label("dataset"))
        .join(queries, queries.c.id == receipts.c.query_id)
        .join(datasets, datasets.c.id == receipts.c.dataset_id)
        .join(projects, projects.c.id == datasets.c.project_id)
        .where(projects.c.name == project, receipts.c.id == receipt_id)
    ).first()


def load(connection: Connection, dataset: int, ids: Sequence[str], since: int | None = None) -> list[AnyRow]:
    """These receipts of a dataset, since a time, oldest first, with the texts of their queries."""
    statement = (
        select(receipts.c.id, receipts.c.query_id, receipts.c.at, receipts.c.shown, queries.c.text.label("query"))
        .join(queries, queries.c.id == receipts.c.query_id)
        .where(receipts.c.dataset_id == dataset)
    )
    if since is not None:
        statement = statement.where(receipts.c.at >= since)
    rows = [row for run in batches(ids) for row in connection.execute(statement.where(receipts.c.id.in_(run)))]
    return sorted(rows, key=lambda row: (row.at, row.id))


def forget_dataset(connection: Connection, dataset: int) -> None:
    """Removes the receipts, the queries and the entities of a dataset, and the dataset's own row."""
    # Waits for recalls that are writing receipts; later ones find no dataset.
    connection.execute(select(datasets.c.id).where(datasets.c.id == dataset).with_for_update())
    graph.forget_dataset(connection, dataset)
    external_ids.remove(connection, select(receipts.c.id).where(receipts.c.dataset_id == dataset))
    connection.execute(delete(receipts).where(receipts.c.dataset_id == dataset))
    connection.execute(delete(queries).where(queries.c.dataset_id == dataset))
    with tallies.changing(connection, scopes.owner(connection, dataset), datasets=[dataset]):
        connection.execute(delete(datasets).where(datasets.c.id == dataset))


def expire(connection: Connection, before: int, limit: int) -> int:
    """Removes up to `limit` older receipts; returns how many."""
    old = select(receipts.c.id, receipts.c.at).where(receipts.c.at < before).order_by(receipts.c.at).limit(limit)
    rows = connection.execute(old).all()
    for run in batches(rows):
        connection.execute(delete(receipts).where(receipts.c.id.in_([row.id for row in run]), receipts.c.at < before))
    return len(rows)


def shown_facts(connection: Connection, project: str, ids: Sequence[str]) -> dict[str, list[str]]:
    """The facts that recalls of a project showed, best first, by recall."""
    rows = (
        row
        for run in batches(ids)
        for row in connection.execute(
            select(receipts.c.id, receipts.c.shown)
            .join(datasets, datasets.c.id == receipts.c.dataset_id)
            .join(projects, projects.c.id == datasets.c.project_id)
            .where(projects.c.name == project, receipts.c.id.in_(run))
        )
    )
    return {row.id: [line[0] for line in row.shown] for row in rows}


def newest_shown(connection: Connection, dataset: int, limit: int) -> Iterator[list[Line]]:
    """What the newest recalls of a dataset showed."""
    statement = select(receipts.c.shown).where(receipts.c.dataset_id == dataset).order_by(receipts.c.at.desc())
    yield from connection.execution_options(yield_per=2000).execute(statement.limit(limit)).scalars()


def links_of(lines: Sequence[Sequence[Any]]) -> dict[str, list[str]]:
    """The links by which facts were found, by fact, where there are any."""
    return {line[0]: line[6] for line in lines if len(line) > 6}


def digest(text: str) -> bytes:
    """Identifies equal queries: a hash of the text, ignoring white space."""
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest()


def ensure(
    database: Database,
    connection: Connection,
    dataset: int,
    texts: Sequence[str],
) -> dict[str, int]:
    """The number of each query; new ones are stored, and embedded when needed."""
    digests = {text: digest(text) for text in texts}
    distinct = {key: text for text, key in digests.items()}
    numbers = _numbers(connection, dataset, list(distinct))
    new = [key for key in distinct if key not in numbers]
    rows = [{"dataset_id": dataset, "digest": key, "text": distinct[key]} for key in new]
    database.upsert(connection, queries, rows, keys=["dataset_id", "digest"], changed=[])
    if new:
        numbers |= _numbers(connection, dataset, new)
    return {text: numbers[key] for text, key in digests.items()}


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
            queries, and_(queries.c.dataset_id == datasets.c.id, queries.c.digest == bindparam("digest"))
        )
    )
    .where(datasets.c.id == bindparam("of"))
    # Excludes a concurrent deletion of the dataset.
    .with_for_update(read=True, key_share=True, of=datasets)
)
_ADD_QUERY = Prepared(
    text(
        "INSERT INTO queries (dataset_id, digest, text, model_id, vector) "
        "VALUES (:dataset_id, :digest, :text, :model_id, :vector) ON CONFLICT DO NOTHING RETURNING id"
    )
)


def ensure_query(direct: Direct, dataset: int, words: str, model: int | None, vector: bytes | None) -> int | None:
    """The number of a query, stored if it is new; None if the dataset was deleted."""
    key = digest(words)
    rows = direct.run(_FIND, of=dataset, digest=key)
    if not rows or rows[0][1] is not None:
        return int(rows[0][1]) if rows else None
    inserted = direct.run(_ADD_QUERY, dataset_id=dataset, digest=key, text=words, model_id=model, vector=vector)
    # Another process may have stored the same query meanwhile.
    return int(inserted[0][0] if inserted else direct.run(_FIND, of=dataset, digest=key)[0][1])


_SET_VECTOR = (
    update(queries).where(queries.c.id == bindparam("of")).values(model_id=bindparam("model"), vector=bindparam("made"))
)

Row = tuple[int, str, int | None, bytes | None]
"""A query: its number, text, model and vector."""


def load_queries(connection: Connection, ids: Sequence[int]) -> list[Row]:
    """Queries by their numbers."""
    result = []
    for run in batches(ids):
        rows = connection.execute(
            select(queries.c.id, queries.c.text, queries.c.model_id, queries.c.vector).where(queries.c.id.in_(run))
        )
        result += [(row.id, row.text, row.model_id, row.vector) for row in rows]
    return result


def set_vectors(connection: Connection, vectors: Sequence[tuple[int, int, bytes]]) -> None:
    """Stores vectors of queries that were embedded later, given as (model, query, vector)."""
    connection.execute(_SET_VECTOR, [dict(zip(("model", "of", "made"), each, strict=True)) for each in vectors])
