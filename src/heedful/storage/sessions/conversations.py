"""Sessions, messages and entries in SQL tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Any

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from heedful.model import Metadata
from heedful.storage import external_ids, facts, tallies
from heedful.storage.feedback import SqlFeedbacks, touch_session
from heedful.storage.filters import SESSIONS, selections
from heedful.storage.rows import MAX_ROWS, Direct, Prepared, batches, insert_many, unpacked
from heedful.storage.schema import entries, feedbacks, messages, outbox, session_tags, sessions
from heedful.storage.schema import external_ids as external_id_rows
from heedful.storage.sessions.base import OPINION_ROWS, EntryRow, MessageRow, Removed, SessionRow, Uses

_ENTRY_COLUMNS = [column.name for column in entries.c if column.name != "seq"]

_THIS = (sessions.c.project_id == bindparam("project")) & (sessions.c.id == bindparam("session"))
_SESSION_ROW = (sessions.c.seq, sessions.c.id, sessions.c.metadata, sessions.c.created_at, sessions.c.updated_at)
_MESSAGE_ROW = (messages.c.id, messages.c.role, messages.c.content, messages.c.at, messages.c.seq)
_ENTRY_ROW = (
    *(entries.c.id, entries.c.question, entries.c.answer, entries.c.context, entries.c.at, entries.c.dataset),
    *(entries.c.recall_id, entries.c.used, entries.c.model, entries.c.usage, external_id_rows.c.external_id),
    entries.c.seq,
)
_ENTRIES = entries.outerjoin(
    external_id_rows, (external_id_rows.c.target_id == entries.c.id) & (external_id_rows.c.kind == "entry")
)

_SEQ = Prepared(select(sessions.c.seq).where(_THIS))
_SESSION = Prepared(select(*_SESSION_ROW).where(_THIS))
_ADD_ENTRY = Prepared(insert(entries), _ENTRY_COLUMNS)
_IS_ENTRY = _THIS & (entries.c.id == bindparam("entry"))
_HAS_ENTRY = Prepared(select(entries.c.seq).join(sessions, sessions.c.seq == entries.c.session_seq).where(_IS_ENTRY))
_SELECT_ENTRIES = select(sessions.c.id, *_ENTRY_ROW).select_from(
    _ENTRIES.join(sessions, sessions.c.seq == entries.c.session_seq)
)
_ENTRY = Prepared(_SELECT_ENTRIES.where(_IS_ENTRY))


class SqlConversations:
    """See `base.Conversations`."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    @property
    def _connection(self) -> Connection:
        return self._direct.connection

    def session(self, session_id: str) -> SessionRow | None:
        rows = self._direct.run(_SESSION, project=self._project, session=session_id)
        return _session(rows[0]) if rows else None

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        if self._seq(session_id) is not None:
            return False
        inserted = self._connection.execute(
            insert(sessions)
            .values(project_id=self._project, id=session_id, metadata=metadata, created_at=at, updated_at=at)
            .returning(sessions.c.seq)
        )
        self._tag(inserted.scalar_one(), metadata)
        return True

    def touch(self, session_id: str, at: int) -> bool:
        return touch_session(self._direct, self._project, session_id, at) is not None

    def sessions(self, after: int | None, limit: int, where: Metadata | None) -> list[SessionRow]:
        statement = select(*_SESSION_ROW).where(sessions.c.project_id == self._project)
        for selection in selections(self._project, where or {}, SESSIONS):
            statement = statement.where(sessions.c.seq.in_(selection))
        if after is not None:
            statement = statement.where(sessions.c.seq < after)
        rows = self._connection.execute(statement.order_by(sessions.c.seq.desc()).limit(limit))
        return [_session(row) for row in rows]

    def set_metadata(self, current: SessionRow, metadata: Metadata, at: int) -> bool:
        self._connection.execute(
            update(sessions).where(sessions.c.seq == current.number).values(metadata=metadata, updated_at=at)
        )
        changed = {key for key, _ in _tags(current.metadata) ^ _tags(metadata)}
        with tallies.changing(self._connection, self._project, sessions=[current.number], only_by=changed):
            self._connection.execute(delete(session_tags).where(session_tags.c.session_seq == current.number))
            self._tag(current.number, metadata)
        return True

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None:
        session = touch_session(self._direct, self._project, session_id, max(message.at for message in new))
        insert_many(
            self._connection,
            messages,
            insert(messages),
            [
                {
                    "id": message.id,
                    "session_seq": session,
                    "role": message.role,
                    "content": message.content,
                    "at": message.at,
                }
                for message in new
            ],
        )

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]:
        return [MessageRow(*row) for row in self._page(messages, _MESSAGE_ROW, session_id, after, limit, newest_first)]

    def message(self, message_id: str, session_id: str | None = None) -> MessageRow | None:
        statement = (
            select(*_MESSAGE_ROW)
            .join(sessions, sessions.c.seq == messages.c.session_seq)
            .where(sessions.c.project_id == self._project, messages.c.id == message_id)
        )
        if session_id is not None:
            statement = statement.where(sessions.c.id == session_id)
        row = self._connection.execute(statement).first()
        return None if row is None else MessageRow(*row)

    def set_content(self, message_id: str, content: str) -> None:
        self._connection.execute(update(messages).where(self._own_message(message_id)).values(content=content))

    def delete_message(self, message_id: str) -> None:
        self._connection.execute(delete(messages).where(self._own_message(message_id)))

    def _own_message(self, message_id: str) -> ColumnElement[bool]:
        own = select(sessions.c.seq).where(sessions.c.project_id == self._project)
        return (messages.c.id == message_id) & messages.c.session_seq.in_(own)

    def add_entry(self, new: EntryRow) -> bool:
        session = touch_session(self._direct, self._project, new.session_id, new.at)
        if session is None:
            return False
        values = {name: getattr(new, name) for name in _ENTRY_COLUMNS if name != "session_seq"}
        values["session_seq"] = session
        for name in ("used", "usage"):
            values[name] = None if values[name] is None else orjson.dumps(values[name]).decode()
        self._direct.run(_ADD_ENTRY, **values)
        if new.external_id is not None:
            external_ids.add(self._connection, self._project, "entry", new.external_id, new.id, new.at)
        return True

    def entry_id(self, session_id: str, qa_id: str) -> str | None:
        if self._has_entry(session_id, qa_id):
            return qa_id
        target = external_ids.target(self._connection, self._project, "entry", qa_id)
        return target if target is not None and self._has_entry(session_id, target) else None

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        name = self.entry_id(session_id, qa_id)
        rows = [] if name is None else self._direct.run(_ENTRY, project=self._project, session=session_id, entry=name)
        return _entry(*rows[0]) if rows else None

    def external_entry(self, external_id: str) -> EntryRow | None:
        conditions = (
            external_id_rows.c.project_id == self._project,
            external_id_rows.c.kind == "entry",
            external_id_rows.c.external_id == external_id,
        )
        rows = self._connection.execute(_SELECT_ENTRIES.where(*conditions))
        return next(starmap(_entry, rows), None)

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]:
        rows = self._page(entries, _ENTRY_ROW, session_id, after, limit, newest_first, _ENTRIES)
        return [_entry(session_id, *row) for row in rows]

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        statement = _SELECT_ENTRIES.where(sessions.c.project_id == self._project).order_by(entries.c.seq)
        if session_ids is None:
            yield from starmap(_entry, self._connection.execute(statement))
            return
        for run in batches(session_ids):
            yield from starmap(_entry, self._connection.execute(statement.where(sessions.c.id.in_(run))))

    def set_used(self, qa_id: str, used: Uses) -> None:
        self._connection.execute(update(entries).where(entries.c.id == qa_id).values(used=used))

    def delete(self, session_id: str, at: int) -> Removed | None:
        seq = self._seq(session_id)
        if seq is None:
            return None
        opinions = SqlFeedbacks(self._direct, self._project)
        rows = opinions.in_session(seq, MAX_ROWS // OPINION_ROWS)
        withdrawn = [row for row in rows if row.active]
        opinions.withdraw(withdrawn, None, at)
        self._connection.execute(delete(feedbacks).where(feedbacks.c.seq.in_([row.number for row in rows])))
        room = MAX_ROWS - OPINION_ROWS * len(rows)
        counts = {}
        for table in (messages, entries, outbox):
            counts[table] = self._remove(table, seq, room)
            room -= counts[table]
        if room > 0:
            self._connection.execute(delete(session_tags).where(session_tags.c.session_seq == seq))
            self._connection.execute(delete(sessions).where(sessions.c.seq == seq))
        return Removed(counts[messages], counts[entries], withdrawn, is_last=room > 0)

    def _remove(self, table: Table, session: int, limit: int) -> int:
        """Removes up to `limit` rows of a session; returns how many."""
        oldest = select(table.c.seq).where(table.c.session_seq == session).order_by(table.c.seq).limit(limit)
        numbers = self._connection.execute(oldest).scalars().all()
        these = table.c.seq.in_(numbers)
        if table is entries:
            external_ids.remove(self._connection, select(entries.c.id).where(these))
        with tallies.changing(self._connection, self._project, entries=numbers if table is entries else ()):
            self._connection.execute(delete(table).where(these))
        return len(numbers)

    def _has_entry(self, session_id: str, qa_id: str) -> bool:
        return bool(self._direct.run(_HAS_ENTRY, project=self._project, session=session_id, entry=qa_id))

    def _seq(self, session_id: str) -> int | None:
        rows = self._direct.run(_SEQ, project=self._project, session=session_id)
        return rows[0][0] if rows else None

    def _page(
        self,
        table: Table,
        columns: Sequence[Column[Any]],
        session_id: str,
        after: int | None,
        limit: int,
        newest_first: bool,
        joined: FromClause | None = None,
    ) -> Iterable[Any]:
        statement: Select[Any] = select(*columns).select_from(table if joined is None else joined)
        statement = statement.where(table.c.session_seq == self._seq(session_id))
        if after is not None:
            statement = statement.where(table.c.seq < after if newest_first else table.c.seq > after)
        return self._connection.execute(
            statement.order_by(table.c.seq.desc() if newest_first else table.c.seq).limit(limit)
        )

    def _tag(self, seq: int, metadata: Metadata) -> None:
        tags = [{"session_seq": seq, "project_id": self._project, **tag} for tag in facts.flattened(metadata)]
        if tags:
            self._connection.execute(insert(session_tags), tags)


def _tags(metadata: Metadata) -> set[tuple[str, str]]:
    return {(tag["key"], tag["value"]) for tag in facts.flattened(metadata)}


def _session(row: Sequence[Any]) -> SessionRow:
    number, session_id, metadata, created_at, updated_at = row
    return SessionRow(number, session_id, unpacked(metadata), created_at, updated_at)


def _entry(
    session_id: str,
    qa_id: str,
    question: str,
    answer: str,
    context: str | None,
    at: int,
    dataset: str | None,
    recall_id: str | None,
    used: Any,
    model: str | None,
    usage: Any,
    external_id: str | None,
    number: int,
) -> EntryRow:
    uses = unpacked(used)
    return EntryRow(
        id=qa_id,
        session_id=session_id,
        question=question,
        answer=answer,
        context=context,
        at=at,
        dataset=dataset,
        recall_id=recall_id,
        used=None if uses is None else [(fact, share, links) for fact, share, links in uses],
        model=model,
        usage=unpacked(usage),
        external_id=external_id,
        number=number,
    )
