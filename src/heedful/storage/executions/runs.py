"""Executions: SQL that ran, with its result; hits of the cache, and what the cache decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Select, bindparam, case, delete, exists, func, insert, literal_column, select, update

from heedful.ids import new_id
from heedful.model import Metadata
from heedful.storage import external_ids, tallies
from heedful.storage.executions import connectors
from heedful.storage.rows import AnyRow, Direct, Prepared, of_project, one_of, unpacked
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
    chat_session_id: str | None = None
    audience: str | None = None
    hit: int = RUN
    repeats_id: str | None = None
    result_id: str | None = None
    external_id: str | None = None


_STORED = [name for name in NewRun.__slots__ if name != "external_id"]
_ADD = Prepared(insert(executions), _STORED)


def add(connection: Connection, new: NewRun) -> None:
    values = {name: getattr(new, name) for name in _STORED}
    written = {name: orjson.dumps(values[name]).decode() for name in ("parameters", "result")}
    Direct.on(connection).run(_ADD, **values | written)
    if new.external_id is not None:
        external_ids.add(connection, new.project_id, "execution", new.external_id, new.id, new.at)
    if new.message_id is not None and _is_rated(connection, new.message_id):
        connectors.mark_rated(connection, "execution", new.id)


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


class CandidateRow(NamedTuple):
    """What a decision needs to know of an execution. It changes with the revision of its connector alone."""

    seq: int
    id: str
    question: str
    sql_query: str
    parameters: Metadata
    template: bytes
    truncated: int
    fingerprint: str | None
    data_version: str | None
    at: int
    message_id: str | None
    chat_session_id: str | None
    audience: str | None


class Usage(NamedTuple):
    """When an execution was last used, and its newest hit with the same values."""

    used_at: int | None
    last_hit_id: str | None


_CANDIDATE = [executions.c[name] for name in CandidateRow._fields]
_IS_CANDIDATE = executions.c.hit != HIT
_BY_SEQ = Prepared(
    select(*_CANDIDATE).where(one_of(executions.c.seq), _IS_CANDIDATE, executions.c.question.is_not(None))
)
_SEQS = Prepared(select(executions.c.id, executions.c.seq).where(one_of(executions.c.id)))
_USAGE = Prepared(
    select(executions.c.seq, executions.c.used_at, executions.c.last_hit_id).where(one_of(executions.c.seq))
)
_RESULTS = Prepared(
    select(executions.c.id, executions.c.at, executions.c.data_version, executions.c.truncated).where(
        one_of(executions.c.id)
    )
)


def by_seq(connection: Connection, seqs: Sequence[int]) -> dict[int, CandidateRow]:
    """The candidates with these numbers, by number; without results."""
    return {row[0]: _candidate(row) for row in Direct.on(connection).run_for(_BY_SEQ, seqs)}


def seqs(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """The numbers of executions, by id."""
    return dict(Direct.on(connection).run_for(_SEQS, ids))


def usage(connection: Connection, seqs: Sequence[int]) -> dict[int, Usage]:
    """How executions were used, by number."""
    return {seq: Usage(*used) for seq, *used in Direct.on(connection).run_for(_USAGE, seqs)}


def results(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, str | None, bool]]:
    """When executions ran, on which version of the data, and whether their results were truncated, by id."""
    rows = Direct.on(connection).run_for(_RESULTS, ids)
    return {execution_id: (at, version, bool(truncated)) for execution_id, at, version, truncated in rows}


def _candidate(row: Sequence[Any]) -> CandidateRow:
    values = dict(zip(CandidateRow._fields, row, strict=False))
    return CandidateRow(**values | {"parameters": unpacked(row[4])})


_QUESTIONS = select(*_CANDIDATE, executions.c.model_id, executions.c.vector).where(
    executions.c.connector_id == bindparam("connector"), executions.c.question.is_not(None)
)
_QUESTIONS_AFTER = Prepared(
    _QUESTIONS.where(executions.c.hit == RUN, executions.c.seq > bindparam("after")).order_by(executions.c.seq)
)
_RATED_HITS = Prepared(_QUESTIONS.where(executions.c.hit == RATED_HIT, one_of(executions.c.seq)))
_RATED_AFTER = Prepared(
    select(executions.c.id, executions.c.seq, executions.c.hit).where(
        executions.c.connector_id == bindparam("connector"), executions.c.revision > bindparam("revision")
    )
)


class QuestionRow(NamedTuple):
    """A candidate with the vector of its question, and the model that made it."""

    candidate: CandidateRow
    model_id: int | None
    vector: bytes | None


def questions_after(connection: Connection, connector: str, seq: int) -> list[QuestionRow]:
    """Executions of a connector after a number that have a question and are no hits, by number."""
    rows = Direct.on(connection).run(_QUESTIONS_AFTER, connector=connector, after=seq)
    return [QuestionRow(_candidate(row), *row[-2:]) for row in rows]


class RatedRow(NamedTuple):
    """An execution of which people say something else than before."""

    id: str
    seq: int
    hit: int


def rated_after(connection: Connection, connector: str, revision: int) -> list[RatedRow]:
    """The executions of a connector of which people say something else since a revision."""
    rows = Direct.on(connection).run(_RATED_AFTER, connector=connector, revision=revision)
    return [RatedRow(*row) for row in rows]


def rated_hit_seqs(connection: Connection, connector: str) -> Sequence[int]:
    """The numbers of a connector's hits that have become candidates."""
    return _numbers(connection, connector, RATED_HIT)


