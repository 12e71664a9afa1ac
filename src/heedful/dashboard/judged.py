"""Executions as people judge them: one look at the store for many of them."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.engine import Heedful
from heedful.executions.feedback import FeedbackService
from heedful.model import ExecutionFeedback, GoldenExample
from heedful.storage import scopes
from heedful.storage.executions import golden, opinions

REASONS = {
    "same": "it asks for the same",
    "rebind": "it asks for the same of other values",
    "candidates": "no stored question is like it",
    "literals": "values differ, and can't be exchanged",
    "operators": "they compare differently",
    "negation": "only one of them negates",
    "aggregate": "they ask for different figures",
    "scope": "their scope differs",
    "argument_order": "the same words stand in another order",
    "relative_dates": "they mean different days",
    "words": "words differ that may matter",
    "kind": "a value can't be read in one way",
    "conflict": "proven answers contradict each other",
    "sql": "the SQL can't be read with all its values",
    "feedback": "somebody said that it is wrong",
    "schema": "the schema has changed since",
    "data": "the data may have changed since",
    "determinism": "its result differs from run to run",
    "truncation": "its stored result is not complete",
    "run": "it could not be run now",
}
"""What the gates of the cache mean."""


def feedback(heedful: Heedful, execution_ids: Sequence[str]) -> dict[str, list[ExecutionFeedback]]:
    """What people say of these executions and stands, oldest first."""
    workspace = heedful._workspace
    found: dict[str, list[ExecutionFeedback]] = {each: [] for each in execution_ids}
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        if project is not None and execution_ids:
            for name, rows in opinions.about(connection, project, execution_ids).items():
                found[name] = [FeedbackService._shown(row) for row in rows]
    return found


def example(heedful: Heedful, connector_id: str, execution_id: str) -> GoldenExample | None:
    """The golden example that an execution was made to."""
    with heedful._workspace.read() as connection:
        rows = golden.of_connector(connection, connector_id)
    found = next((row.id for row in rows if row.execution_id == execution_id), None)
    return None if found is None else heedful.golden_examples.get(found)


def reason(gate: str) -> str:
    """Why a gate decided as it did."""
    return REASONS.get(gate, gate.replace("_", " "))
