"""What every service works on: one project of one store, with its model, clock and indexes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from sqlalchemy import Connection

from heedful.clock import Clock, to_stored
from heedful.errors import Conflict, HeedfulError, no_dataset
from heedful.model import DEFAULT_DATASET
from heedful.providers.embedding import Embedder
from heedful.ranking.signals import Trust
from heedful.search import DatabaseIndex, DatasetIndex, Searcher
from heedful.search.evidence import ContextIndex, EvidenceIndex, OverallIndex
from heedful.search.graph import GraphIndex
from heedful.search.postgresql import IN_MEMORY
from heedful.search.questions import QuestionIndex
from heedful.search.snapshot import FileSnapshot, Snapshot, TableSnapshot
from heedful.storage import Database, graph, receipts, scopes, words
from heedful.storage import vectors as stored_vectors
from heedful.storage.executions import runs
from heedful.storage.rows import Direct, batches
from heedful.storage.vectors import ModelRow, Vectors
from heedful.threads import Background, Steps

logger = logging.getLogger("heedful")

VECTORS_BATCH_SIZE = 500
"""Vectors that one transaction writes: each is a kilobyte or more."""

WriteVectors = Callable[[Connection, Sequence[tuple[int, int, bytes]]], None]
"""Writes vectors, given as (model, number, vector)."""


class Workspace:
    """One project of one open store."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        project: str,
        clock: Clock,
        *,
        shared: bool = False,
        search_in_memory: int = IN_MEMORY,
        receipt_share: float = 1.0,
        trust: Trust | None = None,
        background: Background | None = None,
    ) -> None:
        """`shared` is a database that others use too, and that is not closed with the workspace. Datasets of more facts
        than `search_in_memory` are searched by a database that can, once it has indexes of them. `receipt_share` is
        the share of recalls whose receipts are kept. `trust` says how many authors make an opinion count. `background`
        does what nobody waits for."""
        self.database = database
        self.receipt_share = receipt_share
        self.trust = trust or Trust()
        self._search_in_memory = search_in_memory
        self._shared = shared
        self.embedder = embedder
        self.project = project
        self._clock = clock
        self._lock = threading.Lock()
        self._indexes: dict[tuple[int, int], DatasetIndex] = {}
        self._contexts: dict[tuple[int, int], ContextIndex] = {}
        self._evidence: dict[int, EvidenceIndex] = {}
        self._overall: dict[int, OverallIndex] = {}
        self._graphs: dict[int, GraphIndex] = {}
        self._linked: set[str] = set()
        self._unwritten: list[tuple[int, int, bytes]] = []
        self._background = background or Background()
        self._closed = False
        self._questions: dict[tuple[str, int], QuestionIndex] = {}
        self._unwritten_questions: list[tuple[int, int, bytes]] = []

    def read(self) -> AbstractContextManager[Connection]:
        """A consistent view of the project; nothing is written."""
        return self.database.read(self.project)

    def write(self, *, durable: bool = True, exclusive: bool = True) -> AbstractContextManager[Connection]:
        """A transaction; see `Database.write`."""
        return self.database.write(self.project, durable=durable, exclusive=exclusive)

    def direct(self, *, write: bool, durable: bool = True, exclusive: bool = True) -> AbstractContextManager[Direct]:
        """A transaction for prepared statements; see `Database.direct`."""
        return self.database.direct(self.project, write=write, durable=durable, exclusive=exclusive)

    def now(self) -> int:
        return to_stored(self._clock())

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self.embedder.embed(texts)

    def model(self, connection: Connection) -> ModelRow | None:
        """The model of the store's vectors, None before the first fact; another one than ours is an error."""
        return self.fitting(stored_vectors.active_model(connection))

    def fitting(self, active: ModelRow | None) -> ModelRow | None:
        """The model itself, if it is ours or there is none."""
        return matching_model(active, self.embedder)

    def dataset(self, connection: Connection, name: str) -> int | None:
        """The number of a dataset to read from; None if it is the default one and still empty."""
        return self.existing(connection, name, scopes.dataset_id(connection, self.project, name))

    def existing(self, connection: Connection, name: str, found: int | None) -> int | None:
        """The dataset itself, if it is there or is the default one."""
        if found is None and name != DEFAULT_DATASET:
            names = list(scopes.dataset_names(connection, self.project).values())
            raise no_dataset(self.project, name, names)
        return found

    def index(self, connection: Connection, dataset: int, model: ModelRow) -> Searcher:
        """What searches a dataset as `connection` sees it; `follow` it before a search."""
        key = (dataset, model.id)
        if self.database.searches:
            cached = self._indexes.get(key)
            built = None
            if cached is None or len(cached) > self._search_in_memory:
                built = words.searched_dataset(connection, dataset, model.id)
            if built is not None and built.facts > self._search_in_memory // 2:
                with self._lock:
                    self._indexes.pop(key, None)
                return DatabaseIndex(dataset, model, built)
        with self._lock:
            if key not in self._indexes:
                self._indexes[key] = DatasetIndex(dataset, model, self._snapshot(dataset, model))
            return self._indexes[key]

    def _snapshot(self, dataset: int, model: ModelRow) -> Snapshot:
        """Where the index of a dataset is kept for the next process."""
        folder = self.database.folder
        if folder is not None:
            return FileSnapshot(folder / f"{dataset}-{model.id}.index")
        return TableSnapshot(dataset, model, self.read, partial(self.write, durable=False, exclusive=False))

    def contexts(
        self,
        connection: Connection,
        dataset: int,
        model: ModelRow,
        newest: int,
        needed: Iterable[int] | None = None,
    ) -> ContextIndex:
        """The queries with signals of a dataset up to the event `newest`, the last that `connection` sees. Those that
        are `needed` are embedded when it returns; without, a few of the newest. The others are soon."""
        with self._lock:
            key = (dataset, model.id)
            if key not in self._contexts:
                self._contexts[key] = ContextIndex(dataset, model, self.embedder.calibration)
            index = self._contexts[key]
        index.follow(connection, newest)
        for step in index.newest() if needed is None else index.steps(needed):
            made = index.embed(step, partial(receipts.load_queries, connection), self.embed)
            with self._lock:
                self._unwritten += [(model.id, *each) for each in made]
        if index.waits:
            self.do_later(f"embedding of queries {dataset}", lambda: self.embed_queries(index))
        return index

    def embed_queries(self, index: ContextIndex, wanted: Iterable[int] | None = None) -> Steps:
        """Embeds the queries that wait in an index, or those of them that are wanted, and writes their vectors."""
        wanted = None if wanted is None else list(wanted)
        while steps := index.steps(wanted):
            for step in steps:
                made = index.embed(step, self._load_queries, self.embed)
                self._write_vectors([(index.model.id, *each) for each in made], receipts.set_vectors)
                yield None

    def keep_vectors(self) -> None:
        """Writes vectors of queries that were made during a read, so that nobody has to make them again."""
        with self._lock:
            made, self._unwritten = self._unwritten, []
        self._write_vectors(made, receipts.set_vectors)

    def _load_queries(self, ids: Sequence[int]) -> list[receipts.Row]:
        with self.read() as connection:
            return receipts.load_queries(connection, ids)

    def _write_vectors(self, made: Sequence[tuple[int, int, bytes]], write: WriteVectors) -> None:
        # In order, so that two recalls don't wait for each other.
        for run in batches([] if self.database.read_only else sorted(made), VECTORS_BATCH_SIZE):
            # A recall waits for no writer.
            with self.write(durable=False, exclusive=False) as connection:
                write(connection, run)

    def questions(self, connector: str, model: ModelRow) -> QuestionIndex:
        """The questions of a connector's executions; `follow` it before a search."""
        with self._lock:
            key = (connector, model.id)
            if key not in self._questions:
                self._questions[key] = QuestionIndex(connector, model)
            return self._questions[key]

    def keep_questions(self, model: ModelRow, made: list[tuple[int, bytes]]) -> None:
        """Notes vectors that were made during a read, for `write_questions`."""
        with self._lock:
            self._unwritten_questions += [(model.id, *each) for each in made]

    def write_questions(self) -> None:
        """Writes vectors of questions that were made during a read, so that nobody has to make them again."""
        with self._lock:
            made, self._unwritten_questions = self._unwritten_questions, []
        self._write_vectors(made, runs.set_vectors)

    def evidence(self, dataset: int) -> EvidenceIndex:
        """The votes of a dataset; `follow` it before use."""
        with self._lock:
            return self._evidence.setdefault(dataset, EvidenceIndex(dataset))

    def do_later(self, name: str, begin: Callable[[], Steps]) -> None:
        """Does some work in the background; if it can't be done now, a later call does."""
        with self._lock:
            if not self._closed:
                self._background.add(self, name, begin)

    def overall(self, dataset: int) -> OverallIndex:
        """The scores over all queries of a dataset's facts; `follow` it before use."""
        with self._lock:
            return self._overall.setdefault(dataset, OverallIndex(dataset))

    def drop_scores(self, dataset: int) -> None:
        """Forgets what was read of scores that were recomputed."""
        with self._lock:
            self._overall.pop(dataset, None)

    def link(self, dataset: str) -> None:
        """Links the facts of a dataset that were stored before there was a graph; looks for them once."""
        with self._lock:
            if dataset in self._linked:
                return
        with self.read() as connection:
            number = scopes.dataset_id(connection, self.project, dataset)
            lacking = [] if number is None else graph.unlinked(connection, number)
        # A few at a time, so that no other writer has to wait for all of them.
        for run in batches(lacking, graph.BATCH_SIZE):
            assert number is not None
            with self.write() as connection:
                graph.link_unread(connection, number, run)
        with self._lock:
            self._linked.add(dataset)

    def graph(self, dataset: int) -> GraphIndex:
        """What the facts of a dataset mention; `follow` it before use."""
        with self._lock:
            return self._graphs.setdefault(dataset, GraphIndex(dataset))

    def follow(self) -> None:
        """Brings the indexes of facts that are in memory up to the present state of the store."""
        with self._lock:
            indexes = list(self._indexes.values())
        for index in indexes:
            with self.read() as connection:
                index.follow(connection)

    def drop(self, dataset: int) -> None:
        """Forgets the indexes of a deleted dataset, in memory and on disk."""
        with self._lock:
            for indexes in (self._indexes, self._contexts):
                for key in [key for key in indexes if key[0] == dataset]:
                    del indexes[key]
            self._evidence.pop(dataset, None)
            self._overall.pop(dataset, None)
            self._graphs.pop(dataset, None)
        if self.database.folder is not None:
            for file in self.database.folder.glob(f"{dataset}-*.index"):
                file.unlink(missing_ok=True)

    def save_index(self, dataset: int) -> None:
        """Brings the index of a dataset up to the present state of the store, in memory and on disk."""
        with self.read() as connection:
            model = self.model(connection)
            if model is None:
                return
            self.index(connection, dataset, model).follow(connection)
        with self._lock:
            indexes = [index for (number, _), index in self._indexes.items() if number == dataset]
        for index in indexes:
            self._save(index)

    def save_indexes(self, *, last: bool = False) -> None:
        """Saves what has changed enough since it was last saved."""
        with self._lock:
            indexes = list(self._indexes.values())
        for index in indexes:
            if index.worth_saving(last=last):
                self._save(index)

    def _save(self, index: DatasetIndex) -> None:
        if self.database.read_only:
            return
        try:
            index.save()
        except (OSError, HeedfulError) as error:
            # It is derived: without it, the next process takes longer to open the store.
            logger.warning("the index of dataset %s can't be saved: %s", index.dataset, error)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._background.finish(self)
        self.save_indexes(last=True)
        if not self._shared:
            self.database.close()


def matching_model(active: ModelRow | None, embedder: Embedder) -> ModelRow | None:
    """The model itself, if it is the embedder's or there is none."""
    if active is not None and active.name == embedder.name and active.dimensions != embedder.dimensions:
        raise Conflict(
            f"{active.name} has {embedder.dimensions} dimensions, and the vectors of this store have "
            f"{active.dimensions}",
            code="other_model",
            remedy="Give the model another name, and run: heedful reembed",
        )
    if active is not None and active.name != embedder.name:
        raise Conflict(
            f"the vectors of this store were made by {active.name}, and it was opened with {embedder.name}",
            code="other_model",
            remedy="Open it with its own model (embedding=…, --embedding or HEEDFUL_EMBEDDING), or re-embed "
            "the store with this one: heedful reembed",
        )
    return active
