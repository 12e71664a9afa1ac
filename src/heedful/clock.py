"""Time: an injectable clock, and the integers that time is stored as."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MINUTE = 60_000_000
"""One minute in stored time (microseconds)."""

DAY = 1_440 * MINUTE


def system_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def to_stored(moment: datetime) -> int:
    """Microseconds since 1970 in UTC; a datetime without a zone is read as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def from_stored(stored: int) -> datetime:
    """The datetime behind a stored time."""
    return _EPOCH + timedelta(microseconds=stored)
