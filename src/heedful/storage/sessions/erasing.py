"""Erasing a person from sessions, feedback and alerts in SQL tables."""

from __future__ import annotations

from sqlalchemy import Connection, Select, case, select, update

from heedful.storage import facts
from heedful.storage.erasure import PERSON_KEYS, PLACEHOLDER, Erased, retained_sql
from heedful.storage.rows import Direct
from heedful.storage.schema import entries, feedbacks, messages, outbox, session_tags, sessions
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
        by = select(feedbacks.c.id).where(feedbacks.c.project_id == self._project, feedbacks.c.author == name).limit(1)
        return bool(self._connection.execute(by).first() or self._connection.execute(self._sessions(name)).first())

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        self._clear_feedback(erased)
        sessions_of_theirs = self._clear_sessions(erased, at)
        by = feedbacks.c.author == erased.pseudonym
        rows = self._connection.execute(
            select(feedbacks.c.id, feedbacks.c.target_type, feedbacks.c.target_id, sessions.c.id.label("session"))
            .outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq)
            .where(feedbacks.c.project_id == self._project, by)
        ).all()
        inside = self._connection.execute(
            select(entries.c.id, entries.c.recall_id)
            .join(sessions, sessions.c.seq == entries.c.session_seq)
            .where(sessions.c.project_id == self._project, sessions.c.id.in_(sessions_of_theirs))
        ).all()
        said = self._connection.execute(
            select(messages.c.id)
            .join(sessions, sessions.c.seq == messages.c.session_seq)
            .where(sessions.c.project_id == self._project, sessions.c.id.in_(sessions_of_theirs))
        )
        opinions = list(dict.fromkeys(row.id for row in rows))
        return PersonRecords(
            opinions=opinions,
            rated=[(row.session, row.target_id) for row in rows if row.target_type == "entry"],
            sessions=sessions_of_theirs,
            entries=[row.id for row in inside],
            messages=list(said.scalars()),
            recalls=[row.recall_id for row in inside if row.recall_id is not None],
            alerts=self._clear_alerts(erased, frozenset(opinions)),
        )

    def _clear_feedback(self, erased: Erased) -> None:
        by = (feedbacks.c.project_id == self._project, feedbacks.c.author == erased.name)
        kept = [
            (row.seq, left)
            for row in self._connection.execute(select(feedbacks.c.seq, feedbacks.c.extra).where(*by))
            if (left := retained_sql(row.extra))
        ]
        # What is said of a session is a text, if an empty one.
        blank = case((feedbacks.c.target_type == "session", ""), else_=None)
        self._connection.execute(update(feedbacks).where(*by).values(author=erased.pseudonym, comment=blank, extra={}))
        for seq, left in kept:
            self._connection.execute(update(feedbacks).where(feedbacks.c.seq == seq).values(extra=left))

    def _clear_sessions(self, erased: Erased, at: int) -> list[str]:
        conversations = SqlConversations(self._direct, self._project)
        named = list(self._connection.execute(self._sessions(erased.name)).scalars())
        for session_id in named:
            found = conversations.session(session_id)
            assert found is not None
            conversations.set_metadata(found, erased.in_metadata(found.metadata), at)
            own = found.number
            self._connection.execute(update(messages).where(messages.c.session_seq == own).values(content=""))
            self._connection.execute(
                update(entries)
                .where(entries.c.session_seq == own)
                .values(question=PLACEHOLDER, answer="", context=None)
            )
        return named

    def _clear_alerts(self, erased: Erased, opinions: frozenset[str]) -> int:
        rows = self._connection.execute(
            select(outbox.c.seq, outbox.c.payload).where(outbox.c.project_id == self._project)
        ).all()
        cleared = 0
        for row in rows:
            left = erased.in_alert(row.payload, opinions)
            if left is not None:
                self._connection.execute(update(outbox).where(outbox.c.seq == row.seq).values(payload=left, error=None))
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
