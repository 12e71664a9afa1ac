"""From when to when a report goes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from heedful.clock import from_stored, to_stored
from heedful.errors import Invalid


def checked(since: Any, until: Any) -> tuple[int | None, int | None]:
    """Both ends as stored times; the first must lie before the second."""
    start, stop = _moment("since", since), _moment("until", until)
    if start is not None and stop is not None and start >= stop:
        raise Invalid(
            f"since ({from_stored(start):%Y-%m-%d %H:%M}) must be before until ({from_stored(stop):%Y-%m-%d %H:%M})",
            field="since",
            value=since,
            remedy="Swap the two, or leave one out",
        )
    return start, stop


def _moment(field: str, given: Any) -> int | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise Invalid(
            f"{field} must be a datetime, got {given!r}",
            field=field,
            value=given,
            remedy="Pass a datetime; one without a zone is read as UTC",
        )
    return to_stored(given)
