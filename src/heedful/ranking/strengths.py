"""How far evidence is followed in one store, fitted on its ledger.

Every rated question is predicted from the others twice: without its own votes, as another phrasing of a rated need
would be, and without the votes of all that share a helpful fact with it, as a need that nobody rated would be. Where
the rule would put another fact first than the nearest, people have said which of the two is right; one number, the
boldness, is fitted to that by a logistic regression (held at 0 by a prior, because most stores have few such cases).
The share of wrong opinions is that of authors who disagree about a fact (Dawid and Skene, 1979).

The same opinions give the same strengths. They are rounded, so a fit that would change little changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from heedful.ranking.affinity import (
    LEAST_LIKENESS,
    RELATED,
    Affinity,
    Strengths,
    Vector,
    VoteTable,
    cosines,
    supports,
)
from heedful.ranking.evidence import FactVotes, votes_per_fact
from heedful.ranking.signals import Opinion

FIRST_FIT = 64
"""The opinions from which strengths are fitted; then whenever there are twice as many."""

MAX_QUESTIONS = 300
"""The newest rated questions that are predicted."""

LOGIT = 3.4
"""The log-odds of a lift of 1: what the regression behind the rule's constants found."""

GAP = 0.3
"""The gap of relevance that a lift of 1 makes up for."""

NEVER_RATED = 0.6
"""What a prediction without the votes of the need weighs; that without the own votes has the rest. At this share, the
worlds that the constants are from need no boldness of their own."""

PRIOR = 5.0
"""Cases that hold the boldness at 0."""

MOST = 0.5
"""Boldness stays between minus this and this: no store is taken to be wholly unlike the worlds of the constants."""

STEP, ERROR_STEP = 0.05, 0.01
"""What boldness and the share of wrong opinions are rounded to."""

PAIRS = 10
"""Pairs of authors that hold the share of wrong opinions where it is taken to be at first."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A rated question: its vector, and what was said for it, in the order it was given."""

    vector: Vector
    opinions: Sequence[Opinion]


def prefix(opinions: int) -> int:
    """How many of a store's opinions, the oldest first, its strengths are fitted on; 0 for none.

    >>> prefix(63), prefix(64), prefix(200)
    (0, 64, 128)
    """
    return 0 if opinions < FIRST_FIT else FIRST_FIT << ((opinions // FIRST_FIT).bit_length() - 1)


def fit(questions: Iterable[Rated], vectors: Mapping[int, Vector], affinity: Affinity | None = None) -> Strengths:
    """The strengths of a store by its rated questions, the newest last; `vectors` are those of facts."""
    rated = list(questions)[-MAX_QUESTIONS:]
    if not rated or not vectors:
        return Strengths()
    votes = [votes_per_fact(each.opinions) for each in rated]
    error = wrong_share(votes)
    strengths = Strengths(error=error)
    cases = _Cases(rated, votes, vectors, strengths.certainty, affinity or Affinity())
    boldness = max(-MOST, min(MOST, _regress(cases.found()) / LOGIT))
    return Strengths(_rounded(boldness, STEP), error)


def _rounded(value: float, step: float) -> float:
    return round(round(value / step) * step, 6)


def wrong_share(votes: Iterable[Mapping[int, FactVotes]]) -> float:
    """The share of wrong opinions, by how many pairs of raters disagree about a fact for a question."""
    pairs = differ = 0
    for by_fact in votes:
        for each in by_fact.values():
            raters = each.helpful + each.not_helpful
            pairs += raters * (raters - 1) // 2
            differ += each.helpful * each.not_helpful
    usual = 2 * Strengths().error * (1 - Strengths().error)
    share = min(0.48, (differ + usual * PAIRS) / (pairs + PAIRS))
    return max(ERROR_STEP, _rounded((1 - sqrt(1 - 2 * share)) / 2, ERROR_STEP))


class _Cases:
    """Where the rule would put another fact first than the nearest, and which of the two is right."""

    def __init__(
        self,
        rated: Sequence[Rated],
        votes: Sequence[Mapping[int, FactVotes]],
        vectors: Mapping[int, Vector],
        certainty: float,
        affinity: Affinity,
    ) -> None:
        self._affinity = affinity
        judged = sorted({fact for theirs in votes for fact in theirs if fact in vectors})
        self._place = {fact: column for column, fact in enumerate(judged)}
        self._support = np.zeros((len(rated), len(judged)))
        self._is_judged = np.zeros((len(rated), len(judged)), bool)
        for row, theirs in enumerate(votes):
            table = VoteTable.of(theirs)
            for fact, value in zip(table.facts.tolist(), supports(table.net, certainty).tolist(), strict=True):
                if fact in self._place:
                    self._support[row, self._place[fact]] = max(0.0, value)
                    self._is_judged[row, self._place[fact]] = True
        own = [each.vector for each in rated]
        self._among = cosines(own, own)
        self._alike = cosines(own, [vectors[fact] for fact in judged])
        self._shares = self._support @ self._support.T > 0

    def found(self) -> list[tuple[float, float, float]]:
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
    """What has to be added to the log-odds of these cases, by Newton's method."""
    shift = 0.0
    for _ in range(30):
        gradient, curvature = PRIOR * shift, PRIOR
        for log_odds, share, weight in cases:
            chance = 1 / (1 + exp(-max(-30.0, min(30.0, log_odds + shift))))
            gradient += weight * (chance - share)
            curvature += weight * chance * (1 - chance)
        shift -= max(-1.0, min(1.0, gradient / curvature))
    return shift
