"""The policy that ranks: which one a dataset or a project has, and the judges that put it to work on a recall.

The chosen policy is the last choice in the ledger that was not retracted; the tables of datasets and projects have the
result, because every recall reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from heedful.api import checks
from heedful.clock import from_stored
from heedful.ledger import events as ledger
from heedful.ledger import scores
from heedful.ledger.adaptive_policy import SUPPORTED, Adaptive, Neighbour, Same, Strengths, Supported, Verdicts, rivals
from heedful.ledger.contexts import Match
from heedful.ledger.events import POLICY, Event, is_retracted
from heedful.ledger.fold_cache import EvidenceIndex, OverallIndex, View
from heedful.ledger.scores import ALL_QUERIES
from heedful.ledger.usefulness import UNKNOWN, Candidate, Documented, Opinion, Policy, Ranked, Tally, Usefulness
from heedful.model import PolicyChange, PolicyInUse, PolicyName
from heedful.storage import audit, scopes
from heedful.storage.rows import AnyRow, select_in
from heedful.storage.schema import datasets, events, projects
from heedful.storage.vectors import Vectors
from heedful.workspace import Workspace

Facts = NDArray[np.int64]
Mask = NDArray[np.bool_]

DOCUMENTED = Documented()
ADAPTIVE = Adaptive()

DEFAULT_POLICY: PolicyName = "adaptive"  # The policy of a project that has set none.
BLEND_POLICY: PolicyName = "documented"  # The policy of a recall that asks for the boost, where none was set.

POLICIES: dict[PolicyName, Policy[Any]] = {"documented": DOCUMENTED, "adaptive": ADAPTIVE}


def no_facts() -> Facts:
    """The facts that were judged where there are no signals."""
    return np.empty(0, np.int64)


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

    def might_reach(self, least: float) -> tuple[Facts, Mask]:
        """Every fact that it need not be neutral for, and whether its usefulness may be at least `least`."""

    def contenders(self, facts: Facts, top_k: int) -> Mask:
        """Which of these facts, the most relevant first, can be among the `top_k` at all."""

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        """Candidates, best first."""


@dataclass(frozen=True, slots=True)
class DocumentedJudge:
    """The documented rule on the scores that are kept folded."""

    connection: Connection
    overall: OverallIndex
    newest: int
    """The last event that `connection` sees."""
    context: Context
    now: int
    judged: Facts
    """The facts that were ever judged, in order."""
    held_out: Sequence[int] = ()
    """Queries whose votes don't count."""

    def proven(self) -> list[int]:
        if not self.context.matches:
            return []
        return scores.facts_with(self.connection, self.overall.dataset, self.context.query_ids)

    def might_reach(self, least: float) -> tuple[Facts, Mask]:
        self.overall.follow(self.connection, self.newest)
        facts, passing = self.overall.reaching(least, self.now)
        # Signals in the context count before those elsewhere.
        in_context = self._usefulness(self.proven())
        own = np.fromiter(in_context, np.int64, len(in_context))
        others = ~np.isin(facts, own)
        values = np.array([usefulness.value for usefulness in in_context.values()], np.float64)
        return np.concatenate([facts[others], own]), np.concatenate([passing[others], values >= least])

    def contenders(self, facts: Facts, top_k: int) -> Mask:
        return most_relevant(self._are_judged(facts), top_k)

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        return DOCUMENTED.rank(candidates, self._usefulness([fact for fact, _ in candidates]), weight)

    def _usefulness(self, fact_seqs: Sequence[int]) -> dict[int, Usefulness]:
        every = dict.fromkeys(fact_seqs, UNKNOWN)
        judged = [fact for fact, is_judged in zip(fact_seqs, self._are_judged(fact_seqs), strict=True) if is_judged]
        if not judged:
            return every
        stored = scores.read(self.connection, judged, [ALL_QUERIES, *self.context.query_ids])
        if self.held_out:
            stored |= self._without(judged)
        in_context: dict[int, list[Tally]] = defaultdict(list)
        for (fact, query), tally in stored.items():
            if query != ALL_QUERIES:
                in_context[fact].append(tally)
        tallies = {fact: by_query[0] for fact, by_query in in_context.items() if len(by_query) == 1}
        # Steps are clamped, so two scores can't be added up: their signals are folded together.
        if several := [fact for fact, by_query in in_context.items() if len(by_query) > 1]:
            signals: dict[int, list[Opinion]] = defaultdict(list)
            for signal in ledger.surviving(self.connection, several, self.context.query_ids):
                signals[signal.fact].append(signal)
            tallies |= {fact: DOCUMENTED.fold(about_fact) for fact, about_fact in signals.items()}
        return every | {
            fact: DOCUMENTED.usefulness(tallies.get(fact), stored.get((fact, ALL_QUERIES)), self.now) for fact in judged
        }

    def _without(self, judged: Sequence[int]) -> dict[tuple[int, int], Tally]:
        """The scores over all queries but those that are held out, of the facts that these judge."""
        told = sorted({fact for fact, _ in scores.read(self.connection, judged, self.held_out)})
        left: dict[int, list[Opinion]] = {fact: [] for fact in told}
        for signal in ledger.surviving(self.connection, told) if told else ():
            if signal.query not in self.held_out:
                left[signal.fact].append(signal)
        return {(fact, ALL_QUERIES): DOCUMENTED.fold(signals) for fact, signals in left.items()}

    def _are_judged(self, fact_seqs: Sequence[int] | Facts) -> Mask:
        if not len(self.judged):
            return np.zeros(len(fact_seqs), bool)
        places = np.searchsorted(self.judged, fact_seqs)
        are_judged: Mask = self.judged[np.minimum(places, len(self.judged) - 1)] == fact_seqs
        return are_judged


