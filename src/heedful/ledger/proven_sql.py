"""The SQL that opinions prove on a connector, the SQL that they block, and the removal of executions nobody rated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, delete, exists, select, update

from heedful.ledger import tallies
from heedful.model import AuthorKind, OpinionTarget
from heedful.storage import external_ids
from heedful.storage.rows import AnyRow, select_in
from heedful.storage.schema import connectors, executions, feedbacks, projects

TARGETS: tuple[OpinionTarget, ...] = ("execution", "message")

RETAINED_SQL = "retained_sql"  # The key for the SQL of deleted executions that an opinion is still about.


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
    """One opinion against SQL."""

    seq: int
    comment: str | None
    author: str | None
    kind: AuthorKind


_COMPLAINT = (feedbacks.c.seq, feedbacks.c.comment, feedbacks.c.author, feedbacks.c.author_kind)


class Wrong(NamedTuple):
    """The template and the audience of an execution that opinions say is wrong, and these opinions."""

    template: bytes
    audience: str | None
    said: list[Complaint]


def complaints(
    connection: Connection, project: int, connector: str, ids: Sequence[str] | None = None
) -> dict[str, Wrong]:
    """The executions of a connector, or of these, that opinions say are wrong, by id.

    An opinion about a message is about all that ran for it.
    """
    wrong: dict[str, Wrong] = {}
    for kind, column in zip(TARGETS, (executions.c.id, executions.c.message_id), strict=True):
        statement = (
            select(executions.c.id, executions.c.template, executions.c.audience, *_COMPLAINT)
            .select_from(feedbacks)
            .join(executions, column == feedbacks.c.target_id)
            .where(*rated(project, kind, "down"), executions.c.connector_id == connector)
        )
        for row in _among(connection, statement, executions.c.id, ids):
            wrong.setdefault(row.id, Wrong(row.template, row.audience, [])).said.append(Complaint(*row[3:]))
    return wrong


def retained_complaints(connection: Connection, project: int, connector: str) -> list[Wrong]:
    """The opinions against SQL of executions that were deleted."""
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
    return iter(connection.execute(statement)) if ids is None else select_in(connection, statement, column, ids)


def retain_sql(connection: Connection, run: AnyRow) -> None:
    """Stores the SQL of an execution with the negative opinions about it, before it is deleted."""
    sql_reference = {"connector_id": run.connector_id, "template": run.template.hex(), "audience": run.audience}
    against = select(feedbacks.c.seq, feedbacks.c.extra).where(
        *(feedbacks.c.target_type.in_(TARGETS), feedbacks.c.active == 1, feedbacks.c.rating == "down"),
        feedbacks.c.target_id.in_([run.id, run.message_id or run.id]),
    )
    for row in connection.execute(against).all():
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
    return list(select_in(connection, chosen, executions.c.id, ids))


_NEXT = connectors.c.revision + 1


def bump_revisions(connection: Connection, names: Collection[str]) -> None:
    """Raises the revision of these connectors, since anything that is proven on them may have changed."""
    if names:
        of_names = connectors.c.id.in_(sorted(names))
        connection.execute(update(connectors).where(of_names).values(revision=_NEXT, full_revision=_NEXT))


def mark_rated(connection: Connection, target_type: str, target_id: str) -> None:
    """Raises the revision of connectors, since the opinions about an execution, or about the runs for a message, have
    changed; also of the executions that they repeat."""
    target = executions.c.id if target_type == "execution" else executions.c.message_id
    rows = connection.execute(
        select(executions.c.id, executions.c.repeats_id, executions.c.connector_id).where(target == target_id)
    ).all()
    if not rows:
        return
    ids = {row.id for row in rows} | {row.repeats_id for row in rows if row.repeats_id is not None}
    owners = sorted({row.connector_id for row in rows})
    connection.execute(update(connectors).where(connectors.c.id.in_(owners)).values(revision=_NEXT))
    newest = select(connectors.c.revision).where(connectors.c.id == executions.c.connector_id).scalar_subquery()
    connection.execute(update(executions).where(executions.c.id.in_(sorted(ids))).values(revision=newest))


RUN, HIT, RATED_HIT = 0, 1, 2
"""The values of `executions.hit`: no hit, a hit, and a hit with other values that was rated as right."""


def counted_target(connection: Connection, target_type: str, target_id: str) -> str:
    """The id of the execution or message that an opinion about a target counts for."""
    if target_type != "execution":
        return target_id
    repeated = connection.execute(select(executions.c.repeats_id).where(executions.c.id == target_id)).scalar()
    return repeated or target_id


def follow_ratings(connection: Connection, execution_id: str) -> None:
    """Makes a hit with other values a candidate if somebody other than a visitor rated it as right, else a
    mere hit."""
    about = (feedbacks.c.target_id == execution_id, feedbacks.c.target_type == "execution", feedbacks.c.active == 1)
    is_right = exists().where(*about, feedbacks.c.rating == "up", feedbacks.c.author_kind != "visitor")
    hits = (executions.c.id == execution_id, executions.c.hit != RUN, executions.c.repeats_id.is_(None))
    hit = RATED_HIT if connection.execute(select(is_right)).scalar() else HIT
    connection.execute(update(executions).where(*hits).values(hit=hit))


def hit_owners(connection: Connection, before: int) -> list[tuple[str, int]]:
    """The projects with hits older than a time, by name and number."""
    old = select(executions.c.project_id).where(executions.c.hit == HIT, executions.c.at < before)
    rows = connection.execute(select(projects.c.name, projects.c.id).where(projects.c.id.in_(old)))
    return [(row.name, row.id) for row in rows]


def prune_hits(connection: Connection, project: int, before: int, limit: int) -> int:
    """Removes up to `limit` unrated hits of a project that are older than a time; returns how many."""
    is_rated = exists().where(
        feedbacks.c.target_id.in_([executions.c.id, executions.c.message_id]),
        feedbacks.c.about_id.is_not(None),
        feedbacks.c.active == 1,
    )
    old = executions.c.hit == HIT, executions.c.at < before
    statement = select(executions.c.id).where(*old, ~is_rated)
    ids = list(connection.execute(statement.limit(limit)).scalars())
    remove_executions(connection, project, ids)
    return len(ids)


def remove_executions(connection: Connection, project: int, ids: Sequence[str]) -> None:
    """Removes executions; a result that others share stays with one of them."""
    holders = select(executions.c.result_id).where(executions.c.result_id.in_(ids)).distinct()
    for holder in connection.execute(holders).scalars().all():
        _move_result(connection, holder, without=ids)
    external_ids.remove(connection, ids)
    with tallies.changing(connection, project, targets=ids):
        connection.execute(delete(executions).where(executions.c.id.in_(ids)))


def _move_result(connection: Connection, execution_id: str, without: Sequence[str]) -> None:
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
