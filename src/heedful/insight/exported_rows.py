"""The rows of exports: where they are stored, read page by page or all at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import JSON, ColumnElement, Connection, FromClause, Select, Table, and_, func, or_, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.types import Text

from heedful.api import checks
from heedful.api.parameters import Output
from heedful.insight.counting import InsightSpace
from heedful.insight.export_files import TABLES, export, table_named, to_json_rows
from heedful.ledger.events import SIGNAL, is_retracted
from heedful.ledger.opinion_reports import decayed
from heedful.ledger.scores import ALL_QUERIES
from heedful.model import ExportFormat, ExportResult, ExportTable, Page, TableName
from heedful.sessions.session_store import ExportQuery, Rows
from heedful.storage.facts import SUPERSEDED
from heedful.storage.rows import between
from heedful.storage.schema import (
    datasets,
    decisions,
    entries,
    events,
    executions,
    external_ids,
    facts,
    feedbacks,
    golden_examples,
    messages,
    metadata,
    notes,
    queries,
    receipts,
    review_items,
    scores,
    sessions,
)

BATCH_SIZE = 10_000
"""Rows that are read at once."""

RECEIPTS_BATCH_SIZE = 500
"""Receipts per read; at least two, since each batch begins with the last of the previous one."""

MAIN_STORE, SESSION_STORE = "a", "b"
"""The beginnings of cursors: the database of facts, and that of sessions, where it is another one."""

PLACES = {
    **dict.fromkeys(("sessions", "messages", "entries"), (SESSION_STORE,)),
    **dict.fromkeys(("feedback", "events"), (MAIN_STORE, SESSION_STORE)),
}
"""Where tables are that are not with the facts, or not all of them, if sessions are in another database."""


def list_tables(space: InsightSpace) -> list[ExportTable]:
    return list(TABLES.values())


def list_rows(
    space: InsightSpace,
    table: TableName,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    cursor: str | None,
    limit: int,
) -> Page[dict[str, Any]]:
    query = _query(space, since, until, dataset)
    chosen = table_named(table, dataset)
    rows, following = _page(space, chosen, query, cursor, limit)
    return Page(items=to_json_rows(chosen, rows), next_cursor=following)


def export_table(
    space: InsightSpace,
    table: TableName,
    path: Output,
    format: ExportFormat | None,
    since: datetime | None,
    until: datetime | None,
    dataset: str | None,
    overwrite: bool,
) -> ExportResult:
    query = _query(space, since, until, dataset)
    with export(table, path, format, dataset, overwrite) as output:
        for rows in _all_rows(space, output.table, query):
            output.add(rows)
    return output.result()


def _query(space: InsightSpace, since: datetime | None, until: datetime | None, dataset: str | None) -> ExportQuery:
    start, stop = space.period(since, until, dataset)
    return ExportQuery(space.workspace.now(), start, stop, dataset)


def _all_rows(space: InsightSpace, table: ExportTable, query: ExportQuery) -> Iterator[Rows]:
    """All rows, in pages. The rows of one SQL database are as they were at one moment."""
    for place in _places(space, table):
        if place == MAIN_STORE:
            with space.workspace.read() as connection:
                yield from every(connection, table, query, BATCH_SIZE)
            continue
        # Each in a view of its own: a long one is more than the server keeps.
        yield from _pages(lambda after: _session_page(space, table, query, after, BATCH_SIZE))


def _pages(read: Callable[[str | None], tuple[Rows, str | None]]) -> Iterator[Rows]:
    rows, after = read(None)
    yield rows
    while after is not None:
        rows, after = read(after)
        yield rows


def _page(
    space: InsightSpace, table: ExportTable, query: ExportQuery, cursor: str | None, limit: int
) -> tuple[Rows, str | None]:
    """Some rows, and the cursor behind them; None at the end."""
    places = _places(space, table)
    place, after = (places[0], None) if cursor is None else _parse_cursor(cursor)
    if place not in places:
        raise checks.invalid_cursor(cursor)
    rows: Rows = []
    following: str | None = None
    if place == SESSION_STORE:
        rows, following = _session_page(space, table, query, after, limit)
    else:
        with space.workspace.read() as connection:
            rows, following = page(connection, table, query, after, limit)
    if following is not None:
        return rows, f"{place}.{following}"
    remaining = places[places.index(place) + 1 :]
    return rows, f"{remaining[0]}." if remaining else None


def _places(space: InsightSpace, table: ExportTable) -> Sequence[str]:
    return PLACES.get(table.name, (MAIN_STORE,)) if space.store.remote else (MAIN_STORE,)


def _session_page(
    space: InsightSpace, table: ExportTable, query: ExportQuery, after: str | None, limit: int
) -> tuple[Rows, str | None]:
    page: tuple[Rows, str | None] = space.store.read(lambda tx: tx.exported(table.name, query, after, limit))
    return page


def _parse_cursor(cursor: Any) -> tuple[str, str | None]:
    place, dot, after = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if not dot or "\0" in after:
        raise checks.invalid_cursor(cursor)
    return place, after or None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a table come from."""

    table: Table
    renamed: str = ""
    """The exported columns that have another name here: `name=column`, or `name=table.column` of a joined table."""
    joined: FromClause | None = None
    at: str = "at"
    dataset: ColumnElement[Any] | None = None
    condition: ColumnElement[bool] | None = None
    computed: Callable[[int], Mapping[str, ColumnElement[Any]]] = lambda now: {}
    """Columns that are no columns of a table; scores are those at a given time."""


