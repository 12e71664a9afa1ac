"""The index of one dataset: follows the store's feed, answers searches, and can be saved."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.search import relevance
from heedful.search.relevance import (
    Bools,
    Distinct,
    Floats,
    Found,
    Keys,
    Neighbours,
    Rows,
    Search,
    borrowed_scores,
    source_position,
)
from heedful.search.snapshot import Arrays, Snapshot
from heedful.search.vector_index import EXACT_BELOW, Growable, ReadLater, VectorIndex
from heedful.storage import facts
from heedful.storage.filters import Allowed
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ModelRow, Vectors, of_facts, read_rows, unpack

SAVE_AFTER = 2000  # A change of this many facts, and of a quarter of all, is worth saving.
BATCH_SIZE = 2000  # Facts that are read and taken in at once.

SEGMENT_ARRAYS = ("terms", "offsets", "rows", "counts", "lengths")


class DatasetIndex:
    """Answers from memory; `follow` brings it to the state of the store that a connection sees."""

    _held: RowTable
    _change: int
    _unsaved: int
    _last: tuple[int, str]

    def __init__(self, dataset: int, model: ModelRow, snapshot: Snapshot) -> None:
        self.dataset = dataset
        self.model = model
        self._snapshot = snapshot
        self._is_snapshot_foreign = False
        """Whether the saved index is of another store, or of a later state than this one."""
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._reset()

    def __len__(self) -> int:
        return self._held.living

    @property
    def held(self) -> int:
        """How many rows are in memory, those of facts that were replaced or removed included."""
        return len(self._held.seqs)

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
                self._build(connection)
                self._change = newest
            else:
                self._catch_up(connection, lines)
            self._held.settle()
            # It would copy all vectors.
            is_due = self._held.worth_compacting() and not self.has_unread_vectors
            compaction = self._held.compaction() if is_due else None
        if compaction is not None:
            self._compact(compaction)

    def rebuild(self, connection: Connection) -> None:
        """Drops the saved index, rebuilds the index from the store, and saves that."""
        with self._lock:
            self._snapshot.remove()
            newest = facts.last_change(connection, self.dataset)
            self._build(connection)
            self._change = newest
            self._held.settle()
        self.save()

    def is_damaged(self) -> bool:
        """Whether there is a saved index, but not as it was saved."""
        return self._snapshot.is_damaged()

    def differences(self, connection: Connection) -> int:
        """How many facts the store and the index do not have in common."""
        stored = facts.recallable(connection, self.dataset)
        with self._lock:
            indexed = set(self._held.seqs[self._held.live].tolist())
        return len(stored ^ indexed)

    def search(self, connection: Connection, search: Search) -> Found:
        """The candidates of a query among the allowed facts; `follow` before, in the same transaction."""
        passing = facts.matching(connection, search.allowed.where) if search.allowed.where else None
        distinct = search.distinct
        with self._lock:
            held = self._held
            permitted = self._permitted(search.allowed, passing)
            words = relevance.coverage(held.segments, search.query, held.live, held.norms) if search.by_words else None
            copies: dict[int, relevance.Copies] = {}
            if distinct is not None and distinct.shown:
                permitted = permitted & ~np.isin(held.keys, held.keys[held.rows_of(distinct.shown)])
            rows = self._candidates(connection, search, words, permitted)
            if distinct is not None and len(set(held.keys[rows].tolist())) < len(rows):
                # Hundreds of copies may hide all others: the rows that are searched again have none.
                permitted, copies = self._without_copies(permitted, words, distinct, search.also)
                rows = self._candidates(connection, search, words, permitted)
            found = self._scored(connection, search, words, rows)
            further = [] if search.expand is None else search.expand(found)
            if further:
                joining = held.rows_of(further)
                rows = np.union1d(rows, joining[permitted[joining]])
                if distinct is not None:
                    rows = rows[np.sort(np.unique(held.keys[rows], return_index=True)[1])]
                found = self._scored(connection, search, words, rows)
            return replace(found, copies=copies) if copies else found

    def _without_copies(
        self, permitted: Bools, words: Floats | None, distinct: Distinct, also: Sequence[int]
    ) -> tuple[Bools, dict[int, relevance.Copies]]:
        held = self._held
        rows = np.flatnonzero(permitted)
        lent = np.zeros(len(rows), np.float32)
        if words is not None:
            _, lent = relevance.fuse(lent, lent, *borrowed_scores(words, held.neighbours.table[rows]))
        places, copies = relevance.one_of_each(held.seqs[rows], held.keys[rows], lent, distinct.judged(), also)
        chosen = np.zeros(len(permitted), bool)
        chosen[rows[places]] = True
        return chosen, copies

    def _candidates(self, connection: Connection, search: Search, words: Floats | None, permitted: Bools) -> Rows:
        """The permitted rows that a query should score."""
        held = self._held
        chosen = np.zeros(len(permitted), bool)
        if search.by_meaning is not None:
            if not held.vectors.is_encoded:
                self._read(connection)
            near = held.vectors.candidates(search.by_meaning, search.wanted, permitted)
            self._read(connection, near)
            chosen[held.vectors.closest(search.by_meaning, search.wanted, near)] = True
        if words is not None:
            permitted_words = words if permitted.all() else np.where(permitted, words, np.float32(0))
            worded = relevance.best(permitted_words, search.wanted)
            chosen[worded] = True
            if search.mode == "hybrid":
                beside = held.neighbours.table[worded]
                chosen[beside[beside >= 0]] = True
        if search.also:
            chosen[held.rows_of(search.also)] = True
        return np.flatnonzero(chosen & permitted)

    @property
    def has_unread_vectors(self) -> bool:
        """Whether vectors are in the database only. A search reads those that it needs."""
        later = self._held.vectors.later
        return later is not None and later.is_unfinished

    def read_vectors(self, connection: Connection) -> None:
        """Reads some of those that no search has needed yet. Searches go on meanwhile."""
        with self._lock:
            later, seqs = self._held.vectors.later, self._held.seqs
        if later is not None:
            rows = later.unread()[:BATCH_SIZE]
            found = read_rows(connection, self.model, seqs[rows])
            with self._lock:
                later.read(rows, found)

    def vectors_of(self, connection: Connection, seqs: Sequence[int]) -> dict[int, Vectors]:
        """The vectors of facts, by number; those of facts that can't be recalled are in the database only."""
        with self._lock:
            rows = self._held.rows_of(seqs)
            self._read(connection, rows)
            found = dict(zip(self._held.seqs[rows].tolist(), self._held.vectors.taken(rows), strict=True))
        others = sorted(set(seqs) - found.keys())
        return found | (of_facts(connection, self.model, others) if others else {})

    def _read(self, connection: Connection, rows: Rows | None = None) -> None:
        """Reads the vectors of these rows, or of all, that are not in memory."""
        later = self._held.vectors.later
        if later is not None and len(unread := later.unread(rows)):
            later.read(unread, read_rows(connection, self.model, self._held.seqs[unread]))

    def save(self) -> None:
        """Keeps the index for the next process, once all vectors are read. Searches go on meanwhile."""
        with self._saving:
            with self._lock:
                if self.has_unread_vectors:
                    return
                arrays = self._arrays()
                about = {"change": self._change, "model": self.model.name, "last": self._last}
                unsaved, self._unsaved = self._unsaved, 0
            try:
                if arrays is None:
                    self._snapshot.remove()
                else:
                    self._snapshot.save(about, arrays, replace=self._is_snapshot_foreign)
                self._is_snapshot_foreign = False
            except BaseException:
                with self._lock:
                    self._unsaved += unsaved
                raise

    def _arrays(self) -> Arrays | None:
        """The arrays to save, none of which is changed in place; None if there are no facts."""
        if self._held.dead or len(self._held.segments) > 1:
            compaction = self._held.compaction()
            self._held = compaction.finish(compaction.build())
        held = self._held
        if not held.living:
            return None
        mean, bits = held.vectors.coded()
        return {
            "seqs": held.seqs,
            **({"vectors": held.vectors.all()} if self._snapshot.has_vectors else {}),
            "mean": mean,
            "bits": bits,
            "total": np.array(held.vectors.total),
            **{name: getattr(held.segments[0], name) for name in SEGMENT_ARRAYS},
            "keys": held.keys,
            "places": held.neighbours.places,
            "beside": np.array(held.neighbours.table),
        }

    def worth_saving(self, *, last: bool = False) -> bool:
        """Whether enough has changed since the last save; the `last` time, for the next process, less is enough."""
        return self._unsaved >= SAVE_AFTER and (last or 4 * self._unsaved >= len(self))

    def _reset(self) -> None:
        self._held = RowTable.empty(self.model.dimensions)
        self._change = 0
        self._unsaved = 0
        self._last = (0, "")

    def _load(self, connection: Connection, newest: int) -> None:
        loaded = self._snapshot.load(connection)
        if loaded is None:
            return
        about, arrays = loaded
        # A store that was replaced or set back has other facts under the same numbers.
        self._is_snapshot_foreign = (
            about["model"] != self.model.name
            or about["change"] > newest
            or not facts.is_same_fact(connection, self.dataset, *about["last"])
        )
        if self._is_snapshot_foreign:
            return
        self._last = tuple(about["last"])
        vectors = arrays.get("vectors", ReadLater(len(arrays["seqs"]), self.model.dimensions))
        self._held = RowTable(
            np.array(arrays["seqs"]),
            VectorIndex(vectors, np.array(arrays["mean"]), arrays["bits"], arrays["total"]),
            [relevance.Segment(0, *(arrays[name] for name in SEGMENT_ARRAYS))],
            np.array(arrays["lengths"]),
            np.array(arrays["keys"]),
            Neighbours(arrays["places"], arrays["beside"]),
        )
        self._change = about["change"]

    def _build(self, connection: Connection) -> None:
        """Reads the whole dataset, some facts at a time: texts are not kept, and vectors are kept once."""
        self._reset()
        try:
            self._held.vectors.reserve(facts.count(connection, self.dataset))
            self._append(facts.indexable(connection, self.dataset, self.model.id))
        except BaseException:
            # Half of it would be taken in a second time.
            self._reset()
            raise

    def _catch_up(self, connection: Connection, lines: Sequence[AnyRow]) -> None:
        touched = {line.fact_seq: line.kind for line in lines if line.kind != facts.LINKED}
        self._held.tombstone(touched)
        self._unsaved += len(touched)
        added = [seq for seq, kind in touched.items() if kind == facts.ADDED]
        self._append(facts.indexable(connection, self.dataset, self.model.id, added))
        if lines:
            self._change = lines[-1].seq

    def _append(self, rows: Iterator[AnyRow]) -> None:
        while run := list(islice(rows, BATCH_SIZE)):
            self._held.append(run, self.model.dimensions)
            self._unsaved += len(run)
            self._last = (run[-1].seq, run[-1].id)

    def _compact(self, compaction: Compaction) -> None:
        """Copies the living rows out from among the dead, while others search and add."""
        try:
            built = compaction.build()
        except BaseException:
            with self._lock:
                compaction.held.abandon()
            raise
        with self._lock:
            # It may have been rebuilt or saved meanwhile, which compacts it, too.
            if self._held is compaction.held:
                self._held = compaction.finish(built)

    def _permitted(self, allowed: Allowed, passing: list[int] | None) -> Bools:
        if not (allowed.where or allowed.without or allowed.only is not None):
            return self._held.live
        permitted = self._held.live.copy()
        for seqs in (passing, allowed.only):
            if seqs is not None:
                listed = np.zeros(len(permitted), bool)
                listed[self._held.rows_of(seqs)] = True
                permitted &= listed
        permitted[self._held.rows_of(allowed.without)] = False
        return permitted

    def _scored(self, connection: Connection, search: Search, words: Floats | None, rows: Rows) -> Found:
        held, vector = self._held, search.by_meaning
        if vector is not None:
            self._read(connection, rows)
        cosines = None if vector is None else held.vectors.cosines(vector, rows)

        def lent() -> tuple[Floats, Floats]:
            assert words is not None
            return borrowed_scores(words, held.neighbours.table[rows])

        return relevance.scored(held.seqs[rows], cosines, None if words is None else words[rows], lent)


