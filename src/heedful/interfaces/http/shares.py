"""Whose turn it is: projects and callers share the threads and the processor of a server.

Projects take turns, and so do the callers of each. Who took more of the processor than its share, while others are
active, gets slow turns: few at a time, each by one thread. Where nobody else is active, nobody is held back.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from heedful.errors import Unavailable
from heedful.threads import ProcessorTime

Result = TypeVar("Result")

SHARE = 0.2
"""Processors that anybody may keep busy; beyond that, those who took less go first."""

MAX_COMPARED = 20
"""Others who are looked at to tell whether somebody takes more than they do."""

MEMORY_SECONDS = 2.0
"""How long what was used counts, and how long after a call somebody is active."""

CHARGE_SECONDS = 0.05
"""How often what is under way is counted."""

RECHECK_SECONDS = 0.25
"""How often a call that waits is compared with others again."""

RETRY_SECONDS = 3
"""The Retry-After of a caller who is refused."""

REQUEST_SECONDS = 0.0007
"""Processor time of a request besides the work it asks for."""

BYTE_SECONDS = 5e-9
"""Processor time for each byte of its body."""

PACED_SHARE = 0.035
"""Processors that are spent on receiving requests of a project that takes more than others: 50 short ones a second."""

MAX_PACED_SECONDS = 5.0
"""How long such a request waits at most; others are refused."""

MAX_WAITING = 256
"""Calls of one caller that wait for their turn; further ones are refused at once."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A kind of call: how many are done at the same time."""

    name: str
    total: int
    """Of all projects together."""
    first: int
    """Of one project, as long as it is not known that they leave the processor alone."""
    most: int
    """Of one project whose calls wait for something else."""


@dataclass(slots=True)
class _Account:
    """What somebody used and does."""

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
    """How many turns it may have at the same time, by lane."""
    served: int = 0
    """The number of its last turn."""
    next_at: float = -math.inf
    """When it may send its next request, if it takes more than others."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way."""

    project: str
    caller: str
    time: ProcessorTime | None = None
    """What it takes, once it runs."""
    charged: float = 0.0
    """What of it was counted."""


Accounts = OrderedDict[str, _Account] | OrderedDict[str, _Project]

Waiting = OrderedDict[str, deque["asyncio.Future[bool]"]]
"""Turns that are waited for, by caller; the caller who is next comes first."""


class Shares:
    """Gives turns to calls, in one event loop."""

    def __init__(self, lanes: Sequence[Lane], slow: int, wait: float, now: Callable[[], float]) -> None:
        self._lanes = deque(lanes)
        self._slow = slow
        self._wait = wait
        self._now = now
        self._projects: OrderedDict[str, _Project] = OrderedDict()
        self._waiting: dict[str, dict[str, Waiting]] = {lane.name: {} for lane in lanes}
        self._running: Counter[str] = Counter()
        self._slow_running = 0
        self._turns = 0
        self._calls: set[_Call] = set()
        self._charged_at = -math.inf

    async def admit(self, project: str, caller: str, seconds: float = REQUEST_SECONDS) -> None:
        """Counts what receiving a request, or its body, takes of the processor. Who takes more of it than others waits,
        so that little is received from them in a second."""
        now = self._now()
        self._charge_all(now)
        account, own = self._accounts(project, caller, now)
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
        """What `work` returns or raises; what it takes of the processor is counted while it runs."""
        call = _Call(project, caller)

        def measured() -> Result:
            call.time = ProcessorTime()
            return work()

        self._calls.add(call)
        try:
            return await execute(measured)
        finally:
            self._calls.discard(call)
            self._charge(call, self._now())

    def takes_more(self, project: str, caller: str) -> bool:
        """Whether a project or its caller takes more of the processor than others who are active."""
        now = self._now()
        self._charge_all(now)
        self._accounts(project, caller, now)
        return self._compare(project, caller, now)[0]

    async def _turn(self, lane: Lane, project: str, caller: str) -> bool:
        """Waits for a turn, and takes it; returns whether it is a slow one."""
        now = self._now()
        self._charge_all(now)
        self._accounts(project, caller, now)
        waiting = self._waiting[lane.name]
        if caller not in waiting.get(project, {}):
            is_slow = self._admits(lane, project, caller, now)
            if is_slow is not None:
                self._begin(lane, project, caller, is_slow)
                return is_slow
        queue = waiting.setdefault(project, OrderedDict()).setdefault(caller, deque())
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
                self._tidy(lane, project, caller)
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
        if self._running[lane.name] >= lane.total or account.running[lane.name] >= most:
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
        for each in self._lanes if is_slow else (lane,):
            self._give_turns(each, now)

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
            turn = waiting[project][caller].popleft()
            waiting[project].move_to_end(caller)
            self._tidy(lane, project, caller)
            if not turn.done():
                self._begin(lane, project, caller, is_slow)
                turn.set_result(is_slow)

    def _next(self, lane: Lane, now: float) -> tuple[str, str, bool] | None:
        waiting = self._waiting[lane.name]
        for project in sorted(waiting, key=lambda name: self._projects[name].served):
            for caller in waiting[project]:
                is_slow = self._admits(lane, project, caller, now)
                if is_slow is not None:
                    return project, caller, is_slow
        return None

    def _tidy(self, lane: Lane, project: str, caller: str) -> None:
        waiting = self._waiting[lane.name]
        if not waiting[project][caller]:
            del waiting[project][caller]
            if not waiting[project]:
                del waiting[project]

    def _accounts(self, project: str, caller: str, now: float) -> tuple[_Project, _Account]:
        """Those of a project and its caller, which are active now."""
        account = self._projects.setdefault(project, _Project())
        own = account.callers.setdefault(caller, _Account())
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
    return Unavailable(
        "the calls of this key or its project take all of their share of the server",
        code="server_busy",
        value=RETRY_SECONDS,
        remedy="Wait as long as Retry-After says, and send fewer at the same time",
    )
