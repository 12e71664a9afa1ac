"""Opinions as evidence: one vote of each author about a fact for a question, what they sum up to, and how facts that
have evidence merge with those that have none.

Position bias: Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback" (2017); an `ignored`
weighs the chance that the fact was looked at. What proves that it was looked at is not corrected, because that would
multiply its noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum, log
from random import Random

from heedful.ranking.signals import KEPT_PER_WEEK, RATINGS, WEEK, Opinion

POSITIVE = frozenset({"used", "helpful"})

_FADING = log(KEPT_PER_WEEK) / WEEK


@dataclass(frozen=True, slots=True)
class FactVotes:
    """What all authors together said of one fact for one question."""

    net: float
    """For the fact, less against it; as of `last`, and fading from then on."""
    last: int
    """When the last vote that counts was given."""
    helpful: int = 0
    not_helpful: int = 0
    """How many authors rated it so."""


def mass(opinion: Opinion) -> float:
    """What an opinion weighs before age."""
    if opinion.signal_type == "ignored" and opinion.rank is not None:
        return opinion.confidence / opinion.rank
    return opinion.confidence


def vote(opinions: Sequence[Opinion]) -> Opinion | None:
    """The one of an author's opinions of a fact, oldest first, that is their vote; None without weight.

    Its side is that of their last rating, or of their last signal if they gave no rating. Of what they said for that
    side since they last took the other, it is what weighs most today: so saying more for a fact never weakens it.
    """
    ratings = [each for each in opinions if each.signal_type in RATINGS]
    side = _is_for((ratings or opinions)[-1])
    # A rating is not taken back by what a program saw them use or ignore.
    against = [
        place
        for place, each in enumerate(opinions)
        if _is_for(each) != side and (each.signal_type in RATINGS or not ratings)
    ]
    since = opinions[against[-1] + 1 :] if against else opinions
    own = [each for each in since if _is_for(each) == side and mass(each) > 0]
    return max(own, key=lambda each: (log(mass(each)) - _FADING * each.at, each.at), default=None)


def _is_for(opinion: Opinion) -> bool:
    return opinion.signal_type in POSITIVE


def votes_per_fact(opinions: Iterable[Opinion]) -> dict[int, FactVotes]:
    """The votes about each fact, by the opinions of one question, which come in the order they were given. The program,
    which has no name, is one author."""
    by_voter: dict[int, dict[str | None, list[Opinion]]] = defaultdict(lambda: defaultdict(list))
    for opinion in opinions:
        by_voter[opinion.fact][opinion.author].append(opinion)
    found = {}
    for fact, theirs in by_voter.items():
        counted = [cast for said in theirs.values() if (cast := vote(said)) is not None]
        if counted:
            last = max(each.at for each in counted)
            # Exact sums: they must not depend on the order of authors, whose names can be erased.
            net = fsum((1 if _is_for(each) else -1) * mass(each) * aging(last - each.at) for each in counted)
            rated = [each.signal_type for each in counted]
            found[fact] = FactVotes(net, last, rated.count("helpful"), rated.count("not_helpful"))
    return found


def aging(elapsed: int) -> float:
    """The share of evidence that is left after `elapsed` stored time: 5% less a week, and never more than all of it."""
    share: float = KEPT_PER_WEEK ** (max(0, elapsed) / WEEK)
    return share


def as_of(opinions: Iterable[Opinion], now: int) -> list[Opinion]:
    """The opinions, those that a clock ahead of `now` dated later as if they were given now."""
    return [opinion if opinion.at <= now else replace(opinion, at=now) for opinion in opinions]


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
