"""What opinions are about: the question that was asked, and what makes two of them the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from heedful.executions import chat_log
from heedful.executions.chat_log import Turn
from heedful.executions.space import ExecutionSpace
from heedful.learning.differences import normal
from heedful.review.opinions import Opinion
from heedful.storage.executions import runs
from heedful.storage.rows import AnyRow
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import EntryRow


@dataclass(frozen=True, slots=True)
class Subject:
    """What an opinion is about."""

    group: tuple[str, ...]
    """Opinions with the same one say the same."""
    question: str | None = None
    dataset: str | None = None
    entry: EntryRow | None = None
    run: AnyRow | None = None
    turn: Turn | None = None

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b("\0".join(self.group).encode(), digest_size=16).digest()


def subjects(space: ExecutionSpace, opinions: Iterable[Opinion]) -> dict[str, Subject]:
    """The subjects of opinions, by their events. One about an entry that is gone has none."""
    given = list(opinions)
    found: dict[str, Subject] = {}
    entries = [each for each in given if each.target_type == "entry"]
    if entries:
        found |= space.sessions.store.read(lambda tx: _of_entries(tx, entries))
    ran = [each for each in given if each.target_type == "execution"]
    if ran:
        with space.workspace.read() as connection:
            project = space.project(connection)
            rows = {each.target_id: runs.get(connection, project, each.target_id) for each in ran}
        found |= {each.event_id: _of_run(each, rows[each.target_id]) for each in ran}
    for each in given:
        if each.target_type == "message":
            found[each.event_id] = _of_message(each, chat_log.turn(space.sessions, each.target_id))
        elif each.target_type in ("session", "fact"):
            found[each.event_id] = Subject(each.target, each.question, each.dataset)
    return found


def _of_entries(tx: Transaction, opinions: list[Opinion]) -> dict[str, Subject]:
    found = {}
    for each in opinions:
        entry = None if each.session_id is None else tx.conversations.entry(each.session_id, each.target_id)
        if entry is not None:
            group = ("entry", entry.dataset or "", normal(entry.question))
            found[each.event_id] = Subject(group, entry.question, entry.dataset, entry=entry)
    return found


def _of_run(opinion: Opinion, row: AnyRow | None) -> Subject:
    """The same SQL with other values is the same mistake."""
    if row is not None:
        return Subject(("execution", row.connector_id, row.template.hex()), row.question, run=row)
    return Subject(opinion.target if opinion.sql is None else ("execution", *opinion.sql))


def _of_message(opinion: Opinion, turn: Turn | None) -> Subject:
    if turn is None:
        return Subject(opinion.target)
    return Subject(("message", turn.connector_id, normal(turn.question)), turn.question, turn=turn)
