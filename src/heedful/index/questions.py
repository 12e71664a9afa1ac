"""The questions of a connector's executions, by meaning: follows the store, answers from memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.index.growable import Growable
from heedful.storage.executions import runs
from heedful.storage.executions.revisions import revision
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack

Embed = Callable[[Sequence[str]], Vectors]


class QuestionIndex:
    """Executions that have a question, with the vectors of their questions."""

    def __init__(self, connector: str, model: ModelRow) -> None:
        self.connector = connector
        self._model = model
        self._lock = threading.Lock()
        self._last = 0
        self._revision = -1
        self._seqs: Growable[np.int64] = Growable(np.empty(0, np.int64))
        self._vectors: Growable[np.float32] = Growable(np.empty((0, model.dimensions), np.float32))

    def follow(self, connection: Connection, embed: Embed) -> list[tuple[int, bytes]]:
        """Takes in what is new; returns vectors that had to be made, for the caller to keep."""
        with self._lock:
            rows: list[AnyRow] = []
            newest, now = runs.newest(connection, self.connector), revision(connection, self.connector)
            if newest > self._last:
                rows = runs.asked_after(connection, self.connector, self._last)
            if now != self._revision:
                # What becomes a candidate later has an old number.
                known = set(self._seqs.rows.tolist())
                rows += runs.rated_hits(connection, self.connector, known | {row.seq for row in rows})
            made = self._append(rows, embed) if rows else []
            self._last = max(self._last, newest)
            self._revision = now
            return made

    def nearest(self, vector: Vectors, least: float, limit: int) -> list[tuple[int, float]]:
        """(execution number, cosine) of the most similar questions, best first."""
        with self._lock:
            seqs, cosines = self._seqs.rows, self._vectors.rows @ vector
        found: NDArray[np.int64] = np.flatnonzero(cosines >= least)
        order = found[np.lexsort((-seqs[found], -cosines[found]))][:limit]
        return [(int(seqs[place]), float(cosines[place])) for place in order]

    def similarities(self, vector: Vectors, wanted: Sequence[int]) -> list[tuple[int, float]]:
        """The same of these executions, as far as they are known."""
        with self._lock:
            places = np.flatnonzero(np.isin(self._seqs.rows, np.array(wanted, np.int64)))
            cosines = self._vectors.rows[places] @ vector
            return list(zip(self._seqs.rows[places].tolist(), cosines.tolist(), strict=True))

    def _append(self, rows: Sequence[AnyRow], embed: Embed) -> list[tuple[int, bytes]]:
        missing = [row for row in rows if row.model_id != self._model.id or row.vector is None]
        fresh = {
            row.seq: pack(vector) for row, vector in zip(missing, embed([row.question for row in missing]), strict=True)
        }
        self._vectors.append(unpack([fresh.get(row.seq, row.vector) for row in rows], self._model.dimensions))
        self._seqs.append(np.array([row.seq for row in rows], np.int64))
        return list(fresh.items())
