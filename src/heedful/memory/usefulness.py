"""What signals say of facts for one query, by the rule of a policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.model import PolicyChange, PolicyName
from heedful.ranking.affinity import Neighbour
from heedful.ranking.policies import Adaptive, Candidate, Documented, Ranked, Tally, Usefulness
from heedful.ranking.signals import Observation
from heedful.search.evidence import EvidenceIndex, Match, OverallIndex, View
from heedful.storage import audit, ledger, policies, scopes, scores
from heedful.storage.scores import ALL_QUERIES
from heedful.storage.vectors import ModelRow

NO_FACTS: NDArray[np.int64] = np.empty(0, np.int64)
"""No fact was judged."""

DOCUMENTED = Documented()
ADAPTIVE = Adaptive()


@dataclass(frozen=True, slots=True)
class Context:
    """The earlier queries that mean the same as one that is asked, the most similar first."""

    matches: list[Match]
    neighbours: Sequence[Neighbour] = ()
    """The rated queries nearest to it that lent evidence, whether they mean the same or not."""

    @property
    def query_ids(self) -> list[int]:
        return [match.query_id for match in self.matches]


class Judge(Protocol):
    """A policy at work on one recall, with the evidence that the store keeps ready for it."""

    def proven(self) -> list[int]:
        """Facts that signals make candidates, however relevant they are."""
        ...

    def reaching(self, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Every fact that it need not be neutral for, and whether its usefulness is at least `least`."""
        ...

    def contenders(self, facts: NDArray[np.int64], top_k: int) -> NDArray[np.bool_]:
        """Which of these facts, the most relevant first, can be among the `top_k` at all."""
        ...

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        """Candidates, best first."""
        ...


