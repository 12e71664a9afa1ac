"""Scores and evidence in memory: they follow the ledger, so that a recall need not read all of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.ranking.evidence import Agreement, AuthorVote, agreement, votes_per_author
from heedful.ranking.policies.adaptive import QueryEvidence, dataset_rate
from heedful.ranking.signals import KEPT_PER_WEEK, NEUTRAL, WEEK, decayed
from heedful.search.contexts import Match
from heedful.storage import ledger, scores
from heedful.storage.scores import masses_after

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


CACHED_QUERIES = 20_000
"""Queries whose voices are kept in memory."""

QueryVotes = tuple[Sequence[AuthorVote], Mapping[str, Agreement]]


class EvidenceIndex:
    """The voices of one dataset, by query, and its share of positive opinions."""

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._event = 0
        self._masses = (0.0, 0.0)
        self._said: dict[int, QueryVotes] = {}

    def follow(self, connection: Connection, newest: int) -> None:
        """Takes in every opinion and retraction up to the event `newest`, the last that `connection` sees."""
        with self._lock:
            if newest <= self._event:
                return
            for query in ledger.queries_after(connection, self.dataset, self._event):
                self._said.pop(query, None)
            if ledger.is_erased_after(connection, self.dataset, self._event):
                # An author has another name: known by both, they would count as two.
                self._said.clear()
            positive, negative = masses_after(connection, self.dataset, self._event)
            self._masses = (self._masses[0] + positive, self._masses[1] + negative)
            self._event = newest

    def rate(self) -> float:
        """The share of positive opinions in the dataset."""
        with self._lock:
            return round(dataset_rate(*self._masses), 9)

    def near(self, connection: Connection, matches: Sequence[Match]) -> list[QueryEvidence]:
        """What was said for queries that are like the one asked."""
        with self._lock:
            said = {match.query_id: self._said.get(match.query_id) for match in matches}
            lacking = [query for query, known in said.items() if known is None]
            for query, given in ledger.of_queries(connection, lacking).items():
                votes = votes_per_author(given)
                said[query] = (votes, agreement(votes))
            # A view that is older than what was followed lacks opinions, so what it reads is not kept.
            if lacking and ledger.last_event(connection, self.dataset) == self._event:
                self._said.update((query, known) for query, known in said.items() if known is not None)
                while len(self._said) > CACHED_QUERIES:
                    del self._said[next(iter(self._said))]
            return [
                QueryEvidence(match.similarity, *known)
                for match in matches
                if (known := said[match.query_id]) is not None
            ]
