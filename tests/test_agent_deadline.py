"""An agent never waits long for Heedful: what all adapters share, with servers that don't answer and a store that is
locked."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import time as time_of_day
from math import nan
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from patience import until
from pydantic import BaseModel
from server import KEY, running
from silent_server import SilentServer, silent_server

import heedful
from heedful import Heedful, Invalid, Unavailable
from heedful.integrations import turns
from heedful.integrations.turns import Guard, Memories, Turns
from heedful.interfaces.client import exchange
from heedful.testing import WordEmbedder

QUESTION = "When does the gym open?"
FACT = "The gym opens at six."


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(turns, "DEADLINE", 0.2)
    monkeypatch.setattr(turns, "FINISH", 0.2)
    yield
    # Those that were left to themselves would write to the next test's log.
    wait_for_agents()


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
    """Without the names of the memories, which each has at its end."""
    said = [each.getMessage() for each in caplog.records if each.name == "heedful.integrations"]
    named = [re.fullmatch(r"(.*) \(<(?:Async|Remote)*Heedful .* project='default'>\)", each) for each in said]
    assert all(named), said
    return [each[1] for each in named if each]


TOO_SLOW = "Heedful can't recall, so the agent goes on without it: it did not answer within 0.2 seconds"
NO_TIME = "1 answers of agents may not be stored: there was no time left"


@pytest.mark.slow
def test_an_agent_that_blocks_goes_on(server: SilentServer, caplog: pytest.LogCaptureFixture) -> None:
    with heedful.connect(server.url, api_key="hf_x") as remote:
        turn = Turns(remote)
        assert turn.recall(QUESTION) == Memories(QUESTION)
        assert turn.recall("Where is the gym?") == Memories("Where is the gym?")
        assert turn.store("chat-1", Memories(QUESTION), "At six.", "run-1") == "run-1"
        until(lambda: len(server.accepted) == 2)
    assert warnings(caplog)[:2] == [TOO_SLOW, NO_TIME]
    assert len(server.accepted) == 2


@pytest.mark.parametrize("awaited", [False, True], ids=["connect", "aconnect"])
@pytest.mark.nightly
def test_an_agent_that_is_awaited_goes_on(
    server: SilentServer, awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        blocking = heedful.connect(server.url, api_key="hf_x")
        turn = Turns(await heedful.aconnect(server.url, api_key="hf_x") if awaited else blocking)
        assert await turn.arecall(QUESTION) == Memories(QUESTION)
        assert turn.store("chat-1", Memories(QUESTION), "At six.", "run-1") == "run-1"
        while len(server.accepted) < 2:
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        # It also waits for the threads that asyncio lends.
        asyncio.run(run())
    assert warnings(caplog)[0] == TOO_SLOW
    assert len(server.accepted) == 2


@pytest.mark.slow
def test_an_agent_goes_on_when_the_store_is_locked(
    memory: Heedful, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turn = Turns(memory)
    with locked(tmp_path / "store.db"):
        assert turn.recall(QUESTION) == Memories(QUESTION)
        assert asyncio.run(turn.arecall("Where is the gym?")) == Memories("Where is the gym?")
        assert turn.store("chat-1", Memories(QUESTION), "At noon.", "run-1") == "run-1"
    assert warnings(caplog) == [TOO_SLOW]
    # An answer that was late is that of its own turn, and the next turn has nothing of it.
    late = memory.sessions.entry("chat-1", "run-1")
    assert (late.question, late.answer, late.recall_id) == (QUESTION, "At noon.", None)
    memories = turn.recall("Does the gym open at six?")
    assert FACT in memories.prompt
    assert memory.receipt(str(memories.recall_id)).query == "Does the gym open at six?"
    qa_id = turn.store("chat-1", memories, "Yes. [1]")
    turns.finish(memory, 60)
    entry = memory.sessions.entry("chat-1", str(qa_id))
    assert (entry.external_id, entry.recall_id) == (qa_id, memories.recall_id)


@pytest.mark.usefixtures("memory")
def test_a_memory_that_is_awaited_goes_on_when_the_store_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PAUSE", 0)
    path = tmp_path / "store.db"

    async def run() -> None:
        async with await heedful.aopen(path, embedding=WordEmbedder(), worker=False) as awaited:
            with locked(path):
                assert await Turns(awaited).arecall(QUESTION) == Memories(QUESTION)
            monkeypatch.setattr(turns, "DEADLINE", 60)
            assert FACT in (await Turns(awaited).arecall(QUESTION)).prompt

    asyncio.run(run())


@pytest.mark.slow
def test_calls_that_hang_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 0.05)
    monkeypatch.setattr(turns, "PAUSE", 0)
    before = len(working())
    with silent_server() as server, heedful.connect(server.url, api_key="hf_x") as remote:
        # Some adapters are made for each run.
        for number in range(20):
            assert Turns(remote).recall(f"{QUESTION} {number}").prompt == ""
            assert Turns(remote).store("chat-1", Memories(QUESTION), "At six.", f"run-{number}")
        # One more is the first answer, which the others wait for.
        assert len(server.accepted) == turns.MAX_LATE + 1
        assert len(working()) - before == turns.MAX_LATE + 1
        # Another memory is another matter.
        with silent_server() as other, heedful.connect(other.url, api_key="hf_x") as another:
            assert Turns(another).recall(QUESTION).prompt == ""
            assert len(other.accepted) == 1


@pytest.mark.parametrize("way", ["threads", "tasks"])
@pytest.mark.slow
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


@pytest.mark.slow
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
turns.PAUSE = 0
assert turns.Turns(remote).recall("Why?").prompt == ""
assert asyncio.run(turns.Turns(remote).arecall("Why?")).prompt == ""
print("answered")
"""