MIN_DEAD_ROWS = 256  # Dead rows that are never worth a compaction.
DEAD_SHARE = 0.5  # Dead rows, as a share of the live ones, that are.


class RowTable:
    """Rows by number, in the order they were added. A fact that changes leaves its row dead and gets a new one.

    It has no lock. What `Compaction.build` reads is never changed in place, so that may run beside everything else.
    """

    def __init__(
        self,
        seqs: Rows,
        vectors: VectorIndex,
        segments: list[relevance.Segment],
        lengths: Floats,
        keys: Keys,
        neighbours: Neighbours,
    ) -> None:
        self._seqs: Growable[np.int64] = Growable(seqs)
        self._live: Growable[np.bool_] = Growable(np.ones(len(seqs), bool))
        self._lengths: Growable[np.float32] = Growable(lengths)
        self._keys: Growable[np.uint64] = Growable(keys)
        self.vectors = vectors
        self.segments = segments
        self.neighbours = neighbours
        self.norms = np.empty(0, np.float32)
        self.living = len(seqs)
        self._frozen_segments = 0
        self._ascending = _is_ascending(seqs)
        """Whether the rows are in the order of their facts, as long as no fact has changed."""
        self.settle()

    @classmethod
    def empty(cls, dimensions: int) -> RowTable:
        """No rows yet."""
        vectors = VectorIndex(np.empty((0, dimensions), np.float32))
        lengths, none = np.empty(0, np.float32), np.empty(0, np.uint64)
        return cls(np.empty(0, np.int64), vectors, [], lengths, none, Neighbours(none))

    @property
    def seqs(self) -> Rows:
        """The fact of each row."""
        return self._seqs.rows

    @property
    def live(self) -> Bools:
        """Whether each row is the current one of its fact."""
        return self._live.rows

    @property
    def keys(self) -> Keys:
        """The text of each row as a number, which copies have in common."""
        return self._keys.rows

    @property
    def dead(self) -> int:
        return len(self.seqs) - self.living

    def append(self, run: Sequence[AnyRow], dimensions: int) -> None:
        """Adds facts; `settle` when there are no more."""
        segment = relevance.build_segment([row.text for row in run], len(self.seqs))
        self.segments.append(segment)
        self._merge_alike()
        self._lengths.append(segment.lengths)
        self._keys.append(np.array([relevance.key(row.text) for row in run], np.uint64))
        self.vectors.append(unpack([row.vector for row in run], dimensions))
        self.neighbours.append(np.array([source_position(row.source, row.ordinal) for row in run], np.uint64))
        self._live.append(np.ones(len(run), bool))
        self._add_seqs(np.array([row.seq for row in run], np.int64))
        self.living += len(run)

    def _add_seqs(self, seqs: Rows) -> None:
        self._ascending = self._ascending and _is_ascending(np.concatenate([self.seqs[-1:], seqs]))
        self._seqs.append(seqs)

    def tombstone(self, seqs: Collection[int]) -> None:
        """Leaves the rows of these facts dead."""
        rows = self.rows_of(seqs)
        self.live[rows] = False
        self.living -= len(rows)

    def rows_of(self, seqs: Collection[int] | Rows) -> Rows:
        """The living rows of facts; those it does not have are left out."""
        numbers = seqs if isinstance(seqs, np.ndarray) else np.fromiter(seqs, np.int64, len(seqs))
        if not self._ascending or 8 * len(numbers) > len(self.seqs):
            return np.flatnonzero(np.isin(self.seqs, numbers) & self.live)
        # A few among many, in order: looked up instead of compared with all.
        asked = np.unique(numbers)
        rows = np.minimum(np.searchsorted(self.seqs, asked), len(self.seqs) - 1)
        living: Rows = rows[(self.seqs[rows] == asked) & self.live[rows]]
        return living

    def settle(self) -> None:
        """Brings up to date the norms, which depend on all rows."""
        self.norms = relevance.length_norms(self._lengths.rows, self.live)

    def worth_compacting(self) -> bool:
        """Whether so many rows are dead that the living ones should be copied out from among them."""
        return not self._frozen_segments and self.dead > max(MIN_DEAD_ROWS, DEAD_SHARE * self.living)

    def compaction(self) -> Compaction:
        """Begins a copy without the rows that are dead now."""
        self._frozen_segments = len(self.segments)
        return Compaction(self, np.array(self.live), list(self.segments), self.neighbours.places)

    def abandon(self) -> None:
        """Ends a compaction that came to nothing."""
        self._frozen_segments = 0

    def _merge_alike(self) -> None:
        """Keeps runs of words few: each is more than twice as large as the next.

        The oldest stays as it is: it is the largest, and may be mapped from a file. What a compaction reads stays, too.
        """
        apart = max(1, self._frozen_segments)
        while len(self.segments) > apart + 1 and len(self.segments[-2].lengths) <= 2 * len(self.segments[-1].lengths):
            self.segments[-2:] = [relevance.merge_segments(self.segments[-2:])]


