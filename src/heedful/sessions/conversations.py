"""Sessions and their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import orjson

from heedful.clock import from_stored
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.memory.browse import check_where
from heedful.model import Message, Metadata, Page, Session, SessionDeletion, limits
from heedful.model.limits import MAX_METADATA
from heedful.sessions import checks
from heedful.sessions.hooks import Guarded
from heedful.sessions.space import SessionSpace
from heedful.sessions.undo import RetractedFeedback, change
from heedful.storage.rows import MAX_ROWS
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import MessageRow, Removed, SessionRow

Row = TypeVar("Row")
Item = TypeVar("Item")

MAX_LESSONS = MAX_ROWS // 10
"""How many facts learnt in a session one transaction forgets, until the last one. An opinion teaches two at most."""

ATTEMPTS = 100
"""How often a change of metadata is retried when others change them concurrently."""


def create(space: SessionSpace, session_id: str | None, metadata: Metadata | None) -> Session:
    """The session, created if it is new; `metadata` are merged into those of an existing one."""
    name = new_id() if session_id is None else checks.session_id(session_id)
    if metadata is not None and checks.metadata(metadata):
        _merge(space, name, metadata, make=True)

    def make(tx: Transaction) -> SessionRow | None:
        tx.conversations.create(name, {}, space.now())
        return tx.conversations.session(name)

    row = space.store.read(lambda tx: tx.conversations.session(name)) if metadata else None
    row = row or space.store.write(make)
    assert row is not None
    return _session(row)


def get(space: SessionSpace, session_id: str) -> Session:
    name = checks.session_id(session_id)
    row = space.store.read(lambda tx: tx.conversations.session(name))
    if row is None:
        raise space.missing(name)
    return _session(row)


def exists(space: SessionSpace, session_id: str) -> bool:
    name = checks.session_id(session_id)
    return space.store.read(lambda tx: tx.conversations.session(name)) is not None


def list_sessions(space: SessionSpace, where: Metadata | None, cursor: str | None, limit: int) -> Page[Session]:
    filters = check_where(where)
    after = checks.cursor(cursor)
    return page(
        lambda count: space.store.read(lambda tx: tx.conversations.sessions(after, count, filters)), limit, _session
    )


def delete(space: SessionSpace, session_id: str) -> SessionDeletion:
    """Removes a session. A long one takes several transactions: after a crash, deleting it again removes the rest."""
    name = checks.session_id(session_id)
    first = space.store.read(lambda tx: tx.conversations.session(name))
    if first is None:
        raise space.missing(name)

    def remove(tx: Transaction, retracted: RetractedFeedback) -> Removed | None:
        row = tx.conversations.session(name)
        # Somebody else may have deleted it meanwhile, and made another.
        removed = tx.conversations.delete(name, space.now()) if row and row.number == first.number else None
        if removed is not None:
            retracted.session_id = name
            retracted.limit = None if removed.is_last else MAX_LESSONS
            retracted.rows += removed.feedbacks
        return removed

    counts = Counter[str]()
    is_last = False
    while not is_last:
        removed, undo_result = change(space, remove)
        if removed is None and not counts:
            raise space.missing(name)
        is_last = removed is None or removed.is_last
        if removed is not None:
            counts.update(messages=removed.messages, entries=removed.entries, feedbacks=len(removed.feedbacks))
            counts.update(forgotten_facts=len(undo_result.forgotten))
    return SessionDeletion(session_id=name, **counts)


def add_messages(
    space: SessionSpace, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
) -> list[Message]:
    """Adds messages in order; creates the session if it is new."""
    name = checks.session_id(session_id)
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise Invalid(f"messages must be a list, got {quoted(messages)}", field="messages", value=messages)
    items = list(messages)
    values.batch("messages", items, limits.MAX_MESSAGES)
    return _add(space, name, [_new_row(space, item, f"messages[{index}]") for index, item in enumerate(items)])


def add_message(space: SessionSpace, session_id: str, role: str, content: str, at: datetime | None) -> Message:
    """Adds one message; creates the session if it is new."""
    name = checks.session_id(session_id)
    (added,) = _add(space, name, [_row(space, role, content, at)])
    return added


def _add(space: SessionSpace, name: str, rows: list[MessageRow]) -> list[Message]:
    def add(tx: Transaction) -> None:
        tx.conversations.create(name, {}, space.now())
        if rows:
            tx.conversations.add_messages(name, rows)
            # Not the time of a message, which may be in the past.
            tx.conversations.touch(name, space.now())

    space.store.write(add)
    return [_message(row) for row in rows]


def messages(space: SessionSpace, session_id: str, cursor: str | None, limit: int, newest_first: bool) -> Page[Message]:
    name, after = checks.session_id(session_id), checks.cursor(cursor)
    values.flag("newest_first", newest_first)

    def read(tx: Transaction, count: int) -> list[MessageRow]:
        if tx.conversations.session(name) is None:
            raise space.missing(name)
        return tx.conversations.messages(name, after, count, newest_first)

    return page(lambda count: space.store.read(lambda tx: read(tx, count)), limit, _message)


def update_message(space: SessionSpace, session_id: str, message_id: str, content: str) -> Message:
    name = checks.session_id(session_id)
    values.identifier("message_id", message_id)
    checks.content("content", content)

    def write(tx: Transaction) -> MessageRow | None:
        row = tx.conversations.message(message_id, name)
        if row is None or row.content == content:
            return row
        tx.conversations.set_content(row.id, content)
        tx.conversations.touch(name, space.now())
        return replace(row, content=content)

    row = space.store.write(write)
    if row is None:
        raise _no_message(name, message_id)
    return _message(row)


def delete_message(space: SessionSpace, session_id: str, message_id: str) -> bool:
    name = checks.session_id(session_id)
    values.identifier("message_id", message_id)

    def write(tx: Transaction) -> bool:
        row = tx.conversations.message(message_id, name)
        if row is not None:
            tx.conversations.delete_message(row.id)
            tx.conversations.touch(name, space.now())
        return row is not None

    if not space.store.write(write):
        raise _no_message(name, message_id)
    return True


def _no_message(session_id: str, message_id: str) -> NotFound:
    return NotFound(f"session {session_id!r} has no message {message_id!r}", field="message_id", value=message_id)


def get_metadata(space: SessionSpace, session_id: str) -> Metadata:
    name = checks.session_id(session_id)
    if space.metadata_hook is None:
        return get(space, name).metadata
    # A hook may hide values from this caller.
    visible = space.metadata_hook(lambda: get(space, name).metadata, "get", name)
    if visible is None:
        return {}
    if not isinstance(visible, Mapping):
        raise Invalid(
            f"the metadata hook returned {quoted(visible)} for get",
            field="metadata_hook",
            value=visible,
            remedy="Return what original_func() returns, or a part of it",
        )
    return dict(visible)


def update_metadata(space: SessionSpace, session_id: str, metadata: Metadata, if_match: str | None = None) -> Metadata:
    """Merges by key and returns the new metadata."""
    name = checks.session_id(session_id)
    if space.metadata_hook is None or not isinstance(metadata, Mapping):
        checks.metadata(metadata)
    results = _merge(space, name, metadata, make=False, if_match=if_match)
    return results[-1] if results else get(space, name).metadata


def delete_metadata(
    space: SessionSpace, session_id: str, keys: str | Sequence[str], if_match: str | None = None
) -> Metadata:
    """Removes keys and returns the new metadata."""
    name = checks.session_id(session_id)

    def store(requested: Any) -> Metadata:
        checked_keys = checks.keys(requested)
        return _apply_changes(space, name, lambda current: remove_keys(current, checked_keys), if_match=if_match)

    results = Guarded(space.metadata_hook).run(store, "delete", name, keys=checks.keys(keys))
    return results[-1] if results else get(space, name).metadata


def page(read: Callable[[int], Sequence[Row]], limit: int, to_item: Callable[[Row], Item]) -> Page[Item]:
    """A page of numbered rows; reads one more, to know whether there is a next page."""
    count = checks.limit(limit)
    rows = read(count + 1)
    last = rows[count - 1] if len(rows) > count else None
    return Page(
        items=[to_item(row) for row in rows[:count]],
        next_cursor=None if last is None else str(last.number),  # type: ignore[attr-defined]
    )


def _merge(
    space: SessionSpace, name: str, metadata: Metadata, *, make: bool, if_match: str | None = None
) -> list[Metadata]:
    """Merges through the hook; returns the new metadata for each time that the hook stored something."""

    def store(changes: Any) -> Metadata:
        checked = checks.metadata(changes)
        return _apply_changes(space, name, lambda current: merge(current, checked), make=make, if_match=if_match)

    return Guarded(space.metadata_hook).run(store, "update", name, metadata=dict(metadata))


def _apply_changes(
    space: SessionSpace,
    name: str,
    change: Callable[[Metadata], Metadata],
    *,
    make: bool = False,
    if_match: str | None = None,
) -> Metadata:
    def attempt(tx: Transaction) -> Metadata | None:
        current = tx.conversations.session(name)
        if current is None:
            if not make:
                raise space.missing(name)
            created = change({})
            tx.conversations.create(name, created, space.now())
            return created
        values.if_match(if_match, current.metadata)
        changed = change(current.metadata)
        return changed if tx.conversations.set_metadata(current, changed, space.now()) else None

    for _ in range(ATTEMPTS):
        changed = space.store.write(attempt)
        if changed is not None:
            return changed
    raise Conflict(
        f"the metadata of session {name!r} is being changed by too many callers at once",
        field="metadata",
        value=name,
        remedy="Try again; nothing was changed",
    )


def _new_row(space: SessionSpace, item: Message | Mapping[str, Any], field: str) -> MessageRow:
    if isinstance(item, Message):
        # With a new id, so that a message can be copied to another session.
        item = {"role": item.role, "content": item.content, "at": item.at}
    if not isinstance(item, Mapping):
        raise Invalid(f"a message must be a mapping, got {quoted(item)}", field=field, value=item)
    unknown = sorted(set(item) - {"role", "content", "at"})
    if unknown:
        raise Invalid(
            f"a message has the key {quoted(unknown[0])}",
            field=f"{field}.{unknown[0]}",
            value=unknown[0],
            remedy="Use role, content and, if known, at",
        )
    return _row(space, item.get("role"), item.get("content"), item.get("at"), f"{field}.")


def _row(space: SessionSpace, role: Any, content: Any, at: Any, prefix: str = "") -> MessageRow:
    moment = values.moment(f"{prefix}at", at)
    return MessageRow(
        new_id(),
        checks.role(role, f"{prefix}role"),
        checks.content(f"{prefix}content", content),
        space.now() if moment is None else moment,
    )


def _session(row: SessionRow) -> Session:
    return Session(
        session_id=row.session_id,
        metadata=row.metadata,
        created_at=from_stored(row.created_at),
        updated_at=from_stored(row.updated_at),
    )


def _message(row: MessageRow) -> Message:
    return Message(message_id=row.id, role=row.role, content=row.content, at=from_stored(row.at))


def merge(current: Metadata, changes: Metadata) -> Metadata:
    """The metadata with all changes applied.

    >>> merge({"a": 1, "b": {"c": 2}}, {"a": 3, "b.d": 4})
    {'a': 3, 'b': {'c': 2, 'd': 4}}
    """
    result = _copy(current)
    for key, value in changes.items():
        *parents, name = key.split(".")
        _descend(result, parents, key, make=True)[name] = value
    packed = orjson.dumps(result)
    if len(packed) > MAX_METADATA:
        raise Invalid(
            f"metadata would take {len(packed)} bytes, the limit is {MAX_METADATA}",
            field="metadata",
            value=len(packed),
            remedy="Delete keys that are no longer needed; nothing was changed",
        )
    return result


def remove_keys(current: Metadata, keys: Sequence[str]) -> Metadata:
    """The metadata without these keys; missing ones are ignored.

    >>> remove_keys({"a": 1, "b": {"c": 2, "d": 3}}, ["b.c", "x"])
    {'a': 1, 'b': {'d': 3}}
    """
    result = _copy(current)
    for key in keys:
        *parents, name = key.split(".")
        _descend(result, parents, key, make=False).pop(name, None)
    return result


def _descend(values: Metadata, parents: Sequence[str], key: str, *, make: bool) -> Metadata:
    """The mapping that contains a dotted key; a missing one is created, or an empty one is returned."""
    node = values
    for name in parents:
        if name not in node:
            if not make:
                return {}
            node[name] = {}
        child: Any = node[name]
        if not isinstance(child, dict):
            if not make:
                return {}
            raise Invalid(
                f"metadata key {quoted(key)} reaches into {quoted(name)}, which is {quoted(child)}",
                field="metadata",
                value=key,
                remedy=f"Replace {quoted(name)} as a whole, or delete it first",
            )
        node = child
    return node


def _copy(values: Metadata) -> Metadata:
    copied: Metadata = orjson.loads(orjson.dumps(values))
    return copied
