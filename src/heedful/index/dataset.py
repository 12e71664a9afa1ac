"""The index of one dataset: follows the store's feed, answers searches, and can be saved."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.index import postings, snapshot
from heedful.index.fusion import best, fuse, lent
from heedful.index.growable import Growable
from heedful.index.neighbours import Neighbours, place
from heedful.index.searcher import POOL, Found, Reach
from heedful.index.vectors import VectorIndex
from heedful.model import Mode
from heedful.storage import facts
from heedful.storage.filters import Allowed
from heedful.storage.rows import AnyRow, batches
from heedful.storage.vectors import ModelRow, Vectors, unpack

SAVE_AFTER = 2000
"""A change of this many facts, and of a quarter of all, is worth saving."""

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


class DatasetIndex:
    """Answers from memory; `follow` brings it to the state of the store that a connection sees."""

    def __init__(self, dataset: int, model: ModelRow, file: Path | None) -> None:
        self.dataset = dataset
        self.model = model
        self._file = file
        self._lock = threading.Lock()
        self._change = 0
        self._saved_rows = 0
        self._reset()

    def __len__(self) -> int:
        with self._lock:
            return int(np.count_nonzero(self._alive.rows))

    def follow(self, connection: Connection, newest: int | None = None) -> None:
        """Takes in every change that was committed before `connection` looked, up to `newest` if that is known."""
        with self._lock:
            if newest is None:
                newest = facts.last_change(connection, self.dataset)
            if newest <= self._change:
                return
            if not self._change:
                self._load(connection, newest)
            lines = facts.changes_after(connection, self.dataset, self._change) if self._change else None
            if lines is None:
                self._reset()
                self._append(list(facts.indexable(connection, self.dataset, self.model.id)))
                self._change = newest
            else:
                self._catch_up(connection, lines)
            self._settle()

    def rebuild(self, connection: Connection) -> None:
        """Forgets what was saved, makes the index anew from the store, and saves that."""
        with self._lock:
            if self._file is not None:
                self._file.unlink(missing_ok=True)
            self._change = 0
            self._reset()
        self.follow(connection)
        self.save()

    def is_damaged(self) -> bool:
        """Whether the file that the index was saved to is there, but is not what was saved."""
        return self._file is not None and self._file.exists() and not snapshot.is_whole(self._file)

    def differences(self, connection: Connection) -> int:
        """How many facts the store and the index do not have in common."""
        stored = facts.recallable(connection, self.dataset)
        with self._lock:
            indexed = set(self._seqs.rows[self._alive.rows].tolist())
        return len(stored ^ indexed)

    def search(
        self,
        connection: Connection,
        query: str,
        vector: Vectors | None,
        mode: Mode,
        allowed: Allowed,
        also: list[int],
        pool: int,
        reach: Reach | None = None,
    ) -> Found:
        """The candidates of a query among the allowed facts, and `also` these, whatever their relevance.

        `reach` is shown the candidates and may name others, which join them if they are allowed.
        """
        passing = facts.matching(connection, allowed.where) if allowed.where else None
        with self._lock:
            permitted = self._permitted(allowed, passing)
            rows = np.empty(0, np.int64)
            words = None
            if vector is not None and mode != "lexical":
                rows, _ = self._vectors.nearest(vector, max(POOL, pool), permitted)
            if mode != "semantic":
                words = postings.coverage(self._segments, query, self._alive.rows, self._norms)
                wanted = words if allowed.everything else np.where(permitted, words, np.float32(0))
                rows = self._with_words(rows, wanted, max(POOL, pool), neighbours=mode == "hybrid")
            if also:
                rows = np.concatenate([rows, self._rows_of(also)])
            chosen = np.zeros(len(permitted), bool)
            chosen[rows] = True
            found = self._scored(np.flatnonzero(chosen & permitted), vector, mode, words)
            further = [] if reach is None else reach(found)
            if further:
                chosen[self._rows_of(further)] = True
                found = self._scored(np.flatnonzero(chosen & permitted), vector, mode, words)
            return found

    def save(self) -> None:
        """Writes the index beside its store, so that the next process need not make it."""
        if self._file is None:
            return
        with self._lock:
            self._compact()
            if not len(self._seqs.rows):
                self._file.unlink(missing_ok=True)
                return
            segment = self._segments[0]
            mean, bits = self._vectors.coded()
            about = {"change": self._change, "model": self.model.name, "last": self._last}
            arrays: snapshot.Arrays = {
                "seqs": self._seqs.rows,
                "vectors": self._vectors.all(),
                "mean": mean,
                "bits": bits,
                "terms": segment.terms,
                "offsets": segment.offsets,
                "rows": segment.rows,
                "counts": segment.counts,
                "lengths": segment.lengths,
                "places": self._neighbours.places,
                "beside": self._neighbours.table,
            }
            snapshot.save(self._file, about, arrays)
            self._saved_rows = len(self._seqs.rows)

    def worth_saving(self, *, last: bool = False) -> bool:
        """Whether enough has changed since the last save; the `last` time, for the next process, less is enough."""
        with self._lock:
            changed = len(self._seqs.rows) - self._saved_rows + int(np.count_nonzero(~self._alive.rows))
            return self._file is not None and changed >= SAVE_AFTER and (last or 4 * changed >= self._saved_rows)

    def _reset(self) -> None:
        self._seqs: Growable[np.int64] = Growable(np.empty(0, np.int64))
        self._alive: Growable[np.bool_] = Growable(np.empty(0, bool))
        self._vectors = VectorIndex(np.empty((0, self.model.dimensions), np.float32))
        self._segments: list[postings.Segment] = []
        self._lengths: Growable[np.float32] = Growable(np.empty(0, np.float32))
        self._norms = np.empty(0, np.float32)
        self._neighbours = Neighbours(np.empty(0, np.uint64))
        self._saved_rows = 0
        self._last = (0, "")

    def _load(self, connection: Connection, newest: int) -> None:
        loaded = None if self._file is None else snapshot.load(self._file)
        if loaded is None:
            return
        about, arrays = loaded
        if about["model"] != self.model.name or about["change"] > newest:
            return
        # A store that was replaced or set back has other facts under the same numbers.
        if not facts.was(connection, self.dataset, *about["last"]):
            return
        self._last = tuple(about["last"])
        self._seqs = Growable(np.array(arrays["seqs"]))
        self._alive = Growable(np.ones(len(arrays["seqs"]), bool))
        self._vectors = VectorIndex(arrays["vectors"], np.array(arrays["mean"]), arrays["bits"])
        self._segments = [
            postings.Segment(0, *(arrays[name] for name in ("terms", "offsets", "rows", "counts", "lengths")))
        ]
        self._lengths = Growable(np.array(arrays["lengths"]))
        self._neighbours = Neighbours(arrays["places"], arrays["beside"])
        self._change = about["change"]
        self._saved_rows = len(arrays["seqs"])

    def _catch_up(self, connection: Connection, lines: Sequence[AnyRow]) -> None:
        touched = {line.fact_seq: line.kind for line in lines if line.kind != facts.LINKED}
        self._bury(list(touched))
        added = [seq for seq, kind in touched.items() if kind == facts.ADDED]
        self._append(list(facts.indexable(connection, self.dataset, self.model.id, added)))
        if lines:
            self._change = lines[-1].seq

    def _append(self, rows: list[AnyRow]) -> None:
        for run in batches(rows, 50_000):
            first = len(self._seqs.rows)
            segment = postings.build([row.text for row in run], first)
            self._segments.append(segment)
            self._merge_alike()
            self._lengths.append(segment.lengths)
            self._vectors.append(unpack([row.vector for row in run], self.model.dimensions))
            self._neighbours.append(np.array([place(row.source, row.ordinal) for row in run], np.uint64))
            self._alive.append(np.ones(len(run), bool))
            self._seqs.append(np.array([row.seq for row in run], np.int64))
            self._last = (run[-1].seq, run[-1].id)

    def _merge_alike(self) -> None:
        """Keeps runs of words few: each is more than twice as large as the next.

        The oldest stays as it is: it is the largest, and may be mapped from a file.
        """
        while len(self._segments) > 2 and len(self._segments[-2].lengths) <= 2 * len(self._segments[-1].lengths):
            self._segments[-2:] = [postings.merge(self._segments[-2:])]

    def _settle(self) -> None:
        self._norms = postings.length_norms(self._lengths.rows, self._alive.rows)

    def _compact(self) -> None:
        if not self._alive.rows.all():
            kept = np.flatnonzero(self._alive.rows)
            moved = np.full(len(self._alive.rows), -1, np.int32)
            moved[kept] = np.arange(len(kept), dtype=np.int32)
            whole = postings.only(postings.merge(self._segments), moved)
            vectors = VectorIndex(self._vectors.all()[kept])
            places = self._neighbours.places[kept]
            seqs, last = self._seqs.rows[kept], self._last
            self._reset()
            self._last = last
            self._segments, self._vectors = [whole], vectors
            self._neighbours = Neighbours(places)
            self._seqs, self._alive = Growable(seqs), Growable(np.ones(len(seqs), bool))
            self._lengths = Growable(np.array(whole.lengths))
            self._settle()
        elif len(self._segments) > 1:
            self._segments = [postings.merge(self._segments)]

    def _bury(self, seqs: list[int]) -> None:
        self._alive.rows[self._rows_of(seqs)] = False

    def _rows_of(self, seqs: Collection[int]) -> Rows:
        """The living rows of facts; those the index does not have are left out."""
        wanted = np.array(sorted(seqs), np.int64)
        return np.flatnonzero(np.isin(self._seqs.rows, wanted) & self._alive.rows)

    def _permitted(self, allowed: Allowed, passing: list[int] | None) -> NDArray[np.bool_]:
        if allowed.everything:
            return self._alive.rows
        permitted = self._alive.rows.copy()
        for seqs in (passing, allowed.only):
            if seqs is not None:
                listed = np.zeros(len(permitted), bool)
                listed[self._rows_of(seqs)] = True
                permitted &= listed
        permitted[self._rows_of(allowed.without)] = False
        return permitted

    def _with_words(self, rows: Rows, words: Floats, count: int, *, neighbours: bool) -> Rows:
        found = best(words, count)
        if not neighbours:
            return found
        beside = self._neighbours.table[found].ravel()
        return np.concatenate([rows, found, beside[beside >= 0].astype(np.int64)])

    def _scored(self, rows: Rows, vector: Vectors | None, mode: Mode, words: Floats | None) -> Found:
        seqs = self._seqs.rows[rows]
        cosines = None
        if vector is not None and mode != "lexical":
            cosines = self._vectors.cosines(vector, rows)
        if words is None:
            assert cosines is not None
            return Found(seqs, cosines, cosines, None, None)
        own_words = words[rows]
        if cosines is None:
            return Found(seqs, own_words, None, own_words, None)
        near, far = lent(words, self._neighbours.table[rows])
        fused = fuse(cosines, own_words, near, far)
        return Found(seqs, fused.relevance, cosines, own_words, fused.neighbours)
