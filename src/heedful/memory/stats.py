"""What signals say, summed up and explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice

import numpy as np
from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.memory import checks
from heedful.memory.graph_recall import Expanded, Path
from heedful.memory.usefulness import DOCUMENTED, Context
from heedful.memory.workspace import Workspace
from heedful.model import (
    SIGNAL_TYPES,
    ContextScore,
    EventRef,
    Explanation,
    FactStats,
    PolicyName,
    RankedFact,
    SignalType,
    UsefulnessStats,
)
from heedful.ranking.affinity import Neighbour, Strengths
from heedful.ranking.policies import Ranked, Tally, Usefulness
from heedful.ranking.signals import NEUTRAL, Observation
from heedful.search.fusion import VECTOR
from heedful.storage import facts, graph, ledger, scopes, scores
from heedful.storage.scores import ALL_QUERIES

BINS = 10
MAX_RANKED = 10
"""How many facts are named as the most and the least useful."""

MAX_EVENTS = 100
"""Signals that an explanation lists."""

MAX_QUERIES = 100
"""Queries of a fact whose contexts are shown."""

MAX_CHARACTERS = 20_000
"""The same in characters, unless a single query has more."""


def fact_stats(workspace: Workspace, fact_id: str) -> FactStats:
    """The score of one fact now, its signals, and its scores by context."""
    checks.identifier("fact_id", fact_id)
    with workspace.read() as connection:
        place = facts.locate(connection, workspace.project, [fact_id]).get(fact_id)
        if place is None:
            raise checks.no_fact(workspace.project, fact_id)
        seq, dataset = place
        now = workspace.now()
        tally = scores.read(connection, [seq], [ALL_QUERIES]).get((seq, ALL_QUERIES), Tally())
        return FactStats(
            fact_id=fact_id,
            text=facts.by_seq(connection, [seq])[seq].text,
            dataset=scopes.dataset_names(connection, workspace.project)[dataset],
            overall_usefulness=tally.at(now),
            signal_count=tally.count,
            signal_breakdown=tally.breakdown,
            last_signal_at=None if tally.last_at is None else from_stored(tally.last_at),
            query_count=scores.count_queries(connection, seq),
            contexts=_contexts(workspace, connection, dataset, seq, now),
        )


def usefulness_stats(workspace: Workspace, dataset: str) -> UsefulnessStats:
    """Totals over the active facts, the distribution of their scores, and those at both ends."""
    checks.name("dataset", dataset)
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        now = workspace.now()
        tallies = {} if number is None else scores.overall(connection, number, now)
        now_scores = {seq: tally.at(now) for seq, tally in tallies.items()}
        best = sorted(now_scores, key=lambda seq: (-now_scores[seq], seq))[:MAX_RANKED]
        worst = sorted(now_scores, key=lambda seq: (now_scores[seq], seq))[:MAX_RANKED]
        rows = facts.by_seq(connection, list({*best, *worst}))

        def ranked(seqs: Iterable[int]) -> list[RankedFact]:
            return [
                RankedFact(
                    fact_id=rows[seq].id,
                    text=rows[seq].text,
                    overall_usefulness=now_scores[seq],
                    signal_count=tallies[seq].count,
                )
                for seq in seqs
            ]

        breakdown: Counter[SignalType] = Counter(dict.fromkeys(SIGNAL_TYPES, 0))
        for tally in tallies.values():
            breakdown.update(tally.breakdown)
        return UsefulnessStats(
            dataset=dataset,
            total_facts=0 if number is None else facts.count(connection, number, now),
            facts_with_signals=len(tallies),
            total_signals=sum(breakdown.values()),
            signal_breakdown=dict(breakdown),
            average_overall_usefulness=sum(now_scores.values()) / len(now_scores) if now_scores else NEUTRAL,
            distribution=_distribution(now_scores.values()),
            most_useful=ranked(best),
            least_useful=ranked(worst),
            queries=0 if number is None else scores.signalled_queries(connection, number, now),
        )


def _contexts(workspace: Workspace, connection: Connection, dataset: int, seq: int, now: int) -> list[ContextScore]:
    """The contexts of one fact by its queries with the most signals, those with the most first."""
    model = workspace.model(connection)
    strongest = _shown(scores.strongest(connection, seq, MAX_QUERIES))
    if not strongest or model is None:
        return []
    index = workspace.contexts(connection, dataset, model, ledger.last_event(connection, dataset))
    signals = ledger.surviving(connection, [seq], list(strongest))
    groups = index.grouped({signal.query_id: strongest[signal.query_id] for signal in signals})
    place_of = {query: place for place, group in enumerate(groups) for query in group}
    folded: list[list[Observation]] = [[] for _ in groups]
    for signal in signals:
        folded[place_of[signal.query_id]].append(signal.observation)
    contexts = [
        _context_score([strongest[query] for query in group], DOCUMENTED.fold(observations), now)
        for group, observations in zip(groups, folded, strict=True)
    ]
    return sorted(contexts, key=lambda context: -context.signal_count)


def _shown(strongest: dict[int, str]) -> dict[int, str]:
    """The first queries, as many as have `MAX_CHARACTERS` together; at least one."""
    sizes = accumulate(map(len, strongest.values()))
    fitting = sum(size <= MAX_CHARACTERS for size in sizes)
    return dict(islice(strongest.items(), max(1, fitting)))


def _context_score(queries: list[str], tally: Tally, now: int) -> ContextScore:
    assert tally.last_at is not None
    return ContextScore(
        query=queries[0],
        queries=queries,
        score=tally.at(now),
        signal_count=tally.count,
        signal_breakdown=tally.breakdown,
        last_signal_at=from_stored(tally.last_at),
    )


def _distribution(values: Iterable[float]) -> dict[str, int]:
    # Rounded, so that a score of 0.6 that decayed for a second is still among those from 0.6 on.
    counted = Counter(min(BINS - 1, int(round(value, 4) * BINS)) for value in values)
    return {f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}": counted[place] for place in range(BINS)}


def explanation(
    connection: Connection, walked: Expanded, ranked: Ranked, context: Context, policy: PolicyName, weight: float
) -> Explanation:
    """The parts of a hit's relevance, the events behind its usefulness, and the arithmetic to its score."""
    found = walked.found
    place = int(np.flatnonzero(found.facts == ranked.fact)[0])
    vector, words, beside = (
        None if part is None else round(float(part[place]), 6) for part in (found.vector, found.words, found.neighbours)
    )
    path = walked.paths.get(ranked.fact)
    over = [] if path is None else list(graph.names(connection, [path.entity]).values())
    signals = _signals(connection, ranked.usefulness, context, ranked.fact)
    spoken = {signal.query_id for signal in signals}
    matched = next((match for match in context.matches if match.query_id in spoken), None)
    nearest = next((each for each in context.neighbours if each.query in spoken), None)
    return Explanation(
        vector=vector,
        words=words,
        neighbours=beside,
        links=over,
        matched_context=None if matched is None else matched.text,
        context_similarity=None if matched is None else matched.similarity,
        event_count=len(signals),
        events=_events(connection, signals[-MAX_EVENTS:]),
        arithmetic=[
            _relevance_line(vector, words, beside, path, over, ranked.relevance),
            _usefulness_line(ranked.usefulness, len(signals), nearest, context.strengths or Strengths()),
            _score_line(ranked, policy, weight),
        ],
    )


