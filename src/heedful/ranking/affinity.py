"""How far what was said for other questions counts for the one that is asked.

Two questions of one need lie near each other, but how near differs from store to store. What does not differ are
comparisons, and there are three: how alike two questions are beyond what both have of the fact (a partial cosine), how
far a fact is ahead of others that helped with questions near by, and whether the question leans more to the fact that
would be first than the question that was rated did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from heedful.ranking.evidence import FactVotes
from heedful.ranking.signals import KEPT_PER_WEEK, WEEK

RELATED = 16
"""The nearest rated questions that are asked for evidence."""

LEAST_COSINE = 0.3
"""The cosine from which a question is related at all."""

LEAST_LIKENESS = 0.2
"""The partial cosine of the nearest question from which a fact is lifted at all."""

PARALLEL = 0.999999
"""The most that a question is taken to be like a fact: what lies beyond both has no direction."""

DIGITS = 6
"""Cosines are rounded to so many, so that no sum depends on how arrays lie in memory."""

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
    """How far evidence is followed in one store: what `ranking.strengths` fits, and what is taken before."""

    boldness: float = 0.0
    """What is added to the base."""
    error: float = 0.03
    """The share of wrong opinions."""

    @property
    def certainty(self) -> float:
        """The log-odds that one vote is right."""
        return log((1 - self.error) / self.error)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A rated question near another."""

    query: int
    cosine: float
    vector: Vector


@dataclass(frozen=True, slots=True)
class VoteTable:
    """What was said for one question: a row for each fact, in order. Arrays, because a store has many of them."""

    facts: Numbers
    net: Floats
    """For the fact, less against it; as of `last`, and fading from then on."""
    last: Numbers
    """When the last of them spoke of it."""

    @classmethod
    def of(cls, votes: Mapping[int, FactVotes]) -> VoteTable:
        facts = sorted(votes)
        return cls(
            np.array(facts, np.int64),
            np.array([votes[fact].net for fact in facts], np.float64),
            np.array([votes[fact].last for fact in facts], np.int64),
        )

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
        order = np.argsort(np.concatenate([self.facts[stays], new.facts]), kind="stable")
        return VoteTable(
            np.concatenate([self.facts[stays], new.facts])[order],
            np.concatenate([self.net[stays], new.net])[order],
            np.concatenate([self.last[stays], new.last])[order],
        )

    def without(self, facts: Iterable[int]) -> VoteTable:
        """The table without votes about these facts."""
        return self.replaced(facts, {})

    def at(self, now: int) -> Floats:
        """The net votes, faded to `now`."""
        faded: Floats = self.net * KEPT_PER_WEEK ** (np.maximum(now - self.last, 0) / WEEK)
        return faded


@dataclass(frozen=True, slots=True)
class Related:
    """A rated question near the one that is asked, and what was said for it."""

    neighbour: Neighbour
    votes: VoteTable


def supports(net: Floats, certainty: float) -> Floats:
    """What net votes for one question make of its facts, in [-1, 1]. A fact with fewer than the best one has earns less
    by the square of its share, so that those who are in the minority don't lift theirs to where the majority's is."""
    most = net.max(initial=0.0)
    sure: Floats = np.tanh(certainty * net / 2)
    return np.where(net > 0, sure * (net / most) ** 2, sure) if most > 0 else sure


class Supported:
    """What the questions near the one that is asked say for facts."""

    def __init__(self, near: Sequence[Related], now: int, certainty: float) -> None:
        self.near = near
        tables = [supports(each.votes.at(now), certainty) for each in near]
        helped = [each.votes.facts[support > 0] for each, support in zip(near, tables, strict=True)]
        self.facts: Numbers = np.unique(np.concatenate([np.empty(0, np.int64), *helped]))
        """The facts that helped with any of them."""
        self.support = np.zeros((len(near), len(self.facts)))
        for row, (facts, support) in enumerate(zip(helped, tables, strict=True)):
            self.support[row, np.searchsorted(self.facts, facts)] = support[support > 0]
        self.cosines = np.array([each.neighbour.cosine for each in near])

    def nearest(self, count: int) -> list[int]:
        """The facts with the nearest questions."""
        best = (self.support * self.cosines[:, None]).max(axis=0, initial=0.0)
        return [int(fact) for fact in self.facts[np.lexsort((self.facts, -best))[:count]]]


def cosines(vectors: Sequence[Vector], others: Sequence[Vector]) -> Floats:
    """The cosine of each of these unit vectors and each of the others; no entry depends on the rest."""
    if not len(vectors) or not len(others):
        return np.zeros((len(vectors), len(others)))
    found: Floats = np.vecdot(np.stack(vectors)[:, None], np.stack(others)[None], dtype=np.float64)
    return found.round(DIGITS)


RIVALS = 2
"""The most relevant facts that a lift is held against: the first other one is a fact's rival."""


def rivals(relevance: Mapping[int, float]) -> list[int]:
    """The facts that a lift is held against, the most relevant first."""
    return sorted(relevance, key=lambda fact: (-relevance[fact], fact))[:RIVALS]


class Affinity:
    """The rule."""

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
        held_against = [next((each for each in first if each != fact and each in vectors), fact) for fact in facts]
        places = {fact: place for place, fact in enumerate(dict.fromkeys([*facts, *held_against]))}
        questions = [each.neighbour.vector for each in supported.near]
        alike = cosines([asked, *questions], [vectors[fact] for fact in places])
        own = [places[fact] for fact in facts]
        values = self.values(
            supported.support[:, known],
            supported.cosines,
            cosines(questions, questions),
            alike[:, own],
            alike[:, [places[fact] for fact in held_against]],
        )
        found = np.where(values.likeness >= LEAST_LIKENESS, values.lift + boldness, 0.0)
        # However alike the questions are, a lift is no surer than what was said.
        lifted = np.minimum(found, supported.support[:, known].max(axis=0)).tolist()
        return {fact: lift for fact, lift in zip(facts, lifted, strict=True) if lift > 0 and fact in candidates}

    def values(self, support: Floats, near: Floats, among: Floats, alike: Floats, rival: Floats) -> Values:
        """The rule on arrays. `support` has a row for each rated question and a column for each fact, `near` the
        cosines of the rated questions and the one asked, `among` those of the rated ones with each other; `alike` and
        `rival` have those of the question asked (first) and the rated ones with each fact, and with its rival."""
        of_asked, of_rated = np.minimum(alike[0], PARALLEL), np.minimum(alike[1:], PARALLEL)
        beyond = (near[:, None] - of_asked * of_rated) / np.sqrt((1 - of_asked**2) * (1 - of_rated**2))
        each = np.clip(beyond, 0.0, 1.0) * support
        best = each.max(axis=0, initial=0.0)
        nearest = each.argmax(axis=0)
        columns = np.arange(support.shape[1])
        ranked = np.sort(best)
        others = np.where(best == ranked[-1], ranked[-2] if len(ranked) > 1 else 0.0, ranked[-1])
        lead = np.maximum(0.0, best - others)
        lean = (rival[0] - alike[0]) - (rival[1:] - alike[1:])[nearest, columns]
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
    """What the rule makes of each fact."""

    likeness: Floats
    """The partial cosine of the nearest question that it helped with."""
    lift: Floats
    """Before boldness."""
