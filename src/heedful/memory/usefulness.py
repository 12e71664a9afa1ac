"""What signals say of facts for one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from heedful.index.contexts import Match
from heedful.learning.policies import Documented, Tally, Usefulness
from heedful.learning.policies.base import fold
from heedful.memory.workspace import Workspace
from heedful.storage import ledger, scores
from heedful.storage.scores import ALL_QUERIES
from heedful.storage.vectors import ModelRow, Vectors

POLICY = Documented()


@dataclass(frozen=True, slots=True)
class Context:
    """The earlier queries that mean the same as one that is asked, the most similar first."""

    matches: list[Match] = field(default_factory=list)

    @property
    def query_ids(self) -> list[int]:
        return [match.query_id for match in self.matches]


def context_of(
    workspace: Workspace, connection: Connection, dataset: int, model: ModelRow, query: str, vector: Vectors
) -> Context:
    """The context of a query in a dataset."""
    return Context(workspace.contexts(connection, dataset, model).matches(query, vector))


def proven(connection: Connection, dataset: int, context: Context) -> list[int]:
    """The facts that have signals in a context."""
    return scores.facts_with(connection, dataset, context.query_ids) if context.matches else []


def assess(connection: Connection, fact_seqs: Sequence[int], context: Context, now: int) -> dict[int, Usefulness]:
    """The usefulness of each fact for the query of a context."""
    stored = scores.read(connection, fact_seqs, [ALL_QUERIES, *context.query_ids])
    in_context: dict[int, list[Tally]] = defaultdict(list)
    for (fact, query), tally in stored.items():
        if query != ALL_QUERIES:
            in_context[fact].append(tally)
    tallies = {fact: found[0] for fact, found in in_context.items() if len(found) == 1}
    # Steps are clamped, so two scores can't be added up: their signals are folded together.
    several = [fact for fact, found in in_context.items() if len(found) > 1]
    tallies |= together(connection, several, context.query_ids)
    return {fact: POLICY.usefulness(tallies.get(fact), stored.get((fact, ALL_QUERIES)), now) for fact in fact_seqs}


def together(connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int]) -> dict[int, Tally]:
    """One tally for each fact, over the signals of all these queries."""
    if not fact_seqs:
        return {}
    signals = defaultdict(list)
    for signal in ledger.surviving(connection, fact_seqs, query_ids):
        signals[signal.fact_seq].append(signal.observation)
    return {fact: fold(POLICY, observations) for fact, observations in signals.items()}
