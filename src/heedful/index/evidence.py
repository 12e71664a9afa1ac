"""What was said for each query, ready to be lent: follows the ledger, keeps what recalls ask for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from heedful.index.contexts import Match
from heedful.learning.evidence import Agreement, Voice, agreement, voices
from heedful.learning.policies.adaptive import Heard, dataset_rate
from heedful.storage import ledger, opinions

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
        self._said: OrderedDict[int, Said] = OrderedDict()

    def follow(self, connection: Connection) -> None:
        """Takes in every opinion and retraction that was committed before `connection` looked."""
        with self._lock:
            newest = ledger.last_event(connection, self.dataset)
            if newest == self._event:
                return
            for query in ledger.queries_after(connection, self.dataset, self._event):
                self._said.pop(query, None)
            positive, negative = opinions.masses_after(connection, self.dataset, self._event)
            self._masses = (self._masses[0] + positive, self._masses[1] + negative)
            self._event = newest

    def rate(self) -> float:
        """The share of positive opinions in the dataset."""
        with self._lock:
            return round(dataset_rate(*self._masses), 9)

    def heard(self, connection: Connection, matches: Sequence[Match]) -> list[Heard]:
        """What was said for queries that are like the one asked."""
        with self._lock:
            lacking = [match.query_id for match in matches if match.query_id not in self._said]
            if lacking:
                for query, given in opinions.of_queries(connection, lacking).items():
                    heard = voices(given)
                    self._said[query] = (heard, agreement(heard))
            for match in matches:
                self._said.move_to_end(match.query_id)
            found = [Heard(match.similarity, *self._said[match.query_id]) for match in matches]
            while len(self._said) > KEPT:
                self._said.popitem(last=False)
            return found
