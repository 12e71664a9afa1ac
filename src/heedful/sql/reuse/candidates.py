"""Questions that were asked before and are like the one asked now: executions and golden examples of one connector."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.caching import Bounded
from heedful.clock import DAY
from heedful.ledger import proven_sql
from heedful.search.vector_index import Growable
from heedful.sql import records
from heedful.sql.records import CandidateRow, ConnectorState, LastUse, QuestionRow
from heedful.sql.reuse.proofs import NOTHING_SAID, Opinions, ProofsSnapshot
from heedful.sql.space import ExecutionSpace
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack
from heedful.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Stored:
    """A result that is stored, and the execution that it belongs to."""

    execution_id: str
    at: int
    data_version: str | None
    truncated: bool


class Candidate(NamedTuple):
    """A question with its SQL, as it was proven or merely run."""

    row: CandidateRow
    """The execution, or a golden example as one."""
    proof: str
    """Its name among what is proven."""
    similarity: float
    used_at: int
    """When it last ran, with its own values or with others, as far as that was looked up."""
    opinions: Opinions
    stored: Stored | None = None
    """The newest result of it that is stored, if it was asked for."""
    golden: bool = False

    @property
    def reliability(self) -> float:
        """The share of positive opinions, with one of each kind added, so that a single one is no certainty."""
        opinions = self.opinions
        return 1.0 if self.golden else (opinions.positives + 1) / (opinions.positives + opinions.negatives + 2)

    @property
    def is_positive(self) -> bool | None:
        """Whether nobody says that it is wrong; None if nobody says anything."""
        if self.golden:
            return True
        return not self.opinions.negatives if self.opinions.positives or self.opinions.negatives else None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what may be a candidate, and of the work on it."""

    max_age_days: float | None
    similarity_threshold: float
    limit: int
    only_positive_feedback: bool = False
    examples: bool = False
    """Whether golden examples may be."""
    explained: int = 1
    """How many refusals are worked out to the end."""
    results: bool = False
    """Whether stored results are needed."""


def find(
    space: ExecutionSpace,
    known: ProofsSnapshot,
    connector: AnyRow,
    vector: Vectors,
    limits: Limits,
    alike: Collection[str] = (),
    audience: str | None = None,
) -> list[Candidate]:
    """The candidates for exactly this audience whose questions are similar enough, the most similar first.

    Those with the same frame, by their proofs, are candidates whatever their similarity.
    """
    connection, model = known.connection, space.workspace.fitting(known.state.model)
    if model is None:
        return []
    index = space.workspace.part(Questions).follow(connection, known.state, connector.id, model)
    near = index.nearest(connection, known.state, vector, limits.similarity_threshold, limits.limit, alike, audience)
    oldest = 0 if limits.max_age_days is None else space.now() - int(limits.max_age_days * DAY)
    # When it was last used is only looked up where it matters: it changes with each use.
    used = records.usage_of(connection, [row.seq for row, _ in near if limits.results or row.at < oldest])
    fresh = [(row, cosine) for row, cosine in near if _used_at(row, used) >= oldest]
    opinions = known.opinions.of(connection, connector.project_id, [row.id for row, _ in fresh])
    found = [
        Candidate(row, row.id, _similarity(cosine), _used_at(row, used), opinions[row.id]) for row, cosine in fresh
    ]
    if limits.results:
        found = _with_results(connection, found, used)
    if limits.examples:
        found += _examples(connection, connector, audience, vector, limits.similarity_threshold, alike)
    # Among equals, what was proven comes before what was only run again, and what was used last before the others.
    return sorted(
        found,
        key=lambda candidate: (-candidate.similarity, not candidate.golden, -candidate.reliability, -candidate.used_at),
    )


