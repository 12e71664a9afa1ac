"""What is proven on each connector, in memory: many callers read it, one brings it up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import monotonic

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.sql import connector_access
from heedful.sql.reuse import Evidence, Known, ProvenQuery
from heedful.sql.sandbox.pool import Queries, Target
from heedful.storage.executions import golden, proofs
from heedful.storage.executions.connectors import revision
from heedful.storage.rows import AnyRow


class SharedLock:
    """Readers share it; a writer has it alone, and comes before readers that come later. It is not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0
        self._writing = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._writers)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: not self._readers and not self._writing)
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writers -= 1
                self._writing = False
                self._changed.notify_all()


VALUES_TTL_SECONDS = 600.0
"""How long the values of columns are taken as read; a name that is newer than that is not known, and refused."""

ToTarget = Callable[[AnyRow], Target]
OpenConnection = Callable[[], AbstractContextManager[Connection]]
Project = Callable[[Connection], int]
ColumnValues = Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Reading:
    """What is proven and what is wrong on a connector, as one moment of the store has it."""

    connection: Connection
    evidence: Evidence
    blocked: Mapping[bytes, str | None]


@dataclass(slots=True)
class _ConnectorState:
    """What is known of one connector. It is changed by who holds `lock` alone, and read by those who share it."""

    connector: AnyRow
    values: ColumnValues
    read_at: float
    evidence: Evidence
    authors: int
    """How many known authors must call SQL wrong to block it."""
    ids: set[str] = field(default_factory=set)
    blocked: Mapping[bytes, str | None] = field(default_factory=dict)
    revision: int | None = None
    lock: SharedLock = field(default_factory=SharedLock)

    def follow(self, connection: Connection, project: int) -> None:
        """Brings it to what the connection sees."""
        now = revision(connection, self.connector.id)
        if now == self.revision:
            return
        blocked = proofs.blocked(connection, project, self.connector.id, self.authors)
        runs = proofs.proven(connection, project, self.connector.id)
        active = {name for name, template in runs.items() if template not in blocked}
        # An example that was changed is another one: its time is part of its name.
        examples = {f"{row.id}/{row.updated_at}": row for row in golden.of_connector(connection, self.connector.id)}
        for gone in self.ids - active - examples.keys():
            self.evidence.remove(gone)
        for row in proofs.questions(connection, sorted(active - self.ids)):
            self.evidence.add(ProvenQuery(row.id, row.question, row.sql_query, from_stored(row.at)))
        for name in examples.keys() - self.ids:
            row = examples[name]
            self.evidence.add(ProvenQuery(name, row.question, row.sql_query, from_stored(row.updated_at)))
        self.ids, self.blocked, self.revision = active | examples.keys(), blocked, now


class Proofs:
    """The evidence of each connector of a project. It follows the store; values of columns are read now and then."""

    def __init__(self, queries: Queries, authors_to_veto: int) -> None:
        self._queries = queries
        self._authors = authors_to_veto
        self._lock = threading.Lock()
        self._kept: dict[str, _ConnectorState] = {}
        self._loading: dict[str, threading.Lock] = {}

    @contextmanager
    def reading(self, connector: AnyRow, target: ToTarget, read: OpenConnection, project: Project) -> Iterator[Reading]:
        """All that is proven on a connector, with the transaction that sees it. It does not change meanwhile."""
        kept = self._current(connector, target, read, project)
        while True:
            # In this order: who holds the lock sees at least what those before have seen.
            with kept.lock.shared(), read() as connection:
                if kept.revision == revision(connection, connector.id):
                    yield Reading(connection, kept.evidence, kept.blocked)
                    return
            with kept.lock.alone(), read() as connection:
                kept.follow(connection, project(connection))

    def forget(self, connector_id: str) -> None:
        """Has everything about a connector read again."""
        with self._lock:
            self._kept.pop(connector_id, None)

    def _current(self, connector: AnyRow, target: ToTarget, read: OpenConnection, project: Project) -> _ConnectorState:
        """What is known of a connector, with values that are fresh.

        The database of the connector is read by one thread; the others go on with what they have, if they have
        something. Neither a lock of the project nor a transaction of the store is held meanwhile.
        """
        with self._lock:
            kept = self._kept.get(connector.id)
            loading = self._loading.setdefault(connector.id, threading.Lock())
        usable = kept is not None and kept.connector.fingerprint == connector.fingerprint
        if usable and kept is not None and _is_fresh(kept):
            return kept
        if not loading.acquire(blocking=not usable):
            assert kept is not None
            return kept
        try:
            with self._lock:
                newer = self._kept.get(connector.id)
            if newer is not None and newer.connector.fingerprint == connector.fingerprint and _is_fresh(newer):
                return newer
            made = self._read(connector, newer, target, read, project)
            with self._lock:
                self._kept[connector.id] = made
            return made
        finally:
            loading.release()

    def _read(
        self,
        connector: AnyRow,
        before: _ConnectorState | None,
        target: ToTarget,
        read: OpenConnection,
        project: Project,
    ) -> _ConnectorState:
        values = self._queries.text_values(target(connector))
        if before is not None and before.values == values and before.connector.fingerprint == connector.fingerprint:
            before.read_at = monotonic()
            return before
        made = _ConnectorState(
            connector,
            values,
            monotonic(),
            Evidence(connector_access.dialect_of(connector), Known(values)),
            self._authors,
        )
        with read() as connection:
            made.follow(connection, project(connection))
        return made


def _is_fresh(kept: _ConnectorState) -> bool:
    return monotonic() - kept.read_at <= VALUES_TTL_SECONDS
