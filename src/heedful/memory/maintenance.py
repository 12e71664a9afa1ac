"""Rebuilding what is derived: vectors for another model, and the folds of the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from heedful.memory.remember import BATCH_SIZE
from heedful.protocols.engine import Progress
from heedful.providers.embedding import Embedder
from heedful.ranking.policies import Tally
from heedful.storage import Database, facts, ledger, link_scores, scores
from heedful.storage import vectors as stored
from heedful.storage.rows import batches
from heedful.storage.scores import Key
from heedful.storage.vectors import pack


def reembed(database: Database, embedder: Embedder, progress: Progress | None) -> int:
    """Gives every fact of the store a vector of `embedder`; returns how many were made.

    It may be stopped and started again: what is done stays done, and the old model serves until the end.
    """
    with database.write() as connection:
        model = stored.ensure_model(connection, embedder.name, embedder.dimensions)
        total = stored.count_without(connection, model)
    done = 0
    while True:
        with database.read() as connection:
            waiting = stored.facts_without(connection, model, BATCH_SIZE)
        if not waiting:
            with database.write() as connection:
                stored.lock_writes(connection)
                if not stored.facts_without(connection, model, 1):
                    stored.activate(connection, model)
                    return done
            continue
        made = embedder.embed([text for _, text in waiting])
        with database.write() as connection:
            stored.store(connection, model, [(seq, pack(each)) for (seq, _), each in zip(waiting, made, strict=True)])
        done += len(waiting)
        if progress is not None:
            progress(done, max(done, total))


CLOSE = 1e-9
"""Scores that differ by less are the same score."""

FOLD_BATCH_SIZE = 2000
"""Facts that are folded at once."""


def compare_scores(connection: Connection, dataset: int) -> Iterator[tuple[int, list[int]]]:
    """The scores of the facts of a dataset, some at a time: how many were compared, and which facts have wrong ones."""
    for run in batches([seq for seq, _ in facts.of_dataset(connection, dataset)], FOLD_BATCH_SIZE):
        kept = scores.all_of(connection, run)
        folded = scores.folded(ledger.surviving(connection, run))
        yield len(kept.keys() | folded.keys()), sorted({fact for fact, _ in _differences(kept, folded)})


def wrong_facts(connection: Connection, dataset: int) -> list[int]:
    """The facts of a dataset whose scores are not the fold of the ledger."""
    return [fact for _, wrong in compare_scores(connection, dataset) for fact in wrong]


def compare_links(connection: Connection, dataset: int) -> tuple[int, set[Key]]:
    """How many links of a dataset have a score, and which of these are not the fold of the ledger."""
    kept, folded = link_scores.rated_in(connection, dataset), link_scores.folded_in(connection, dataset)
    return len(kept.keys() | folded.keys()), _differences(kept, folded)


def refold_links(connection: Connection, wrong: set[Key]) -> None:
    """Recomputes the scores of links."""
    ids = facts.ids(connection, sorted({fact for fact, _ in wrong}))
    link_scores.refold(connection, {key: link_scores.target(ids[key[0]], key[1]) for key in wrong})


def refold(database: Database, connection: Connection, dataset: int) -> None:
    """Recomputes all scores of a dataset."""
    seqs = [seq for seq, _ in facts.of_dataset(connection, dataset)]
    scores.refold(database, connection, dict.fromkeys(seqs, dataset), seqs)
    refold_links(connection, compare_links(connection, dataset)[1])


def _differences(kept: dict[Key, Tally], folded: dict[Key, Tally]) -> set[Key]:
    differing = kept.keys() ^ folded.keys()
    for key in kept.keys() & folded.keys():
        one, other = kept[key], folded[key]
        if (one.last_at, one.breakdown) != (other.last_at, other.breakdown) or abs(one.score - other.score) > CLOSE:
            differing.add(key)
    return differing
