"""What opinions prove on a connector, and what they block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, select, update

from heedful.model import OpinionTarget
from heedful.ranking.signals import suffices
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import executions, feedbacks

TARGETS: tuple[OpinionTarget, ...] = ("execution", "message")

RETAINED_SQL = "retained_sql"
"""The key for the SQL of deleted executions that an opinion is still about."""


def rated(project: int, target_type: str, *ratings: str) -> tuple[ColumnElement[bool], ...]:
    """Opinions of a project about executions or messages that may prove or block SQL: all but those of anonymous
    visitors. An index finds them among those about sessions."""
    return (
        feedbacks.c.project_id == project,
        feedbacks.c.target_type == target_type,
        feedbacks.c.rating.in_(ratings),
        feedbacks.c.about_id.is_not(None),
        feedbacks.c.active == 1,
        feedbacks.c.author_trust != "anonymous",
    )


def blocked(connection: Connection, project: int, connector: str, authors: int) -> dict[bytes, str | None]:
    """The templates of a connector that a verified caller, or so many known authors, say are wrong, with what was said
    last.

    What is said of a message is said of all that ran for it.
    """
    words = (feedbacks.c.seq, feedbacks.c.comment, feedbacks.c.author, feedbacks.c.author_trust)
    negatives: list[tuple[bytes, AnyRow]] = []
    for kind, column in zip(TARGETS, (executions.c.id, executions.c.message_id), strict=True):
        wrong = rated(project, kind, "down")
        rows = connection.execute(
            select(executions.c.template, *words)
            .select_from(feedbacks)
            .join(executions, column == feedbacks.c.target_id)
            .where(*wrong, executions.c.connector_id == connector)
        )
        negatives += [(row.template, row) for row in rows]
        retained = connection.execute(select(feedbacks.c.extra, *words).where(*wrong, feedbacks.c.extra.is_not(None)))
        negatives += [
            (bytes.fromhex(item["template"]), row)
            for row in retained
            for item in row.extra.get(RETAINED_SQL, ())
            if item["connector_id"] == connector
        ]
    by_template: dict[bytes, list[AnyRow]] = {}
    for template, row in sorted(negatives, key=lambda item: item[1].seq):
        by_template.setdefault(template, []).append(row)
    return {
        template: rows[-1].comment
        for template, rows in by_template.items()
        if suffices([(row.author_trust, row.author) for row in rows], authors)
    }


def retain_sql(connection: Connection, project: int, run: AnyRow) -> None:
    """Stores the SQL of an execution with the negative opinions about it, before it is deleted."""
    sql_reference = {"connector_id": run.connector_id, "template": run.template.hex()}
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
    """The template of an execution that somebody says is right, and who says so; None for verified callers."""

    template: bytes
    authors: frozenset[str | None]


def proven(connection: Connection, project: int, connector: str) -> dict[str, Proof]:
    """The executions of a connector that have a question and that somebody says are right."""
    rows = connection.execute(
        select(executions.c.id, executions.c.template, feedbacks.c.author)
        .select_from(feedbacks)
        .join(executions, executions.c.id == feedbacks.c.about_id)
        .where(
            *rated(project, "execution", "up"),
            executions.c.connector_id == connector,
            executions.c.question.is_not(None),
        )
    )
    authors: dict[tuple[str, bytes], set[str | None]] = {}
    for row in rows:
        authors.setdefault((row.id, row.template), set()).add(row.author)
    return {name: Proof(template, frozenset(raters)) for (name, template), raters in authors.items()}


def questions(connection: Connection, ids: Sequence[str]) -> list[AnyRow]:
    """The questions and SQL of executions: id, question, sql_query, at."""
    chosen = select(executions.c.id, executions.c.question, executions.c.sql_query, executions.c.at)
    return [row for run in batches(ids) for row in connection.execute(chosen.where(executions.c.id.in_(run)))]
