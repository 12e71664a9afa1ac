"""Sessions of Strands' agents in Heedful: on SQLite, on a server, and in MongoDB."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from loop import ANSWER, QUESTION, SESSION, check_warned, opened
from mongodb import mongodb_server, mongodb_url
from strands import Agent, tool
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.content import Message
from strands.types.session import SessionMessage
from strands_model import Scripted

from heedful import Unavailable
from heedful.api import Sessions
from heedful.integrations.strands import HeedfulPlugin
from heedful.integrations.strands_sessions import HeedfulSessionManager, HeedfulSessionRepository, MongoDBSessionManager
from heedful.integrations.turns import finish

__all__ = ["mongodb_server", "mongodb_url"]


def database_of(url: str) -> str:
    """One that no other test uses."""
    return urlsplit(url).path.strip("/")


Managers = Callable[[], RepositorySessionManager]


@pytest.fixture(params=["open", "connect", "mongodb"])
def new_manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Managers]:
    """Makes managers of one session, as processes that come one after another would."""
    if request.param == "mongodb":
        url = request.getfixturevalue("mongodb_url")
        made: list[MongoDBSessionManager] = []

        def new() -> RepositorySessionManager:
            made.append(MongoDBSessionManager(SESSION, url, database_of(url)))
            return made[-1]

        yield new
        for manager in made:
            manager.close()
        return
    with opened(request.param, tmp_path) as memory:
        yield lambda: HeedfulSessionManager(memory, SESSION)


@tool
def photo() -> dict[str, Any]:
    """A photo of the gym."""
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    return {"status": "success", "content": [{"text": "The gym."}, image]}


def said(agent: Agent) -> list[Any]:
    return [(each["role"], each["content"]) for each in agent.messages]


def test_an_agent_goes_on_where_it_ended(new_manager: Managers) -> None:
    first = Agent(Scripted("photo"), tools=[photo], session_manager=new_manager(), callback_handler=None)
    first.state.set("visits", {"count.today": 1, "$by": "ada"})
    first(QUESTION)
    assert [each["role"] for each in first.messages] == ["user", "assistant", "user", "assistant"]
    scripted = Scripted()
    second = Agent(scripted, tools=[photo], session_manager=new_manager(), callback_handler=None)
    assert said(second) == said(first)
    assert second.state.get("visits") == {"count.today": 1, "$by": "ada"}
    second("And on Sunday?")
    assert len(scripted.conversations[0]) == 5
    third = Agent(Scripted(), session_manager=new_manager(), callback_handler=None)
    assert said(third) == said(second)


def test_agents_of_one_session_have_their_own_messages_and_states(new_manager: Managers) -> None:
    manager = new_manager()
    default = Agent(Scripted(), session_manager=manager, callback_handler=None)
    other = Agent(Scripted(), agent_id="v1.5", session_manager=new_manager(), callback_handler=None)
    default(QUESTION)
    other.state.set("kind", "other")
    other('{"strands": not JSON}')
    again = [
        Agent(Scripted(), agent_id=name, session_manager=new_manager(), callback_handler=None)
        for name in ("default", "v1.5")
    ]
    assert [each["content"][0] for each in again[0].messages] == [{"text": QUESTION}, {"text": ANSWER}]
    assert again[1].messages[0]["content"] == [{"text": '{"strands": not JSON}'}]
    assert (again[0].state.get("kind"), again[1].state.get("kind")) == (None, "other")


def test_a_redacted_message_is_gone(new_manager: Managers) -> None:
    manager = new_manager()
    agent = Agent(Scripted(), session_manager=manager, callback_handler=None)
    agent(QUESTION)
    redacted: Message = {"role": "assistant", "content": [{"text": "[redacted]"}]}
    manager.redact_latest_message(redacted, agent)
    again = Agent(Scripted(), session_manager=new_manager(), callback_handler=None)
    assert [each["content"] for each in again.messages] == [[{"text": QUESTION}], [{"text": "[redacted]"}]]
    repository = manager.session_repository
    assert ANSWER not in str(repository.list_messages(SESSION, "default"))
    read = repository.read_message(SESSION, "default", 1)
    assert read is not None
    assert (read.message_id, read.message["content"]) == (1, [{"text": "[redacted]"}])
    assert repository.read_message(SESSION, "default", 9) is None


def test_messages_can_be_read_as_heedful_has_them(tmp_path: Path) -> None:
    with opened("open", tmp_path) as memory:
        agent = Agent(
            Scripted(),
            session_manager=HeedfulSessionManager(memory, SESSION),
            plugins=[HeedfulPlugin(memory)],
            callback_handler=None,
        )
        agent(QUESTION, invocation_state={"external_id": "run-1"})
        messages = memory.sessions.messages(SESSION).items
        assert [(each.role, each.content) for each in messages] == [("user", QUESTION), ("assistant", ANSWER)]
        # The plugin stores its entries in the session that the agent has.
        finish(memory)
        assert memory.sessions.entry(SESSION, "run-1").answer == ANSWER


def test_feedback_and_metadata_are_in_the_session_of_the_agent(mongodb_url: str) -> None:
    seen: list[str] = []

    def audit(original: Any, action: str, session_id: str, **kwargs: Any) -> Any:
        seen.append(action)
        return original(kwargs["metadata"]) if "metadata" in kwargs else original()

    manager = MongoDBSessionManager(SESSION, mongodb_url, database_of(mongodb_url), metadataHook=audit)
    try:
        Agent(Scripted(), session_manager=manager, callback_handler=None)(QUESTION)
        assert manager.add_feedback({"rating": "up", "comment": "Right."})
        assert manager.update_metadata({"variant": "B"}) == {"variant": "B"}
        assert manager.get_metadata() == {"variant": "B"}
        assert [each["comment"] for each in manager.get_feedbacks()] == ["Right."]
        assert len(manager.sessions.messages(SESSION).items) == 2
        # Of the caller's own metadata only.
        assert seen.count("update") == 1
    finally:
        manager.close()


def test_an_agent_answers_when_heedful_fails_after_it_began(
    failing: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened("open", tmp_path) as memory:
        manager = HeedfulSessionManager(memory, SESSION)
        agent = Agent(Scripted(), session_manager=manager, callback_handler=None)
        repository: Any = manager.session_repository
        repository._sessions = failing.sessions
        with caplog.at_level(logging.WARNING, "heedful.integrations"):
            for _ in range(2):
                assert str(agent(QUESTION)).strip() == ANSWER
    check_warned(caplog)


def test_a_new_agent_says_that_heedful_fails(failing: Any) -> None:
    with pytest.raises(Unavailable):
        Agent(Scripted(), session_manager=HeedfulSessionManager(failing, SESSION), callback_handler=None)


ALONE = """
import sys
sys.modules["pymongo"] = None
from loop import ANSWER, QUESTION, SESSION, opened
from pathlib import Path
from strands import Agent
from strands_model import Scripted
from heedful import Unavailable
from heedful.integrations.strands_sessions import HeedfulSessionManager, MongoDBSessionManager
from heedful.integrations.turns import finish

