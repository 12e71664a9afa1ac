"""The questions of a connector's executions, by meaning: follows the store, answers from memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.search.bounded import Bounded
from heedful.search.vectors import Growable
from heedful.storage.executions import runs
from heedful.storage.executions.connectors import ConnectorState
from heedful.storage.executions.runs import CandidateRow, QuestionRow
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack

Embed = Callable[[Sequence[str]], Vectors]

PRUNE_AFTER = 256
"""Questions that are taken in before it is worth a look which of the others are still there."""

MAX_ROWS = 20_000
MAX_CHARACTERS = 4_000
"""How many executions are kept in memory, beside the vectors of all, and how long their questions and SQL may be."""


class Near(NamedTuple):
    """An execution, and the cosine of its question."""

    row: CandidateRow
    cosine: float


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
        self._audiences: Growable[np.int64] = Growable(np.empty(0, np.int64))
        """The number of the audience of each."""
        self._numbers_of_audiences: dict[str | None, int] = {}
        self._rows_of: Growable[np.int64] = Growable(np.empty(0, np.int64))
        """Which of the vectors each execution has: those with the same question share one."""
        self._vectors: Growable[np.float32] = Growable(np.empty((0, model.dimensions), np.float32))
        self._known: dict[bytes, int] = {}
        self._places: dict[int, int] = {}
        self._numbers: Bounded[str, int] = Bounded(MAX_ROWS)
        self._rows: Bounded[int, CandidateRow] = Bounded(MAX_ROWS)
        """As they are at the revision of the connector that was followed last."""

    def follow(self, connection: Connection, state: ConnectorState, embed: Embed) -> list[tuple[int, bytes]]:
        """Takes in what is new; returns vectors that had to be made, for the caller to keep."""
        with self._lock:
            rows: list[QuestionRow] = []
            if state.newest > self._last:
                rows = runs.questions_after(connection, self.connector, self._last)
            if state.revision != self._revision:
                # What becomes a candidate later has an old number.
                hits = self._drop_changed(connection, state)
                rows += runs.rated_hits(connection, self.connector, [seq for seq in hits if seq not in self._places])
            made = self._append(rows, embed) if rows else []
            self._keep(row.candidate for row in rows)
            # A view that is older than what was followed lacks executions that are there.
            if state.newest >= self._last and state.revision >= self._revision:
                self._drop_removed(connection)
            self._last = max(self._last, state.newest)
            self._revision = state.revision
            return made

    @property
    def held(self) -> int:
        """How many questions are in memory, some of executions that were removed included."""
        return len(self._seqs.rows)

    def nearest(
        self,
        connection: Connection,
        state: ConnectorState,
        vector: Vectors,
        least: float,
        limit: int,
        also: Collection[str] = (),
        audience: str | None = None,
    ) -> list[Near]:
        """The executions for exactly this audience with the most similar questions, best first, then those that are
        wanted by their ids whatever their similarity. One that was removed takes no other's place."""
        with self._lock:
            seqs, places = self._seqs.rows, self._places
            cosines = (self._vectors.rows @ vector)[self._rows_of.rows]
            if len(self._numbers_of_audiences) > 1 or audience not in self._numbers_of_audiences:
                wanted_audience = self._audiences.rows == self._numbers_of_audiences.get(audience, -1)
                cosines = np.where(wanted_audience, cosines, np.float32(-2))
        size = limit
        while True:
            order = _best(seqs, cosines, least, size)
            there = self._read(connection, state, seqs[order].tolist())
            rows = ((there.get(int(seqs[place])), place) for place in order)
            found = [(row, place) for row, place in rows if row is not None and row.audience == audience][:limit]
            if len(found) == limit or len(order) < size:
                break
            # Twice as many each time, because where some were removed there are often more.
            size *= 2
        near = {row.seq: Near(row, float(cosines[place])) for row, place in found}
        wanted = [seq for seq in self._numbers_of(connection, also) if seq not in near]
        wanted = [seq for seq in wanted if places.get(seq, len(seqs)) < len(seqs)]
        for seq, row in self._read(connection, state, wanted).items():
            if row.audience == audience:
                near[seq] = Near(row, float(cosines[places[seq]]))
        with self._lock:
            self._unchecked += len(order) - len(there)
        return list(near.values())

    def _drop_changed(self, connection: Connection, state: ConnectorState) -> Sequence[int]:
        """Forgets what may have changed since the last time; returns the numbers of hits that may be candidates now."""
        if not state.full_revision <= self._revision < state.revision:
            self._rows.clear()
            return runs.rated_hit_seqs(connection, self.connector)
        rated = runs.rated_after(connection, self.connector, self._revision)
        for each in rated:
            self._rows.pop(each.seq, None)
        return [each.seq for each in rated if each.hit == runs.RATED_HIT]

    def _read(self, connection: Connection, state: ConnectorState, seqs: Sequence[int]) -> dict[int, CandidateRow]:
        """The executions with these numbers that are there, from memory as far as they are known there."""
        with self._lock:
            known = self._rows if state.revision == self._revision else {}
            found = {seq: row for seq in seqs if (row := known.get(seq)) is not None}
        missing = [seq for seq in seqs if seq not in found]
        if missing:
            read = runs.by_seq(connection, missing)
            with self._lock:
                # Somebody else may have followed the store further meanwhile.
                if state.revision == self._revision:
                    self._keep(read.values())
            found |= read
        return found

    def _numbers_of(self, connection: Connection, ids: Collection[str]) -> list[int]:
        with self._lock:
            found = {each: self._numbers.get(each) for each in ids}
            missing = [each for each, seq in found.items() if seq is None]
        if missing:
            read = runs.seqs(connection, missing)
            with self._lock:
                for each, seq in read.items():
                    self._numbers.keep(each, seq)
            found |= read
        return [seq for seq in found.values() if seq is not None]

    def _keep(self, rows: Iterable[CandidateRow]) -> None:
        for row in rows:
            self._numbers.keep(row.id, row.seq)
            if len(row.question) + len(row.sql_query) <= MAX_CHARACTERS:
                self._rows.keep(row.seq, row)

    def _append(self, rows: Sequence[QuestionRow], embed: Embed) -> list[tuple[int, bytes]]:
        missing = [row for row in rows if row.model_id != self._model.id or row.vector is None]
        embedded = embed([row.candidate.question for row in missing]) if missing else ()
        fresh = {row.candidate.seq: pack(vector) for row, vector in zip(missing, embedded, strict=True)}
        vectors = [fresh.get(row.candidate.seq) or row.vector or b"" for row in rows]
        digests = [blake2b(each, digest_size=16).digest() for each in vectors]
        new = {digest: each for digest, each in zip(digests, vectors, strict=True) if digest not in self._known}
        self._known.update((digest, place) for place, digest in enumerate(new, start=len(self._known)))
        self._vectors.append(unpack(list(new.values()), self._model.dimensions))
        self._rows_of.append(np.array([self._known[digest] for digest in digests], np.int64))
        self._seqs.append(np.array([row.candidate.seq for row in rows], np.int64))
        numbers = self._numbers_of_audiences
        audiences = [numbers.setdefault(row.candidate.audience, len(numbers)) for row in rows]
        self._audiences.append(np.array(audiences, np.int64))
        self._places.update((row.candidate.seq, place) for place, row in enumerate(rows, start=len(self._places)))
        self._unchecked += len(rows)
        return list(fresh.items())

    def _drop_removed(self, connection: Connection) -> None:
        """Forgets executions that are no candidates any more, once half as many again were added or found missing."""
        if self._unchecked < max(PRUNE_AFTER, len(self._seqs.rows) // 3):
            return
        mask = np.isin(self._seqs.rows, np.array(runs.candidates(connection, self.connector), np.int64))
        used, rows_of = np.unique(self._rows_of.rows[mask], return_inverse=True)
        places = {int(old): place for place, old in enumerate(used)}
        self._known = {digest: places[old] for digest, old in self._known.items() if old in places}
        self._seqs, self._rows_of = Growable(self._seqs.rows[mask]), Growable(rows_of.astype(np.int64))
        self._vectors = Growable(self._vectors.rows[used])
        self._audiences = Growable(self._audiences.rows[mask])
        self._places = {seq: place for place, seq in enumerate(self._seqs.rows.tolist())}
        self._unchecked = 0


def _best(seqs: NDArray[np.int64], cosines: Vectors, least: float, size: int) -> list[int]:
    """The places of the highest cosines from `least` on, best first; among equals, the newest first."""
    found: NDArray[np.int64] = np.flatnonzero(cosines >= least)
    if len(found) > size:
        bound = np.partition(cosines[found], len(found) - size)[len(found) - size]
        found = found[cosines[found] >= bound]
    order: list[int] = found[np.lexsort((-seqs[found], -cosines[found]))].tolist()
    return order
