"""How projects and callers share a server: its threads and processor, calls a second, megabytes an hour, and the
queries and bytes under way.

Projects take turns, and so do the callers of each. Who took more of the processor than its share, while others are
active, gets slow turns: few at a time, each by one thread. Where nobody else is active, nobody is held back.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, TypeVar

from cachetools import LRUCache

from heedful.errors import Unavailable
from heedful.storage.database import Outcome, together
from heedful.threads import ProcessorTime

Result = TypeVar("Result")

SHARE = 0.2
"""Processors that anybody may keep busy; beyond that, those who took less go first."""

MAX_COMPARED = 20
"""Others who are looked at to tell whether somebody takes more than they do."""

MEMORY_SECONDS = 2.0
"""Seconds that use counts, and that somebody is active after a call."""

CHARGE_SECONDS = 0.05
"""Seconds between two counts of what is under way."""

RECHECK_SECONDS = 0.25
"""Seconds after which a call that waits is compared with others again."""

RETRY_SECONDS = 3
"""The Retry-After of a caller who is refused."""

REQUEST_SECONDS = 0.0007
"""Processor time of a request besides the work it asks for."""

BYTE_SECONDS = 5e-9
"""Processor time for each byte of its body."""

PACED_SHARE = 0.035
"""Processors that are spent on receiving requests of a project that takes more than others: 50 short ones a second."""

MAX_PACED_SECONDS = 5.0
"""Seconds that such a request waits at most; others are refused."""

MAX_WAITING = 256
"""Calls of one caller that wait for their turn; further ones are refused at once."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A kind of call: how many are done at the same time."""

    name: str
    first: int
    """Of one project, as long as it is not known that they leave the processor alone."""
    most: int
    """Of one project whose calls wait for something else, and of all projects together."""


@dataclass(slots=True)
class _Account:
    """The processor time that somebody used, and their turns under way."""

    used: float = 0.0
    at: float = 0.0
    running: Counter[str] = field(default_factory=Counter)
    """Turns under way, by lane; slow ones are not counted."""

    def charge(self, seconds: float, now: float) -> None:
        self.used = self.rate(now) * MEMORY_SECONDS + seconds
        self.at = now

    def rate(self, now: float) -> float:
        """Processors that it kept busy lately."""
        return self.used * math.exp((self.at - now) / MEMORY_SECONDS) / MEMORY_SECONDS


@dataclass(slots=True)
class _Project(_Account):
    callers: OrderedDict[str, _Account] = field(default_factory=OrderedDict)
    """The one that was active last comes last."""
    windows: dict[str, float] = field(default_factory=dict)
    """The turns that it may have at the same time, by lane."""
    served: int = 0
    """The number of its last turn."""
    next_at: float = -math.inf
    """When it may send its next request, if it takes more than others."""


@dataclass(slots=True, eq=False)
class _Call:
    project: str
    caller: str
    time: ProcessorTime | None = None
    """The processor time it takes, once it runs."""
    charged: float = 0.0
    """The part of it that was counted."""


Accounts = OrderedDict[str, _Account] | OrderedDict[str, _Project]

Waiting = OrderedDict[tuple[str, str], deque["asyncio.Future[bool]"]]
"""Turns that are waited for, by project and caller; of the callers of a project, the one who is next comes first."""


