"""The session store in the tables of a `Database`: conversations, alerts, erasure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from typing import Any, TypeVar

import orjson
from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, case, delete, func, insert, select, update

from heedful.ledger import proven_sql, tallies
from heedful.ledger.erasure import PERSON_KEYS, PLACEHOLDER, Erased, PersonRecords, retained_sql
from heedful.ledger.opinions import SqlFeedbacks, touch_session
from heedful.ledger.rating_signals import EntryRow, Uses
from heedful.model import Metadata
from heedful.notifications.outbox import AlertRow
from heedful.sessions.session_store import OPINION_ROWS, MessageRow, Removed, SessionRow
from heedful.storage import external_ids, facts, scopes
from heedful.storage.database import Database
from heedful.storage.filters import SESSIONS, selections
from heedful.storage.rows import MAX_ROWS, Direct, Prepared, batches, insert_many, unpacked
from heedful.storage.schema import (
    connectors,
    entries,
    feedbacks,
    messages,
    outbox,
    session_tags,
    sessions,
    waiting_feedbacks,
)
from heedful.storage.schema import external_ids as external_id_rows

Result = TypeVar("Result")

NO_PROJECT = -1  # The number of a project that nothing was written to yet.


class _InTransaction:
    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    @property
    def connection(self) -> Connection:
        return self._direct.connection

    def _session_number(self, session_id: str) -> int | None:
        rows = self._direct.run(_SEQ, project=self._project, session=session_id)
        return rows[0][0] if rows else None


class SqlTransaction(_InTransaction):
    """A transaction of the database; `connection` may be used for more in the same one."""

    def __init__(self, direct: Direct, project: int) -> None:
        super().__init__(direct, project)
        self.conversations = SqlConversations(direct, project)
        self.feedbacks = SqlFeedbacks(direct, project)
        self.outbox = SqlOutbox(direct, project)
        self.erasure = SqlErasure(direct, project)


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
            if self._number is None:
                self._number = scopes.project_id(direct.connection, self._project)
            return body(SqlTransaction(direct, NO_PROJECT if self._number is None else self._number))

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


_ALERTS = select(*(outbox.c["seq" if name == "number" else name] for name in AlertRow.__slots__))


class SqlOutbox(_InTransaction):
    """See `Outbox`."""

    def add(self, session_id: str | None, new: Sequence[AlertRow]) -> None:
        if not new:
            return
        names = ("id", "channel", "payload", "created_at", "attempts", "next_at")
        session = None if session_id is None else self._session_number(session_id)
        owner = {"project_id": self._project, "session_seq": session}
        rows = [{name: getattr(alert, name) for name in names} | owner for alert in new]
        self.connection.execute(insert(outbox), rows)

    def claim(self, channels: Sequence[str], now: int, until: int, limit: int) -> list[AlertRow]:
        due = (
            _ALERTS.where(outbox.c.project_id == self._project, outbox.c.next_at <= now, outbox.c.channel.in_(channels))
            .order_by(outbox.c.next_at, outbox.c.seq)
            .limit(limit)
        )
        claimed = list(starmap(AlertRow, self.connection.execute(due)))
        self.connection.execute(
            update(outbox).where(outbox.c.id.in_([alert.id for alert in claimed])).values(next_at=until)
        )
        return claimed

    def settle(
        self, alert_id: str, attempts: int, next_at: int | None, delivered_at: int | None, error: str | None
    ) -> None:
        self.connection.execute(
            update(outbox)
            .where(outbox.c.project_id == self._project, outbox.c.id == alert_id)
            .values(attempts=attempts, next_at=next_at, delivered_at=delivered_at, error=error)
        )

    def due_at(self, channels: Sequence[str]) -> int | None:
        return self.connection.execute(
            select(func.min(outbox.c.next_at)).where(
                outbox.c.project_id == self._project, outbox.c.next_at.is_not(None), outbox.c.channel.in_(channels)
            )
        ).scalar()

    def list(self, after: int | None, limit: int, pending: bool) -> list[AlertRow]:
        statement = _ALERTS.where(outbox.c.project_id == self._project)
        if pending:
            statement = statement.where(outbox.c.next_at.is_not(None))
        if after is not None:
            statement = statement.where(outbox.c.seq < after)
        newest = statement.order_by(outbox.c.seq.desc()).limit(limit)
        return list(starmap(AlertRow, self.connection.execute(newest)))

    def get(self, alert_id: str) -> AlertRow | None:
        this = _ALERTS.where(outbox.c.project_id == self._project, outbox.c.id == alert_id)
        return next(starmap(AlertRow, self.connection.execute(this)), None)


class SqlErasure(_InTransaction):
    """See `Erasure`. Feedback about executions and messages is in the same table, and erased with the rest."""

    def is_known(self, name: str) -> bool:
        by_author = (
            select(table.c.id).where(table.c.project_id == self._project, table.c.author == name).limit(1)
            for table in (feedbacks, waiting_feedbacks)
        )
        return any(self.connection.execute(query).first() for query in (*by_author, self._sessions(name)))

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        waited = self._clear_waiting(erased)
        self._clear_feedback(erased)
        session_ids = self._clear_sessions(erased, at)
        by_author = feedbacks.c.author == erased.pseudonym
        rows = self.connection.execute(
            select(feedbacks.c.id, feedbacks.c.target_type, feedbacks.c.target_id, sessions.c.id.label("session"))
            .outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq)
            .where(feedbacks.c.project_id == self._project, by_author)
        ).all()
        own = select(sessions.c.seq).where(sessions.c.project_id == self._project, sessions.c.id.in_(session_ids))
        of_entries = select(entries.c.id, entries.c.recall_id).where(entries.c.session_seq.in_(own))
        entry_rows = self.connection.execute(of_entries).all()
        message_ids = self.connection.execute(select(messages.c.id).where(messages.c.session_seq.in_(own)))
        opinions = list(dict.fromkeys([*(row.id for row in rows), *waited]))
        return PersonRecords(
            opinions=opinions,
            rated=[(row.session, row.target_id) for row in rows if row.target_type == "entry"],
            sessions=session_ids,
            entries=[row.id for row in entry_rows],
            messages=list(message_ids.scalars()),
            recalls=[row.recall_id for row in entry_rows if row.recall_id is not None],
            alerts=self._clear_alerts(erased, frozenset(opinions)),
        )

    def _clear_feedback(self, erased: Erased) -> None:
        conditions = (feedbacks.c.project_id == self._project, feedbacks.c.author == erased.name)
        retained = [
            (row.seq, extra)
            for row in self.connection.execute(select(feedbacks.c.seq, feedbacks.c.extra).where(*conditions))
            if (extra := retained_sql(row.extra))
        ]
        # The comment about a session is never NULL.
        blank = case((feedbacks.c.target_type == "session", ""), else_=None)
        self.connection.execute(
            update(feedbacks).where(*conditions).values(author=erased.pseudonym, comment=blank, extra={})
        )
        for seq, extra in retained:
            self.connection.execute(update(feedbacks).where(feedbacks.c.seq == seq).values(extra=extra))
        # What was said is in memory, where lookups run.
        own = self.connection.execute(select(connectors.c.id).where(connectors.c.project_id == self._project))
        proven_sql.bump_revisions(self.connection, own.scalars().all())

    def _clear_waiting(self, erased: Erased) -> list[str]:
        """Removes ratings that wait for an entry, by the person or with an external id that names them; returns the
        ids of the person's own."""
        rows = self.connection.execute(
            select(waiting_feedbacks.c.id, waiting_feedbacks.c.author, waiting_feedbacks.c.external_id).where(
                waiting_feedbacks.c.project_id == self._project
            )
        )
        named = [row for row in rows if row.author == erased.name or erased.is_named_in(row.external_id)]
        external_ids.end_waiting(self.connection, self._project, [row.id for row in named])
        return [row.id for row in named if row.author == erased.name]

    def _clear_sessions(self, erased: Erased, at: int) -> list[str]:
        conversations = SqlConversations(self._direct, self._project)
        session_ids = list(self.connection.execute(self._sessions(erased.name)).scalars())
        for session_id in session_ids:
            session = conversations.session(session_id)
            assert session is not None
            conversations.set_metadata(session, erased.rename_in(session.metadata), at)
            seq = session.number
            self.connection.execute(update(messages).where(messages.c.session_seq == seq).values(content=""))
            self.connection.execute(
                update(entries)
                .where(entries.c.session_seq == seq)
                .values(question=PLACEHOLDER, answer="", context=None)
            )
        return session_ids

    def _clear_alerts(self, erased: Erased, opinions: frozenset[str]) -> int:
        rows = self.connection.execute(
            select(outbox.c.seq, outbox.c.payload).where(outbox.c.project_id == self._project)
        ).all()
        cleared = 0
        for row in rows:
            payload = erased.without_opinions(row.payload, opinions)
            if payload is not None:
                self.connection.execute(
                    update(outbox).where(outbox.c.seq == row.seq).values(payload=payload, error=None)
                )
                cleared += 1
        return cleared

    def _sessions(self, name: str) -> Select[str]:
        """The ids of the sessions whose metadata name somebody."""
        tagged = select(session_tags.c.session_seq).where(
            session_tags.c.project_id == self._project,
            session_tags.c.key.in_(PERSON_KEYS),
            session_tags.c.value == facts.tag(name),
        )
        return select(sessions.c.id).where(sessions.c.project_id == self._project, sessions.c.seq.in_(tagged))


