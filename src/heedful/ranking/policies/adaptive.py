"""The adaptive rule: what was said of a fact for the very question counts in full, for and against; what was said for
related questions counts as far as they resemble it, and only for. Facts that nobody has judged are protected.

Sharing between questions goes back to Nadaraya (1964) and Watson (1964), with a kernel of compact support, so that a
question without related evidence ranks exactly as it would without feedback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from heedful.model import UsefulnessSource
from heedful.ranking.affinity import Affinity, Strengths, VoteTable, supports
from heedful.ranking.evidence import as_of, merge, votes_per_fact
from heedful.ranking.policies.base import Candidate, Ranked, Usefulness
from heedful.ranking.signals import NEUTRAL, Opinion

GATE, SAME = 0.89, 0.97
"""The similarity up to which a question is another one, and from which it is the same: a line between."""

CAUTION = 0.15
"""What a vote against a fact weighs where the question is the same in other words: it may be about the words."""

UNKNOWN = Usefulness(NEUTRAL, "neutral")

PROVEN = 5
"""Facts that votes for the same question may add to the candidates."""

SUPPORTED = 3
"""Facts that related questions may add."""


@dataclass(frozen=True, slots=True)
class Same:
    """A question that asks for the same as the one asked, how surely, and what was said for it."""

    similarity: float
    votes: VoteTable


class Adaptive:
    """One vote of each author, of the very question and of related ones."""

    name = "adaptive"

    def __init__(self, affinity: Affinity | None = None) -> None:
        self.affinity = affinity or Affinity()

    def rank(
        self, candidates: Sequence[Candidate], opinions: Sequence[Opinion], weight: float, now: int
    ) -> list[Ranked]:
        by_query: dict[int, list[Opinion]] = defaultdict(list)
        for opinion in as_of(opinions, now):
            by_query[opinion.query].append(opinion)
        same = [Same(group[0].similarity, VoteTable.of(votes_per_fact(group))) for group in by_query.values()]
        return self.order(candidates, self.verdicts(same, now, Strengths()), {}, weight)

    def kernel(self, similarity: float) -> float:
        """How much of what was said for a question counts for one that is so similar."""
        return min(1.0, max(0.0, (similarity - GATE) / (SAME - GATE)))

    def verdicts(self, same: Iterable[Same], now: int, strengths: Strengths) -> dict[int, float]:
        """What was said of each fact for the very question, in [-1, 1]."""
        votes: dict[int, list[float]] = defaultdict(list)
        for each in same:
            kernel = self.kernel(each.similarity)
            if kernel > 0:
                against = 1.0 if each.similarity == 1.0 else CAUTION
                for fact, net in zip(each.votes.facts.tolist(), each.votes.at(now).tolist(), strict=True):
                    votes[fact].append(kernel * (net if net > 0 else against * net))
        net = np.array([fsum(theirs) for theirs in votes.values()])
        verdicts = supports(net, strengths.certainty).tolist()
        return {fact: verdict for fact, verdict in zip(votes, verdicts, strict=True) if verdict}

    def proven(self, verdicts: Mapping[int, float]) -> list[int]:
        """Facts that votes for the same question make candidates, however relevant they are."""
        liked = [fact for fact, verdict in verdicts.items() if verdict > 0]
        return sorted(liked, key=lambda fact: (-verdicts[fact], fact))[:PROVEN]

    def boost(self, verdict: float, lift: float) -> float:
        """What evidence does to a fact, in [-1, 1]: its verdict for the very question, and its lift by related ones."""
        return max(verdict, lift) if verdict >= 0 else lift + verdict * (1 + lift)

    def order(
        self,
        candidates: Sequence[Candidate],
        verdicts: Mapping[int, float],
        lifts: Mapping[int, float],
        weight: float,
    ) -> list[Ranked]:
        """Candidates by relevance plus boost; none that nobody spoke against falls by more than one place for it."""
        by_fact = sorted(candidates, key=lambda each: each.fact)
        boosts = [self.boost(verdicts.get(each.fact, 0.0), lifts.get(each.fact, 0.0)) for each in by_fact]
        # Not clipped: at the top of the scale, those with more evidence must still come first.
        targets = [each.relevance + weight * boost for each, boost in zip(by_fact, boosts, strict=True)]
        order = merge([each.relevance for each in by_fact], targets, [weight * boost > 0 for boost in boosts])
        ranked, lowest = [], 1.0
        for index in order:
            each = by_fact[index]
            # Where a fact was protected, those behind it show no more than its score.
            lowest = min(lowest, max(0.0, targets[index]))
            usefulness = UNKNOWN
            if each.fact in verdicts or each.fact in lifts:
                source: UsefulnessSource = "context" if each.fact in verdicts else "related"
                usefulness = Usefulness((1 + boosts[index]) / 2, source)
            ranked.append(Ranked(each.fact, each.relevance, usefulness, lowest))
        return ranked
