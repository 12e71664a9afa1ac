"""What opinions prove on a connector, and what they block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, select, update

from heedful.model import AuthorKind, OpinionTarget
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import executions, feedbacks

TARGETS: tuple[OpinionTarget, ...] = ("execution", "message")

RETAINED_SQL = "retained_sql"
"""The key for the SQL of deleted executions that an opinion is still about."""


def rated(project: int, target_type: str, *ratings: str) -> tuple[ColumnElement[bool], ...]:
    """Opinions of a project about executions or messages that may prove or block SQL: all but those of visitors.
    An index finds them among those about sessions."""
    return feedbacks.c.project_id == project, feedbacks.c.rating.in_(ratings), *active_opinions(target_type)


def active_opinions(target_type: str) -> tuple[ColumnElement[bool], ...]:
    """The same of any project, whatever they say."""
    return (
        feedbacks.c.target_type == target_type,
        feedbacks.c.about_id.is_not(None),
        feedbacks.c.active == 1,
        feedbacks.c.author_kind != "visitor",
    )


class Complaint(NamedTuple):
    """What one opinion says against SQL."""

    seq: int
    comment: str | None
    author: str | None
    kind: AuthorKind


_COMPLAINT = (feedbacks.c.seq, feedbacks.c.comment, feedbacks.c.author, feedbacks.c.author_kind)


class Wrong(NamedTuple):
    """The template and the audience of an execution that opinions say is wrong, and what they say."""

    template: bytes
    audience: str | None
    said: list[Complaint]


def complaints(
    connection: Connection, project: int, connector: str, ids: Sequence[str] | None = None
) -> dict[str, Wrong]:
    """The executions of a connector, or of these, that opinions say are wrong, by id.

    What is said of a message is said of all that ran for it.
    """
    found: dict[str, Wrong] = {}
    for kind, column in zip(TARGETS, (executions.c.id, executions.c.message_id), strict=True):
        statement = (
            select(executions.c.id, executions.c.template, executions.c.audience, *_COMPLAINT)
            .select_from(feedbacks)
            .join(executions, column == feedbacks.c.target_id)
            .where(*rated(project, kind, "down"), executions.c.connector_id == connector)
        )
        for row in _among(connection, statement, executions.c.id, ids):
            found.setdefault(row.id, Wrong(row.template, row.audience, [])).said.append(Complaint(*row[3:]))
    return found


def retained_complaints(connection: Connection, project: int, connector: str) -> list[Wrong]:
    """What opinions say against SQL of executions that were deleted."""
    return [
        Wrong(bytes.fromhex(item["template"]), item.get("audience"), [Complaint(*said)])
        for kind in TARGETS
        for extra, *said in connection.execute(
            select(feedbacks.c.extra, *_COMPLAINT).where(*rated(project, kind, "down"), feedbacks.c.extra.is_not(None))
        )
        for item in extra.get(RETAINED_SQL, ())
        if item["connector_id"] == connector
    ]


def _among(
    connection: Connection, statement: Select[Any], column: ColumnElement[str], ids: Sequence[str] | None
) -> Iterator[AnyRow]:
    """The rows of a statement, or those of some ids."""
    if ids is None:
        yield from connection.execute(statement)
        return
    for run in batches(ids):
        yield from connection.execute(statement.where(column.in_(run)))


def retain_sql(connection: Connection, project: int, run: AnyRow) -> None:
    """Stores the SQL of an execution with the negative opinions about it, before it is deleted."""
    sql_reference = {"connector_id": run.connector_id, "template": run.template.hex(), "audience": run.audience}
    rows = connection.execute(
        select(feedbacks.c.seq, feedbacks.c.extra).where(
            of_project(connection, feedbacks.c.project_id, project),
            feedbacks.c.target_type.in_(TARGETS),
            feedbacks.c.active == 1,
            feedbacks.c.rating == "down",
            feedbacks.c.target_id.in_([run.id, run.message_id or run.id]),
        )
    ).all()
    for row in rows:
        retained = [*row.extra.get(RETAINED_SQL, ()), sql_reference]
        connection.execute(update(feedbacks).where(feedbacks.c.seq == row.seq).values(extra={RETAINED_SQL: retained}))


@dataclass(frozen=True, slots=True)
class Proof:
    """The template of an execution that somebody says is right, whom it is for, and who says so.

    The author None is the program, the audience None everybody.
    """

    template: bytes
    audience: str | None
    authors: frozenset[str | None]


def proven(connection: Connection, project: int, connector: str, ids: Sequence[str] | None = None) -> dict[str, Proof]:
    """The executions of a connector, or of these, that have a question and that somebody says are right."""
    statement = (
        select(executions.c.id, executions.c.template, executions.c.audience, feedbacks.c.author)
        .select_from(feedbacks)
        .join(executions, executions.c.id == feedbacks.c.about_id)
        .where(
            *rated(project, "execution", "up"),
            executions.c.connector_id == connector,
            executions.c.question.is_not(None),
        )
    )
    authors: dict[tuple[str, bytes, str | None], set[str | None]] = {}
    for row in _among(connection, statement, feedbacks.c.about_id, ids):
        authors.setdefault((row.id, row.template, row.audience), set()).add(row.author)
    return {
        name: Proof(template, audience, frozenset(raters)) for (name, template, audience), raters in authors.items()
    }


def questions(connection: Connection, ids: Sequence[str]) -> list[AnyRow]:
    """The questions and SQL of executions: id, question, sql_query, at."""
    chosen = select(executions.c.id, executions.c.question, executions.c.sql_query, executions.c.at)
    return [row for run in batches(ids) for row in connection.execute(chosen.where(executions.c.id.in_(run)))]
