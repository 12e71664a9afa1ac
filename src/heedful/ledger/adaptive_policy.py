"""The adaptive policy: what people said about a fact for the very question counts in full, for and against; what they
said for related questions counts as far as those resemble it, and only for. Facts that nobody has judged are protected.

One vote of each author counts. Position bias: Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with
Biased Feedback" (2017); an `ignored` weighs the chance that the fact was looked at. What proves that it was looked at
is not corrected, because that would multiply its noise.

Sharing between questions goes back to Nadaraya (1964) and Watson (1964), with a kernel of compact support, so that a
question without related evidence ranks exactly as it would without feedback. Two questions of one need lie near each
other, but how near differs from store to store. What does not differ are comparisons, and there are three: how alike
two questions are beyond what both have of the fact (a partial cosine), how far a fact is ahead of others that helped
with questions near by, and whether the question leans more to the fact that would be first than the question that was
rated did.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.ledger.usefulness import KEPT_PER_WEEK, UNKNOWN, WEEK, Candidate, Opinion, Ranked, Usefulness
from heedful.ledger.votes import RATINGS
from heedful.model import UsefulnessSource

POSITIVE = frozenset({"used", "helpful"})

_FADING = log(KEPT_PER_WEEK) / WEEK


class FactVotes(NamedTuple):
    """The votes of all authors about one fact for one question, summed up."""

    net: float
    """For the fact, less against it; as of `last`, and fading from then on."""
    last: int
    """When the last vote that counts was given."""
    helpful: int = 0
    not_helpful: int = 0
    """How many authors rated it so."""


def balance(kind: str, confidence: float, rank: int | None) -> float:
    """The weight of an opinion before age: for a fact, or less than 0 against it."""
    weight = confidence / (rank or 1) if kind == "ignored" else confidence
    return weight if kind in POSITIVE else -weight


def mass(opinion: Opinion) -> float:
    """The weight of an opinion before age, whatever its side."""
    return abs(balance(opinion.signal_type, opinion.confidence, opinion.rank))


def vote(opinions: Sequence[Opinion]) -> Opinion | None:
    """The one of an author's opinions of a fact, oldest first, that is their vote; None without weight.

    Its side is that of their last rating, or of their last signal if they gave no rating. Of what they said for that
    side since they last took the other, it is what weighs most today: so saying more for a fact never weakens it.
    """
    if len(opinions) == 1:
        return opinions[0] if mass(opinions[0]) > 0 else None
    ratings = [opinion for opinion in opinions if opinion.signal_type in RATINGS]
    side = _is_for((ratings or opinions)[-1])
    own: list[Opinion] = []
    for opinion in opinions:
        if _is_for(opinion) == side:
            own += [opinion] if mass(opinion) > 0 else []
        # A rating is not taken back by what a program saw them use or ignore.
        elif opinion.signal_type in RATINGS or not ratings:
            own = []
    return max(own, key=lambda opinion: (log(mass(opinion)) - _FADING * opinion.at, opinion.at), default=None)


def _is_for(opinion: Opinion) -> bool:
    return opinion.signal_type in POSITIVE


def votes_per_fact(opinions: Iterable[Opinion]) -> dict[int, FactVotes]:
    """The votes about each fact, by the opinions of one question, which come in the order they were given. The program,
    which has no name, is one author."""
    by_voter: dict[int, dict[str | None, list[Opinion]]] = defaultdict(lambda: defaultdict(list))
    for opinion in opinions:
        by_voter[opinion.fact][opinion.author].append(opinion)
    votes = {}
    for fact, by_author in by_voter.items():
        cast = [own for given in by_author.values() if (own := vote(given)) is not None]
        if cast:
            last = max(own.at for own in cast)
            # Exact sums: they must not depend on the order of authors, whose names can be erased.
            net = fsum((1 if _is_for(own) else -1) * mass(own) * aging(last - own.at) for own in cast)
            kinds = [own.signal_type for own in cast]
            votes[fact] = FactVotes(net, last, kinds.count("helpful"), kinds.count("not_helpful"))
    return votes


def aging(elapsed: int) -> float:
    """The share of evidence that is left after `elapsed` stored time: 5% less a week, and never more than all of it."""
    share: float = KEPT_PER_WEEK ** (max(0, elapsed) / WEEK)
    return share


def as_of(opinions: Iterable[Opinion], now: int) -> list[Opinion]:
    """The opinions, those that a clock ahead of `now` dated later as if they were given now."""
    return [opinion if opinion.at <= now else opinion._replace(at=now) for opinion in opinions]


RELATED = 16  # The nearest rated questions that are asked for evidence.
LEAST_COSINE = 0.3  # The cosine from which a question is related at all.
LEAST_LIKENESS = 0.2  # The partial cosine of the nearest question from which a fact is lifted at all.
PARALLEL = 0.999999  # The most that a question is taken to be like a fact: what lies beyond both has no direction.
DIGITS = 6  # Cosines are rounded to so many, so that no sum depends on how arrays lie in memory.

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers of the rule: a logistic regression of "this fact is right, and not the one that is first", on the
    half of the needs of COVID-Q, CLINC150 and LoCoMo that is for tuning. In units of the most that a fact is lifted."""

    base: float = -1.0
    lead: float = 2.08
    """For how far the nearest question that a fact helped with is ahead of those that others helped with."""
    likeness: float = 1.23
    """For how alike the question is to all that a fact helped with, together."""
    lean: float = 1.62
    """Against how far the question leans to the fact that is first, compared with the one that was rated."""