_ENTRY_COLUMNS = [column.name for column in entries.c if column.name not in ("seq", "project_id")]

_THIS = (sessions.c.project_id == bindparam("project")) & (sessions.c.id == bindparam("session"))
_SESSION_ROW = (sessions.c.seq, sessions.c.id, sessions.c.metadata, sessions.c.created_at, sessions.c.updated_at)
_MESSAGE_ROW = (messages.c.id, messages.c.role, messages.c.content, messages.c.at, messages.c.seq)
_ENTRY_NAMES = [name for name in EntryRow.__slots__ if name != "session_id"]
_FROM_OTHERS = {"external_id": external_id_rows.c.external_id, "number": entries.c.seq}
_ENTRY_ROW = [_FROM_OTHERS[name] if name in _FROM_OTHERS else entries.c[name] for name in _ENTRY_NAMES]
_ENTRIES = entries.outerjoin(
    external_id_rows, (external_id_rows.c.target_id == entries.c.id) & (external_id_rows.c.kind == "entry")
)

_SEQ = Prepared(select(sessions.c.seq).where(_THIS))
_SESSION = Prepared(select(*_SESSION_ROW).where(_THIS))
_ADD_ENTRY = Prepared(insert(entries), _ENTRY_COLUMNS)
_SELECT_ENTRIES = select(sessions.c.id, *_ENTRY_ROW).select_from(
    _ENTRIES.join(sessions, sessions.c.seq == entries.c.session_seq)
)
_ENTRY = Prepared(_SELECT_ENTRIES.where(_THIS & (entries.c.id == bindparam("entry"))))