def rated_hits(connection: Connection, connector: str, seqs: Sequence[int]) -> list[QuestionRow]:
    """Those of these numbers, as `questions_after` has others."""
    rows = Direct.on(connection).run_for(_RATED_HITS, seqs, connector=connector)
    return [QuestionRow(_candidate(row), *row[-2:]) for row in rows]


def candidates(connection: Connection, connector: str) -> list[int]:
    """The numbers of all executions of a connector that may answer another question."""
    return [seq for hit in CANDIDATES for seq in _numbers(connection, connector, hit)]


def _numbers(connection: Connection, connector: str, hit: int) -> Sequence[int]:
    conditions = executions.c.connector_id == connector, executions.c.hit == hit
    return connection.execute(select(executions.c.seq).where(*conditions)).scalars().all()


_SET_VECTOR = (
    update(executions)
    .where(executions.c.seq == bindparam("of"))
    .values(model_id=bindparam("model"), vector=bindparam("made"))
)


def set_vectors(connection: Connection, vectors: Sequence[tuple[int, int, bytes]]) -> None:
    """Stores vectors of questions, given as (model, number, vector)."""
    connection.execute(_SET_VECTOR, [dict(zip(("model", "of", "made"), each, strict=True)) for each in vectors])


OF_CACHE = ("served", "rebound")
"""The origins of what the cache runs."""


def as_stored(connection: Connection, new: NewRun) -> NewRun:
    """The run as it is stored: as a hit if the cache ran known SQL, perhaps with other values."""
    if new.origin not in OF_CACHE or new.derived_from is None:
        return new
    direct = Direct.on(connection)
    if new.origin == "served":
        repeated = _repeated(direct, new, new.derived_from)
        if repeated is None:
            return new
        hit = replace(new, hit=HIT, repeats_id=repeated, vector=None, model_id=None)
        direct.run(_SERVED, execution=repeated, hit_id=new.id, now=new.at)
    else:
        hit = replace(new, hit=HIT, vector=None, model_id=None)
        direct.run(_REBOUND, execution=new.derived_from, now=new.at)
    holder = direct.run(_HOLDER, connector=new.connector_id, digest=new.result_digest)
    return replace(hit, result={}, result_id=holder[0][0]) if holder else hit


