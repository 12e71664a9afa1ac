"""How many calls a second: a bucket for each caller, in the memory of a worker."""

from __future__ import annotations

import math
from collections import OrderedDict

from heedful.errors import Unavailable

MOST = 100_000
"""Callers that are remembered; the one that was silent longest is forgotten first."""


class Limiter:
    """Allows each caller so many calls a second, and twice as many at once."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, rate: int, now: float) -> None:
        """Takes one call from a caller's bucket; an empty one is `Unavailable`."""
        burst = 2.0 * rate
        left, at = self._buckets.pop(caller, (burst, now))
        left = min(burst, left + (now - at) * rate)
        self._buckets[caller] = (max(0.0, left - 1), now)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        if left < 1:
            raise Unavailable(
                f"more than {rate} {'call' if rate == 1 else 'calls'} a second",
                code="rate_limited",
                value=max(1, math.ceil((1 - left) / rate)),
                remedy="Wait as long as Retry-After says, and send it again",
            )
