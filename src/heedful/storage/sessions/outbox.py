"""Alerts on their way, in an SQL table."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, insert, select, update

from heedful.storage.prepared import Direct
from heedful.storage.rows import AnyRow
from heedful.storage.schema import outbox, sessions
from heedful.storage.sessions.base import AlertRow


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
