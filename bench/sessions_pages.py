"""What a page of a long session takes, wherever in it the page is."""

from __future__ import annotations

from collections.abc import Callable

from bench.measure import Spent, in_turns, timed
from heedful.engine import Heedful
from heedful.model.limits import MAX_MESSAGES

PAGE = 100
SHORT = 1_000

LONG_ID, SHORT_ID = "long", "short"


def fill(store: Heedful, messages: int) -> None:
    """A session with so many messages, and a short one to compare."""
    for session, count in ((LONG_ID, messages), (SHORT_ID, SHORT)):
        for first in range(0, count, MAX_MESSAGES):
            store.sessions.add_messages(
                session,
                [
                    {"role": ("user", "assistant")[place % 2], "content": f"Message {place} of a long conversation."}
                    for place in range(first, min(first + MAX_MESSAGES, count))
                ],
            )


def measure(store: Heedful, messages: int, calls: int) -> dict[str, list[Spent]]:
    """What the first, middle and last page of the long session took, and the middle one of the short session."""
    places = {
        "first page": (LONG_ID, 0),
        "middle page": (LONG_ID, messages // 2),
        "last page": (LONG_ID, messages - PAGE),
        f"middle page of {SHORT:,} messages": (SHORT_ID, SHORT // 2),
    }
    tasks = {name: _reading(store, session, behind) for name, (session, behind) in places.items()}
    in_turns(tasks, range(5), block=5)
    return in_turns(tasks, range(calls), block=5)


def _reading(store: Heedful, session: str, behind: int) -> Callable[[int], Spent]:
    """Reads the page behind so many messages."""
    cursor = _cursor(store, session, behind)

    def read(place: int) -> Spent:
        spent, page = timed(lambda: store.sessions.messages(session, cursor=cursor, limit=PAGE))
        assert page.items[0].content.startswith(f"Message {behind} ")
        assert len(page.items) == PAGE
        return spent

    return read


def _cursor(store: Heedful, session: str, behind: int) -> str | None:
    """Where the page behind so many messages begins: found by paging, as anybody would."""
    cursor = None
    for _ in range(behind // PAGE):
        cursor = store.sessions.messages(session, cursor=cursor, limit=PAGE).next_cursor
        assert cursor is not None
    return cursor
