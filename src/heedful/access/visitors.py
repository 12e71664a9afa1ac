"""The limits of feedback by visitors in a day: by one about one target and about all, and by all in a project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python
from sqlalchemy import Connection, delete, select

from heedful.access.credentials import digest
from heedful.clock import DAY, MINUTE
from heedful.errors import Invalid, Unavailable
from heedful.ledger.votes import ANYONE
from heedful.model import limits
from heedful.storage import Database, scopes
from heedful.storage.rows import dialect_of, upsert
from heedful.storage.schema import visitor_usage

MAX_CHANGES = 500
"""Opinions, changes and retractions about one target by one author of tokens in a day: each stays in the ledger, and
visitors without a subject are one author."""

MAX_BYTES = 1_000_000  # Bytes of these.
EVENT_BYTES = 500  # Bytes that an opinion takes in the store besides what was sent.
MAX_BARE_BYTES = 500  # Bytes of the arguments of a bare rating.
AUTHORS = 20  # One author may use one part in so many of the project's bytes, though at least `MAX_BYTES`.
RESERVE = 10  # One part in so many of a limit that visitors share is added to it for bare ratings.

_ALL = ""
_COMMENTS = ("comment", "feedback", "feedback_text")


class Size(NamedTuple):
    """The room that a call takes in the store."""

    bytes: int  # About; texts count as UTF-8.
    bare: bool  # Whether it is short and has no comment: a rating alone, or a retraction.


def size_of(arguments: Mapping[str, Any]) -> Size:
    """The size of a call; `Invalid` if most of it is not the comment's."""
    feedback = arguments.get("feedback")
    details, comments = _split(arguments)
    if isinstance(feedback, Mapping):
        details["feedback"], more = _split(feedback)
        comments += more
    size = _bytes(details)
    if size > limits.MAX_VISITOR_DETAILS:
        largest = max(details, key=lambda name: _bytes(details[name]))
        most, remedy = limits.MAX_VISITOR_DETAILS, "Send less, or let your own server send it with a key"
        message = f"{largest} and what else is sent with the comment take {size} bytes, the limit for a token is {most}"
        raise Invalid(message, field=largest, value=size, remedy=remedy)
    return Size(_bytes(arguments) + EVENT_BYTES, size <= MAX_BARE_BYTES and not any(comments))


@contextmanager
def counted(
    database: Database,
    project: str,
    now: Callable[[], int],
    visitor: tuple[str, Mapping[str, str]],
    size: Size,
    most: int,
) -> Iterator[None]:
    """A block in which a visitor, an author and what they speak of, writes this much.

    `Unavailable` if that is more than they may write in a day, or than all visitors of the project may (`most` bytes; 0
    for no limit). The count is in the store: it is the same for all processes, and after a restart.
    """
    author, target = visitor
    about_target = _hash(author, *sorted(target.items()))
    about_all = _hash(author)
    day, left = divmod(now(), DAY)
    wait = max(1, (DAY - left) * 60 // MINUTE)

    def count(changes: int) -> None:
        with database.write(project, durable=False) as connection:
            number = scopes.ensure_project(connection, project, now())
            used = _read_usage(connection, number, day, (_ALL, about_all, about_target))
            usage = {
                subject: (count + changes, total + changes * size.bytes) for subject, (count, total) in used.items()
            }
            if changes > 0:
                if usage[about_target][0] > MAX_CHANGES:
                    raise _too_much(f"more than {MAX_CHANGES} changes of feedback about one target in a day", wait)
                written = (usage[subject][1] for subject in (about_target, about_all, _ALL))
                for used_bytes, limit in zip(written, _limits(author, most), strict=True):
                    limit.check(used_bytes, size.bare, wait)
            _write_usage(connection, number, day, usage)

    count(1)
    try:
        yield
    except BaseException:
        count(-1)
        raise


class _Limit(NamedTuple):
    """Bytes that may be written, and by whom; 0 for no limit."""

    bytes: int
    whose: str
    shared: bool  # Whether visitors share it, so that one of them can use up what others need.

    def check(self, used: int, bare: bool, wait: int) -> None:
        reserve = self.bytes // RESERVE if bare and self.shared else 0
        if self.bytes and used > self.bytes + reserve:
            raise _too_much(f"more than {self.bytes} bytes of feedback {self.whose} in a day", wait)


def _limits(author: str, most: int) -> tuple[_Limit, _Limit, _Limit]:
    """For an author about one target, about all targets, and for the project."""
    anyone = author == ANYONE
    own_share = max(most // AUTHORS, MAX_BYTES) if most else 0
    return (
        _Limit(MAX_BYTES, "about one target", shared=anyone),
        _Limit(most // 2, "of visitors without a subject", shared=True)
        if anyone
        else _Limit(own_share, "of one author", shared=False),
        _Limit(most, "of visitors (visitor_daily_bytes)", shared=True),
    )


def _too_much(message: str, wait: int) -> Unavailable:
    return Unavailable(message, code="rate_limited", value=wait, remedy="Wait as long as Retry-After says")


def _hash(*parts: Any) -> str:
    return digest(json.dumps(parts)).hex()[:32]


def _split(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The values but the comments, and these."""
    comments = {name: value for name, value in values.items() if name in _COMMENTS and isinstance(value, str)}
    return {name: value for name, value in values.items() if name not in comments}, list(comments.values())


def _bytes(value: Any) -> int:
    return len(json.dumps(to_jsonable_python(value), ensure_ascii=False).encode(errors="replace"))


_USAGE_KEY = ("project_id", "day", "subject")


def _read_usage(
    connection: Connection, project: int, day: int, subjects: tuple[str, ...]
) -> dict[str, tuple[int, int]]:
    """The changes and bytes of each subject on a day."""
    usage = visitor_usage.c
    chosen = (usage.project_id == project, usage.day == day, usage.subject.in_(subjects))
    rows = connection.execute(select(usage.subject, usage.changes, usage.bytes).where(*chosen))
    return dict.fromkeys(subjects, (0, 0)) | {row.subject: (row.changes, row.bytes) for row in rows}


def _write_usage(connection: Connection, project: int, day: int, usage: dict[str, tuple[int, int]]) -> None:
    """Stores what was read and counted on; days before are over."""
    rows = [
        {"project_id": project, "day": day, "subject": subject, "changes": changes, "bytes": size}
        for subject, (changes, size) in usage.items()
    ]
    connection.execute(upsert(dialect_of(connection), visitor_usage, _USAGE_KEY, ("changes", "bytes")), rows)
    if any(changes == 1 for changes, _ in usage.values()):
        old = (visitor_usage.c.project_id == project, visitor_usage.c.day < day)
        connection.execute(delete(visitor_usage).where(*old))
