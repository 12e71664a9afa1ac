"""The questions of a connector's executions, by meaning: follows the store, answers from memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.search.vectors import Growable
from heedful.storage.executions import runs
from heedful.storage.executions.connectors import revision
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack

Embed = Callable[[Sequence[str]], Vectors]

PRUNE_AFTER = 256
"""Questions that are taken in before it is worth a look which of the others are still there."""


class QuestionIndex:
    """Executions that have a question, with the vectors of their questions."""

    def __init__(self, connector: str, model: ModelRow) -> None:
        self.connector = connector
        self._model = model
        self._lock = threading.Lock()
        self._last = 0
        self._revision = -1
        self._unchecked = 0
        self._seqs: Growable[np.int64] = Growable(np.empty(0, np.int64))
        self._vectors: Growable[np.float32] = Growable(np.empty((0, model.dimensions), np.float32))

    def follow(self, connection: Connection, embed: Embed) -> list[tuple[int, bytes]]:
        """Takes in what is new; returns vectors that had to be made, for the caller to keep."""
        with self._lock:
            rows: list[AnyRow] = []
            newest, now = runs.newest(connection, self.connector), revision(connection, self.connector)
            if newest > self._last:
                rows = runs.questions_after(connection, self.connector, self._last)
            if now != self._revision:
                # What becomes a candidate later has an old number.
                known = set(self._seqs.rows.tolist())
                rows += runs.rated_hits(connection, self.connector, known | {row.seq for row in rows})
            made = self._append(rows, embed) if rows else []
            # A view that is older than what was followed lacks executions that are there.
            if newest >= self._last and now >= self._revision:
                self._drop_removed(connection)
            self._last = max(self._last, newest)
            self._revision = now
            return made

    @property
    def held(self) -> int:
        """How many questions are in memory, some of executions that were removed included."""
        return len(self._seqs.rows)

    def nearest(
        self, connection: Connection, vector: Vectors, least: float, limit: int
    ) -> tuple[list[tuple[int, float]], dict[int, AnyRow]]:
        """(execution number, cosine) of the most similar questions, best first, and the rows of their executions. One
        that was removed takes no other's place."""
        with self._lock:
            seqs, cosines = self._seqs.rows, self._vectors.rows @ vector
        found: NDArray[np.int64] = np.flatnonzero(cosines >= least)
        order = found[np.lexsort((-seqs[found], -cosines[found]))].tolist()
        near: list[tuple[int, float]] = []
        rows: dict[int, AnyRow] = {}
        removed, size = 0, limit
        while order and len(near) < limit:
            some = [(int(seqs[place]), float(cosines[place])) for place in order[:size]]
            # Twice as many each time, because where some were removed there are often more.
            order, size = order[size:], size * 2
            there = runs.by_seq(connection, [seq for seq, _ in some])
            removed += len(some) - len(there)
            near = [*near, *(each for each in some if each[0] in there)][:limit]
            rows |= {seq: there[seq] for seq, _ in near if seq in there}
        with self._lock:
            self._unchecked += removed
        return near, rows

    def similarities(self, vector: Vectors, seqs: Sequence[int]) -> list[tuple[int, float]]:
        """The same of these executions, as far as they are known."""
        with self._lock:
            places = np.flatnonzero(np.isin(self._seqs.rows, np.array(seqs, np.int64)))
            cosines = self._vectors.rows[places] @ vector
            return list(zip(self._seqs.rows[places].tolist(), cosines.tolist(), strict=True))

    def _append(self, rows: Sequence[AnyRow], embed: Embed) -> list[tuple[int, bytes]]:
        missing = [row for row in rows if row.model_id != self._model.id or row.vector is None]
        fresh = {
            row.seq: pack(vector) for row, vector in zip(missing, embed([row.question for row in missing]), strict=True)
        }
        self._vectors.append(unpack([fresh.get(row.seq, row.vector) for row in rows], self._model.dimensions))
        self._seqs.append(np.array([row.seq for row in rows], np.int64))
        self._unchecked += len(rows)
        return list(fresh.items())

    def _drop_removed(self, connection: Connection) -> None:
        """Forgets executions that are no candidates any more, once half as many again were added or found missing."""
        if self._unchecked < max(PRUNE_AFTER, len(self._seqs.rows) // 3):
            return
        mask = np.isin(self._seqs.rows, np.array(runs.candidates(connection, self.connector), np.int64))
        self._seqs, self._vectors = Growable(self._seqs.rows[mask]), Growable(self._vectors.rows[mask])
        self._unchecked = 0
