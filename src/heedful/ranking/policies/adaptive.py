"""The adaptive rule: counts instead of scores, shrunk, shared between similar queries, bounded by evidence. Related
queries lend by affinity.

- Hierarchical shrinkage: Gelman et al., "Bayesian Data Analysis", chapter 5.
- Lending between queries: Nadaraya (1964), Watson (1964), with a kernel of compact support, so that a query without
  related evidence ranks exactly as it would without feedback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log

from heedful.model import UsefulnessSource
from heedful.ranking.affinity import Affinity, Supports
from heedful.ranking.evidence import POSITIVE, Agreement, FoldedVotes, QueryVotes, aging, as_of, mass, merge
from heedful.ranking.policies.base import Candidate, Ranked, Usefulness
from heedful.ranking.signals import NEUTRAL, Opinion


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers of the rule: the most gain on one half of COVID-Q at which needs that nobody rated lose nothing."""

    gate: float = 0.87
    """The similarity up to which a query lends no evidence."""
    same: float = 0.96
    """The similarity from which it lends all of its evidence."""
    fact: float = 2.0
    """Opinions that hold a fact at its context's rate."""
    context: float = 5.0
    """Opinions that hold a context at the dataset's rate."""
    full: float = 3.0
    """The log-odds above its context's rate that earn a fact the full weight."""
    caution: float = 0.25
    """The share of the weight that evidence against a fact may use."""


@dataclass(frozen=True, slots=True)
class QueryEvidence:
    """The evidence of one query, and its similarity to the query of the recall."""

    similarity: float
    votes: FoldedVotes


@dataclass(frozen=True, slots=True)
class Counts:
    """The evidence for and against a fact, borrowed weights and age included."""

    positive: float = 0.0
    negative: float = 0.0
    latest: int = 0
    share: float = 1.0
    """The largest share of its evidence that a query lent."""

    @property
    def total(self) -> float:
        return self.positive + self.negative


UNKNOWN = Usefulness(NEUTRAL, "neutral")

PROVEN = 5
"""Facts that proof for the same query may add to the candidates."""

SUPPORTED = 3
"""Facts that related queries may add."""

NEARLY_THE_SAME = 0.5
"""The share of evidence that a query must lend for its proof to add candidates."""


