"""The facts that recalls showed, one row for each."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Connection, Select, and_, or_, select

from heedful.storage.exports.query import ExportQuery, Rows, as_text, misplaced, number
from heedful.storage.rows import between, of_project
from heedful.storage.schema import datasets, queries, receipts

BATCH_SIZE = 500
"""Receipts per read; at least two, since each batch begins with the last of the previous one."""

COLUMNS = (
    *("recall_id", "dataset", "query", "mode", "policy", "usefulness_weight", "created_at", "rank", "fact_id"),
    *("score", "relevance", "usefulness", "usefulness_source", "propensity"),
)


def page(
    connection: Connection, project: int, query: ExportQuery, after: str | None, limit: int
) -> tuple[Rows, str | None]:
    """One row for each fact that was shown."""
    at, receipt, rank = (None, "", 0) if after is None else _parse_position(after)
    rows: list[tuple[Any, ...]] = []
    while True:
        batch = connection.execute(_receipts(connection, project, query, at, receipt, BATCH_SIZE)).all()
        for row in batch:
            *head, shown = row
            lines = orjson.loads(shown)
            begin = rank if row.id == receipt else 0
            for index in range(begin, len(lines)):
                rows.append((*head, index + 1, *lines[index][:6]))
                if len(rows) == limit:
                    return rows, f"{row.at}.{row.id}.{index + 1}"
            at, receipt, rank = row.at, row.id, len(lines)
        if len(batch) < BATCH_SIZE:
            return rows, None


def _receipts(
    connection: Connection, project: int, query: ExportQuery, at: int | None, receipt: str, limit: int
) -> Select[Any]:
    """Receipts from this one on, inclusive."""
    statement = (
        select(
            receipts.c.id,
            datasets.c.name,
            queries.c.text,
            receipts.c.mode,
            receipts.c.policy,
            receipts.c.weight,
            receipts.c.at,
            as_text(receipts.c.shown),
        )
        .join(datasets, datasets.c.id == receipts.c.dataset_id)
        .join(queries, queries.c.id == receipts.c.query_id)
        .where(
            of_project(connection, datasets.c.project_id, project), *between(receipts.c.at, query.since, query.until)
        )
    )
    if query.dataset is not None:
        statement = statement.where(datasets.c.name == query.dataset)
    if at is not None:
        later = or_(receipts.c.at > at, and_(receipts.c.at == at, receipts.c.id >= receipt))
        statement = statement.where(receipts.c.at >= at, later)
    return statement.order_by(receipts.c.at, receipts.c.id).limit(limit)


def _parse_position(position: str) -> tuple[int, str, int]:
    parts = position.split(".")
    if len(parts) != 3:
        raise misplaced(position)
    return number(parts[0]), parts[1], number(parts[2])