@dataclass(frozen=True, slots=True)
class Strengths:
    """How far evidence is followed in one store: by default, until `ledger.strengths` has fitted others."""

    boldness: float = 0.0
    """Added to the base."""
    error: float = 0.03
    """The share of wrong opinions."""

    @property
    def certainty(self) -> float:
        """The log-odds that one vote is right."""
        return log((1 - self.error) / self.error)


FIRST_FIT = 64  # The opinions from which strengths are fitted; then whenever there are twice as many.


def prefix(opinions: int) -> int:
    """How many of a store's opinions, the oldest first, its strengths are fitted on; 0 for none.

    >>> prefix(63), prefix(64), prefix(200)
    (0, 64, 128)
    """
    return 0 if opinions < FIRST_FIT else FIRST_FIT << ((opinions // FIRST_FIT).bit_length() - 1)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A rated question near another."""

    query: int
    cosine: float
    vector: Vector


@dataclass(frozen=True, slots=True)
class VoteTable:
    """The votes for one question: a row for each fact, in order. Arrays, because a store has many of them."""

    facts: Numbers
    net: Floats
    """For the fact, less against it; as of `last`, and fading from then on."""
    last: Numbers
    """The time of the last of them."""

    @classmethod
    def of(cls, votes: Mapping[int, FactVotes]) -> VoteTable:
        facts = np.fromiter(votes, np.int64, len(votes))
        net, last, *_ = zip(*votes.values(), strict=True) if votes else ((), ())
        order = np.argsort(facts)
        return cls(facts[order], np.array(net, np.float64)[order], np.array(last, np.int64)[order])

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def counts(self) -> bool:
        """Whether it speaks for or against any fact."""
        return bool(self.net.any())

    def replaced(self, facts: Iterable[int], votes: Mapping[int, FactVotes]) -> VoteTable:
        """The table with other votes about these facts."""
        stays = ~np.isin(self.facts, np.fromiter(facts, np.int64))
        new = VoteTable.of(votes)
        seqs = np.concatenate([self.facts[stays], new.facts])
        order = np.argsort(seqs, kind="stable")
        net, last = np.concatenate([self.net[stays], new.net]), np.concatenate([self.last[stays], new.last])
        return VoteTable(seqs[order], net[order], last[order])

    def at(self, now: int) -> Floats:
        """The net votes, faded to `now`."""
        faded: Floats = self.net * KEPT_PER_WEEK ** (np.maximum(now - self.last, 0) / WEEK)
        return faded


@dataclass(frozen=True, slots=True)
class Related:
    """A rated question near the one that is asked, and its votes."""

    neighbour: Neighbour
    votes: VoteTable


def supports(net: Floats, certainty: float) -> Floats:
    """The support of facts by their net votes for one question, in [-1, 1]. A fact with fewer than the best one has
    earns less by the square of its share, so that a minority doesn't lift theirs to where the majority's is."""
    most = net.max(initial=0.0)
    sure: Floats = np.tanh(certainty * net / 2)
    # Where the best of them is next to nothing, others would be infinitely far below it.
    return np.where(net > 0, sure * (np.maximum(net, 0) / most) ** 2, sure) if most > 0 else sure


def greatest(values: Floats, facts: Numbers, count: int) -> Numbers:
    """The places of the greatest values, the greatest first; of equals, that of the older fact."""
    least = np.partition(values, -count)[-count] if len(values) > count else -np.inf
    places = np.flatnonzero(values >= least)
    return places[np.lexsort((facts[places], -values[places]))[:count]]


MAX_SUPPORTED = 500
"""Facts that related questions speak for, of which a recall reads the vectors: those with the nearest questions."""


class Supported:
    """The facts that the questions near the one that is asked speak for."""

    def __init__(self, near: Sequence[Related], now: int, certainty: float) -> None:
        self.near = near
        tables = [supports(question.votes.at(now), certainty) for question in near]
        helped = [np.empty(0, np.int64)]
        for question, support in zip(near, tables, strict=True):
            # No other fact of the question is among those with the nearest ones.
            best = greatest(support * question.neighbour.cosine, question.votes.facts, MAX_SUPPORTED)
            helped.append(question.votes.facts[best[support[best] > 0]])
        self.facts: Numbers = np.unique(np.concatenate(helped))
        """The facts that helped with any of them, as far as they are looked at."""
        self.support = np.zeros((len(near), len(self.facts)))
        for row, (question, support) in enumerate(zip(near, tables, strict=True)):
            if helped[row + 1].size:
                own = np.searchsorted(question.votes.facts[:-1], self.facts)
                self.support[row] = np.where(question.votes.facts[own] == self.facts, np.maximum(support[own], 0), 0)
        self.cosines = np.array([question.neighbour.cosine for question in near])
        if len(self.facts) > MAX_SUPPORTED:
            kept = np.sort(self._nearest(MAX_SUPPORTED))
            self.facts, self.support = self.facts[kept], self.support[:, kept]

    def nearest(self, count: int) -> list[int]:
        """The facts with the nearest questions."""
        found: list[int] = self.facts[self._nearest(count)].tolist() if len(self.facts) else []
        return found

    def _nearest(self, count: int) -> Numbers:
        best = (self.support * self.cosines[:, None]).max(axis=0, initial=0.0)
        return greatest(best, self.facts, count)


def cosines(vectors: Sequence[Vector], others: Sequence[Vector]) -> Floats:
    """The cosine of each of these unit vectors and each of the others; no entry depends on the rest."""
    if not len(vectors) or not len(others):
        return np.zeros((len(vectors), len(others)))
    table: Floats = np.vecdot(np.stack(vectors)[:, None], np.stack(others)[None], dtype=np.float64)
    return table.round(DIGITS)


RIVALS = 2  # The most relevant facts that a lift is held against: the first other one is a fact's rival.


def rivals(relevance: Mapping[int, float]) -> list[int]:
    """The facts that a lift is held against, the most relevant first."""
    return sorted(relevance, key=lambda fact: (-relevance[fact], fact))[:RIVALS]


class Affinity:
    """The rule for related questions."""

    def __init__(self, constants: Constants | None = None) -> None:
        self.constants = constants or Constants()

    def lifts(
        self,
        supported: Supported,
        asked: Vector,
        vectors: Mapping[int, Vector],
        candidates: Collection[int],
        first: Sequence[int],
        boldness: float,
    ) -> dict[int, float]:
        """The lift of each candidate that earns one, up to 1. `first` are the most relevant facts; `vectors` has those
        and the supported ones."""
        known = np.array([fact in vectors for fact in supported.facts.tolist()], bool)
        if not known.any():
            return {}
        facts: Sequence[int] = supported.facts[known].tolist()
        # A fact that was forgotten meanwhile has no vector.
        held_against = [next((rival for rival in first if rival != fact and rival in vectors), fact) for fact in facts]
        places = {fact: place for place, fact in enumerate(dict.fromkeys([*facts, *held_against]))}
        questions = [question.neighbour.vector for question in supported.near]
        alike = cosines([asked, *questions], [vectors[fact] for fact in places])
        own, rival = [places[fact] for fact in facts], [places[fact] for fact in held_against]
        support = supported.support[:, known]
        among = cosines(questions, questions)
        values = self.values(support, supported.cosines, among, alike[:, own], alike[:, rival])
        lifts = np.where(values.likeness >= LEAST_LIKENESS, values.lift + boldness, 0.0)
        # However alike the questions are, a lift is no surer than their votes.
        bounded = np.minimum(lifts, support.max(axis=0)).tolist()
        return {fact: lift for fact, lift in zip(facts, bounded, strict=True) if lift > 0 and fact in candidates}

    def values(self, support: Floats, near: Floats, among: Floats, alike: Floats, rival: Floats) -> Values:
        """The rule on arrays. `support` has a row for each rated question and a column for each fact, `near` the
        cosines of the rated questions and the one asked, `among` those of the rated ones with each other; `alike` and
        `rival` have those of the question asked (first) and the rated ones with each fact, and with its rival."""
        of_asked, of_rated = np.minimum(alike[0], PARALLEL), np.minimum(alike[1:], PARALLEL)
        beyond = (near[:, None] - of_asked * of_rated) / np.sqrt((1 - of_asked**2) * (1 - of_rated**2))
        partial = np.clip(beyond, 0.0, 1.0) * support
        best, nearest = partial.max(axis=0, initial=0.0), partial.argmax(axis=0)
        ranked = np.sort(best)
        others = np.where(best == ranked[-1], ranked[-2] if len(ranked) > 1 else 0.0, ranked[-1])
        lead = np.maximum(0.0, best - others)
        lean = (rival[0] - alike[0]) - (rival[1:] - alike[1:])[nearest, np.arange(support.shape[1])]
        # The centre of the questions that a fact helped with, without what it has of the fact.
        weights = np.where(near[:, None] >= LEAST_COSINE, support, 0.0)
        length = np.sqrt(np.einsum("if,ij,jf->f", weights, among, weights))
        centre = np.divide(near @ weights, length, out=np.zeros(len(best)), where=length > 0)
        shared = np.divide((weights * alike[1:]).sum(axis=0), length, out=np.zeros(len(best)), where=length > 0).clip(
            -PARALLEL, PARALLEL
        )
        together = (centre - of_asked * shared) / np.sqrt((1 - of_asked**2) * (1 - shared**2))
        likeness = np.where(length > 0, np.clip(together, 0.0, 1.0), 0.0)
        own = self.constants
        lift = own.base + own.lead * lead + own.likeness * likeness - own.lean * np.maximum(0.0, lean)
        return Values(best, lift)


@dataclass(frozen=True, slots=True)
class Values:
    """The likeness and the lift of each fact, by the rule."""

    likeness: Floats
    """The partial cosine of the nearest question that it helped with."""
    lift: Floats
    """Before boldness."""


GATE, SAME = 0.89, 0.97
"""The similarity up to which a question is another one, and from which it is the same: a line between."""

CAUTION = 0.15
"""The weight of a vote against a fact where the question is the same in other words: it may be about the words."""

PROVEN = 5  # Facts that votes for the same question may add to the candidates.
SUPPORTED = 3  # Facts that related questions may add.


@dataclass(frozen=True, slots=True)
class Same:
    """A question that asks for the same as the one asked, how surely, and its votes."""

    similarity: float
    votes: VoteTable


class Verdicts(NamedTuple):
    """The judgement of the adaptive rule, by fact, each in [-1, 1]."""

    own: Mapping[int, float]
    """For the very question."""
    lifts: Mapping[int, float] = {}
    """For related questions."""


class Adaptive:
    """One vote of each author, of the very question and of related ones."""

    name = "adaptive"

    def __init__(self, affinity: Affinity | None = None) -> None:
        self.affinity = affinity or Affinity()

    def judge(self, opinions: Sequence[Opinion], now: int) -> Verdicts:
        by_query: dict[int, list[Opinion]] = defaultdict(list)
        for opinion in as_of(opinions, now):
            by_query[opinion.query].append(opinion)
        same = [Same(group[0].similarity, VoteTable.of(votes_per_fact(group))) for group in by_query.values()]
        return Verdicts(self.verdicts(same, now, Strengths()))

    def kernel(self, similarity: float) -> float:
        """The share of a question's votes that counts for one that is so similar."""
        return min(1.0, max(0.0, (similarity - GATE) / (SAME - GATE)))

    def shares(self, similarity: float) -> tuple[float, float]:
        """The shares of a question's votes for a fact and of those against it that count for one so similar."""
        kernel = self.kernel(similarity)
        return kernel, kernel if similarity == 1.0 else CAUTION * kernel

    def verdicts(self, same: Iterable[Same], now: int, strengths: Strengths) -> dict[int, float]:
        """The verdict on each fact for the very question, in [-1, 1]."""
        weighed: list[tuple[Numbers, Floats]] = []
        for question in same:
            liked, disliked = self.shares(question.similarity)
            if liked > 0:
                net = question.votes.at(now)
                weighed.append((question.votes.facts, net * np.where(net > 0, liked, disliked)))
        if not weighed:
            return {}
        facts = np.concatenate([about for about, _ in weighed])
        net = np.concatenate([own for _, own in weighed])
        if len(weighed) > 1:
            # From the least on: a sum must not depend on the order of questions.
            order = np.argsort(net, kind="stable")
            facts, place = np.unique(facts[order], return_inverse=True)
            net = np.bincount(place, net[order]).astype(np.float64)
        verdicts = supports(net, strengths.certainty)
        return dict(zip(facts[verdicts != 0].tolist(), verdicts[verdicts != 0].tolist(), strict=True))

    def proven(self, verdicts: Mapping[int, float]) -> list[int]:
        """Facts that votes for the same question make candidates, however relevant they are."""
        facts, values = np.fromiter(verdicts, np.int64), np.fromiter(verdicts.values(), np.float64)
        best: list[int] = facts[greatest(values, facts, PROVEN)].tolist()
        return [fact for fact in best if verdicts[fact] > 0]

    def boost(self, verdict: float, lift: float) -> float:
        """The effect of evidence on a fact, in [-1, 1]: its verdict for the very question, and its lift by related
        ones."""
        return max(verdict, lift) if verdict >= 0 else lift + verdict * (1 + lift)

    def rank(self, candidates: Sequence[Candidate], judgement: Verdicts, weight: float) -> list[Ranked]:
        """Candidates by relevance plus boost; none that nobody spoke against falls by more than one place for it."""
        verdicts, lifts = judgement
        if not verdicts and not lifts:
            ordered = sorted(candidates, key=lambda candidate: (-candidate.relevance, candidate.fact))
            return [Ranked(fact, own, UNKNOWN, max(0.0, own)) for fact, own in ordered]
        by_fact = sorted(candidates, key=lambda candidate: candidate.fact)
        facts, relevance = [fact for fact, _ in by_fact], [own for _, own in by_fact]
        boosts = [self.boost(verdicts.get(fact, 0.0), lifts.get(fact, 0.0)) for fact in facts]
        # Not clipped: at the top of the scale, those with more evidence must still come first.
        targets = [own + weight * boost for own, boost in zip(relevance, boosts, strict=True)]
        ranked, lowest = [], 1.0
        for index in merge(relevance, targets, [weight * boost > 0 for boost in boosts]):
            fact = facts[index]
            # Where a fact was protected, those behind it show no more than its score.
            lowest = min(lowest, max(0.0, targets[index]))
            usefulness = UNKNOWN
            if fact in verdicts or fact in lifts:
                source: UsefulnessSource = "context" if fact in verdicts else "related"
                usefulness = Usefulness((1 + boosts[index]) / 2, source)
            ranked.append(Ranked(fact, relevance[index], usefulness, lowest))
        return ranked


def merge(relevance: Sequence[float], score: Sequence[float], lifted: Sequence[bool]) -> list[int]:
    """Indexes by score, but no fact that nobody spoke against is overtaken by more than one lifted fact beyond those
    that it has ahead by relevance.

    A fact is lifted if its score is above its relevance. The lifted keep their order by score and the others theirs;
    only how they merge is bounded. Of equals, the more relevant comes first, then the lower index.
    """
    indexes = range(len(relevance))
    by_relevance = sorted(indexes, key=lambda index: (-relevance[index], index))
    by_score = sorted(indexes, key=lambda index: (-score[index], -relevance[index], index))
    ahead_by_relevance = _lifted_ahead(by_relevance, lifted)
    ahead_by_score = _lifted_ahead(by_score, lifted)

    def slot(index: int) -> tuple[int, bool, float, float, int]:
        ahead, most = ahead_by_score[index], ahead_by_relevance[index] + 1
        own, plain = score[index], relevance[index]
        if own >= plain and ahead > most:
            # By its relevance, so that it overtakes nobody for what does not lift it far enough.
            return (most, True, -plain, -plain, index)
        # A lifted fact comes before the others that have as many lifted ones ahead as itself and it.
        return (ahead + 1 if lifted[index] else ahead, not lifted[index], -own, -plain, index)

    return sorted(indexes, key=slot)


def _lifted_ahead(order: Sequence[int], lifted: Sequence[bool]) -> dict[int, int]:
    ahead, count = {}, 0
    for index in order:
        ahead[index] = count
        count += lifted[index]
    return ahead
