"""Removes what is older than the settings allow, in batches, so that nobody waits long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, select, tuple_, update

from heedful.clock import DAY
from heedful.model import TableSize
from heedful.settings import Retention
from heedful.storage import receipts, tallies
from heedful.storage.database import Database
from heedful.storage.dialects import dialect_of
from heedful.storage.executions import runs
from heedful.storage.facts import removal_runs, remove
from heedful.storage.postgresql import partitions
from heedful.storage.rows import batches
from heedful.storage.schema import (
    audit,
    changes,
    datasets,
    events,
    external_ids,
    facts,
    metadata,
    outbox,
    projects,
    queries,
    requests,
    waiting_feedbacks,
)
from heedful.storage.schema import facts as fact_rows
from heedful.storage.schema import receipts as receipt_rows
from heedful.storage.schema_insight import decisions

BATCH_SIZE = 2000
"""Rows per transaction."""

HITS_BATCH_SIZE = 20
"""Hits per transaction: each may have a result of many megabytes."""

Removal = Callable[[Connection, int], int]
"""Removes at most one batch of rows older than a time; returns how many."""


@dataclass(frozen=True, slots=True)
class _RetentionRule:
    """The retention of one table."""

    what: str
    days: str
    """The name of the setting."""
    remove: Removal


def _rows_of(table: Table, old: Callable[[int], ColumnElement[bool]]) -> Removal:
    key = list(table.primary_key.columns)

    def remove(connection: Connection, before: int) -> int:
        rows = connection.execute(select(*key).where(old(before)).limit(BATCH_SIZE)).all()
        if rows:
            condition = key[0].in_([row[0] for row in rows]) if len(key) == 1 else tuple_(*key).in_(map(tuple, rows))
            connection.execute(delete(table).where(condition, old(before)))
        return len(rows)

    return remove


# Named explicitly, so that indexes which begin with the project are used.
_PROJECTS = select(projects.c.id)

_RULES = (
    _RetentionRule(
        "receipts", "receipt_days", lambda connection, before: receipts.expire(connection, before, BATCH_SIZE)
    ),
    _RetentionRule(
        "decisions of the cache",
        "decision_days",
        _rows_of(decisions, lambda before: and_(decisions.c.project_id.in_(_PROJECTS), decisions.c.at < before)),
    ),
    _RetentionRule(
        "results kept for retries", "idempotency_days", _rows_of(requests, lambda before: requests.c.at < before)
    ),
    _RetentionRule(
        "external ids of recalls",
        "receipt_days",
        _rows_of(external_ids, lambda before: and_(external_ids.c.kind == "recall", external_ids.c.at < before)),
    ),
    _RetentionRule(
        "ratings that waited for an answer in vain",
        "waiting_days",
        _rows_of(waiting_feedbacks, lambda before: waiting_feedbacks.c.at < before),
    ),
    _RetentionRule("entries of the audit trail", "audit_days", _rows_of(audit, lambda before: audit.c.at < before)),
    _RetentionRule(
        "delivered alerts",
        "alert_days",
        _rows_of(
            outbox,
            lambda before: and_(
                outbox.c.project_id.in_(_PROJECTS), outbox.c.next_at.is_(None), outbox.c.created_at < before
            ),
        ),
    ),
)


def apply(database: Database, now: int, retention: Retention) -> list[str]:
    """Removes what is due; returns messages about it. Several processes may call it at once."""
    messages = []
    if retention.receipt_days:
        with database.write() as connection:
            dropped = partitions.drop_receipts(connection, now - retention.receipt_days * DAY)
        messages += [f"dropped {name}" for name in dropped]
    for rule in _RULES:
        days = getattr(retention, rule.days)
        if not days:
            continue
        removed = 0
        for count in _batches(database, rule.remove, now - days * DAY):
            removed += count
        if removed:
            messages.append(f"removed {removed} {rule.what}")
    messages += _retire_facts(database, now)
    if retention.hit_days:
        messages += _prune_hits(database, now - retention.hit_days * DAY)
    messages += _prune_changes(database, retention.change_lines)
    if any("receipts" in line for line in messages):
        messages += _prune_queries(database)
    return messages


def _batches(database: Database, remove: Removal, before: int) -> Iterator[int]:
    while True:
        with database.write(durable=False) as connection:
            removed = remove(connection, before)
        yield removed
        if removed < BATCH_SIZE:
            return


def _retire_facts(database: Database, now: int) -> list[str]:
    """Removes expired facts as if they were forgotten: the ledger stays."""
    with database.read() as connection:
        due = exists().where(fact_rows.c.dataset_id == datasets.c.id, fact_rows.c.expires_at <= now)
        owners = connection.execute(select(projects.c.name, datasets.c.id).join(projects).where(due)).all()
    removed = 0
    for project, dataset in owners:
        retired = BATCH_SIZE
        while retired:
            with database.write(project, durable=False) as connection:
                retired = retire(connection, dataset, now, BATCH_SIZE)
            removed += retired
    return [f"removed {removed} facts that had expired"] if removed else []


def _prune_hits(database: Database, before: int) -> list[str]:
    """Removes unrated hits of the cache."""
    with database.read() as connection:
        owners = runs.hit_owners(connection, before)
    removed = 0
    for name, project in owners:
        pruned = HITS_BATCH_SIZE
        while pruned == HITS_BATCH_SIZE:
            with database.write(name, durable=False) as connection:
                pruned = runs.prune_hits(connection, project, before, HITS_BATCH_SIZE)
            removed += pruned
    return [f"removed {removed} hits of the cache"] if removed else []


def _prune_changes(database: Database, max_changes: int) -> list[str]:
    """Truncates the feeds of indexes. An index that is further behind is rebuilt: see `facts.changes_after`."""
    with database.read() as connection:
        long_feeds = select(changes.c.dataset_id).group_by(changes.c.dataset_id).having(func.count() > 2 * max_changes)
        long = connection.execute(
            select(projects.c.name, datasets.c.id)
            .join(projects, projects.c.id == datasets.c.project_id)
            .where(datasets.c.id.in_(long_feeds))
        ).all()
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
    return [f"removed {removed} changes that indexes have taken in"] if removed else []


def _prune_queries(database: Database) -> list[str]:
    """Removes queries without receipts and opinions."""
    with database.read() as connection:
        owners = connection.execute(
            select(projects.c.name, datasets.c.id).join(projects, projects.c.id == datasets.c.project_id)
        ).all()
    removed = 0
    for project, dataset in owners:
        with database.read(project) as connection:
            newest = connection.execute(
                select(func.max(receipt_rows.c.at)).where(receipt_rows.c.dataset_id == dataset)
            ).scalar()
            shown = select(receipt_rows.c.query_id).where(receipt_rows.c.dataset_id == dataset)
            unused = connection.execute(
                select(queries.c.id).where(queries.c.dataset_id == dataset, queries.c.id.not_in(shown), _NO_EVENT)
            ).scalars()
            candidates = list(unused)
        for start in range(0, len(candidates), BATCH_SIZE):
            with database.write(project, durable=False) as connection:
                # Waits for recalls that are writing a receipt.
                connection.execute(select(datasets.c.id).where(datasets.c.id == dataset).with_for_update())
                since = select(receipt_rows.c.query_id).where(
                    receipt_rows.c.dataset_id == dataset, receipt_rows.c.at >= (newest or 0) - DAY
                )
                result = connection.execute(
                    delete(queries).where(
                        queries.c.id.in_(candidates[start : start + BATCH_SIZE]), queries.c.id.not_in(since), _NO_EVENT
                    )
                )
                removed += result.rowcount
    return [f"removed {removed} questions that nothing refers to"] if removed else []


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
        return partitions.ensure_next(connection, now)


def table_sizes(connection: Connection) -> list[TableSize]:
    """All tables, the largest first."""
    result = connection.execute(dialect_of(connection).table_sizes)
    sizes = {row.name: int(row.bytes) for row in result}
    row_counts = {
        name: connection.execute(select(func.count()).select_from(metadata.tables[name])).scalar_one()
        for name in sizes
        if name in metadata.tables
    }
    tables = [TableSize(table=name, rows=row_counts.get(name), bytes=size) for name, size in sizes.items()]
    return sorted(tables, key=lambda table: -table.bytes)


def retire(connection: Connection, dataset: int, at: int, limit: int, digests: Sequence[bytes] = ()) -> int:
    """Removes facts that have expired, with what was learnt from them: those with these digests, and at most `limit`
    others. Returns how many expired facts that were. The ledger stays, as when they are forgotten."""
    due = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.expires_at <= at)
    oldest = list(connection.execute(due.order_by(facts.c.expires_at).limit(limit)).scalars())
    if not oldest:
        return 0
    # Fewer if they have many tags or links.
    expired = set(removal_runs(connection, oldest)[0])
    for run in batches(digests):
        expired.update(connection.execute(due.where(facts.c.digest.in_(run))).scalars())
    remove(connection, dataset, sorted(expired))
    return len(expired)