_USED = update(executions).where(executions.c.id == bindparam("execution"))
_SERVED = Prepared(_USED.values(last_hit_id=bindparam("hit_id"), used_at=bindparam("now")))
_REBOUND = Prepared(_USED.values(used_at=bindparam("now")))
_HOLDER = Prepared(
    select(executions.c.id)
    .where(
        executions.c.connector_id == bindparam("connector"),
        executions.c.result_digest == bindparam("digest"),
        executions.c.result_id.is_(None),
    )
    .limit(literal_column("1"))
)


def counted_target(connection: Connection, target_type: str, target_id: str) -> str:
    """The id of the execution or message that an opinion about a target counts for."""
    if target_type != "execution":
        return target_id
    repeated_id = connection.execute(select(executions.c.repeats_id).where(executions.c.id == target_id)).scalar()
    return target_id if repeated_id is None else str(repeated_id)


def follow_ratings(connection: Connection, execution_id: str) -> None:
    """Makes a hit with other values a candidate if somebody other than a visitor rated it as right, else a
    mere hit."""
    is_right = exists().where(
        feedbacks.c.target_id == execution_id,
        feedbacks.c.target_type == "execution",
        feedbacks.c.rating == "up",
        feedbacks.c.active == 1,
        feedbacks.c.author_kind != "visitor",
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
    _remove_many(connection, project, ids)
    return len(ids)


def remove_newest(connection: Connection, project: int, connector_id: str, limit: int) -> int:
    """Removes up to `limit` executions of a connector, the newest first; returns how many."""
    newest = select(executions.c.id).where(executions.c.connector_id == connector_id).order_by(executions.c.seq.desc())
    ids = list(connection.execute(newest.limit(limit)).scalars())
    if ids:
        connectors.bump_revisions(connection, [connector_id])
        _remove_many(connection, project, ids)
    return len(ids)


def _remove_many(connection: Connection, project: int, ids: Sequence[str]) -> None:
    holders = select(executions.c.result_id).where(executions.c.result_id.in_(ids)).distinct()
    for holder in connection.execute(holders).scalars().all():
        move_result(connection, holder, without=ids)
    external_ids.remove(connection, ids)
    with tallies.changing(connection, project, targets=ids):
        connection.execute(delete(executions).where(executions.c.id.in_(ids)))


_SAME = select(
    executions.c.seq, executions.c.connector_id, executions.c.id, executions.c.repeats_id, executions.c.parameters
).where(
    executions.c.sql_query == bindparam("sql"),
    executions.c.fingerprint.is_not_distinct_from(bindparam("fingerprint")),
    executions.c.audience.is_not_distinct_from(bindparam("audience")),
    executions.c.question.is_not(None),
)
# One after the other, sorted and compared with the connector here: otherwise SQLite looks at all of its executions.
_SOURCES = (
    Prepared(_SAME.where(executions.c.id == bindparam("source"))),
    Prepared(_SAME.where(executions.c.derived_from == bindparam("source"), _IS_CANDIDATE)),
)


def _repeated(direct: Direct, new: NewRun, source: str) -> str | None:
    """The candidate that a served run repeats: the one it was served from, or what ran for the same audience and golden
    example. What an audience says of SQL that is everybody's counts for that audience alone."""
    for statement in _SOURCES:
        about = {"sql": new.sql_query, "fingerprint": new.fingerprint, "audience": new.audience}
        rows = direct.run(statement, **about, source=source)
        for _, connector, execution_id, repeats_id, parameters in sorted(rows, key=itemgetter(0)):
            if connector == new.connector_id and unpacked(parameters) == new.parameters:
                return str(repeats_id or execution_id)
    return None


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


_ADD_DECISION = Prepared(insert(decisions), ["id", *NewDecision.__slots__])


def add_decision(connection: Connection, new: NewDecision) -> None:
    values = {name: getattr(new, name) for name in NewDecision.__slots__}
    Direct.on(connection).run(_ADD_DECISION, id=new_id(), **values)


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
