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
    """Not an Exception, so that a parser which tries alternatives doesn't catch it."""


def confine(parent: int) -> None:
    """Called first: no new privileges, no core dumps, and the first to be killed when memory runs out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        system = ctypes.CDLL(None, use_errno=True)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before this was set.
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
    """Limits the CPU time for parsing SQL; without such a timer, the server's timeout remains."""
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
        # Windows has no such limits.
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
    """How many rows of its result are stored."""
    bytes: int = 10_000_000
    """How many bytes of its result are stored, as JSON."""
    memory: int = 512
    """Megabytes that a query process may use."""
    disk: int = 1_024
    """Megabytes of temporary files that a query may write."""
    processes: int = 0
    """How many query processes may run at once; 0 for one per core, and at least four."""
    per_caller: int = 0
    """How many query processes one key may use at once; 0 for half of them."""
    wait: float = 5.0
    """Seconds that a query waits for a process before it is refused."""

    @property
    def max_processes(self) -> int:
        return self.processes or max(4, os.cpu_count() or 1)

    @property
    def max_per_caller(self) -> int:
        return min(self.per_caller or max(1, self.max_processes // 2), self.max_processes)