class DocumentedJudge:
    """The documented rule on the scores that are kept folded."""

    def __init__(
        self,
        connection: Connection,
        overall: OverallIndex,
        newest: int,
        context: Context,
        now: int,
        judged: NDArray[np.int64],
    ) -> None:
        """`newest` is the last event that `connection` sees."""
        self._connection = connection
        self._overall = overall
        self._newest = newest
        self._context = context
        self._now = now
        self._judged = judged

    def proven(self) -> list[int]:
        if not self._context.matches:
            return []
        return scores.facts_with(self._connection, self._overall.dataset, self._context.query_ids)

    def reaching(self, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        self._overall.follow(self._connection, self._newest)
        facts, passing = self._overall.reaching(least, self._now)
        # What was said in the context counts before what was said elsewhere.
        in_context = self._usefulness(self.proven())
        others = ~np.isin(facts, np.fromiter(in_context, np.int64, len(in_context)))
        values = np.array([each.value for each in in_context.values()], np.float64)
        return (
            np.concatenate([facts[others], np.fromiter(in_context, np.int64, len(in_context))]),
            np.concatenate([passing[others], values >= least]),
        )

    def contenders(self, facts: NDArray[np.int64], top_k: int) -> NDArray[np.bool_]:
        return most_relevant(self._are_judged(facts), top_k)

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        return DOCUMENTED.order(candidates, self._usefulness([each.fact for each in candidates]), weight)

    def _usefulness(self, fact_seqs: Sequence[int]) -> dict[int, Usefulness]:
        every = dict.fromkeys(fact_seqs, DOCUMENTED.usefulness(None, None, self._now))
        judged = [fact for fact, is_judged in zip(fact_seqs, self._are_judged(fact_seqs), strict=True) if is_judged]
        if not judged:
            return every
        stored = scores.read(self._connection, judged, [ALL_QUERIES, *self._context.query_ids])
        in_context: dict[int, list[Tally]] = defaultdict(list)
        for (fact, query), tally in stored.items():
            if query != ALL_QUERIES:
                in_context[fact].append(tally)
        tallies = {fact: found[0] for fact, found in in_context.items() if len(found) == 1}
        # Steps are clamped, so two scores can't be added up: their signals are folded together.
        several = [fact for fact, found in in_context.items() if len(found) > 1]
        tallies |= combined_tallies(self._connection, several, self._context.query_ids)
        return every | {
            fact: DOCUMENTED.usefulness(tallies.get(fact), stored.get((fact, ALL_QUERIES)), self._now)
            for fact in judged
        }

    def _are_judged(self, fact_seqs: Sequence[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
        if not len(self._judged):
            return np.zeros(len(fact_seqs), bool)
        places = np.searchsorted(self._judged, fact_seqs)
        found: NDArray[np.bool_] = self._judged[np.minimum(places, len(self._judged) - 1)] == fact_seqs
        return found


class AdaptiveJudge:
    """The adaptive policy on the votes of similar and related queries."""

    def __init__(
        self,
        view: View,
        evidence: EvidenceIndex,
        model: ModelRow,
        matches: list[Match],
        nearest: Iterable[Neighbour],
        now: int,
    ) -> None:
        """`nearest` are the rated queries near the one asked, the nearest first."""
        evidence.follow(view)
        self._rate = evidence.rate()
        self._evidence = evidence.near(view, matches, now)
        self._counts = ADAPTIVE.counts(self._evidence, now)
        related = evidence.related(view, model, nearest, now)
        self._supports = ADAPTIVE.affinity.supports(related, now)
        self._now = now
        self.context = Context(matches, [each.neighbour for each in related])

    def proven(self) -> list[int]:
        return ADAPTIVE.proven(self._evidence, self._counts, self._supports, self._now)

    def reaching(self, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        ranked = ADAPTIVE.order([Candidate(fact, 0.0) for fact in self._counts], self._counts, self._rate, 0.0)
        facts = np.array([each.fact for each in ranked], np.int64)
        return facts, np.array([each.usefulness.value >= least for each in ranked], bool)

    def contenders(self, facts: NDArray[np.int64], top_k: int) -> NDArray[np.bool_]:
        judged = np.zeros(len(facts), bool)
        if self._counts or len(self._supports.facts):
            counted = np.fromiter(self._counts, np.int64, len(self._counts))
            judged = np.isin(facts, np.concatenate([counted, self._supports.facts]))
        return most_relevant(judged, top_k)

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        return ADAPTIVE.order(candidates, self._counts, self._rate, weight, self._supports)


def most_relevant(judged: NDArray[np.bool_], top_k: int) -> NDArray[np.bool_]:
    """Which facts, the most relevant first, can be among the `top_k`: all that somebody judged, and as many others.
    Those others keep their order by relevance, so only the first of them can be shown."""
    found: NDArray[np.bool_] = judged | (np.cumsum(~judged) <= top_k)
    return found


def combined_tallies(connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int]) -> dict[int, Tally]:
    """One tally for each fact, over the signals of all these queries."""
    if not fact_seqs:
        return {}
    signals: dict[int, list[Observation]] = defaultdict(list)
    for signal in ledger.surviving(connection, fact_seqs, query_ids):
        signals[signal.fact_seq].append(signal.observation)
    return {fact: DOCUMENTED.fold(observations) for fact, observations in signals.items()}


def set_policy(workspace: Workspace, policy: PolicyName | None, dataset: str | None) -> PolicyChange:
    """Sets the policy of a dataset, or of the project; None resets it."""
    if policy is not None:
        checks.policy(policy)
    with workspace.write() as connection:
        at = workspace.now()
        project = scopes.ensure_project(connection, workspace.project, at)
        number, chosen = None, None
        if dataset is not None:
            number = workspace.dataset(connection, checks.name("dataset", dataset))
            if number is None:
                number = scopes.ensure_dataset(connection, workspace.project, dataset, at)
            chosen = number, dataset
        previous = policies.current(connection, project, number)
        event = None if previous == policy else policies.choose(connection, project, chosen, policy, at)
        audit.note_action(connection, "set_policy", at, project, dataset)
    return PolicyChange(
        event_id=None if event is None else event.id,
        dataset=dataset,
        policy=policy,
        previous=None if previous is None else checks.policy(previous),
    )
