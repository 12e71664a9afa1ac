"""Sessions in the tables of a `Database`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection

from heedful.storage import exports, scopes
from heedful.storage.database import Database
from heedful.storage.exports import Rows, Wanted
from heedful.storage.prepared import Direct
from heedful.storage.sessions.conversations import SqlConversations
from heedful.storage.sessions.erasing import SqlErasure
from heedful.storage.sessions.feedbacks import SqlFeedbacks
from heedful.storage.sessions.outbox import SqlOutbox

Result = TypeVar("Result")

NOBODY = -1
"""The number of a project that nothing was written to yet."""


class SqlTransaction:
    """A transaction of the database; `connection` may be used for more in the same one."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    @property
    def connection(self) -> Connection:
        return self._direct.connection

    @cached_property
    def conversations(self) -> SqlConversations:
        return SqlConversations(self._direct, self._project)

    @cached_property
    def feedbacks(self) -> SqlFeedbacks:
        return SqlFeedbacks(self._direct, self._project)

    @cached_property
    def outbox(self) -> SqlOutbox:
        return SqlOutbox(self._direct, self._project)

    @property
    def erasure(self) -> SqlErasure:
        return SqlErasure(self._direct, self._project)

    @property
    def exports(self) -> SqlExports:
        return SqlExports(self._direct, self._project)


class SqlExports:
    """See `base.Exports`."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    def page(self, table: str, wanted: Wanted, after: str | None, limit: int) -> tuple[Rows, str | None]:
        return exports.page(self._direct.connection, self._project, table, wanted, after, limit)


class SqlSessionStore:
    """The sessions of one project of a database, which the caller closes."""

    def __init__(self, database: Database, project: str, now: Callable[[], int]) -> None:
        self.name = database.name
        self._database = database
        self._project = project
        self._now = now
        self._number: int | None = None

    def read(self, body: Callable[[SqlTransaction], Result]) -> Result:
        with self._database.direct(self._project, write=False) as direct:
            return body(SqlTransaction(direct, self._found(direct)))

    def write(self, body: Callable[[SqlTransaction], Result]) -> Result:
        with self._database.direct(self._project, write=True) as direct:
            number = self._number or scopes.ensure_project(direct.connection, self._project, self._now())
            result = body(SqlTransaction(direct, number))
        # Kept only now: a transaction that is rolled back takes a new project with it.
        self._number = number
        return result

    def check(self) -> str:
        return self._database.integrity()

    def repair(self) -> str:
        """Nothing can be half done where every change is a transaction."""
        return ""

    def close(self) -> None:
        """Nothing is held open here."""

    def _found(self, direct: Direct) -> int:
        if self._number is None:
            self._number = scopes.project_id(direct.connection, self._project)
        return NOBODY if self._number is None else self._number
