"""Contradictions that are noticed on writing: existing facts that give another value for the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from heedful.memory.supersede import PROVENANCE
from heedful.memory.workspace import Workspace
from heedful.model import FactConflict, Metadata
from heedful.storage import facts, ledger, scopes
from heedful.storage.filters import Allowed
from heedful.storage.ledger import CONFLICT, Event
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import Vectors
from heedful.text.conflicts import Difference, conflict, states_value

MAX_CHECKED = 64
"""With more new facts than this, a call is an import, and none of them is compared."""

NEAREST = 10
"""Existing facts that a new one is compared with."""

UNSCOPED = frozenset(
    ("timestamp", "time", "created", "updated", "message_id", "qa_id", "run_id", "trace_id", "id", PROVENANCE)
)
"""Keys of metadata that tell when or how a fact was stored, not what it is about. So do those that end in `_at`."""


@dataclass(frozen=True, slots=True)
class Written:
    """A fact that was stored now."""

    fact_id: str
    text: str
    metadata: Metadata
    vector: Vectors


def notice(workspace: Workspace, dataset: str, new: Sequence[Written]) -> list[FactConflict]:
    """The active facts that new ones contradict, recorded in the ledger, from where the review queue takes them."""
    stating = [each for each in new if states_value(each.text)] if len(new) <= MAX_CHECKED else []
    if not stating:
        return []
    own_ids = {each.fact_id for each in new}
    with workspace.read() as connection:
        model, number = workspace.model(connection), scopes.dataset_id(connection, workspace.project, dataset)
        if model is None or number is None:
            return []
        index = workspace.index(connection, number, model)
        index.follow(connection)
        found: list[tuple[Written, AnyRow, Difference]] = []
        for each in stating:
            near = index.search(connection, each.text, each.vector, "semantic", Allowed(), [], NEAREST + len(new))
            order = np.lexsort((near.facts, -near.relevance))[: NEAREST + len(new)]
            found += _contradicted(workspace, connection, each, near.facts[order].tolist(), own_ids)
        if not found:
            return []
        project = scopes.owner(connection, number)
    now = workspace.now()
    events = [
        Event(
            project_id=project,
            kind=CONFLICT,
            target_type="fact",
            target_id=own.fact_id,
            source="remember",
            at=now,
            recorded_at=now,
            value=difference.kind,
            body={"fact_id": other.id},
        )
        for own, other, difference in found
    ]
    with workspace.write() as connection:
        ledger.append(connection, events)
    return [
        FactConflict(
            event_id=event.id,
            fact_id=own.fact_id,
            conflicts_with=other.id,
            text=other.text,
            kind=difference.kind,
            value=difference.new,
            other_value=difference.old,
        )
        for event, (own, other, difference) in zip(events, found, strict=True)
    ]


def _contradicted(
    workspace: Workspace, connection: Connection, own: Written, seqs: Sequence[int], own_ids: set[str]
) -> list[tuple[Written, AnyRow, Difference]]:
    rows = facts.by_seq(connection, seqs)
    now = workspace.now()
    candidates = [
        row
        for seq in seqs
        if (row := rows.get(seq)) is not None
        and row.id not in own_ids
        and (row.expires_at is None or row.expires_at > now)
        and is_same_scope(own.metadata, row.metadata)
    ]
    differences = [(row, conflict(own.text, row.text)) for row in candidates[:NEAREST]]
    return [(own, row, difference) for row, difference in differences if difference is not None]


def is_same_scope(one: Metadata, other: Metadata) -> bool:
    """Whether metadata tell two facts apart: what is true of one user, language or year need not be of another."""
    return not any(
        one[key] != other[key] for key in one.keys() & other.keys() if key not in UNSCOPED and not key.endswith("_at")
    )