class Adaptive:
    """Beta counts with decay, a hierarchical prior, a kernel over queries, trust, and protection of new facts."""

    name = "adaptive"

    def __init__(self, constants: Constants | None = None, affinity: Affinity | None = None) -> None:
        self.constants = constants or Constants()
        self.affinity = affinity or Affinity()

    def rank(
        self, candidates: Sequence[Candidate], opinions: Sequence[Opinion], weight: float, now: int
    ) -> list[Ranked]:
        by_query: dict[int, list[Opinion]] = defaultdict(list)
        for opinion in as_of(opinions, now):
            by_query[opinion.query].append(opinion)
        positive = sum(mass(each) for each in opinions if each.signal_type in POSITIVE)
        negative = sum(mass(each) for each in opinions if each.signal_type not in POSITIVE)
        near = [QueryEvidence(group[0].similarity, QueryVotes(group).folded()) for group in by_query.values()]
        return self.order(candidates, self.counts(near, now), dataset_rate(positive, negative), weight)

    def kernel(self, similarity: float) -> float:
        """How much of its evidence a query lends: nothing up to the gate, all from `same` on, a line between."""
        gate, same = self.constants.gate, self.constants.same
        return min(1.0, max(0.0, (similarity - gate) / (same - gate)))

    def counts(self, near: Iterable[QueryEvidence], now: int) -> dict[int, Counts]:
        """The evidence about each fact that the queries near the one asked lend it."""
        evidence = [each for each in near if self.kernel(each.similarity) > 0]
        trusted = trust(evidence)
        positive: dict[int, list[float]] = defaultdict(list)
        negative: dict[int, list[float]] = defaultdict(list)
        latest: dict[int, int] = defaultdict(int)
        share: dict[int, float] = defaultdict(float)
        for each in evidence:
            kernel = self.kernel(each.similarity)
            for vote in each.votes.votes:
                weight = kernel * aging(now - vote.last) * trusted.get(vote.author, 1.0)
                positive[vote.fact].append(weight * vote.positive)
                negative[vote.fact].append(weight * vote.negative)
                latest[vote.fact] = max(latest[vote.fact], vote.latest)
                share[vote.fact] = max(share[vote.fact], kernel)
        # Exact sums: they must not depend on the order of authors, whose names can be erased.
        return {
            fact: Counts(fsum(positive[fact]), fsum(negative[fact]), latest[fact], share[fact]) for fact in positive
        }

    def boosts(self, counts: Mapping[int, Counts], rate: float) -> dict[int, tuple[float, float]]:
        """(boost in [-1, 1], usefulness in [0, 1]) of each fact that has evidence.

        The strength is what a fact has gained over its context's rate, in log-odds: one `helpful` says much where few
        are given, and little where raters say it of everything. It grows with evidence. The facts that gained share
        the strongest gain by their support, so a few strong votes for a rival don't outweigh many.
        """
        own = self.constants
        good = sum(each.positive for each in counts.values())
        bad = sum(each.negative for each in counts.values())
        # At most neutral: being liked as often as everything else is no reason to sink.
        context = min(NEUTRAL, (good + own.context * rate) / (good + bad + own.context))
        gained: dict[int, tuple[float, float]] = {}
        for fact, each in counts.items():
            mean = (each.positive + own.fact * context) / (each.total + own.fact)
            gain = (_log_odds(mean) - _log_odds(context)) / own.full
            gained[fact] = (min(1.0, max(-1.0, gain)), mean)
        support = {
            fact: max(0.0, counts[fact].positive - own.caution * counts[fact].negative)
            for fact, (gain, _) in gained.items()
            if gain > 0
        }
        most = max(support.values(), default=0.0)
        strongest = max((gained[fact][0] for fact, net in support.items() if net > 0), default=0.0)
        return {
            fact: (strongest * support[fact] / most if gain > 0 and most else min(0.0, own.caution * gain), mean)
            for fact, (gain, mean) in gained.items()
        }

    def proven(
        self,
        near: Sequence[QueryEvidence],
        counts: Mapping[int, Counts],
        supports: Supports,
        now: int,
    ) -> list[int]:
        """Facts that evidence makes candidates, however relevant they are."""
        lending = [each for each in near if self.kernel(each.similarity) > 0]
        close = [each for each in lending if self.kernel(each.similarity) >= NEARLY_THE_SAME]
        counted = counts if len(close) == len(lending) else self.counts(close, now)
        net = {fact: each.positive - each.negative for fact, each in counted.items()}
        best = sorted((fact for fact in net if net[fact] > 0), key=lambda fact: (-net[fact], fact))[:PROVEN]
        return list(dict.fromkeys([*best, *supports.nearest(SUPPORTED)]))

    def boosted(
        self,
        candidates: Sequence[Candidate],
        counts: Mapping[int, Counts],
        rate: float,
        supports: Supports,
    ) -> dict[int, tuple[float, float]]:
        """As `boosts`, with what related queries lend."""
        found = self.boosts(counts, rate)
        lifts = self.affinity.lifts({each.fact: each.relevance for each in candidates}, supports)
        for fact, lift in lifts.items():
            boost, mean = found.get(fact, (0.0, lift.probability))
            # What was said of a fact for this very query counts before what others lend it.
            lent = lift.amount * (1 - counts[fact].share if fact in counts else 1.0)
            if boost >= 0 and lent > boost:
                found[fact] = (lent, mean)
        return found

    def order(
        self,
        candidates: Sequence[Candidate],
        counts: Mapping[int, Counts],
        rate: float,
        weight: float,
        supports: Supports | None = None,
    ) -> list[Ranked]:
        """Candidates by relevance plus boost; none without evidence falls by more than one place for it."""
        counted = {fact: each for fact, each in counts.items() if each.total > 0}
        boosted = self.boosted(candidates, counted, rate, supports or Supports())
        by_fact = sorted(candidates, key=lambda each: each.fact)
        # Not clipped: at the top of the scale, those with more evidence must still come first.
        targets = [each.relevance + weight * boosted.get(each.fact, (0.0, 0.0))[0] for each in by_fact]
        order = merge(
            [each.relevance for each in by_fact],
            targets,
            [counts[each.fact].latest if weight and each.fact in counted else 0 for each in by_fact],
            [weight > 0 and each.fact in boosted for each in by_fact],
        )
        ranked, lowest = [], 1.0
        for index in order:
            each = by_fact[index]
            # Where a fact was protected, those behind it show no more than its score.
            lowest = min(lowest, max(0.0, targets[index]))
            useful = boosted.get(each.fact)
            source: UsefulnessSource = "context" if each.fact in counted else "related"
            usefulness = UNKNOWN if useful is None else Usefulness(useful[1], source)
            ranked.append(Ranked(each.fact, each.relevance, usefulness, lowest))
        return ranked


def trust(evidence: Iterable[QueryEvidence]) -> dict[str, float]:
    """How far to trust each author whom others agree or disagree with."""
    known: dict[str, Agreement] = defaultdict(Agreement)
    for each in evidence:
        for author, agreed in each.votes.agreement.items():
            known[author] += agreed
    return {author: agreed.trust for author, agreed in known.items()}


def dataset_rate(positive: float, negative: float) -> float:
    """The share of positive mass in a dataset, held at neutral by one opinion."""
    return (positive + NEUTRAL) / (positive + negative + 1)


def _log_odds(chance: float) -> float:
    return log(chance / (1 - chance))
