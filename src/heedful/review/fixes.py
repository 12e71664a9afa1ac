"""The fixes of an item. Each is prepared first, then applied in one transaction with its event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection

from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.memory import checks as values
from heedful.memory import supersede
from heedful.model import FIXES, Fix, Metadata
from heedful.review.cases import LoadedItem
from heedful.sql import golden
from heedful.sql.feedback import new_opinion, put
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import runs
from heedful.storage.feedback import SqlFeedbacks, counted_opinions
from heedful.storage.rows import AnyRow
from heedful.storage.sessions.base import FeedbackRow

REQUIRED_ARGUMENTS: dict[Fix, tuple[str, ...]] = {
    "supersede": ("fact_id", "text", "by"),
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
    ("supersede", "text"),
    ("supersede", "by"),
}


@dataclass(frozen=True, slots=True)
class FixArguments:
    """The arguments of a fix."""

    fact_id: str | None = None
    text: str | None = None
    by: str | None = None
    event_id: str | None = None
    execution_id: str | None = None
    question: str | None = None
    sql_query: str | None = None
    connector_id: str | None = None


ApplyFix = Callable[[Connection], Metadata]
"""Applies a fix; returns the ids of what it changed and created."""


def check_arguments(action: Any, arguments: FixArguments) -> Fix:
    """The action, after checking that it exists and has the right arguments."""
    if action not in FIXES:
        raise Invalid(
            f"unknown action {quoted(action)}", field="action", value=action, remedy=f"Use one of {', '.join(FIXES)}"
        )
    fix: Fix = action
    for name, value in asdict(arguments).items():
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
    space: ExecutionSpace, loaded: LoadedItem, fix: Fix, arguments: FixArguments, author: str | None, note: str | None
) -> ApplyFix:
    """Prepares a fix other than `retract` and `teach`."""
    if fix == "supersede":
        return _prepare_supersession(space, arguments, author)
    if fix == "block":
        return lambda connection: _block(space, connection, str(arguments.execution_id), author, note)
    if fix == "promote":
        return _prepare_promotion(space, arguments, author)
    question = arguments.question or loaded.item.question
    if question is None:
        raise Invalid("the question is unknown", field="question", remedy="Pass the question")
    connector = arguments.connector_id
    if connector is None and loaded.subject is not None:
        run, turn = loaded.subject.run, loaded.subject.turn
        connector = run.connector_id if run is not None else None if turn is None else turn.connector_id
    add = golden.prepare(space, question, arguments.sql_query or "", connector, "given", None)
    return lambda connection: {"example_id": add(connection).id}


def _prepare_supersession(space: ExecutionSpace, arguments: FixArguments, author: str | None) -> ApplyFix:
    correct = supersede.prepare(space.workspace, str(arguments.fact_id), arguments.text, arguments.by, author)

    def apply(connection: Connection) -> Metadata:
        result = correct(connection)
        return {"fact_id": result.fact_id, "superseded_by": result.superseded_by, "event_id": result.event_id}

    return apply


def _block(
    space: ExecutionSpace, connection: Connection, execution_id: str, author: str | None, note: str | None
) -> Metadata:
    row = _get_run(space, connection, execution_id)
    opinions = SqlFeedbacks.on(connection, row.project_id)
    own_opinions = [] if author is None else opinions.active_by(author, "execution", execution_id)
    if any(opinion.rating == "down" for opinion in own_opinions):
        raise Conflict(
            f"{author} already marked execution {execution_id} as wrong",
            field="execution_id",
            value=execution_id,
            remedy="It is blocked; there is nothing left to do",
        )
    new = new_opinion(execution_id, row.message_id, False, note, author, space.now())
    return {"execution_id": execution_id, **_store_opinion(opinions, new, own_opinions)}


def _prepare_promotion(space: ExecutionSpace, arguments: FixArguments, author: str | None) -> ApplyFix:
    execution_id = str(arguments.execution_id)
    with space.workspace.read() as connection:
        row = _get_run(space, connection, execution_id)
    question = arguments.question or row.question
    if question is None:
        raise Invalid(
            f"execution {execution_id} has no question", field="question", remedy="Pass the question it answers"
        )
    add = golden.prepare(space, question, row.sql_query, row.connector_id, "promoted", execution_id, row.audience)

    def apply(connection: Connection) -> Metadata:
        row = _get_run(space, connection, execution_id)
        opinions = SqlFeedbacks.on(connection, row.project_id)
        active = opinions.active("execution", [execution_id])
        own_opinions = [opinion for opinion in active if author is not None and opinion.author == author]
        right, _ = counted_opinions(active, space.trust.authors_to_veto)
        _, wrong = counted_opinions(
            [opinion for opinion in active if opinion not in own_opinions], space.trust.authors_to_veto
        )
        if wrong:
            names = ", ".join(sorted({opinion.author or "somebody" for opinion in wrong}))
            raise Conflict(
                f"execution {execution_id} was marked as wrong by {names}",
                code="not_proven",
                field="execution_id",
                value=execution_id,
                remedy="Retract that feedback first, or add an example with other SQL",
            )
        body: Metadata = {"execution_id": execution_id, "example_id": add(connection).id}
        if not right or any(opinion.rating == "down" for opinion in own_opinions):
            new = new_opinion(execution_id, row.message_id, True, None, author, space.now())
            body |= _store_opinion(opinions, new, own_opinions)
        return body

    return apply


def _store_opinion(opinions: SqlFeedbacks, new: FeedbackRow, own_opinions: Sequence[FeedbackRow]) -> Metadata:
    """Stores the reviewer's opinion, replacing an earlier one."""
    stored = put(opinions, new, next(iter(own_opinions), None), None)
    return {"feedback_id": stored.id, "event_id": stored.event_id}


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