def _signals(connection: Connection, usefulness: Usefulness, context: Context, fact_seq: int) -> list[ledger.Surviving]:
    if usefulness.source == "neutral":
        return []
    queries = {"context": context.query_ids, "related": [each.query for each in context.neighbours]}
    return ledger.surviving(connection, [fact_seq], queries.get(usefulness.source))


def _events(connection: Connection, signals: Sequence[ledger.Surviving]) -> list[EventRef]:
    texts = ledger.query_texts(connection, sorted({signal.query_id for signal in signals}))
    return [
        EventRef(
            event_id=signal.id,
            signal_type=signal.observation.signal_type,
            query=texts[signal.query_id],
            confidence=signal.observation.confidence,
            at=from_stored(signal.observation.at),
            author=signal.author,
        )
        for signal in signals
    ]


def _relevance_line(
    vector: float | None,
    words: float | None,
    beside: float | None,
    path: Path | None,
    over: Sequence[str],
    relevance: float,
) -> str:
    if vector is None:
        return f"relevance = words = {relevance:.4f}"
    if words is None:
        return f"relevance = vector = {relevance:.4f}"
    linked = "" if path is None else f" + links {path.added:.4f} (over {', '.join(over)})"
    return (
        f"relevance = {VECTOR:g} × vector {vector:.4f} + {1 - VECTOR:g} × words {words:.4f}"
        f" + neighbours {beside or 0:.4f}{linked} = {relevance:.4f}"
    )


def _usefulness_line(usefulness: Usefulness, signals: int, nearest: Neighbour | None, strengths: Strengths) -> str:
    if usefulness.source == "related" and nearest is not None:
        counted = f"{signals} signal{'s' * (signals != 1)} for related queries"
        nearness = f"the nearest at cosine {nearest.cosine:.2f}"
        return f"usefulness = {usefulness.value:.4f} (by {counted}, {nearness}; {_learnt(strengths)})"
    where = {
        "context": "in this context",
        "related": "for related queries",
        "global": "over all queries (none in this context)",
        "neutral": "no signals: neutral",
    }[usefulness.source]
    counted = f", {signals} signal{'s' * (signals != 1)}, decayed to now" if signals else ""
    return f"usefulness = {usefulness.value:.4f} ({where}{counted})"


def _learnt(strengths: Strengths) -> str:
    """What a store's opinions have taught of evidence, in words."""
    if not strengths.boldness:
        return "followed as far as in most stores"
    more = "more" if strengths.boldness > 0 else "less"
    return f"here they are right {more} often than in most stores, which adds {strengths.boldness:+.2f}"


def _score_line(ranked: Ranked, policy: PolicyName, weight: float) -> str:
    if weight == 0:
        return f"score = relevance = {ranked.score:.4f} (not boosted)"
    if policy == "adaptive":
        moved = ranked.score - ranked.relevance
        return f"score = {ranked.relevance:.4f} {moved:+.4f} by evidence (at most ±{weight:g}) = {ranked.score:.4f}"
    useful = ranked.usefulness.value
    return f"score = {1 - weight:g} × {ranked.relevance:.4f} + {weight:g} × {useful:.4f} = {ranked.score:.4f}"