class AdaptiveJudge:
    """The adaptive policy on the votes of the same and of related queries."""

    def __init__(
        self,
        view: View,
        evidence: EvidenceIndex,
        vectors_of: Callable[[Sequence[int]], Mapping[int, Vectors]],
        asked: Vectors | None,
        matches: list[Match],
        nearest: Iterable[Neighbour],
        now: int,
    ) -> None:
        """`vectors_of` reads the vectors of facts, `asked` is that of the query, and `nearest` are the rated queries
        near it, the nearest first."""
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
        self._vectors_of, self._asked = vectors_of, asked
        self.context = Context(matches, [question.neighbour for question in related], strengths)
        self.first: Sequence[int] = ()
        """The most relevant facts, where some of them are no candidates."""

    def proven(self) -> list[int]:
        return list(dict.fromkeys([*ADAPTIVE.proven(self._verdicts), *self._supported.nearest(SUPPORTED)]))

    def might_reach(self, least: float) -> tuple[Facts, Mask]:
        facts = np.union1d(np.fromiter(self._verdicts, np.int64), self._supported.facts)
        lifted = np.isin(facts, self._supported.facts)
        values = np.array([(1 + self._verdicts.get(fact, 0.0)) / 2 for fact in facts.tolist()])
        return facts, lifted | (values >= least)

    def contenders(self, facts: Facts, top_k: int) -> Mask:
        supported = set(self._supported.facts.tolist())
        known = (fact in self._verdicts or fact in supported for fact in facts.tolist())
        return most_relevant(np.fromiter(known, bool, len(facts)), top_k)

    def rank(self, candidates: Sequence[Candidate], weight: float) -> list[Ranked]:
        relevance = dict(candidates)
        supported: list[int] = self._supported.facts.tolist()
        lifts: dict[int, float] = {}
        if self._asked is not None and not set(supported).isdisjoint(relevance):
            first = self.first or rivals(relevance)
            vectors = self._vectors_of([*supported, *first])
            lifts = ADAPTIVE.affinity.lifts(self._supported, self._asked, vectors, relevance, first, self._boldness)
        return ADAPTIVE.rank(candidates, Verdicts(self._verdicts, lifts), weight)


def most_relevant(judged: Mask, top_k: int) -> Mask:
    """Which facts, the most relevant first, can be among the `top_k`: all that somebody judged, and as many others.
    Those others keep their order by relevance, so only the first of them can be shown."""
    contenders: Mask = judged | (np.cumsum(~judged) <= top_k)
    return contenders


