"""Questions with known answers, and people who rate what they are shown: what the learning benchmark runs on.

A world is one of four kinds: a CSV file with the columns of COVID-Q (`Category`, `Question ID`, `Question`,
`Answers`; facts are the answers, a need is a question id in a category, and its questions are the ways people ask for
it), CLINC150 as a help desk (facts are the names of the intents), LoCoMo (facts are the turns of conversations, a need
is a turn, and what asks for it are the questions with no other evidence, as they stand and in other words), or the shop
of `heedful.simulate`.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench import locomo
from bench.measure import say
from bench.phrasings import phrasings
from bench.vectors import Vectors, embedded
from heedful.clock import DAY
from heedful.ledger.usefulness import Opinion
from heedful.model import SignalType
from heedful.providers.embedding import bundled
from heedful.search import relevance
from heedful.simulate import SimulatedUser
from heedful.simulate.shop import FACTS, WANTS
from heedful.text.same_question import SAME_NEED, similarity

FILE, CLINC, LOCOMO, SHOP = "covidq.csv", "clinc150.json.gz", locomo.FILE, "the simulated shop"

PHRASINGS = 12
"""Of each intent of CLINC150: as many as the needs of COVID-Q have at most."""

Half = Literal["tune", "report"]
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

SPLIT_SEED = 2026
"""Which needs are in which half. Constants were chosen on the tune half: another split would mix them."""

SHOWN = 10
AUTHORS = 10
MOST_SEEDS = 1000
LEAST_SIMILAR = 0.5
"""Pairs of queries that are less alike than this are never compared word by word; no arm looks below."""

NOW = 100 * DAY
"""The moment of all recalls. Ratings are given in the minutes before, so age plays no part."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Facts, questions, and how all of them relate."""

    name: str
    facts: list[str]
    queries: list[str]
    need: Numbers
    """The need of each query."""
    answer: Numbers
    """The right fact of each query."""
    half: Mapping[Half, Numbers]
    """The needs of each half."""
    fact_vectors: Vectors
    query_vectors: Vectors
    relevance: Floats
    """Of each fact for each query, by meaning and words, as `recall` has it."""
    similarity: Floats
    """How alike two queries are in what they ask for; 0 below `LEAST_SIMILAR`."""

    def plain(self, query: int) -> int:
        """The rank of the right fact without feedback."""
        own = self.relevance[query, self.answer[query]]
        ahead = self.relevance[query] > own
        ties = self.relevance[query, : self.answer[query]] == own
        return int(np.count_nonzero(ahead) + np.count_nonzero(ties)) + 1


@dataclass(frozen=True, slots=True)
class Condition:
    """How people rate."""

    name: str
    explicit: bool
    noise: float
    users: int = 3
    """People who rate each rated question."""
    adversaries: int = 0
    """How many of the authors always say the contrary."""
    first: int | None = None
    """How many questions are rated, if not half of the phrasings of half of the needs."""
    on_one: int | None = None
    """In stores of one rated need each: how many of its phrasings are rated at most, by `users` people in all."""


@dataclass(frozen=True, slots=True)
class World:
    """One draw: which questions were rated, what was said, and which questions show whether it helped."""

    rated: list[int]
    held_out: list[int]
    """Other ways to ask for what was rated."""
    unrated: list[int]
    """Questions about needs that nobody rated."""
    opinions: Mapping[int, Sequence[Opinion]]
    """What was said, by query, in the order it was given."""

    @property
    def asked(self) -> list[int]:
        return [*self.held_out, *self.unrated]


@dataclass(frozen=True, slots=True)
class Need:
    """Something people want to know: the right fact, and the ways they ask."""

    answer: str
    queries: list[str]


def read(file: Path, out: Path) -> Corpus:
    """The corpus of a file, with vectors from the bundled model."""
    if file.name == LOCOMO:
        turns, needs = _turns(file)
        return _corpus(file.name, needs, out, others=turns)
    return _corpus(file.name, _intents(file) if file.name == CLINC else _answered(file), out)


