"""What people said of facts, with their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, select

from heedful.storage.ledger import SIGNAL, is_retracted
from heedful.storage.review.tail import DERIVED
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import datasets, events, facts, notes, queries


def signals(connection: Connection, project: int, event_ids: Sequence[str]) -> list[AnyRow]:
    """These signals, if the facts that they are about are there."""
    return [
        row
        for run in batches(event_ids)
        for row in connection.execute(_signals(connection, project).where(events.c.id.in_(run)))
    ]


def helpful(connection: Connection, project: int, fact_ids: Sequence[str]) -> list[AnyRow]:
    """The signals that stand and say that one of these facts was helpful."""
    return [
        row
        for run in batches(fact_ids)
        for row in connection.execute(
            _signals(connection, project).where(
                events.c.target_id.in_(run),
                events.c.kind == SIGNAL,
                events.c.value == "helpful",
                events.c.source != DERIVED,
                ~is_retracted(),
            )
        )
    ]


def _signals(connection: Connection, project: int) -> Select[Any]:
    return (
        select(
            events,
            queries.c.text.label("question"),
            datasets.c.name.label("dataset"),
            notes.c.text.label("note"),
            is_retracted().label("retracted"),
        )
        .join(facts, facts.c.id == events.c.target_id)
        .join(datasets, datasets.c.id == facts.c.dataset_id)
        .outerjoin(queries, queries.c.id == events.c.query_id)
        .outerjoin(notes, notes.c.event_id == events.c.id)
        .where(of_project(connection, events.c.project_id, project))
    )
