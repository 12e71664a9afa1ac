"""Turns of calls on a server: who goes first, who waits, and who is refused."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from heedful.errors import Unavailable
from heedful.interfaces.http import sharing
from heedful.interfaces.http.sharing import Lane, Room, RoomLimiter, Shares, WriteLimiter, server_busy
from heedful.threads import ProcessorTime, in_parallel, work_alone

CALLS = Lane("call", 3, 4)
OTHERS = Lane("other", 3, 4)


class Calls:
    """Calls that run until they are ended, in the order in which they got their turns."""

    def __init__(self, wait: float = 60.0) -> None:
        self.now = 0.0
        self.shares = Shares((CALLS, OTHERS), 1, wait, lambda: self.now)
        self.begun: list[str] = []
        self.slow: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._seconds: dict[str, float] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str, project: str, caller: str = "key", lane: Lane = CALLS) -> asyncio.Task[None]:
        self._ends[name] = asyncio.Event()

        async def execute(work: Callable[[], None], is_slow: bool) -> None:
            self.begun.append(name)
            if is_slow:
                self.slow.append(name)
            await self._ends[name].wait()
            work()

        def work() -> None:
            # The clock of this thread goes on by as much as the call is said to have taken.
            (call,) = [each for each in self.shares._calls if each.time is not None and each.charged == 0.0]
            assert call.time is not None
            call.time.helped += self._seconds[name]

        self._tasks[name] = asyncio.create_task(self.shares.run(lane, project, caller, work, execute))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self._tasks[name]

    async def end(self, name: str, seconds: float = 0.0) -> None:
        self._seconds[name] = seconds
        self._ends[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_where_nobody_else_is_active_nothing_is_slow_however_much_it_takes() -> None:
    async def test() -> None:
        calls = Calls()
        for place in range(20):
            await calls.start(f"a{place}", "alone")
            await calls.end(f"a{place}", seconds=5.0)
        assert calls.slow == []

    run(test)


def test_who_took_more_than_others_is_done_one_at_a_time_while_they_are_active() -> None:
    async def test() -> None:
        calls = Calls()
        await calls.start("first", "greedy")
        await calls.end("first", seconds=5.0)
        await calls.start("look", "quiet")
        for place in range(3):
            await calls.start(f"g{place}", "greedy")
        assert calls.begun == ["first", "look", "g0"]
        assert calls.slow == ["g0"]
        # The others find all threads free.
        await calls.start("look again", "quiet")
        assert calls.begun[-1] == "look again"
        assert calls.slow == ["g0"]
        await calls.end("g0", seconds=1.0)
        assert calls.slow == ["g0", "g1"]
        # Once nobody else was active for a while, nothing is held back.
        await calls.end("look")
        await calls.end("look again")
        calls.now += sharing.MEMORY_SECONDS + 0.1
        await calls.start("later", "greedy", lane=OTHERS)
        assert calls.begun[-1] == "later"
        assert "later" not in calls.slow

    run(test)


def test_requests_of_who_takes_more_than_others_are_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small requests, and those that are refused, take time from others as well."""
    waits: list[float] = []

    async def test() -> None:
        calls = Calls()

        async def sleep(seconds: float) -> None:
            waits.append(round(seconds, 3))

        monkeypatch.setattr(asyncio, "sleep", sleep)
        for _ in range(1_000):
            await calls.shares.admit("greedy", "key")
        assert waits == []
        await calls.shares.admit("quiet", "key")
        for _ in range(4):
            await calls.shares.admit("greedy", "key")
        assert waits == [0.0, 0.02, 0.04, 0.06]
        await calls.shares.admit("quiet", "key")
        assert len(waits) == 4
        # Whoever waits seems modest: it is paced until it sends less.
        calls.now += 0.05
        monkeypatch.setattr(sharing, "SHARE", 1_000.0)
        await calls.shares.admit("greedy", "key")
        assert waits[4:] == [0.03]
        calls.now += 1.0
        await calls.shares.admit("greedy", "key")
        assert len(waits) == 5

    run(test)


