"""The function for Open WebUI, as its page shows it, against a real proxy; its table of feedback is a stand-in."""

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
from model_server import chat
from patience import until
from proxying import proxied

PAGE = Path(__file__).parents[3] / "docs/integrations/open-webui.md"
FEEDBACK = {
    "thumb": SimpleNamespace(user_id="u-1", data={"rating": 1}, meta={"message_id": "m-1", "chat_id": "c-1"}),
    "words": SimpleNamespace(
        user_id="u-2",
        data={"rating": -1, "reason": "not_factually_correct", "comment": "Seven."},
        meta={"message_id": "m-1"},
    ),
    "arena": SimpleNamespace(user_id="u-3", data={"rating": 1}, meta=None),
    "other": SimpleNamespace(user_id="u-4", data={"rating": 0}, meta={"message_id": "m-1"}),
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
    with proxied(memory, chat(ANSWER)) as proxy:
        function.valves.address = proxy.url.removesuffix("/v1")
        headers = {"X-Heedful-User": "u-1", "X-Heedful-Session": "c-1", "X-Heedful-Answer": "m-1", "X-Heedful-Skip": ""}
        proxy.ask(QUESTION, headers)
        proxy.ask("### Task: make a title", {**headers, "X-Heedful-Skip": "title_generation"})
        assert [AT_SIX in each.prompt for each in proxy.model.sent] == [True, False]
        until(lambda: memory.sessions.exists("u-1/c-1") and memory.sessions.entries("u-1/c-1").items)
        for name, of in (("created", "thumb"), ("updated", "words"), ("created", "arena"), ("created", "other")):
            asyncio.run(function.event({"event": f"feedback.{name}", "subject": {"type": "feedback", "id": of}}))
        asyncio.run(function.event({"event": "chat.created", "subject": None}))
    rows = memory.insight.rows("feedback").items
    assert [(row["author"], row["rating"], row["comment"]) for row in rows] == [
        ("u-1", "up", None),
        ("u-2", "down", "not_factually_correct: Seven."),
    ]
