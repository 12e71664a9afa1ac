"""What each recall showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, delete, insert, select

from heedful.storage import graph, scopes, tallies
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
    """A receipt of a project, with the words of its query and the name of its dataset."""
    return connection.execute(
        select(receipts, queries.c.text.label("query"), datasets.c.name.label("dataset"))
        .join(queries, queries.c.id == receipts.c.query_id)
        .join(datasets, datasets.c.id == receipts.c.dataset_id)
        .join(projects, projects.c.id == datasets.c.project_id)
        .where(projects.c.name == project, receipts.c.id == receipt_id)
    ).first()


def load(connection: Connection, dataset: int, ids: Sequence[str], since: int | None = None) -> list[AnyRow]:
    """These receipts of a dataset, from a moment on, oldest first, with the words of their queries."""
    statement = (
        select(receipts.c.id, receipts.c.query_id, receipts.c.at, receipts.c.shown, queries.c.text.label("query"))
        .join(queries, queries.c.id == receipts.c.query_id)
        .where(receipts.c.dataset_id == dataset)
    )
    if since is not None:
        statement = statement.where(receipts.c.at >= since)
    found = [row for run in batches(ids) for row in connection.execute(statement.where(receipts.c.id.in_(run)))]
    return sorted(found, key=lambda row: (row.at, row.id))


def forget_dataset(connection: Connection, dataset: int) -> None:
    """Removes the receipts, the queries and the entities of a dataset, and the dataset's own row."""
    # Recalls that are writing their receipts are waited for; later ones find no dataset.
    connection.execute(select(datasets.c.id).where(datasets.c.id == dataset).with_for_update())
    graph.forget_dataset(connection, dataset)
    connection.execute(delete(receipts).where(receipts.c.dataset_id == dataset))
    connection.execute(delete(queries).where(queries.c.dataset_id == dataset))
    with tallies.changing(connection, scopes.owner(connection, dataset), datasets=[dataset]):
        connection.execute(delete(datasets).where(datasets.c.id == dataset))


def expire(connection: Connection, before: int, limit: int) -> int:
    """Removes receipts that are older, at most this many; returns how many were."""
    old = select(receipts.c.id, receipts.c.at).where(receipts.c.at < before).order_by(receipts.c.at).limit(limit)
    found = connection.execute(old).all()
    for run in batches(found):
        connection.execute(delete(receipts).where(receipts.c.id.in_([row.id for row in run]), receipts.c.at < before))
    return len(found)


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


def links_of(lines: Sequence[Sequence[Any]]) -> dict[str, list[str]]:
    """The links by which facts were found, by fact, where there are any."""
    return {line[0]: line[6] for line in lines if len(line) > 6}
