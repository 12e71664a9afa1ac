"""The ledger folded again with other policies: how they would have ranked the recalls that people rated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from sqlalchemy import Connection

from heedful.errors import Invalid, Unavailable, quoted
from heedful.memory import checks
from heedful.memory.workspace import Workspace
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
from heedful.ranking import replay as learning
from heedful.ranking.affinity import Neighbour
from heedful.ranking.policies import Candidate
from heedful.ranking.replay import FOLDS, Floats, LoggedRecall, Order, Trial, replay_orders
from heedful.ranking.signals import Opinion
from heedful.search.evidence import ContextIndex
from heedful.storage import facts, ledger, receipts
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ModelRow, Vectors, of_facts

MAX_STEPS = 100
"""Steps of embedding that a replay does itself, of a thousand characters each."""

WEIGHTS = tuple(tenth / 10 for tenth in range(1, 10))

MAX_WORSE_QUERIES = 10
"""How many of the queries that would get worse are named for each arm."""

DIGITS = 6

LOGGED, NONE = 0, 1
"""The first columns of what is measured; the arms follow."""


NEIGHBOURS = 200
"""The nearest queries that are looked through for those that had been rated by the time of a recall."""


@dataclass(frozen=True, slots=True)
class _Rated:
    """A recall with a fact that was rated helpful. What was forgotten since is not in it."""

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
    """What a dataset's ledger holds for a replay."""

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
    """What each recall counts."""

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
    """Orders what rated recalls showed by each policy with each weight, and says what the ratings make of it."""
    checks.name("dataset", dataset)
    chosen = _distinct("policies", policies, POLICY_NAMES, lambda policy: checks.policy(policy, "policies"))
    tried = sorted(_distinct("weights", weights, WEIGHTS, lambda weight: checks.fraction("weights", weight)))
    start = checks.bound("since", since)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise Invalid(f"seed must be a whole number from 0 on, got {quoted(seed)}", field="seed", value=seed)
    history = _history(workspace, dataset, start)
    if not history.recalls:
        few = learning.advice([], Trial(0.0, 0.0, np.zeros(0)), 0, 0.0)
        return _report(dataset, history, 0.0, seed, [], [_advice(policy, few) for policy in chosen])
    measured = _measure(history, chosen, tried)
    values = np.hstack([measured.reciprocal, measured.ndcg])
    means = learning.weighted_means(values, measured.weights)
    samples = learning.resampled_means(values, measured.weights, seed)
    effective = learning.effective_sample_size(measured.weights)
    named = [(None, None), (None, 0.0), *((policy, weight) for policy in chosen for weight in tried)]
    made = [
        _arm(history.recalls, measured, means, samples, column, policy, weight)
        for column, (policy, weight) in enumerate(named)
    ]
    trials = [Trial(weight or 0.0, float(means[at]), samples[:, at]) for at, (_, weight) in enumerate(named)]
    advised = []
    for index, policy in enumerate(chosen):
        start = NONE + 1 + index * len(tried)
        found = learning.advice(trials[start : start + len(tried)], trials[NONE], len(history.recalls), effective)
        advised.append(_advice(policy, found))
    recommended = _recommendation(advised, made, samples) if effective >= learning.MIN_SAMPLE_SIZE else None
    return _report(dataset, history, effective, seed, made, advised, recommended)


def _recommendation(
    advised: Sequence[ReplayAdvice], made: Sequence[ReplayArm], samples: Floats
) -> ReplayRecommendation:
    chosen = [NONE] + [
        column
        for column, arm in enumerate(made)
        if arm.usefulness_weight
        and any((arm.policy, arm.usefulness_weight) == (each.policy, each.usefulness_weight) for each in advised)
    ]
    best = max(chosen, key=lambda column: made[column].mrr.value)
    arm, drawn = made[best], samples[:, best] - samples[:, LOGGED]
    # Draws without any difference say nothing for either.
    certainty = float((drawn > 0).mean() + (drawn == 0).mean() / 2)
    name = "relevance alone" if arm.policy is None else f"{arm.policy} with a weight of {arm.usefulness_weight:g}"
    return ReplayRecommendation(
        policy=arm.policy,
        usefulness_weight=arm.usefulness_weight or 0.0,
        mrr_change=arm.mrr_change,
        certainty=round(certainty, DIGITS),
        is_certain=certainty >= learning.SURE,
        reason=learning.verdict(name, arm.mrr_change.value, certainty, arm.queries_better, arm.queries_worse),
    )


def _distinct(
    field: str, values: Sequence[Any] | None, default: Sequence[Any], check: Callable[[Any], Any]
) -> list[Any]:
    if values is None:
        return list(default)
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise Invalid(f"{field} must be a non-empty list, got {quoted(values)}", field=field, value=values)
    checks.batch(field, values, limits.MAX_WEIGHTS)
    return list(dict.fromkeys(check(each) for each in values))


