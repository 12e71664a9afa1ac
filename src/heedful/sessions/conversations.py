"""Sessions and their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from heedful.api import checks
from heedful.clock import new_id
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.memory.recall import check_where
from heedful.model import Message, Metadata, Page, Session, SessionDeletion, limits
from heedful.sessions.feedback import RetractedFeedback, change
from heedful.sessions.hooks import run_hook
from heedful.sessions.metadata import check_changes, check_key_list, merge, remove_keys
from heedful.sessions.session_store import MessageRow, Removed, SessionRow, Transaction, page
from heedful.sessions.space import SessionSpace
from heedful.storage.rows import MAX_ROWS, to_model

MAX_LESSONS = MAX_ROWS // 10
"""How many facts learnt in a session one transaction forgets, until the last one. An opinion teaches two at most."""

ATTEMPTS = 100  # How often a change of metadata is retried when others change them concurrently.


def create(space: SessionSpace, session_id: str | None, metadata: Metadata | None) -> Session:
    """The session, created if it is new; `metadata` are merged into those of an existing one."""
    name = new_id() if session_id is None else session_id
    if metadata is not None and check_changes(metadata):
        _merge(space, name, metadata, create=True)

    def create_empty(tx: Transaction) -> SessionRow | None:
        tx.conversations.create(name, {}, space.now())
        return tx.conversations.session(name)

    row = space.store.read(lambda tx: tx.conversations.session(name)) if metadata else None
    row = row or space.store.write(create_empty)
    assert row is not None
    return to_model(Session, row)


def get(space: SessionSpace, session_id: str) -> Session:
    return to_model(Session, space.store.read(lambda tx: space.session(tx, session_id)))


def exists(space: SessionSpace, session_id: str) -> bool:
    return space.store.read(lambda tx: tx.conversations.session(session_id)) is not None


def list_sessions(space: SessionSpace, where: Metadata | None, cursor: str | None, limit: int) -> Page[Session]:
    filters = check_where(where)
    after = checks.cursor(cursor)

    def read(count: int) -> list[SessionRow]:
        return space.store.read(lambda tx: tx.conversations.sessions(after, count, filters))

    return page(read, limit, lambda row: to_model(Session, row))


def delete(space: SessionSpace, session_id: str) -> SessionDeletion:
    """Removes a session. A long one takes several transactions: after a crash, deleting it again removes the rest."""
    first = space.store.read(lambda tx: space.session(tx, session_id))

    def remove(tx: Transaction, retracted: RetractedFeedback) -> Removed | None:
        row = tx.conversations.session(session_id)
        # Somebody else may have deleted it meanwhile, and made another.
        removed = tx.conversations.delete(session_id, space.now()) if row and row.number == first.number else None
        if removed is not None:
            retracted.session_id = session_id
            retracted.limit = None if removed.is_last else MAX_LESSONS
            retracted.rows += removed.feedbacks
        return removed

    counts = Counter[str]()
    is_last = False
    while not is_last:
        removed, undo_result = change(space, remove)
        if removed is None and not counts:
            raise space.missing(session_id)
        is_last = removed is None or removed.is_last
        if removed is not None:
            counts.update(messages=removed.messages, entries=removed.entries, feedbacks=len(removed.feedbacks))
            counts.update(forgotten_facts=len(undo_result.forgotten))
    return SessionDeletion(session_id=session_id, **counts)


def add_messages(
    space: SessionSpace, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
) -> list[Message]:
    """Adds messages in order; creates the session if it is new."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise Invalid.got("messages", "must be a list", messages)
    items = list(messages)
    checks.batch("messages", items, limits.MAX_MESSAGES)
    return _add(space, session_id, [_new_row(space, item, f"messages[{index}]") for index, item in enumerate(items)])


def add_message(space: SessionSpace, session_id: str, role: str, content: str, at: datetime | None) -> Message:
    """Adds one message; creates the session if it is new."""
    (added,) = _add(space, session_id, [_row(space, role, content, at)])
    return added


def _add(space: SessionSpace, session_id: str, rows: list[MessageRow]) -> list[Message]:
    def add(tx: Transaction) -> None:
        tx.conversations.create(session_id, {}, space.now())
        if rows:
            tx.conversations.add_messages(session_id, rows)
            # Not the time of a message, which may be in the past.
            tx.conversations.touch(session_id, space.now())

    space.store.write(add)
    return [_message(row) for row in rows]


def messages(space: SessionSpace, session_id: str, cursor: str | None, limit: int, newest_first: bool) -> Page[Message]:
    after = checks.cursor(cursor)

    def read(tx: Transaction, count: int) -> list[MessageRow]:
        space.session(tx, session_id)
        return tx.conversations.messages(session_id, after, count, newest_first)

    return page(lambda count: space.store.read(lambda tx: read(tx, count)), limit, _message)


def update_message(space: SessionSpace, session_id: str, message_id: str, content: str) -> Message:
    checks.any_text("content", content, limits.MAX_CONTENT)

    def write(tx: Transaction) -> MessageRow:
        row = _existing(tx, session_id, message_id)
        if row.content == content:
            return row
        tx.conversations.set_content(row.id, content)
        tx.conversations.touch(session_id, space.now())
        return replace(row, content=content)

    return _message(space.store.write(write))


