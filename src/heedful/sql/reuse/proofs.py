"""What is proven on each connector, in memory: many callers read it, one brings it up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from types import MappingProxyType

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.search.bounded import Bounded
from heedful.sql import connector_access
from heedful.sql.reuse import Evidence, ProvenQuery
from heedful.sql.reuse.asker import Person, person
from heedful.sql.reuse.column_values import ColumnValues
from heedful.sql.reuse.ownership import Conditions, has_unnamed_values
from heedful.sql.reuse.ratings import Ratings
from heedful.sql.sandbox.pool import Queries, Target
from heedful.storage.executions import golden, proofs, runs
from heedful.storage.executions.connectors import ConnectorState, read_state
from heedful.storage.feedback import SqlFeedbacks, counted_opinions
from heedful.storage.rows import AnyRow
from heedful.storage.sessions.base import FeedbackRow


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

OF_EXAMPLES: frozenset[str | None] = frozenset(("golden examples",))
"""The author of golden examples, which have no other: all of them together have one vote."""

MAX_AUDIENCES = 2_000
MAX_PROOFS_OF_AUDIENCES = 20_000
"""Audiences of a connector whose proofs are kept in memory, and how many proofs of them. Others are read again when
they ask."""

ToTarget = Callable[[AnyRow], Target]
OpenConnection = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class Opinions:
    """What people say of an execution, and how many of them."""

    positives: int = 0
    negatives: int = 0
    comment: str | None = None
    """What was said last by somebody who counts; as long as they say it is wrong, what they said."""


NOTHING_SAID = Opinions()
MAX_OPINIONS = 20_000
"""Executions of a connector whose opinions are kept in memory."""


class OpinionCache:
    """What people say of the executions of a connector."""

    def __init__(self, authors: int) -> None:
        self._authors = authors
        self._lock = threading.Lock()
        self._known: Bounded[str, Opinions] = Bounded(MAX_OPINIONS)

    def of(self, connection: Connection, project: int, ids: Sequence[str]) -> dict[str, Opinions]:
        """The opinions about executions, by id."""
        with self._lock:
            found = {each: self._known.get(each) for each in ids}
        missing = [each for each, said in found.items() if said is None]
        if missing:
            rows = SqlFeedbacks.on(connection, project).counting_for(missing)
            made = {each: self._counted(rows.get(each, ())) for each in missing}
            with self._lock:
                for each, said in made.items():
                    self._known.keep(each, said)
            found |= made
        return {each: said for each, said in found.items() if said is not None}

    def forget(self, ids: Iterable[str]) -> None:
        """Has the opinions about these executions read again."""
        with self._lock:
            for each in ids:
                self._known.pop(each, None)

    def _counted(self, said: Sequence[FeedbackRow]) -> Opinions:
        if not said:
            return NOTHING_SAID
        positive, negative = counted_opinions(said, self._authors)
        last = (negative or positive)[-1:]
        return Opinions(_author_count(positive), _author_count(negative), last[0].comment if last else None)


def _author_count(rows: list[FeedbackRow]) -> int:
    """How many say so: an author who rates hits of the same execution again and again is one."""
    return len({row.author for row in rows if row.author is not None}) + sum(row.author is None for row in rows)


class Circle:
    """What is proven for one audience, or for everybody. Others neither dispute it nor learn from it."""

    def __init__(self, audience: str | None, evidence: Evidence) -> None:
        self.audience = audience
        self.evidence = evidence
        self.conditions = Conditions()
        self._authors_of: dict[str, frozenset[str | None]] = {}

    def __len__(self) -> int:
        return len(self._authors_of)

    def authors(self, proof: str) -> frozenset[str | None]:
        """Who has proven something, by its name among what is proven; nobody, if it isn't."""
        return self._authors_of.get(proof, frozenset())

    def fill(self, connection: Connection, connector: str, proven: Mapping[str, frozenset[str | None] | None]) -> None:
        """Makes it know these executions, the golden examples of its audience, and nothing else."""
        # An example that was changed is another one: its time is part of its name.
        rows = golden.of_connector(connection, connector, self.audience)
        examples = {f"{row.id}/{row.updated_at}": row for row in rows}
        gone: dict[str, frozenset[str | None] | None] = dict.fromkeys(self._authors_of)
        self.study(connection, gone | dict(proven) | dict.fromkeys(examples, OF_EXAMPLES), examples)

    def study(
        self,
        connection: Connection,
        authors_of: Mapping[str, frozenset[str | None] | None],
        examples: Mapping[str, AnyRow] = MappingProxyType({}),
    ) -> None:
        """Has the evidence know these proofs by these authors; None if there is no such proof any more."""
        changed = {name: authors for name, authors in authors_of.items() if self._authors_of.get(name) != authors}
        for name in changed.keys() & self._authors_of.keys():
            self.evidence.remove(name)
            self.conditions.remove(name)
            del self._authors_of[name]
        new = {name: authors for name, authors in changed.items() if authors is not None}
        self._authors_of |= new
        for row in proofs.questions(connection, sorted(new.keys() - examples.keys())):
            self._add(ProvenQuery(row.id, row.question, row.sql_query, from_stored(row.at), new[row.id]))
        for name in new.keys() & examples.keys():
            row = examples[name]
            self._add(ProvenQuery(name, row.question, row.sql_query, from_stored(row.updated_at), OF_EXAMPLES))

    def _add(self, proven: ProvenQuery) -> None:
        known = self.evidence.study(proven)
        if self.audience is None and proven.authors is not OF_EXAMPLES:
            about = person(proven.question, self.evidence.values)
            # What one person proved about themselves says nothing about others.
            if about and (about is Person.ASKER or known is None or has_unnamed_values(known)):
                return
        self.evidence.add(proven)
        if self.audience is None and known is not None:
            self.conditions.add(str(proven.id), known, proven.authors)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is proven and what is wrong on a connector, as one moment of the store has it."""

    connection: Connection
    state: ConnectorState
    circles: Sequence[Circle]
    """What is proven for the audience that asks, if it is one, then what is proven for everybody."""
    ratings: Ratings
    opinions: OpinionCache

    @property
    def evidence(self) -> Evidence:
        """What is proven for everybody."""
        return self.circles[-1].evidence

    def complaint(self, template: bytes) -> str | None:
        """What was said last against SQL that is blocked for whoever asks, perhaps nothing; None if it isn't."""
        return self.ratings.complaint(template, self.circles[0].audience)


