"""Records of executions with their results, of decisions of the cache, of connectors and of golden examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Select, bindparam, case, delete, func, insert, literal_column, select, update

from heedful.clock import new_id
from heedful.ledger import proven_sql
from heedful.model import Metadata
from heedful.storage import external_ids
from heedful.storage.rows import AnyRow, Direct, OneOf, Prepared, unpacked
from heedful.storage.schema import connectors, decisions, executions, feedbacks, golden_examples, models
from heedful.storage.schema import external_ids as external_id_rows
from heedful.storage.vectors import ModelRow

_RUN, _EXAMPLE, _CONNECTOR, _DECISION = executions.c, golden_examples.c, connectors.c, decisions.c

CANDIDATES = (proven_sql.RUN, proven_sql.RATED_HIT)
"""The kinds that may answer another question."""

SENSITIVE = "sensitive_columns"
"""The option of a connector that lists columns whose values are never read to recognise them in questions."""


def dialect_of(connector: AnyRow) -> str:
    """The SQL dialect of a connector's database."""
    dialect: str = connector.options["dialect"]
    return dialect


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
    hit: int = proven_sql.RUN
    repeats_id: str | None = None
    result_id: str | None = None
    external_id: str | None = None


_STORED = [name for name in NewRun.__slots__ if name != "external_id"]
_ADD_RUN = Prepared(insert(executions), _STORED)


def add_run(connection: Connection, new: NewRun) -> None:
    values = {name: getattr(new, name) for name in _STORED}
    written = {name: orjson.dumps(values[name]).decode() for name in ("parameters", "result")}
    Direct.on(connection).run(_ADD_RUN, **values | written)
    if new.external_id is not None:
        external_ids.add(connection, new.project_id, "execution", new.external_id, new.id, new.at)
    if new.message_id is not None:
        about = feedbacks.c.target_id == new.message_id, feedbacks.c.target_type == "message", feedbacks.c.active == 1
        if connection.execute(select(feedbacks.c.id).where(*about).limit(1)).first() is not None:
            proven_sql.mark_rated(connection, "execution", new.id)


def get_run(connection: Connection, project: int, execution_id: str) -> AnyRow | None:
    """An execution by its id or its external id."""
    row = connection.execute(_select_with_results().where(_RUN.project_id == project, _RUN.id == execution_id)).first()
    if row is not None:
        return row
    target = external_ids.target(connection, project, "execution", execution_id)
    return None if target is None else get_run(connection, project, target)


def list_runs(
    connection: Connection, project: int, connector: str | None, after: int | None, limit: int
) -> list[AnyRow]:
    """The newest first; `number` is the place in the list."""
    statement = _select_with_results().add_columns(_RUN.seq.label("number")).where(_RUN.project_id == project)
    if connector is not None:
        statement = statement.where(_RUN.connector_id == connector)
    if after is not None:
        statement = statement.where(_RUN.seq < after)
    return list(connection.execute(statement.order_by(_RUN.seq.desc()).limit(limit)))


def runs_of_message(connection: Connection, project: int, message_id: str) -> list[AnyRow]:
    statement = _select_with_results().where(_RUN.project_id == project, _RUN.message_id == message_id)
    return list(connection.execute(statement.order_by(_RUN.seq)))


def remove_runs(connection: Connection, project: int, connector_id: str, ids: Sequence[str]) -> None:
    if ids:
        proven_sql.bump_revisions(connection, [connector_id])
        proven_sql.remove_executions(connection, project, ids)


def _select_with_results() -> Select[Any]:
    """Executions with their results, whichever execution stores them."""
    holder = executions.alias("kept")
    result = case((_RUN.result_id.is_(None), _RUN.result), else_=holder.c.result)
    others = [column for column in executions.c if column.name != "result"]
    same = (holder.c.id == _RUN.result_id) & (holder.c.project_id == _RUN.project_id)
    named = (external_id_rows.c.target_id == _RUN.id) & (external_id_rows.c.kind == "execution")
    return (
        select(*others, result.label("result"), external_id_rows.c.external_id)
        .outerjoin(holder, same)
        .outerjoin(external_id_rows, named)
    )


class CandidateRow(NamedTuple):
    """An execution as a decision needs it. It changes with the revision of its connector alone."""

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


class LastUse(NamedTuple):
    """When an execution was last used, and its newest hit with the same values."""

    used_at: int | None
    last_hit_id: str | None


