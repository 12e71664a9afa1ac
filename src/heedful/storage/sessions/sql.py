"""The session store in the tables of a `Database`, and its outbox of alerts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection, func, insert, select, update

from heedful.storage import exports, scopes
from heedful.storage.database import Database
from heedful.storage.exports import ExportQuery, Rows
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.rows import AnyRow, Direct
from heedful.storage.schema import outbox, sessions
from heedful.storage.sessions.base import AlertRow
from heedful.storage.sessions.conversations import SqlConversations
from heedful.storage.sessions.erasing import SqlErasure

Result = TypeVar("Result")

NO_PROJECT = -1
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

    def page(self, table: str, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        return exports.page(self._direct.connection, self._project, table, query, after, limit)


class SqlSessionStore:
    """The sessions of one project of a database, which the caller closes."""

    remote = False

    def __init__(self, database: Database, project: str, now: Callable[[], int]) -> None:
        self.name = database.name
        self._database = database
        self._project = project
        self._now = now
        self._number: int | None = None

    def read(self, body: Callable[[SqlTransaction], Result]) -> Result:
        with self._database.direct(self._project, write=False) as direct:
            return body(SqlTransaction(direct, self._project_number(direct)))

    def write(self, body: Callable[[SqlTransaction], Result]) -> Result:
        with self._database.direct(self._project, write=True) as direct:
            number = self._number or scopes.ensure_project(direct.connection, self._project, self._now())
            result = body(SqlTransaction(direct, number))
        # Cached only after the commit: a rollback would remove a new project.
        self._number = number
        return result

    def check(self) -> str:
        return self._database.integrity()

    def repair(self) -> str:
        """Nothing to check: every change is a transaction."""
        return ""

    def close(self) -> None:
        """Nothing to close."""

    def _project_number(self, direct: Direct) -> int:
        if self._number is None:
            self._number = scopes.project_id(direct.connection, self._project)
        return NO_PROJECT if self._number is None else self._number


class SqlOutbox:
    """See `base.Outbox`."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    def add(self, session_id: str | None, new: Sequence[AlertRow]) -> None:
        if not new:
            return
        seq = None
        if session_id is not None:
            session = select(sessions.c.seq).where(sessions.c.project_id == self._project, sessions.c.id == session_id)
            seq = self._direct.connection.execute(session).scalar()
        self._direct.connection.execute(
            insert(outbox),
            [
                {
                    "id": alert.id,
                    "project_id": self._project,
                    "session_seq": seq,
                    "channel": alert.channel,
                    "payload": alert.payload,
                    "created_at": alert.created_at,
                    "attempts": 0,
                    "next_at": alert.next_at,
                }
                for alert in new
            ],
        )

    def claim(self, channels: Sequence[str], now: int, until: int, limit: int) -> list[AlertRow]:
        due = (
            select(outbox)
            .where(outbox.c.project_id == self._project, outbox.c.next_at <= now, outbox.c.channel.in_(channels))
            .order_by(outbox.c.next_at, outbox.c.seq)
            .limit(limit)
        )
        claimed = [_alert(row) for row in self._direct.connection.execute(due)]
        self._direct.connection.execute(
            update(outbox).where(outbox.c.id.in_([alert.id for alert in claimed])).values(next_at=until)
        )
        return claimed

    def settle(
        self, alert_id: str, attempts: int, next_at: int | None, delivered_at: int | None, error: str | None
    ) -> None:
        self._direct.connection.execute(
            update(outbox)
            .where(outbox.c.project_id == self._project, outbox.c.id == alert_id)
            .values(attempts=attempts, next_at=next_at, delivered_at=delivered_at, error=error)
        )

    def due_at(self, channels: Sequence[str]) -> int | None:
        return self._direct.connection.execute(
            select(func.min(outbox.c.next_at)).where(
                outbox.c.project_id == self._project, outbox.c.next_at.is_not(None), outbox.c.channel.in_(channels)
            )
        ).scalar()

    def list(self, after: int | None, limit: int, pending: bool) -> list[AlertRow]:
        statement = select(outbox).where(outbox.c.project_id == self._project)
        if pending:
            statement = statement.where(outbox.c.next_at.is_not(None))
        if after is not None:
            statement = statement.where(outbox.c.seq < after)
        rows = self._direct.connection.execute(statement.order_by(outbox.c.seq.desc()).limit(limit))
        return [_alert(row) for row in rows]

    def get(self, alert_id: str) -> AlertRow | None:
        row = self._direct.connection.execute(
            select(outbox).where(outbox.c.project_id == self._project, outbox.c.id == alert_id)
        ).first()
        return None if row is None else _alert(row)


def _alert(row: AnyRow) -> AlertRow:
    return AlertRow(
        id=row.id,
        channel=row.channel,
        payload=row.payload,
        created_at=row.created_at,
        attempts=row.attempts,
        next_at=row.next_at,
        delivered_at=row.delivered_at,
        error=row.error,
        number=row.seq,
    )