def _is_ascending(seqs: Rows) -> bool:
    return bool((np.diff(seqs) > 0).all())


@dataclass(frozen=True, slots=True)
class Compaction:
    """A copy of the living rows on its way: `build` takes long and needs no lock, `finish` is quick and needs it."""

    held: RowTable
    _live: Bools
    _segments: list[relevance.Segment]
    _places: NDArray[np.uint64]

    def build(self) -> RowTable:
        """The rows that were live when the compaction began."""
        rows = np.flatnonzero(self._live)
        moved = np.full(len(self._live), -1, np.int32)
        moved[rows] = np.arange(len(rows), dtype=np.int32)
        segments = [relevance.keep_only(relevance.merge_segments(self._segments), moved)] if self._segments else []
        vectors = VectorIndex(self.held.vectors.taken(rows))
        if len(rows) > EXACT_BELOW:
            vectors.coded()
        lengths = np.array(segments[0].lengths) if segments else np.empty(0, np.float32)
        places = Neighbours(self._places[rows])
        return RowTable(self.held.seqs[rows], vectors, segments, lengths, self.held.keys[rows], places)

    def finish(self, built: RowTable) -> RowTable:
        """The rows that were built, with all that was added and removed meanwhile."""
        before, held = len(self._live), self.held
        removed = before - built.living
        later = held.segments[len(self._segments) :]
        built.segments += [replace(segment, base=segment.base - removed) for segment in later]
        built.vectors.append(held.vectors.taken(np.arange(before, len(held.seqs))))
        built.neighbours.append(held.neighbours.places[before:])
        built._lengths.append(held._lengths.rows[before:])
        built._keys.append(held.keys[before:])
        built._add_seqs(held.seqs[before:])
        built._live = Growable(np.concatenate([held.live[:before][self._live], held.live[before:]]))
        built.living = int(np.count_nonzero(built.live))
        built.settle()
        return built
