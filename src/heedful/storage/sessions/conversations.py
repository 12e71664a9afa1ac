"""Sessions, messages and entries in SQL tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import orjson
from sqlalchemy import Connection, Select, Table, bindparam, delete, func, insert, select, update

from heedful.model import Metadata
from heedful.storage import facts
from heedful.storage.bulk import insert_many
from heedful.storage.filters import SESSIONS, selections
from heedful.storage.prepared import Prepared
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import entries, feedbacks, messages, outbox, session_tags, sessions
from heedful.storage.sessions.base import EntryRow, MessageRow, Removed, SessionRow, Uses
from heedful.storage.sessions.feedbacks import SqlFeedbacks

_TOUCH = Prepared(
    update(sessions)
    .where(sessions.c.project_id == bindparam("project"), sessions.c.id == bindparam("session"))
    .values(updated_at=bindparam("now"))
    .returning(sessions.c.seq)
)
_ADD_ENTRY = Prepared(insert(entries), [column.name for column in entries.c if column.name != "seq"])


class SqlConversations:
    """See `base.Conversations`."""

    def __init__(self, connection: Connection, project: int) -> None:
        self._connection = connection
        self._project = project

    def session(self, session_id: str) -> SessionRow | None:
        row = self._connection.execute(self._session(session_id)).first()
        return None if row is None else _session(row)

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        if self._seq(session_id) is not None:
            return False
        made = self._connection.execute(
            insert(sessions)
            .values(project_id=self._project, id=session_id, metadata=metadata, created_at=at, updated_at=at)
            .returning(sessions.c.seq)
        )
        self._tag(made.scalar_one(), metadata)
        return True

    def touch(self, session_id: str, at: int) -> bool:
        return self._touched(session_id, at) is not None

    def sessions(self, after: int | None, limit: int, where: Metadata | None) -> list[SessionRow]:
        statement = select(sessions).where(sessions.c.project_id == self._project)
        for selection in selections(self._project, where or {}, SESSIONS):
            statement = statement.where(sessions.c.seq.in_(selection))
        if after is not None:
            statement = statement.where(sessions.c.seq < after)
        rows = self._connection.execute(statement.order_by(sessions.c.seq.desc()).limit(limit))
        return [_session(row) for row in rows]

    def set_metadata(self, seen: SessionRow, metadata: Metadata, at: int) -> bool:
        self._connection.execute(
            update(sessions).where(sessions.c.seq == seen.number).values(metadata=metadata, updated_at=at)
        )
        self._connection.execute(delete(session_tags).where(session_tags.c.session_seq == seen.number))
        self._tag(seen.number, metadata)
        return True

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None:
        session = self._touched(session_id, max(message.at for message in new))
        insert_many(
            self._connection,
            messages,
            insert(messages),
            [
                {"id": each.id, "session_seq": session, "role": each.role, "content": each.content, "at": each.at}
                for each in new
            ],
        )

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]:
        rows = self._page(messages, session_id, after, limit, newest_first)
        return [MessageRow(row.id, row.role, row.content, row.at, row.seq) for row in rows]

    def add_entry(self, new: EntryRow) -> None:
        values = asdict(new)
        values["session_seq"] = self._touched(values.pop("session_id"), new.at)
        for name in ("used", "usage"):
            values[name] = None if values[name] is None else orjson.dumps(values[name]).decode()
        del values["number"]
        _ADD_ENTRY(self._connection, **values)

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        statement = self._entries().where(sessions.c.id == session_id, entries.c.id == qa_id)
        row = self._connection.execute(statement).first()
        return None if row is None else _entry(row)

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]:
        rows = self._page(entries, session_id, after, limit, newest_first)
        return [_entry(row, session_id) for row in rows]

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        statement = self._entries().order_by(entries.c.seq)
        if session_ids is None:
            yield from map(_entry, self._connection.execute(statement))
            return
        for run in batches(session_ids):
            yield from map(_entry, self._connection.execute(statement.where(sessions.c.id.in_(run))))

    def set_used(self, qa_id: str, used: Uses) -> None:
        self._connection.execute(update(entries).where(entries.c.id == qa_id).values(used=used))

    def delete(self, session_id: str, at: int) -> Removed | None:
        seq = self._seq(session_id)
        if seq is None:
            return None
        opinions = SqlFeedbacks(self._connection, self._project)
        stood = list(opinions.of_sessions([session_id]))
        opinions.withdraw(stood, None, at)
        counted = {table: self._count(table, seq) for table in (messages, entries)}
        for table in (messages, entries, feedbacks, outbox, session_tags):
            self._connection.execute(delete(table).where(table.c.session_seq == seq))
        self._connection.execute(delete(sessions).where(sessions.c.seq == seq))
        return Removed(counted[messages], counted[entries], stood)

    def _session(self, session_id: str) -> Select[Any]:
        return select(sessions).where(sessions.c.project_id == self._project, sessions.c.id == session_id)

    def _seq(self, session_id: str) -> int | None:
        return self._connection.execute(
            select(sessions.c.seq).where(sessions.c.project_id == self._project, sessions.c.id == session_id)
        ).scalar()

    def _touched(self, session_id: str, at: int) -> int | None:
        row = _TOUCH(self._connection, project=self._project, session=session_id, now=at).first()
        return None if row is None else int(row[0])

    def _entries(self) -> Select[Any]:
        return (
            select(entries, sessions.c.id.label("session_id"))
            .join(sessions, sessions.c.seq == entries.c.session_seq)
            .where(sessions.c.project_id == self._project)
        )

    def _page(
        self, table: Table, session_id: str, after: int | None, limit: int, newest_first: bool
    ) -> Iterable[AnyRow]:
        statement = select(table).where(table.c.session_seq == self._seq(session_id))
        if after is not None:
            statement = statement.where(table.c.seq < after if newest_first else table.c.seq > after)
        return self._connection.execute(
            statement.order_by(table.c.seq.desc() if newest_first else table.c.seq).limit(limit)
        )

    def _tag(self, seq: int, metadata: Metadata) -> None:
        tags = [{"session_seq": seq, "project_id": self._project, **tag} for tag in facts.flattened(metadata)]
        if tags:
            self._connection.execute(insert(session_tags), tags)

    def _count(self, table: Table, seq: int) -> int:
        statement = select(func.count()).select_from(table).where(table.c.session_seq == seq)
        return int(self._connection.execute(statement).scalar_one())


def _session(row: AnyRow) -> SessionRow:
    return SessionRow(row.seq, row.id, row.metadata, row.created_at, row.updated_at)


def _entry(row: AnyRow, session_id: str | None = None) -> EntryRow:
    return EntryRow(
        id=row.id,
        session_id=row.session_id if session_id is None else session_id,
        question=row.question,
        answer=row.answer,
        context=row.context,
        at=row.at,
        dataset=row.dataset,
        recall_id=row.recall_id,
        used=None if row.used is None else [(fact, share, links) for fact, share, links in row.used],
        model=row.model,
        usage=row.usage,
        number=row.seq,
    )
