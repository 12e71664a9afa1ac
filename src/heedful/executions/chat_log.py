"""What was asked and written in a chat session, as messages: a user's question, and an answer with its SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import orjson

from heedful.executions.running import Statement
from heedful.ids import new_id
from heedful.model import Origin
from heedful.sessions.space import SessionSpace
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import MessageRow

MOST = 1_000
"""Messages of a chat session that are read."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question, and the message that answers it."""

    message_id: str
    question: str
    connector_id: str
    statement: Statement
    origin: Origin
    derived_from: str | None
    at: int

    @property
    def sql(self) -> str:
        """The SQL as people read it."""
        return self.statement.display or self.statement.sql


def keep(
    space: SessionSpace,
    session_id: str,
    question: str,
    connector_id: str,
    statement: Statement,
    origin: Origin,
    derived_from: str | None,
) -> str:
    """Writes a question and its answer; returns the id of the answer."""
    now = space.now()
    body = {
        "question": question,
        "connector_id": connector_id,
        "sql_query": statement.sql,
        "parameters": statement.parameters,
        "display": statement.display,
        "origin": origin,
        "derived_from": derived_from,
    }
    asked = MessageRow(new_id(), "user", question, now)
    answered = MessageRow(new_id(), "assistant", orjson.dumps(body).decode(), now)
    space.store.write(lambda tx: tx.conversations.add_messages(session_id, [asked, answered]))
    return answered.id


def turns(space: SessionSpace, session_id: str, last: int = MOST // 2) -> list[Turn]:
    """The newest turns of a session, oldest first."""

    def read(tx: Transaction) -> list[MessageRow]:
        return tx.conversations.messages(session_id, None, 2 * last, True)

    rows = space.store.read(read)[::-1]
    return [found for row in rows if (found := _turn(row)) is not None]


def turn(space: SessionSpace, message_id: str) -> Turn | None:
    """The turn whose answer a message is."""
    row = space.store.read(lambda tx: tx.conversations.message(message_id))
    return None if row is None else _turn(row)


def _turn(row: MessageRow) -> Turn | None:
    if row.role != "assistant":
        return None
    try:
        body = orjson.loads(row.content)
        return Turn(
            message_id=row.id,
            question=body["question"],
            connector_id=body["connector_id"],
            statement=Statement(body["sql_query"], body["parameters"], body["display"]),
            origin=cast(Origin, body["origin"]),
            derived_from=body["derived_from"],
            at=row.at,
        )
    except (orjson.JSONDecodeError, KeyError, TypeError):
        # Somebody else's message in the same session.
        return None
