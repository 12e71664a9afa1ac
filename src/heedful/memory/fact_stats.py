"""The signals about facts, summed up, explained and in their history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, islice

import numpy as np
from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import from_stored
from heedful.errors import no_dataset
from heedful.ledger import events, opinion_reports, scores, supersessions
from heedful.ledger.adaptive_policy import Neighbour, Strengths, votes_per_fact
from heedful.ledger.events import PROVENANCE
from heedful.ledger.fold_cache import folds_of
from heedful.ledger.opinion_reports import BINS
from heedful.ledger.ranking_policy import ADAPTIVE, DOCUMENTED, Context
from heedful.ledger.scores import ALL_QUERIES
from heedful.ledger.usefulness import Opinion, Ranked, Tally, Usefulness
from heedful.memory.graph_recall import Expanded, Path
from heedful.memory.supersede import locate
from heedful.model import (
    ContextScore,
    Correction,
    EventRef,
    Explanation,
    FactHistory,
    FactStats,
    MixedFact,
    PolicyName,
    RankedFact,
    ScorePoint,
    UsefulnessStats,
)
from heedful.search.relevance import VECTOR
from heedful.storage import facts, graph, scopes
from heedful.storage.rows import AnyRow, to_model
from heedful.text import counted
from heedful.workspace import Workspace

MAX_RANKED = 10  # How many facts are named as the most and the least useful.
HELPFUL_FROM, HARMFUL_TO = 0.6, 0.4
"""A fact helps in a context from the first usefulness on, and hurts up to the second."""
NO_DATASET = -1
"""The number that stands for the dataset of a project without data."""
MAX_EVENTS = 100  # Signals that an explanation lists.
MAX_QUERIES = 100  # Queries of a fact whose contexts are shown.
MAX_CHARACTERS = 20_000  # The same in characters, unless a single query has more.


def fact_stats(workspace: Workspace, fact_id: str) -> FactStats:
    """The score of one fact now, its signals, and its scores by context."""
    checks.identifier("fact_id", fact_id)
    with workspace.read() as connection:
        seq, dataset = locate(workspace, connection, fact_id)
        now = workspace.now()
        tally = scores.read(connection, [seq], [ALL_QUERIES]).get((seq, ALL_QUERIES), Tally())
        return FactStats(
            fact_id=fact_id,
            text=facts.by_seq(connection, [seq])[seq].text,
            dataset=scopes.dataset_names(connection)[dataset],
            overall_usefulness=tally.at(now),
            signal_count=tally.count,
            signal_breakdown=tally.breakdown,
            last_signal_at=None if tally.last_at is None else from_stored(tally.last_at),
            query_count=scores.count_queries(connection, seq),
            contexts=_contexts(workspace, connection, dataset, seq, now),
        )


def usefulness_stats(workspace: Workspace, dataset: str) -> UsefulnessStats:
    """Totals over the active facts, the distribution of their scores, those at both ends, and those that help in one
    context and hurt in another."""
    checks.name("dataset", dataset)
    now = workspace.now()
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        if number is None:
            if names := list(scopes.dataset_names(connection).values()):
                raise no_dataset(workspace.project, dataset, names)
            number = NO_DATASET
        bins, mean, breakdown = opinion_reports.usefulness(connection, number, now)
        best, worst = (opinion_reports.ranked(connection, number, now, MAX_RANKED, best=best) for best in (True, False))
        divided = opinion_reports.mixed(connection, number, now, HARMFUL_TO, HELPFUL_FROM, MAX_RANKED * 2)
        total, queries = facts.count(connection, number, now), scores.signalled_queries(connection, number, now)
    mixed = [fact for fact_id in divided if (fact := _mixed(workspace, fact_id)) is not None]
    return UsefulnessStats(
        dataset=dataset,
        total_facts=total,
        facts_with_signals=bins.total(),
        total_signals=breakdown.total(),
        signal_breakdown=dict(breakdown),
        average_overall_usefulness=mean,
        distribution={f"{bin / BINS:.1f}-{(bin + 1) / BINS:.1f}": bins[bin] for bin in range(BINS)},
        most_useful=[_ranked(row) for row in best],
        least_useful=[_ranked(row) for row in worst],
        mixed=mixed[:MAX_RANKED],
        queries=queries,
    )


def _mixed(workspace: Workspace, fact_id: str) -> MixedFact | None:
    """A fact about which queries disagree, if its contexts do, too."""
    stats = fact_stats(workspace, fact_id)
    ordered = sorted(stats.contexts, key=lambda context: context.score)
    if len(ordered) < 2 or ordered[0].score > HARMFUL_TO or ordered[-1].score < HELPFUL_FROM:
        return None
    return to_model(MixedFact, stats, fact_id=fact_id, helps=ordered[-1], hurts=ordered[0])


def _ranked(row: AnyRow) -> RankedFact:
    return RankedFact(fact_id=row.id, text=row.text, overall_usefulness=row.score, signal_count=row.signals)


def _contexts(workspace: Workspace, connection: Connection, dataset: int, seq: int, now: int) -> list[ContextScore]:
    """The contexts of one fact by its queries with the most signals, those with the most first."""
    model = workspace.model(connection)
    strongest = scores.strongest(connection, seq, MAX_QUERIES)
    fitting = sum(size <= MAX_CHARACTERS for size in accumulate(map(len, strongest.values())))
    strongest = dict(islice(strongest.items(), max(1, fitting)))
    if not strongest or model is None:
        return []
    index = folds_of(workspace).contexts(connection, dataset, model, events.last_event(connection, dataset))
    signals = events.surviving(connection, [seq], list(strongest))
    groups = index.grouped({signal.query: strongest[signal.query] for signal in signals})
    place_of = {query: place for place, group in enumerate(groups) for query in group}
    folded: list[list[Opinion]] = [[] for _ in groups]
    for signal in signals:
        folded[place_of[signal.query]].append(signal)
    contexts = []
    for group, about_group in zip(groups, folded, strict=True):
        tally, texts = DOCUMENTED.fold(about_group), [strongest[query] for query in group]
        assert tally.last_at is not None
        contexts.append(
            ContextScore(
                query=texts[0],
                queries=texts,
                score=tally.at(now),
                signal_count=tally.count,
                signal_breakdown=tally.breakdown,
                last_signal_at=from_stored(tally.last_at),
            )
        )
    return sorted(contexts, key=lambda context: -context.signal_count)


def explanation(
    connection: Connection, walked: Expanded, ranked: Ranked, context: Context, policy: PolicyName, weight: float
) -> Explanation:
    """The parts of a hit's relevance, the events behind its usefulness, and the arithmetic to its score."""
    found = walked.found
    place = int(np.flatnonzero(found.facts == ranked.fact)[0])
    parts = (found.vector, found.words, found.neighbours)
    vector, words, neighbours = (None if part is None else round(float(part[place]), 6) for part in parts)
    path = walked.paths.get(ranked.fact)
    over = [] if path is None else list(graph.names(connection, [path.entity]).values())
    signals: list[Opinion] = []
    if ranked.usefulness.source != "neutral":
        queries = {"context": context.query_ids, "related": [near.query for near in context.neighbours]}
        signals = events.surviving(connection, [ranked.fact], queries.get(ranked.usefulness.source))
    spoken = {signal.query for signal in signals}
    matched = next((match for match in context.matches if match.query_id in spoken), None)
    nearest = next((near for near in context.neighbours if near.query in spoken), None)
    return Explanation(
        vector=vector,
        words=words,
        neighbours=neighbours,
        links=over,
        matched_context=None if matched is None else matched.text,
        context_similarity=None if matched is None else matched.similarity,
        event_count=len(signals),
        events=_events(connection, signals[-MAX_EVENTS:]),
        arithmetic=[
            _relevance_line(vector, words, neighbours, path, over, ranked.relevance),
            _usefulness_line(ranked.usefulness, signals, nearest, context),
            _score_line(ranked, policy, weight),
        ],
    )