with opened("open", Path(sys.argv[1])) as memory:
    agent = Agent(Scripted(), session_manager=HeedfulSessionManager(memory, SESSION), callback_handler=None)
    assert str(agent(QUESTION)).strip() == ANSWER
    assert [each.content for each in memory.sessions.messages(SESSION).items] == [QUESTION, ANSWER]
try:
    MongoDBSessionManager(SESSION)
except Unavailable as error:
    print(error)
"""


def test_only_sessions_in_mongodb_need_its_driver(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    needed = 'a store on MongoDB needs the package pymongo. Run: pip install "heedful[mongodb]", or in a clone'
    assert done.stdout.startswith(needed), done.stderr


def test_messages_are_listed_in_parts(tmp_path: Path) -> None:
    with opened("open", tmp_path) as memory:
        sessions: Sessions = memory.sessions
        repository = HeedfulSessionRepository(sessions)
        sessions.create(SESSION)
        for number in range(5):
            message: Message = {"role": "user", "content": [{"text": f"Number {number}"}]}
            repository.create_message(SESSION, "default", SessionMessage.from_message(message, number))
        found = repository.list_messages(SESSION, "default", limit=2, offset=3)
        assert [(each.message_id, each.message["content"][0]["text"]) for each in found] == [
            (3, "Number 3"),
            (4, "Number 4"),
        ]
