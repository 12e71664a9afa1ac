"""The proofs of each connector, in memory: many callers read them, one brings them up to date.

With them are the SQL that people call wrong, and the values of columns: few are kept in memory, many are indexed on
disk in the background.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from types import MappingProxyType

from sqlalchemy import Connection

from heedful.caching import Bounded
from heedful.clock import from_stored
from heedful.errors import HeedfulError
from heedful.ledger import proven_sql
from heedful.ledger.opinions import FeedbackRow, SqlFeedbacks, counted_opinions
from heedful.ledger.proven_sql import Complaint, Proof, Wrong
from heedful.ledger.votes import suffices
from heedful.sql import records
from heedful.sql.databases.schema import TextValues
from heedful.sql.records import SENSITIVE, ConnectorState, dialect_of, read_state
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.ownership import Conditions, Person, has_unnamed_values, person
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.reuse.values import Column, Known, ValueIndex, Values
from heedful.sql.sandbox.pool import Queries, Target
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


Authors = frozenset[str | None]

VALUES_TTL_SECONDS = 600.0
"""How long the values of columns are taken as read; a name that is newer than that is not known, and refused."""

OF_EXAMPLES: Authors = frozenset(("golden examples",))
"""The author of golden examples, which have no other: all of them together have one vote."""

MAX_AUDIENCES = 2_000
MAX_PROOFS_OF_AUDIENCES = 20_000
"""Audiences of a connector whose proofs are kept in memory, and how many proofs of them. Others are read again when
they ask."""

ToTarget = Callable[[AnyRow], Target]
OpenConnection = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class Opinions:
    """Counts of the opinions about an execution."""

    positives: int = 0
    negatives: int = 0
    comment: str | None = None
    """The last comment by somebody who counts; as long as somebody says that it is wrong, theirs."""


NOTHING_SAID = Opinions()
MAX_OPINIONS = 20_000
"""Executions of a connector whose opinions are kept in memory."""


class OpinionCache:
    """The opinions about the executions of a connector."""

    def __init__(self, authors: int) -> None:
        self._authors = authors
        self._lock = threading.Lock()
        self._known: Bounded[str, Opinions] = Bounded(MAX_OPINIONS)

    def of(self, connection: Connection, project: int, ids: Sequence[str]) -> dict[str, Opinions]:
        """The opinions about executions, by id."""
        with self._lock:
            found = {name: known for name in ids if (known := self._known.get(name)) is not None}
        missing = [name for name in ids if name not in found]
        if missing:
            rows = SqlFeedbacks.on(connection, project).counting_for(missing)
            made = {name: self._counted(rows.get(name, ())) for name in missing}
            with self._lock:
                for name, opinions in made.items():
                    self._known.keep(name, opinions)
            found |= made
        return found

    def forget(self, ids: Iterable[str]) -> None:
        """Has the opinions about these executions read again."""
        with self._lock:
            for name in ids:
                self._known.pop(name, None)

    def _counted(self, feedback: Sequence[FeedbackRow]) -> Opinions:
        if not feedback:
            return NOTHING_SAID
        positive, negative = counted_opinions(feedback, self._authors)
        last = (negative or positive)[-1:]
        return Opinions(_author_count(positive), _author_count(negative), last[0].comment if last else None)


def _author_count(rows: list[FeedbackRow]) -> int:
    """The number of authors: one who rates hits of the same execution again and again counts once."""
    return len({row.author for row in rows if row.author is not None}) + sum(row.author is None for row in rows)


class Circle:
    """The proofs for one audience, or for everybody. Others neither dispute them nor learn from them."""

    def __init__(self, audience: str | None, evidence: Evidence) -> None:
        self.audience = audience
        self.evidence = evidence
        self.conditions = Conditions()
        self._authors_of: dict[str, Authors] = {}

    def __len__(self) -> int:
        return len(self._authors_of)

    def authors(self, proof: str) -> Authors:
        """The authors who have proven something, by its name among what is proven; nobody, if it isn't."""
        return self._authors_of.get(proof, frozenset())

    def fill(self, connection: Connection, connector: str, proven: Mapping[str, Authors | None]) -> None:
        """Studies these executions and the golden examples of its audience, and drops everything else."""
        # An example that was changed is another one: its time is part of its name.
        rows = records.examples_of(connection, connector, self.audience)
        examples = {f"{row.id}/{row.updated_at}": row for row in rows}
        gone: dict[str, Authors | None] = dict.fromkeys(self._authors_of)
        self.study(connection, gone | dict(proven) | dict.fromkeys(examples, OF_EXAMPLES), examples)

    def study(
        self,
        connection: Connection,
        authors_of: Mapping[str, Authors | None],
        examples: Mapping[str, AnyRow] = MappingProxyType({}),
    ) -> None:
        """Adds these proofs by these authors to the evidence, or removes them where the authors are None."""
        changed = {name: authors for name, authors in authors_of.items() if self._authors_of.get(name) != authors}
        for name in changed.keys() & self._authors_of.keys():
            self.evidence.remove(name)
            self.conditions.remove(name)
            del self._authors_of[name]
        new = {name: authors for name, authors in changed.items() if authors is not None}
        self._authors_of |= new
        for row in proven_sql.questions(connection, sorted(new.keys() - examples.keys())):
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
class ProofsSnapshot:
    """The proofs and complaints of a connector, as one moment of the store has them."""

    connection: Connection
    state: ConnectorState
    circles: Sequence[Circle]
    """The proofs for the audience that asks, if it is one, then those for everybody."""
    ratings: Ratings
    opinions: OpinionCache

    @property
    def evidence(self) -> Evidence:
        """The evidence for everybody."""
        return self.circles[-1].evidence

    def complaint(self, template: bytes) -> str | None:
        """The last comment against SQL that is blocked for whoever asks, perhaps empty; None if it isn't blocked."""
        return self.ratings.complaint(template, self.circles[0].audience)


