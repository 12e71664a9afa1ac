"""Fits how far evidence is followed in a dataset, and notes it in the ledger, so that all processes follow it alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from heedful.memory.workspace import Workspace
from heedful.ranking import strengths
from heedful.storage import ledger, scopes
from heedful.storage.ledger import Fitted
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import of_facts
from heedful.threads import Steps

MAX_OPINIONS = 20_000
"""The opinions that are looked at, the newest of those that a fit is of."""


def fit_soon(workspace: Workspace, dataset: int) -> None:
    """Fits the strengths of a dataset in the background."""
    if not workspace.database.read_only:
        workspace.do_later(f"fit of strengths {dataset}", lambda: _steps(workspace, dataset))


def _steps(workspace: Workspace, dataset: int) -> Steps:
    with workspace.read() as connection:
        model = workspace.model(connection)
        _, rows = ledger.first_opinions(connection, dataset, strengths.prefix, MAX_OPINIONS)
        if model is None or not rows:
            return
        newest = ledger.last_event(connection, dataset)
        contexts = workspace.contexts(connection, dataset, model, newest, needed=())
    yield from workspace.embed_queries(contexts, _by_query(rows))
    fit(workspace, dataset)


def fit(workspace: Workspace, dataset: int) -> Fitted | None:
    """The strengths of a dataset by its oldest active opinions, as many as `strengths.prefix` says; None if there are
    too few. They are noted if they are others than before."""
    found, before = computed(workspace, dataset)
    if found is not None and found != before:
        with workspace.write() as connection:
            project = scopes.owner(connection, dataset)
            ledger.append(connection, [ledger.strengths_event(project, dataset, found, workspace.now())])
    return found


def computed(workspace: Workspace, dataset: int) -> tuple[Fitted | None, Fitted | None]:
    """The strengths as the ledger has them now, and as they were last noted."""
    with workspace.read() as connection:
        model = workspace.model(connection)
        before = ledger.fitted(connection, dataset)
        count, rows = ledger.first_opinions(connection, dataset, strengths.prefix, MAX_OPINIONS)
        if model is None or not rows:
            return None, before
        by_query = _by_query(rows)
        contexts = workspace.contexts(connection, dataset, model, ledger.last_event(connection, dataset), by_query)
        rated = [
            strengths.Rated(
                contexts.vector_of(query),
                [ledger.opinion(row) for row in sorted(by_query[query], key=lambda row: (row.effective, row.seq))],
            )
            for query in reversed(by_query)
        ]
        judged = sorted({row.fact for opinions in by_query.values() for row in opinions})
        found = strengths.fit(rated, of_facts(connection, model, judged))
    workspace.keep_vectors()
    return Fitted(found, count, rows[-1].seq), before


def _by_query(rows: Sequence[AnyRow]) -> dict[int, list[AnyRow]]:
    """The opinions for each of the newest questions, the newest first."""
    by_query: dict[int, list[AnyRow]] = {}
    for row in reversed(rows):
        by_query.setdefault(row.query_id, []).append(row)
    return dict(islice(by_query.items(), strengths.MAX_QUESTIONS))
