"""The dispatcher: alerts arrive at least once, whatever happens to channels, processes and the store."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Invalid, Unavailable
from heedful.clock import to_stored
from heedful.notifications import Channel, Slack, Webhook
from heedful.notifications.outbox import LEASE, MAX_BACKOFF, SECOND, AlertRow, Dispatcher, next_attempt
from heedful.sessions.sql_store import SqlSessionStore
from heedful.storage.opening import open_store
from heedful.testing import ManualClock

pytestmark = pytest.mark.usefixtures("warm_processes")

SOON = 20
"""Seconds after which a test that waits in vain fails."""


class Recorder:
    """A channel that keeps what it was sent, and fails as the script says."""

    def __init__(self, name: str = "desk", *script: BaseException | None) -> None:
        self.name = name
        self.script = list(script)
        self.sent: list[str] = []
        self._came = threading.Semaphore(0)

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        self.sent.append(alert_id)
        problem = self.script.pop(0) if self.script else None
        self._came.release()
        if problem is not None:
            raise problem

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._came.acquire(timeout=SOON), f"{self.name} got {self.sent}"


class Hanging(Recorder):
    """A channel that does not come back until it is released."""

    def __init__(self, name: str = "stuck", *script: BaseException | None) -> None:
        super().__init__(name, *script)
        self.released = threading.Event()

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        self._came.release()
        self.released.wait(SOON)
        super().send(alert_id, payload)


class Post:
    """One store with an outbox, and dispatchers on it."""

    def __init__(self, path: Path, clock: ManualClock, opened: ExitStack) -> None:
        self._clock = clock
        self._path = path
        self._opened = opened
        self.store = self.open()
        self.store.write(lambda tx: tx.conversations.create("s1", {}, self.now()))

    def now(self) -> int:
        return to_stored(self._clock())

    def open(self) -> SqlSessionStore:
        """The store as another process would open it."""
        database = open_store(self._path)
        self._opened.callback(database.close)
        return SqlSessionStore(database, "default", self.now)

    def write(self, *ids: str, channel: str = "desk") -> None:
        rows = [AlertRow(each, channel, {"type": "feedback"}, self.now(), next_at=self.now()) for each in ids]
        self.store.write(lambda tx: tx.outbox.add("s1", rows))

    def row(self, alert_id: str) -> AlertRow:
        found = self.store.read(lambda tx: tx.outbox.get(alert_id))
        assert found is not None
        return found

    def dispatcher(self, *channels: Any, store: SqlSessionStore | None = None, **options: Any) -> Dispatcher:
        dispatcher = Dispatcher(store or self.store, self.now, **options)
        self._opened.callback(dispatcher.close)
        dispatcher.add(*channels)
        return dispatcher


@pytest.fixture
def post(path: Path, clock: ManualClock, empty_store: bytes) -> Iterator[Post]:
    path.write_bytes(empty_store)
    with ExitStack() as opened:
        yield Post(path, clock, opened)


def test_an_alert_is_delivered_in_the_background_and_noted(post: Post) -> None:
    channel = Recorder()
    dispatcher = post.dispatcher(channel)
    post.write("a1")
    dispatcher.wake()
    channel.wait()
    dispatcher.close()
    assert channel.sent == ["a1"]
    row = post.row("a1")
    assert (row.delivered_at, row.next_at, row.attempts, row.error) == (post.now(), None, 1, None)


def test_what_earlier_processes_left_is_delivered_when_the_channel_is_added(post: Post) -> None:
    post.write("a1", "a2")
    channel = Recorder()
    post.dispatcher(channel).close()
    assert channel.sent == ["a1", "a2"]


def test_alerts_of_other_channels_are_left_alone(post: Post) -> None:
    post.write("a1", channel="elsewhere")
    channel = Recorder()
    post.dispatcher(channel).close()
    assert channel.sent == []
    assert post.row("a1").next_at is not None


def test_what_is_due_can_be_delivered_in_the_callers_thread(post: Post) -> None:
    channel, other = Recorder(), Recorder("other")
    dispatcher = post.dispatcher(channel, other, background=False)
    post.write("a1", "a2")
    post.write("b1", channel="other")
    dispatcher.wake()
    assert dispatcher.deliver_due() == 3
    assert dispatcher.deliver_due() == 0
    assert (channel.sent, other.sent) == (["a1", "a2"], ["b1"])


def test_a_failed_alert_is_tried_again_later_and_later_and_never_dropped(post: Post, clock: ManualClock) -> None:
    channel = Recorder("desk", *[Unavailable("nobody is there")] * 15)
    dispatcher = post.dispatcher(channel, background=False, jitter=lambda: 0.0)
    post.write("a1")
    waits = []
    for attempt in range(1, 16):
        assert dispatcher.deliver_due() == 0
        row = post.row("a1")
        assert (row.attempts, row.error, row.delivered_at) == (attempt, "nobody is there", None)
        assert row.next_at is not None
        waits.append((row.next_at - post.now()) // SECOND)
        clock.advance(microseconds=row.next_at - post.now() - 1)
        assert dispatcher.deliver_due() == 0
        assert len(channel.sent) == attempt
        clock.advance(microseconds=1)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1800, 1800, 1800, 1800]
    assert dispatcher.deliver_due() == 1
    row = post.row("a1")
    assert (row.attempts, row.error, row.next_at, row.delivered_at) == (16, None, None, post.now())


@given(st.integers(1, 10**9), st.floats(0, 1, exclude_max=True))
def test_waits_are_between_a_second_and_an_hour_and_grow(attempts: int, jitter: float) -> None:
    wait = next_attempt(attempts, jitter)
    assert SECOND <= wait <= MAX_BACKOFF
    assert next_attempt(attempts + 1, jitter) >= wait


def test_a_channel_that_recovers_gets_its_alert_in_the_background(post: Post, clock: ManualClock) -> None:
    channel = Recorder("desk", Unavailable("not now"))
    dispatcher = post.dispatcher(channel)
    post.write("a1")
    dispatcher.wake()
    channel.wait()
    dispatcher.close()
    clock.advance(seconds=2)
    again = post.dispatcher(channel)
    channel.wait()
    again.close()
    assert channel.sent == ["a1", "a1"]
    assert post.row("a1").delivered_at == post.now()


def test_a_new_process_delivers_what_a_failing_one_left(post: Post, clock: ManualClock) -> None:
    post.write("a1")
    post.dispatcher(Recorder("desk", Unavailable("not now"))).close()
    clock.advance(seconds=2)
    channel = Recorder()
    post.dispatcher(channel, store=post.open()).close()
    assert channel.sent == ["a1"]


def test_one_alert_that_always_fails_does_not_stop_the_others_of_its_channel(post: Post) -> None:
    channel = Recorder("desk", Unavailable("refused"))
    dispatcher = post.dispatcher(channel, background=False)
    post.write("a1", "a2", "a3")
    assert dispatcher.deliver_due() == 2
    assert channel.sent == ["a1", "a2", "a3"]


def test_a_failing_channel_comes_after_the_others_in_the_callers_thread(post: Post) -> None:
    order: list[str] = []

    class Noted(Recorder):
        def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
            order.append(alert_id)
            super().send(alert_id, payload)

    failing = Noted("failing", *[Unavailable("timed out")] * 2)
    dispatcher = post.dispatcher(failing, Noted("good"), background=False)
    post.write("f1", "f2", channel="failing")
    post.write("g1", "g2", channel="good")
    assert dispatcher.deliver_due() == 2
    assert order == ["f1", "g1", "g2", "f2"]


def test_a_hanging_channel_holds_up_neither_the_others_nor_the_caller(post: Post) -> None:
    stuck, channel = Hanging(), Recorder()
    dispatcher = post.dispatcher(stuck, channel)
    post.write("s1", channel="stuck")
    dispatcher.wake()
    stuck.wait()
    post.write("a1", "a2", "a3")
    dispatcher.wake()
    channel.wait(3)
    dispatcher.close(timeout=0.01)
    assert stuck.sent == []
    stuck.released.set()


def test_closing_delivers_what_is_due_and_was_not_told_of(post: Post) -> None:
    channel = Recorder()
    dispatcher = post.dispatcher(channel)
    post.write("a0")
    dispatcher.wake()
    channel.wait()
    ids = [f"b{number:02}" for number in range(20)]
    post.write(*ids)
    dispatcher.close(timeout=SOON)
    assert channel.sent == ["a0", *ids]
    assert post.store.read(lambda tx: tx.outbox.list(None, 100, True)) == []


def test_a_dispatcher_with_nothing_to_do_rests(post: Post) -> None:
    looks = 0
    spinning = threading.Event()

    def now() -> int:
        nonlocal looks
        looks += 1
        if looks > 100:
            spinning.set()
        return post.now()

    channel = Recorder()
    dispatcher = Dispatcher(post.store, now)
    post.write("a1")
    post.write("b1", channel="elsewhere")
    dispatcher.add(channel)
    channel.wait()
    assert not spinning.wait(0.2)
    dispatcher.close()


def test_a_closed_dispatcher_takes_no_channels_and_sends_nothing(post: Post) -> None:
    channel = Recorder()
    dispatcher = post.dispatcher(channel)
    dispatcher.close()
    dispatcher.close()
    post.write("a1")
    dispatcher.wake()
    with pytest.raises(Unavailable, match="closed"):
        dispatcher.add(Recorder("other"))
    assert channel.sent == []


def test_after_the_time_to_close_is_over_no_further_alert_is_taken(post: Post) -> None:
    stuck = Hanging("stuck")
    dispatcher = post.dispatcher(stuck)
    post.write("s1", "s2", channel="stuck")
    dispatcher.wake()
    stuck.wait()
    dispatcher.close(timeout=0.01)
    stuck.released.set()
    dispatcher.close(timeout=SOON)
    assert stuck.sent == ["s1"]
    assert post.row("s1").delivered_at is not None
    assert post.row("s2").attempts == 0


def test_the_last_channel_of_a_name_is_the_one_that_is_used(post: Post) -> None:
    old, new = Recorder(), Recorder()
    dispatcher = post.dispatcher(old)
    dispatcher.add(new)
    post.write("a1")
    dispatcher.wake()
    dispatcher.close(timeout=SOON)
    assert (old.sent, new.sent) == ([], ["a1"])


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, None])
def test_a_channel_without_a_proper_name_is_refused(post: Post, name: Any) -> None:
    with pytest.raises(Invalid, match="name"):
        post.dispatcher(Recorder(name))


@pytest.mark.parametrize("problem", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), MemoryError()])
def test_no_exception_of_a_channel_ends_the_deliveries(post: Post, problem: BaseException) -> None:
    channel = Recorder("desk", problem)
    dispatcher = post.dispatcher(channel)
    post.write("a1")
    dispatcher.wake()
    channel.wait()
    post.write("a2")
    dispatcher.wake()
    channel.wait()
    dispatcher.close()
    assert channel.sent == ["a1", "a2"]
    assert post.row("a1").next_at is not None


def test_a_lease_that_ran_out_is_taken_over_and_a_late_failure_changes_nothing(post: Post, clock: ManualClock) -> None:
    stuck = Hanging("desk", Unavailable("timed out"))
    slow = post.dispatcher(stuck)
    post.write("a1")
    slow.wake()
    stuck.wait()
    quick = post.dispatcher(Recorder("desk"), store=post.open(), background=False)
    clock.advance(microseconds=LEASE - 1)
    assert quick.deliver_due() == 0
    clock.advance(microseconds=1)
    assert quick.deliver_due() == 1
    delivered = post.row("a1")
    stuck.released.set()
    slow.close(timeout=SOON)
    assert stuck.sent == ["a1"]
    assert post.row("a1") == delivered


@pytest.mark.parametrize("problem", [None, Unavailable("timed out")])
def test_an_alert_whose_session_is_deleted_on_the_way_is_forgotten(post: Post, problem: BaseException | None) -> None:
    stuck = Hanging("desk", problem)
    dispatcher = post.dispatcher(stuck)
    post.write("a1")
    dispatcher.wake()
    stuck.wait()
    post.store.write(lambda tx: tx.conversations.delete("s1", post.now()))
    stuck.released.set()
    dispatcher.close(timeout=SOON)
    assert post.store.read(lambda tx: tx.outbox.list(None, 10, False)) == []


class Log(logging.Handler):
    """Keeps what was logged, and lets a test wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.came = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("pymongo."):
            # A client that another test left open tells of its heartbeat.
            return
        self.lines.append(record.getMessage())
        self.came.release()


