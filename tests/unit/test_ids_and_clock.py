from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.clock import from_stored, new_id, system_clock, to_stored
from heedful.testing import ManualClock


def test_an_id_is_a_uuid_of_version_7() -> None:
    found = UUID(new_id())
    assert (found.version, found.variant) == (7, RFC_4122)


def test_ids_differ() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


def test_an_id_starts_with_the_time() -> None:
    before = int(system_clock().timestamp() * 1000) - 1
    milliseconds = UUID(new_id()).int >> 80
    assert before <= milliseconds <= int(system_clock().timestamp() * 1000) + 1


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])))
def test_a_moment_comes_back_from_the_store(moment: datetime) -> None:
    back = from_stored(to_stored(moment))
    assert back == moment
    assert back.tzinfo is UTC


def test_a_moment_without_a_zone_is_read_as_utc() -> None:
    assert to_stored(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000


def test_the_system_clock_has_a_zone() -> None:
    assert system_clock().tzinfo is UTC


def test_a_manual_clock_moves_when_told_to() -> None:
    clock = ManualClock()
    start = clock()
    assert clock() == start
    clock.advance(days=7)
    assert clock() - start == timedelta(days=7)
    clock.advance(hours=-1)
    assert clock() - start == timedelta(days=6, hours=23)


def test_a_manual_clock_starts_where_it_is_told_to() -> None:
    moment = datetime(2030, 5, 1, tzinfo=UTC)
    assert ManualClock(moment)() == moment


@pytest.mark.parametrize("stored", [0, -1, 10**17])
def test_any_stored_time_is_a_moment(stored: int) -> None:
    assert to_stored(from_stored(stored)) == stored