def with_last_use(connection: Connection, found: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates with the time when each was last used."""
    used = records.usage_of(connection, [candidate.row.seq for candidate in found if not candidate.golden])
    return [candidate._replace(used_at=max(candidate.used_at, _used_at(candidate.row, used))) for candidate in found]


def _with_results(connection: Connection, found: Sequence[Candidate], used: Mapping[int, LastUse]) -> list[Candidate]:
    """The same candidates with the newest result of each: its own, or that of its last hit."""
    last = {seq: usage.last_hit_id for seq, usage in used.items() if usage.last_hit_id is not None}
    results = records.stored_results(connection, sorted({*last.values()}))
    made = []
    for candidate in found:
        row, hit = candidate.row, last.get(candidate.row.seq)
        own = row.id, row.at, row.data_version, bool(row.truncated)
        stored = Stored(hit, *results[hit]) if hit is not None and hit in results else Stored(*own)
        made.append(candidate._replace(stored=stored))
    return made


def follow_examples(space: ExecutionSpace, connector: AnyRow) -> None:
    """Has the model in use make the vectors of golden examples that another one made."""
    with space.workspace.read() as connection:
        model = space.workspace.model(connection)
        rows = [] if model is None else records.examples_of_another_model(connection, connector.id, model.id)
    if model is None or not rows:
        return
    made = space.workspace.embed([row.question for row in rows])
    with space.workspace.write() as connection:
        for row, vector in zip(rows, made, strict=True):
            records.set_example_vector(connection, row.id, model.id, pack(vector))


def _examples(
    connection: Connection,
    connector: AnyRow,
    audience: str | None,
    vector: Vectors,
    least: float,
    alike: Collection[str],
) -> list[Candidate]:
    rows = [row for row in records.examples_of(connection, connector.id, audience) if row.vector is not None]
    if not rows:
        return []
    cosines = unpack([row.vector for row in rows], len(vector)) @ vector
    found = [_of_example(row, float(cosine)) for row, cosine in zip(rows, cosines, strict=True)]
    return [candidate for candidate in found if candidate.similarity >= least or candidate.proof in alike]


def _used_at(row: CandidateRow, used: Mapping[int, LastUse]) -> int:
    last = used.get(row.seq)
    return row.at if last is None else max(row.at, last.used_at or 0)


def _similarity(cosine: float) -> float:
    # Vectors are stored with fewer digits, so that the cosine of a text with itself may be a little above 1.
    return round(min(1.0, cosine), 6)


def _of_example(row: AnyRow, cosine: float) -> Candidate:
    example = CandidateRow(
        seq=_NO_EXECUTION,
        id=row.id,
        question=row.question,
        sql_query=row.sql_query,
        parameters={},
        template=row.template,
        truncated=0,
        fingerprint=None,
        data_version=None,
        at=row.updated_at,
        message_id=None,
        chat_session_id=None,
        audience=row.audience,
    )
    proof = f"{row.id}/{row.updated_at}"
    return Candidate(example, proof, _similarity(cosine), row.updated_at, NOTHING_SAID, golden=True)


Embed = Callable[[Sequence[str]], Vectors]
Near = tuple[CandidateRow, float]
"""An execution, and the cosine of its question."""

PRUNE_AFTER = 256
"""Questions that are taken in before it is worth a look which of the others are still there."""

_NO_EXECUTION = -1  # The number of an example as an execution.

MAX_ROWS = 20_000
MAX_CHARACTERS = 4_000
"""How many executions are kept in memory, beside the vectors of all, and how long their questions and SQL may be."""


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
                rows = records.questions_after(connection, self.connector, self._last)
            if state.revision != self._revision:
                # What becomes a candidate later has an old number.
                hits = self._drop_changed(connection, state)
                rows += records.rated_hits(connection, self.connector, [seq for seq in hits if seq not in self._places])
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
        near = {row.seq: (row, float(cosines[place])) for row, place in found}
        numbers = self._numbers_of(connection, also)
        wanted = [seq for seq in numbers if seq not in near and places.get(seq, len(seqs)) < len(seqs)]
        for seq, row in self._read(connection, state, wanted).items():
            if row.audience == audience:
                near[seq] = row, float(cosines[places[seq]])
        with self._lock:
            self._unchecked += len(order) - len(there)
        return list(near.values())

    def _drop_changed(self, connection: Connection, state: ConnectorState) -> Sequence[int]:
        """Forgets what may have changed since the last time; returns the numbers of hits that may be candidates now."""
        if not state.full_revision <= self._revision < state.revision:
            self._rows.clear()
            return records.rated_hit_seqs(connection, self.connector)
        rated = records.rated_after(connection, self.connector, self._revision)
        for row in rated:
            self._rows.pop(row.seq, None)
        return [row.seq for row in rated if row.hit == proven_sql.RATED_HIT]

    def _read(self, connection: Connection, state: ConnectorState, seqs: Sequence[int]) -> dict[int, CandidateRow]:
        """The executions with these numbers that are there, from memory as far as they are known there."""
        with self._lock:
            known = self._rows if state.revision == self._revision else {}
            found = {seq: row for seq in seqs if (row := known.get(seq)) is not None}
        missing = [seq for seq in seqs if seq not in found]
        if missing:
            read = records.candidates_by_seq(connection, missing)
            with self._lock:
                # Somebody else may have followed the store further meanwhile.
                if state.revision == self._revision:
                    self._keep(read.values())
            found |= read
        return found

    def _numbers_of(self, connection: Connection, ids: Collection[str]) -> list[int]:
        with self._lock:
            found = {name: self._numbers.get(name) for name in ids}
            missing = [name for name, seq in found.items() if seq is None]
        if missing:
            read = records.seqs_of(connection, missing)
            with self._lock:
                for name, seq in read.items():
                    self._numbers.keep(name, seq)
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
        digests = [blake2b(vector, digest_size=16).digest() for vector in vectors]
        new = {digest: vector for digest, vector in zip(digests, vectors, strict=True) if digest not in self._known}
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
        mask = np.isin(self._seqs.rows, np.array(records.candidate_seqs(connection, self.connector), np.int64))
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


class Questions:
    """The indexes of a project's connectors."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._indexes: dict[tuple[str, int], QuestionIndex] = {}
        self._unwritten: list[tuple[int, int, bytes]] = []

    def follow(self, connection: Connection, state: ConnectorState, connector: str, model: ModelRow) -> QuestionIndex:
        """The questions of a connector as `connection` sees them."""
        with self._lock:
            index = self._indexes.setdefault((connector, model.id), QuestionIndex(connector, model))
        made = index.follow(connection, state, self._workspace.embed)
        with self._lock:
            self._unwritten += [(model.id, *vector) for vector in made]
        return index

    def write_vectors(self) -> None:
        """Writes vectors of questions that were made during a read, so that nobody has to make them again."""
        with self._lock:
            made, self._unwritten = self._unwritten, []
        self._workspace.write_vectors(made, records.set_vectors)

    def drop(self, dataset: int) -> None:
        """Does nothing: executions belong to no dataset."""
