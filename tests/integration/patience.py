"""Waiting for what happens in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SOON = 60.0


def until(condition: Callable[[], Any]) -> Any:
    """Waits for something to come true."""
    deadline = time.monotonic() + SOON
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found
