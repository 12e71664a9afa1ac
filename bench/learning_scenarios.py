"""What happens to one question over time, through the public interface alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

import heedful
from bench.data import LONGEST
from bench.learning_arms import WEIGHT
from bench.learning_worlds import Corpus, Half
from bench.vectors import Served, Vectors
from heedful.clock import DAY
from heedful.engine import Heedful
from heedful.ledger.ranking_policy import POLICIES
from heedful.ledger.usefulness import Candidate, Opinion
from heedful.model import PolicyName, Signal, SignalType
from heedful.model.limits import MAX_TOP_K
from heedful.providers.embedding import bundled
from heedful.simulate import SimulatedUser
from heedful.testing import ManualClock

RATINGS_OF_RIVALS = 50
RATINGS_BEFORE = 20
CONTRARY = 20
"""Responses after the change, of two signals each."""

ROLES = [
    ("head of finance", "Mara", "Otto"),
    ("office dog", "Bello", "Fips"),
    ("release manager", "Ines", "Tariq"),
    ("wifi password", "sunflower", "marigold"),
    ("database for billing", "Oracle", "Postgres"),
    ("lunch caterer", "Green Fork", "Soup Kitchen"),
    ("default region", "Frankfurt", "Dublin"),
    ("on-call engineer", "Petra", "Luis"),
    ("supplier of paper", "Northmill", "Blattwerk"),
    ("backup tool", "Restic", "Borg"),
]


@dataclass(frozen=True, slots=True)
class NewFact:
    """How far a fact that came after 50 ratings of its rivals stands below its rank without feedback."""

    worst: int
    mean: float
    trials: int


@dataclass(frozen=True, slots=True)
class Drift:
    """How a change of the right fact is taken up."""

    authors: int
    signals: int | None
    """Contrary signals until the new fact leads, the worst of the questions; a response gives two of them."""
    flipped_ever: float
    """Per cent of noisy trials in which the new fact lost the lead again at least once."""
    flipped_at_end: float
    """Per cent of noisy trials in which it did not have the lead after the last response, having had it."""
    steps_behind: float
    """Per cent of the responses after it took the lead behind which it did not have it."""
    late: float
    """Per cent of noisy trials in which it needed more than 5 responses."""
    trials: int


@contextmanager
def _store(served: Served, clock: ManualClock) -> Iterator[Heedful]:
    with (
        tempfile.TemporaryDirectory() as home,
        heedful.open(Path(home) / "scenario.db", embedding=served, clock=clock) as store,
    ):
        yield store


def new_fact(corpus: Corpus, half: Half, trials: int, policy: PolicyName) -> NewFact:
    """A relevant fact is added after people rated its rivals for the very question that is asked."""
    served = Served(bundled(), [*corpus.facts, *corpus.queries], _vectors(corpus))
    draw = Random(0)
    # Longer facts would be split into several.
    whole = [fact for fact in corpus.facts if len(fact) <= LONGEST]
    places = min(MAX_TOP_K, len(whole))
    needs = set(corpus.half[half].tolist())
    mine = [
        query
        for query in range(len(corpus.queries))
        if corpus.need[query] in needs and len(corpus.facts[corpus.answer[query]]) <= LONGEST
    ]
    drops = []
    clock = ManualClock()
    with _store(served, clock) as store:
        for trial, query in enumerate(draw.sample(mine, min(trials, len(mine)))):
            dataset = f"trial {trial}"
            text, late = corpus.queries[query], corpus.facts[corpus.answer[query]]
            store.remember([fact for fact in whole if fact != late], dataset=dataset)
            for visit in range(RATINGS_OF_RIVALS // 10):
                shown = store.recall(text, dataset=dataset, top_k=10)
                clock.advance(minutes=1)
                liked = [hit.fact_id for hit in shown if draw.random() < 0.5]
                SimulatedUser(trial * 10 + visit, author=f"user {visit}", examination=0).respond(store, shown, liked)
            added = set(store.remember(late, dataset=dataset).fact_ids)
            ranks = []
            for boost in (False, True):
                hits = store.recall(text, dataset=dataset, top_k=places, boost_by_usefulness=boost, policy=policy).hits
                ranks.append(next((hit.rank for hit in hits if hit.fact_id in added), None))
            if ranks[0] is not None:
                drops.append((ranks[1] or places + 1) - ranks[0])
    return NewFact(max(drops), sum(drops) / len(drops), len(drops))


def drift(authors: int, trials: int, noise: float = 0.2) -> Drift:
    """20 ratings say that one fact is right, then another is.

    The clean courses run through a store. The noisy ones, of which there are many, run through the rule itself; a
    test holds the two to the same ranks.
    """
    clock = ManualClock()
    with _store(Served(bundled()), clock) as store:
        pairs = [_pair(store, place) for place in range(len(ROLES))]
        needed = [_needed(store, clock, pair, authors) for pair in pairs]
    noisy = [_course(pairs[trial % len(pairs)], authors, noise, trial) for trial in range(trials)]
    slowest = None if None in needed else max(each for each in needed if each is not None)
    after = [leads[leads.index(True) + 1 :] for leads in noisy if True in leads]
    return Drift(
        authors=authors,
        signals=slowest,
        flipped_ever=_share([False in each for each in after]),
        flipped_at_end=_share([bool(each) and not each[-1] for each in after]),
        steps_behind=_share([not led for each in after for led in each]),
        late=_share([True not in leads[:5] for leads in noisy]),
        trials=len(noisy),
    )


def minority(supporters: int, attackers: int, repeats: int) -> float:
    """Per cent of facts supported by many that lose their lead when a few say the contrary again and again."""
    clock = ManualClock()
    lost = []
    with _store(Served(bundled()), clock) as store:
        for place in range(len(ROLES)):
            pair = _pair(store, place)
            store.signal([_said(pair.old, True, pair.query, f"supporter {number}") for number in range(supporters)])
            clock.advance(minutes=1)
            led = _leader(store, pair.dataset, pair.query) == pair.old
            for _ in range(repeats):
                store.signal(
                    [
                        _said(fact, fact == pair.new, pair.query, f"attacker {number}")
                        for number in range(attackers)
                        for fact in (pair.old, pair.new)
                    ]
                )
                clock.advance(minutes=1)
            lost.append(led and _leader(store, pair.dataset, pair.query) != pair.old)
    return _share(lost)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two facts that contradict each other, in a dataset of their own."""

    dataset: str
    query: str
    old: str
    new: str
    relevance: tuple[float, float]


