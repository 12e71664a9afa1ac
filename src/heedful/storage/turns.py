"""Turns of writers in a process: projects take them one after the other, however many writers each has."""

from __future__ import annotations

import math
import threading
import time
from collections import deque

from heedful.threads import gives_way

ACTIVE_SECONDS = 1.0
"""How long after a writer of a project came the others give way to it."""

MAX_REMEMBERED = 100
"""Projects of which it is known when they last wrote."""


class Place:
    """A place in the queue."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.gives_way = gives_way()
        self._called = threading.Lock()
        self._called.acquire()

    def call(self) -> None:
        """Says that it is their turn."""
        self._called.release()

    def wait(self, seconds: float) -> bool:
        """Whether the turn came within so many seconds."""
        return self._called.acquire(timeout=seconds)


class Turns:
    """One turn at a time. Whoever has it hands it over: nobody who comes again at once overtakes those who wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._queues: dict[str, deque[Place]] = {}
        """Those who wait, by project; the next project first."""
        self._came_at: dict[str, float] = {}
        """When a writer of each project last came; the latest last."""

    def queue(self, project: str) -> Place:
        """A place for a writer of a project; called at once if nobody has the turn."""
        place = Place(project)
        with self._lock:
            self._came_at.pop(project, None)
            self._came_at[project] = time.monotonic()
            if len(self._came_at) > MAX_REMEMBERED:
                del self._came_at[next(iter(self._came_at))]
            if self._is_taken:
                self._queues.setdefault(project, deque()).append(place)
            else:
                self._is_taken = True
                place.call()
        return place

    def has_others(self, project: str) -> bool:
        """Whether other projects wrote lately."""
        with self._lock:
            latest = next((at for name, at in reversed(self._came_at.items()) if name != project), -math.inf)
        return time.monotonic() - latest < ACTIVE_SECONDS

    def leave(self, place: Place) -> bool:
        """Gives up a place; False if it was called before, so that its owner has the turn."""
        with self._lock:
            queue = self._queues.get(place.project, deque())
            if place not in queue:
                return False
            queue.remove(place)
            if not queue:
                del self._queues[place.project]
            return True

    def hand_over(self) -> bool:
        """Gives the turn to the next writer for the same transaction; False if nobody waits, or one who gives way to
        others: they would wait for what that one does."""
        with self._lock:
            next_queue = next(iter(self._queues.values()), None)
            return next_queue is not None and not next_queue[0].gives_way and self._call_next()

    def end(self) -> None:
        """Gives up the turn."""
        with self._lock:
            self._is_taken = self._call_next()

    def _call_next(self) -> bool:
        if not self._queues:
            return False
        project = next(iter(self._queues))
        queue = self._queues.pop(project)
        queue.popleft().call()
        if queue:
            self._queues[project] = queue
        return True
