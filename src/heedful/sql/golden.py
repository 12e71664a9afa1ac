"""`.golden_examples`: questions with the SQL that answers them, confirmed by a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.errors import Conflict, Forbidden, Invalid, NotFound, quoted
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import GoldenExample, limits
from heedful.protocols.sql import PAGE_LIMIT, UNCHANGED, Examples, GoldenExamplesProtocol
from heedful.sql import checks
from heedful.sql.connector_access import dialect_of
from heedful.sql.example_files import read
from heedful.sql.reuse.asker import Person, may_be_personal, person
from heedful.sql.reuse.evidence import study
from heedful.sql.reuse.ownership import has_unnamed_values
from heedful.sql.sandbox.pool import Checked
from heedful.sql.space import ExecutionSpace
from heedful.sql.statements import question_digest
from heedful.storage.executions import golden
from heedful.storage.executions.golden import NewExample
from heedful.storage.feedback import SqlFeedbacks, counted_opinions
from heedful.storage.rows import AnyRow, batches

Rows = list[Mapping[str, Any]]

IMPORT_BATCH_SIZE = 50
"""Examples that one transaction stores."""


class GoldenExamples(GoldenExamplesProtocol):
    """Question and SQL pairs of one project. A question has one example on a connector."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def create(
        self, question: str, sql_query: str, *, connector_id: str | None = None, audience: str | None = None
    ) -> GoldenExample:
        return self._added(question, sql_query, connector_id, "given", None, audience)

    def promote(self, execution_id: str, *, question: str | None = None, audience: str | None = None) -> GoldenExample:
        values.identifier("execution_id", execution_id)
        with self._space.workspace.read() as connection:
            project = self._space.project(connection)
            row = self._space.execution(connection, execution_id)
            execution_id = row.id
            opinions = SqlFeedbacks.on(connection, project).active("execution", [execution_id])
        positive, negative = counted_opinions(opinions, self._space.trust.authors_to_veto)
        if not positive or negative:
            raise Conflict(
                f"execution {execution_id} has no positive feedback, or has negative feedback",
                code="not_proven",
                field="execution_id",
                value=execution_id,
                remedy="Rate it first: feedback.create_positive(execution_id=…); visitors don't count",
            )
        text = row.question if question is None else question
        if text is None:
            raise Invalid(
                f"execution {execution_id} has no question", field="question", remedy="Pass the question it answers"
            )
        whom = values.audience(audience) or row.audience
        if row.audience not in (None, whom):
            raise Conflict(
                f"execution {execution_id} is for the audience {row.audience!r}, not for {audience!r}",
                field="audience",
                value=audience,
                remedy="Leave audience out to keep it, or add an example: golden_examples.create(…, audience='…')",
            )
        return self._added(text, row.sql_query, row.connector_id, "promoted", execution_id, whom)

    def get(self, example_id: str) -> GoldenExample:
        with self._space.workspace.read() as connection:
            return _to_example(_row(self._space, connection, example_id))

    def list(self, *, connector_id: str | None = None, skip: int = 0, limit: int = PAGE_LIMIT) -> Examples:
        checks.whole_number("skip", skip, 0, limits.MAX_SKIP)
        checks.whole_number("limit", limit, 1, limits.MAX_LIST)
        with self._space.workspace.read() as connection:
            connector = None if connector_id is None else self._space.connector(connection, connector_id).id
            rows = golden.list_examples(connection, self._space.project(connection), connector, skip, limit)
        return [_to_example(row) for row in rows]

    def update(
        self,
        example_id: str,
        *,
        question: str = UNCHANGED,
        sql_query: str = UNCHANGED,
        audience: str | None = UNCHANGED,
        if_match: str | None = None,
    ) -> GoldenExample:
        with self._space.workspace.read() as connection:
            row = _row(self._space, connection, example_id)
            connector = self._space.connector(connection, row.connector_id)
        # Only changed fields are written, so that concurrent updates of other fields survive.
        changed: dict[str, Any] = {}
        if question is not UNCHANGED:
            vector = self._space.vector(checks.question("question", question))
            changed |= {"question": question, "vector": vector}
        if sql_query is not UNCHANGED:
            checked = _checked(self._space, sql_query, connector)
            changed |= {"sql_query": checked.sql, "template": checked.template}
        if audience is not UNCHANGED:
            changed["audience"] = values.audience(audience)
        with self._space.workspace.write() as connection:
            row = _row(self._space, connection, example_id)
            values.if_match(if_match, _to_example(row))
            new = _changed(row, changed)
            changed["digest"] = question_digest(new.question, new.audience)
            other = golden.find_by_question(connection, row.connector_id, changed["digest"])
            if other is not None and other.id != row.id:
                raise _already_exists(new.question, other.id)
            if "vector" in changed:
                changed["model_id"] = self._space.embedded(connection, changed["vector"])
            golden.change(connection, row.id, **changed, updated_at=self._space.now())
            return _to_example(_row(self._space, connection, example_id))

    def delete(self, example_id: str) -> bool:
        with self._space.workspace.write() as connection:
            row = _row(self._space, connection, example_id)
            return golden.remove(connection, row.project_id, row.id)

    def import_file(self, path: str | Path, *, connector_id: str | None = None) -> Examples:
        return self._imported(list(read(Path(path))), connector_id, f"{path}, record ")

    def import_examples(self, examples: Iterable[Mapping[str, Any]], *, connector_id: str | None = None) -> Examples:
        if isinstance(examples, str | Mapping) or not isinstance(examples, Iterable):
            raise Invalid(
                f"examples must be a list of mappings, got {quoted(examples)}", field="examples", value=examples
            )
        rows = list(examples)
        values.batch("examples", rows, limits.MAX_LIST)
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise Invalid(f"an example must be a mapping, got {quoted(row)}", field=f"examples[{index}]", value=row)
        return self._imported(rows, connector_id, "example ")

    def _imported(self, rows: Rows, connector_id: str | None, label: str) -> Examples:
        with self._space.workspace.read() as connection:
            connector = self._space.connector(connection, connector_id)
        ready = []
        for number, row in enumerate(rows, start=1):
            try:
                question = checks.question("question", row.get("question"))
                sql = _checked(self._space, row.get("sql_query"), connector)
                new = _Whom(question, sql.sql, values.audience(row.get("audience") or None))
                ready.append((new, sql))
            except (Invalid, Forbidden) as error:
                raise type(error)(
                    f"{label}{number}: {error.message}",
                    code=error.code,
                    field=f"examples[{number - 1}].{error.field}",
                    value=error.value,
                    remedy=error.remedy or "Nothing was imported",
                ) from error
        imported = []
        # An import that is interrupted can be repeated: an example that is there is replaced.
        for run in batches([(new, sql, self._space.vector(new.question)) for new, sql in ready], IMPORT_BATCH_SIZE):
            with self._space.workspace.write() as connection:
                imported += [
                    _put(self._space, connection, connector, new, sql, vector, "imported", None, replace=True)
                    for new, sql, vector in run
                ]
        return imported

    def _added(
        self,
        question: str,
        sql_query: str,
        connector_id: str | None,
        origin: str,
        execution_id: str | None,
        audience: str | None,
    ) -> GoldenExample:
        add = prepare(self._space, question, sql_query, connector_id, origin, execution_id, audience)
        with self._space.workspace.write() as connection:
            return add(connection)


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
    whom = values.audience(audience)
    with space.workspace.read() as connection:
        connector = space.connector(connection, connector_id)
    sql = _checked(space, sql_query, connector)
    new = _Whom(question, sql.sql, whom)
    if origin == "promoted":
        _check_audience(space, connector, new)
    vector = space.vector(question)
    return lambda connection: _put(space, connection, connector, new, sql, vector, origin, execution_id, replace=False)