@dataclass(slots=True)
class _ConnectorState:
    """The state of one connector. Who holds `lock` alone changes it, and those who share it read it."""

    connector: AnyRow
    read_at: float
    everybody: Circle
    veto: int
    """The number of authors who must call SQL wrong to block it."""
    revision: int | None = None
    ratings: Ratings = field(init=False)
    opinions: OpinionCache = field(init=False)
    lock: SharedLock = field(default_factory=SharedLock)
    audiences: dict[str, Circle] = field(default_factory=dict)
    """Those that have asked."""

    def circles(self, audience: str | None) -> Sequence[Circle] | None:
        """The proofs for an audience and for everybody; None if they must be read first."""
        if audience is None:
            return (self.everybody,)
        own = self.audiences.get(audience)
        return None if own is None else (own, self.everybody)

    def follow(self, connection: Connection, audience: str | None = None) -> None:
        """Brings it to what the connection sees, and reads what is proven for an audience."""
        project, connector = self.connector.project_id, self.connector.id
        now = read_state(connection, connector)
        if self.revision is not None and now.full_revision <= self.revision < now.revision:
            ids = [row.id for row in records.rated_after(connection, connector, self.revision)]
            known = proven_sql.proven(connection, project, connector, ids)
            names = self.ratings.take_in(ids, known, proven_sql.complaints(connection, project, connector, ids))
            for circle in (self.everybody, *self.audiences.values()):
                circle.study(connection, self.ratings.proven(circle.audience, names))
            self.opinions.forget(ids)
        elif now.revision != self.revision:
            known = proven_sql.proven(connection, project, connector)
            self.ratings = Ratings(self.veto, proven_sql.retained_complaints(connection, project, connector))
            self.ratings.take_in((), known, proven_sql.complaints(connection, project, connector))
            self.everybody.fill(connection, connector, self.ratings.proven(None))
            self.audiences.clear()
            self.opinions = OpinionCache(self.veto)
        self.revision = now.revision
        if audience is not None and audience not in self.audiences:
            circle = self.audiences[audience] = Circle(audience, self.everybody.evidence.apart())
            circle.fill(connection, connector, self.ratings.proven(audience))
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        held = sum(map(len, self.audiences.values()))
        while len(self.audiences) > 1 and (len(self.audiences) > MAX_AUDIENCES or held > MAX_PROOFS_OF_AUDIENCES):
            held -= len(self.audiences.pop(next(iter(self.audiences))))


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
    ) -> Iterator[ProofsSnapshot]:
        """The proofs on a connector for everybody and for an audience, with the transaction that sees them. They do
        not change meanwhile."""
        kept = self._current(connector, target, read)
        while True:
            # In this order: who holds the lock sees at least what those before have seen.
            with kept.lock.shared(), read() as connection:
                state = read_state(connection, connector.id)
                circles = kept.circles(audience)
                if kept.revision == state.revision and circles is not None:
                    yield ProofsSnapshot(connection, state, circles, kept.ratings, kept.opinions)
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
        """The state of a connector, with values that are fresh.

        The database of the connector is read by one thread; the others go on with what they have, if they have
        something. Neither a lock of the project nor a transaction of the store is held meanwhile.
        """
        with self._lock:
            kept = self._kept.get(connector.id)
            loading = self._loading.setdefault(connector.id, threading.Lock())
        usable = kept if kept is not None and _identity(kept.connector) == _identity(connector) else None
        if usable is not None and self._is_fresh(usable):
            return usable
        if not loading.acquire(blocking=usable is None):
            assert usable is not None
            return usable
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
        self, connector: AnyRow, before: _ConnectorState | None, target: ToTarget, read: OpenConnection
    ) -> _ConnectorState:
        values = self._values.newest(connector.id)
        if values is None or before is None or before.everybody.evidence.values is values:
            values = self._values.read(connector.id, _identity(connector), target(connector))
        if before is not None and before.everybody.evidence.values is values:
            before.read_at = monotonic()
            return before
        everybody = Circle(None, Evidence(dialect_of(connector), values))
        made = _ConnectorState(connector, monotonic(), everybody, self._authors)
        with read() as connection:
            made.follow(connection)
        return made

    def _is_fresh(self, kept: _ConnectorState) -> bool:
        is_newest = self._values.newest(kept.connector.id) in (None, kept.everybody.evidence.values)
        return is_newest and monotonic() - kept.read_at <= VALUES_TTL_SECONDS


