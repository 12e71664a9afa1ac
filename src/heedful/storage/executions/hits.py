"""Hits: what the cache ran again because it was proven.

A hit can be looked at and rated like any execution, and what is said of it counts for the execution it repeats. It is
no candidate itself, so that a query that is used a lot does not crowd out the others. A hit with other values repeats
nothing that is stored; it becomes a candidate when somebody says that it is right.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, and_, delete, exists, or_, select, update

from heedful.storage import tallies
from heedful.storage.executions.runs import CANDIDATES, HIT, RATED_HIT, RUN, NewRun, hand_over
from heedful.storage.rows import AnyRow, of_project
from heedful.storage.schema import executions, feedbacks, projects

OF_CACHE = ("served", "rebound")
"""The origins of what the cache runs."""


def as_stored(connection: Connection, new: NewRun) -> NewRun:
    """A run as it is to be stored: a hit, if the cache ran what is stored already or the same with other values."""
    if new.origin not in OF_CACHE or new.derived_from is None:
        return new
    if new.origin == "served":
        source = _repeated(connection, new, new.derived_from)
        if source is None:
            return new
        hit = replace(new, hit=HIT, repeats_id=source.repeats_id or source.id, vector=None, model_id=None)
        _used(connection, str(hit.repeats_id), last_hit_id=new.id, used_at=new.at)
    else:
        hit = replace(new, hit=HIT, vector=None, model_id=None)
        _used(connection, new.derived_from, used_at=new.at)
    holder = connection.execute(
        select(executions.c.id)
        .where(
            executions.c.connector_id == new.connector_id,
            executions.c.result_digest == new.result_digest,
            executions.c.result_id.is_(None),
        )
        .limit(1)
    ).scalar()
    return hit if holder is None else replace(hit, result={}, result_id=holder)


def counts_for(connection: Connection, target_type: str, target_id: str) -> str:
    """What an opinion about a target counts for."""
    if target_type != "execution":
        return target_id
    found = connection.execute(select(executions.c.repeats_id).where(executions.c.id == target_id)).scalar()
    return target_id if found is None else str(found)


def follow_ratings(connection: Connection, execution_id: str) -> None:
    """Makes a hit with other values a candidate if somebody, who is no anonymous visitor, says that it is right, else a
    mere hit."""
    is_right = exists().where(
        feedbacks.c.target_id == execution_id,
        feedbacks.c.target_type == "execution",
        feedbacks.c.rating == "up",
        feedbacks.c.standing == 1,
        feedbacks.c.author_standing != "anonymous",
    )
    found = connection.execute(select(is_right)).scalar()
    connection.execute(
        update(executions)
        .where(executions.c.id == execution_id, executions.c.hit != RUN, executions.c.repeats_id.is_(None))
        .values(hit=RATED_HIT if found else HIT)
    )


def owners(connection: Connection, before: int) -> list[tuple[str, int]]:
    """The projects that have hits from before a moment, by name and number."""
    old = select(executions.c.project_id).where(executions.c.hit == HIT, executions.c.at < before)
    rows = connection.execute(select(projects.c.name, projects.c.id).where(projects.c.id.in_(old)))
    return [(row.name, row.id) for row in rows]


def prune(connection: Connection, project: int, before: int, limit: int) -> int:
    """Removes hits of a project from before a moment that nobody rated, at most `limit`; returns how many."""
    rated = exists().where(
        feedbacks.c.target_id.in_([executions.c.id, executions.c.message_id]), feedbacks.c.about_id.is_not(None)
    )
    old = executions.c.hit == HIT, executions.c.at < before
    statement = select(executions.c.id).where(of_project(connection, executions.c.project_id, project), *old, ~rated)
    ids = list(connection.execute(statement.limit(limit)).scalars())
    holders = select(executions.c.result_id).where(executions.c.result_id.in_(ids)).distinct()
    for holder in connection.execute(holders).scalars().all():
        hand_over(connection, holder, without=ids)
    with tallies.changing(connection, project, targets=ids):
        connection.execute(delete(executions).where(executions.c.id.in_(ids)))
    return len(ids)


def _repeated(connection: Connection, new: NewRun, source: str) -> AnyRow | None:
    """The candidate that a served run repeats: the one it was served from, or what ran for the same golden example."""
    found = connection.execute(
        select(executions.c.id, executions.c.repeats_id, executions.c.parameters)
        .where(
            or_(
                executions.c.id == source,
                and_(executions.c.derived_from == source, executions.c.hit.in_(CANDIDATES)),
            ),
            executions.c.connector_id == new.connector_id,
            executions.c.sql_query == new.sql_query,
            executions.c.fingerprint == new.fingerprint,
            executions.c.question.is_not(None),
        )
        .order_by(executions.c.seq)
    )
    return next((row for row in found if row.parameters == new.parameters), None)


def _used(connection: Connection, execution_id: str, **values: object) -> None:
    connection.execute(update(executions).where(executions.c.id == execution_id).values(**values))