def _events(connection: Connection, signals: Sequence[Opinion]) -> list[EventRef]:
    texts = events.query_texts(connection, sorted({signal.query for signal in signals}))
    return [to_model(EventRef, signal, event_id=signal.id, query=texts[signal.query]) for signal in signals]


def _relevance_line(
    vector: float | None,
    words: float | None,
    neighbours: float | None,
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
        f" + neighbours {neighbours or 0:.4f}{linked} = {relevance:.4f}"
    )


def _usefulness_line(
    usefulness: Usefulness, signals: Sequence[Opinion], nearest: Neighbour | None, context: Context
) -> str:
    strengths = context.strengths or Strengths()
    if usefulness.source == "related" and nearest is not None:
        evidence = f"{counted(len(signals), 'signal')} for related queries"
        learnt = "followed as far as in most stores"
        if strengths.boldness:
            more = "more" if strengths.boldness > 0 else "less"
            learnt = f"here they are right {more} often than in most stores, which adds {strengths.boldness:+.2f}"
        nearness = f"the nearest at cosine {nearest.cosine:.2f}"
        return f"usefulness = {usefulness.value:.4f} (by {evidence}, {nearness}; {learnt})"
    where = {
        "context": "in this context",
        "related": "for related queries",
        "global": "over all queries (none in this context)",
        "neutral": "no signals: neutral",
    }[usefulness.source]
    evidence = f", {counted(len(signals), 'signal')}{_discount(signals, context)}, decayed to now" if signals else ""
    return f"usefulness = {usefulness.value:.4f} ({where}{evidence})"