def delete_message(space: SessionSpace, session_id: str, message_id: str) -> bool:
    def write(tx: Transaction) -> None:
        tx.conversations.delete_message(_existing(tx, session_id, message_id).id)
        tx.conversations.touch(session_id, space.now())

    space.store.write(write)
    return True


def _existing(tx: Transaction, session_id: str, message_id: str) -> MessageRow:
    row = tx.conversations.message(message_id, session_id)
    if row is None:
        raise NotFound(f"session {session_id!r} has no message {message_id!r}", field="message_id", value=message_id)
    return row


def get_metadata(space: SessionSpace, session_id: str) -> Metadata:
    if space.metadata_hook is None:
        return get(space, session_id).metadata
    # A hook may hide values from this caller.
    visible = space.metadata_hook(lambda: get(space, session_id).metadata, "get", session_id)
    if visible is None:
        return {}
    if not isinstance(visible, Mapping):
        message = f"the metadata hook returned {quoted(visible)} for get"
        remedy = "Return what original_func() returns, or a part of it"
        raise Invalid(message, field="metadata_hook", value=visible, remedy=remedy)
    return dict(visible)


def update_metadata(space: SessionSpace, session_id: str, metadata: Metadata, if_match: str | None = None) -> Metadata:
    """Merges by key and returns the new metadata."""
    if space.metadata_hook is None or not isinstance(metadata, Mapping):
        check_changes(metadata)
    results = _merge(space, session_id, metadata, if_match=if_match)
    return results[-1] if results else get(space, session_id).metadata


def delete_metadata(
    space: SessionSpace, session_id: str, keys: str | Sequence[str], if_match: str | None = None
) -> Metadata:

    def store(requested: Any) -> Metadata:
        checked = check_key_list(requested)
        return _apply_changes(space, session_id, lambda current: remove_keys(current, checked), if_match=if_match)

    results = run_hook(space.metadata_hook, store, "delete", session_id, keys=check_key_list(keys))
    return results[-1] if results else get(space, session_id).metadata


def _merge(
    space: SessionSpace, session_id: str, metadata: Metadata, *, create: bool = False, if_match: str | None = None
) -> list[Metadata]:
    """Merges through the hook; returns the new metadata for each time that the hook stored something."""

    def store(changes: Any) -> Metadata:
        checked = check_changes(changes)
        return _apply_changes(
            space, session_id, lambda current: merge(current, checked), create=create, if_match=if_match
        )

    return run_hook(space.metadata_hook, store, "update", session_id, metadata=dict(metadata))


def _apply_changes(
    space: SessionSpace,
    session_id: str,
    change: Callable[[Metadata], Metadata],
    *,
    create: bool = False,
    if_match: str | None = None,
) -> Metadata:
    def attempt(tx: Transaction) -> Metadata | None:
        current = tx.conversations.session(session_id)
        if current is None:
            if not create:
                raise space.missing(session_id)
            created = change({})
            tx.conversations.create(session_id, created, space.now())
            return created
        checks.if_match(if_match, current.metadata)
        changed = change(current.metadata)
        return changed if tx.conversations.set_metadata(current, changed, space.now()) else None

    for _ in range(ATTEMPTS):
        changed = space.store.write(attempt)
        if changed is not None:
            return changed
    message = f"the metadata of session {session_id!r} is being changed by too many callers at once"
    raise Conflict(message, field="metadata", value=session_id, remedy="Try again; nothing was changed")


def _new_row(space: SessionSpace, item: Message | Mapping[str, Any], field: str) -> MessageRow:
    if isinstance(item, Message):
        # With a new id, so that a message can be copied to another session.
        item = {"role": item.role, "content": item.content, "at": item.at}
    if not isinstance(item, Mapping):
        raise Invalid(f"a message must be a mapping, got {quoted(item)}", field=field, value=item)
    unknown = sorted(set(item) - {"role", "content", "at"})
    if unknown:
        message, remedy = f"a message has the key {quoted(unknown[0])}", "Use role, content and, if known, at"
        raise Invalid(message, field=f"{field}.{unknown[0]}", value=unknown[0], remedy=remedy)
    return _row(space, item.get("role"), item.get("content"), item.get("at"), f"{field}.")


def _row(space: SessionSpace, role: Any, content: Any, at: Any, prefix: str = "") -> MessageRow:
    moment = checks.moment(f"{prefix}at", at)
    return MessageRow(
        new_id(),
        _check_role(f"{prefix}role", role),
        checks.any_text(f"{prefix}content", content, limits.MAX_CONTENT),
        space.now() if moment is None else moment,
    )


def _check_role(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > limits.MAX_ROLE:
        problem = f"must be a name of up to {limits.MAX_ROLE} characters"
        raise Invalid.got(field, problem, value, 'Use "user", "assistant", "system" or "tool"')
    return checks.identifier(field, value)


def _message(row: MessageRow) -> Message:
    return to_model(Message, row, message_id=row.id)
