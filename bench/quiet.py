"""How quiet a machine is: the share of the processors that programs take, and that the host takes away (steal)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from bench.measure import say

STAT = Path("/proc/stat")
BUSY, STOLEN = 0.10, 0.02
"""The shares of the processors up to which a machine is quiet."""
SECONDS = 10.0
"""How long a machine is watched before it is called quiet."""


@dataclass(frozen=True, slots=True)
class Share:
    """The parts of all processors that programs used, and that the host gave to others."""

    busy: float
    stolen: float

    @property
    def quiet(self) -> bool:
        return self.busy <= BUSY and self.stolen <= STOLEN


@dataclass(frozen=True, slots=True)
class Clock:
    """What the processors have spent since the machine started, in ticks."""

    total: int
    idle: int
    stolen: int

    @staticmethod
    def read(text: str | None = None) -> Clock:
        """The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.

        >>> Clock.read("cpu  10 0 5 80 1 0 0 4 0 0")
        Clock(total=100, idle=81, stolen=4)
        """
        line = (STAT.read_text(encoding="ascii") if text is None else text).partition("\n")[0]
        ticks = [int(each) for each in line.split()[1:9]]
        return Clock(sum(ticks), ticks[3] + ticks[4], ticks[7])

    def since(self, before: Clock) -> Share:
        """The shares between two readings.

        >>> Clock(300, 170, 14).since(Clock(100, 70, 4))
        Share(busy=0.45, stolen=0.05)
        """
        passed = max(1, self.total - before.total)
        stolen = (self.stolen - before.stolen) / passed
        return Share(round(1 - (self.idle - before.idle) / passed - stolen, 4), round(stolen, 4))


def watched(seconds: float = SECONDS) -> Share:
    """What other programs and the host take while this one waits."""
    before = Clock.read()
    time.sleep(seconds)
    return Clock.read().since(before)


def wait(patience: float, seconds: float = SECONDS) -> tuple[Share, float]:
    """Returns when the machine is quiet or after so many seconds, with what was seen last and how long it took."""
    began = time.monotonic()
    while True:
        seen = watched(seconds)
        waited = time.monotonic() - began
        if seen.quiet or waited + seconds > patience:
            return seen, waited
        say(f"not quiet after {waited:.0f} s: {seen.busy:.0%} busy, {seen.stolen:.0%} stolen")
