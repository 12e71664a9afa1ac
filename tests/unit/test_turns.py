"""Turns of writers: by project, in the order in which they came."""

from __future__ import annotations

import threading

import pytest

from heedful import threads
from heedful.storage import database as turns_module
from heedful.storage.database import Place, Turns


def called(*places: Place) -> list[bool]:
    return [place.wait(0) for place in places]


def test_whoever_comes_first_has_the_turn_at_once() -> None:
    turns = Turns()
    assert called(turns.queue("shop"), turns.queue("shop")) == [True, False]


def test_projects_take_turns_however_many_writers_one_has() -> None:
    turns = Turns()
    first = turns.queue("busy")
    busy = [turns.queue("busy") for _ in range(3)]
    quiet = turns.queue("quiet")
    order: list[int] = []
    assert first.wait(0)
    places = {0: busy[0], 1: busy[1], 2: busy[2], 9: quiet}
    for _ in range(4):
        turns.end()
        order += [name for name, place in places.items() if name not in order and place.wait(0)]
    assert order == [0, 9, 1, 2]


def test_nobody_who_comes_again_overtakes_those_who_wait() -> None:
    turns = Turns()
    assert turns.queue("busy").wait(0)
    quiet = turns.queue("quiet")
    turns.end()
    again = turns.queue("busy")
    assert called(quiet, again) == [True, False]


def test_after_the_last_one_the_turn_is_free() -> None:
    turns = Turns()
    assert turns.queue("shop").wait(0)
    assert not turns.hand_over()
    turns.end()
    assert turns.queue("shop").wait(0)


def test_whoever_leaves_is_not_called() -> None:
    turns = Turns()
    assert turns.queue("shop").wait(0)
    gone, next_ = turns.queue("shop"), turns.queue("shop")
    assert turns.leave(gone)
    turns.end()
    assert called(gone, next_) == [False, True]


def test_whoever_was_called_before_leaving_has_the_turn() -> None:
    turns = Turns()
    assert turns.queue("shop").wait(0)
    place = turns.queue("shop")
    assert turns.hand_over()
    assert not turns.leave(place)
    turns.end()
    assert turns.queue("shop").wait(0)


@pytest.fixture
def slow_place() -> tuple[Turns, Place]:
    """A turn that is taken, and the place of a thread that gives way to others."""
    turns = Turns()
    places: list[Place] = []
    assert turns.queue("quiet").wait(0)

    def wait() -> None:
        threads.give_way()
        places.append(turns.queue("busy"))

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    return turns, places[0]


def test_a_transaction_is_not_shared_with_one_who_gives_way(slow_place: tuple[Turns, Place]) -> None:
    turns, place = slow_place
    assert not turns.hand_over()
    turns.end()
    assert place.wait(0)


def test_what_keeps_others_waiting_counts_more_than_the_time_it_takes() -> None:
    measured = threads.ProcessorTime()
    before = measured.seconds()
    threads.kept_others_waiting(0.5)
    assert measured.seconds() - before >= threads.KEPT_WAITING_FACTOR * (0.5 - threads.UNNOTICED_SECONDS)


def test_others_are_those_of_other_projects_who_came_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("heedful.storage.database.time.monotonic", lambda: now)
    turns = Turns()
    turns.queue("shop")
    assert not turns.has_others("shop")
    turns.queue("quiet")
    turns.queue("shop")
    assert turns.has_others("shop")
    now += 2 * turns_module.ACTIVE_SECONDS
    assert not turns.has_others("shop")
