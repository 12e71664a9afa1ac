"""How far evidence is followed in one store, fitted on its ledger.

Every rated question is predicted from the others twice: without its own votes, as another phrasing of a rated need
would be, and without the votes of all that share a helpful fact with it, as a need that nobody rated would be. Where
the rule would put another fact first than the nearest, people have said which of the two is right; one number, the
boldness, is fitted to that by a logistic regression (held at 0 by a prior, because most stores have few such cases).
The share of wrong opinions is that of authors who disagree about a fact (Dawid and Skene, 1979).

The same opinions give the same strengths. They are rounded, so a fit that would change little changes nothing. They
are noted in the ledger, so that all processes follow evidence alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import exp, sqrt

import numpy as np

from heedful.ledger import events
from heedful.ledger.adaptive_policy import (
    LEAST_LIKENESS,
    RELATED,
    Affinity,
    FactVotes,
    Strengths,
    Vector,
    VoteTable,
    cosines,
    supports,
    votes_per_fact,
)
from heedful.ledger.events import Fitted
from heedful.ledger.fold_cache import View, folds_of
from heedful.ledger.usefulness import Opinion
from heedful.storage import scopes
from heedful.storage.vectors import of_facts
from heedful.threads import Steps
from heedful.workspace import Workspace

MAX_QUESTIONS = 300  # The newest rated questions that are predicted.
LOGIT = 3.4  # The log-odds of a lift of 1: what the regression behind the rule's constants found.
GAP = 0.3  # The gap of relevance that a lift of 1 makes up for.

NEVER_RATED = 0.6
"""The weight of a prediction without the votes of the need; that without the own votes has the rest. At this share, the
worlds that the constants are from need no boldness of their own."""

PRIOR = 5.0  # Cases that hold the boldness at 0.

MOST = 0.5
"""Boldness stays between minus this and this: no store is taken to be wholly unlike the worlds of the constants."""

STEP, ERROR_STEP = 0.05, 0.01  # The steps to which boldness and the share of wrong opinions are rounded.
PAIRS = 10  # Pairs of authors that hold the share of wrong opinions where it is taken to be at first.


@dataclass(frozen=True, slots=True)
class Rated:
    """A rated question: its vector, and the opinions for it, in the order they were given."""

    vector: Vector
    opinions: Sequence[Opinion]


def fit(questions: Iterable[Rated], vectors: Mapping[int, Vector], affinity: Affinity | None = None) -> Strengths:
    """The strengths of a store by its rated questions, the newest last; `vectors` are those of facts."""
    rated = list(questions)[-MAX_QUESTIONS:]
    if not rated or not vectors:
        return Strengths()
    votes = [votes_per_fact(question.opinions) for question in rated]
    error = wrong_share(votes)
    strengths = Strengths(error=error)
    cases = _Cases(rated, votes, vectors, strengths.certainty, affinity or Affinity()).collect()
    boldness = max(-MOST, min(MOST, _regress(cases) / LOGIT))
    return Strengths(_rounded(boldness, STEP), error)


def _rounded(value: float, step: float) -> float:
    return round(round(value / step) * step, 6)


def wrong_share(votes: Iterable[Mapping[int, FactVotes]]) -> float:
    """The share of wrong opinions, by how many pairs of raters disagree about a fact for a question."""
    pairs = differ = 0
    for by_fact in votes:
        for fact in by_fact.values():
            raters = fact.helpful + fact.not_helpful
            pairs += raters * (raters - 1) // 2
            differ += fact.helpful * fact.not_helpful
    usual = 2 * Strengths().error * (1 - Strengths().error)
    share = min(0.48, (differ + usual * PAIRS) / (pairs + PAIRS))
    return max(ERROR_STEP, _rounded((1 - sqrt(1 - 2 * share)) / 2, ERROR_STEP))


class _Cases:
    """The cases in which the rule would put another fact first than the nearest, and which of the two is right."""

    def __init__(
        self,
        rated: Sequence[Rated],
        votes: Sequence[Mapping[int, FactVotes]],
        vectors: Mapping[int, Vector],
        certainty: float,
        affinity: Affinity,
    ) -> None:
        self._affinity = affinity
        judged = sorted({fact for by_fact in votes for fact in by_fact if fact in vectors})
        self._place = {fact: column for column, fact in enumerate(judged)}
        self._support = np.zeros((len(rated), len(judged)))
        self._is_judged = np.zeros((len(rated), len(judged)), bool)
        for row, by_fact in enumerate(votes):
            table = VoteTable.of(by_fact)
            for fact, value in zip(table.facts.tolist(), supports(table.net, certainty).tolist(), strict=True):
                if fact in self._place:
                    self._support[row, self._place[fact]] = max(0.0, value)
                    self._is_judged[row, self._place[fact]] = True
        own = [question.vector for question in rated]
        self._among = cosines(own, own)
        self._alike = cosines(own, [vectors[fact] for fact in judged])
        self._shares = self._support @ self._support.T > 0

    def collect(self) -> list[tuple[float, float, float]]:
        """For each case its log-odds by the rule, the share of the truth that is with the rule, and its weight."""
        cases = []
        for row in np.flatnonzero(self._support.any(axis=1)).tolist():
            alone = np.arange(len(self._support)) == row
            for left_out, weight in ((alone, 1 - NEVER_RATED), (self._shares[row] | alone, NEVER_RATED)):
                case = self._case(row, np.flatnonzero(~left_out))
                if case is not None:
                    cases.append((case[0], case[1], weight * case[2]))
        return cases

    def _case(self, row: int, others: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[float, float, float] | None:
        near = others[np.lexsort((others, -self._among[row, others]))][:RELATED]
        support = self._support[near]
        facts = np.flatnonzero(support.any(axis=0))
        known = np.flatnonzero(self._is_judged[row] | support.any(axis=0))
        if not len(facts) or len(known) < 2:
            return None
        own = self._alike[row]
        first, second = known[np.lexsort((known, -own[known]))][:2]
        rivals = np.where(facts == first, second, first)
        rows = [row, *near.tolist()]
        values = self._affinity.values(
            support[:, facts],
            self._among[row, near],
            self._among[np.ix_(near, near)],
            self._alike[np.ix_(rows, facts)],
            self._alike[np.ix_(rows, rivals)],
        )
        best = int(values.likeness.argmax())
        fact = facts[best]
        right, wrong = self._support[row, fact], self._support[row, first]
        if fact == first or values.likeness[best] < LEAST_LIKENESS or right + wrong == 0:
            return None
        gap = own[first] - own[fact]
        log_odds = LOGIT * (float(values.lift[best]) - gap / GAP)
        return log_odds, float(right / (right + wrong)), float(max(right, wrong))


def _regress(cases: Sequence[tuple[float, float, float]]) -> float:
    """The number to add to the log-odds of these cases, by Newton's method."""
    shift = 0.0
    for _ in range(30):
        gradient, curvature = PRIOR * shift, PRIOR
        for log_odds, share, weight in cases:
            chance = 1 / (1 + exp(-max(-30.0, min(30.0, log_odds + shift))))
            gradient += weight * (chance - share)
            curvature += weight * chance * (1 - chance)
        shift -= max(-1.0, min(1.0, gradient / curvature))
    return shift


