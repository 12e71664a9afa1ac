"""`.insight`: whether answers get better, and for whom."""

from __future__ import annotations

from datetime import datetime

from heedful.insight import satisfaction as _satisfaction
from heedful.model import Satisfaction
from heedful.storage.sessions import SessionStore


class Insight:
    """Reports over the feedback of one project that stands."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    def satisfaction(self, by: str, *, since: datetime | None = None) -> Satisfaction:
        """Satisfaction by a key of the sessions' metadata, such as `variant`.

        Counts up, down and neutral ratings of sessions and answers (4 and 5 are up, 1 and 2 are down), each share with
        its 95% interval, and the probability that one variant is better than another.
        """
        return _satisfaction.satisfaction(self._store, by, since)
