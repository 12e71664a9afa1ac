"""Removes what is older than the settings allow, in batches, so that nobody waits long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import Column, ColumnElement, Connection, delete, exists, func, select, tuple_, update

from heedful.clock import DAY
from heedful.ledger import proven_sql, receipts, supersessions, tallies
from heedful.model import TableSize
from heedful.settings import Retention
from heedful.storage.database import Database
from heedful.storage.postgresql import tables
from heedful.storage.rows import batches, dialect_of
from heedful.storage.schema import (
    audit,
    changes,
    datasets,
    decisions,
    events,
    external_ids,
    metadata,
    outbox,
    projects,
    queries,
    requests,
    waiting_feedbacks,
)
from heedful.storage.schema import facts as fact_rows
from heedful.storage.schema import receipts as receipt_rows

BATCH_SIZE = 2000  # Rows per transaction.
HITS_BATCH_SIZE = 20  # Hits per transaction: each may have a result of many megabytes.
Removal = Callable[[Connection, int], int]  # Removes at most one batch of rows older than a time; returns how many.


def _rows_of(at: Column[int], *conditions: ColumnElement[bool]) -> Removal:
    """Of the rows that meet all conditions, those with an earlier time in this column."""
    table = at.table
    key = list(table.primary_key.columns)

    def remove(connection: Connection, before: int) -> int:
        old = (*conditions, at < before)
        rows = connection.execute(select(*key).where(*old).limit(BATCH_SIZE)).all()
        if rows:
            condition = key[0].in_([row[0] for row in rows]) if len(key) == 1 else tuple_(*key).in_(map(tuple, rows))
            connection.execute(delete(table).where(condition, *old))
        return len(rows)

    return remove


# Named explicitly, so that indexes which begin with the project are used.
_PROJECTS = select(projects.c.id)
_DATASETS = select(projects.c.name, datasets.c.id).join(projects, projects.c.id == datasets.c.project_id)

_RULES: tuple[tuple[str, str, Removal], ...] = (
    ("receipts", "receipt_days", lambda connection, before: receipts.expire(connection, before, BATCH_SIZE)),
    ("decisions of the cache", "decision_days", _rows_of(decisions.c.at, decisions.c.project_id.in_(_PROJECTS))),
    ("results kept for retries", "idempotency_days", _rows_of(requests.c.at)),
    ("external ids of recalls", "receipt_days", _rows_of(external_ids.c.at, external_ids.c.kind == "recall")),
    ("ratings that waited for an answer in vain", "waiting_days", _rows_of(waiting_feedbacks.c.at)),
    ("entries of the audit trail", "audit_days", _rows_of(audit.c.at)),
    (
        "delivered alerts",
        "alert_days",
        _rows_of(outbox.c.created_at, outbox.c.project_id.in_(_PROJECTS), outbox.c.next_at.is_(None)),
    ),
)
"""The name of what is removed, the setting with its days, and how it is removed."""


def apply(database: Database, now: int, retention: Retention) -> list[str]:
    """Removes what is due; returns messages about it. Several processes may call it at once."""
    messages = []
    if retention.receipt_days:
        with database.write() as connection:
            dropped = tables.drop_receipts(connection, now - retention.receipt_days * DAY)
        messages += [f"dropped {name}" for name in dropped]
    for what, setting, remove in _RULES:
        if days := getattr(retention, setting):
            messages += _removed(_in_batches(database, None, remove, now - days * DAY), what)
    messages += _retire_facts(database, now)
    if retention.hit_days:
        messages += _prune_hits(database, now - retention.hit_days * DAY)
    messages += _prune_changes(database, retention.change_lines)
    if any("receipts" in line for line in messages):
        messages += _prune_queries(database)
    return messages


def _in_batches(database: Database, project: str | None, remove: Callable[..., int], *which: int) -> int:
    """Removes batches, each in a transaction, until there are no more; returns how many rows."""
    total = 0
    while True:
        with database.write(project, durable=False) as connection:
            removed = remove(connection, *which)
        total += removed
        if not removed:
            return total


def _removed(count: int, what: str) -> list[str]:
    return [f"removed {count} {what}"] if count else []


def _retire_facts(database: Database, now: int) -> list[str]:
    """Removes expired facts as if they were forgotten: the ledger stays."""
    with database.read() as connection:
        of_dataset = (fact_rows.c.dataset_id == datasets.c.id) & (fact_rows.c.project_id == datasets.c.project_id)
        due = exists().where(of_dataset, fact_rows.c.expires_at <= now)
        owners = connection.execute(_DATASETS.where(due)).all()
    retire = supersessions.retire
    removed = sum(_in_batches(database, project, retire, dataset, now, BATCH_SIZE) for project, dataset in owners)
    return _removed(removed, "facts that had expired")


def _prune_hits(database: Database, before: int) -> list[str]:
    """Removes unrated hits of the cache."""
    with database.read() as connection:
        owners = proven_sql.hit_owners(connection, before)
    prune = proven_sql.prune_hits
    removed = sum(_in_batches(database, name, prune, project, before, HITS_BATCH_SIZE) for name, project in owners)
    return _removed(removed, "hits of the cache")


def _prune_changes(database: Database, max_changes: int) -> list[str]:
    """Truncates the feeds of indexes. An index that is further behind is rebuilt: see `facts.changes_after`."""
    with database.read() as connection:
        long_feeds = select(changes.c.dataset_id).group_by(changes.c.dataset_id).having(func.count() > 2 * max_changes)
        long = connection.execute(_DATASETS.where(datasets.c.id.in_(long_feeds))).all()
    removed = 0
    for project, dataset in long:
        with database.write(project, durable=False) as connection:
            of_dataset = changes.c.dataset_id == dataset
            newest = select(changes.c.seq).where(of_dataset).order_by(changes.c.seq.desc())
            oldest_kept = connection.execute(newest.offset(max_changes - 1).limit(1)).scalar()
            if oldest_kept is None:
                continue
            connection.execute(update(datasets).where(datasets.c.id == dataset).values(changes_from=oldest_kept))
            removed += connection.execute(delete(changes).where(of_dataset, changes.c.seq < oldest_kept)).rowcount
    return _removed(removed, "changes that indexes have taken in")


def _prune_queries(database: Database) -> list[str]:
    """Removes queries without receipts and opinions."""
    with database.read() as connection:
        owners = connection.execute(_DATASETS).all()
    removed = 0
    for project, dataset in owners:
        with database.read(project) as connection:
            newest = connection.execute(
                select(func.max(receipt_rows.c.at)).where(receipt_rows.c.dataset_id == dataset)
            ).scalar()
            shown = select(receipt_rows.c.query_id).where(receipt_rows.c.dataset_id == dataset)
            unused = (queries.c.dataset_id == dataset, queries.c.id.not_in(shown), _NO_EVENT)
            candidates = connection.execute(select(queries.c.id).where(*unused)).scalars().all()
        since = shown.where(receipt_rows.c.at >= (newest or 0) - DAY)
        for run in batches(candidates, BATCH_SIZE):
            with database.write(project, durable=False) as connection:
                # Waits for recalls that are writing a receipt.
                connection.execute(select(datasets.c.id).where(datasets.c.id == dataset).with_for_update())
                unused = (queries.c.id.in_(run), queries.c.id.not_in(since), _NO_EVENT)
                removed += connection.execute(delete(queries).where(*unused)).rowcount
    return _removed(removed, "questions that nothing refers to")


_NO_EVENT = ~exists().where(events.c.query_id == queries.c.id)


def maintain(database: Database, now: int, retention: Retention) -> list[str]:
    """Does the maintenance that is due; returns messages about it. Several processes may call it at once."""
    messages = [f"made {name}" for name in iter(lambda: _next_partition(database, now), None)]
    with database.read() as connection:
        counts = tallies.due(connection)
    for project, number in counts:
        tallies.fold_in_runs(partial(database.write, project, durable=False), number, "")
        messages.append(f"counted the opinions of {project}")
    return messages + apply(database, now, retention)


def _next_partition(database: Database, now: int) -> str | None:
    # One transaction each, so that only one table is locked at a time.
    with database.write() as connection:
        return tables.ensure_next_partition(connection, now)


def table_sizes(connection: Connection) -> list[TableSize]:
    """All tables, the largest first."""
    sizes = []
    for name, size in connection.execute(dialect_of(connection).table_sizes).all():
        counting = select(func.count()).select_from(metadata.tables[name]) if name in metadata.tables else None
        rows = None if counting is None else connection.execute(counting).scalar_one()
        sizes.append(TableSize(table=name, rows=rows, bytes=int(size)))
    return sorted(sizes, key=lambda table: -table.bytes)
