"""The reasons behind one hit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.index.fusion import VECTOR
from heedful.learning.policies import Ranked, Usefulness
from heedful.memory.usefulness import Context
from heedful.memory.walk import Path, Walked
from heedful.model import EventRef, Explanation, PolicyName
from heedful.storage import graph, ledger, opinions


def explanation(
    connection: Connection, walked: Walked, ranked: Ranked, context: Context, policy: PolicyName, weight: float
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
    events = _events(connection, signals)
    spoken = {signal.query_id for signal in signals}
    matched = next((match for match in context.matches if match.query_id in spoken), None)
    return Explanation(
        vector=vector,
        words=words,
        neighbours=beside,
        links=over,
        matched_context=None if matched is None else matched.text,
        context_similarity=None if matched is None else matched.similarity,
        events=events,
        arithmetic=[
            _relevance_line(vector, words, beside, path, over, ranked.relevance),
            _usefulness_line(ranked.usefulness, events),
            _score_line(ranked, policy, weight),
        ],
    )


def _signals(
    connection: Connection, usefulness: Usefulness, context: Context, fact_seq: int
) -> list[opinions.Surviving]:
    if usefulness.source == "neutral":
        return []
    queries = context.query_ids if usefulness.source == "context" else None
    return opinions.surviving(connection, [fact_seq], queries)


def _events(connection: Connection, signals: Sequence[opinions.Surviving]) -> list[EventRef]:
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


def _usefulness_line(usefulness: Usefulness, events: Sequence[EventRef]) -> str:
    where = {
        "context": "in this context",
        "global": "over all queries (none in this context)",
        "neutral": "no signals: neutral",
    }[usefulness.source]
    counted = f", {len(events)} signal{'s' * (len(events) != 1)}, decayed to now" if events else ""
    return f"usefulness = {usefulness.value:.4f} ({where}{counted})"


def _score_line(ranked: Ranked, policy: PolicyName, weight: float) -> str:
    if weight == 0:
        return f"score = relevance = {ranked.score:.4f} (not boosted)"
    if policy == "adaptive":
        moved = ranked.score - ranked.relevance
        return f"score = {ranked.relevance:.4f} {moved:+.4f} by evidence (at most ±{weight:g}) = {ranked.score:.4f}"
    useful = ranked.usefulness.value
    return f"score = {1 - weight:g} × {ranked.relevance:.4f} + {weight:g} × {useful:.4f} = {ranked.score:.4f}"
