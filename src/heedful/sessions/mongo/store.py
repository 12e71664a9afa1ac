"""Sessions in a MongoDB database.

On a replica set or a sharded cluster, each `write` is a transaction, and each `read` sees one moment. Conflicts
between writers, lost connections and changes of the primary are retried for `RETRY_SECONDS` seconds.

A standalone server has no transactions. There the writers of a project take a lease, and each write is a row of steps,
of which readers may see the first ones early. If a step fails, or the process or the server dies, the next writer
first fixes what the row left open (see `repair`): an opinion whose words are stored is completed, a retraction
that is in the ledger takes effect, and what is left of a deleted session is removed. So nothing that was acknowledged
is lost, and nothing stays half done; what was not acknowledged may be there or not, and an idempotency key tells
which.

Threads may share a store. A forked child gets connections of its own; a `client` that was passed in is the caller's
to replace after a fork, as pymongo asks.
"""

from __future__ import annotations

import random
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pymongo import MongoClient, ReadPreference, WriteConcern
from pymongo.database import Database
from pymongo.errors import ConnectionFailure, PyMongoError, ServerSelectionTimeoutError
from pymongo.read_concern import ReadConcern

from heedful.errors import Unavailable
from heedful.sessions.mongo import repair
from heedful.sessions.mongo.collections import CODEC, Document, MongoChanges, View, create_indexes
from heedful.sessions.mongo.connection import (
    CLIENTS,
    address,
    connect,
    is_duplicate,
    is_transient,
    translate_error,
    translate_errors,
)
from heedful.sessions.mongo.conversations import MongoConversations
from heedful.sessions.mongo.erasure import MongoErasure
from heedful.sessions.mongo.feedback import MongoFeedbacks
from heedful.sessions.mongo.outbox import MongoOutbox, ProjectLeases
from heedful.sessions.mongo.reports import exported
from heedful.sessions.session_store import ExportQuery, Rows
from heedful.threads import leave_parent_when_forked

Result = TypeVar("Result")

RETRY_SECONDS = 25.0  # Seconds for which a change is retried.
MAX_DUPLICATE_RETRIES = 3  # How often a change is retried because another writer stored the same key first.


@dataclass(slots=True)
class ServerState:
    """The properties of a server, shared by all stores of one client."""

    transactions: bool | None = None
    prepared: set[str] = field(default_factory=set)  # Databases whose indexes exist.


_SERVERS: weakref.WeakKeyDictionary[MongoClient[Document], ServerState] = weakref.WeakKeyDictionary()


