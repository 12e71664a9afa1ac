"""The replay of policies: the ledger folded again with other policies, and how they would have ranked the recalls that
people rated. `replay_statistics` judges the orders."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from math import prod
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from sqlalchemy import Connection

from heedful.api import checks
from heedful.errors import Invalid, Unavailable, quoted
from heedful.ledger import events, receipts
from heedful.ledger import replay_statistics as statistics
from heedful.ledger.adaptive_policy import (
    RELATED,
    Adaptive,
    Neighbour,
    Related,
    Same,
    Strengths,
    Supported,
    Vector,
    Verdicts,
    VoteTable,
    rivals,
    votes_per_fact,
)
from heedful.ledger.contexts import ContextIndex
from heedful.ledger.fold_cache import folds_of
from heedful.ledger.replay_statistics import Floats, Trial
from heedful.ledger.usefulness import Candidate, Documented, Opinion, Tally
from heedful.ledger.votes import effective_vote
from heedful.model import (
    POLICY_NAMES,
    Estimate,
    PolicyName,
    ReplayAdvice,
    ReplayArm,
    ReplayRecommendation,
    ReplayReport,
    WorseQuery,
    limits,
)
from heedful.storage import facts
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ModelRow, Vectors, of_facts
from heedful.workspace import Workspace

MAX_STEPS = 100  # Steps of embedding that a replay does itself, of a thousand characters each.

WEIGHTS = tuple(tenth / 10 for tenth in range(1, 10))

MAX_WORSE_QUERIES = 10  # How many of the queries that would get worse are named for each arm.

DIGITS = 6

LOGGED, NONE = 0, 1  # The first columns of what is measured; the arms follow.


NEIGHBOURS = 200  # The nearest queries that are looked through for those that had been rated by the time of a recall.


@dataclass(frozen=True, slots=True)
class _Rated:
    """A recall with a fact that was rated helpful, without facts that were forgotten since."""

    recall_id: str
    query_id: int
    query: str
    at: int
    shown: list[Candidate]
    """In the order they were shown."""
    helpful: frozenset[int]
    weight: float
    """One over the probability that the helpful facts were shown at their ranks."""


@dataclass(frozen=True, slots=True)
class _History:
    """The records of a dataset that a replay needs."""

    rated: int = 0
    recalls: Sequence[_Rated] = ()
    opinions: Sequence[tuple[int, Opinion]] = ()
    contexts: ContextIndex | None = None
    vectors: dict[int, Vectors] = field(default_factory=dict)
    """Of the facts that were judged or shown."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Each recall a row; the logged order, relevance alone and each arm a column."""

    ranks: Floats
    """Of the first helpful fact."""
    ndcg: Floats
    weights: Floats
    """The weight of each recall."""

    @property
    def reciprocal(self) -> Floats:
        return 1 / self.ranks


def replay(
    workspace: Workspace,
    dataset: str,
    policies: Sequence[PolicyName] | None,
    weights: Sequence[float] | None,
    since: datetime | None,
    seed: int,
) -> ReplayReport:
    """Orders the facts of rated recalls by each policy with each weight, and judges the orders by the ratings."""
    checks.name("dataset", dataset)
    chosen: list[PolicyName] = _distinct(
        "policies", policies, POLICY_NAMES, lambda policy: checks.policy(policy, "policies")
    )
    tried = sorted(_distinct("weights", weights, WEIGHTS, lambda weight: checks.fraction("weights", weight)))
    start = checks.bound("since", since)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise Invalid(f"seed must be a whole number from 0 on, got {quoted(seed)}", field="seed", value=seed)
    history = _history(workspace, dataset, start)
    effective, arms, recommended = 0.0, list[ReplayArm](), None
    if history.recalls:
        effective, arms, advised, recommended = _compare(history, chosen, tried, seed)
    else:
        few = statistics.advice([], Trial(0.0, 0.0, np.zeros(0)), 0, 0.0)
        advised = [_advice(policy, few) for policy in chosen]
    return ReplayReport(
        dataset=dataset,
        rated=history.rated,
        replayed=len(history.recalls),
        queries=len({recall.query_id for recall in history.recalls}),
        effective_sample_size=round(effective, DIGITS),
        seed=seed,
        logged=arms[LOGGED] if arms else None,
        none=arms[NONE] if arms else None,
        arms=arms[NONE + 1 :],
        advice=advised,
        recommendation=recommended,
    )