_LEDGER = events.outerjoin(datasets, datasets.c.id == events.c.dataset_id).outerjoin(
    queries, queries.c.id == events.c.query_id
)

ORIGINS: Mapping[str, Origin] = {
    "feedback": Origin(
        feedbacks,
        "feedback_id=id session_id=sessions.id dataset=entries.dataset created_at=at",
        feedbacks.outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq).outerjoin(
            entries, and_(feedbacks.c.target_type == "entry", entries.c.id == feedbacks.c.target_id)
        ),
        dataset=entries.c.dataset,
    ),
    "signals": Origin(
        events,
        "event_id=id fact_id=target_id dataset=datasets.name query=queries.text signal=value recall_id=receipt_id "
        "note=notes.text created_at=at",
        _LEDGER.outerjoin(notes, notes.c.event_id == events.c.id),
        dataset=datasets.c.name,
        condition=events.c.kind == SIGNAL,
        computed=lambda now: {"active": ~is_retracted()},
    ),
    "entries": Origin(
        entries,
        "qa_id=id session_id=sessions.id external_id=external_ids.external_id created_at=at",
        entries.join(sessions, sessions.c.seq == entries.c.session_seq).outerjoin(
            external_ids, and_(external_ids.c.kind == "entry", external_ids.c.target_id == entries.c.id)
        ),
        dataset=entries.c.dataset,
    ),
    "sessions": Origin(sessions, "session_id=id", at="created_at"),
    "messages": Origin(
        messages,
        "message_id=id session_id=sessions.id created_at=at",
        messages.join(sessions, sessions.c.seq == messages.c.session_seq),
    ),
    "facts": Origin(
        facts,
        "fact_id=id dataset=datasets.name used=scores.used ignored=scores.ignored helpful=scores.helpful "
        "not_helpful=scores.not_helpful",
        facts.join(datasets, datasets.c.id == facts.c.dataset_id).outerjoin(
            scores, and_(scores.c.fact_seq == facts.c.seq, scores.c.query_id == ALL_QUERIES)
        ),
        at="created_at",
        dataset=datasets.c.name,
        computed=lambda now: {"overall_usefulness": decayed(now), "superseded": facts.c.hidden.op("&")(SUPERSEDED)},
    ),
    "executions": Origin(executions, "execution_id=id created_at=at"),
    "golden_examples": Origin(golden_examples, "example_id=id", at="created_at"),
    "decisions": Origin(decisions, "decision_id=id created_at=at"),
    "review_items": Origin(review_items, "item_id=id", at="last_at", dataset=review_items.c.dataset),
    "events": Origin(
        events,
        "event_id=id dataset=datasets.name created_at=at query=queries.text recall_id=receipt_id",
        _LEDGER,
        dataset=datasets.c.name,
    ),
}
"""By the name of the table. `recalls` has another shape."""


