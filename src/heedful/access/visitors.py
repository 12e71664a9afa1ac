"""What visitors may write: one of them about one target in a day, and all of them in a project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic_core import to_jsonable_python

from heedful.access.secrets import digest
from heedful.clock import DAY, MINUTE
from heedful.errors import Invalid, Unavailable
from heedful.model import limits
from heedful.storage import Database, scopes, visitor_usage

MAX_CHANGES = 500
"""Opinions, changes and retractions about one target by one author of tokens in a day: each stays in the ledger, and
visitors without a subject are one author."""

MAX_BYTES = 1_000_000
"""Bytes of these."""

EVENT_BYTES = 500
"""Bytes that an opinion takes in the store besides what was sent."""

_ALL = ""
_COMMENTS = ("comment", "feedback", "feedback_text")


def size_of(arguments: Mapping[str, Any]) -> int:
    """Bytes that a call leaves in the store, about; `Invalid` if most of them are not the comment's."""
    feedback = arguments.get("feedback")
    details = {name: value for name, value in arguments.items() if not _is_comment(name, value)}
    if isinstance(feedback, Mapping):
        details["feedback"] = {name: value for name, value in feedback.items() if not _is_comment(name, value)}
    size = _bytes(details)
    if size > limits.MAX_VISITOR_DETAILS:
        largest = max(details, key=lambda name: _bytes(details[name]))
        raise Invalid(
            f"{largest} and what else is sent with the comment take {size} bytes, the limit for a token is "
            f"{limits.MAX_VISITOR_DETAILS}",
            field=largest,
            value=size,
            remedy="Send less, or let your own server send it with a key",
        )
    return _bytes(arguments) + EVENT_BYTES


@contextmanager
def counted(
    database: Database,
    project: str,
    now: Callable[[], int],
    visitor: tuple[str, Mapping[str, str]],
    size: int,
    most: int,
) -> Iterator[None]:
    """A block in which a visitor, an author and what they speak of, writes so many bytes.

    `Unavailable` if that is more than they may write in a day, or than all visitors of the project may (`most`; 0 for
    no limit). The count is in the store: it is the same for all processes, and after a restart.
    """
    author, target = visitor
    subject = digest(json.dumps([author, *sorted(target.items())])).hex()[:32]
    day, left = divmod(now(), DAY)
    wait = max(1, (DAY - left) * 60 // MINUTE)

    def count(changes: int, size: int) -> None:
        with database.write(project, durable=False) as connection:
            number = scopes.ensure_project(connection, project, now())
            used = visitor_usage.read(connection, number, day, (_ALL, subject))
            usage = {each: (used[each][0] + changes, used[each][1] + size) for each in used}
            if changes > 0:
                _check(usage, subject, most, wait)
            visitor_usage.write(connection, number, day, usage)

    count(1, size)
    try:
        yield
    except BaseException:
        count(-1, -size)
        raise


def _check(usage: Mapping[str, tuple[int, int]], subject: str, most: int, wait: int) -> None:
    changes, size = usage[subject]
    if changes > MAX_CHANGES:
        raise _too_much(f"more than {MAX_CHANGES} changes of feedback about one target in a day", wait)
    if size > MAX_BYTES:
        raise _too_much(f"more than {MAX_BYTES} bytes of feedback about one target in a day", wait)
    if most and usage[_ALL][1] > most:
        raise _too_much(f"more than {most} bytes of feedback of visitors in a day (visitor_daily_bytes)", wait)


def _too_much(message: str, wait: int) -> Unavailable:
    return Unavailable(message, code="rate_limited", value=wait, remedy="Wait as long as Retry-After says")


def _is_comment(name: str, value: Any) -> bool:
    return name in _COMMENTS and isinstance(value, str)


def _bytes(value: Any) -> int:
    return len(json.dumps(to_jsonable_python(value), ensure_ascii=False).encode(errors="replace"))