@pytest.fixture
def log() -> Iterator[Log]:
    """All that is logged, by any library but that of MongoDB, at any level."""
    handler, root = Log(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(level)
    root.removeHandler(handler)


def test_a_store_that_fails_is_tried_again_and_told_of_once(post: Post, path: Path, log: Log) -> None:
    channel = Recorder()
    post.write("a1")
    outside = sqlite3.connect(path, isolation_level=None)
    outside.execute("ALTER TABLE outbox RENAME TO outbox_away")
    dispatcher = post.dispatcher(channel)
    assert log.came.acquire(timeout=SOON)
    for _ in range(5):
        dispatcher.wake()
    outside.execute("ALTER TABLE outbox_away RENAME TO outbox")
    outside.close()
    dispatcher.wake()
    channel.wait()
    dispatcher.close()
    assert channel.sent == ["a1"]
    assert log.lines == ["alerts of desk wait: OperationalError"]


def test_a_store_that_is_closed_first_does_no_harm(post: Post, path: Path, log: Log) -> None:
    database = open_store(path)
    dispatcher = post.dispatcher(Recorder(), store=SqlSessionStore(database, "default", post.now))
    database.close()
    dispatcher.wake()
    dispatcher.close(timeout=SOON)
    assert len(log.lines) <= 1


def test_secrets_are_neither_kept_nor_logged_nor_shown(post: Post, log: Log) -> None:
    secret = "T0P/S3CR3T"
    nowhere = "127.0.0.1:9"
    channels: list[Channel] = [
        Slack(f"http://{nowhere}/services/{secret}", timeout=0.2),
        Webhook(f"http://{nowhere}/hook?token={secret}", secret=secret, timeout=0.2),
        Recorder("careless", RuntimeError(f"no route to https://user:{secret}@example.org")),
    ]
    dispatcher = post.dispatcher(*channels, background=False)
    for number, channel in enumerate(channels):
        post.write(f"a{number}", channel=channel.name)
    assert dispatcher.deliver_due() == 0
    rows = [post.row(f"a{number}") for number in range(3)]
    assert rows[0].error is not None
    assert rows[0].error.startswith("slack:")
    assert rows[1].error is not None
    assert rows[1].error.startswith("webhook:127.0.0.1:9/hook")
    assert rows[2].error == "RuntimeError"
    shown = "\n".join([*map(repr, channels), *map(repr, rows), *log.lines])
    assert "did not arrive" in shown
    assert "S3CR3T" not in shown


def test_an_error_is_kept_short_and_on_one_line(post: Post) -> None:
    dispatcher = post.dispatcher(Recorder("desk", Unavailable("no\r\nluck " * 1000)), background=False)
    post.write("a1")
    dispatcher.deliver_due()
    error = post.row("a1").error
    assert error is not None
    assert len(error) <= 300
    assert "\n" not in error


CHILD = """
import os, signal, sys, time
from heedful.notifications.outbox import Dispatcher
from heedful.clock import to_stored
from heedful.storage.opening import open_store
from heedful.sessions.sql_store import SqlSessionStore
from heedful.testing import ManualClock

path, out, task = sys.argv[1:4]
now = lambda: to_stored(ManualClock()())

class Lines:
    name = "desk"

    def send(self, alert_id, payload):
        with open(out, "a") as file:
            file.write(alert_id + "\\n")
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)

database = open_store(path)
store = SqlSessionStore(database, "default", now)
dispatcher = Dispatcher(store, now)
if task == "fork":
    from heedful.notifications.outbox import AlertRow
    store.write(lambda tx: tx.outbox.add("s1", [AlertRow("before", "desk", {}, now(), next_at=now())]))
    dispatcher.add(Lines())
    # Its thread must not be within SQLite when it is left behind: a lock that it holds there would never be released.
    while store.read(lambda tx: tx.outbox.list(None, 1, True)):
        time.sleep(0.01)
    child = os.fork()
    if child == 0:
        # No thread came along, so only a new one can deliver what is written now.
        store.write(lambda tx: tx.outbox.add("s1", [AlertRow("forked", "desk", {}, now(), next_at=now())]))
        dispatcher.wake()
        dispatcher.close(20)
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("ready", flush=True)
sys.stdin.readline()
dispatcher.add(Lines())
dispatcher.deliver_due()
dispatcher.close(20)
database.close()
"""


@pytest.fixture
def start(path: Path, tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a process that delivers to a file; all are stopped at the end."""
    children: list[subprocess.Popen[str]] = []

    def starting(task: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", CHILD, str(path), str(tmp_path / "out"), task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        children.append(child)
        return child

    yield starting
    for child in children:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # What it forked would keep its pipes open.
        child.communicate()


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    child.stdin.write("go\n")
    child.stdin.flush()


def test_a_process_that_is_killed_after_sending_has_its_alert_sent_again(
    post: Post, clock: ManualClock, tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    post.write("a1")
    child = start("die")
    go(child)
    assert child.wait(SOON) == -signal.SIGKILL
    assert (tmp_path / "out").read_text() == "a1\n"
    channel = Recorder()
    dispatcher = post.dispatcher(channel, background=False)
    assert dispatcher.deliver_due() == 0
    clock.advance(microseconds=LEASE)
    assert dispatcher.deliver_due() == 1
    assert channel.sent == ["a1"]


@pytest.mark.slow
def test_two_processes_deliver_each_alert_once(
    post: Post, tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    ids = [f"a{number:02}" for number in range(40)]
    post.write(*ids)
    children = [start("deliver"), start("deliver")]
    for child in children:
        go(child)
    for child in children:
        assert child.wait(SOON) == 0, child.communicate()[1]
    assert sorted((tmp_path / "out").read_text().split()) == ids
    assert post.store.read(lambda tx: tx.outbox.list(None, 100, True)) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_a_thread_of_its_own(
    post: Post, tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    child = start("fork")
    assert child.wait(SOON) == 0, child.communicate()[1]
    assert (tmp_path / "out").read_text() == "before\nforked\n"
    assert post.row("forked").delivered_at is not None