_CANDIDATE = [_RUN[name] for name in CandidateRow._fields]
_IS_CANDIDATE = _RUN.hit != proven_sql.HIT
_BY_SEQ = Prepared(select(*_CANDIDATE).where(OneOf(_RUN.seq), _IS_CANDIDATE, _RUN.question.is_not(None)))
_SEQS = Prepared(select(_RUN.id, _RUN.seq).where(OneOf(_RUN.id)))
_USAGE = Prepared(select(_RUN.seq, _RUN.used_at, _RUN.last_hit_id).where(OneOf(_RUN.seq)))
_RESULTS = Prepared(select(_RUN.id, _RUN.at, _RUN.data_version, _RUN.truncated).where(OneOf(_RUN.id)))


def candidates_by_seq(connection: Connection, seqs: Sequence[int]) -> dict[int, CandidateRow]:
    """The candidates with these numbers, by number; without results."""
    return {row[0]: _candidate(row) for row in Direct.on(connection).run_for(_BY_SEQ, seqs)}


def seqs_of(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """The numbers of executions, by id."""
    return dict(Direct.on(connection).run_for(_SEQS, ids))


def usage_of(connection: Connection, seqs: Sequence[int]) -> dict[int, LastUse]:
    """How executions were used, by number."""
    return {seq: LastUse(*used) for seq, *used in Direct.on(connection).run_for(_USAGE, seqs)}


def stored_results(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, str | None, bool]]:
    """When executions ran, on which version of the data, and whether their results were truncated, by id."""
    rows = Direct.on(connection).run_for(_RESULTS, ids)
    return {execution_id: (at, version, bool(truncated)) for execution_id, at, version, truncated in rows}


def _candidate(row: Sequence[Any]) -> CandidateRow:
    return CandidateRow(*row[: len(CandidateRow._fields)])._replace(parameters=unpacked(row[4]))


