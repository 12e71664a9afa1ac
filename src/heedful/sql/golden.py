"""`.golden_examples`: questions with the SQL that answers them, confirmed by a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.api.parameters import UNCHANGED
from heedful.clock import from_stored, new_id
from heedful.errors import Conflict, Forbidden, Invalid, NotFound, quoted
from heedful.ledger.opinions import SqlFeedbacks, counted_opinions
from heedful.model import GoldenExample, limits
from heedful.sql import records
from heedful.sql.example_files import read
from heedful.sql.records import dialect_of
from heedful.sql.reuse.ownership import Person, has_unnamed_values, may_be_personal, person
from heedful.sql.reuse.study import study
from heedful.sql.sandbox.pool import Checked
from heedful.sql.space import ExecutionSpace
from heedful.sql.statements import question_digest
from heedful.storage.rows import AnyRow, batches, to_model

IMPORT_BATCH_SIZE = 50
"""Examples that one transaction stores."""


def create_example(
    space: ExecutionSpace, question: str, sql_query: str, connector_id: str | None, audience: str | None
) -> GoldenExample:
    add = prepare(space, question, sql_query, connector_id, "given", None, audience)
    with space.workspace.write() as connection:
        return add(connection)


def promote_example(
    space: ExecutionSpace, execution_id: str, question: str | None, audience: str | None
) -> GoldenExample:
    with space.workspace.read() as connection:
        project = space.project(connection)
        row = space.execution(connection, execution_id)
        execution_id = row.id
        opinions = SqlFeedbacks.on(connection, project).active("execution", [execution_id])
    positive, negative = counted_opinions(opinions, space.trust.authors_to_veto)
    if not positive or negative:
        message = f"execution {execution_id} has no positive feedback, or has negative feedback"
        remedy = "Rate it first: feedback.create_positive(execution_id=…); visitors don't count"
        raise Conflict(message, code="not_proven", field="execution_id", value=execution_id, remedy=remedy)
    text = row.question if question is None else question
    if text is None:
        remedy = "Pass the question it answers"
        raise Invalid(f"execution {execution_id} has no question", field="question", remedy=remedy)
    whom = audience or row.audience
    if row.audience not in (None, whom):
        message = f"execution {execution_id} is for the audience {row.audience!r}, not for {audience!r}"
        remedy = "Leave audience out to keep it, or add an example: golden_examples.create(…, audience='…')"
        raise Conflict(message, field="audience", value=audience, remedy=remedy)
    add = prepare(space, text, row.sql_query, row.connector_id, "promoted", execution_id, whom)
    with space.workspace.write() as connection:
        return add(connection)


def get_example(space: ExecutionSpace, example_id: str) -> GoldenExample:
    with space.workspace.read() as connection:
        return to_model(GoldenExample, _row(space, connection, example_id))


def list_examples(space: ExecutionSpace, connector_id: str | None, skip: int, limit: int) -> list[GoldenExample]:
    with space.workspace.read() as connection:
        connector = None if connector_id is None else space.connector(connection, connector_id).id
        rows = records.list_examples(connection, space.project(connection), connector, skip, limit)
    return [to_model(GoldenExample, row) for row in rows]


def update_example(
    space: ExecutionSpace, example_id: str, question: str, sql_query: str, audience: str | None, if_match: str | None
) -> GoldenExample:
    with space.workspace.read() as connection:
        row = _row(space, connection, example_id)
        connector = space.connector(connection, row.connector_id)
    # Only changed fields are written, so that concurrent updates of other fields survive.
    changed: dict[str, Any] = {}
    if question is not UNCHANGED:
        vector = space.vector(checks.question("question", question))
        changed |= {"question": question, "vector": vector}
    if sql_query is not UNCHANGED:
        checked = _checked(space, sql_query, connector)
        changed |= {"sql_query": checked.sql, "template": checked.template}
    if audience is not UNCHANGED:
        changed["audience"] = audience
    with space.workspace.write() as connection:
        row = _row(space, connection, example_id)
        checks.if_match(if_match, to_model(GoldenExample, row))
        text = changed.get("question", row.question)
        changed["digest"] = question_digest(text, changed.get("audience", row.audience))
        other = records.example_for(connection, row.connector_id, changed["digest"])
        if other is not None and other.id != row.id:
            raise _already_exists(text, other.id)
        if "vector" in changed:
            changed["model_id"] = space.embedded(connection, changed["vector"])
        records.change_example(connection, row.id, **changed, updated_at=space.now())
        return to_model(GoldenExample, _row(space, connection, example_id))


def delete_example(space: ExecutionSpace, example_id: str) -> bool:
    with space.workspace.write() as connection:
        row = _row(space, connection, example_id)
        return records.remove_example(connection, row.project_id, row.id)


def import_file(space: ExecutionSpace, path: str | Path, connector_id: str | None) -> list[GoldenExample]:
    return _imported(space, list(read(Path(path))), connector_id, f"{path}, record ")


def import_examples(
    space: ExecutionSpace, examples: Iterable[Mapping[str, Any]], connector_id: str | None
) -> list[GoldenExample]:
    if isinstance(examples, str | Mapping) or not isinstance(examples, Iterable):
        raise Invalid.got("examples", "must be a list of mappings", examples)
    rows = list(examples)
    checks.batch("examples", rows, limits.MAX_LIST)
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise Invalid(f"an example must be a mapping, got {quoted(row)}", field=f"examples[{index}]", value=row)
    return _imported(space, rows, connector_id, "example ")


def _imported(
    space: ExecutionSpace, rows: Sequence[Mapping[str, Any]], connector_id: str | None, label: str
) -> list[GoldenExample]:
    connector = space.read_connector(connector_id)
    ready = []
    for number, row in enumerate(rows, start=1):
        try:
            question = checks.question("question", row.get("question"))
            sql = _checked(space, row.get("sql_query"), connector)
            ready.append((question, sql, checks.audience("audience", row.get("audience") or None)))
        except (Invalid, Forbidden) as error:
            message, field = f"{label}{number}: {error.message}", f"examples[{number - 1}].{error.field}"
            remedy = error.remedy or "Nothing was imported"
            raise type(error)(message, code=error.code, field=field, value=error.value, remedy=remedy) from error
    imported = []
    # An import that is interrupted can be repeated: an example that is there is replaced.
    examples = [_new(space, question, sql, "imported", None, audience) for question, sql, audience in ready]
    for run in batches(examples, IMPORT_BATCH_SIZE):
        with space.workspace.write() as connection:
            imported += [_put(space, connection, connector, new, replace=True) for new in run]
    return imported


def prepare(
    space: ExecutionSpace,
    question: str,
    sql_query: str,
    connector_id: str | None,
    origin: str,
    execution_id: str | None,
    audience: str | None = None,
) -> Callable[[Connection], GoldenExample]:
    """Checks and embeds an example now; returns the function that adds it in an open transaction."""
    checks.question("question", question)
    connector = space.read_connector(connector_id)
    sql = _checked(space, sql_query, connector)
    if origin == "promoted" and audience is None:
        _check_impersonal(space, connector, question, sql.sql)
    new = _new(space, question, sql, origin, execution_id, audience)
    return lambda connection: _put(space, connection, connector, new, replace=False)


def _new(
    space: ExecutionSpace, question: str, sql: Checked, origin: str, execution_id: str | None, audience: str | None
) -> dict[str, Any]:
    """The columns of an example that is about to be stored."""
    about = {"question": question, "vector": space.vector(question), "audience": audience}
    return about | {"sql_query": sql.sql, "template": sql.template, "origin": origin, "execution_id": execution_id}


def _check_impersonal(space: ExecutionSpace, connector: AnyRow, question: str, sql: str) -> None:
    """Refuses to make an example for everybody of what was right for one person: "my orders" with their name in it."""
    if not may_be_personal(question):
        return
    with space.proofs.reading(connector, space.target, space.workspace.read) as known:
        seen = known.evidence.values
    about = study(question, sql, dialect_of(connector), seen, from_stored(space.now()))
    if person(question, seen) is Person.ASKER and about is not None and has_unnamed_values(about):
        message = (
            f"{quoted(question)} is in the first person, and the SQL has a value that it doesn't name: "
            "an example for everybody would answer each of them with one person's rows"
        )
        remedy = "Say whom it is for: audience='…', or pass a question that names the person"
        raise Invalid(message, code="personal_example", field="audience", remedy=remedy)


def _put(
    space: ExecutionSpace, connection: Connection, connector: AnyRow, new: dict[str, Any], *, replace: bool
) -> GoldenExample:
    now = space.now()
    digest = question_digest(new["question"], new["audience"])
    existing = records.example_for(connection, connector.id, digest)
    if existing is not None:
        if not replace:
            raise _already_exists(new["question"], existing.id)
        changes = {"sql_query": new["sql_query"], "template": new["template"], "updated_at": now}
        records.change_example(connection, existing.id, **changes)
        return to_model(GoldenExample, _row(space, connection, existing.id))
    example_id = new_id()
    places = {"id": example_id, "project_id": connector.project_id, "connector_id": connector.id, "digest": digest}
    model = space.embedded(connection, new["vector"])
    records.add_example(connection, **new, **places, model_id=model, created_at=now, updated_at=now)
    return to_model(GoldenExample, _row(space, connection, example_id))


def _row(space: ExecutionSpace, connection: Connection, example_id: str) -> AnyRow:
    row = records.get_example(connection, space.project(connection), example_id)
    if row is None:
        raise NotFound.in_project(space.workspace.project, "golden example", example_id, "example_id")
    return row


def _checked(space: ExecutionSpace, sql_query: Any, connector: AnyRow) -> Checked:
    """Checks that SQL is read-only and has no parameters."""
    query = space.queries.check(checks.sql(sql_query), dialect_of(connector))
    if query.parameters:
        message = f"sql_query has parameters without values: {', '.join(query.parameters)}"
        remedy = "Write the values of this question into the SQL; other values are bound automatically"
        raise Invalid(message, field="sql_query", value=query.sql[:200], remedy=remedy)
    return query


def _already_exists(question: str, example_id: str) -> Conflict:
    message = f"{question!r} already has a golden example, {example_id}"
    return Conflict(message, field="question", value=question, remedy="Update that one, or delete it first")