class Shares:
    """Gives turns to calls, in one event loop."""

    def __init__(self, lanes: Sequence[Lane], slow: int, wait: float, now: Callable[[], float]) -> None:
        self._lanes = deque(lanes)
        self._slow = slow
        self._wait = wait
        self._now = now
        self._projects: OrderedDict[str, _Project] = OrderedDict()
        self._waiting: dict[str, Waiting] = {lane.name: OrderedDict() for lane in lanes}
        self._running: Counter[str] = Counter()
        self._slow_running = 0
        self._turns = 0
        self._calls: set[_Call] = set()
        self._charged_at = -math.inf

    async def admit(self, project: str, caller: str, seconds: float = REQUEST_SECONDS) -> None:
        """Counts what receiving a request, or its body, takes of the processor. Who takes more of it than others waits,
        so that little is received from them in a second."""
        now, account, own = self._active(project, caller)
        account.charge(seconds, now)
        own.charge(seconds, now)
        takes_more, others, _ = self._compare(project, caller, now)
        # Whoever waits already would seem modest because of that.
        if takes_more or (others and account.next_at > now):
            wait = max(0.0, account.next_at - now)
            if wait > MAX_PACED_SECONDS:
                raise server_busy()
            account.next_at = now + wait + seconds / PACED_SHARE
            await asyncio.sleep(wait)

    async def run(
        self,
        lane: Lane,
        project: str,
        caller: str,
        work: Callable[[], Result],
        execute: Callable[[Callable[[], Result], bool], Awaitable[Result]],
    ) -> Result:
        """Runs `work` in its turn and returns its result; `execute` runs it, slowly if its second argument is true."""
        is_slow = await self._turn(lane, project, caller)
        try:
            return await self.measured(project, caller, work, lambda measured: execute(measured, is_slow))
        finally:
            self._end(lane, project, caller, is_slow)

    async def measured(
        self,
        project: str,
        caller: str,
        work: Callable[[], Result],
        execute: Callable[[Callable[[], Result]], Awaitable[Result]],
    ) -> Result:
        """The result of `work`, whose processor time is counted while it runs."""
        call = _Call(project, caller)

        def measured() -> Result:
            call.time = ProcessorTime()
            try:
                return work()
            finally:
                call.time.end()

        self._calls.add(call)
        try:
            return await execute(measured)
        finally:
            self._calls.discard(call)
            self._charge(call, self._now())

    def takes_more(self, project: str, caller: str) -> bool:
        """Whether a project or its caller takes more of the processor than others who are active."""
        now, _, _ = self._active(project, caller)
        return self._compare(project, caller, now)[0]

    async def _turn(self, lane: Lane, project: str, caller: str) -> bool:
        """Waits for a turn, and takes it; returns whether it is a slow one."""
        now, _, _ = self._active(project, caller)
        waiting, name = self._waiting[lane.name], (project, caller)
        if name not in waiting:
            is_slow = self._admits(lane, project, caller, now)
            if is_slow is not None:
                self._begin(lane, project, caller, is_slow)
                return is_slow
        queue = waiting.setdefault(name, deque())
        if len(queue) >= MAX_WAITING:
            raise server_busy()
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            async with asyncio.timeout(self._wait):
                # What others used fades, also while no call ends.
                while not (await asyncio.wait([turn], timeout=RECHECK_SECONDS))[0]:
                    self._charge_all(self._now())
                    self._give_turns(lane, self._now())
                return turn.result()
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                # It came in the same moment, and is of no use any more.
                self._end(lane, project, caller, turn.result())
            elif turn in queue:
                queue.remove(turn)
                if not queue:
                    del waiting[name]
            if isinstance(error, TimeoutError):
                raise server_busy() from None
            raise

    def _admits(self, lane: Lane, project: str, caller: str, now: float) -> bool | None:
        """Whether a call may begin now: False for at once, True for slowly, None for not yet."""
        account = self._projects[project]
        own = account.callers[caller]
        takes_more, others, colleagues = self._compare(project, caller, now)
        if takes_more:
            return True if self._slow_running < self._slow else None
        most = int(account.windows.setdefault(lane.name, lane.first))
        if others:
            most = min(most, _half(lane.most))
        if self._running[lane.name] >= lane.most or account.running[lane.name] >= most:
            return None
        return False if own.running[lane.name] < (_half(most) if colleagues else most) else None

    def _compare(self, project: str, caller: str, now: float) -> tuple[bool, bool, bool]:
        """Whether somebody takes more than others, and whether other projects, and other callers of it, are active."""
        account = self._projects[project]
        others = _others(self._projects, project, now)
        colleagues = _others(account.callers, caller, now)
        takes_more = _takes_more(account, others, now) or _takes_more(account.callers[caller], colleagues, now)
        return takes_more, bool(others), bool(colleagues)

    def _begin(self, lane: Lane, project: str, caller: str, is_slow: bool) -> None:
        self._turns += 1
        self._projects[project].served = self._turns
        self._count(lane, project, caller, is_slow, 1)

    def _end(self, lane: Lane, project: str, caller: str, is_slow: bool) -> None:
        self._count(lane, project, caller, is_slow, -1)
        now = self._now()
        account = self._projects[project]
        if not is_slow:
            # More at the same time help only those who wait for something else than the processor.
            window, step = account.windows[lane.name], 0.1 if account.rate(now) < SHARE else -1.0
            account.windows[lane.name] = max(lane.first, min(window + step, lane.most))
        # Slow turns are few, and kinds of calls have them in turn, too.
        self._lanes.rotate(is_slow)
        for served in self._lanes if is_slow else (lane,):
            self._give_turns(served, now)

    def _charge(self, call: _Call, now: float) -> None:
        account, own = self._accounts(call.project, call.caller, now)
        if call.time is not None:
            seconds = call.time.seconds()
            account.charge(seconds - call.charged, now)
            own.charge(seconds - call.charged, now)
            call.charged = seconds

    def _charge_all(self, now: float) -> None:
        """Counts what is under way, now and then."""
        if now - self._charged_at > CHARGE_SECONDS:
            self._charged_at = now
            for call in self._calls:
                self._charge(call, now)

    def _count(self, lane: Lane, project: str, caller: str, is_slow: bool, step: int) -> None:
        if is_slow:
            self._slow_running += step
            return
        account = self._projects[project]
        for running in (self._running, account.running, account.callers[caller].running):
            running[lane.name] += step

    def _give_turns(self, lane: Lane, now: float) -> None:
        waiting = self._waiting[lane.name]
        while (next_ := self._next(lane, now)) is not None:
            project, caller, is_slow = next_
            queue = waiting[project, caller]
            turn = queue.popleft()
            waiting.move_to_end((project, caller))
            if not queue:
                del waiting[project, caller]
            if not turn.done():
                self._begin(lane, project, caller, is_slow)
                turn.set_result(is_slow)

    def _next(self, lane: Lane, now: float) -> tuple[str, str, bool] | None:
        for project, caller in sorted(self._waiting[lane.name], key=lambda name: self._projects[name[0]].served):
            is_slow = self._admits(lane, project, caller, now)
            if is_slow is not None:
                return project, caller, is_slow
        return None

    def _active(self, project: str, caller: str) -> tuple[float, _Project, _Account]:
        """The time, and the accounts of a project and its caller, after what is under way was counted."""
        now = self._now()
        self._charge_all(now)
        return now, *self._accounts(project, caller, now)

    def _accounts(self, project: str, caller: str, now: float) -> tuple[_Project, _Account]:
        """Those of a project and its caller, which are active now."""
        account = self._projects.get(project)
        if account is None:
            account = self._projects[project] = _Project()
        own = account.callers.get(caller)
        if own is None:
            own = account.callers[caller] = _Account()
        account.charge(0.0, now)
        own.charge(0.0, now)
        self._projects.move_to_end(project)
        account.callers.move_to_end(caller)
        _forget(self._projects, now)
        _forget(account.callers, now)
        return account, own