class _Whom(NamedTuple):
    """A question with its SQL, and whom it is for."""

    question: str
    sql_query: str
    audience: str | None


def _changed(row: AnyRow, changed: Mapping[str, Any]) -> _Whom:
    return _Whom(*(changed.get(name, getattr(row, name)) for name in _Whom._fields))


def _check_audience(space: ExecutionSpace, connector: AnyRow, new: _Whom) -> None:
    """Refuses to make an example for everybody of what was right for one person: "my orders" with their name in it."""
    if new.audience is not None or not may_be_personal(new.question):
        return
    with space.proofs.reading(connector, space.target, space.workspace.read) as known:
        seen = known.evidence.values
    about = study(new.question, new.sql_query, dialect_of(connector), seen, from_stored(space.now()))
    if person(new.question, seen) is Person.ASKER and about is not None and has_unnamed_values(about):
        raise Invalid(
            f"{quoted(new.question)} is in the first person, and the SQL has a value that it doesn't name: "
            "an example for everybody would answer each of them with one person's rows",
            code="personal_example",
            field="audience",
            value=new.audience,
            remedy="Say whom it is for: audience='…', or pass a question that names the person",
        )


def _put(
    space: ExecutionSpace,
    connection: Connection,
    connector: AnyRow,
    example: _Whom,
    sql: Checked,
    vector: bytes,
    origin: str,
    execution_id: str | None,
    *,
    replace: bool,
) -> GoldenExample:
    now = space.now()
    digest = question_digest(example.question, example.audience)
    existing = golden.find_by_question(connection, connector.id, digest)
    if existing is not None and not replace:
        raise _already_exists(example.question, existing.id)
    if existing is not None:
        golden.change(connection, existing.id, sql_query=sql.sql, template=sql.template, updated_at=now)
        return _to_example(_row(space, connection, existing.id))
    new = NewExample(
        id=new_id(),
        project_id=connector.project_id,
        connector_id=connector.id,
        question=example.question,
        digest=digest,
        model_id=space.embedded(connection, vector),
        vector=vector,
        sql_query=sql.sql,
        template=sql.template,
        origin=origin,
        execution_id=execution_id,
        audience=example.audience,
        created_at=now,
        updated_at=now,
    )
    golden.add(connection, new)
    return _to_example(_row(space, connection, new.id))


