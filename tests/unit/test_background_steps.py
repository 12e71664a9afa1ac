"""Work in the background: one thread, in small steps, by turns."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from heedful.errors import Unavailable
from heedful.threads import Background


@pytest.fixture
def background() -> Background:
    return Background()


def ended(background: Background) -> None:
    """Waits until all is done."""
    thread = background._thread
    if thread is not None:
        thread.join(60)


def test_owners_take_turns_and_so_does_the_work_of_each(background: Background) -> None:
    steps: list[str] = []
    may_begin = threading.Event()

    def work(name: str) -> Iterator[None]:
        assert may_begin.wait(60)
        for place in range(3):
            steps.append(f"{name}{place}")
            yield

    for owner, name in (("p", "a"), ("p", "b"), ("q", "c")):
        background.add(owner, name, lambda name=name: work(name))  # type: ignore[misc]
    background.add("p", "a", lambda: work("again"))
    may_begin.set()
    ended(background)
    assert [step for step in steps if step[0] == "a"] == ["a0", "a1", "a2"]
    assert sorted(steps) == ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"]
    assert steps.index("c1") < 6, "nobody waits for all work of another"
    assert steps.index("b0") < steps.index("a2"), "nor for another work of the same owner"


def test_all_work_is_done_by_one_thread(background: Background) -> None:
    by: set[int] = set()

    def work() -> Iterator[None]:
        by.add(threading.get_ident())
        yield
        by.add(threading.get_ident())

    for owner in range(5):
        background.add(owner, "work", work)
    ended(background)
    assert len(by) == 1
    assert by != {threading.get_ident()}


def test_an_owner_that_finishes_waits_for_one_step_of_each_work(background: Background) -> None:
    steps: list[str] = []
    begun, may_go_on = threading.Event(), threading.Event()

    def busy() -> Iterator[None]:
        begun.set()
        assert may_go_on.wait(60)
        yield

    def work(name: str) -> Iterator[None]:
        while True:
            steps.append(name)
            yield

    background.add("other", "busy", busy)
    assert begun.wait(60)
    background.add("p", "a", lambda: work("a"))
    background.add("p", "b", lambda: work("b"))
    background.finish("p")
    assert steps == ["a", "b"], "and not for somebody else's"
    may_go_on.set()
    ended(background)
    assert steps == ["a", "b"]


def test_work_that_fails_is_named_and_stops_no_other(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fails(error: Exception) -> Iterator[None]:
        raise error
        yield

    def works() -> Iterator[None]:
        done.set()
        yield

    with caplog.at_level(logging.WARNING):
        background.add("p", "first work", lambda: fails(Unavailable("the model is away")))
        background.add("p", "second work", lambda: fails(ValueError("a fault")))
        background.add("q", "third work", works)
        assert done.wait(60)
        ended(background)
    messages = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    assert messages == [
        ("first work can't be done now: the model is away", False),
        ("second work can't be done now: a fault", True),
    ]
