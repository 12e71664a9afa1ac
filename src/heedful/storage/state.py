"""What a recall must know before it searches, in one look."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, literal, select

from heedful.storage.prepared import Direct, Prepared
from heedful.storage.schema import changes, datasets, events, facts, models, projects
from heedful.storage.vectors import ModelRow


@dataclass(frozen=True, slots=True)
class State:
    """A dataset as a connection sees it."""

    model: ModelRow | None
    """The model in force; None before the first fact."""
    dataset: int | None
    """None if the project has no such dataset."""
    policy: str | None
    """The policy that was set for the dataset, else for its project."""
    change: int
    """The newest line of the feed that indexes follow."""
    event: int
    """The newest event; 0 if nobody has said anything."""
    first_end: int | None
    """When the first of its facts expires, or has expired."""


_THERE = datasets.join(projects, projects.c.id == datasets.c.project_id)
_STATE = Prepared(
    select(
        models.c.id.label("model_id"),
        models.c.name,
        models.c.dimensions,
        datasets.c.id.label("dataset"),
        func.coalesce(datasets.c.policy, projects.c.policy).label("policy"),
        select(func.max(changes.c.seq)).where(changes.c.dataset_id == datasets.c.id).scalar_subquery().label("change"),
        select(func.max(events.c.seq)).where(events.c.dataset_id == datasets.c.id).scalar_subquery().label("event"),
        select(func.min(facts.c.expires_at))
        .where(facts.c.dataset_id == datasets.c.id, facts.c.expires_at.is_not(None))
        .scalar_subquery()
        .label("first_end"),
    ).select_from(
        select(literal(1).label("one"))
        .subquery("always")
        .outerjoin(models, models.c.active == 1)
        .outerjoin(_THERE, and_(projects.c.name == bindparam("project"), datasets.c.name == bindparam("wanted")))
    )
)


def look(direct: Direct, project: str, dataset: str) -> State:
    """The state of a dataset; nothing is created."""
    (row,) = direct.run(_STATE, project=project, wanted=dataset)
    model_id, name, dimensions, number, policy, change, event, first_end = row
    model = None if model_id is None else ModelRow(model_id, name, dimensions)
    return State(model, number, policy, change or 0, event or 0, first_end)