def shop(out: Path) -> Corpus:
    """The questions of the simulated shop that have one right fact."""
    texts = {key: text for theme in FACTS.values() for key, text in theme.items()}
    needs = [Need(texts[want.answer], list(want.queries)) for want in WANTS]
    return _corpus(SHOP, needs, out, others=list(texts.values()))


def _turns(file: Path) -> tuple[list[str], list[Need]]:
    """All turns of LoCoMo's conversations, and those that answer questions alone, with these."""
    random = Random(SPLIT_SEED)
    turns: list[str] = []
    queries: dict[str, list[str]] = {}
    for conversation in locomo.read(file):
        texts = {turn.id: turn.text for turn in conversation.turns}
        turns += texts.values()
        for question in conversation.questions:
            if len(question.evidence) == 1:
                asked = queries.setdefault(texts[next(iter(question.evidence))], [])
                asked += dict.fromkeys([question.text, *phrasings(question.text, random)])
    return turns, [Need(text, asked) for text, asked in queries.items()]


def _intents(file: Path) -> list[Need]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        pairs = json.load(stream)["train"]
    by_intent: dict[str, list[str]] = {}
    for text, intent in pairs:
        by_intent.setdefault(intent, []).append(text)
    draw = np.random.default_rng(SPLIT_SEED)
    return [
        Need(intent.replace("_", " "), draw.permutation(sorted(set(texts)))[:PHRASINGS].tolist())
        for intent, texts in sorted(by_intent.items())
    ]


def _answered(file: Path) -> list[Need]:
    with file.open(encoding="utf-8", errors="replace", newline="") as stream:
        rows = list(csv.DictReader(stream))
    answers: dict[tuple[str, str], str] = {}
    parameters: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        key = (row["Question ID"], row["Category"])
        text = (row["Answers"] or "").strip()
        if text and text != "-":
            answers.setdefault(key, text)
        parameters.setdefault(key, {})[row["Question"].strip()] = None
    return [Need(answers[key], list(parameters[key])) for key in sorted(answers)]


def _corpus(name: str, needs: Sequence[Need], out: Path, others: Sequence[str] = ()) -> Corpus:
    """`others` are facts that nobody asks for."""
    place = {text: number for number, text in enumerate(dict.fromkeys([*(need.answer for need in needs), *others]))}
    pairs = [(number, query) for number, need in enumerate(needs) for query in need.queries if query]
    queries = [query for _, query in pairs]
    facts = list(place)
    fact_vectors, query_vectors = embedded(facts, out, say), embedded(queries, out, say)
    return Corpus(
        name=name,
        facts=facts,
        queries=queries,
        need=np.array([number for number, _ in pairs]),
        answer=np.array([place[needs[number].answer] for number, _ in pairs]),
        half=_halves([len(need.queries) for need in needs]),
        fact_vectors=fact_vectors,
        query_vectors=query_vectors,
        relevance=_relevance(facts, queries, fact_vectors, query_vectors),
        similarity=_similarities(queries, query_vectors),
    )


