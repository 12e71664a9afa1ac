"""Opinions as evidence: who said what of which fact, how much it weighs, and whom to trust.

- Position bias: Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback" (2017); an
  `ignored` weighs the chance that the fact was looked at. What proves that it was looked at is not corrected, because
  that would multiply its noise.
- Trust: Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates" (1979), one step: the share of others
  who agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from heedful.ranking.signals import KEPT_PER_WEEK, WEEK, Opinion

REPLACED_OPINION_WEIGHT = 0.85
"""What is left of an author's opinion of a fact when they give another: a changed mind shows at once."""

MAX_AUTHOR_WEIGHT = 5.0
"""What one author's opinions of a fact weigh at most, divided by the number of authors, and never below one."""

INITIAL_AGREEMENTS = 2.0
"""Agreements that every author is credited with from the start."""

POSITIVE = frozenset({"used", "helpful"})

ANONYMOUS = ""
"""The author of opinions without one; together they have one vote."""


@dataclass(frozen=True, slots=True)
class AuthorVote:
    """What one author said of one fact for one query. The masses are as of time 0: they fade with the age of time 0."""

    fact: int
    author: str
    positive: float
    negative: float
    latest: int = 0
    """When they last spoke for it."""

    @property
    def verdict(self) -> int:
        """1 for, -1 against, 0 undecided."""
        return (self.positive > self.negative) - (self.positive < self.negative)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much of what others said agrees with an author, and how much does not."""

    agree: float = 0.0
    differ: float = 0.0

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.agree + other.agree, self.differ + other.differ)

    @property
    def trust(self) -> float:
        """From near 0, contradicted by everybody, to 1; an author whom nobody can contradict is trusted."""
        return (self.agree + INITIAL_AGREEMENTS) / (self.agree + self.differ + INITIAL_AGREEMENTS)


def mass(opinion: Opinion) -> float:
    """What an opinion weighs before age, repetition and trust."""
    if opinion.signal_type == "ignored" and opinion.rank is not None:
        return opinion.confidence / opinion.rank
    return opinion.confidence


def votes_per_author(opinions: Iterable[Opinion]) -> list[AuthorVote]:
    """The votes behind the opinions of one query, which come in the order they were given."""
    by_author: dict[tuple[int, str], list[Opinion]] = defaultdict(list)
    for opinion in opinions:
        by_author[opinion.fact, opinion.author or ANONYMOUS].append(opinion)
    most = max(1.0, MAX_AUTHOR_WEIGHT / len({author for _, author in by_author})) if by_author else 1.0
    found = []
    # Of a fact, those who spoke first come first: sums must not depend on names, which can be erased.
    for (fact, author), own in sorted(by_author.items(), key=lambda each: each[0][0]):
        last = len(own) - 1
        weights = [mass(each) * REPLACED_OPINION_WEIGHT ** (last - index) for index, each in enumerate(own)]
        total = sum(weights)
        scale = min(1.0, most / total) if total else 1.0
        positive = negative = 0.0
        for weight, each in zip(weights, own, strict=True):
            aged = weight * scale * aging(-each.at)
            if each.signal_type in POSITIVE:
                positive += aged
            else:
                negative += aged
        latest = max((each.at for each in own if each.signal_type in POSITIVE), default=0)
        found.append(AuthorVote(fact, author, positive, negative, latest))
    return found


def agreement(evidence: Iterable[AuthorVote]) -> dict[str, Agreement]:
    """How each author agrees with the others about the facts of one query: one vote each, however often repeated."""
    votes: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for each in evidence:
        votes[each.fact].append((each.author, each.verdict))
    found: dict[str, Agreement] = defaultdict(Agreement)
    for cast in votes.values():
        total = sum(vote for _, vote in cast)
        for author, vote in cast:
            others = total - vote
            weight = abs(others) / max(len(cast) - 1, 1)
            if vote * others > 0:
                found[author] += Agreement(agree=weight)
            elif vote * others < 0:
                found[author] += Agreement(differ=weight)
    return dict(found)


def aging(elapsed: int) -> float:
    """The share of evidence that is left after `elapsed` stored time: 5% less a week."""
    share: float = KEPT_PER_WEEK ** (elapsed / WEEK)
    return share


def merge(
    relevance: Sequence[float], score: Sequence[float], latest: Sequence[int], known: Sequence[bool]
) -> list[int]:
    """Indexes by score, but no unknown one is overtaken by more than one known one beyond those it has by relevance.

    The known keep their order by score and the unknown theirs by relevance; only how the two merge is bounded, so an
    unknown fact has no say in where any other goes. Of equals, the one with the latest support comes first, then
    the more relevant, then the lower index.
    """
    indexes = range(len(relevance))
    by_relevance = sorted(indexes, key=lambda index: (-relevance[index], index))
    by_score = sorted(indexes, key=lambda index: (-score[index], -latest[index], -relevance[index], index))
    ahead_by_relevance = _known_ahead(by_relevance, known)
    ahead_by_score = _known_ahead(by_score, known)
    position = {index: rank for rank, index in enumerate(by_score)}

    def slot(index: int) -> tuple[int, bool, int]:
        ahead = ahead_by_score[index]
        if not known[index]:
            ahead = min(ahead, ahead_by_relevance[index] + 1)
        # A known fact comes before the unknown ones that have as many known ones ahead as itself and it.
        return (ahead + 1 if known[index] else ahead, not known[index], position[index])

    return sorted(indexes, key=slot)


def _known_ahead(order: Sequence[int], known: Sequence[bool]) -> dict[int, int]:
    ahead, count = {}, 0
    for index in order:
        ahead[index] = count
        count += known[index]
    return ahead


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
