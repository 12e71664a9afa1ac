"""How often, and after how long, a server is asked again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heedful.retrying import TryAgain, retry, seconds


def failing(times: int, wait: float = 0.0) -> tuple[list[int], Callable[[], str]]:
    calls: list[int] = []

    def call() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise TryAgain(f"failure {len(calls)}", wait)
        return "done"

    return calls, call


def test_a_call_that_works_is_made_once_and_without_a_pause() -> None:
    pauses: list[float] = []
    assert retry(lambda: 7, attempts=4, sleep=pauses.append) == 7
    assert pauses == []


def test_pauses_grow_within_bounds() -> None:
    calls, call = failing(7)
    pauses: list[float] = []
    assert retry(call, attempts=8, sleep=pauses.append) == "done"
    assert len(calls) == 8
    for number, pause in enumerate(pauses, start=1):
        whole = min(8.0, 0.25 * 2**number)
        assert whole / 2 <= pause <= whole


def test_the_server_may_ask_for_a_longer_pause() -> None:
    _, call = failing(1, wait=12.0)
    pauses: list[float] = []
    retry(call, attempts=2, sleep=pauses.append)
    assert pauses == [12.0]


def test_the_last_failure_says_how_often_it_was_tried() -> None:
    calls, call = failing(9)
    pauses: list[float] = []
    with pytest.raises(TryAgain, match=r"failure 3 \(tried 3 times\)"):
        retry(call, attempts=3, sleep=pauses.append)
    assert (len(calls), len(pauses)) == (3, 2)


def test_other_errors_are_not_retried() -> None:
    pauses: list[float] = []

    def call() -> None:
        raise KeyError("other")

    with pytest.raises(KeyError):
        retry(call, attempts=3, sleep=pauses.append)
    assert pauses == []


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", 0.0),
        ("3", 3.0),
        ("900", 30.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("-1", 0.0),
        ("²", 0.0),
        ("1e9", 0.0),
    ],
)
def test_a_header_asks_for_seconds_within_reason(header: str, expected: float) -> None:
    assert seconds(header) == expected