def _row(space: ExecutionSpace, connection: Connection, example_id: str) -> AnyRow:
    values.identifier("example_id", example_id)
    row = golden.get(connection, space.project(connection), example_id)
    if row is None:
        raise NotFound(
            f"no golden example {example_id!r} in project {space.workspace.project!r}",
            field="example_id",
            value=example_id,
        )
    return row


def _checked(space: ExecutionSpace, sql_query: Any, connector: AnyRow) -> Checked:
    """Checks that SQL is read-only and has no parameters."""
    query = space.queries.check(checks.sql(sql_query), dialect_of(connector))
    if query.parameters:
        raise Invalid(
            f"sql_query has parameters without values: {', '.join(query.parameters)}",
            field="sql_query",
            value=query.sql[:200],
            remedy="Write the values of this question into the SQL; other values are bound automatically",
        )
    return query


def _already_exists(question: str, example_id: str) -> Conflict:
    return Conflict(
        f"{question!r} already has a golden example, {example_id}",
        field="question",
        value=question,
        remedy="Update that one, or delete it first",
    )


def _to_example(row: AnyRow) -> GoldenExample:
    return GoldenExample(
        id=row.id,
        connector_id=row.connector_id,
        question=row.question,
        sql_query=row.sql_query,
        origin=row.origin,
        execution_id=row.execution_id,
        audience=row.audience,
        created_at=from_stored(row.created_at),
        updated_at=from_stored(row.updated_at),
    )
