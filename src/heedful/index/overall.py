"""The score over all queries of every judged fact, in memory: follows the ledger, and tells who passes a limit."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.learning.decay import KEPT_PER_WEEK, NEUTRAL, WEEK, decayed
from heedful.storage import ledger, scores

Seqs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEAR = 1e-9
"""Scores that are this close to a limit are compared by the exact arithmetic, the others by that of arrays."""


class OverallIndex:
    """The scores of one dataset; `follow` it before use."""

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._event = 0
        self._facts = np.empty(0, np.int64)
        self._scores = np.empty(0, np.float64)
        self._times = np.empty(0, np.int64)

    def follow(self, connection: Connection, newest: int) -> None:
        """Takes in every opinion and retraction up to the event `newest`, the last that `connection` sees."""
        with self._lock:
            if newest <= self._event:
                return
            changed = ledger.rejudged_after(connection, self.dataset, self._event) if self._event else None
            facts, values, times = scores.overall_columns(connection, self.dataset, changed)
            if changed is not None:
                kept = ~np.isin(self._facts, np.array(changed, np.int64))
                facts = np.concatenate([self._facts[kept], facts])
                values = np.concatenate([self._scores[kept], values])
                times = np.concatenate([self._times[kept], times])
            self._facts, self._scores, self._times, self._event = facts, values, times, newest

    def reaching(self, least: float, now: int) -> tuple[Seqs, Bools]:
        """Every judged fact, and whether its score, faded to `now`, is at least `least`."""
        with self._lock:
            facts, values, times = self._facts, self._scores, self._times
        elapsed = np.maximum(now - times, 0) / WEEK
        faded = NEUTRAL + (values - NEUTRAL) * KEPT_PER_WEEK**elapsed
        passing: Bools = faded >= least
        for place in np.flatnonzero(np.abs(faded - least) < NEAR).tolist():
            passing[place] = decayed(float(values[place]), now - int(times[place])) >= least
        return facts, passing
