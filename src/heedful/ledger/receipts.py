"""Receipts: the facts that each recall showed, at which rank and with which score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, delete, insert, select

from heedful.api import checks
from heedful.errors import NotFound
from heedful.ledger import tallies
from heedful.model import Mode, PolicyName, Receipt, Shown, UsefulnessSource
from heedful.storage import external_ids, graph, scopes
from heedful.storage.rows import AnyRow, Direct, Prepared, batches, select_in, to_model
from heedful.storage.schema import datasets, queries, receipts
from heedful.workspace import Workspace


class ShownFact(NamedTuple):
    """One fact that a recall showed; its place is its rank. It is stored as a list, without `links` if there are
    none."""

    fact_id: str
    score: float
    relevance: float
    usefulness: float
    usefulness_source: UsefulnessSource
    propensity: float
    """The chance it had to stand there."""
    links: Sequence[str] = ()
    """The links that carried it."""


class ReceiptRow(NamedTuple):
    """A receipt, with the text of its query and the name of its dataset."""

    id: str
    mode: Mode
    policy: PolicyName
    weight: float
    at: int
    query_id: int
    query: str
    dataset: str
    shown: list[ShownFact]


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
    shown: list[ShownFact]


_ADD = Prepared(insert(receipts), list(NewReceipt.__slots__))


def add(direct: Direct, new: NewReceipt) -> None:
    values = {name: getattr(new, name) for name in NewReceipt.__slots__}
    shown = [fact if fact.links else fact[:-1] for fact in new.shown]
    direct.run(_ADD, **values | {"shown": orjson.dumps([list(fact) for fact in shown]).decode()})


def get(connection: Connection, project: str, receipt_id: str) -> ReceiptRow | None:
    """A receipt of a project, by its id or the external id of its recall."""
    row = _get(connection, receipt_id)
    return external(connection, project, receipt_id) if row is None else row


def receipt(workspace: Workspace, recall_id: str) -> Receipt:
    """The receipt of a recall, as callers see it."""
    checks.identifier("recall_id", recall_id)
    with workspace.read() as connection:
        row = receipt_of(workspace, connection, recall_id)
    shown = [to_model(Shown, fact, rank=rank, links=list(fact.links)) for rank, fact in enumerate(row.shown, start=1)]
    return to_model(Receipt, row, recall_id=row.id, usefulness_weight=row.weight, shown=shown)


def receipt_of(workspace: Workspace, connection: Connection, recall_id: str) -> ReceiptRow:
    """The receipt of a recall of this project."""
    receipt = get(connection, workspace.project, recall_id)
    if receipt is None:
        remedy = (
            "Use the id that recall(…) returned. Receipts are deleted after receipt_days, a year by default; with "
            "receipt_share below 1, only a sample is kept"
        )
        raise NotFound.in_project(workspace.project, "recall", recall_id, "recall_id", remedy)
    return receipt


def external(connection: Connection, project: str, external_id: str) -> ReceiptRow | None:
    """The receipt of the recall with this external id."""
    number = scopes.project_id(connection, project)
    target = None if number is None else external_ids.target(connection, number, "recall", external_id)
    return None if target is None else _get(connection, target)


_RECEIPTS = (
    select(
        *(receipts.c[name] for name in ReceiptRow._fields if name in receipts.c and name != "shown"),
        queries.c.text,
        datasets.c.name,
        receipts.c.shown,
    )
    .join(queries, queries.c.id == receipts.c.query_id)
    .join(datasets, datasets.c.id == receipts.c.dataset_id)
)


def _get(connection: Connection, receipt_id: str) -> ReceiptRow | None:
    return next(map(_receipt, connection.execute(_RECEIPTS.where(receipts.c.id == receipt_id))), None)


def load(connection: Connection, dataset: int, ids: Sequence[str], since: int | None = None) -> list[ReceiptRow]:
    """These receipts of a dataset, since a time, oldest first."""
    statement = _RECEIPTS.where(receipts.c.dataset_id == dataset)
    if since is not None:
        statement = statement.where(receipts.c.at >= since)
    rows = map(_receipt, select_in(connection, statement, receipts.c.id, ids))
    return sorted(rows, key=lambda row: (row.at, row.id))


def _receipt(row: AnyRow) -> ReceiptRow:
    receipt = ReceiptRow._make(row)
    return receipt._replace(shown=[ShownFact(*fact) for fact in row.shown])


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


def shown_facts(connection: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """The facts that recalls showed, best first, by recall."""
    rows = select_in(connection, select(receipts.c.id, receipts.c.shown), receipts.c.id, ids)
    return {row.id: [fact_id for fact_id, *_ in row.shown] for row in rows}


def newest_shown(connection: Connection, dataset: int, limit: int) -> Iterator[list[str]]:
    """The facts that the newest recalls of a dataset showed, a list for each recall."""
    statement = select(receipts.c.shown).where(receipts.c.dataset_id == dataset).order_by(receipts.c.at.desc())
    for shown in connection.execution_options(yield_per=2000).execute(statement.limit(limit)).scalars():
        yield [fact_id for fact_id, *_ in shown]


def links_of(shown: Iterable[ShownFact]) -> dict[str, list[str]]:
    """The links by which facts were found, by fact, where there are any."""
    return {fact.fact_id: list(fact.links) for fact in shown if fact.links}
