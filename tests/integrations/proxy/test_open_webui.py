"""The function for Open WebUI, as its page shows it, against a real proxy. Its table of feedback is a stand-in;
headers, records and events are those that Open WebUI 0.12.4 sent."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from loop import ANSWER, AT_SIX, QUESTION, Memory, opened
from model_server import chat, chat_stream
from patience import until
from proxying import proxied

PAGE = Path(__file__).parents[3] / "docs/integrations/open-webui.md"
HEADERS = {
    "X-Heedful-User": "b755cf55-1925-4963-be16-11677c231a6d",
    "X-Heedful-Session": "77fd33ac-7e0e-41f2-b55b-35967b67c4eb",
    "X-Heedful-Answer": "d6f3de06-b95d-4003-8a2d-8beb025d9eb3",
    "X-Heedful-Skip": "",
}
ADA, CHAT, MESSAGE, _ = HEADERS.values()
BOB = "6c2ee2c4-3990-4ba0-843f-582472fb89ff"


def feedback(user: str, of: dict[str, Any] | None = None, **said: Any) -> SimpleNamespace:
    data = {"rating": 1, "model_id": "m", "sibling_model_ids": None, "reason": None, "comment": None, "details": None}
    about = {"model_id": "m", "message_id": MESSAGE, "message_index": 2, "chat_id": CHAT, "base_models": {"m": None}}
    meta = about if of is None else of
    return SimpleNamespace(user_id=user, version=0, type="rating", data=data | said, meta=meta, snapshot={"chat": {}})


FEEDBACK = {
    "thumb": feedback(ADA),
    "tagged": feedback(ADA, tags=[]),
    "words": feedback(
        BOB, rating=-1, reason="not_factually_correct", comment="It opens at seven.", details={"rating": 2}, tags=[]
    ),
    "arena": feedback("u-3", {}),
    "other": feedback("u-4", rating=0),
}


def event(name: str, of: str) -> dict[str, Any]:
    return {
        "schema": "0.12.4",
        "event": f"feedback.{name}",
        "resource": "feedback",
        "operation": name,
        "source": "api",
        "actor": {"id": ADA, "name": "Ada", "email": "ada@example.com", "role": "user", "type": "user"},
        "subject": {"type": "feedback", "id": of},
        "data": {"rating": FEEDBACK[of].data["rating"]},
        "message": None,
    }


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with opened("open", tmp_path) as memory:
        yield memory


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> Any:
    async def get_feedback_by_id(id: str) -> Any:
        return FEEDBACK[id]

    table = ModuleType("open_webui.models.feedbacks")
    vars(table)["Feedbacks"] = SimpleNamespace(get_feedback_by_id=get_feedback_by_id)
    for name in ("open_webui", "open_webui.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, table.__name__, table)
    [source] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    given: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), given)
    return given["Event"]()


def test_a_thumb_arrives_with_its_words_and_its_author(memory: Memory, function: Any) -> None:
    with proxied(memory, chat(ANSWER), chat_stream(ANSWER)) as proxy:
        function.valves.address = proxy.url.removesuffix("/v1")
        proxy.ask(
            "### Task:\nGenerate a title", {**HEADERS, "X-Heedful-Answer": "", "X-Heedful-Skip": "title_generation"}
        )
        proxy.ask(QUESTION, HEADERS, stream=True)
        assert [AT_SIX in each.prompt for each in proxy.model.sent] == [False, True]
        session = f"{ADA}/{CHAT}"
        until(lambda: memory.sessions.exists(session) and memory.sessions.entries(session).items)
        # A thumb is sent twice: Open WebUI adds tags to it.
        sent = [("created", "thumb"), ("updated", "tagged"), ("updated", "words"), ("created", "arena")]
        for name, of in [*sent, ("created", "other"), ("deleted", "thumb")]:
            asyncio.run(function.event(event(name, of)))
        asyncio.run(function.event({"event": "chat.created", "subject": None}))
    rows = memory.insight.rows("feedback").items
    assert [(row["author"], row["rating"], row["comment"]) for row in rows] == [
        (ADA, "up", None),
        (BOB, "down", "not_factually_correct: It opens at seven."),
    ]
    assert [entry.question for entry in memory.sessions.entries(session).items] == [QUESTION]