def explore(
    order: Sequence[int], known: Sequence[bool], shown: int, share: float, seed: int
) -> tuple[list[int], float]:
    """With the probability `share`, an unknown fact from the next `shown` ranks gets the last rank that is shown.

    Returns the order, and the probability of the fact at that rank.
    """
    waiting = [index for index in order[shown : 2 * shown] if not known[index]]
    if share <= 0 or not waiting:
        return list(order), 1.0
    draw = Random(seed)
    if draw.random() >= share:
        return list(order), 1.0 - share
    chosen = draw.choice(waiting)
    rest = [index for index in order if index != chosen]
    return [*rest[: shown - 1], chosen, *rest[shown - 1 :]], share / len(waiting)


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
        previous = current(connection, project, number)
        event = None if previous == policy else choose(connection, project, chosen, policy, at)
        audit.note_action(connection, "set_policy", at, project, dataset)
    return PolicyChange(
        event_id=None if event is None else event.id,
        dataset=dataset,
        policy=policy,
        previous=None if previous is None else checks.policy(previous),
    )


WHOLE_PROJECT = ""  # The target of a choice for a whole project. Names of datasets are not empty.


def effective_policy(named: str | None, chosen: str | None, boosted: bool = False) -> PolicyName:
    """The policy of a recall: the one it names, else the one chosen for its dataset or project, else a default."""
    return checks.policy(named or chosen or (BLEND_POLICY if boosted else DEFAULT_POLICY))


def policy_in_use(workspace: Workspace, dataset: str | None) -> PolicyInUse:
    """The policy of a dataset or of the project, with the choice that decides it."""
    with workspace.read() as connection:
        if dataset is not None:
            workspace.dataset(connection, checks.name("dataset", dataset))
        project = scopes.project_id(connection, workspace.project)
        targets = [WHOLE_PROJECT] if dataset is None else [dataset, WHOLE_PROJECT]
        rows = [] if project is None else choices(connection, project, targets)
        project_policy, own_policies = scopes.policies(connection)
    policies = own_policies | {WHOLE_PROJECT: project_policy}
    target = next((target for target in targets if policies.get(target) is not None), None)
    choice = next((row for row in rows if row.target_id == target), None)
    return PolicyInUse(
        dataset=dataset,
        policy=effective_policy(None, None if target is None else policies[target]),
        chosen_for=None if target is None else "project" if target == WHOLE_PROJECT else "dataset",
        chosen_by=None if choice is None else choice.source,
        chosen_at=None if choice is None else from_stored(choice.at),
        event_id=None if choice is None else choice.id,
    )


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
        value=policy,
        body={"before": current(connection, project, number), "reverts": reverts},
        idempotency_key="" if reverts is None else revert_key(reverts),
    )
    ledger.append(connection, [event])
    scopes.set_policy(connection, project, number, policy)
    return event


def revert_key(event_id: str) -> str:
    """The idempotency key of the choice that takes another one back."""
    return f"revert/{event_id}"


def refold_choice(connection: Connection, project: int, target: str) -> None:
    """Sets the policy of a dataset or a project to the last choice that counts; a dataset that is gone has none."""
    number, since = None, 0
    if target != WHOLE_PROJECT:
        named = (datasets.c.project_id == project, datasets.c.name == target)
        dataset = connection.execute(select(datasets.c.id, datasets.c.created_at).where(*named)).first()
        if dataset is None:
            return
        number, since = dataset
    # An earlier dataset of this name may have had choices of its own.
    policy = next((row.value for row in choices(connection, project, [target]) if row.at >= since), None)
    scopes.set_policy(connection, project, number, policy)


def choices(connection: Connection, project: int, targets: Sequence[str]) -> list[AnyRow]:
    """The choices for these datasets, or for the project, that were not retracted, the newest first."""
    kind = (events.c.kind == POLICY, events.c.project_id == project, ~is_retracted())
    rows = select_in(connection, select(events).where(*kind), events.c.target_id, targets)
    return sorted(rows, key=lambda row: -row.seq)
