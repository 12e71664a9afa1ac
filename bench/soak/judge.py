"""What must be true of a store after a year: of its scores, of what it keeps, and of the servers that ran all year."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, exists, func, select, text
from sqlalchemy.sql.selectable import FromClause

import heedful
from bench.soak.fleet import KEPT, Fleet
from bench.soak.traffic import QUESTIONS
from heedful.clock import DAY, to_stored
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.jobs.queue import ENDED
from heedful.ledger.proven_sql import HIT
from heedful.storage.opening import open_store
from heedful.storage.schema import (
    audit,
    changes,
    decisions,
    events,
    executions,
    feedbacks,
    jobs,
    logins,
    outbox,
    queries,
    receipts,
    requests,
)
from heedful.testing import WordEmbedder
from heedful.transfer import verify

COMPARED = 40
"""Questions that all are asked."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a store is."""

    bytes: int
    opinions: int
    """In the ledger, without those that were retracted."""


def sizes(store: str) -> Sizes:
    """The size of a store now."""
    with closing(open_store(store, create=False)) as database, database.read() as connection:
        if connection.dialect.name == "postgresql":
            taken = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
        else:
            pages, size = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")
            )
            taken = pages * size
        given = _count(connection, events, events.c.kind.in_(["signal", "feedback"]))
        return Sizes(int(taken), given - _count(connection, events, events.c.kind == "retraction"))


def wrongs(store: str, fleet: Fleet, clients: Sequence[RemoteHeedful]) -> list[str]:
    """What is not as it should be, in words. Nobody calls any more, and the worker has done what is due."""
    result = [f"{each.what}: {each.count}, such as {each.examples}" for each in verify(store).differences]
    with heedful.open(store, clock=fleet.clock, embedding=WordEmbedder(), worker=False) as fresh:
        result += [f"{check.name}: {check.detail}" for check in fresh.doctor(repair=False) if not check.ok]
        for place, client in enumerate(clients, start=1):
            result += [f"server {place} answers {each}" for each in _unlike(client, fresh)]
    with closing(open_store(store, create=False)) as database, database.read() as connection:
        result += [f"kept: {each}" for each in _kept(connection, to_stored(fleet.clock()))]
    return result


def _unlike(client: RemoteHeedful, fresh: heedful.Heedful) -> Iterator[str]:
    """Questions to which a server that ran all year has another answer than one that has just read the store."""
    for question in QUESTIONS[:COMPARED]:
        for boosted in (False, True):
            mine = [(hit.fact_id, hit.score) for hit in client.recall(question, boost_by_usefulness=boosted)]
            theirs = [(hit.fact_id, hit.score) for hit in fresh.recall(question, boost_by_usefulness=boosted)]
            same = [one for one, _ in mine] == [other for other, _ in theirs]
            if not same or not all(math.isclose(a[1], b[1], abs_tol=1e-5) for a, b in zip(mine, theirs, strict=True)):
                yield f"{question!r} with {mine}, not {theirs}"


def _kept(connection: Connection, now: int) -> Iterator[str]:
    """What the settings say should be gone."""
    for what, table, column, days, more in (
        ("receipts", receipts, receipts.c.at, KEPT.receipt_days, None),
        ("decisions", decisions, decisions.c.at, KEPT.decision_days, None),
        ("results for retries", requests, requests.c.at, KEPT.idempotency_days, None),
        ("entries of the audit trail", audit, audit.c.at, KEPT.audit_days, None),
        ("alerts", outbox, outbox.c.created_at, KEPT.alert_days, None),
        ("jobs", jobs, jobs.c.finished_at, KEPT.job_days, jobs.c.status.in_(ENDED)),
        ("hits", executions, executions.c.at, KEPT.hit_days, and_(executions.c.hit == HIT, ~_RATED)),
        ("logins", logins, logins.c.expires_at, 2, None),
    ):
        every = _count(connection, table)
        old = _count(connection, table, column < now - days * DAY, *([] if more is None else [more]))
        if old:
            yield f"{old} {what} of {every} are older than {days} days"
        # What was never there shows nothing.
        if not every:
            yield f"no {what} at all"
    lines = _count(connection, changes)
    if lines > 2 * KEPT.change_lines:
        yield f"{lines} changes"
    unused = _count(connection, queries, ~exists().where(receipts.c.query_id == queries.c.id), ~_JUDGED)
    if unused:
        yield f"{unused} questions that nothing refers to"


_RATED = exists().where(feedbacks.c.target_id == executions.c.id, feedbacks.c.active == 1)
_JUDGED = exists().where(events.c.query_id == queries.c.id)


def _count(connection: Connection, table: FromClause, *where: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(table).where(*where)).scalar_one())
