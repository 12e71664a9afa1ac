"""What a query may take of the machine. The operating system holds these limits where it can; see `worker`."""

from __future__ import annotations

import os
from dataclasses import dataclass

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
