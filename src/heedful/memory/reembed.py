"""A change of model: new vectors beside the old ones, then one switch."""

from __future__ import annotations

from heedful.embedding import Embedder
from heedful.memory.remember import TOGETHER, Progress
from heedful.storage import Database
from heedful.storage import vectors as stored
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
            waiting = stored.facts_without(connection, model, TOGETHER)
        if not waiting:
            with database.write() as connection:
                stored.alone(connection)
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
