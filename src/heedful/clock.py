"""Time: an injectable clock, the integers that time is stored as, and identifiers that begin with it."""

from __future__ import annotations

import os
import time
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


def new_id() -> str:
    """A fresh UUID of version 7 (RFC 9562) as text: its first bits are the time, so that indexes stay dense."""
    random_bits = int.from_bytes(os.urandom(10), "big")
    number = (time.time_ns() // 1_000_000) << 80 | random_bits
    number = number & ~(0xF << 76) | (0x7 << 76)
    number = number & ~(0x3 << 62) | (0x2 << 62)
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def without_receipt(recall_id: str) -> str:
    """The id of a recall that looked into a dataset that isn't there: the same, as a UUID of version 8. Nothing is
    stored for it, and it can still be distinguished from an id that was mistyped."""
    return f"{recall_id[:14]}8{recall_id[15:]}"


def has_no_receipt(recall_id: str) -> bool:
    """Whether this is the id of such a recall."""
    return len(recall_id) == 36 and recall_id[14] == "8"
