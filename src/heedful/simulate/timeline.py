"""Time that passes as fast as its events are done, and the rhythm of a shop's days and weeks."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

Action = Callable[[], object]

BY_HOUR = (1, 0.6, 0.4, 0.3, 0.3, 0.6, 1.5, 3, 5, 7, 8.5, 9, 8, 7, 7, 7.5, 7, 6.5, 7, 8.5, 9, 7, 4, 2)
"""How busy the hours of a day are, in UTC."""

BY_WEEKDAY = (1.2, 1.1, 1.0, 1.0, 0.95, 0.65, 0.55)
"""How busy the days of a week are, from Monday on."""


class Timeline:
    """A clock whose time is that of the event that is done; what would be later than `until` never happens."""

    def __init__(self, start: datetime, until: datetime) -> None:
        self.now = start
        self.until = until
        self._due: list[tuple[datetime, int, Action]] = []
        self._added = 0

    def __call__(self) -> datetime:
        return self.now

    def at(self, moment: datetime, action: Action) -> None:
        """Has something done at a moment, which is not in the past."""
        if moment <= self.until:
            # The number keeps events of one moment in order.
            heapq.heappush(self._due, (max(moment, self.now), self._added, action))
            self._added += 1

    def after(self, minutes: float, action: Action) -> None:
        """Has something done some minutes from now."""
        self.at(self.now + timedelta(minutes=minutes), action)

    def run(self) -> None:
        """Does all that is due, and what that brings along, in the order of time."""
        while self._due:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = self.until


def utc(moment: datetime) -> datetime:
    """The same moment in UTC; without a zone, it is read as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def arrivals(start: datetime, until: datetime, count: int, random: Random) -> list[datetime]:
    """The moments at which people come, in order, in the rhythm of the shop."""
    hours = [start + timedelta(hours=hour) for hour in range(max(1, int((until - start) / timedelta(hours=1))))]
    weights = [BY_HOUR[hour.hour] * BY_WEEKDAY[hour.weekday()] for hour in hours]
    return sorted(
        min(hour + timedelta(seconds=round(random.random() * 3600, 3)), until)
        for hour in random.choices(hours, weights, k=count)
    )
