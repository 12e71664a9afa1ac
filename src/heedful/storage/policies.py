"""Which policy a dataset or a project has: the last choice in the ledger that was not retracted.

The tables of datasets and projects have the result, because every recall reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from heedful.storage import scopes
from heedful.storage.ledger import POLICY, Event, append, is_retracted
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import datasets, events, projects

WHOLE_PROJECT = ""
"""The target of a choice for a whole project. Names of datasets are not empty."""


def current(connection: Connection, project: int, dataset: int | None) -> str | None:
    """The policy that was chosen for a dataset, or for the project."""
    if dataset is None:
        return connection.execute(select(projects.c.policy).where(projects.c.id == project)).scalar()
    return connection.execute(select(datasets.c.policy).where(datasets.c.id == dataset)).scalar()


def choose(
    connection: Connection,
    project: int,
    dataset: tuple[int, str] | None,
    policy: str | None,
    at: int,
    *,
    source: str = "set_policy",
    reverts: str | None = None,
) -> Event:
    """Records the choice of a policy for a dataset (its number and name), or for the project; None resets it.

    `reverts` is the earlier choice that it undoes; nobody undoes one twice.
    """
    number, target = (None, WHOLE_PROJECT) if dataset is None else dataset
    event = Event(
        project_id=project,
        kind=POLICY,
        target_type="project" if dataset is None else "dataset",
        target_id=target,
        source=source,
        at=at,
        recorded_at=at,
        value=policy,
        body={"before": current(connection, project, number), "reverts": reverts},
        idempotency_key="" if reverts is None else revert_key(reverts),
    )
    append(connection, [event])
    scopes.set_policy(connection, project, number, policy)
    return event


def revert_key(event_id: str) -> str:
    """The idempotency key of the choice that takes another one back."""
    return f"revert/{event_id}"


def refold(connection: Connection, project: int, target: str) -> None:
    """Sets the policy of a dataset or a project to the last choice that counts; a dataset that is gone has none."""
    number, since = None, 0
    if target != WHOLE_PROJECT:
        found = connection.execute(
            select(datasets.c.id, datasets.c.created_at).where(
                datasets.c.project_id == project, datasets.c.name == target
            )
        ).first()
        if found is None:
            return
        number, since = found
    # An earlier dataset of this name may have had choices of its own.
    policy = next((row.value for row in choices(connection, project, [target]) if row.at >= since), None)
    scopes.set_policy(connection, project, number, policy)


def choices(connection: Connection, project: int, targets: Sequence[str]) -> list[AnyRow]:
    """The choices for these datasets, or for the project, that were not retracted, the newest first."""
    found: list[AnyRow] = []
    for run in batches(targets):
        found += connection.execute(
            select(events).where(
                events.c.target_id.in_(run),
                events.c.kind == POLICY,
                events.c.project_id == project,
                ~is_retracted(),
            )
        )
    return sorted(found, key=lambda row: -row.seq)