def _identity(connector: AnyRow) -> tuple[str | None, tuple[str, ...]]:
    """Schema and sensitive columns of a connector: its values depend on them, and on its data."""
    return connector.fingerprint, tuple(connector.options.get(SENSITIVE, ()))


class Ratings:
    """The proofs that count, and the SQL templates that are blocked, since enough people say that they are wrong.

    Opinions about everybody's SQL count for all; those of an audience about its own, for that audience. To take
    executions in one by one or all at once is the same.
    """

    def __init__(self, authors: int, retained: Iterable[Wrong] = ()) -> None:
        self._authors = authors
        self._proofs: dict[str, Proof] = {}
        self._names: dict[bytes, set[str]] = defaultdict(set)
        self._complaints: dict[str, Wrong] = {}
        self._about: dict[bytes, set[str]] = defaultdict(set)
        self._retained: dict[bytes, list[Wrong]] = defaultdict(list)
        for wrong in retained:
            self._retained[wrong.template].append(wrong)
        self._of: dict[str | None, set[str]] = defaultdict(set)
        self._blocked: dict[bytes, dict[str | None, str | None]] = {}
        self._active: dict[str, Authors] = {}
        self._settle(list(self._retained))

    def complaint(self, template: bytes, audience: str | None) -> str | None:
        """The last comment against a template that is blocked for an audience, perhaps empty; None if it is not."""
        said = self._blocked.get(template, {})
        place = audience if audience in said else None
        return (said[place] or "") if place in said else None

    def proven(self, audience: str | None, names: Iterable[str] | None = None) -> dict[str, Authors | None]:
        """The authors who have proven executions for exactly this audience: all of them, or those of these names, with
        None for those that aren't proven for it. Blocked templates are not."""
        of = self._of.get(audience, set())
        return {name: self._active.get(name) if name in of else None for name in (of if names is None else names)}

    def take_in(self, ids: Collection[str], proofs: Mapping[str, Proof], complaints: Mapping[str, Wrong]) -> set[str]:
        """Replaces what is known of these executions; returns those that may be proven now, or no longer be."""
        touched: set[bytes] = set()
        for name in ids:
            if (proof := self._proofs.pop(name, None)) is not None:
                self._names[proof.template].discard(name)
                self._of[proof.audience].discard(name)
                self._active.pop(name, None)
                touched.add(proof.template)
            if (wrong := self._complaints.pop(name, None)) is not None:
                self._about[wrong.template].discard(name)
                touched.add(wrong.template)
        for name, proof in proofs.items():
            self._proofs[name] = proof
            self._names[proof.template].add(name)
            self._of[proof.audience].add(name)
            touched.add(proof.template)
        for name, wrong in complaints.items():
            self._complaints[name] = wrong
            self._about[wrong.template].add(name)
            touched.add(wrong.template)
        self._settle(touched)
        return {*ids, *(name for template in touched for name in self._names.get(template, ()))}

    def _settle(self, templates: Iterable[bytes]) -> None:
        for template in templates:
            said: dict[str | None, list[Complaint]] = {None: []}
            about = (self._complaints[name] for name in self._about.get(template, ()))
            for wrong in (*self._retained.get(template, ()), *about):
                said.setdefault(wrong.audience, []).extend(wrong.said)
            blocked: dict[str | None, str | None] = {}
            for audience, own in said.items():
                counting = own if audience is None else [*said[None], *own]
                if suffices([(complaint.kind, complaint.author) for complaint in counting], self._authors):
                    blocked[audience] = max(counting, key=lambda complaint: complaint.seq).comment
            self._blocked.pop(template, None)
            if blocked:
                self._blocked[template] = blocked
            for name in self._names.get(template, ()):
                proof = self._proofs[name]
                if blocked.keys() & {None, proof.audience}:
                    self._active.pop(name, None)
                else:
                    self._active[name] = proof.authors