def _history(workspace: Workspace, dataset: str, since: int | None) -> _History:
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        model = workspace.model(connection)
        if number is None or model is None:
            return _History()
        by_receipt: dict[str, list[AnyRow]] = defaultdict(list)
        for rating in ledger.ratings(connection, number):
            by_receipt[rating.receipt_id].append(rating)
        rows = receipts.load(connection, number, list(by_receipt), since)
        known = {fact_id: seq for seq, fact_id in facts.of_dataset(connection, number)}
        found = (_rated_recall(row, by_receipt[row.id], known) for row in rows)
        recalls = [each for each in found if each is not None]
        if not recalls:
            return _History(rated=len(rows))
        contexts = _contexts(workspace, connection, number, model)
        opinions = ledger.recorded_opinions(connection, number)
        named = {opinion.fact for _, opinion in opinions} | {line.fact for each in recalls for line in each.shown}
        return _History(
            rated=len(rows),
            recalls=recalls,
            opinions=opinions,
            contexts=contexts,
            vectors=of_facts(connection, model, sorted(named)),
        )


def _contexts(workspace: Workspace, connection: Connection, dataset: int, model: ModelRow) -> ContextIndex:
    """All queries of a dataset; `Unavailable` as long as there is much to embed."""
    newest = ledger.last_event(connection, dataset)
    contexts = workspace.contexts(connection, dataset, model, newest, needed=())
    wanted = ledger.queries_after(connection, dataset, 0)
    if len(contexts.steps(wanted)) > MAX_STEPS:
        raise Unavailable(
            "many queries of this dataset are new, and not embedded yet",
            code="not_ready",
            field="dataset",
            remedy="Try again in some minutes: they are embedded in the background while the store is open",
        )
    return workspace.contexts(connection, dataset, model, newest, needed=wanted)


def _rated_recall(row: AnyRow, ratings: Sequence[AnyRow], known: dict[str, int]) -> _Rated | None:
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
    there = [(known[line[0]], line) for line in row.shown if line[0] in known]
    return _Rated(
        recall_id=row.id,
        query_id=row.query_id,
        query=row.query,
        at=row.at,
        shown=[Candidate(fact, line[2]) for fact, line in there],
        helpful=helpful,
        weight=1 / prod(line[5] for fact, line in there if fact in helpful),
    )


def _measure(history: _History, policies: Sequence[PolicyName], weights: Sequence[float]) -> _Measured:
    contexts = history.contexts
    assert contexts is not None
    near: dict[int, tuple[dict[int, float], list[Neighbour]]] = {}
    for each in history.recalls:
        if each.query_id not in near:
            matches, nearest = contexts.near(each.query, contexts.vector_of(each.query_id))
            alike = {match.query_id: match.similarity for match in matches}
            near[each.query_id] = (alike, list(islice(nearest, NEIGHBOURS)))
    recalls = [
        LoggedRecall(
            each.query_id,
            each.at,
            each.shown,
            *near[each.query_id],
            vector=contexts.vector_of(each.query_id),
            vectors=history.vectors,
        )
        for each in history.recalls
    ]
    folded = replay_orders(recalls, history.opinions, [FOLDS[policy]() for policy in policies], weights)
    ranks, ndcg = [], []
    for each, orders in zip(history.recalls, folded, strict=True):
        columns: list[Order] = [[line.fact for line in each.shown], _by_relevance(each.shown), *orders]
        ranks.append([learning.first_rank(order, each.helpful) for order in columns])
        ndcg.append([learning.ndcg(order, each.helpful) for order in columns])
    return _Measured(
        np.array(ranks, np.float64),
        np.array(ndcg, np.float64),
        np.array([each.weight for each in history.recalls], np.float64),
    )


def _by_relevance(shown: Sequence[Candidate]) -> Order:
    return [each.fact for each in sorted(shown, key=lambda each: (-each.relevance, each.fact))]


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
        low, high = learning.interval(drawn)
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
    """How many queries an arm makes better than they were logged, and those it makes worse, worst first."""
    changes = measured.reciprocal[:, column] - measured.reciprocal[:, LOGGED]
    of_query: dict[int, list[int]] = defaultdict(list)
    for index, each in enumerate(recalls):
        of_query[each.query_id].append(index)
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
    return better, sorted(worse, key=lambda each: (each.change, each.query))


def _advice(policy: PolicyName, found: learning.Advice) -> ReplayAdvice:
    return ReplayAdvice(policy=policy, usefulness_weight=found.weight, reason=found.reason)


def _report(
    dataset: str,
    history: _History,
    effective: float,
    seed: int,
    made: Sequence[ReplayArm],
    advised: list[ReplayAdvice],
    recommended: ReplayRecommendation | None = None,
) -> ReplayReport:
    return ReplayReport(
        dataset=dataset,
        rated=history.rated,
        replayed=len(history.recalls),
        queries=len({each.query_id for each in history.recalls}),
        effective_sample_size=round(effective, DIGITS),
        seed=seed,
        logged=made[LOGGED] if made else None,
        none=made[NONE] if made else None,
        arms=list(made[NONE + 1 :]),
        advice=advised,
        recommendation=recommended,
    )