_QUESTIONS = select(*_CANDIDATE, _RUN.model_id, _RUN.vector).where(
    _RUN.connector_id == bindparam("connector"), _RUN.question.is_not(None)
)
_QUESTIONS_AFTER = Prepared(
    _QUESTIONS.where(_RUN.hit == proven_sql.RUN, _RUN.seq > bindparam("after")).order_by(_RUN.seq)
)
_RATED_HITS = Prepared(_QUESTIONS.where(_RUN.hit == proven_sql.RATED_HIT, OneOf(_RUN.seq)))
_RATED_AFTER = Prepared(
    select(_RUN.id, _RUN.seq, _RUN.hit).where(
        _RUN.connector_id == bindparam("connector"), _RUN.revision > bindparam("revision")
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
    """An execution whose opinions have changed."""

    id: str
    seq: int
    hit: int


def rated_after(connection: Connection, connector: str, revision: int) -> list[RatedRow]:
    """The executions of a connector whose opinions have changed since a revision."""
    rows = Direct.on(connection).run(_RATED_AFTER, connector=connector, revision=revision)
    return [RatedRow(*row) for row in rows]


def rated_hit_seqs(connection: Connection, connector: str) -> Sequence[int]:
    """The numbers of a connector's hits that have become candidates."""
    return _numbers(connection, connector, proven_sql.RATED_HIT)


def rated_hits(connection: Connection, connector: str, seqs: Sequence[int]) -> list[QuestionRow]:
    """Those of these numbers, as `questions_after` has others."""
    rows = Direct.on(connection).run_for(_RATED_HITS, seqs, connector=connector)
    return [QuestionRow(_candidate(row), *row[-2:]) for row in rows]


def candidate_seqs(connection: Connection, connector: str) -> list[int]:
    """The numbers of all executions of a connector that may answer another question."""
    return [seq for hit in CANDIDATES for seq in _numbers(connection, connector, hit)]


def _numbers(connection: Connection, connector: str, hit: int) -> Sequence[int]:
    conditions = _RUN.connector_id == connector, _RUN.hit == hit
    return connection.execute(select(_RUN.seq).where(*conditions)).scalars().all()


_SET_VECTOR = (
    update(executions).where(_RUN.seq == bindparam("of")).values(model_id=bindparam("model"), vector=bindparam("made"))
)


def set_vectors(connection: Connection, vectors: Sequence[tuple[int, int, bytes]]) -> None:
    """Stores vectors of questions, given as (model, number, vector)."""
    connection.execute(
        _SET_VECTOR, [{"model": model, "of": number, "made": vector} for model, number, vector in vectors]
    )


OF_CACHE = ("served", "rebound")
"""The origins of what the cache runs."""


def as_stored(connection: Connection, new: NewRun) -> NewRun:
    """The run as it is stored: as a hit if the cache ran known SQL, perhaps with other values."""
    if new.origin not in OF_CACHE or new.derived_from is None:
        return new
    direct, hit = Direct.on(connection), replace(new, hit=proven_sql.HIT, vector=None, model_id=None)
    if new.origin == "served":
        repeated = _repeated(direct, new, new.derived_from)
        if repeated is None:
            return new
        hit = replace(hit, repeats_id=repeated)
        direct.run(_SERVED, execution=repeated, hit_id=new.id, now=new.at)
    else:
        direct.run(_REBOUND, execution=new.derived_from, now=new.at)
    holder = direct.run(_HOLDER, connector=new.connector_id, digest=new.result_digest)
    return replace(hit, result={}, result_id=holder[0][0]) if holder else hit


_USED = update(executions).where(_RUN.id == bindparam("execution"))
_SERVED = Prepared(_USED.values(last_hit_id=bindparam("hit_id"), used_at=bindparam("now")))
_REBOUND = Prepared(_USED.values(used_at=bindparam("now")))
_SAME_RESULT = _RUN.connector_id == bindparam("connector"), _RUN.result_digest == bindparam("digest")
_HOLDER = Prepared(select(_RUN.id).where(*_SAME_RESULT, _RUN.result_id.is_(None)).limit(literal_column("1")))


def newest_runs(connection: Connection, connector_id: str, limit: int) -> list[str]:
    """The ids of up to `limit` executions of a connector, the newest first."""
    newest = select(_RUN.id).where(_RUN.connector_id == connector_id).order_by(_RUN.seq.desc())
    return list(connection.execute(newest.limit(limit)).scalars())


_SAME = select(_RUN.seq, _RUN.connector_id, _RUN.id, _RUN.repeats_id, _RUN.parameters).where(
    _RUN.sql_query == bindparam("sql"),
    _RUN.fingerprint.is_not_distinct_from(bindparam("fingerprint")),
    _RUN.audience.is_not_distinct_from(bindparam("audience")),
    _RUN.question.is_not(None),
)
# One after the other, sorted and compared with the connector here: otherwise SQLite looks at all of its executions.
_SOURCES = (
    Prepared(_SAME.where(_RUN.id == bindparam("source"))),
    Prepared(_SAME.where(_RUN.derived_from == bindparam("source"), _IS_CANDIDATE)),
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


_ADD_DECISION = Prepared(insert(decisions), [column.name for column in decisions.c if column.name != "seq"])


def add_decision(connection: Connection, **values: Any) -> None:
    """Stores a decision about the candidate `candidate_id`, which resulted in the execution `execution_id`."""
    Direct.on(connection).run(_ADD_DECISION, id=new_id(), **values)


def refused_questions(connection: Connection, project: int, connector: str, since: int, limit: int) -> list[AnyRow]:
    """Questions to a connector that were refused, or like nothing that is stored: question, gate of the last time,
    times. The most frequent first."""
    times, last = func.count().label("times"), func.max(_DECISION.seq).label("last")
    refused = (
        select(_DECISION.question, times, last)
        .where(
            _DECISION.project_id == project,
            _DECISION.connector_id == connector,
            _DECISION.at >= since,
            _DECISION.decision.in_(("refuse", "nothing")),
        )
        .group_by(_DECISION.question)
        .subquery()
    )
    return list(
        connection.execute(
            select(refused.c.question, refused.c.times, _DECISION.gate)
            .join(decisions, _DECISION.seq == refused.c.last)
            .order_by(refused.c.times.desc(), refused.c.last.desc())
            .limit(limit)
        )
    )


def add_connector(
    connection: Connection, project: int, connector_id: str, name: str, url: str, options: Metadata, at: int
) -> None:
    named = {"id": connector_id, "project_id": project, "name": name}
    connection.execute(insert(connectors), named | {"url": url, "options": options, "created_at": at})


_OF_PROJECT = select(connectors).where(_CONNECTOR.project_id == bindparam("project"))
_CONNECTOR_BY_ID = _OF_PROJECT.where(_CONNECTOR.id == bindparam("name"))
_CONNECTOR_BY_NAME = _OF_PROJECT.where(_CONNECTOR.name == bindparam("name"))


def get_connector(connection: Connection, project: int, id_or_name: str) -> AnyRow | None:
    about = {"project": project, "name": id_or_name}
    return connection.execute(_CONNECTOR_BY_ID, about).first() or connection.execute(_CONNECTOR_BY_NAME, about).first()


def list_connectors(connection: Connection, project: int) -> list[AnyRow]:
    return list(connection.execute(_OF_PROJECT.order_by(_CONNECTOR.seq), {"project": project}))


def all_connectors(connection: Connection) -> list[AnyRow]:
    """The connectors of all projects."""
    return list(connection.execute(select(connectors).order_by(_CONNECTOR.seq)))


def change_connector(connection: Connection, connector_id: str, **values: Any) -> None:
    connection.execute(update(connectors).where(_CONNECTOR.id == connector_id).values(**values))


def remove_connector(connection: Connection, connector_id: str) -> None:
    """Removes a connector without executions, with its golden examples."""
    connection.execute(delete(golden_examples).where(_EXAMPLE.connector_id == connector_id))
    connection.execute(delete(connectors).where(_CONNECTOR.id == connector_id))


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """A connector as a connection sees it."""

    revision: int
    """It grows with each change of what is proven or wrong on the connector, and of what is stored of executions that
    were there before; -1 if the connector was deleted."""
    full_revision: int
    """The last revision with changes beyond what people say of the executions that have its number."""
    newest: int
    """The number of its newest execution that is no hit; 0 if there is none."""
    model: ModelRow | None
    """The active model; None before the first vector."""


_STATE = Prepared(
    select(
        _CONNECTOR.revision,
        _CONNECTOR.full_revision,
        select(func.max(_RUN.seq)).where(_RUN.connector_id == _CONNECTOR.id, _RUN.hit == 0).scalar_subquery(),
        models.c.id,
        models.c.name,
        models.c.dimensions,
    )
    .select_from(connectors.outerjoin(models, models.c.active == 1))
    .where(_CONNECTOR.id == bindparam("connector"))
)


def read_state(connection: Connection, connector: str) -> ConnectorState:
    rows = Direct.on(connection).run(_STATE, connector=connector)
    if not rows:
        return ConnectorState(-1, -1, 0, None)
    revision, full_revision, newest, *model = rows[0]
    active = None if model[0] is None else ModelRow(*model)
    return ConnectorState(int(revision), int(full_revision), int(newest or 0), active)


def add_example(connection: Connection, **values: Any) -> None:
    connection.execute(insert(golden_examples), values)
    proven_sql.bump_revisions(connection, [values["connector_id"]])


_EXAMPLES = select(golden_examples)


def get_example(connection: Connection, project: int, example_id: str) -> AnyRow | None:
    return connection.execute(_EXAMPLES.where(_EXAMPLE.project_id == project, _EXAMPLE.id == example_id)).first()


def example_for(connection: Connection, connector: str, digest: bytes) -> AnyRow | None:
    """The example of a connector for exactly this question."""
    return connection.execute(_EXAMPLES.where(_EXAMPLE.connector_id == connector, _EXAMPLE.digest == digest)).first()


def examples_of(connection: Connection, connector: str, audience: str | None) -> list[AnyRow]:
    """The examples of a connector for an audience, or for all."""
    conditions = _EXAMPLE.connector_id == connector, _EXAMPLE.audience.is_not_distinct_from(audience)
    return list(connection.execute(_EXAMPLES.where(*conditions).order_by(_EXAMPLE.seq)))


def example_of_execution(connection: Connection, connector: str, execution_id: str) -> AnyRow | None:
    """The example that was made of an execution."""
    conditions = _EXAMPLE.connector_id == connector, _EXAMPLE.execution_id == execution_id
    return connection.execute(_EXAMPLES.where(*conditions).order_by(_EXAMPLE.seq)).first()


def examples_of_another_model(connection: Connection, connector: str, model: int) -> list[AnyRow]:
    """The examples of a connector with vectors of another model."""
    conditions = _EXAMPLE.connector_id == connector, _EXAMPLE.model_id.is_distinct_from(model)
    return list(connection.execute(_EXAMPLES.where(*conditions)))


def list_examples(connection: Connection, project: int, connector: str | None, skip: int, limit: int) -> list[AnyRow]:
    """The newest first."""
    statement = _EXAMPLES.where(_EXAMPLE.project_id == project)
    if connector is not None:
        statement = statement.where(_EXAMPLE.connector_id == connector)
    return list(connection.execute(statement.order_by(_EXAMPLE.seq.desc()).offset(skip).limit(limit)))


def change_example(connection: Connection, example_id: str, **values: Any) -> None:
    connection.execute(update(golden_examples).where(_EXAMPLE.id == example_id).values(**values))
    proven_sql.bump_revisions(connection, _connectors_of(connection, example_id))


def set_example_vector(connection: Connection, example_id: str, model: int, vector: bytes) -> None:
    """Stores a vector of another model; nothing else changes."""
    connection.execute(update(golden_examples).where(_EXAMPLE.id == example_id).values(model_id=model, vector=vector))


def remove_example(connection: Connection, project: int, example_id: str) -> bool:
    proven_sql.bump_revisions(connection, _connectors_of(connection, example_id))
    conditions = _EXAMPLE.project_id == project, _EXAMPLE.id == example_id
    return bool(connection.execute(delete(golden_examples).where(*conditions)).rowcount)


def _connectors_of(connection: Connection, example_id: str) -> set[str]:
    return set(connection.execute(select(_EXAMPLE.connector_id).where(_EXAMPLE.id == example_id)).scalars())
