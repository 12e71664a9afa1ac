"""Work in the background: one thread, in order, whatever a call raises, and done before the process exits."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from heedful.background import Background

SOON = 20


@pytest.fixture
def background() -> Iterator[Background]:
    made = Background()
    yield made
    made.close()


def test_calls_run_one_after_the_other_in_another_thread(background: Background) -> None:
    done: list[tuple[int, str]] = []
    go_on = threading.Event()
    background.submit("wait", lambda: go_on.wait(SOON))
    for number in range(5):
        background.submit("note", lambda number=number: done.append((number, threading.current_thread().name)))  # type: ignore[misc]
    assert done == []
    go_on.set()
    background.close()
    assert [number for number, _ in done] == [0, 1, 2, 3, 4]
    assert len({name for _, name in done}) == 1
    assert done[0][1] != threading.current_thread().name


def test_an_exception_is_logged_by_name_and_the_next_call_runs(
    background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def fail() -> None:
        raise ZeroDivisionError("a half")

    with caplog.at_level(logging.ERROR, "heedful"):
        background.submit("dividing", fail)
        background.submit("note", lambda: done.append("after"))
        background.close()
    assert done == ["after"]
    assert "dividing failed in the background" in caplog.text
    assert "ZeroDivisionError: a half" in caplog.text


def test_closing_waits_and_may_be_done_twice_or_without_any_work() -> None:
    background = Background()
    background.close()
    done: list[int] = []
    background.submit("note", lambda: done.append(1))
    background.close()
    background.close()
    assert done == [1]


def test_no_thread_is_there_before_there_is_work() -> None:
    before = threading.active_count()
    Background().close()
    assert threading.active_count() == before


def test_what_was_given_is_done_before_the_process_exits() -> None:
    program = """
import time
from heedful.background import Background
background = Background()
for number in range(3):
    background.submit("print", lambda number=number: (time.sleep(0.05), print(number, flush=True)))
background.submit("fail", lambda: 1 / 0)
background.submit("print", lambda: print("end", flush=True))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1", "2", "end"]


def test_what_was_given_is_done_although_the_program_failed() -> None:
    program = """
import time
from heedful.background import Background
background = Background()
background.submit("print", lambda: (time.sleep(0.1), print("done", flush=True)))
raise SystemExit(3)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "done\n")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_thread_of_its_own(background: Background) -> None:
    background.submit("warm up", lambda: None)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            background.submit("write", lambda: os.write(writing, b"child"))
            background.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(writing)
    assert os.read(reading, 10) == b"child"
    os.close(reading)
    done: list[int] = []
    background.submit("note", lambda: done.append(1))
    background.close()
    assert done == [1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_closes_waits_for_nobody() -> None:
    background = Background()
    go_on = threading.Event()
    background.submit("wait", lambda: go_on.wait(SOON))
    child = os.fork()
    if child == 0:
        background.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go_on.set()
    background.close()