def _compare(
    history: _History, chosen: Sequence[PolicyName], tried: Sequence[float], seed: int
) -> tuple[float, list[ReplayArm], list[ReplayAdvice], ReplayRecommendation | None]:
    """The effective sample size, the arms, the advice for each policy, and the recommendation."""
    measured = _measure(history, chosen, tried)
    values = np.hstack([measured.reciprocal, measured.ndcg])
    means = statistics.weighted_means(values, measured.weights)
    samples = statistics.resampled_means(values, measured.weights, seed)
    effective = statistics.effective_sample_size(measured.weights)
    named = [(None, None), (None, 0.0), *((policy, weight) for policy in chosen for weight in tried)]
    arms = [
        _arm(history.recalls, measured, means, samples, column, policy, weight)
        for column, (policy, weight) in enumerate(named)
    ]
    trials = [Trial(weight or 0.0, float(means[at]), samples[:, at]) for at, (_, weight) in enumerate(named)]
    advised = []
    for index, policy in enumerate(chosen):
        first = NONE + 1 + index * len(tried)
        advice = statistics.advice(trials[first : first + len(tried)], trials[NONE], len(history.recalls), effective)
        advised.append(_advice(policy, advice))
    is_enough = effective >= statistics.MIN_SAMPLE_SIZE
    return effective, arms, advised, _recommendation(advised, arms, samples) if is_enough else None


def _recommendation(
    advised: Sequence[ReplayAdvice], arms: Sequence[ReplayArm], samples: Floats
) -> ReplayRecommendation:
    advice = {(advice.policy, advice.usefulness_weight) for advice in advised}
    chosen = [NONE] + [
        column
        for column, arm in enumerate(arms)
        if arm.usefulness_weight and (arm.policy, arm.usefulness_weight) in advice
    ]
    best = max(chosen, key=lambda column: arms[column].mrr.value)
    arm, drawn = arms[best], samples[:, best] - samples[:, LOGGED]
    # Draws without any difference say nothing for either.
    certainty = float((drawn > 0).mean() + (drawn == 0).mean() / 2)
    name = "relevance alone" if arm.policy is None else f"{arm.policy} with a weight of {arm.usefulness_weight:g}"
    return ReplayRecommendation(
        policy=arm.policy,
        usefulness_weight=arm.usefulness_weight or 0.0,
        mrr_change=arm.mrr_change,
        certainty=round(certainty, DIGITS),
        is_certain=certainty >= statistics.SURE,
        reason=statistics.verdict(name, arm.mrr_change.value, certainty, arm.queries_better, arm.queries_worse),
    )


def _distinct(
    field: str, values: Sequence[Any] | None, default: Sequence[Any], check: Callable[[Any], Any]
) -> list[Any]:
    if values is None:
        return list(default)
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise Invalid(f"{field} must be a non-empty list, got {quoted(values)}", field=field, value=values)
    checks.batch(field, values, limits.MAX_WEIGHTS)
    return list(dict.fromkeys(map(check, values)))


def _history(workspace: Workspace, dataset: str, since: int | None) -> _History:
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        model = workspace.model(connection)
        if number is None or model is None:
            return _History()
        by_receipt: dict[str, list[AnyRow]] = defaultdict(list)
        for rating in events.ratings(connection, number):
            by_receipt[rating.receipt_id].append(rating)
        rows = receipts.load(connection, number, list(by_receipt), since)
        known = {fact_id: seq for seq, fact_id in facts.of_dataset(connection, number)}
        rated = (_rated_recall(row, by_receipt[row.id], known) for row in rows)
        recalls = [recall for recall in rated if recall is not None]
        if not recalls:
            return _History(rated=len(rows))
        contexts = _contexts(workspace, connection, number, model)
        opinions = events.recorded_opinions(connection, number)
        named = {opinion.fact for _, opinion in opinions} | {fact for recall in recalls for fact, _ in recall.shown}
        return _History(
            rated=len(rows),
            recalls=recalls,
            opinions=opinions,
            contexts=contexts,
            vectors=of_facts(connection, model, sorted(named)),
        )


