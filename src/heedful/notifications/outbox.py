"""The outbox of alerts, in any store of sessions, and the dispatcher that delivers them at least once."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from heedful.errors import HeedfulError, Unavailable
from heedful.model import Metadata
from heedful.notifications.channels import Channel, one_line, valid_name
from heedful.threads import leave_parent_when_forked

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AlertRow:
    id: str
    channel: str
    payload: Metadata
    created_at: int
    attempts: int = 0
    next_at: int | None = None
    delivered_at: int | None = None
    error: str | None = None
    number: int = 0


class Outbox(Protocol):
    """Alerts that wait for delivery."""

    def add(self, session_id: str | None, new: Sequence[AlertRow]) -> None:
        """Stores alerts, which are deleted with their session, if they have one."""

    def claim(self, channels: Sequence[str], now: int, until: int, limit: int) -> list[AlertRow]:
        """Claims the due alerts of these channels until `until`."""

    def settle(
        self, alert_id: str, attempts: int, next_at: int | None, delivered_at: int | None, error: str | None
    ) -> None: ...

    def due_at(self, channels: Sequence[str]) -> int | None:
        """When the next alert of these channels is due."""

    def list(self, after: int | None, limit: int, pending: bool) -> list[AlertRow]:
        """The newest first; with `pending`, those that are still to be delivered."""

    def get(self, alert_id: str) -> AlertRow | None: ...


class OutboxStore(Protocol):
    """The store of sessions, as far as it has an outbox."""

    name: str

    def read(self, body: Callable[[Any], Result]) -> Result:
        """Runs `body` in a read transaction, whose `outbox` it may use."""

    def write(self, body: Callable[[Any], Result]) -> Result:
        """Runs `body` in a transaction and commits it. A retry may call it again."""


logger = logging.getLogger("heedful.notifications")

SECOND = 1_000_000  # In stored time, as all times here.
LEASE = 60 * SECOND  # How long an alert is leased to the process that claimed it.
MAX_BACKOFF = 3600 * SECOND  # The longest wait between two attempts.
MIN_PAUSE, MAX_PAUSE = 0.05, 60.0
"""Seconds between two looks at the outbox; other processes may leave alerts behind at any time."""
STORE_PAUSE = 5.0  # Seconds until a store that failed is tried again.
MAX_ERROR = 300


def next_attempt(attempts: int, jitter: float) -> int:
    """How long to wait after so many failed attempts: twice as long each time, from 1 s to 1 hour.

    `jitter` in [0, 1) spreads those that failed together.

    >>> [next_attempt(attempts, 0.0) // SECOND for attempts in (1, 2, 3, 4, 50)]
    [1, 2, 4, 8, 1800]
    >>> next_attempt(50, 0.5) // SECOND
    2700
    """
    # Beyond 12 the longest wait is reached anyway.
    longest = min(MAX_BACKOFF, SECOND << min(attempts, 12))
    return int(longest * (1 + jitter) / 2)


class Dispatcher:
    """Delivers the alerts of the channels it knows.

    Each channel has a thread of its own, so that one that hangs or fails delays no other. Without `background` there
    are no threads, and `deliver_due` is called instead. `jitter` draws numbers from [0, 1).
    """

    def __init__(
        self,
        store: OutboxStore,
        now: Callable[[], int],
        *,
        background: bool = True,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._now = now
        self._background = background
        self._jitter = jitter
        self._channels: dict[str, Channel] = {}
        self._rounds: dict[str, _Rounds] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._abandoned = False
        leave_parent_when_forked(self)

    def add(self, *channels: Channel) -> None:
        """Makes channels known; what is due for them is delivered, also what earlier processes left.

        A channel with a name that is known takes the place of the one before, for instance with a new secret.
        """
        named = {valid_name(channel.name): channel for channel in channels}
        with self._lock:
            if self._closed:
                raise Unavailable("the dispatcher is closed", remedy="Open the store again")
            self._channels = {**self._channels, **named}
        self.wake()

    def wake(self) -> None:
        """Looks at the outbox now; call it after an alert was written."""
        with self._lock:
            if self._closed or not self._background:
                return
            for name in self._channels:
                if name not in self._rounds:
                    self._start(name)
            for rounds in self._rounds.values():
                rounds.woken.set()

    def deliver_due(self) -> int:
        """Delivers what is due now in the calling thread, and says how many alerts arrived."""
        due, delivered = self._now(), 0
        waiting = deque(self._channels)
        while waiting:
            name = waiting.popleft()
            arrived = self._deliver_one(name, due)
            if arrived:
                delivered += 1
                waiting.appendleft(name)
            elif arrived is not None:
                # The others come first, so that a channel that hangs delays them once.
                waiting.append(name)
        return delivered

    def close(self, timeout: float = 5.0) -> None:
        """Stops after a last round over what is due now, or after `timeout` seconds; the rest stays in the outbox."""
        with self._lock:
            self._closed = True
            running = list(self._rounds.values())
        deadline = time.monotonic() + timeout
        for rounds in running:
            rounds.woken.set()
        for rounds in running:
            if rounds.thread is not threading.current_thread():
                rounds.thread.join(max(0.0, deadline - time.monotonic()))
        self._abandoned = True

    def _start(self, name: str) -> None:
        rounds = _Rounds(self, name)
        try:
            rounds.thread.start()
        except RuntimeError as error:
            # What was written stays in the outbox: the caller's own work must not fail for this.
            logger.warning("no thread can be started to deliver alerts (%s)", error)
            return
        self._rounds[name] = rounds

    def _deliver_all(self, name: str) -> float:
        """Delivers what is due for a channel now, and says in how many seconds to look again."""
        due = self._now()
        while not self._abandoned and self._deliver_one(name, due) is not None:
            pass
        following = self._due_at(name)
        if following is None:
            return MAX_PAUSE
        return min(MAX_PAUSE, max(MIN_PAUSE, (following - self._now()) / SECOND))

    def _deliver_one(self, name: str, due: int) -> bool | None:
        """Whether one alert arrived; None if there is none that was due at `due`."""
        until = self._now() + LEASE
        alert = self._claim(name, due, until)
        if alert is None:
            return None
        attempts = alert.attempts + 1
        try:
            self._channels[name].send(alert.id, alert.payload)
        except Exception as failure:
            error = _sanitize_error(failure)
        else:
            at = self._now()
            self._store.write(lambda tx: tx.outbox.settle(alert.id, attempts, None, at, None))
            return True
        wait = next_attempt(attempts, self._jitter())
        # Told once; an alert that stays undelivered is in the outbox for all to see.
        logger.log(
            logging.WARNING if attempts == 1 else logging.INFO,
            "alert %s did not arrive at %s (attempt %d): %s; next attempt in %.0f s",
            alert.id,
            name,
            attempts,
            error,
            wait / SECOND,
        )
        self._settle_failed(alert, attempts, until, self._now() + wait, error)
        return False

    def _due_at(self, name: str) -> int | None:
        due: int | None = self._store.read(lambda tx: tx.outbox.due_at([name]))
        return due

    def _claim(self, name: str, due: int, until: int) -> AlertRow | None:
        # Looked up first, because most often there is nothing to claim, and claiming locks.
        following = self._due_at(name)
        if following is None or following > due:
            return None
        # One at a time, so that a lease covers one attempt and not a queue of them.
        claimed: list[AlertRow] = self._store.write(lambda tx: tx.outbox.claim([name], due, until, 1))
        return claimed[0] if claimed else None

    def _settle_failed(self, alert: AlertRow, attempts: int, lease: int, next_at: int, error: str) -> None:
        def settle(tx: Any) -> None:
            current = tx.outbox.get(alert.id)
            # If the lease ran out, somebody else has it or has delivered it.
            if current is not None and current.next_at == lease:
                tx.outbox.settle(alert.id, attempts, next_at, None, error)

        self._store.write(settle)

    def leave_parent(self) -> None:
        # `wake` starts threads of its own.
        self._lock = threading.Lock()
        self._rounds = {}


class _Rounds:
    """The thread of one channel, which looks at the outbox again and again."""

    def __init__(self, dispatcher: Dispatcher, name: str) -> None:
        self.woken = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"heedful-alerts {name}", daemon=True)
        self._dispatcher = dispatcher
        self._name = name

    def _run(self) -> None:
        well = True
        while True:
            # Read before the round, so that there is one whole round after closing.
            last = self._dispatcher._closed
            self.woken.clear()
            try:
                pause = self._dispatcher._deliver_all(self._name)
                well = True
            except BaseException as error:
                # Nothing may end the thread: neither a store that is closed or gone, nor a channel that exits.
                if well and not last:
                    logger.warning("alerts of %s wait: %s", self._name, _sanitize_error(error))
                well, pause = False, STORE_PAUSE
            if last:
                return
            self.woken.wait(pause)


def _sanitize_error(error: BaseException) -> str:
    """An error as it may be shown: other libraries may put secrets into theirs."""
    return one_line(error.message, MAX_ERROR) if isinstance(error, HeedfulError) else type(error).__name__
