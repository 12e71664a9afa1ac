"""What a query process does to itself: it gives up rights, and lets the operating system limit what it takes.

What a system lacks is left out: the server still kills a process that takes too long.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import Invalid

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CPU_GRACE = 3
_CORES = 2
"""Cores that one query may keep busy."""


class _OutOfTime(BaseException):
    """Not an Exception: a parser that tries several ways must not take it for one that failed."""


def confine(parent: int) -> None:
    """Once, before anything else: no new rights, no core dumps, the first to go when memory runs out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        system = ctypes.CDLL(None, use_errno=True)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            # It died before it was watched.
            os._exit(0)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
    _limit("RLIMIT_CORE", 0)


def renew(seconds: float, memory: int, disk: int) -> None:
    """Before each request: the seconds of CPU from now on, the megabytes of memory and of each temporary file."""
    _limit("RLIMIT_DATA", memory * MEGABYTE)
    _limit("RLIMIT_FSIZE", disk * MEGABYTE)
    used = os.times()
    _limit("RLIMIT_CPU", math.ceil(used.user + used.system + seconds * _CORES + _CPU_GRACE))


@contextlib.contextmanager
def reading(seconds: float) -> Iterator[None]:
    """Stops reading SQL that takes too much CPU time; where there is no such timer, the server's watch remains."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGVTALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except _OutOfTime:
        raise Invalid(
            f"this SQL takes more than {seconds:g} seconds to read",
            code="sql_too_complex",
            field="sql",
            remedy="Shorten it, or put long lists of values into a table",
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _out_of_time(*_: object) -> None:
    raise _OutOfTime


def _limit(name: str, value: int) -> None:
    try:
        import resource
    except ImportError:
        # Windows has none of them.
        return
    limit: Any = getattr(resource, name, None)
    if limit is None:
        return
    _, hard = resource.getrlimit(limit)
    maximum = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(limit, (maximum, hard))


MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of the queries of one store."""

    seconds: float = 30.0
    """How long one query may run."""
    rows: int = 10_000
    """Rows of its result that are kept."""
    bytes: int = 10_000_000
    """Bytes of its result that are kept, as JSON."""
    memory: int = 512
    """Megabytes that a query process may use."""
    disk: int = 1_024
    """Megabytes of temporary files that a query may write."""
    processes: int = 0
    """Query processes at the same time; 0 for one for each core, and at least four."""
    per_caller: int = 0
    """Query processes that one key may use at the same time; 0 for half of them."""
    wait: float = 5.0
    """Seconds that a query waits for a process before it is refused."""

    @property
    def most(self) -> int:
        return self.processes or max(4, os.cpu_count() or 1)

    @property
    def most_per_caller(self) -> int:
        return min(self.per_caller or max(1, self.most // 2), self.most)
