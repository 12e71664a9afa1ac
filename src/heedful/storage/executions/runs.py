"""Executions: SQL that ran, with its result; hits of the cache, and what the cache decided."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, exists, func, insert, select, update

from heedful.ids import new_id
from heedful.model import Metadata
from heedful.storage import external_ids, tallies
from heedful.storage.executions import connectors
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import executions, feedbacks, projects
from heedful.storage.schema import external_ids as external_id_rows
from heedful.storage.schema_insight import decisions

RUN, HIT, RATED_HIT = 0, 1, 2
"""The values of `executions.hit`: no hit, a hit, and a hit with other values that was rated as right."""

CANDIDATES = (RUN, RATED_HIT)
"""The kinds that may answer another question."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """An execution about to be stored."""

    id: str
    project_id: int
    connector_id: str
    question: str | None
    model_id: int | None
    vector: bytes | None
    sql_query: str
    parameters: Metadata
    template: bytes
    result: Metadata
    row_count: int
    truncated: int
    seconds: float
    origin: str
    derived_from: str | None
    message_id: str | None
    fingerprint: str | None
    data_version: str | None
    at: int
    result_digest: bytes
    hit: int = RUN
    repeats_id: str | None = None
    result_id: str | None = None
    external_id: str | None = None


def add(connection: Connection, new: NewRun) -> None:
    values = {name: getattr(new, name) for name in NewRun.__slots__ if name != "external_id"}
    connection.execute(insert(executions), values)
    if new.external_id is not None:
        external_ids.add(connection, new.project_id, "execution", new.external_id, new.id, new.at)
    if new.message_id is not None and _is_rated(connection, new.message_id):
        connectors.bump_revisions(connection, [new.connector_id])


def get(connection: Connection, project: int, execution_id: str) -> AnyRow | None:
    """An execution by its id or its external id."""
    row = connection.execute(
        _select_with_results().where(executions.c.project_id == project, executions.c.id == execution_id)
    ).first()
    if row is not None:
        return row
    target = external_ids.target(connection, project, "execution", execution_id)
    return None if target is None else get(connection, project, target)


def list_runs(
    connection: Connection, project: int, connector: str | None, after: int | None, limit: int
) -> list[AnyRow]:
    """The newest first; `number` is the place in the list."""
    statement = (
        _select_with_results().add_columns(executions.c.seq.label("number")).where(executions.c.project_id == project)
    )
    if connector is not None:
        statement = statement.where(executions.c.connector_id == connector)
    if after is not None:
        statement = statement.where(executions.c.seq < after)
    return list(connection.execute(statement.order_by(executions.c.seq.desc()).limit(limit)))


def of_message(connection: Connection, project: int, message_id: str) -> list[AnyRow]:
    statement = _select_with_results().where(executions.c.project_id == project, executions.c.message_id == message_id)
    return list(connection.execute(statement.order_by(executions.c.seq)))


def remove(connection: Connection, project: int, execution_id: str) -> bool:
    move_result(connection, execution_id)
    connectors.bump_revisions(connection, connectors.connectors_of_target(connection, "execution", execution_id))
    external_ids.remove(connection, [execution_id])
    with tallies.changing(connection, project, targets=[execution_id]):
        result = connection.execute(
            delete(executions).where(executions.c.project_id == project, executions.c.id == execution_id)
        )
    return bool(result.rowcount)


def move_result(connection: Connection, execution_id: str, without: Sequence[str] = ()) -> None:
    """Moves the stored result of an execution to another one that shares it, before it is deleted."""
    heir = connection.execute(
        select(executions.c.id)
        .where(executions.c.result_id == execution_id, executions.c.id.not_in(without))
        .order_by(executions.c.seq.desc())
        .limit(1)
    ).scalar()
    if heir is None:
        return
    result = connection.execute(select(executions.c.result).where(executions.c.id == execution_id)).scalar()
    connection.execute(update(executions).where(executions.c.id == heir).values(result=result, result_id=None))
    connection.execute(update(executions).where(executions.c.result_id == execution_id).values(result_id=heir))


def _select_with_results() -> Select[Any]:
    """Executions with their results, whichever execution stores them."""
    holder = executions.alias("kept")
    result = case((executions.c.result_id.is_(None), executions.c.result), else_=holder.c.result)
    others = [column for column in executions.c if column.name != "result"]
    same = (holder.c.id == executions.c.result_id) & (holder.c.project_id == executions.c.project_id)
    named = (external_id_rows.c.target_id == executions.c.id) & (external_id_rows.c.kind == "execution")
    return (
        select(*others, result.label("result"), external_id_rows.c.external_id)
        .outerjoin(holder, same)
        .outerjoin(external_id_rows, named)
    )


def _is_rated(connection: Connection, message_id: str) -> bool:
    conditions = (feedbacks.c.target_id == message_id, feedbacks.c.target_type == "message", feedbacks.c.active == 1)
    return connection.execute(select(feedbacks.c.id).where(*conditions).limit(1)).first() is not None


_ABOUT = (
    executions.c.seq,
    executions.c.id,
    executions.c.question,
    executions.c.sql_query,
    executions.c.parameters,
    executions.c.template,
    executions.c.truncated,
    executions.c.fingerprint,
    executions.c.data_version,
    executions.c.origin,
    executions.c.at,
    executions.c.last_hit_id,
    executions.c.used_at,
)


def by_seq(connection: Connection, seqs: Sequence[int]) -> dict[int, AnyRow]:
    """The columns of candidates that a decision needs, by number; without results."""
    return {
        row.seq: row
        for run in batches(seqs)
        for row in connection.execute(
            select(*_ABOUT).where(executions.c.seq.in_(run), executions.c.hit.in_(CANDIDATES))
        )
    }


def by_id(connection: Connection, ids: Collection[str]) -> dict[str, AnyRow]:
    """The same of any executions, by id."""
    return {
        row.id: row
        for run in batches(sorted(ids))
        for row in connection.execute(select(*_ABOUT).where(executions.c.id.in_(run)))
    }


def seqs(connection: Connection, ids: Collection[str]) -> list[int]:
    """The numbers of executions."""
    return [
        seq
        for run in batches(sorted(ids))
        for seq in connection.execute(select(executions.c.seq).where(executions.c.id.in_(run))).scalars()
    ]


def newest(connection: Connection, connector: str) -> int:
    """The number of the newest execution of a connector that is no hit; 0 if there is none."""
    statement = select(func.max(executions.c.seq)).where(
        executions.c.connector_id == connector, executions.c.hit == RUN
    )
    return int(connection.execute(statement).scalar() or 0)


def questions_after(connection: Connection, connector: str, seq: int) -> list[AnyRow]:
    """Executions of a connector after a number, with a question, without hits: seq, question, model_id,
    vector."""
    return _select_runs(connection, connector, RUN, executions.c.seq > seq)


def rated_hits(connection: Connection, connector: str, known_seqs: Collection[int]) -> list[AnyRow]:
    """The same of hits that have become candidates, except known ones."""
    new = [seq for seq in _numbers(connection, connector, RATED_HIT) if seq not in known_seqs]
    return [
        row for run in batches(new) for row in _select_runs(connection, connector, RATED_HIT, executions.c.seq.in_(run))
    ]


def candidates(connection: Connection, connector: str) -> list[int]:
    """The numbers of all executions of a connector that may answer another question."""
    return [seq for hit in CANDIDATES for seq in _numbers(connection, connector, hit)]


def _numbers(connection: Connection, connector: str, hit: int) -> Sequence[int]:
    conditions = executions.c.connector_id == connector, executions.c.hit == hit
    return connection.execute(select(executions.c.seq).where(*conditions)).scalars().all()


def set_vectors(connection: Connection, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
    for seq, vector in vectors:
        values: dict[str, Any] = {"model_id": model, "vector": vector}
        connection.execute(update(executions).where(executions.c.seq == seq).values(values))


def _select_runs(connection: Connection, connector: str, hit: int, condition: ColumnElement[bool]) -> list[AnyRow]:
    return list(
        connection.execute(
            select(executions.c.seq, executions.c.question, executions.c.model_id, executions.c.vector)
            .where(
                executions.c.connector_id == connector,
                executions.c.hit == hit,
                executions.c.question.is_not(None),
                condition,
            )
            .order_by(executions.c.seq)
        )
    )


OF_CACHE = ("served", "rebound")
"""The origins of what the cache runs."""


def as_stored(connection: Connection, new: NewRun) -> NewRun:
    """The run as it is stored: as a hit if the cache ran known SQL, perhaps with other values."""
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


def counted_target(connection: Connection, target_type: str, target_id: str) -> str:
    """The id of the execution or message that an opinion about a target counts for."""
    if target_type != "execution":
        return target_id
    repeated_id = connection.execute(select(executions.c.repeats_id).where(executions.c.id == target_id)).scalar()
    return target_id if repeated_id is None else str(repeated_id)


def follow_ratings(connection: Connection, execution_id: str) -> None:
    """Makes a hit with other values a candidate if somebody other than an anonymous visitor rated it as right, else a
    mere hit."""
    is_right = exists().where(
        feedbacks.c.target_id == execution_id,
        feedbacks.c.target_type == "execution",
        feedbacks.c.rating == "up",
        feedbacks.c.active == 1,
        feedbacks.c.author_trust != "anonymous",
    )
    rated_right = connection.execute(select(is_right)).scalar()
    connection.execute(
        update(executions)
        .where(executions.c.id == execution_id, executions.c.hit != RUN, executions.c.repeats_id.is_(None))
        .values(hit=RATED_HIT if rated_right else HIT)
    )


def hit_owners(connection: Connection, before: int) -> list[tuple[str, int]]:
    """The projects with hits older than a time, by name and number."""
    old = select(executions.c.project_id).where(executions.c.hit == HIT, executions.c.at < before)
    rows = connection.execute(select(projects.c.name, projects.c.id).where(projects.c.id.in_(old)))
    return [(row.name, row.id) for row in rows]


def prune_hits(connection: Connection, project: int, before: int, limit: int) -> int:
    """Removes up to `limit` unrated hits of a project that are older than a time; returns how many."""
    rated = exists().where(
        feedbacks.c.target_id.in_([executions.c.id, executions.c.message_id]),
        feedbacks.c.about_id.is_not(None),
        feedbacks.c.active == 1,
    )
    old = executions.c.hit == HIT, executions.c.at < before
    statement = select(executions.c.id).where(of_project(connection, executions.c.project_id, project), *old, ~rated)
    ids = list(connection.execute(statement.limit(limit)).scalars())
    holders = select(executions.c.result_id).where(executions.c.result_id.in_(ids)).distinct()
    for holder in connection.execute(holders).scalars().all():
        move_result(connection, holder, without=ids)
    with tallies.changing(connection, project, targets=ids):
        connection.execute(delete(executions).where(executions.c.id.in_(ids)))
    return len(ids)


def _repeated(connection: Connection, new: NewRun, source: str) -> AnyRow | None:
    """The candidate that a served run repeats: the one it was served from, or what ran for the same golden example."""
    # One after the other: joined by OR, SQLite would look at all executions of the connector.
    for origin in (
        executions.c.id == source,
        and_(executions.c.derived_from == source, executions.c.hit.in_(CANDIDATES)),
    ):
        rows = connection.execute(
            select(executions.c.id, executions.c.repeats_id, executions.c.parameters)
            .where(
                origin,
                executions.c.connector_id == new.connector_id,
                executions.c.sql_query == new.sql_query,
                executions.c.fingerprint == new.fingerprint,
                executions.c.question.is_not(None),
            )
            .order_by(executions.c.seq)
        )
        if found := next((row for row in rows if row.parameters == new.parameters), None):
            return found
    return None


def _used(connection: Connection, execution_id: str, **values: object) -> None:
    connection.execute(update(executions).where(executions.c.id == execution_id).values(**values))


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision to store: about the candidate `candidate_id`, resulting in the execution `execution_id`."""

    project_id: int
    connector_id: str
    question: str
    decision: str
    gate: str
    reason: str
    similarity: float | None
    candidate_id: str | None
    execution_id: str | None
    at: int


def add_decision(connection: Connection, new: NewDecision) -> None:
    connection.execute(insert(decisions).values(id=new_id(), **asdict(new)))


def refused_questions(connection: Connection, project: int, connector: str, since: int, limit: int) -> list[AnyRow]:
    """What was asked of a connector and refused, or like nothing that is stored: question, gate of the last time,
    times. The most frequent first."""
    times, last = func.count().label("times"), func.max(decisions.c.seq).label("last")
    refused = (
        select(decisions.c.question, times, last)
        .where(
            decisions.c.project_id == project,
            decisions.c.connector_id == connector,
            decisions.c.at >= since,
            decisions.c.decision.in_(("refuse", "nothing")),
        )
        .group_by(decisions.c.question)
        .subquery()
    )
    return list(
        connection.execute(
            select(refused.c.question, refused.c.times, decisions.c.gate)
            .join(decisions, decisions.c.seq == refused.c.last)
            .order_by(refused.c.times.desc(), refused.c.last.desc())
            .limit(limit)
        )
    )
