"""What can be done about an item. Each fix is made ready first, and then done in one transaction with its event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from heedful.errors import Conflict, Invalid, NotFound
from heedful.memory import checks as values
from heedful.memory import supersede
from heedful.model import FIXES, Fix, Metadata
from heedful.review.cases import LoadedItem
from heedful.sql import golden
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import opinions, runs
from heedful.storage.executions.opinions import NewOpinion
from heedful.storage.rows import AnyRow

REQUIRED_ARGUMENTS: dict[Fix, tuple[str, ...]] = {
    "supersede": ("fact_id", "text"),
    "retract": ("event_id",),
    "teach": ("event_id", "text"),
    "block": ("execution_id",),
    "promote": ("execution_id", "question"),
    "add_example": ("question", "sql_query", "connector_id"),
}
OPTIONAL_ARGUMENTS = {
    ("promote", "question"),
    ("add_example", "question"),
    ("add_example", "connector_id"),
    ("teach", "text"),
}


@dataclass(frozen=True, slots=True)
class FixArguments:
    """The arguments of a fix."""

    fact_id: str | None = None
    text: str | None = None
    event_id: str | None = None
    execution_id: str | None = None
    question: str | None = None
    sql_query: str | None = None
    connector_id: str | None = None


class FixResult(NamedTuple):
    """What a fix came to."""

    body: Metadata
    """The ids of what it was done to, and of what it made."""
    kept: Metadata | None = None
    """What is needed to undo it."""


ApplyFix = Callable[[Connection], FixResult]


def check_arguments(action: Any, given: FixArguments) -> Fix:
    """The action, if it is one and has the arguments that it takes."""
    if action not in FIXES:
        raise Invalid(
            f"unknown action {action!r}", field="action", value=action, remedy=f"Use one of {', '.join(FIXES)}"
        )
    fix: Fix = action
    for name, value in asdict(given).items():
        if value is not None and name not in REQUIRED_ARGUMENTS[fix]:
            raise Invalid(
                f"{fix} does not take {name}",
                field=name,
                value=value,
                remedy=f"It takes {', '.join(REQUIRED_ARGUMENTS[fix])}",
            )
        if value is None and name in REQUIRED_ARGUMENTS[fix] and (fix, name) not in OPTIONAL_ARGUMENTS:
            raise Invalid(f"{fix} needs {name}", field=name, value=value, remedy=f"Pass {name}=…")
        if value is not None and name.endswith("_id"):
            values.identifier(name, value)
    return fix


def prepare(
    space: ExecutionSpace, seen: LoadedItem, fix: Fix, given: FixArguments, author: str | None, note: str | None
) -> ApplyFix:
    """What does a fix other than `retract` and `teach`."""
    if fix == "supersede":
        return _prepare_supersession(space, given, author)
    if fix == "block":
        return lambda connection: _block(space, connection, str(given.execution_id), author, note)
    if fix == "promote":
        return _prepare_promotion(space, given, author)
    question = given.question or seen.item.question
    if question is None:
        raise Invalid("the question is unknown", field="question", remedy="Pass the question")
    connector = given.connector_id
    if connector is None and seen.subject is not None:
        run, turn = seen.subject.run, seen.subject.turn
        connector = run.connector_id if run is not None else None if turn is None else turn.connector_id
    add = golden.prepare(space, question, given.sql_query or "", connector, "given", None)
    return lambda connection: FixResult({"example_id": add(connection).id})


def _prepare_supersession(space: ExecutionSpace, given: FixArguments, author: str | None) -> ApplyFix:
    correct = supersede.prepare(space.workspace, str(given.fact_id), given.text, None, author)

    def do(connection: Connection) -> FixResult:
        done = correct(connection)
        return FixResult({"fact_id": done.fact_id, "superseded_by": done.superseded_by, "event_id": done.event_id})

    return do


def _block(
    space: ExecutionSpace, connection: Connection, execution_id: str, author: str | None, note: str | None
) -> FixResult:
    row = _get_run(space, connection, execution_id)
    said = NewOpinion(execution_id, row.message_id, False, note, author)
    before = None if author is None else opinions.by_author(connection, row.project_id, said)
    if before is not None and before.rating == "down":
        raise Conflict(
            f"{author} already marked execution {execution_id} as wrong",
            field="execution_id",
            value=execution_id,
            remedy="It is blocked; there is nothing left to do",
        )
    body, kept = _give_opinion(space, connection, row.project_id, said, before)
    return FixResult({"execution_id": execution_id, **body}, kept)


def _prepare_promotion(space: ExecutionSpace, given: FixArguments, author: str | None) -> ApplyFix:
    execution_id = str(given.execution_id)
    with space.workspace.read() as connection:
        row = _get_run(space, connection, execution_id)
    question = given.question or row.question
    if question is None:
        raise Invalid(
            f"execution {execution_id} has no question", field="question", remedy="Pass the question it answers"
        )
    add = golden.prepare(space, question, row.sql_query, row.connector_id, "promoted", execution_id)

    def do(connection: Connection) -> FixResult:
        row = _get_run(space, connection, execution_id)
        about = opinions.about(connection, row.project_id, [execution_id]).get(execution_id, [])
        said = NewOpinion(execution_id, row.message_id, True, None, author)
        own = None if author is None else opinions.by_author(connection, row.project_id, said)
        others = [each for each in about if own is None or each.id != own.id]
        right, _ = opinions.counted_opinions(about, space.trust.authors_to_veto)
        _, wrong = opinions.counted_opinions(others, space.trust.authors_to_veto)
        if wrong:
            names = ", ".join(sorted({each.author or "somebody" for each in wrong}))
            raise Conflict(
                f"execution {execution_id} was marked as wrong by {names}",
                code="not_proven",
                field="execution_id",
                value=execution_id,
                remedy="Retract that feedback first, or add an example with other SQL",
            )
        body: Metadata = {}
        kept = None
        if not right or (own is not None and own.rating == "down"):
            body, kept = _give_opinion(space, connection, row.project_id, said, own)
        return FixResult({"execution_id": execution_id, "example_id": add(connection).id, **body}, kept)

    return do


def _give_opinion(
    space: ExecutionSpace, connection: Connection, project: int, said: NewOpinion, before: AnyRow | None
) -> tuple[Metadata, Metadata | None]:
    """Gives the reviewer's own opinion; what it replaces is kept."""
    if before is None:
        event = opinions.add(connection, project, said, None, space.now())
        return {"feedback_id": event, "event_id": event}, None
    opinions.replace(connection, project, before, said, space.now())
    now = opinions.by_author(connection, project, said)
    assert now is not None
    return {"feedback_id": now.id, "event_id": now.event_id}, opinions.snapshot(before)


def _get_run(space: ExecutionSpace, connection: Connection, execution_id: str) -> AnyRow:
    row = runs.get(connection, space.project(connection), execution_id)
    if row is None:
        raise NotFound(
            f"no execution {execution_id!r} in project {space.workspace.project!r}",
            field="execution_id",
            value=execution_id,
            remedy="executions.list(), or heedful executions list, shows them",
        )
    return row
