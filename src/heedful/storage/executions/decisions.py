"""What the cache decided: one line for each question it was asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, insert

from heedful.ids import new_id
from heedful.storage.schema_insight import decisions


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision about to be stored; `candidate_id` is what was looked at, `execution_id` what was made of it."""

    project_id: int
    connector_id: str
    question: str
    decision: str
    gate: str
    reason: str
    similarity: float | None
    candidate_id: str | None
    execution_id: str | None
    at: int


def add(connection: Connection, new: NewDecision) -> None:
    connection.execute(insert(decisions).values(id=new_id(), **asdict(new)))