MAX_OPINIONS = 20_000  # The opinions that are looked at, the newest of those that a fit is of.


def fit_soon(workspace: Workspace, dataset: int) -> None:
    """Fits the strengths of a dataset in the background, if there are enough new signals."""
    if not workspace.database.read_only:
        workspace.do_later(f"fit of strengths {dataset}", lambda: _steps(workspace, dataset))


def _steps(workspace: Workspace, dataset: int) -> Steps:
    evidence = folds_of(workspace).evidence(dataset)
    with workspace.read() as connection:
        if evidence.count(View.of(connection, dataset)) and not evidence.wants_fit():
            return
        model = workspace.model(connection)
        _, opinions = events.first_opinions(connection, dataset, MAX_OPINIONS)
        if model is None or not opinions:
            return
        newest = events.last_event(connection, dataset)
        contexts = folds_of(workspace).contexts(connection, dataset, model, newest, needed=())
    yield from folds_of(workspace).embed_queries(contexts, _by_query(opinions))
    fit_dataset(workspace, dataset)


def fit_dataset(workspace: Workspace, dataset: int) -> None:
    """Notes the strengths of a dataset in the ledger, if they are others than before."""
    new, before = computed(workspace, dataset)
    if new is not None and new != before:
        with workspace.write() as connection:
            project = scopes.owner(connection, dataset)
            events.append(connection, [events.strengths_event(project, dataset, new, workspace.now())])


def computed(workspace: Workspace, dataset: int) -> tuple[Fitted | None, Fitted | None]:
    """The strengths of a dataset by its oldest active opinions, as many as `prefix` says, or None if there are too few;
    and as they were last noted."""
    with workspace.read() as connection:
        model = workspace.model(connection)
        before = events.fitted(connection, dataset)
        count, opinions = events.first_opinions(connection, dataset, MAX_OPINIONS)
        if model is None or not opinions:
            return None, before
        by_query = _by_query(opinions)
        newest = events.last_event(connection, dataset)
        contexts = folds_of(workspace).contexts(connection, dataset, model, newest, by_query)
        rated = [
            Rated(contexts.vector_of(query), sorted(by_query[query], key=lambda opinion: (opinion.at, opinion.seq)))
            for query in reversed(by_query)
        ]
        judged = sorted({opinion.fact for given in by_query.values() for opinion in given})
        strengths = fit(rated, of_facts(connection, model, judged))
    folds_of(workspace).keep_vectors()
    return Fitted(strengths, count, opinions[-1].seq), before


def _by_query(opinions: Sequence[Opinion]) -> dict[int, list[Opinion]]:
    """The opinions for each of the newest questions, the newest first."""
    by_query: dict[int, list[Opinion]] = {}
    for opinion in reversed(opinions):
        by_query.setdefault(opinion.query, []).append(opinion)
    return dict(islice(by_query.items(), MAX_QUESTIONS))