def _contexts(workspace: Workspace, connection: Connection, dataset: int, model: ModelRow) -> ContextIndex:
    """All queries of a dataset; `Unavailable` as long as there is much to embed."""
    newest = events.last_event(connection, dataset)
    contexts = folds_of(workspace).contexts(connection, dataset, model, newest, needed=())
    wanted = events.queries_after(connection, dataset, 0)
    if len(contexts.steps(wanted)) > MAX_STEPS:
        message = "many queries of this dataset are new, and not embedded yet"
        remedy = "Try again in some minutes: they are embedded in the background while the store is open"
        raise Unavailable(message, code="not_ready", field="dataset", remedy=remedy)
    return folds_of(workspace).contexts(connection, dataset, model, newest, needed=wanted)


def _rated_recall(row: receipts.ReceiptRow, ratings: Sequence[AnyRow], known: dict[str, int]) -> _Rated | None:
    """The recall behind a receipt, if its raters call a fact helpful that is still there.

    The last word of each author counts, and a fact is helpful if those who say so are surer than those who don't.
    """
    last = {(rating.fact, rating.author): rating for rating in ratings}
    balance: dict[int, float] = defaultdict(float)
    for rating in last.values():
        balance[rating.fact] += rating.confidence if rating.value == "helpful" else -rating.confidence
    helpful = frozenset(fact for fact, net in balance.items() if net > 0)
    if not helpful:
        return None
    there = [(known[fact.fact_id], fact) for fact in row.shown if fact.fact_id in known]
    return _Rated(
        recall_id=row.id,
        query_id=row.query_id,
        query=row.query,
        at=row.at,
        shown=[Candidate(number, fact.relevance) for number, fact in there],
        helpful=helpful,
        weight=1 / prod(fact.propensity for number, fact in there if number in helpful),
    )


def _measure(history: _History, policies: Sequence[PolicyName], weights: Sequence[float]) -> _Measured:
    contexts = history.contexts
    assert contexts is not None
    near: dict[int, tuple[dict[int, float], list[Neighbour]]] = {}
    recalls = []
    for recall in history.recalls:
        vector = contexts.vector_of(recall.query_id)
        if recall.query_id not in near:
            matches, nearest = contexts.near(recall.query, vector)
            alike = {match.query_id: match.similarity for match in matches}
            near[recall.query_id] = (alike, list(islice(nearest, NEIGHBOURS)))
        context = near[recall.query_id]
        recalls.append(LoggedRecall(recall.query_id, recall.at, recall.shown, *context, vector, history.vectors))
    folded = replay_orders(recalls, history.opinions, [FOLDS[policy]() for policy in policies], weights)
    ranks, ndcg = [], []
    for recall, orders in zip(history.recalls, folded, strict=True):
        by_relevance = sorted(recall.shown, key=lambda candidate: (-candidate.relevance, candidate.fact))
        columns: list[Order] = [[fact for fact, _ in shown] for shown in (recall.shown, by_relevance)]
        columns += orders
        ranks.append([statistics.first_rank(order, recall.helpful) for order in columns])
        ndcg.append([statistics.ndcg(order, recall.helpful) for order in columns])
    recall_weights = np.array([recall.weight for recall in history.recalls], np.float64)
    return _Measured(np.array(ranks, np.float64), np.array(ndcg, np.float64), recall_weights)


def _arm(
    recalls: Sequence[_Rated],
    measured: _Measured,
    means: Floats,
    samples: Floats,
    column: int,
    policy: PolicyName | None,
    weight: float | None,
) -> ReplayArm:
    count = measured.ranks.shape[1]
    better, worse = _changed(recalls, measured, column)

    def estimate(place: int, against: int | None = None) -> Estimate:
        value, drawn = means[place], samples[:, place]
        if against is not None:
            value, drawn = value - means[against], drawn - samples[:, against]
        low, high = statistics.interval(drawn)
        return Estimate(value=round(float(value), DIGITS), low=round(low, DIGITS), high=round(high, DIGITS))

    return ReplayArm(
        policy=policy,
        usefulness_weight=weight,
        mrr=estimate(column),
        ndcg=estimate(count + column),
        mrr_change=estimate(column, LOGGED),
        ndcg_change=estimate(count + column, count + LOGGED),
        queries_better=better,
        queries_worse=len(worse),
        worse=worse[:MAX_WORSE_QUERIES],
    )


