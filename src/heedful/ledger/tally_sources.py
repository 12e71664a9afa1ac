"""The tables whose rows are counted, and the numbers that each row adds to the counts of opinions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    case,
    exists,
    func,
    literal,
    select,
)
from sqlalchemy.types import Text

from heedful.clock import DAY
from heedful.ledger.events import RETRACTION, SIGNAL, is_retracted
from heedful.storage.rows import dialect_of
from heedful.storage.schema import datasets, entries, events, executions, feedbacks, session_tags, sessions

DIMENSIONS = ("key", "day", "value", "target_type", "dataset", "model", "source", "author_kind")
MEASURES = ("up", "down", "neutral", "scores", "score_sum", "rated", "shown")

MAX_VALUE_LENGTH = 200  # How many characters of a value are compared; an index can't hold more.

Dimensions = Mapping[str, ColumnElement[Any]]
Scopes = Mapping[str, Callable[[Any], ColumnElement[bool]]]


@dataclass(frozen=True, slots=True, eq=False)
class TallySource:
    """One kind of row that is counted, under one key or more."""

    name: str
    """The name of its watermark."""
    seq: Column[int]
    at: ColumnElement[int]
    origin: FromClause
    owner: ColumnElement[int]
    """The column with the project's number."""
    conditions: tuple[ColumnElement[bool], ...]
    dimensions: Dimensions
    measures: Mapping[str, ColumnElement[Any]]
    scopes: Scopes
    """How `changing` selects rows, by scope."""
    first_of: Column[str] | None = None
    """If only the first of the rows that share this column is counted: the column."""
    counts_as: Callable[[FromClause], ColumnElement[bool]] | None = None
    """Which rows can be that first one."""

    @property
    def has_opinions(self) -> bool:
        """Whether it counts opinions, not what they are about."""
        return "up" in self.measures

    @property
    def key(self) -> ColumnElement[str]:
        """The key of the counts that a row belongs to."""
        return self.dimensions["key"]

    def touched(
        self, project: int | BindParameter[int], *conditions: ColumnElement[bool], by_number: bool = True
    ) -> Select[Any]:
        """A query for the keys of the rows that meet conditions, counted or not. With `by_number`, these use numbers or
        names."""
        # An expression, so that the database uses the index of the conditions, not that of the project.
        of_project = self.owner + 0 == project if by_number else self.owner == project
        return select(self.key.label("key")).select_from(self.origin).where(of_project, *conditions)

    def rows(
        self, project: int | BindParameter[int], *conditions: ColumnElement[bool], by_number: bool = True
    ) -> Select[Any]:
        """A query for the counts that the rows that meet conditions add; see `touched`."""
        rows = self.touched(project, *self.conditions, *conditions, by_number=by_number)
        if self.first_of is not None and self.counts_as is not None:
            # The rows of each group are read once, not again for each of them.
            other = self.first_of.table.alias("other")
            group = other.c[self.first_of.name]
            groups = _computed_once(rows.with_only_columns(self.first_of).distinct())
            first = select(func.min(other.c.seq)).where(group.in_(groups), self.counts_as(other)).group_by(group)
            firsts = _computed_once(first)
            # An expression, or SQLite would look up each of them in each group.
            rows = rows.where((self.seq + 0).in_(firsts))
        values: dict[str, ColumnElement[Any]] = dict.fromkeys(DIMENSIONS, literal("", Text))
        values |= dict.fromkeys(MEASURES, literal(0)) | {"day": self.at // DAY, **self.dimensions, **self.measures}
        return rows.with_only_columns(*(values[name].label(name) for name in (*DIMENSIONS, *MEASURES)))

    def newest(self, connection: Connection) -> int:
        """The greatest number in any project."""
        return dialect_of(connection).newest(connection, self.seq)


def sources_of(key: str) -> tuple[TallySource, ...]:
    """Everything that is counted: all opinions for the key "", else by the values of metadata keys, of which
    `TallySource.key` selects one."""
    return _BY_METADATA if key else _OVERALL


def _opinions(by_metadata: bool) -> TallySource:
    entry = entries.alias("about")
    origin: FromClause = feedbacks.outerjoin(
        entry, and_(feedbacks.c.target_type == "entry", entry.c.id == feedbacks.c.target_id)
    )
    origin, group = _grouped(origin, feedbacks.c.session_seq, by_metadata)
    return TallySource(
        name="feedbacks",
        seq=feedbacks.c.seq,
        at=feedbacks.c.at,
        origin=origin,
        owner=feedbacks.c.project_id,
        conditions=(feedbacks.c.active == 1,),
        dimensions={
            **group,
            "target_type": feedbacks.c.target_type,
            "dataset": _text(entry.c.dataset),
            "model": _text(entry.c.model),
            "source": case((feedbacks.c.target_type.in_(("session", "entry")), "add_feedback"), else_="feedback"),
            "author_kind": feedbacks.c.author_kind,
        },
        measures={
            "up": _one_if(feedbacks.c.rating == "up"),
            "down": _one_if(feedbacks.c.rating == "down"),
            "neutral": _one_if(feedbacks.c.rating.is_(None)),
            "scores": _one_if(feedbacks.c.score.is_not(None)),
            "score_sum": func.coalesce(feedbacks.c.score, 0),
        },
        scopes={"sessions": feedbacks.c.session_seq.in_, "targets": feedbacks.c.target_id.in_},
    )


def _entries(by_metadata: bool) -> tuple[TallySource, TallySource]:
    """Answers that were rated, and all that were given."""
    about = feedbacks.join(entries, entries.c.id == feedbacks.c.target_id)
    in_session = entries.join(sessions, sessions.c.seq == entries.c.session_seq)
    rated_origin, rated_group = _grouped(about, feedbacks.c.session_seq, by_metadata)
    origin, group = _grouped(in_session, entries.c.session_seq, by_metadata)
    own: Dimensions = {
        "target_type": literal("entry", Text),
        "dataset": _text(entries.c.dataset),
        "model": _text(entries.c.model),
    }
    rated_scopes = {"sessions": feedbacks.c.session_seq.in_, "targets": feedbacks.c.target_id.in_}
    scopes = {"sessions": entries.c.session_seq.in_, "entries": entries.c.seq.in_}
    return (
        _rated("entry", entries.c.at, rated_origin, {**rated_group, **own}, rated_scopes),
        _shown("entries", entries, origin, sessions.c.project_id, {**group, **own}, scopes),
    )


def _executions() -> tuple[TallySource, TallySource]:
    """Executions that were rated, and all that ran."""
    about = feedbacks.join(executions, executions.c.id == feedbacks.c.target_id)
    own: Dimensions = {"key": _ALL, "target_type": literal("execution", Text)}
    scopes = {"targets": executions.c.id.in_}
    return (
        _rated("execution", executions.c.at, about, own, {"targets": feedbacks.c.target_id.in_}),
        _shown("executions", executions, executions, executions.c.project_id, own, scopes),
    )


def _rated(
    target_type: str, at: ColumnElement[int], origin: FromClause, dimensions: Dimensions, scopes: Scopes
) -> TallySource:
    """The first active opinion about each target, on the day of the target."""
    return TallySource(
        name="feedbacks",
        seq=feedbacks.c.seq,
        at=at,
        origin=origin,
        owner=feedbacks.c.project_id,
        conditions=(feedbacks.c.active == 1, feedbacks.c.target_type == target_type),
        dimensions=dimensions,
        measures={"rated": literal(1)},
        scopes=scopes,
        first_of=feedbacks.c.target_id,
        counts_as=lambda other: and_(other.c.target_type == target_type, other.c.active == 1),
    )


def _shown(
    name: str, table: Table, origin: FromClause, owner: ColumnElement[int], dimensions: Dimensions, scopes: Scopes
) -> TallySource:
    measures = {"shown": literal(1)}
    return TallySource(name, table.c.seq, table.c.at, origin, owner, (), dimensions, measures, scopes)


def _signals() -> tuple[TallySource, TallySource]:
    """Signals, and the first signal of each receipt, on the day of the signal, since receipts may be deleted."""
    own = {"key": _ALL, "dataset": func.coalesce(datasets.c.name, "")}
    signals = TallySource(
        name="events",
        seq=events.c.seq,
        at=events.c.at,
        origin=events.outerjoin(datasets, datasets.c.id == events.c.dataset_id),
        owner=events.c.project_id,
        conditions=(events.c.kind == SIGNAL, ~is_retracted()),
        dimensions={
            **own,
            "target_type": literal("fact", Text),
            "source": events.c.source,
            "author_kind": events.c.author_kind,
        },
        measures={
            "up": _one_if(events.c.value == "helpful"),
            "down": _one_if(events.c.value == "not_helpful"),
            "neutral": _one_if(events.c.value.in_(("used", "ignored"))),
        },
        scopes={"events": events.c.id.in_, "datasets": events.c.dataset_id.in_},
    )
    return signals, replace(
        signals,
        conditions=(*signals.conditions, events.c.receipt_id.is_not(None)),
        dimensions={**own, "target_type": literal("recall", Text)},
        measures={"rated": literal(1)},
        scopes={"events": _of_the_same_receipts, "datasets": events.c.dataset_id.in_},
        first_of=events.c.receipt_id,
        counts_as=_is_active_signal,
    )


def _of_the_same_receipts(ids: BindParameter[Any]) -> ColumnElement[bool]:
    named_events = events.alias("named")
    # Distinct, or PostgreSQL may read a receipt again for each of its events.
    receipts = select(named_events.c.receipt_id).where(named_events.c.id.in_(ids)).distinct()
    return events.c.receipt_id.in_(_computed_once(receipts))


def _is_active_signal(event: FromClause) -> ColumnElement[bool]:
    retraction = events.alias("retraction")
    is_retracted = exists().where(retraction.c.target_id == event.c.id, retraction.c.kind == RETRACTION)
    return and_(event.c.kind == SIGNAL, ~is_retracted)


def _grouped(
    origin: FromClause, session: ColumnElement[int], by_metadata: bool
) -> tuple[FromClause, dict[str, ColumnElement[Any]]]:
    """Joins the values that a session's metadata have under each key."""
    if not by_metadata:
        return origin, {"key": _ALL}
    tags = session_tags.alias("tags")
    return origin.join(tags, tags.c.session_seq == session), {"key": tags.c.key, "value": _text(tags.c.value)}


def _computed_once(rows: Select[Any]) -> Select[Any]:
    """A query for the same rows: PostgreSQL, which expects few, would run it again for each row around it."""
    return select(rows.cte().prefix_with("MATERIALIZED"))


def _one_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, 1), else_=0)


def _text(column: ColumnElement[Any]) -> ColumnElement[str]:
    return func.coalesce(func.substr(column, 1, MAX_VALUE_LENGTH), "")


_ALL = literal("", Text)

# Built once, because building statements takes longer than running them.
_BY_METADATA = (_opinions(True), *_entries(True))
_OVERALL = (_opinions(False), *_entries(False), *_executions(), *_signals())
