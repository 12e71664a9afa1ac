"""Reads stored datasets and their facts."""

from __future__ import annotations

from sqlalchemy import Connection

from heedful.api import checks
from heedful.errors import no_dataset
from heedful.memory.recall import check_where
from heedful.memory.supersede import locate
from heedful.model import Dataset, Fact, Metadata, Page
from heedful.storage import facts, scopes
from heedful.storage.filters import selections
from heedful.storage.rows import AnyRow, to_model
from heedful.workspace import Workspace


def fact(workspace: Workspace, fact_id: str) -> Fact:
    """One fact, superseded or not; one that has expired, until it is removed."""
    checks.identifier("fact_id", fact_id)
    with workspace.read() as connection:
        seq, dataset = locate(workspace, connection, fact_id)
        names = scopes.dataset_names(connection)
        return _fact(facts.get_fact(connection, seq), names[dataset])


def list_facts(
    workspace: Workspace,
    dataset: str,
    source: str | None,
    where: Metadata | None,
    cursor: str | None,
    limit: int,
    newest_first: bool,
) -> Page[Fact]:
    """A page of the facts of a dataset that can be recalled, in the order in which they were stored."""
    checks.name("dataset", dataset)
    if source is not None:
        checks.any_text("source", source)
    allowed = check_where(where) or {}
    after = checks.cursor(cursor)
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        rows = []
        if number is not None:
            # One more, to know whether there is a next page.
            rows = facts.list_facts(
                connection, number, source, selections(number, allowed), after, limit + 1, newest_first, workspace.now()
            )
    more = str(rows[limit - 1].number) if len(rows) > limit else None
    return Page(items=[_fact(row, dataset) for row in rows[:limit]], next_cursor=more)


def datasets(workspace: Workspace) -> list[str]:
    """The names of datasets that have facts or were made on purpose, oldest first."""
    with workspace.read() as connection:
        rows, now = scopes.dataset_rows(connection), workspace.now()
        return [row.name for row in rows if row.metadata is not None or facts.count(connection, row.id, now)]


def get_dataset(workspace: Workspace, dataset: str) -> Dataset:
    """One dataset that has facts or was made on purpose."""
    checks.name("dataset", dataset)
    with workspace.read() as connection:
        row = scopes.dataset_row(connection, dataset)
        stored = None if row is None else _dataset(connection, row, workspace.now())
        if row is None or stored is None or (row.metadata is None and not stored.facts):
            known = [name for name in scopes.dataset_names(connection).values() if name != dataset]
            raise no_dataset(workspace.project, dataset, known)
    return stored


def create_dataset(workspace: Workspace, dataset: str, metadata: Metadata | None) -> Dataset:
    """Makes a dataset that may have no facts; of one that is there, metadata are merged by key."""
    checks.name("dataset", dataset)
    added = {} if metadata is None else checks.metadata("metadata", metadata)
    with workspace.write() as connection:
        number = scopes.ensure_dataset(connection, workspace.project, dataset, workspace.now())
        row = scopes.dataset_row(connection, dataset)
        assert row is not None
        merged = checks.metadata("metadata", (row.metadata or {}) | added)
        scopes.set_metadata(connection, number, merged)
        return _dataset(connection, row, workspace.now()).model_copy(update={"metadata": merged})


def _dataset(connection: Connection, row: AnyRow, now: int) -> Dataset:
    return to_model(Dataset, row, metadata=row.metadata or {}, facts=facts.count(connection, row.id, now))


def _fact(row: AnyRow, dataset: str) -> Fact:
    return to_model(Fact, row, fact_id=row.id, dataset=dataset)