class SqlConversations(_InTransaction):
    """See `Conversations`."""

    def session(self, session_id: str) -> SessionRow | None:
        rows = self._direct.run(_SESSION, project=self._project, session=session_id)
        return _session(rows[0]) if rows else None

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        if self._session_number(session_id) is not None:
            return False
        inserted = self.connection.execute(
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
        rows = self.connection.execute(statement.order_by(sessions.c.seq.desc()).limit(limit))
        return [_session(row) for row in rows]

    def set_metadata(self, current: SessionRow, metadata: Metadata, at: int) -> bool:
        self.connection.execute(
            update(sessions).where(sessions.c.seq == current.number).values(metadata=metadata, updated_at=at)
        )
        changed = {key for key, _ in _tags(current.metadata) ^ _tags(metadata)}
        with tallies.changing(self.connection, self._project, sessions=[current.number], only_by=changed):
            self.connection.execute(delete(session_tags).where(session_tags.c.session_seq == current.number))
            self._tag(current.number, metadata)
        return True

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None:
        session = touch_session(self._direct, self._project, session_id, max(message.at for message in new))
        names = ("id", "role", "content", "at")
        rows = [{name: getattr(message, name) for name in names} | {"session_seq": session} for message in new]
        insert_many(self.connection, messages, insert(messages), rows)

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]:
        rows = self._page(select(*_MESSAGE_ROW), messages, session_id, after, limit, newest_first)
        return list(starmap(MessageRow, rows))

    def message(self, message_id: str, session_id: str | None = None) -> MessageRow | None:
        statement = (
            select(*_MESSAGE_ROW)
            .join(sessions, sessions.c.seq == messages.c.session_seq)
            .where(sessions.c.project_id == self._project, messages.c.id == message_id)
        )
        if session_id is not None:
            statement = statement.where(sessions.c.id == session_id)
        return next(starmap(MessageRow, self.connection.execute(statement)), None)

    def set_content(self, message_id: str, content: str) -> None:
        self.connection.execute(update(messages).where(self._own_message(message_id)).values(content=content))

    def delete_message(self, message_id: str) -> None:
        self.connection.execute(delete(messages).where(self._own_message(message_id)))

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
            external_ids.add(self.connection, self._project, "entry", new.external_id, new.id, new.at)
        return True

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        found = self._entry(session_id, qa_id)
        target = None if found else external_ids.target(self.connection, self._project, "entry", qa_id)
        return found if target is None else self._entry(session_id, target)

    def _entry(self, session_id: str, entry_id: str) -> EntryRow | None:
        rows = self._direct.run(_ENTRY, project=self._project, session=session_id, entry=entry_id)
        return _entry(*rows[0]) if rows else None

    def external_entry(self, external_id: str, *, or_id: bool = False) -> EntryRow | None:
        of_project = (external_id_rows.c.project_id == self._project, external_id_rows.c.kind == "entry")
        statement = _SELECT_ENTRIES.where(*of_project, external_id_rows.c.external_id == external_id)
        found = next(starmap(_entry, self.connection.execute(statement)), None)
        if found is not None or not or_id:
            return found
        statement = _SELECT_ENTRIES.where(sessions.c.project_id == self._project, entries.c.id == external_id)
        return next(starmap(_entry, self.connection.execute(statement)), None)

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]:
        statement = select(*_ENTRY_ROW).select_from(_ENTRIES)
        rows = self._page(statement, entries, session_id, after, limit, newest_first)
        return [_entry(session_id, *row) for row in rows]

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        statement = _SELECT_ENTRIES.where(sessions.c.project_id == self._project).order_by(entries.c.seq)
        parts = [()] if session_ids is None else [(sessions.c.id.in_(run),) for run in batches(session_ids)]
        for conditions in parts:
            yield from starmap(_entry, self.connection.execute(statement.where(*conditions)))

    def set_used(self, qa_id: str, used: Uses) -> None:
        self.connection.execute(update(entries).where(entries.c.id == qa_id).values(used=used))

    def delete(self, session_id: str, at: int) -> Removed | None:
        seq = self._session_number(session_id)
        if seq is None:
            return None
        opinions = SqlFeedbacks(self._direct, self._project)
        rows = opinions.in_session(seq, MAX_ROWS // OPINION_ROWS)
        withdrawn = [row for row in rows if row.active]
        opinions.withdraw(withdrawn, None, at)
        self.connection.execute(delete(feedbacks).where(feedbacks.c.seq.in_([row.number for row in rows])))
        room = MAX_ROWS - OPINION_ROWS * len(rows)
        counts = {}
        for table in (messages, entries, outbox):
            counts[table] = self._remove(table, seq, room)
            room -= counts[table]
        if room > 0:
            self.connection.execute(delete(session_tags).where(session_tags.c.session_seq == seq))
            self.connection.execute(delete(sessions).where(sessions.c.seq == seq))
        return Removed(counts[messages], counts[entries], withdrawn, is_last=room > 0)

    def _remove(self, table: Table, session: int, limit: int) -> int:
        """Removes up to `limit` rows of a session; returns how many."""
        oldest = select(table.c.seq).where(table.c.session_seq == session).order_by(table.c.seq).limit(limit)
        numbers = self.connection.execute(oldest).scalars().all()
        these = table.c.seq.in_(numbers)
        if table is entries:
            external_ids.remove(self.connection, select(entries.c.id).where(these))
        with tallies.changing(self.connection, self._project, entries=numbers if table is entries else ()):
            self.connection.execute(delete(table).where(these))
        return len(numbers)

    def _page(
        self, rows: Select[Any], table: Table, session_id: str, after: int | None, limit: int, newest_first: bool
    ) -> Iterable[Any]:
        rows = rows.where(table.c.session_seq == self._session_number(session_id))
        if after is not None:
            rows = rows.where(table.c.seq < after if newest_first else table.c.seq > after)
        order = table.c.seq.desc() if newest_first else table.c.seq
        return self.connection.execute(rows.order_by(order).limit(limit))

    def _tag(self, seq: int, metadata: Metadata) -> None:
        tags = [{"session_seq": seq, "project_id": self._project, **tag} for tag in facts.flattened(metadata)]
        if tags:
            self.connection.execute(insert(session_tags), tags)


def _tags(metadata: Metadata) -> set[tuple[str, str]]:
    return {(tag["key"], tag["value"]) for tag in facts.flattened(metadata)}


def _session(row: Sequence[Any]) -> SessionRow:
    number, session_id, metadata, created_at, updated_at = row
    return SessionRow(number, session_id, unpacked(metadata), created_at, updated_at)


def _entry(session_id: str, *row: Any) -> EntryRow:
    values = dict(zip(_ENTRY_NAMES, row, strict=True))
    uses = unpacked(values["used"])
    values["used"] = None if uses is None else [(fact, share, links) for fact, share, links in uses]
    return EntryRow(session_id=session_id, **values | {"usage": unpacked(values["usage"])})
