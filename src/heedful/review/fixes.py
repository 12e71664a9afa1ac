"""What can be done about an item. Each fix is made ready first, and then done in one transaction with its event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection

from heedful.errors import Conflict, Invalid, NotFound
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


ApplyFix = Callable[[Connection], Metadata]
"""Does a fix; returns the ids of what it was done to, and of what it made."""


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
    return lambda connection: {"example_id": add(connection).id}


def _prepare_supersession(space: ExecutionSpace, given: FixArguments, author: str | None) -> ApplyFix:
    correct = supersede.prepare(space.workspace, str(given.fact_id), given.text, None, author)

    def do(connection: Connection) -> Metadata:
        done = correct(connection)
        return {"fact_id": done.fact_id, "superseded_by": done.superseded_by, "event_id": done.event_id}

    return do


def _block(
    space: ExecutionSpace, connection: Connection, execution_id: str, author: str | None, note: str | None
) -> Metadata:
    row = _get_run(space, connection, execution_id)
    opinions = SqlFeedbacks.on(connection, row.project_id)
    own = [] if author is None else opinions.active_by(author, "execution", execution_id)
    if any(each.rating == "down" for each in own):
        raise Conflict(
            f"{author} already marked execution {execution_id} as wrong",
            field="execution_id",
            value=execution_id,
            remedy="It is blocked; there is nothing left to do",
        )
    new = new_opinion(execution_id, row.message_id, False, note, author, space.now())
    return {"execution_id": execution_id, **_give(opinions, new, own)}


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

    def do(connection: Connection) -> Metadata:
        row = _get_run(space, connection, execution_id)
        opinions = SqlFeedbacks.on(connection, row.project_id)
        about = opinions.active("execution", [execution_id])
        own = [each for each in about if author is not None and each.author == author]
        right, _ = counted_opinions(about, space.trust.authors_to_veto)
        _, wrong = counted_opinions([each for each in about if each not in own], space.trust.authors_to_veto)
        if wrong:
            names = ", ".join(sorted({each.author or "somebody" for each in wrong}))
            raise Conflict(
                f"execution {execution_id} was marked as wrong by {names}",
                code="not_proven",
                field="execution_id",
                value=execution_id,
                remedy="Retract that feedback first, or add an example with other SQL",
            )
        body: Metadata = {"execution_id": execution_id, "example_id": add(connection).id}
        if not right or any(each.rating == "down" for each in own):
            new = new_opinion(execution_id, row.message_id, True, None, author, space.now())
            body |= _give(opinions, new, own)
        return body

    return do


def _give(opinions: SqlFeedbacks, new: FeedbackRow, own: Sequence[FeedbackRow]) -> Metadata:
    """Gives the reviewer's own opinion, in place of the one that is there."""
    given = put(opinions, new, next(iter(own), None), None)
    return {"feedback_id": given.id, "event_id": given.event_id}


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