def page(
    connection: Connection, table: ExportTable, query: ExportQuery, after: str | None, limit: int
) -> tuple[Rows, str | None]:
    """The next rows of a table, and the position of the next page; None at the end."""
    if table.name == "recalls":
        return _recalls_page(connection, query, after, limit)
    statement = _rows(table, query)
    if after is not None:
        statement = statement.where(ORIGINS[table.name].table.c.seq > checks.cursor(after))
    rows = connection.execute(statement.limit(limit)).all()
    return rows, str(rows[-1][-1]) if len(rows) == limit else None


def every(
    connection: Connection, table: ExportTable, query: ExportQuery, batch_size: int
) -> Generator[Rows, None, None]:
    """All rows of a table in batches, from one statement: PostgreSQL checks row-level security once."""
    if table.name != "recalls":
        statement = _rows(table, query)
        with closing(connection.execute(statement, execution_options={"yield_per": batch_size})) as result:
            yield from result.partitions()
        return
    yield from _pages(lambda after: _recalls_page(connection, query, after, batch_size))


def _rows(table: ExportTable, query: ExportQuery) -> Select[Any]:
    """All rows of a table, in order, each with its number at the end."""
    origin = ORIGINS[table.name]
    number = origin.table.c.seq
    statement = (
        select(*(column.label(name) for name, column in columns(table, query.now).items()), number)
        .select_from(origin.table if origin.joined is None else origin.joined)
        .where(*between(origin.table.c[origin.at], query.since, query.until))
    )
    if origin.condition is not None:
        statement = statement.where(origin.condition)
    if query.dataset is not None:
        assert origin.dataset is not None
        statement = statement.where(origin.dataset == query.dataset)
    return statement.order_by(number)


def columns(table: ExportTable, now: int) -> dict[str, ColumnElement[Any]]:
    """The columns of a table but `recalls` by their exported names, in order; JSON is text."""
    origin = ORIGINS[table.name]
    renamed, computed = dict(spec.split("=") for spec in origin.renamed.split()), origin.computed(now)
    result = {}
    for name in (column.name for column in table.columns):
        owner, _, column = renamed.get(name, name).rpartition(".")
        value = computed[name] if name in computed else (metadata.tables[owner] if owner else origin.table).c[column]
        result[name] = _as_text(value) if isinstance(value.type, JSON) else value
    return result


def _recalls_page(connection: Connection, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
    """One row for each fact that was shown."""
    at, receipt, rank = (None, "", 0) if after is None else _parse_position(after)
    rows: list[tuple[Any, ...]] = []
    while True:
        batch = connection.execute(_receipts(query, at, receipt)).all()
        for row in batch:
            *head, shown = row
            lines = orjson.loads(shown)
            begin = rank if row.id == receipt else 0
            for index in range(begin, len(lines)):
                rows.append((*head, index + 1, *lines[index][:6]))
                if len(rows) == limit:
                    return rows, f"{row.at}.{row.id}.{index + 1}"
            at, receipt, rank = row.at, row.id, len(lines)
        if len(batch) < RECEIPTS_BATCH_SIZE:
            return rows, None


def _receipts(query: ExportQuery, at: int | None, receipt: str) -> Select[Any]:
    """The next receipts from this one on, inclusive."""
    statement = (
        select(
            *(receipts.c.id, datasets.c.name, queries.c.text, receipts.c.mode, receipts.c.policy),
            *(receipts.c.weight, receipts.c.at, _as_text(receipts.c.shown)),
        )
        .join(datasets, datasets.c.id == receipts.c.dataset_id)
        .join(queries, queries.c.id == receipts.c.query_id)
        .where(*between(receipts.c.at, query.since, query.until))
    )
    if query.dataset is not None:
        statement = statement.where(datasets.c.name == query.dataset)
    if at is not None:
        later = or_(receipts.c.at > at, and_(receipts.c.at == at, receipts.c.id >= receipt))
        statement = statement.where(receipts.c.at >= at, later)
    return statement.order_by(receipts.c.at, receipts.c.id).limit(RECEIPTS_BATCH_SIZE)


def _parse_position(position: str) -> tuple[int, str, int]:
    parts = position.split(".")
    if len(parts) != 3:
        raise checks.invalid_cursor(position)
    at, receipt, rank = parts
    return checks.cursor(at) or 0, receipt, checks.cursor(rank) or 0


def _as_text(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """JSON as text; null and missing values are NULL."""
    return func.nullif(sql_cast(column, Text), "null")