class MongoTransaction:
    """A transaction of the server, or a lease where it has none."""

    connection = None

    def __init__(self, view: View) -> None:
        self.view = view
        self.conversations = MongoConversations(view)
        self.feedbacks = MongoFeedbacks(view)
        self.outbox = MongoOutbox(view)
        self.erasure = MongoErasure(view)
        self.changes = MongoChanges(view)

    def exported(self, table: str, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        return exported(self.view, table, query, after, limit)


class MongoSessionStore:
    """The sessions of one project in a MongoDB database.

    The first call connects. `options` are those of `MongoClient` and go before those of the URL.
    """

    remote = True

    def __init__(
        self,
        url: str,
        project: str,
        *,
        client: MongoClient[Document] | None = None,
        database: str | None = None,
        **options: Any,
    ) -> None:
        self.name, self._database_name = address(url, database)
        self._url = url
        self._options = options
        self._project = project
        self._owned = client is None
        self._closed = False
        self._client = self._connected() if client is None else client
        self._reset()
        leave_parent_when_forked(self)

    def __repr__(self) -> str:
        return f"MongoSessionStore({self.name!r}, project={self._project!r})"

    def read(self, body: Callable[[MongoTransaction], Result]) -> Result:
        return self._retrying(lambda until: self._reading(body))

    def write(self, body: Callable[[MongoTransaction], Result]) -> Result:
        def attempt(until: float) -> Result:
            if self._database_name not in self._server.prepared:
                create_indexes(self._database)
                self._server.prepared.add(self._database_name)
            if self._has_transactions():
                return self._in_transaction(body, until)
            return self._with_lease(body, until)

        return self._retrying(attempt)

    def projects(self) -> list[str]:
        """The names of all projects that have sessions in this database, in order."""
        return sorted(self._retrying(lambda until: self._database["sessions"].distinct("project")))

    def unprocessed_projects(self) -> list[str]:
        """The names of all projects that have sessions with feedback which `improve` has not seen."""
        waiting = {"unprocessed_event": {"$exists": True}}
        return sorted(self._retrying(lambda until: self._database["sessions"].distinct("project", waiting)))

    def check(self) -> str:
        def find(transaction: MongoTransaction) -> str:
            return str(repair.find_inconsistencies(transaction.view)) or "ok"

        # Under a lease, so that a write in progress doesn't look like an inconsistency.
        return self._retrying(
            lambda until: self._reading(find) if self._has_transactions() else self._with_lease(find, until)
        )

    def repair(self) -> str:
        """Fixes what `check` finds; returns a description, or ""."""
        return self.write(lambda t: repair.repair(t.view))

    def close(self) -> None:
        if self._owned and not self._closed:
            if self._options:
                self._client.close()
            else:
                CLIENTS.release(self._url)
        self._closed = True

    def _connected(self) -> MongoClient[Document]:
        # A client with its own options is not shared.
        return connect(self._url, **self._options) if self._options else CLIENTS.borrow(self._url)

    def _reset(self) -> None:
        self._server = _SERVERS.setdefault(self._client, ServerState())
        self._leases = ProjectLeases(self._project)

    def leave_parent(self) -> None:
        CLIENTS.leave_parent()
        if self._owned and not self._closed:
            # Not closed, which would use the parent's connections.
            self._inherited = self._client
            self._client = self._connected()
        self._reset()

    @property
    def _database(self) -> Database[Document]:
        durable = None if self._client.write_concern.document else WriteConcern("majority", j=True)
        return self._client.get_database(self._database_name, codec_options=CODEC, write_concern=durable)

    def _retrying(self, attempt: Callable[[float], Result]) -> Result:
        if self._closed:
            raise Unavailable(f"{self.name} is closed", code="store_closed", remedy="Open it again")
        until = time.monotonic() + RETRY_SECONDS
        failures = duplicates = 0
        with translate_errors(self.name):
            while True:
                try:
                    return attempt(until)
                except PyMongoError as error:
                    failures += 1
                    duplicates += is_duplicate(error)
                    if duplicates > MAX_DUPLICATE_RETRIES or time.monotonic() > until or not self._is_retryable(error):
                        raise
                time.sleep(random.uniform(0, min(0.5, 0.002 * 2**failures)))

    def _is_retryable(self, error: PyMongoError) -> bool:
        if isinstance(error, ServerSelectionTimeoutError):
            # Servers without a primary are about to elect one.
            return self._client.topology_description.has_known_servers
        return is_transient(error) or is_duplicate(error)

    def _has_transactions(self) -> bool:
        if self._server.transactions is None:
            hello = self._client.admin.command("hello")
            self._server.transactions = "setName" in hello or hello.get("msg") == "isdbgrid"
        return self._server.transactions

    def _reading(self, body: Callable[[MongoTransaction], Result]) -> Result:
        if not self._has_transactions():
            return body(MongoTransaction(View(self._database, self._project, None)))
        with self._client.start_session(snapshot=True) as session:
            return body(MongoTransaction(View(self._database, self._project, session)))

    def _in_transaction(self, body: Callable[[MongoTransaction], Result], until: float) -> Result:
        database = self._database
        with self._client.start_session() as session:
            # Not `with_transaction`: it retries a lost server for five times as long, and reports it as busy.
            # Leaving the session rolls back a transaction that was not committed.
            session.start_transaction(ReadConcern("snapshot"), database.write_concern, ReadPreference.PRIMARY)
            result = body(MongoTransaction(View(database, self._project, session)))
            while True:
                try:
                    session.commit_transaction()
                    return result
                except PyMongoError as error:
                    unknown = error.has_error_label("UnknownTransactionCommitResult")
                    if not unknown or time.monotonic() > until or not self._is_retryable(error):
                        raise

    def _with_lease(self, body: Callable[[MongoTransaction], Result], until: float) -> Result:
        database = self._database
        is_clean = self._leases.take(database, until)
        view = View(self._database, self._project, None)
        try:
            if not is_clean:
                repair.repair(view)
                view.has_written = False
            result = body(MongoTransaction(view))
        except Exception as error:
            self._cut_off(view, error)
            if view.has_written and isinstance(error, PyMongoError):
                # Not retried: part of it is stored.
                raise translate_error(error, self.name) from error
            raise
        except BaseException:
            self._leases.abandon()
            raise
        self._leases.release(database)
        return result

    def _cut_off(self, view: View, error: Exception) -> None:
        """Ends a lease in which `error` was raised."""
        if isinstance(error, ConnectionFailure):
            self._leases.abandon()
            return
        try:
            if view.has_written:
                repair.repair(view)
        except PyMongoError:
            self._leases.abandon()
            return
        self._leases.release(self._database)
