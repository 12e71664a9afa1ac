"""How often, and after how long, a server that is busy or out of reach is asked again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""The HTTP statuses that may pass."""

Result = TypeVar("Result")


class TryAgain(Exception):
    """A call failed in a way that may pass; `wait` is how many seconds the server asked for."""

    def __init__(self, problem: str, wait: float = 0.0) -> None:
        self.problem = problem
        self.wait = wait
        super().__init__(problem)


def retry(call: Callable[[], Result], *, attempts: int, sleep: Callable[[float], None]) -> Result:
    """The result of `call`, at the first attempt that doesn't raise `TryAgain`; the last one's is raised.

    The pauses double, within bounds and with some chance in them, so that many callers don't come back at once.
    """
    for attempt in range(1, attempts):
        try:
            return call()
        except TryAgain as failure:
            sleep(max(failure.wait, min(8.0, 0.25 * 2**attempt) * random.uniform(0.5, 1.0)))
    try:
        return call()
    except TryAgain as failure:
        raise TryAgain(f"{failure.problem} (tried {attempts} times)") from failure


def seconds(retry_after: str) -> float:
    """How long a server asks to wait, within reason; dates are not read."""
    return min(30.0, float(retry_after)) if retry_after.isdecimal() else 0.0