def _discount(signals: Sequence[Opinion], context: Context) -> str:
    """How far the adaptive policy counts the signals that were given for the question in other words."""
    similarity = {match.query_id: match.similarity for match in context.matches} if context.strengths else {}
    by_query: dict[int, list[Opinion]] = defaultdict(list)
    for signal in signals:
        by_query[signal.query].append(signal)
    shares: list[float] = []
    for query, own in by_query.items():
        net = sum(votes.net for votes in votes_per_fact(own).values())
        shares += [ADAPTIVE.shares(similarity.get(query, 1.0))[net < 0]] * len(own)
    reduced = [f"{share:.0%}" for share in sorted(shares) if share < 0.995]
    if not reduced:
        return ""
    some = "" if len(reduced) == len(signals) else f"{len(reduced)} of them "
    wordings = "another wording" if len(reduced) == 1 else "other wordings"
    return f", {some}for {wordings}, counting {' to '.join(dict.fromkeys([reduced[0], reduced[-1]]))}"


def _score_line(ranked: Ranked, policy: PolicyName, weight: float) -> str:
    if weight == 0:
        return f"score = relevance = {ranked.score:.4f} (not boosted)"
    if policy == "adaptive":
        moved = ranked.score - ranked.relevance
        return f"score = {ranked.relevance:.4f} {moved:+.4f} by evidence (at most ±{weight:g}) = {ranked.score:.4f}"
    useful = ranked.usefulness.value
    return f"score = {1 - weight:g} × {ranked.relevance:.4f} + {weight:g} × {useful:.4f} = {ranked.score:.4f}"


MAX_POINTS = 1000  # Signals that the history of a fact lists, the newest.


def fact_history(workspace: Workspace, fact_id: str) -> FactHistory:
    """The score after each of the newest active signals, as the documented policy folds them, and the supersessions."""
    checks.identifier("fact_id", fact_id)
    with workspace.read() as connection:
        seq, _ = locate(workspace, connection, fact_id)
        signals = events.surviving(connection, [seq])
        shown = signals[-MAX_POINTS:]
        texts = events.query_texts(connection, sorted({signal.query for signal in shown}))
        row = facts.get_fact(connection, seq)
        # Its own metadata says what it corrected; the ledger has no index to look for it.
        corrected = row.metadata.get(PROVENANCE)
        about = [fact_id] if not isinstance(corrected, str) else [fact_id, corrected]
        corrections = [
            to_model(Correction, event, event_id=event.id, fact_id=event.target_id, superseded_by=event.value)
            for event in supersessions.supersessions(connection, about)
        ]
        is_superseded = bool(supersessions.superseded(connection, [fact_id]))
    points = []
    tally = DOCUMENTED.fold(signals[: -len(shown)])
    for signal in shown:
        tally = DOCUMENTED.fold([signal], tally)
        named = {"event_id": signal.id, "query": texts[signal.query]}
        points.append(to_model(ScorePoint, signal, overall_usefulness=tally.score, **named))
    return to_model(
        FactHistory,
        row,
        fact_id=fact_id,
        event_count=len(signals),
        points=points,
        overall_usefulness=tally.at(workspace.now()),
        superseded_by=next((made for made in corrections if is_superseded and made.fact_id == fact_id), None),
        supersedes=next((made for made in corrections if made.superseded_by == fact_id), None),
    )
