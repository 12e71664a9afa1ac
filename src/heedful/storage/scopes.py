"""Projects and datasets: what isolates data from each other. Reading never creates one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, and_, bindparam, func, insert, literal, select, update

from heedful.model import Metadata
from heedful.storage.facts import CORRECTS, active
from heedful.storage.isolation import OWN, own_project
from heedful.storage.rows import AnyRow, Direct, Prepared, dialect_of
from heedful.storage.schema import changes, datasets, events, fact_tags, facts, models, projects
from heedful.storage.vectors import ModelRow

FIND_PROJECT = Prepared(select(projects.c.id).where(projects.c.name == bindparam("name")))


def project_id(connection: Connection, name: str) -> int | None:
    """The project's number, or None if nothing was ever written to it; in a transaction of one project, its number."""
    own = connection.info.get(OWN)
    if own is not None:
        return own or None
    rows = Direct.on(connection).run(FIND_PROJECT, name=name)
    return int(rows[0][0]) if rows else None


def project_names(connection: Connection) -> list[str]:
    """All projects, oldest first."""
    return list(connection.execute(select(projects.c.name).order_by(projects.c.id)).scalars())


def ensure_project(connection: Connection, name: str, at: int) -> int:
    """The project's number; creates the project if it is new."""
    number = project_id(connection, name)
    if number is not None:
        return number
    dialect, row = dialect_of(connection), {"name": name, "created_at": at}
    dialect.see_all(connection)
    number = int(connection.execute(insert(projects).values(row).returning(projects.c.id)).scalar_one())
    dialect.see_project(connection, number)
    return number


def dataset_id(connection: Connection, name: str) -> int | None:
    """The dataset's number, or None if the project has no such dataset."""
    return connection.execute(select(datasets.c.id).where(_OWN_DATASETS, datasets.c.name == name)).scalar()


def ensure_dataset(connection: Connection, project: str, name: str, at: int) -> int:
    """The dataset's number; creates it and its project if they are new."""
    number = dataset_id(connection, name)
    if number is not None:
        return number
    row = {"project_id": ensure_project(connection, project, at), "name": name, "created_at": at}
    return int(connection.execute(insert(datasets).values(row).returning(datasets.c.id)).scalar_one())


def set_policy(connection: Connection, project: int, dataset: int | None, policy: str | None) -> None:
    """Sets the policy of a dataset, or of a whole project; None resets it."""
    table, number = (projects, project) if dataset is None else (datasets, dataset)
    connection.execute(update(table).where(table.c.id == number).values(policy=policy))


def policies(connection: Connection) -> tuple[str | None, dict[str, str | None]]:
    """The policies of the transaction's project and its datasets; None where none is set."""
    project_policy = connection.execute(select(projects.c.policy).where(projects.c.id == own_project())).scalar()
    named = _DATASETS.with_only_columns(datasets.c.name, datasets.c.policy)
    return project_policy, {row.name: row.policy for row in connection.execute(named)}


def facts_by_project(connection: Connection, now: int) -> dict[str, int]:
    """How many facts each project has that are neither superseded nor expired, oldest project first."""
    of_project = select(facts.c.project_id, func.count().label("facts")).group_by(facts.c.project_id)
    counts = of_project.where(active(now)).subquery()
    named = select(projects.c.name, counts.c.facts).outerjoin(counts, counts.c.project_id == projects.c.id)
    return {row.name: row.facts or 0 for row in connection.execute(named.order_by(projects.c.id))}


def owner(connection: Connection, dataset: int) -> int:
    """The number of the project that a dataset is in."""
    return int(connection.execute(select(datasets.c.project_id).where(datasets.c.id == dataset)).scalar_one())


def project_of(connection: Connection, dataset: int) -> str | None:
    """The name of the project that a dataset is in; None if there is no such dataset."""
    return connection.execute(select(projects.c.name).join(datasets).where(datasets.c.id == dataset)).scalar()


def sizes(connection: Connection, dataset: int | None = None) -> dict[int, int]:
    """How many facts each dataset has that are not superseded; or one of them."""
    statement = select(facts.c.dataset_id, func.count()).where(facts.c.hidden == 0).group_by(facts.c.dataset_id)
    if dataset is not None:
        statement = statement.where(facts.c.dataset_id == dataset)
    return {row[0]: row[1] for row in connection.execute(statement)}


def dataset_names(connection: Connection) -> dict[int, str]:
    """All datasets of the transaction's project, also those that hold no fact yet, oldest first."""
    # Without their metadata, which may be damaged.
    named = connection.execute(_DATASETS.with_only_columns(datasets.c.id, datasets.c.name))
    return {row.id: row.name for row in named}


# Named once more: so SQLite takes the index of the project, which is best here.
_OWN_DATASETS = datasets.c.project_id == own_project()
_DATASETS = select(datasets).where(_OWN_DATASETS).order_by(datasets.c.id)


def dataset_rows(connection: Connection) -> list[AnyRow]:
    """All datasets of the transaction's project, oldest first."""
    return list(connection.execute(_DATASETS))


def dataset_row(connection: Connection, name: str) -> AnyRow | None:
    """One dataset."""
    return connection.execute(_DATASETS.where(datasets.c.name == name)).first()


def set_metadata(connection: Connection, dataset: int, metadata: Metadata) -> None:
    """Sets the metadata of a dataset."""
    connection.execute(update(datasets).where(datasets.c.id == dataset).values(metadata=metadata))


@dataclass(frozen=True, slots=True)
class State:
    """A dataset as a connection sees it."""

    model: ModelRow | None
    """The active model; None before the first fact."""
    dataset: int | None
    """None if the project has no such dataset."""
    policy: str | None
    """The policy that was set for the dataset, else for its project."""
    change: int
    """The newest line of the feed that indexes follow."""
    event: int
    """The newest event; 0 if there is none."""
    first_end: int | None
    """When the first of its facts expires, or has expired."""
    corrects: bool
    """Whether some of its facts correct others."""


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
        select(literal(1))
        .where(fact_tags.c.dataset_id == datasets.c.id, fact_tags.c.key == CORRECTS)
        .limit(1)
        .scalar_subquery()
        .label("corrects"),
    ).select_from(
        select(literal(1).label("one"))
        .subquery("always")
        .outerjoin(models, models.c.active == 1)
        .outerjoin(
            datasets.join(projects, projects.c.id == datasets.c.project_id),
            and_(_OWN_DATASETS, datasets.c.name == bindparam("dataset")),
        )
    )
)


def read_state(direct: Direct, dataset: str) -> State:
    """The state of a dataset; nothing is created."""
    (row,) = direct.run(_STATE, dataset=dataset)
    model_id, name, dimensions, number, policy, change, event, first_end, corrects = row
    model = None if model_id is None else ModelRow(model_id, name, dimensions)
    return State(model, number, policy, change or 0, event or 0, first_end, corrects is not None)
