"""What was said for each query, ready to be lent: follows the ledger, keeps what recalls ask for."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from heedful.index.contexts import Match
from heedful.learning.evidence import Agreement, Voice, agreement, voices
from heedful.learning.policies.adaptive import Heard, dataset_rate
from heedful.storage import ledger, opinions
from heedful.storage.masses import masses_after

KEPT = 20_000
"""Queries whose voices are kept in memory."""

Said = tuple[Sequence[Voice], Mapping[str, Agreement]]


class EvidenceIndex:
    """The voices of one dataset, by query, and its share of positive opinions."""

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._event = 0
        self._masses = (0.0, 0.0)
        self._said: dict[int, Said] = {}

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

    def heard(self, connection: Connection, matches: Sequence[Match]) -> list[Heard]:
        """What was said for queries that are like the one asked."""
        with self._lock:
            said = {match.query_id: self._said.get(match.query_id) for match in matches}
            lacking = [query for query, known in said.items() if known is None]
            for query, given in opinions.of_queries(connection, lacking).items():
                heard = voices(given)
                said[query] = (heard, agreement(heard))
            # A view that is older than what was followed lacks opinions, so what it reads is not kept.
            if lacking and ledger.last_event(connection, self.dataset) == self._event:
                self._said.update((query, known) for query, known in said.items() if known is not None)
                while len(self._said) > KEPT:
                    del self._said[next(iter(self._said))]
            return [Heard(match.similarity, *known) for match in matches if (known := said[match.query_id]) is not None]