def _pair(store: Heedful, place: int) -> _Pair:
    role, first, second = ROLES[place]
    dataset, query = f"roles {place}", f"What is the {role}?"
    old, new = store.remember([f"The {role} is {first}.", f"The {role} is {second}."], dataset=dataset).fact_ids
    own = {hit.fact_id: hit.relevance for hit in store.recall(query, dataset=dataset)}
    return _Pair(dataset, query, old, new, (own[old], own[new]))


def _needed(store: Heedful, clock: ManualClock, pair: _Pair, authors: int) -> int | None:
    """Contrary signals until the new fact leads: in turns, the old one is bad, and the new one is good."""
    for number in range(RATINGS_BEFORE):
        store.signal([_said(pair.old, True, pair.query, f"user {number % authors}")])
        clock.advance(minutes=1)
    for number in range(2 * CONTRARY):
        about = pair.new if number % 2 else pair.old
        store.signal([_said(about, about == pair.new, pair.query, f"user {number // 2 % authors}")])
        clock.advance(minutes=1)
        if _leader(store, pair.dataset, pair.query) == pair.new:
            return number + 1
    return None


def _course(pair: _Pair, authors: int, noise: float, seed: int) -> list[bool]:
    """Whether the new fact leads, after each contrary response of people who err."""
    users = [
        SimulatedUser(1000 * seed + number, author=f"user {number}", noise=noise, examination=0)
        for number in range(authors)
    ]
    candidates = [Candidate(place, own) for place, own in enumerate(pair.relevance)]
    opinions: list[Opinion] = []

    def respond(number: int, right: int, about: Sequence[int]) -> None:
        user = users[number % authors]
        verdict = user.judge([str(fact) for fact in about], [str(right)])
        minute = len(opinions) * 60_000_000
        for fact in about:
            kind: SignalType = "helpful" if str(fact) in verdict.helpful else "not_helpful"
            opinions.append(Opinion(fact, 0, kind, 1.0, minute, similarity=1.0, author=user.author))

    for number in range(RATINGS_BEFORE):
        respond(number, 0, [0])
    leads, policy = [], POLICIES["adaptive"]
    for number in range(CONTRARY):
        respond(number, 1, [0, 1])
        leads.append(policy.rank(candidates, policy.judge(opinions, DAY), WEIGHT)[0].fact == 1)
    return leads


def _leader(store: Heedful, dataset: str, query: str) -> str:
    return store.recall(query, dataset=dataset, boost_by_usefulness=True, policy="adaptive")[0].fact_id


def _said(fact: str, good: bool, query: str, author: str) -> Signal:
    return Signal(fact_id=fact, signal_type="helpful" if good else "not_helpful", query=query, author=author)


def _vectors(corpus: Corpus) -> Vectors:
    joined: Vectors = np.concatenate([corpus.fact_vectors, corpus.query_vectors])
    return joined


def _share(found: Sequence[bool]) -> float:
    return 100 * sum(found) / len(found) if found else 0.0
