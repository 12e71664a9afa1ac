"""Queries that signals named in bulk, embedded in a thread beside recalls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from heedful.errors import HeedfulError
from heedful.search.contexts import ContextIndex, Embed, Load, StoredVectors

logger = logging.getLogger("heedful")


class Backlog:
    """A thread that is there while queries wait. What it has not done when the process ends, the next one does."""

    def __init__(
        self,
        load: Load,
        embed: Embed,
        keep: Callable[[int, StoredVectors], None],
    ) -> None:
        """`keep` writes vectors of a model to the store."""
        self._load = load
        self._embed = embed
        self._keep = keep
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._indexes: dict[ContextIndex, None] = {}
        self._closed = False

    def add(self, index: ContextIndex) -> None:
        """Embeds what waits in an index, soon."""
        with self._lock:
            self._indexes[index] = None
            if not self._closed and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="heedful-queries")
                self._thread.start()

    def close(self) -> None:
        """Ends after the batch that is under way."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while (index := self._next()) is not None:
            try:
                made = index.embed_waiting(self._load, self._embed)
                if made is None:
                    self._forget(index)
                else:
                    self._keep(index.model.id, made)
            except HeedfulError as error:
                # They still match by their words, and the next recall has them tried again.
                logger.warning("queries of signals can't be embedded now: %s", error)
                self._forget(index)

    def _next(self) -> ContextIndex | None:
        with self._lock:
            if self._closed or not self._indexes or not threading.main_thread().is_alive():
                self._thread = None
                return None
            return next(iter(self._indexes))

    def _forget(self, index: ContextIndex) -> None:
        with self._lock:
            self._indexes.pop(index, None)