def _half(number: int) -> int:
    return (number + 1) // 2


def _others(accounts: Accounts, name: str, now: float) -> list[_Account]:
    """Those who were active lately, but for one."""
    others: list[_Account] = []
    for other in reversed(accounts):
        if now - accounts[other].at > MEMORY_SECONDS or len(others) == MAX_COMPARED:
            break
        if other != name:
            others.append(accounts[other])
    return others


def _takes_more(account: _Account, others: Sequence[_Account], now: float) -> bool:
    """Whether somebody takes more of the processor than its share and than others do on average."""
    rate = account.rate(now)
    return bool(others) and rate > SHARE and rate * len(others) > sum(other.rate(now) for other in others)


def _forget(accounts: Accounts, now: float) -> None:
    """Drops who was silent longest, once that is long ago and nothing of it is under way."""
    name = next(iter(accounts))
    oldest = accounts[name]
    if now - oldest.at > 60 and not oldest.running.total() and oldest.rate(now) < 0.001:
        del accounts[name]


def server_busy() -> Unavailable:
    """The error for a call whose project or caller has taken its share, and for which there was no room in time."""
    message = "the calls of this key or its project take all of their share of the server"
    remedy = "Wait as long as Retry-After says, and send fewer at the same time"
    return Unavailable(message, code="server_busy", value=RETRY_SECONDS, remedy=remedy)


Name = TypeVar("Name")

MAX_CALLERS = 100_000
"""Callers that are remembered; the one that was silent longest is forgotten first."""


