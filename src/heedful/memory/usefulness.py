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
from heedful.ranking.affinity import Neighbour, Strengths, Supported, rivals
from heedful.ranking.policies import Adaptive, Candidate, Documented, Ranked, Tally, Usefulness
from heedful.ranking.policies.adaptive import SUPPORTED, Same
from heedful.ranking.signals import Observation
from heedful.search.evidence import EvidenceIndex, Match, OverallIndex, View
from heedful.storage import audit, ledger, policies, scopes, scores
from heedful.storage.scores import ALL_QUERIES
from heedful.storage.vectors import ModelRow, Vectors

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
    strengths: Strengths | None = None
    """How far the adaptive policy follows evidence in this store."""

    @property
    def query_ids(self) -> list[int]:
        return [match.query_id for match in self.matches]


class Judge(Protocol):
    """A policy at work on one recall, with the evidence that the store keeps ready for it."""

    def proven(self) -> list[int]:
        """Facts that signals make candidates, however relevant they are."""
        ...

    def might_reach(self, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Every fact that it need not be neutral for, and whether its usefulness may be at least `least`."""
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

    def might_reach(self, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
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
    """The adaptive policy on the votes of the same and of related queries."""

    def __init__(
        self,
        view: View,
        evidence: EvidenceIndex,
        model: ModelRow,
        asked: Vectors | None,
        matches: list[Match],
        nearest: Iterable[Neighbour],
        now: int,
    ) -> None:
        """`asked` is the vector of the query, and `nearest` are the rated queries near it, the nearest first."""
        evidence.follow(view)
        strengths = evidence.strengths
        same = {match.query_id: match for match in matches if ADAPTIVE.kernel(match.similarity) > 0}
        votes = evidence.votes(view, list(same), now)
        self._verdicts = ADAPTIVE.verdicts(
            [Same(match.similarity, votes[query]) for query, match in same.items()], now, strengths
        )
        very = {query for query, match in same.items() if match.similarity == 1.0}
        related = evidence.related(view, nearest, very, now)
        self._supported = Supported(related, now, strengths.certainty)
        self._boldness = strengths.boldness
        self._view, self._evidence, self._model, self._asked = view, evidence, model, asked
        self.context = Context(matches, [each.neighbour for each in related], strengths)
        self.first: Sequence[int] = ()
        """The most relevant facts, where some of them are no candidates."""

    def proven(self) -> list[int]:
        return list(dict.fromkeys([*ADAPTIVE.proven(self._verdicts), *self._supported.nearest(SUPPORTED)]))

    def might_reach(self, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        facts = self._known()
        lifted = np.isin(facts, self._supported.facts)
        values = np.array([(1 + self._verdicts.get(fact, 0.0)) / 2 for fact in facts.tolist()])
        return facts, lifted | (values >= least)

    def contenders(self, facts: NDArray[np.int64], top_k: int) -> NDArray[np.bool_]:
        return most_relevant(np.isin(facts, self._known()), top_k)

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        relevance = {each.fact: each.relevance for each in candidates}
        lifts: dict[int, float] = {}
        if self._asked is not None and not set(self._supported.facts.tolist()).isdisjoint(relevance):
            first = self.first or rivals(relevance)
            wanted = [*self._supported.facts.tolist(), *first]
            vectors = self._evidence.vectors(self._view.connection, self._model, wanted)
            lifts = ADAPTIVE.affinity.lifts(self._supported, self._asked, vectors, relevance, first, self._boldness)
        return ADAPTIVE.order(candidates, self._verdicts, lifts, weight)

    def _known(self) -> NDArray[np.int64]:
        said = np.fromiter(self._verdicts, np.int64, len(self._verdicts))
        return np.union1d(said, self._supported.facts)


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