def _changed(recalls: Sequence[_Rated], measured: _Measured, column: int) -> tuple[int, list[WorseQuery]]:
    """The number of queries that an arm makes better than they were logged, and those it makes worse, worst first."""
    changes = measured.reciprocal[:, column] - measured.reciprocal[:, LOGGED]
    of_query: dict[int, list[int]] = defaultdict(list)
    for index, recall in enumerate(recalls):
        of_query[recall.query_id].append(index)
    better, worse = 0, []
    for places in of_query.values():
        change = round(float(changes[places].mean()), DIGITS)
        better += change > 0
        if change < 0:
            most = min(places, key=lambda index: float(changes[index]))
            worse.append(
                WorseQuery(
                    query=recalls[most].query,
                    receipts=len(places),
                    change=change,
                    recall_id=recalls[most].recall_id,
                    old_rank=int(measured.ranks[most, LOGGED]),
                    new_rank=int(measured.ranks[most, column]),
                )
            )
    return better, sorted(worse, key=lambda query: (query.change, query.query))


def _advice(policy: PolicyName, advice: statistics.Advice) -> ReplayAdvice:
    return ReplayAdvice(policy=policy, usefulness_weight=advice.weight, reason=advice.reason)


_by_time = attrgetter("at")

Order = list[int]  # Facts, best first.


@dataclass(frozen=True, slots=True)
class LoggedRecall:
    """A recall of the past."""

    query: int
    at: int
    shown: Sequence[Candidate]
    context: Mapping[int, float]
    """The queries that mean the same, and how alike they are; the same for every recall of a query."""
    neighbours: Sequence[Neighbour] = ()
    """The queries nearest to it, the nearest first."""
    vector: Vector | None = None
    """Of the query."""
    vectors: Mapping[int, Vector] = field(default_factory=dict)
    """Of facts."""


class Fold(Protocol):
    """A policy that hears opinions one by one, as they became known."""

    def add(self, opinion: Opinion) -> None: ...

    def orders(self, recall: LoggedRecall, weights: Sequence[float]) -> list[Order]:
        """The orders of the facts shown, by the policy with each of the weights and the opinions it has taken in."""


def replay_orders(
    recalls: Iterable[LoggedRecall],
    opinions: Iterable[tuple[int, Opinion]],
    folds: Sequence[Fold],
    weights: Sequence[float],
) -> Iterator[list[Order]]:
    """For each recall, in order of time, the orders of each fold with each weight.

    `opinions` come as (when it was recorded, opinion), in that order; also those that their author replaced later,
    because until then they counted. One that was recorded in the very moment of a recall is not known to it.
    """
    coming = iter(opinions)
    following = next(coming, None)
    for recall in recalls:
        while following is not None and following[0] < recall.at:
            for fold in folds:
                fold.add(following[1])
            following = next(coming, None)
        yield [order for fold in folds for order in fold.orders(recall, weights)]


class _Growing:
    """A tally that takes opinions in any order, and folds them in the order they were given."""

    __slots__ = ("_folded", "_opinions", "_tally")

    def __init__(self) -> None:
        self._opinions: list[Opinion] = []
        self._tally = Tally()
        self._folded = 0

    def add(self, opinion: Opinion) -> None:
        if self._folded and opinion.at < self._opinions[self._folded - 1].at:
            self._tally, self._folded = Tally(), 0
        insort(self._opinions, opinion, key=_by_time)

    def remove(self, opinion: Opinion) -> None:
        self._opinions.remove(opinion)
        self._tally, self._folded = Tally(), 0

    def __len__(self) -> int:
        return len(self._opinions)

    def tally(self, policy: Documented) -> Tally:
        self._tally = policy.fold(self._opinions[self._folded :], self._tally)
        self._folded = len(self._opinions)
        return self._tally


@dataclass(slots=True)
class _Context:
    """The tallies of the queries that mean the same as one, and how many opinions for each are in them."""

    taken: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tallies: dict[int, _Growing] = field(default_factory=lambda: defaultdict(_Growing))