def worlds(corpus: Corpus, half: Half, seed: int, condition: Condition) -> list[World]:
    """One draw of rated needs and questions (the same for every condition of a seed), and what people said.

    Where a store knows ratings of one need only, there is one for each of them, which is asked for that need and for
    one that nobody rated.
    """
    draw = np.random.default_rng([seed, 7])
    members = {int(need): np.flatnonzero(corpus.need == need) for need in corpus.half[half]}
    several = [need for need, mine in members.items() if len(mine) >= 2]
    chosen = sorted(draw.permutation(several)[: len(several) // 2].tolist())
    split: dict[int, tuple[list[int], list[int]]] = {}
    for need in chosen:
        mine = draw.permutation(members[need]).tolist()
        split[need] = (mine[: len(mine) // 2], mine[len(mine) // 2 :])
    free = {need: mine.tolist() for need, mine in members.items() if need not in split}
    if condition.on_one is not None:
        stores = []
        for need, other in zip(split, draw.permutation(sorted(free)).tolist(), strict=False):
            rated, held_out = split[need][0][: condition.on_one], split[need][1]
            # Other people rate in each store: the same ones would always look at the same ranks.
            said = _said(corpus, rated, seed + MOST_SEEDS * (need + 1), condition)
            stores.append(World(rated, held_out, free[other], said))
        return stores
    rated = [query for asked, _ in split.values() for query in asked]
    held_out = [query for _, rest in split.values() for query in rest]
    if condition.first is not None:
        rated = draw.permutation(rated)[: condition.first].tolist()
    unrated = [query for mine in free.values() for query in mine]
    return [World(rated, held_out, unrated, _said(corpus, rated, seed, condition))]


def _said(corpus: Corpus, rated: Sequence[int], seed: int, condition: Condition) -> dict[int, list[Opinion]]:
    """What people said of the facts that a recall without feedback showed them, as `signal_recall` records it."""
    users = [
        SimulatedUser(
            1000 * seed + number,
            author=f"user {number}",
            noise=condition.noise,
            explicit=condition.explicit,
            adversarial=number < condition.adversaries,
        )
        for number in range(AUTHORS)
    ]
    draw = np.random.default_rng([seed, 11])
    if condition.on_one is None:
        authors = [(query, each) for query in rated for each in draw.permutation(AUTHORS)[: condition.users].tolist()]
    else:
        some = draw.permutation(AUTHORS)[: condition.users].tolist()
        authors = [(rated[number % len(rated)], each) for number, each in enumerate(some)]
    visits = [(query, users[author]) for query, author in authors]
    result: dict[int, list[Opinion]] = {query: [] for query in rated}
    for minute, visit in enumerate(draw.permutation(len(visits)).tolist()):
        query, user = visits[visit]
        shown = np.argsort(-corpus.relevance[query], kind="stable")[:SHOWN].tolist()
        ids = [str(fact) for fact in shown]
        verdict = user.judge(ids, [str(corpus.answer[query])])
        named: dict[str, SignalType] = dict.fromkeys(verdict.used, "used")
        named |= dict.fromkeys(verdict.helpful, "helpful")
        named |= dict.fromkeys(verdict.not_helpful, "not_helpful")
        for rank, (fact, fact_id) in enumerate(zip(shown, ids, strict=True), start=1):
            kind = named.get(fact_id, "ignored")
            at = NOW - DAY + minute * 1_000_000
            result[query].append(Opinion(fact, query, kind, 1.0, at, rank=rank, author=user.author))
    return result


def _halves(phrasings: Sequence[int]) -> dict[Half, Numbers]:
    """The needs, split once; those with several phrasings and those with one are split alike."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(phrasings)).tolist()
    several = [need for need in order if phrasings[need] >= 2]
    single = [need for need in order if phrasings[need] < 2]
    return {
        "tune": np.array(sorted(several[::2] + single[::2])),
        "report": np.array(sorted(several[1::2] + single[1::2])),
    }


def _relevance(facts: list[str], queries: list[str], fact_vectors: Vectors, query_vectors: Vectors) -> Floats:
    """Relevance of facts that stand alone, from the parts that `recall` uses."""
    segment = relevance.build_segment(facts, 0)
    alive = np.ones(len(facts), bool)
    norms = relevance.length_norms(segment.lengths, alive)
    nobody = np.zeros(len(facts), np.float32)
    found = np.empty((len(queries), len(facts)))
    for place, query in enumerate(queries):
        cosines = np.clip(fact_vectors @ query_vectors[place], 0, 1)
        words = relevance.coverage([segment], query, alive, norms)
        found[place] = relevance.fuse(cosines, words, nobody, nobody)[0]
    return np.round(found, 6)


def _similarities(queries: list[str], vectors: Vectors) -> Floats:
    calibration = bundled().calibration
    # Below this cosine, a pair is less similar than anyone asks for.
    least = calibration.floor + (calibration.same - calibration.floor) * LEAST_SIMILAR / SAME_NEED
    cosines = vectors @ vectors.T
    found = np.zeros(cosines.shape)
    for one, other in np.argwhere(cosines >= least).tolist():
        if one <= other:
            alike = similarity(queries[one], queries[other], float(cosines[one, other]), calibration=calibration)
            found[one, other] = found[other, one] = round(alike, 6)
    return found