def test_too_many_requests_of_who_takes_more_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        calls = Calls()

        async def sleep(_: float) -> None: ...

        monkeypatch.setattr(asyncio, "sleep", sleep)
        monkeypatch.setattr(sharing, "SHARE", 0.0)
        await calls.shares.admit("quiet", "key")
        for _ in range(int(sharing.MAX_PACED_SECONDS * sharing.PACED_SHARE / sharing.REQUEST_SECONDS) + 2):
            await calls.shares.admit("greedy", "key")
        with pytest.raises(Unavailable, match="all of their share") as refused:
            await calls.shares.admit("greedy", "key")
        assert (refused.value.code, refused.value.value) == ("server_busy", sharing.RETRY_SECONDS)

    run(test)


def test_who_waits_is_compared_again_although_no_call_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet project that was busy for a moment waited for the long call of another, and was refused."""
    monkeypatch.setattr(sharing, "RECHECK_SECONDS", 0.001)

    async def test() -> None:
        calls = Calls()
        await calls.start("before", "greedy")
        await calls.end("before", seconds=5.0)
        await calls.start("burst", "quiet")
        await calls.start("long", "greedy")
        assert calls.slow == ["long"]
        await calls.end("burst", seconds=20.0)
        await calls.start("look", "quiet")
        assert "look" not in calls.begun
        calls.now += 10.0
        async with asyncio.timeout(30):
            while "look" not in calls.begun:
                await asyncio.sleep(0.001)
        assert "look" not in calls.slow
        await calls.end("long")
        await calls.end("look")

    run(test)


def test_a_caller_who_took_more_gives_way_to_others_of_its_project() -> None:
    async def test() -> None:
        calls = Calls()
        await calls.start("import", "shop", "nightly")
        await calls.end("import", seconds=5.0)
        await calls.start("page", "shop", "app")
        await calls.start("import 2", "shop", "nightly")
        await calls.start("import 3", "shop", "nightly")
        await calls.start("page 2", "shop", "app")
        assert calls.slow == ["import 2"]
        assert calls.begun == ["import", "page", "import 2", "page 2"]

    run(test)


def test_projects_take_turns_and_so_do_their_callers() -> None:
    async def test() -> None:
        calls = Calls()
        for place in range(4):
            await calls.start(f"busy{place}", f"p{place}")
        for place in range(3):
            await calls.start(f"a{place}", "a", "one")
        await calls.start("a other", "a", "two")
        await calls.start("b0", "b")
        assert len(calls.begun) == CALLS.most
        for place in range(4):
            await calls.end(f"busy{place}")
        # The limit of each project is half of all as long as others wait.
        assert calls.begun[4:] == ["a0", "b0", "a other"]

    run(test)


@pytest.mark.slow
def test_what_is_under_way_counts_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that compute are seen while they do: three endless calls are enough to be held back."""
    monkeypatch.setattr(sharing, "SHARE", 0.01)
    stop = threading.Event()

    def compute() -> None:
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        stop.wait(60)

    async def test() -> None:
        divided = Shares((CALLS,), 1, 60.0, time.monotonic)
        slow: list[str] = []

        def execute(work: Callable[[], None], is_slow: bool) -> Awaitable[None]:
            slow.extend(["slow"] if is_slow else [])
            return asyncio.get_running_loop().run_in_executor(None, work)

        def begin(project: str, work: Callable[[], None]) -> asyncio.Task[None]:
            return asyncio.create_task(divided.run(CALLS, project, "key", work, execute))

        endless = begin("greedy", compute)
        while not any(call.time is not None and call.time.seconds() >= 0.3 for call in divided._calls):
            await asyncio.sleep(0.01)
        await begin("quiet", lambda: None)
        assert slow == []
        await begin("greedy", lambda: None)
        stop.set()
        await endless
        assert slow == ["slow"]

    run(test)


