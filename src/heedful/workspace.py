"""One project of one store as every service works on it, with its model, clock and indexes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from heedful.clock import Clock, to_stored
from heedful.errors import Conflict, HeedfulError, no_dataset
from heedful.model import DEFAULT_DATASET
from heedful.providers.embedding import Embedder
from heedful.search import DatabaseIndex, DatasetIndex, Searcher
from heedful.search.database_index import IN_MEMORY
from heedful.search.graph_index import GraphIndex
from heedful.search.snapshot import FileSnapshot, Snapshot, TableSnapshot
from heedful.settings import Trust
from heedful.storage import Database, graph, scopes
from heedful.storage import vectors as stored_vectors
from heedful.storage.postgresql import word_index
from heedful.storage.rows import Direct, batches
from heedful.storage.vectors import ModelRow, Vectors
from heedful.threads import Background, Steps

logger = logging.getLogger("heedful")

VECTORS_BATCH_SIZE = 500
"""Vectors that one transaction writes: each is a kilobyte or more."""

WriteVectors = Callable[[Connection, Sequence[tuple[int, int, bytes]]], None]
"""Writes vectors, given as (model, number, vector)."""


class WorkspacePart(Protocol):
    """Something that a wing above keeps with a workspace, such as its indexes in memory."""

    def __init__(self, workspace: Workspace) -> None: ...

    def drop(self, dataset: int) -> None:
        """Forgets a deleted dataset."""


P = TypeVar("P", bound=WorkspacePart)


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
        self._graphs: dict[int, GraphIndex] = {}
        self._linked: set[str] = set()
        self._background = background or Background()
        self._closed = False
        self._parts: dict[type[WorkspacePart], WorkspacePart] = {}

    def looking(self) -> Workspace:
        """The same project for somebody who only looks, at a clock that stands still: what would write fails, and what
        is derived on the way stays in memory. It uses the indexes of facts that are loaded; close it, too."""
        view = copy(self)
        now = self._clock()
        view._clock = lambda: now
        view.database = self.database.looking()
        view._parts, view._shared = {}, True
        return view

    def elsewhere(self, database: Database, embedder: Embedder) -> Workspace:
        """The same project in another database, which stays open when it is closed."""
        limits = {"search_in_memory": self._search_in_memory, "trust": self.trust, "background": self._background}
        return Workspace(database, embedder, self.project, self._clock, shared=True, **limits)  # type: ignore[arg-type]

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
        return self.existing(connection, name, scopes.dataset_id(connection, name))

    def existing(self, connection: Connection, name: str, number: int | None) -> int | None:
        """The dataset itself, if it is there or is the default one."""
        if number is None and name != DEFAULT_DATASET:
            raise no_dataset(self.project, name, list(scopes.dataset_names(connection).values()))
        return number

    def index(self, connection: Connection, dataset: int, model: ModelRow) -> Searcher:
        """The index that searches a dataset as `connection` sees it; `follow` it before a search."""
        key = (dataset, model.id)
        if self.database.searches:
            cached = self._indexes.get(key)
            built = None
            if cached is None or len(cached) > self._search_in_memory:
                built = word_index.searched_dataset(connection, dataset, model.id)
            if built is not None and built.facts > self._search_in_memory // 2:
                with self._lock:
                    self._indexes.pop(key, None)
                return DatabaseIndex(dataset, model, built)
        with self._lock:
            if key not in self._indexes:
                snapshot: Snapshot
                if (folder := self.database.folder) is not None:
                    snapshot = FileSnapshot(folder / f"{dataset}-{model.id}.index")
                else:
                    write = partial(self.write, durable=False, exclusive=False)
                    snapshot = TableSnapshot(dataset, model, self.read, write)
                self._indexes[key] = DatasetIndex(dataset, model, snapshot)
            index = self._indexes[key]
        if index.has_unread_vectors:
            self.do_later(f"vectors of {dataset}", lambda: self._read_vectors(index))
        return index

    def _read_vectors(self, index: DatasetIndex) -> Steps:
        """Reads the vectors that no search has needed yet."""
        while index.has_unread_vectors:
            with self.read() as connection:
                if stored_vectors.active_model(connection) != index.model:
                    return
                index.read_vectors(connection)
            yield None

    def write_vectors(self, made: Sequence[tuple[int, int, bytes]], write: WriteVectors) -> None:
        """Writes vectors that were made during a read, so that nobody has to make them again."""
        # In order, so that two recalls don't wait for each other.
        for run in batches([] if self.database.read_only else sorted(made), VECTORS_BATCH_SIZE):
            # A recall waits for no writer.
            with self.write(durable=False, exclusive=False) as connection:
                write(connection, run)

    def part(self, kind: type[P]) -> P:
        """The part of this kind, made when it is first asked for."""
        with self._lock:
            if kind not in self._parts:
                self._parts[kind] = kind(self)
            part = self._parts[kind]
        assert isinstance(part, kind)
        return part

    def do_later(self, name: str, begin: Callable[[], Steps]) -> None:
        """Does some work in the background; if it can't be done now, a later call does."""
        with self._lock:
            if not self._closed:
                self._background.add(self, name, begin)

    def link(self, dataset: str) -> None:
        """Links the facts of a dataset that were stored before there was a graph; looks for them once."""
        with self._lock:
            if dataset in self._linked or self.database.read_only:
                return
        with self.read() as connection:
            number = scopes.dataset_id(connection, dataset)
            lacking = [] if number is None else graph.unlinked(connection, number)
        # A few at a time, so that no other writer has to wait for all of them.
        for run in batches(lacking, graph.BATCH_SIZE):
            assert number is not None
            with self.write() as connection:
                graph.link_unread(connection, number, run)
        with self._lock:
            self._linked.add(dataset)

    def graph(self, dataset: int) -> GraphIndex:
        """The entities that the facts of a dataset mention; `follow` it before use."""
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
            for key in [key for key in self._indexes if key[0] == dataset]:
                del self._indexes[key]
            self._graphs.pop(dataset, None)
            parts = list(self._parts.values())
        for part in parts:
            part.drop(dataset)
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
            for _ in self._read_vectors(index):
                pass
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
