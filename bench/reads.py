"""How long a recall takes, beside embedding alone and beside the peers, and how much of the exact answer it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.measure import Spent, in_turns, timed
from bench.peers import TOP, Peer
from bench.vectors import NOTHING, Served, Vectors, exact_top, share_found
from heedful.engine import Heedful
from heedful.model import Mode
from heedful.providers.embedding import Embedder

WARM = 20


@dataclass(slots=True)
class Recalled:
    """Every recall of one kind: all it took, what it took after the model, and the facts found."""

    whole: list[Spent] = field(default_factory=list)
    after: list[Spent] = field(default_factory=list)
    hits: dict[int, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Reads:
    """All that was measured in turns."""

    embedding: list[Spent]
    recalls: dict[str, Recalled]
    peers: dict[str, list[Spent]]
    exact: list[Spent]
    found_by: dict[str, float]
    """The share of the exact top 10 that each vector search finds."""


def recalling(
    store: Heedful, model: Served, queries: Sequence[str], kept: Recalled, mode: Mode, boost: bool = False
) -> Callable[[int], Spent]:
    """A task that recalls one of the queries and notes what that took."""

    def task(place: int) -> Spent:
        model.spent = NOTHING
        spent, found = timed(lambda: store.recall(queries[place], mode=mode, boost_by_usefulness=boost))
        kept.whole.append(spent)
        kept.after.append(spent.less(model.spent))
        kept.hits[place] = [hit.fact_id for hit in found]
        return spent

    return task


def before_signals(
    store: Heedful,
    served: Served,
    model: Embedder,
    queries: Sequence[str],
    query_vectors: Vectors,
    fact_ids: Sequence[str],
    fact_vectors: Vectors,
    peers: Sequence[Peer],
) -> Reads:
    """Recalls in a store that nobody has given signals to, in turns with the peers."""
    places = list(range(len(queries)))
    kinds: dict[str, Mode] = {
        "hybrid": "hybrid",
        "hybrid, asked before": "hybrid",
        "semantic": "semantic",
        "lexical": "lexical",
    }
    recalls = {name: Recalled() for name in kinds}
    result: dict[str, list[list[int]]] = {f"{peer.name}, {peer.setting}": [] for peer in peers}

    def searching(peer: Peer) -> Callable[[int], Spent]:
        kept = result[f"{peer.name}, {peer.setting}"]

        def task(place: int) -> Spent:
            spent, rows = timed(lambda: peer.search(query_vectors[place]))
            kept.append(rows)
            return spent

        return task

    tasks: dict[str, Callable[[int], Spent]] = {
        "embedding": lambda place: timed(lambda: model.embed([queries[place]]))[0]
    }
    tasks |= {name: recalling(store, served, queries, recalls[name], mode) for name, mode in kinds.items()}
    tasks |= {f"{peer.name}, {peer.setting}": searching(peer) for peer in peers}
    tasks["exact"] = lambda place: timed(lambda: np.argpartition(fact_vectors @ query_vectors[place], -TOP))[0]
    for name in kinds:
        for place in range(WARM):
            store.recall(f"{queries[place]} {name}", mode=kinds[name])
    for peer in peers:
        for place in range(WARM):
            peer.search(query_vectors[place])
    spent = in_turns(tasks, places)
    row_of = {fact_id: row for row, fact_id in enumerate(fact_ids)}
    ours = [[row_of[fact] for fact in recalls["semantic"].hits[place]] for place in places]
    _, least = exact_top(fact_vectors, query_vectors[places], TOP)
    found_by = {
        name: share_found(fact_vectors, query_vectors[places], least, rows)
        for name, rows in {"heedful": ours, **result}.items()
    }
    return Reads(spent["embedding"], recalls, {name: spent[name] for name in result}, spent["exact"], found_by)


def with_signals(store: Heedful, served: Served, queries: Sequence[str]) -> dict[str, Recalled]:
    """Recalls in a store with signals, without and with their boost."""
    recalls = {"hybrid, signals in the store": Recalled(), "hybrid, boosted": Recalled()}
    tasks = {
        name: recalling(store, served, queries, kept, "hybrid", boost=name.endswith("boosted"))
        for name, kept in recalls.items()
    }
    for place in range(WARM):
        store.recall(f"{queries[place]} again", boost_by_usefulness=True)
    in_turns(tasks, list(range(len(queries))))
    return recalls