def test_who_waits_too_long_or_with_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MAX_WAITING", 2)

    async def test() -> None:
        calls = Calls(wait=0.01)
        for place in range(3):
            await calls.start(f"r{place}", "p")
        waiting = [await calls.start(f"w{place}", "p") for place in range(3)]
        for each in waiting:
            with pytest.raises(Unavailable) as refused:
                await each
            assert refused.value.code == "server_busy"
            assert refused.value.value
        assert calls.shares._waiting["call"] == {}
        await calls.end("r0")
        await calls.start("next", "p")
        assert calls.begun[-1] == "next"

    run(test)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_left_behind_whatever_happens(seed: int) -> None:
    """Calls end, fail and are given up at random: counts return to zero, and nobody waits for ever."""
    chosen = random.Random(seed)

    async def test() -> None:
        divided = Shares((CALLS, OTHERS), 1, 60.0, time.monotonic)
        done: Counter[str] = Counter()

        def work(name: str) -> None:
            done[name] += 1
            if chosen.random() < 0.2:
                raise ValueError(name)

        async def execute(measured: Callable[[], None], is_slow: bool) -> None:
            await asyncio.sleep(chosen.choice([0, 0, 0.001]))
            measured()

        async def call(place: int) -> None:
            project, caller = chosen.choice("abc"), chosen.choice("xyz")
            lane = chosen.choice([CALLS, OTHERS])
            await divided.run(lane, project, caller, lambda: work(project), execute)

        tasks = [asyncio.create_task(call(place)) for place in range(300)]
        await asyncio.sleep(0.005)
        for each in chosen.sample(tasks, 60):
            each.cancel()
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert not divided._running.total()
        assert not divided._slow_running
        assert not divided._calls
        assert divided._waiting == {"call": {}, "other": {}}
        assert set(done) == {"a", "b", "c"}

    run(test)


def test_bytes_of_one_caller_leave_room_for_others() -> None:
    async def test() -> None:
        bodies = RoomLimiter(Room(100, 200, 400), 0.01, server_busy)
        async with bodies.taking("p", "one", 90):
            with pytest.raises(Unavailable):
                async with bodies.taking("p", "one", 20):
                    raise AssertionError("there was no room")
            async with bodies.taking("p", "two", 90), bodies.taking("q", "three", 100):
                with pytest.raises(Unavailable):
                    async with bodies.taking("p", "three", 90):
                        raise AssertionError("the project had no room")
        # One that is larger than a share can't wait for ever.
        async with bodies.taking("p", "one", 1000):
            pass
        assert not bodies._taken

    run(test)


def test_what_a_project_stores_is_bounded_within_an_hour() -> None:
    written = WriteLimiter(1)
    written.charge(("p", "write"), 1_000_000, now=0.0)
    written.check(("p", "write"), now=0.0)
    written.charge(("p", "write"), 200_000, now=0.0)
    with pytest.raises(Unavailable) as refused:
        written.check(("p", "write"), now=0.0)
    assert refused.value.code == "write_limited"
    assert refused.value.value == 720
    written.check(("p", "read"), now=0.0)
    written.check(("q", "write"), now=0.0)
    written.check(("p", "write"), now=720.0)


def test_threads_that_help_count_for_whom_they_help() -> None:
    def compute(_: int) -> None:
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass

    taken = ProcessorTime()
    in_parallel(compute, range(4))
    assert taken.seconds() >= 0.08


def test_a_thread_that_works_alone_starts_no_others() -> None:
    by: set[int] = set()

    def alone() -> None:
        work_alone()
        in_parallel(lambda _: by.add(threading.get_ident()), range(10))
        by.remove(threading.get_ident())

    thread = threading.Thread(target=alone)
    thread.start()
    thread.join()
    assert by == set()