@pytest.mark.nightly
def test_a_process_ends_while_calls_hang(cold_processes: Callable[[], None]) -> None:
    with silent_server() as server:
        ended = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.url], capture_output=True, text=True, timeout=60, check=False
        )
        assert len(server.accepted) == 2
    assert (ended.returncode, ended.stdout) == (0, "answered\n")
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_memory_that_failed_is_left_alone_and_tried_again(
    server: SilentServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with heedful.connect(server.url, api_key="hf_x") as remote:
        for number in range(5):
            # Also by adapters that are made for each run.
            assert Turns(remote).recall(f"{QUESTION} {number}").prompt == ""
        assert len(server.accepted) == 1
    monkeypatch.setattr(turns, "PAUSE", 0.1)
    with heedful.connect(server.url, api_key="hf_x") as remote:
        until(lambda: Turns(remote).recall(QUESTION) and len(server.accepted) == 4)
    assert warnings(caplog) == [TOO_SLOW] * 2


def test_a_memory_that_refuses_after_a_failure_is_there() -> None:
    guard = Guard(pause=0.5)
    refused: list[str] = []

    def fail() -> None:
        raise Unavailable("the server is down")

    def refuse() -> None:
        refused.append(QUESTION)
        raise Invalid("there is no such dataset")

    guard.attempt("recall", fail)
    until(lambda: guard.attempt("recall", refuse) or refused)
    # Else it would be left alone for another half second.
    assert guard.attempt("recall", lambda: FACT) == FACT


def test_questions_that_are_refused_do_not_stop_others(memory: Heedful, caplog: pytest.LogCaptureFixture) -> None:
    assert Turns(memory, where={"": {"near": 1}}).recall(QUESTION).prompt == ""
    assert FACT in Turns(memory, deadline=60).recall(QUESTION).prompt
    assert [each.startswith("Heedful can't recall") for each in warnings(caplog)] == [True]


STORING = """
import sys, heedful
from heedful.integrations.turns import Memories, Turns
from heedful.testing import WordEmbedder
memory = heedful.open(sys.argv[1], embedding=WordEmbedder())
print(Turns(memory).store("chat-1", Memories("When does the gym open?"), "At six."))
"""


@pytest.mark.nightly
def test_answers_are_stored_when_a_process_ends(memory: Heedful, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STORING, str(tmp_path / "store.db")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    entry = memory.sessions.entry("chat-1", ended.stdout.strip())
    assert (entry.question, entry.answer) == (QUESTION, "At six.")


def test_answers_are_stored_when_a_memory_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "FINISH", 60)
    path = tmp_path / "store.db"

    async def run() -> None:
        async with await heedful.aopen(path, embedding=WordEmbedder(), worker=False) as awaited:
            for number in range(10):
                Turns(awaited).store("chat-1", Memories(QUESTION), f"At {number}.")

    asyncio.run(run())
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as memory:
        for number in range(10, 20):
            Turns(memory).store("chat-1", Memories(QUESTION), f"At {number}.")
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as memory:
        stored = {each.answer for each in memory.sessions.entries("chat-1").items}
    assert stored == {f"At {number}." for number in range(20)}


def test_a_memory_that_was_closed_is_not_waited_for_again(
    server: SilentServer, caplog: pytest.LogCaptureFixture
) -> None:
    with heedful.connect(server.url, api_key="hf_x") as remote:
        Turns(remote).store("chat-1", Memories(QUESTION), "At six.")
    turns._finish_all()
    assert warnings(caplog) == [NO_TIME]


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The port of a server that was stopped. Clients ask it once in each attempt."""
    monkeypatch.setattr(exchange, "ATTEMPTS", 1)
    with running(tmp_path / "store.db") as server:
        return int(server.url.rpartition(":")[2])


@pytest.mark.parametrize("awaited", [False, True], ids=["connect", "aconnect"])
def test_answers_are_stored_once_when_a_server_is_back(
    away: int, awaited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "FINISH", 60)
    # Whether they are interrupted or not, the server is back before the last attempt.
    monkeypatch.setattr(turns, "RETRIES", (0.1, 60, 60))
    answers = [f"At {number}." for number in range(3)]
    url = f"http://127.0.0.1:{away}"

    async def run() -> None:
        async with await heedful.aconnect(url, api_key=KEY) as memory:
            for answer in answers:
                assert Turns(memory).store("chat-1", Memories(QUESTION), answer)
            await asyncio.sleep(0.3)
            with running(tmp_path / "store.db", port=away):
                await turns.afinish(memory)
                stored.extend((await memory.sessions.entries("chat-1")).items)

    stored: list[heedful.Entry] = []
    if awaited:
        asyncio.run(run())
    else:
        with heedful.connect(url, api_key=KEY) as memory:
            for answer in answers:
                assert Turns(memory).store("chat-1", Memories(QUESTION), answer)
            time.sleep(0.3)
            with running(tmp_path / "store.db", port=away):
                turns.finish(memory, 60)
                stored.extend(memory.sessions.entries("chat-1").items)
    assert sorted(each.answer for each in stored) == answers
    assert warnings(caplog) == []


def test_an_answer_that_stays_unstored_is_reported_with_what_to_do(
    away: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "RETRIES", (0.01,))
    monkeypatch.setattr(turns, "FINISH", 60)
    with heedful.connect(f"http://127.0.0.1:{away}", api_key=KEY) as memory:
        assert Turns(memory).store("chat-1", Memories(QUESTION), "At six.", "run-1") == "run-1"
    (warning,) = warnings(caplog)
    assert warning.startswith("Heedful can't store the answer, so the agent goes on without it: the server can't be")
    assert warning.endswith("Check the address, and that heedful serve runs there")


def test_few_answers_wait(
    memory: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 3)
    with locked(tmp_path / "store.db"):
        names = [Turns(memory).store("chat-1", Memories(QUESTION), f"At {number}.") for number in range(6)]
    kept = {each.external_id for each in memory.sessions.entries("chat-1").items}
    assert kept == {name for name in names if name}
    # One is being stored.
    assert 3 <= len(kept) <= 4
    problem = "Heedful can't store the answer, so the agent goes on without it: 3 earlier ones are waiting"
    assert warnings(caplog) == [problem]


def test_an_answer_that_another_has_the_id_of_is_reported(memory: Heedful, caplog: pytest.LogCaptureFixture) -> None:
    for answer in ("At six.", "At six.", "At seven.", "At eight."):
        Turns(memory).store("chat-1", Memories(QUESTION), answer, "run-1")
    turns.finish(memory, 60)
    assert [each.answer for each in memory.sessions.entries("chat-1").items] == ["At six."]
    assert ["'run-1' was used for another entry" in each for each in warnings(caplog)] == [True]


LOG = "line 123: something happened\0\ud800\n" * 1_000


@pytest.mark.parametrize("question", [f"{QUESTION}\n{LOG}", f"{LOG}\n{QUESTION}"])
def test_a_question_with_a_long_log_is_recalled_for_and_stored(memory: Heedful, question: str) -> None:
    turn = Turns(memory, deadline=60)
    memories = turn.recall(question)
    assert FACT in memories.prompt
    turn.store("chat-1", memories, "At six. [1]" + LOG * 100, "run-1")
    turns.finish(memory, 60)
    entry = memory.sessions.entry("chat-1", "run-1")
    assert QUESTION in entry.question
    assert len(entry.question) > 9_000
    assert entry.recall_id == memories.recall_id
    assert entry.answer.startswith("At six. [1]")


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_question_without_words_is_no_failure(memory: Heedful, blank: str, caplog: pytest.LogCaptureFixture) -> None:
    turn = Turns(memory)
    assert turn.recall(blank) == asyncio.run(turn.arecall(blank)) == Memories(blank)
    assert turn.find(blank) is None
    assert turn.store("chat-1", Memories(blank), "At six.") is None
    assert turn.store("chat-1", Memories(QUESTION), blank) is None
    assert warnings(caplog) == []


class Hours(BaseModel):
    opens: time_of_day


@dataclass
class Place:
    name: str
    hours: Hours


@pytest.mark.parametrize(
    ("answer", "stored"),
    [
        ("At six.", "At six."),
        (Hours(opens=time_of_day(6)), '{"opens":"06:00:00"}'),
        (Place("gym", Hours(opens=time_of_day(6))), '{"name":"gym","hours":{"opens":"06:00:00"}}'),
        ({"opens": [6, None]}, '{"opens":[6,null]}'),
        (True, "true"),
        (None, ""),
        ({"at": nan, "by": b"\xff", "of": QUESTION.join}, None),
    ],
)
def test_an_answer_that_is_no_text_is_json(answer: object, stored: str | None) -> None:
    text = turns.as_text(answer)
    assert text == stored if stored is not None else json.loads(text)["at"] is None


def test_a_function_says_what_a_user_is_shown(memory: Heedful, caplog: pytest.LogCaptureFixture) -> None:
    memory.remember("Ada's gym opens at five.", metadata={"user": "ada"})
    turn = Turns(
        memory,
        where=lambda user: {"user": {"only": [user["name"]]}},
        session_id=lambda user: user["name"],
        external_id=lambda user: user.get("message"),
        deadline=60,
    )
    ada, bo = {"name": "ada", "message": "message-1"}, {"name": "bo"}
    assert "five" in turn.recall(QUESTION, ada).prompt
    assert "five" not in asyncio.run(turn.arecall(QUESTION, bo)).prompt
    assert turn.store("thread", Memories(QUESTION), "At five.", "run-1", ada) == "message-1"
    assert turn.store("thread", Memories(QUESTION), "At six.", "run-2", bo) == "run-2"
    turns.finish(memory, 60)
    assert [each.answer for each in memory.sessions.entries("ada").items] == ["At five."]
    assert [each.answer for each in memory.sessions.entries("bo").items] == ["At six."]
    assert warnings(caplog) == []
    # Without a user, nothing is shown: not what belongs to others.
    assert turn.recall(QUESTION, {}).prompt == ""
    assert turn.store("thread", Memories(QUESTION), "At six.", "run-3", {}) is None
    assert [each.partition(": ")[2] for each in warnings(caplog)] == [
        "the function for where failed: KeyError('name')",
        "the function for session_id failed: KeyError('name')",
    ]


def test_the_trace_is_the_id_of_an_answer(memory: Heedful) -> None:
    turn = Turns(memory, external_id="trace")
    tracer = TracerProvider().get_tracer("agent")
    with tracer.start_as_current_span("run") as span:
        memories = turn.recall(QUESTION)
        inside = turn.store("chat-1", memories, "At six.", "run-1")
    trace = f"{span.get_span_context().trace_id:032x}"
    # Some frameworks end it before they say that the run has ended.
    assert (inside, turn.store("chat-1", memories, "At six.", "run-1")) == (trace, trace)
    assert turn.store("chat-1", Memories(QUESTION), "At seven.", "run-2") == "run-2"


def test_the_page_about_all_adapters_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(turns, "FINISH", 60)
    page = Path(__file__).parents[1] / "docs/integrations/README.md"
    (example,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(example, str(page), "exec"), {})
    with heedful.open("memory.db") as memory:
        (entry,) = memory.sessions.entries("chat-1").items
    assert (entry.answer, entry.feedback_score) == ("The gym opens at six. [1]", 5)
