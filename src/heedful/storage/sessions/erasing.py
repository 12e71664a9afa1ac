"""Erasing a person from sessions, feedback and alerts in SQL tables."""

from __future__ import annotations

from sqlalchemy import Connection, Select, case, select, update

from heedful.storage import external_ids, facts
from heedful.storage.erasure import PERSON_KEYS, PLACEHOLDER, Erased, retained_sql
from heedful.storage.executions import connectors
from heedful.storage.rows import Direct
from heedful.storage.schema import entries, feedbacks, messages, outbox, session_tags, sessions, waiting_feedbacks
from heedful.storage.sessions.base import PersonRecords
from heedful.storage.sessions.conversations import SqlConversations


class SqlErasure:
    """See `base.Erasure`. Feedback about executions and messages is in the same table, and erased with the rest."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    @property
    def _connection(self) -> Connection:
        return self._direct.connection

    def is_known(self, name: str) -> bool:
        by_author = (
            select(feedbacks.c.id).where(feedbacks.c.project_id == self._project, feedbacks.c.author == name).limit(1)
        )
        waits = select(waiting_feedbacks.c.id).where(
            waiting_feedbacks.c.project_id == self._project, waiting_feedbacks.c.author == name
        )
        return any(self._connection.execute(each).first() for each in (by_author, waits, self._sessions(name)))

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        waited = self._clear_waiting(erased)
        self._clear_feedback(erased)
        session_ids = self._clear_sessions(erased, at)
        by_author = feedbacks.c.author == erased.pseudonym
        rows = self._connection.execute(
            select(feedbacks.c.id, feedbacks.c.target_type, feedbacks.c.target_id, sessions.c.id.label("session"))
            .outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq)
            .where(feedbacks.c.project_id == self._project, by_author)
        ).all()
        entry_rows = self._connection.execute(
            select(entries.c.id, entries.c.recall_id)
            .join(sessions, sessions.c.seq == entries.c.session_seq)
            .where(sessions.c.project_id == self._project, sessions.c.id.in_(session_ids))
        ).all()
        message_ids = self._connection.execute(
            select(messages.c.id)
            .join(sessions, sessions.c.seq == messages.c.session_seq)
            .where(sessions.c.project_id == self._project, sessions.c.id.in_(session_ids))
        )
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
            for row in self._connection.execute(select(feedbacks.c.seq, feedbacks.c.extra).where(*conditions))
            if (extra := retained_sql(row.extra))
        ]
        # The comment about a session is never NULL.
        blank = case((feedbacks.c.target_type == "session", ""), else_=None)
        self._connection.execute(
            update(feedbacks).where(*conditions).values(author=erased.pseudonym, comment=blank, extra={})
        )
        for seq, extra in retained:
            self._connection.execute(update(feedbacks).where(feedbacks.c.seq == seq).values(extra=extra))
        # What was said is in memory, where lookups run.
        connectors.bump_revisions(
            self._connection, [row.id for row in connectors.list_connectors(self._connection, self._project)]
        )

    def _clear_waiting(self, erased: Erased) -> list[str]:
        """Removes ratings that wait for an entry, by the person or with an external id that names them; returns the
        ids of the person's own."""
        rows = self._connection.execute(
            select(waiting_feedbacks.c.id, waiting_feedbacks.c.author, waiting_feedbacks.c.external_id).where(
                waiting_feedbacks.c.project_id == self._project
            )
        )
        found = [row for row in rows if row.author == erased.name or erased.is_named_in(row.external_id)]
        external_ids.end_waiting(self._connection, self._project, [row.id for row in found])
        return [row.id for row in found if row.author == erased.name]

    def _clear_sessions(self, erased: Erased, at: int) -> list[str]:
        conversations = SqlConversations(self._direct, self._project)
        session_ids = list(self._connection.execute(self._sessions(erased.name)).scalars())
        for session_id in session_ids:
            session = conversations.session(session_id)
            assert session is not None
            conversations.set_metadata(session, erased.rename_in(session.metadata), at)
            seq = session.number
            self._connection.execute(update(messages).where(messages.c.session_seq == seq).values(content=""))
            self._connection.execute(
                update(entries)
                .where(entries.c.session_seq == seq)
                .values(question=PLACEHOLDER, answer="", context=None)
            )
        return session_ids

    def _clear_alerts(self, erased: Erased, opinions: frozenset[str]) -> int:
        rows = self._connection.execute(
            select(outbox.c.seq, outbox.c.payload).where(outbox.c.project_id == self._project)
        ).all()
        cleared = 0
        for row in rows:
            payload = erased.without_opinions(row.payload, opinions)
            if payload is not None:
                self._connection.execute(
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
