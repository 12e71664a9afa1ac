"""Fits how far evidence is followed in a dataset, and notes it in the ledger, so that all processes follow it alike."""

from __future__ import annotations

from heedful.memory.workspace import Workspace
from heedful.ranking import strengths
from heedful.storage import ledger, scopes
from heedful.storage.ledger import Fitted
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import of_facts

MAX_OPINIONS = 20_000
"""The opinions that are looked at, the newest of those that a fit is of."""


def fit_soon(workspace: Workspace, dataset: int) -> None:
    """Fits the strengths of a dataset beside what is asked."""
    workspace.do_beside(f"heedful-strengths-{dataset}", lambda: fit(workspace, dataset))


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
        by_query: dict[int, list[AnyRow]] = {}
        for row in reversed(rows):
            by_query.setdefault(row.query_id, []).append(row)
        newest = list(by_query)[: strengths.MAX_QUESTIONS]
        contexts = workspace.contexts(connection, dataset, model, ledger.last_event(connection, dataset), newest)
        rated = [
            strengths.Rated(
                contexts.vector_of(query),
                [ledger.opinion(row) for row in sorted(by_query[query], key=lambda row: (row.effective, row.seq))],
            )
            for query in reversed(newest)
        ]
        judged = sorted({row.fact for query in newest for row in by_query[query]})
        found = strengths.fit(rated, of_facts(connection, model, judged))
    workspace.keep_vectors()
    return Fitted(found, count, rows[-1].seq), before