logger = logging.getLogger("heedful.sql")

MAX_COLUMN_VALUES = 5_000_000
"""Values of one column that are indexed."""

BATCH_VALUES = 250_000
"""Values that are read by one query, which must not take longer than any other may."""

READING_SHARE = 0.02
"""The share of its time that a database may be read for an index, on average."""

MIN_SECONDS_BETWEEN = 600.0


class _Closed(Exception):
    """Nobody needs the values any more."""


@dataclass(slots=True)
class _ValuesState:
    """The values of one connector, and the state of reading them."""

    identity: Hashable
    """Of the connector: other values are those of another one."""
    version: str | None
    """The version of the data, where the database can tell."""
    text: TextValues
    values: Values
    index_due: float = 0.0
    indexing: bool = False


class ColumnValues:
    """The values of a project's connectors. They are read again when they may have changed.

    A column with more values than are kept in memory is read as a whole in the background. Until that is done, its
    first values are known.
    """

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._lock = threading.Lock()
        self._states: dict[str, _ValuesState] = {}
        self._closed = False

    def newest(self, connector_id: str) -> Values | None:
        """The values read last, without reading; None before that."""
        with self._lock:
            state = self._states.get(connector_id)
        return None if state is None else state.values

    def read(self, connector_id: str, identity: Hashable, target: Target) -> Values:
        """The values as they are now; the same object if they have not changed."""
        version = self._queries.data_version(target)
        with self._lock:
            state = self._states.get(connector_id)
        if state is not None and state.identity != identity:
            state = None
        if state is not None and isinstance(state.values, ValueIndex) and not state.values.is_usable:
            state = None
        if state is not None and version is not None and version == state.version:
            return state.values
        text = self._queries.text_values(target)
        if state is None:
            state = _ValuesState(identity, version, text, Known(text.values, text.columns))
        elif text != state.text and not (text.partial and isinstance(state.values, ValueIndex)):
            state.values = Known(text.values, text.columns)
        state.version, state.text = version, text
        with self._lock:
            self._states[connector_id] = state
            start = bool(text.partial) and not state.indexing and monotonic() >= state.index_due
            state.indexing = state.indexing or start
        if start:
            threading.Thread(target=self._index, args=(state, target), name="heedful-values", daemon=True).start()
        return state.values

    def forget(self, connector_id: str) -> None:
        """Has the values of a connector read again."""
        with self._lock:
            self._states.pop(connector_id, None)

    def close(self) -> None:
        """Stops reading."""
        self._closed = True

    def _index(self, state: _ValuesState, target: Target) -> None:
        began = monotonic()
        try:
            made = self._indexed(state.text, target)
        except _Closed:
            return
        except (HeedfulError, sqlite3.Error):
            # The first values of each column stay known; it is tried again.
            logger.warning("the values of a connector could not be indexed", exc_info=True)
            made = None
        with self._lock:
            state.values = made or state.values
            state.index_due = monotonic() + max(MIN_SECONDS_BETWEEN, (monotonic() - began) / READING_SHARE)
            state.indexing = False

    def _indexed(self, text: TextValues, target: Target) -> ValueIndex:
        made = ValueIndex(text.columns)
        for column, values in text.values.items():
            if column not in text.partial:
                made.add(column, values)
                continue
            try:
                self._read_column(made, column, target)
            except HeedfulError as error:
                _check_expected(error)
                # What came in time is known.
                logger.warning("only some values of %s could be indexed: %s", ".".join(column), error.message)
        made.finish()
        return made

    def _read_column(self, made: ValueIndex, column: Column, target: Target) -> None:
        """Reads the values of a column in their order, so many at a time; where sorting takes too long, in any order,
        as many as come in time."""

        def take(part: list[str]) -> None:
            if self._closed:
                raise _Closed
            made.add(column, part)

        last: str | None = None
        for read in range(0, MAX_COLUMN_VALUES, BATCH_VALUES):
            rows = min(BATCH_VALUES, MAX_COLUMN_VALUES - read)
            try:
                last = self._queries.stream_values(target, column, rows, take, after=last)
            except HeedfulError as error:
                _check_expected(error)
                if read:
                    raise
                self._queries.stream_values(target, column, MAX_COLUMN_VALUES, take, ordered=False)
                return
            if last is None:
                return


def _check_expected(error: HeedfulError) -> None:
    """Raises an error that is no limit of the database or its user."""
    if error.code not in ("query_timeout", "database_forbidden", "read_only"):
        raise error