class Buckets(Generic[Name]):
    """The amount that each name has left, refilled at a rate up to a burst; threads may share it."""

    def __init__(self) -> None:
        self._buckets: LRUCache[Name, tuple[float, float]] = LRUCache(MAX_CALLERS)
        self._taking = threading.Lock()

    def take(self, name: Name, amount: float, rate: float, burst: float, now: float, least: float = -math.inf) -> float:
        """Takes an amount, unless less than `least` would be left; returns what is left, or would be."""
        with self._taking:
            left, at = self._buckets.get(name, (burst, now))
            left = min(burst, left + (now - at) * rate)
            rest = left - amount
            self._buckets[name] = (rest if rest >= least else left, now)
            return rest


class RateLimiter(Buckets[str]):
    """Allows each caller so many calls a second, and twice as many at once."""

    def check(self, caller: str, rate: int, now: float) -> None:
        """Counts one call; `Unavailable` if it is too early for it."""
        rest = self.take(caller, 1.0, rate, 2.0 * rate, now, least=0.0)
        if rest < 0:
            message = f"more than {rate} {'call' if rate == 1 else 'calls'} a second"
            value, remedy = max(1, math.ceil(-rest / rate)), "Wait as long as Retry-After says, and send it again"
            raise Unavailable(message, code="rate_limited", value=value, remedy=remedy)


Account = tuple[str, Literal["read", "write"]]
"""A project, and whether its calls write, or read and only store receipts: neither keeps the other from going on."""


class WriteLimiter(Buckets[Account]):
    """Allows the calls of each account to store so many megabytes within an hour."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self._burst = megabytes * 1_000_000.0
        self._rate = self._burst / 3600
        self._megabytes = megabytes

    def charge(self, account: Account, size: int, now: float) -> None:
        self.take(account, size, self._rate, self._burst, now)

    def check(self, account: Account, now: float) -> None:
        """`Unavailable` if an account has used up its share."""
        left = self.take(account, 0, self._rate, self._burst, now)
        if left < 0:
            stored = "its recalls have stored receipts of" if account[1] == "read" else "it has stored"
            used = f"this project has used up its share of the disk: {stored} {self._megabytes} MB within an hour"
            remedy = "Wait as long as Retry-After says, or start the server with a larger --max-written"
            value = max(1, math.ceil(-left / self._rate))
            raise Unavailable(used, code="write_limited", value=value, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Room:
    """The amounts of something for a caller, for a project and for all."""

    caller: float
    project: float
    total: float = math.inf


class RoomLimiter:
    """Shares what calls under way in one event loop take: their number, or their bytes."""

    def __init__(self, room: Room, wait: float, busy: Callable[[], Unavailable]) -> None:
        self._room = room
        self._wait = wait
        self._busy = busy
        self._changed = asyncio.Condition()
        self._taken: Counter[tuple[str, ...]] = Counter()

    @asynccontextmanager
    async def taking(self, project: str, caller: str, amount: int = 1) -> AsyncIterator[None]:
        """Waits for room, and takes it while the block runs; `Unavailable` if there is none in time."""
        limits = {(project, caller): self._room.caller, (project,): self._room.project, (): self._room.total}

        def is_room() -> bool:
            # One alone is let through: how large it may be was checked.
            return all(not self._taken[name] or self._taken[name] + amount <= limits[name] for name in limits)

        async with self._changed:
            try:
                async with asyncio.timeout(self._wait):
                    await self._changed.wait_for(is_room)
            except TimeoutError:
                raise self._busy() from None
            self._taken.update(dict.fromkeys(limits, amount))
        try:
            yield
        finally:
            self._taken.subtract(dict.fromkeys(limits, amount))
            # Names that nobody uses any more are not kept.
            for name in limits:
                if not self._taken[name]:
                    del self._taken[name]
            async with self._changed:
                self._changed.notify_all()


MAX_TOGETHER = 32
"""Short calls that a thread makes together: none of them is answered before the last is done."""


class ShortCalls:
    """Runs calls in a few threads. Those that wait are made together, share transactions, and wake the loop once."""

    def __init__(self, threads: int, name: str) -> None:
        self._waiting: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which runs even if the caller has gone."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.put((future, work))
        return await future

    def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            calls = [call]
            with suppress(Empty):
                while len(calls) < MAX_TOGETHER and (call := self._waiting.get_nowait()) is not None:
                    calls.append(call)
            if call is None:
                # For the next round: this one still has calls.
                self._waiting.put(None)
            futures = [future for future, _ in calls]
            futures[0].get_loop().call_soon_threadsafe(_deliver, futures, together(work for _, work in calls))


def _deliver(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[Outcome]) -> None:
    for future, (result, error) in zip(futures, outcomes, strict=True):
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