@dataclass(slots=True)
class _ConnectorState:
    """What is known of one connector. It is changed by who holds `lock` alone, and read by those who share it."""

    connector: AnyRow
    read_at: float
    everybody: Circle
    veto: int
    """How many authors must call SQL wrong to block it."""
    revision: int | None = None
    ratings: Ratings = field(init=False)
    opinions: OpinionCache = field(init=False)
    lock: SharedLock = field(default_factory=SharedLock)
    audiences: dict[str, Circle] = field(default_factory=dict)
    """Those that have asked."""

    def __post_init__(self) -> None:
        self.ratings = Ratings(self.veto)
        self.opinions = OpinionCache(self.veto)

    def circles(self, audience: str | None) -> Sequence[Circle] | None:
        """What is proven for an audience and for everybody; None if that must be read first."""
        if audience is None:
            return (self.everybody,)
        own = self.audiences.get(audience)
        return None if own is None else (own, self.everybody)

    def follow(self, connection: Connection, audience: str | None = None) -> None:
        """Brings it to what the connection sees, and reads what is proven for an audience."""
        project, connector = self.connector.project_id, self.connector.id
        now = read_state(connection, connector)
        if self.revision is not None and now.full_revision <= self.revision < now.revision:
            ids = [each.id for each in runs.rated_after(connection, connector, self.revision)]
            known = proofs.proven(connection, project, connector, ids)
            names = self.ratings.take_in(ids, known, proofs.complaints(connection, project, connector, ids))
            for circle in (self.everybody, *self.audiences.values()):
                circle.study(connection, self.ratings.proven(circle.audience, names))
            self.opinions.forget(ids)
        elif now.revision != self.revision:
            known = proofs.proven(connection, project, connector)
            self.ratings = Ratings(self.veto, proofs.retained_complaints(connection, project, connector))
            self.ratings.take_in((), known, proofs.complaints(connection, project, connector))
            self.everybody.fill(connection, connector, self.ratings.proven(None))
            self.audiences.clear()
            self.opinions = OpinionCache(self.veto)
        self.revision = now.revision
        if audience is not None and audience not in self.audiences:
            self._read_audience(connection, audience)

    def _read_audience(self, connection: Connection, audience: str) -> None:
        circle = Circle(audience, self.everybody.evidence.apart())
        circle.fill(connection, self.connector.id, self.ratings.proven(audience))
        self.audiences[audience] = circle
        held = sum(map(len, self.audiences.values()))
        for each in list(self.audiences):
            if len(self.audiences) == 1 or (len(self.audiences) <= MAX_AUDIENCES and held <= MAX_PROOFS_OF_AUDIENCES):
                return
            held -= len(self.audiences.pop(each))