class DocumentedFold:
    """The documented rule."""

    def __init__(self) -> None:
        self._policy = Documented()
        self._evidence = 0
        self._voters: dict[tuple[int, int, str], list[Opinion]] = defaultdict(list)
        self._opinions: dict[int, list[tuple[int, Opinion]]] = defaultdict(list)
        self._overall: dict[int, _Growing] = defaultdict(_Growing)
        self._contexts: dict[int, _Context] = defaultdict(_Context)

    def add(self, opinion: Opinion) -> None:
        before, after = self._replaced(opinion)
        if before is not None:
            self._remove(before)
        if after is not None:
            self._evidence += 1
            self._opinions[after.query].append((self._evidence, after))
            self._overall[after.fact].add(after)

    def _replaced(self, opinion: Opinion) -> tuple[Opinion | None, Opinion | None]:
        """The opinion that no longer counts, and the one that does now, when this one comes."""
        if opinion.author is None:
            return None, opinion
        own = self._voters[opinion.fact, opinion.query, opinion.author]
        before = effective_vote(own) if own else None
        insort(own, opinion, key=_by_time)
        after = effective_vote(own)
        return (None, None) if after is before else (before, after)

    def _remove(self, opinion: Opinion) -> None:
        for_query = self._opinions[opinion.query]
        del for_query[next(place for place, (_, given) in enumerate(for_query) if given is opinion)]
        self._overall[opinion.fact].remove(opinion)
        if not self._overall[opinion.fact]:
            del self._overall[opinion.fact]
        self._contexts.clear()

    def orders(self, recall: LoggedRecall, weights: Sequence[float]) -> list[Order]:
        context = self._contexts[recall.query]
        self._follow(context, recall.context)
        usefulness = {
            fact: self._policy.usefulness(
                self._tally(context.tallies, fact), self._tally(self._overall, fact), recall.at
            )
            for fact, _ in recall.shown
        }
        return [[line.fact for line in self._policy.rank(recall.shown, usefulness, weight)] for weight in weights]

    def _follow(self, context: _Context, queries: Iterable[int]) -> None:
        new: list[tuple[int, Opinion]] = []
        for query in queries:
            opinions = self._opinions.get(query, ())
            new += opinions[context.taken[query] :]
            context.taken[query] = len(opinions)
        for _, opinion in sorted(new, key=lambda numbered: (numbered[1].at, numbered[0])):
            context.tallies[opinion.fact].add(opinion)

    def _tally(self, tallies: Mapping[int, _Growing], fact: int) -> Tally | None:
        return tallies[fact].tally(self._policy) if fact in tallies else None


class AdaptiveFold:
    """The adaptive rule, with the strengths of a store that has fitted none."""

    def __init__(self) -> None:
        self._policy = Adaptive()
        self._strengths = Strengths()
        self._opinions: dict[int, list[Opinion]] = defaultdict(list)
        self._tables: dict[int, VoteTable] = {}

    def add(self, opinion: Opinion) -> None:
        insort(self._opinions[opinion.query], opinion, key=_by_time)
        self._tables.pop(opinion.query, None)

    def orders(self, recall: LoggedRecall, weights: Sequence[float]) -> list[Order]:
        same = [
            Same(similarity, self._table(query))
            for query, similarity in recall.context.items()
            if query in self._opinions
        ]
        verdicts = self._policy.verdicts(same, recall.at, self._strengths)
        known = (Related(near, self._table(near.query)) for near in recall.neighbours if near.query in self._opinions)
        related = list(islice((question for question in known if question.votes.counts), RELATED))
        lifts: dict[int, float] = {}
        if related and recall.vector is not None:
            supported = Supported(related, recall.at, self._strengths.certainty)
            relevance = dict(recall.shown)
            first = rivals(relevance)
            lifts = self._policy.affinity.lifts(supported, recall.vector, recall.vectors, relevance, first, 0.0)
        judgement = Verdicts(verdicts, lifts)
        return [[line.fact for line in self._policy.rank(recall.shown, judgement, weight)] for weight in weights]

    def _table(self, query: int) -> VoteTable:
        if query not in self._tables:
            self._tables[query] = VoteTable.of(votes_per_fact(self._opinions[query]))
        return self._tables[query]


FOLDS: Mapping[PolicyName, Callable[[], Fold]] = {"documented": DocumentedFold, "adaptive": AdaptiveFold}
