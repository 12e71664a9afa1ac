"""What each row of a table adds to the counts of opinions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    select,
)
from sqlalchemy.types import Text

from heedful.clock import DAY
from heedful.storage.dialects import dialect_of
from heedful.storage.ledger import RETRACTION, SIGNAL, is_retracted
from heedful.storage.schema import datasets, entries, events, executions, feedbacks, session_tags, sessions

DIMENSIONS = ("day", "value", "target_type", "dataset", "model", "source", "author_kind")
MEASURES = ("up", "down", "neutral", "scores", "score_sum", "rated", "shown")

MAX_VALUE_LENGTH = 200
"""How many characters of a value are compared; an index can't hold more."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of row that is counted."""

    name: str
    """The name of its watermark."""
    seq: Column[int]
    at: ColumnElement[int]
    origin: FromClause
    owner: ColumnElement[int]
    """The column with the project's number."""
    conditions: tuple[ColumnElement[bool], ...]
    dimensions: Mapping[str, ColumnElement[Any]]
    measures: Mapping[str, ColumnElement[Any]]
    scopes: Mapping[str, Callable[[BindParameter[Any]], ColumnElement[bool]]]
    """How `changing` selects rows, by scope."""

    @property
    def has_opinions(self) -> bool:
        """Whether it counts opinions, not what they are about."""
        return "up" in self.measures

    def rows(self, project: int | BindParameter[int], *, by_number: bool = True) -> Select[Any]:
        """A query for the rows; conditions can be added. With `by_number`, those use numbers or names."""
        # An expression, so that the database uses the index of the added conditions, not that of the project.
        of_project = self.owner + 0 == project if by_number else self.owner == project
        empty, zero = literal("", Text), literal(0)
        columns = [self.dimensions.get(name, empty).label(name) for name in DIMENSIONS if name != "day"]
        return (
            select(
                (self.at // DAY).label("day"),
                *columns,
                *(self.measures.get(name, zero).label(name) for name in MEASURES),
            )
            .select_from(self.origin)
            .where(of_project, *self.conditions)
        )

    def newest(self, connection: Connection) -> int:
        """The greatest number in any project."""
        return dialect_of(connection).newest(connection, self.seq)


@lru_cache(maxsize=100)
def parts(key: str) -> tuple[Part, ...]:
    """Everything that is counted: all opinions for the key "", else by the value of a metadata key."""
    # Cached, because building these statements takes longer than running them.
    shared = (_opinions(key), _rated_entries(key), _shown_entries(key))
    return shared if key else (*shared, _rated_executions(), _shown_executions(), _signals(), _rated_recalls())


def _opinions(key: str) -> Part:
    entry = entries.alias("about")
    origin: FromClause = feedbacks.outerjoin(
        entry, and_(feedbacks.c.target_type == "entry", entry.c.id == feedbacks.c.target_id)
    )
    origin, value = _valued(origin, feedbacks.c.session_seq, key)
    return Part(
        name="feedbacks",
        seq=feedbacks.c.seq,
        at=feedbacks.c.at,
        origin=origin,
        owner=feedbacks.c.project_id,
        conditions=(feedbacks.c.active == 1,),
        dimensions={
            "value": value,
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


def _rated_entries(key: str) -> Part:
    origin, value = _valued(
        feedbacks.join(entries, entries.c.id == feedbacks.c.target_id), feedbacks.c.session_seq, key
    )
    return Part(
        name="feedbacks",
        seq=feedbacks.c.seq,
        at=entries.c.at,
        origin=origin,
        owner=feedbacks.c.project_id,
        conditions=(feedbacks.c.active == 1, feedbacks.c.target_type == "entry", _is_first()),
        dimensions=_of_entry(value),
        measures={"rated": literal(1)},
        scopes={"sessions": feedbacks.c.session_seq.in_, "targets": feedbacks.c.target_id.in_},
    )


def _shown_entries(key: str) -> Part:
    origin, value = _valued(entries.join(sessions, sessions.c.seq == entries.c.session_seq), entries.c.session_seq, key)
    return Part(
        name="entries",
        seq=entries.c.seq,
        at=entries.c.at,
        origin=origin,
        owner=sessions.c.project_id,
        conditions=(),
        dimensions=_of_entry(value),
        measures={"shown": literal(1)},
        scopes={"sessions": entries.c.session_seq.in_},
    )


def _rated_executions() -> Part:
    return Part(
        name="feedbacks",
        seq=feedbacks.c.seq,
        at=executions.c.at,
        origin=feedbacks.join(executions, executions.c.id == feedbacks.c.target_id),
        owner=feedbacks.c.project_id,
        conditions=(feedbacks.c.active == 1, feedbacks.c.target_type == "execution", _is_first()),
        dimensions={"target_type": literal("execution", Text)},
        measures={"rated": literal(1)},
        scopes={"targets": feedbacks.c.target_id.in_},
    )


def _shown_executions() -> Part:
    return Part(
        name="executions",
        seq=executions.c.seq,
        at=executions.c.at,
        origin=executions,
        owner=executions.c.project_id,
        conditions=(),
        dimensions={"target_type": literal("execution", Text)},
        measures={"shown": literal(1)},
        scopes={"targets": executions.c.id.in_},
    )


def _signals() -> Part:
    return Part(
        name="events",
        seq=events.c.seq,
        at=events.c.at,
        origin=events.outerjoin(datasets, datasets.c.id == events.c.dataset_id),
        owner=events.c.project_id,
        conditions=(events.c.kind == SIGNAL, ~is_retracted()),
        dimensions={
            "target_type": literal("fact", Text),
            "dataset": func.coalesce(datasets.c.name, ""),
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


def _rated_recalls() -> Part:
    """The first signal of each receipt, on the day of the signal, since receipts may be deleted."""
    return Part(
        name="events",
        seq=events.c.seq,
        at=events.c.at,
        origin=events.outerjoin(datasets, datasets.c.id == events.c.dataset_id),
        owner=events.c.project_id,
        conditions=(
            events.c.kind == SIGNAL,
            events.c.receipt_id.is_not(None),
            ~is_retracted(),
            _is_first_of_receipt(),
        ),
        dimensions={"target_type": literal("recall", Text), "dataset": func.coalesce(datasets.c.name, "")},
        measures={"rated": literal(1)},
        scopes={"events": _of_the_same_receipts, "datasets": events.c.dataset_id.in_},
    )


def _of_the_same_receipts(ids: BindParameter[Any]) -> ColumnElement[bool]:
    named_events = events.alias("named")
    return events.c.receipt_id.in_(select(named_events.c.receipt_id).where(named_events.c.id.in_(ids)))


def _is_first_of_receipt() -> ColumnElement[bool]:
    """Whether no earlier signal of the same receipt is active."""
    earlier, later = events.alias("earlier"), events.alias("retraction")
    return ~exists().where(
        earlier.c.receipt_id == events.c.receipt_id,
        earlier.c.kind == SIGNAL,
        earlier.c.seq < events.c.seq,
        ~exists().where(later.c.target_id == earlier.c.id, later.c.kind == RETRACTION),
    )


def _of_entry(value: ColumnElement[str]) -> dict[str, ColumnElement[Any]]:
    """The dimensions of an entry."""
    return {
        "value": value,
        "target_type": literal("entry", Text),
        "dataset": _text(entries.c.dataset),
        "model": _text(entries.c.model),
    }


def _valued(origin: FromClause, session: ColumnElement[int], key: str) -> tuple[FromClause, ColumnElement[str]]:
    """Joins the value that a session's metadata have under a key."""
    if not key:
        return origin, literal("", Text)
    tags = session_tags.alias("tags")
    joined = origin.join(tags, and_(tags.c.session_seq == session, tags.c.key == key))
    return joined, _text(tags.c.value)


def _is_first() -> ColumnElement[bool]:
    """Whether no earlier opinion about the same target is active."""
    earlier = feedbacks.alias("earlier")
    return ~exists().where(
        earlier.c.target_id == feedbacks.c.target_id,
        earlier.c.target_type == feedbacks.c.target_type,
        earlier.c.active == 1,
        earlier.c.seq < feedbacks.c.seq,
    )


def _one_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, 1), else_=0)


def _text(column: ColumnElement[Any]) -> ColumnElement[str]:
    return func.coalesce(func.substr(column, 1, MAX_VALUE_LENGTH), "")