class Proofs:
    """The evidence of each connector of a project. It follows the store; values of columns are read now and then."""

    def __init__(self, queries: Queries, authors_to_veto: int) -> None:
        self._values = ColumnValues(queries)
        self._authors = authors_to_veto
        self._lock = threading.Lock()
        self._kept: dict[str, _ConnectorState] = {}
        self._loading: dict[str, threading.Lock] = {}

    @contextmanager
    def reading(
        self, connector: AnyRow, target: ToTarget, read: OpenConnection, audience: str | None = None
    ) -> Iterator[Reading]:
        """What is proven on a connector for everybody and for an audience, with the transaction that sees it. It does
        not change meanwhile."""
        kept = self._current(connector, target, read)
        while True:
            # In this order: who holds the lock sees at least what those before have seen.
            with kept.lock.shared(), read() as connection:
                state = read_state(connection, connector.id)
                circles = kept.circles(audience)
                if kept.revision == state.revision and circles is not None:
                    yield Reading(connection, state, circles, kept.ratings, kept.opinions)
                    return
            with kept.lock.alone(), read() as connection:
                kept.follow(connection, audience)

    def forget(self, connector_id: str) -> None:
        """Has everything about a connector read again."""
        with self._lock:
            self._kept.pop(connector_id, None)
        self._values.forget(connector_id)

    def close(self) -> None:
        """Stops reading values."""
        self._values.close()

    def _current(self, connector: AnyRow, target: ToTarget, read: OpenConnection) -> _ConnectorState:
        """What is known of a connector, with values that are fresh.

        The database of the connector is read by one thread; the others go on with what they have, if they have
        something. Neither a lock of the project nor a transaction of the store is held meanwhile.
        """
        with self._lock:
            kept = self._kept.get(connector.id)
            loading = self._loading.setdefault(connector.id, threading.Lock())
        usable = kept is not None and _identity(kept.connector) == _identity(connector)
        if usable and kept is not None and self._is_fresh(kept):
            return kept
        if not loading.acquire(blocking=not usable):
            assert kept is not None
            return kept
        try:
            with self._lock:
                newer = self._kept.get(connector.id)
            if newer is not None and _identity(newer.connector) == _identity(connector) and self._is_fresh(newer):
                return newer
            made = self._read(connector, newer, target, read)
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
    ) -> _ConnectorState:
        values = self._values.newest(connector.id)
        if values is None or before is None or before.everybody.evidence.values is values:
            values = self._values.read(connector.id, _identity(connector), target(connector))
        if before is not None and before.everybody.evidence.values is values:
            before.read_at = monotonic()
            return before
        made = _ConnectorState(
            connector,
            monotonic(),
            Circle(None, Evidence(connector_access.dialect_of(connector), values)),
            self._authors,
        )
        with read() as connection:
            made.follow(connection)
        return made

    def _is_fresh(self, kept: _ConnectorState) -> bool:
        is_newest = self._values.newest(kept.connector.id) in (None, kept.everybody.evidence.values)
        return is_newest and monotonic() - kept.read_at <= VALUES_TTL_SECONDS


def _identity(connector: AnyRow) -> tuple[str | None, tuple[str, ...]]:
    """What the values of a connector depend on, beside its data: its schema, and which columns are sensitive."""
    return connector.fingerprint, tuple(connector.options.get(connector_access.SENSITIVE, ()))
