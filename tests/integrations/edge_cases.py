"""What may happen to any agent: one suite that every adapter has to pass, with its framework's own test model."""

from __future__ import annotations

import logging
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from loop import ANSWER, AT_SEVEN, AT_SIX, QUESTION, SESSION, Asked, Memory, check_warned, opened, shown, warnings
from silent_server import silent_server

import heedful
from heedful.integrations import turns
from heedful.integrations.turns import finish

LOG = "line 123: something happened\n" * 1_500
STRUCTURED = '{"hour":"six"}'
PRIVATE = "The gym of Ada opens at five."


def meaningless(why: str) -> NoReturn:
    """Says that a framework has no such case."""
    pytest.skip(why)


class EdgeCases:
    """A suite of this name in the tests of an adapter says how an agent is asked there. Each method makes an agent with
    the adapter on `memory`."""

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        raise NotImplementedError

    def ask_with_image_alone(self, memory: Any) -> str:
        """Returns the answer."""
        raise NotImplementedError

    def ask_for_hours(self, memory: Any) -> None:
        """The answer has one field, `hour`, which is `six`."""
        raise NotImplementedError

    def stream(self, memory: Any) -> Asked:
        raise NotImplementedError

    def cancel(self, memory: Any) -> None:
        """Ends a run before it has an answer."""
        raise NotImplementedError

    def retry(self, memory: Any) -> Asked:
        """The model fails, and is asked again."""
        raise NotImplementedError

    def approve(self, memory: Any) -> Asked:
        """A tool waits for somebody's approval, and the model answers after it."""
        raise NotImplementedError

    def delegate(self, memory: Any) -> Asked:
        """Another agent, which has the adapter, too, answers `The other says six.` to the first."""
        raise NotImplementedError

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        """An agent with the tools calls one; returns what its model is told."""
        raise NotImplementedError

    def user_of(self, context: Any) -> str:
        """The name of the user in what functions of the options are given."""
        raise NotImplementedError

    def where(self, context: Any) -> Any:
        return {"user": {"only": [self.user_of(context)]}}

    def entries(self, memory: Memory) -> list[heedful.Entry]:
        finish(memory)
        sessions = [each.session_id for each in memory.sessions.list().items]
        return [entry for session in sessions for entry in memory.sessions.entries(session).items]

    def check_stored(self, memory: Memory, asked: Asked, question: str = QUESTION, answer: str = ANSWER) -> None:
        assert shown(asked.prompt) == [AT_SIX, AT_SEVEN]
        (entry,) = self.entries(memory)
        assert (entry.question, entry.answer.strip(), entry.external_id) == (question, answer, asked.run_id)
        assert memory.receipt(str(entry.recall_id)).recall_id == entry.recall_id

    @pytest.fixture
    def memory(self, patient: None, tmp_path: Path) -> Any:
        with opened("open", tmp_path) as memory:
            yield memory

    @pytest.fixture(autouse=True)
    def log(self, caplog: pytest.LogCaptureFixture) -> Any:
        with caplog.at_level(logging.WARNING, "heedful.integrations"):
            yield caplog

    def test_hung(self, patient: None, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture) -> None:
        monkeypatch.setattr(turns, "DEADLINE", 0.2)
        monkeypatch.setattr(turns, "FINISH", 0.1)
        with silent_server() as server, heedful.connect(server.url, api_key="hf_x") as memory:
            for _ in range(3):
                assert self.ask(memory).answer.strip() == ANSWER
            # One recall, and the first answer, which the others wait for.
            assert len(server.accepted) <= 2
        check_warned(log)

    def test_locked(
        self, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(turns, "DEADLINE", 0.2)
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            asked = self.ask(memory)
            assert asked.answer.strip() == ANSWER
            other.execute("ROLLBACK")
        (entry,) = self.entries(memory)
        assert (entry.question, entry.external_id) == (QUESTION, asked.run_id)
        check_warned(log)

    def test_refused(self, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture) -> None:
        monkeypatch.setattr(turns, "FINISH", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as unused:
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with heedful.connect(url, api_key="hf_x") as memory:
            for _ in range(3):
                assert self.ask(memory).answer.strip() == ANSWER
        check_warned(log)

    def test_long(self, memory: Memory) -> None:
        asked = self.ask(memory, f"{QUESTION}\n{LOG}")
        assert shown(asked.prompt) == [AT_SIX, AT_SEVEN]
        (entry,) = self.entries(memory)
        assert entry.question.startswith(QUESTION)
        assert len(entry.question) > 9_000
        assert entry.recall_id

    def test_empty(self, memory: Memory, log: pytest.LogCaptureFixture) -> None:
        assert self.ask(memory, "").answer.strip() == ANSWER
        assert self.entries(memory) == []
        assert warnings(log) == []

    def test_image(self, memory: Memory, log: pytest.LogCaptureFixture) -> None:
        assert self.ask_with_image_alone(memory).strip() == ANSWER
        assert self.entries(memory) == []
        assert warnings(log) == []

    def test_structured(self, memory: Memory) -> None:
        self.ask_for_hours(memory)
        assert [each.answer for each in self.entries(memory)] == [STRUCTURED]

    def test_stream(self, memory: Memory) -> None:
        self.check_stored(memory, self.stream(memory))

    def test_parallel(self, memory: Memory) -> None:
        def one(number: int) -> Asked:
            return self.ask(memory, f"{QUESTION} {number}", session=f"s-{number}")

        with ThreadPoolExecutor(4) as pool:
            asked = list(pool.map(one, range(8)))
        stored = {each.external_id: each.question for each in self.entries(memory)}
        assert stored == {each.run_id: f"{QUESTION} {number}" for number, each in enumerate(asked)}

    def test_cancelled(self, memory: Memory) -> None:
        self.cancel(memory)
        assert self.entries(memory) == []
        self.check_stored(memory, self.ask(memory))

    def test_retried(self, memory: Memory) -> None:
        self.check_stored(memory, self.retry(memory))

    def test_approval(self, memory: Memory) -> None:
        self.check_stored(memory, self.approve(memory))

    def test_sub_agent(self, memory: Memory) -> None:
        asked = self.delegate(memory)
        assert shown(asked.prompt) == [AT_SIX, AT_SEVEN]
        entry = next(each for each in self.entries(memory) if each.external_id == asked.run_id)
        assert (entry.question, entry.answer.strip()) == (QUESTION, ANSWER)

    def test_two_users_at_once(self, memory: Memory) -> None:
        memory.remember(PRIVATE, metadata={"user": "ada"})

        def one(number: int) -> tuple[str, Asked]:
            user = ("ada", "bo")[number % 2]
            return user, self.ask(
                memory,
                session=f"s-{number}",
                user=user,
                where=self.where,
                session_id=lambda context: f"of {self.user_of(context)}",
            )

        with ThreadPoolExecutor(4) as pool:
            asked = list(pool.map(one, range(8)))
        for user, each in asked:
            assert (PRIVATE in each.prompt) == (user == "ada")
            assert shown(each.prompt) == [AT_SIX, AT_SEVEN]
        finish(memory)
        for user in ("ada", "bo"):
            ids = {each.external_id for each in memory.sessions.entries(f"of {user}").items}
            assert ids == {each.run_id for name, each in asked if name == user}

    def test_tools(self, memory: Memory) -> None:
        def use(user: str, tool: str, **arguments: Any) -> str:
            return self.use(memory, tool, arguments, user=user, where=self.where, author=self.user_of)

        assert "Remembered" in use("ada", "remember", text="The locker of Ada is number 12.")
        for user in ("ada", "bo"):
            found = use(user, "recall", query="Which number has the locker, and when does the gym open?")
            assert AT_SIX in found
            assert ("number 12" in found) == (user == "ada")
        fact_id = memory.facts(newest_first=True, limit=1).items[0].fact_id
        correction = {"fact_id": fact_id, "text": "The locker of Ada is number 13."}
        assert "there is no fact" in use("bo", "correct", **correction)
        assert "Corrected" in use("ada", "correct", **correction)
        assert "number 13" in use("ada", "recall", query="Which number has the locker?")
        assert "number 13" not in use("bo", "recall", query="Which number has the locker?")

    def test_a_tool_says_that_it_failed(self, patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "DEADLINE", 0.2)
        monkeypatch.setattr(turns, "FINISH", 0.1)
        with silent_server() as server, heedful.connect(server.url, api_key="hf_x") as memory:
            for _ in range(2):
                assert "Not done: it " in self.use(memory, "remember", {"text": "The gym opens at six."})
            # One at most is an adapter's, which is there, too.
            assert len(server.accepted) <= 2

    def test_trace(self, memory: Memory) -> None:
        from opentelemetry.sdk.trace import TracerProvider

        tracer = TracerProvider().get_tracer("agent")
        with tracer.start_as_current_span("request") as span:
            self.ask(memory, external_id="trace")
        (entry,) = self.entries(memory)
        assert entry.external_id == f"{span.get_span_context().trace_id:032x}"
