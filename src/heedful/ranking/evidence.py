"""Opinions as evidence: who said what of which fact, how much it weighs, and whom to trust.

- Position bias: Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback" (2017); an
  `ignored` weighs the chance that the fact was looked at. What proves that it was looked at is not corrected, because
  that would multiply its noise.
- Trust: Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates" (1979), one step: the share of others
  who agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from operator import attrgetter
from random import Random
from sys import intern

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

_by_fact = attrgetter("fact")


@dataclass(frozen=True, slots=True)
class AuthorVote:
    """What one author said of one fact for one query. The masses are as of `last`, and fade from then on."""

    fact: int
    author: str
    positive: float
    negative: float
    latest: int = 0
    """When they last spoke for it."""
    total: float = 0.0
    """What their opinions weigh, before age."""
    last: int = 0
    """When they last spoke of it."""

    @property
    def verdict(self) -> int:
        """1 for, -1 against, 0 undecided."""
        return (self.positive > self.negative) - (self.positive < self.negative)

    def plus(self, opinion: Opinion) -> AuthorVote:
        """This vote with a later opinion, which takes some of the weight of those before."""
        is_for, weight = opinion.signal_type in POSITIVE, mass(opinion)
        kept = REPLACED_OPINION_WEIGHT * aging(opinion.at - self.last)
        return AuthorVote(
            self.fact,
            self.author,
            self.positive * kept + (weight if is_for else 0.0),
            self.negative * kept + (0.0 if is_for else weight),
            max(self.latest, opinion.at) if is_for else self.latest,
            self.total * REPLACED_OPINION_WEIGHT + weight,
            opinion.at,
        )

    def at_most(self, most: float) -> AuthorVote:
        """This vote with a total of no more than `most`."""
        if self.total <= most:
            return self
        scale = most / self.total
        return replace(self, positive=self.positive * scale, negative=self.negative * scale, total=most)


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


@dataclass(frozen=True, slots=True)
class FoldedVotes:
    """The votes of one query."""

    votes: Sequence[AuthorVote] = ()
    """By fact."""
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    """How each author agrees with the others."""
    last: int = 0
    """When the last of them was given."""


class QueryVotes:
    """The votes of one query, kept as opinions come: as if all had been folded at once, to the last bit."""

    def __init__(self, opinions: Iterable[Opinion] = ()) -> None:
        """`opinions` come in the order they were given."""
        self._votes: dict[tuple[int, str], AuthorVote] = {}
        self._folded: FoldedVotes | None = None
        for opinion in opinions:
            self.add(opinion)

    def __len__(self) -> int:
        """How many votes there are."""
        return len(self._votes)

    def vote(self, fact: int, author: str | None) -> AuthorVote | None:
        """What an author said of a fact."""
        return self._votes.get((fact, author or ANONYMOUS))

    def add(self, opinion: Opinion) -> None:
        """Adds an opinion that is later than those of its author about its fact."""
        # Interned: a busy store has few authors, and a vote of theirs in every query.
        key = (opinion.fact, intern(opinion.author or ANONYMOUS))
        self._votes[key] = (self._votes.get(key) or AuthorVote(*key, 0.0, 0.0)).plus(opinion)
        self._folded = None

    def replace(self, fact: int, author: str | None, opinions: Iterable[Opinion]) -> None:
        """Sets what an author said of a fact."""
        self._votes.pop((fact, author or ANONYMOUS), None)
        self._folded = None
        for opinion in opinions:
            self.add(opinion)

    def without(self, facts: Iterable[int]) -> QueryVotes:
        """The votes, after those about these facts are removed."""
        removed = set(facts)
        for key in [key for key in self._votes if key[0] in removed]:
            del self._votes[key]
            self._folded = None
        return self

    def folded(self) -> FoldedVotes:
        """The votes as they are now."""
        if self._folded is None:
            most = max(1.0, MAX_AUTHOR_WEIGHT / max(1, len({author for _, author in self._votes})))
            votes = [vote.at_most(most) for vote in sorted(self._votes.values(), key=_by_fact)]
            self._folded = FoldedVotes(votes, agreement(votes), max((vote.last for vote in votes), default=0))
        return self._folded


@dataclass(frozen=True, slots=True)
class FactVotes:
    """What all authors together said of one fact for one query: less than their votes, where names don't matter."""

    net: float
    """For the fact, less against it; as of `last`, and fading from then on."""
    pairs: int
    """Pairs of authors who are for or against it."""
    differ: int
    """Those of them who disagree."""
    last: int
    """When the last of them spoke of it."""


def votes_per_fact(opinions: Iterable[Opinion]) -> dict[int, FactVotes]:
    """The votes about each fact, by the opinions of one query, which come in the order they were given."""
    by_fact: dict[int, list[Opinion]] = defaultdict(list)
    for opinion in opinions:
        by_fact[opinion.fact].append(opinion)
    found = {}
    for fact, theirs in by_fact.items():
        folded = QueryVotes(theirs).folded()
        verdicts = [vote.verdict for vote in folded.votes if vote.verdict]
        agreed = sum(verdict > 0 for verdict in verdicts)
        net = fsum((vote.positive - vote.negative) * aging(folded.last - vote.last) for vote in folded.votes)
        pairs = len(verdicts) * (len(verdicts) - 1) // 2
        found[fact] = FactVotes(net, pairs, agreed * (len(verdicts) - agreed), folded.last)
    return found


def agreement(evidence: Iterable[AuthorVote]) -> dict[str, Agreement]:
    """How each author agrees with the others about the facts of one query: one vote each, however often repeated."""
    votes: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for each in evidence:
        votes[each.fact].append((each.author, each.verdict))
    agree: dict[str, float] = defaultdict(float)
    differ: dict[str, float] = defaultdict(float)
    for cast in votes.values():
        if len(cast) == 1:
            continue
        total = sum(vote for _, vote in cast)
        for author, vote in cast:
            others = total - vote
            if vote * others > 0:
                agree[author] += abs(others) / (len(cast) - 1)
            elif vote * others < 0:
                differ[author] += abs(others) / (len(cast) - 1)
    return {author: Agreement(agree.get(author, 0.0), differ.get(author, 0.0)) for author in {**agree, **differ}}


def aging(elapsed: int) -> float:
    """The share of evidence that is left after `elapsed` stored time: 5% less a week, and never more than all of it."""
    share: float = KEPT_PER_WEEK ** (max(0, elapsed) / WEEK)
    return share


def as_of(opinions: Iterable[Opinion], now: int) -> list[Opinion]:
    """The opinions, those that a clock ahead of `now` dated later as if they were given now."""
    return [opinion if opinion.at <= now else replace(opinion, at=now) for opinion in opinions]


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
