"""An agent never waits long for Heedful: what all adapters share, with servers that don't answer and a store that is
locked."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from silent_server import SilentServer, silent_server

import heedful
from heedful import Heedful
from heedful.integrations import turns
from heedful.integrations.turns import Memories, Turns
from heedful.testing import WordEmbedder

QUESTION = "When does the gym open?"
FACT = "The gym opens at six."


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 0.2)


@pytest.fixture(params=[False, True], ids=["silent", "drips"])
def server(request: pytest.FixtureRequest) -> Iterator[SilentServer]:
    with silent_server(drips=request.param) as server:
        yield server


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Heedful]:
    with heedful.open(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
        memory.remember(FACT)
        yield memory


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process has the file for as long as it likes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    wait_for_agents()


def working() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "heedful-agent"]


def wait_for_agents() -> None:
    for thread in working():
        thread.join(60)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "heedful.integrations"]


TOO_SLOW = "Heedful can't recall, so the agent goes on without it: it did not answer within 0.2 seconds"


def test_an_agent_that_blocks_goes_on(server: SilentServer, caplog: pytest.LogCaptureFixture) -> None:
    with heedful.connect(server.url, api_key="hf_x") as remote:
        turn = Turns(remote)
        assert turn.recall(QUESTION) == Memories(QUESTION)
        assert turn.store("chat-1", Memories(QUESTION), "At six.", "run-1") is None
    assert warnings(caplog) == [TOO_SLOW]
    assert len(server.accepted) == 2


@pytest.mark.parametrize("awaited", [False, True], ids=["connect", "aconnect"])
def test_an_agent_that_is_awaited_goes_on(
    server: SilentServer, awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        blocking = heedful.connect(server.url, api_key="hf_x")
        turn = Turns(await heedful.aconnect(server.url, api_key="hf_x") if awaited else blocking)
        assert await turn.arecall(QUESTION) == Memories(QUESTION)
        assert await turn.astore("chat-1", Memories(QUESTION), "At six.", "run-1") is None

    with caplog.at_level(logging.WARNING):
        # It also waits for the threads that asyncio lends.
        asyncio.run(run())
    assert warnings(caplog) == [TOO_SLOW]
    assert len(server.accepted) == 2


def test_an_agent_goes_on_when_the_store_is_locked(
    memory: Heedful, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turn = Turns(memory)
    with locked(tmp_path / "store.db"):
        assert turn.recall(QUESTION) == Memories(QUESTION)
        assert asyncio.run(turn.arecall("Where is the gym?")) == Memories("Where is the gym?")
        assert turn.store("chat-1", Memories(QUESTION), "At noon.", "run-1") is None
    assert warnings(caplog) == [TOO_SLOW]
    # An answer that was late is that of its own turn, and the next turn has nothing of it.
    late = memory.sessions.entry("chat-1", "run-1")
    assert (late.question, late.answer, late.recall_id) == (QUESTION, "At noon.", None)
    memories = turn.recall("Does the gym open at six?")
    assert FACT in memories.prompt
    assert memory.receipt(str(memories.recall_id)).query == "Does the gym open at six?"
    qa_id = turn.store("chat-1", memories, "Yes. [1]", "run-2")
    entry = memory.sessions.entry("chat-1", "run-2")
    assert (entry.qa_id, entry.recall_id) == (qa_id, memories.recall_id)


@pytest.mark.usefixtures("memory")
def test_a_memory_that_is_awaited_goes_on_when_the_store_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def run() -> None:
        async with await heedful.aopen(path, embedding=WordEmbedder(), worker=False) as awaited:
            with locked(path):
                assert await Turns(awaited).arecall(QUESTION) == Memories(QUESTION)
            assert FACT in (await Turns(awaited).arecall(QUESTION)).prompt

    asyncio.run(run())


def test_calls_that_hang_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 0.05)
    before = len(working())
    with silent_server() as server, heedful.connect(server.url, api_key="hf_x") as remote:
        # Some adapters are made for each run.
        for number in range(20):
            assert Turns(remote).recall(f"{QUESTION} {number}").prompt == ""
            assert Turns(remote).store("chat-1", Memories(QUESTION), "At six.", f"run-{number}") is None
        assert len(server.accepted) == turns.MAX_LATE
        assert len(working()) - before == turns.MAX_LATE
        # Another memory is another matter.
        with silent_server() as other, heedful.connect(other.url, api_key="hf_x") as another:
            assert Turns(another).recall(QUESTION).prompt == ""
            assert len(other.accepted) == 1


@pytest.mark.parametrize("way", ["threads", "tasks"])
def test_many_agents_at_once_have_few_threads(way: str) -> None:
    many = 3 * turns.THREADS
    before = len(working())
    with silent_server() as server, heedful.connect(server.url, api_key="hf_x") as remote:
        turn = Turns(remote)
        if way == "threads":
            with ThreadPoolExecutor(many) as pool:
                found = list(pool.map(turn.recall, [QUESTION] * many))
        else:

            async def together() -> list[Memories]:
                return await asyncio.gather(*(turn.arecall(QUESTION) for _ in range(many)))

            found = asyncio.run(together())
        assert found == [Memories(QUESTION)] * many
        assert len(working()) - before <= turns.THREADS
        assert len(server.accepted) <= turns.THREADS


def test_many_agents_at_once_all_get_their_memories(memory: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 60)
    turn = Turns(memory)
    many = 3 * turns.THREADS
    with ThreadPoolExecutor(many) as pool:
        found = list(pool.map(turn.recall, [f"{QUESTION} {number}" for number in range(many)]))
    assert [each.question for each in found] == [f"{QUESTION} {number}" for number in range(many)]
    for each in found:
        assert memory.receipt(str(each.recall_id)).query == each.question


def test_one_who_is_cancelled_leaves_nothing_behind(server: SilentServer, caplog: pytest.LogCaptureFixture) -> None:
    async def run(remote: heedful.RemoteHeedful) -> None:
        task = asyncio.create_task(Turns(remote).arecall(QUESTION))
        while not server.accepted:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with heedful.connect(server.url, api_key="hf_x") as remote:
        asyncio.run(run(remote))
    assert caplog.records == []


SCRIPT = """
import asyncio, sys, heedful
from heedful.integrations import turns
turns.DEADLINE = 0.2
remote = heedful.connect(sys.argv[1], api_key="hf_x")
assert turns.Turns(remote).recall("Why?").prompt == ""
assert asyncio.run(turns.Turns(remote).arecall("Why?")).prompt == ""
print("answered")
"""


def test_a_process_ends_while_calls_hang(cold_processes: Callable[[], None]) -> None:
    with silent_server() as server:
        ended = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.url], capture_output=True, text=True, timeout=60, check=False
        )
        assert len(server.accepted) == 2
    assert (ended.returncode, ended.stdout) == (0, "answered\n")
    assert "Traceback" not in ended.stderr
