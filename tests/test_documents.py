"""Every code block of the documents runs as it stands: with the real client, or with only the import changed.

Where the documents are not beside the clone, these tests are skipped; the same calls are tested, in other words, in
tests/server/*_wire.py and tests/test_compat_*.py, which run anywhere.
"""

from __future__ import annotations

import asyncio
import builtins
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from documents import blocks, filled, run
from fastapi.testclient import TestClient
from kinds import KINDS
from server import running

import heedful.compat.cognee as cognee
import heedful.compat.mongodb_session_manager as session_manager
import heedful.compat.text2everything as text2everything
from heedful.errors import Invalid
from heedful.providers.llm import ChatMessage
from heedful.testing import ScriptedModel, WordEmbedder

pytestmark = pytest.mark.slow

with warnings.catch_warnings():
    # Its models are written for an older pydantic.
    warnings.simplefilter("ignore")
    from text2everything_sdk import Text2EverythingClient  # type: ignore[import-untyped]


def test_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Document 000."""
    found = blocks("000", "python")
    monkeypatch.setitem(sys.modules, "cognee", cognee)

    async def program() -> None:
        await cognee.configure(tmp_path / "store.db", embedding=WordEmbedder())
        names: dict[str, Any] = {}
        try:
            await cognee.remember(["The main themes in my data are trains.", "Ships sail."], self_improvement=False)
            for block in found:
                await run(block, block.text, names)
            assert names["ok"] is True
            assert "trains" in names["results"][0].text
            assert len(names["improved_results"]) > 0
            assert names["cleared"] is False, "there is no such entry"
        finally:
            await cognee.close()

    asyncio.run(program())
    assert len(found) == 2
    assert "Feedback cleared: False" in capsys.readouterr().out


WRITTEN = {
    "Count active users": "SELECT count(*) AS users FROM users WHERE active",
    "Show customer metrics": "SELECT status, count(*) AS customers FROM customers GROUP BY status",
    "Show active customers": "SELECT name FROM customers WHERE status = 'active' ORDER BY name",
}


def written(messages: Sequence[ChatMessage]) -> str:
    return f"```sql\n{WRITTEN[messages[-1].content.rpartition('Question: ')[2]]}\n```"


SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, name text, status text, spent numeric(9, 2));
INSERT INTO customers VALUES (1, 'Ada', 'active', 10.50), (2, 'Ben', 'closed', 0), (3, 'Cleo', 'active', 7);
CREATE TABLE users (id integer PRIMARY KEY, active boolean);
INSERT INTO users VALUES (1, true), (2, false), (3, true);
"""
NO_MESSAGE = "'ChatToAnswerResponse' object has no attribute 'chat_message_id'"
"""The document reads the message of an answer by a name that the released client doesn't have; there it is `id`."""


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database on PostgreSQL, which is the kind that the client and Heedful share."""
    place = KINDS["postgresql"](request, tmp_path)
    place.write(SHOP)
    return place.url


def started(client: Any, connector: str) -> tuple[dict[str, str], Any]:
    """What the document's ids stand for, and the answer whose message it is about."""
    session = client.chat_sessions.create("proj-123")
    first = client.chat.chat_to_answer("proj-123", session.id, "Show active customers", connector_id=connector)
    message = first.execution_result.chat_message_id
    opinions = [client.feedback.create("proj-123", message, f"Remark {number}", True) for number in range(4)]
    names = ("feedback-abc", "feedback-1", "feedback-2", "feedback-3")
    return {
        "conn-456": connector,
        "msg-456": message,
        "exec-789": first.execution_result.execution_id,
        **{name: each.id for name, each in zip(names, opinions, strict=True)},
    }, session


def withdraw(client: Any) -> None:
    """Retracts what was called wrong: as long as it is active, the SQL is not used again."""
    for each in client.feedback.list_negative("proj-123"):
        client.feedback.delete("proj-123", each.id)


def test_executions_by_the_real_client(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Document 001 over HTTP; what it can't do is what its client lacks."""
    found = blocks("001", "python")
    address = urlsplit(shop)
    monkeypatch.setenv("SHOP_PASSWORD", "unused")
    monkeypatch.setenv("HEEDFUL_CONNECTOR_SECRETS", "SHOP_PASSWORD")
    values = {"workspace_name": "workspaces/dev", "max_retries": 0, "timeout": 60}
    with (
        running(tmp_path / "store.db", language_model=ScriptedModel(written)) as server,
        Text2EverythingClient(base_url=server.url, access_token=server.key, **values) as client,
    ):
        client.projects.create(name="proj-123")
        connector = client.connectors.create(
            "proj-123",
            "shop",
            db_type="postgres",
            host=address.hostname,
            port=address.port,
            username=address.username,
            password_secret_id="SHOP_PASSWORD",
            database=address.path.strip("/"),
        ).id
        ids, session = started(client, connector)
        ids |= {"https://...": server.url, "...": server.key}
        names: dict[str, Any] = {}
        failed = []
        for block in found:
            try:
                asyncio.run(run(block, filled(block, ids), names))
            except AttributeError as error:
                assert str(error) == NO_MESSAGE  # noqa: PT017
                failed.append(block.number)
        out = capsys.readouterr().out
        assert (len(found), failed) == (18, [13])
        assert "Deleted 3 feedback entries" in out
        monkeypatch.setattr(builtins, "input", lambda _: "good")
        with pytest.raises(AttributeError, match=NO_MESSAGE):
            names["execute_with_validation"](client, "proj-123", session.id, "Count active users", connector)
        withdraw(client)
        rows = names["smart_query"](client, "proj-123", connector, "Show active customers")["data"]
        assert "Using cached result" in capsys.readouterr().out
        assert rows == [{"name": "Ada"}, {"name": "Cleo"}]
        spent = client.executions.execute_query("proj-123", connector, "SELECT sum(spent) AS spent FROM customers")
        assert spent.result["data"] == [{"spent": 17.5}]
        names["client"].close()


def test_executions_with_the_import_changed(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Document 001, whole."""
    found = blocks("001", "python")
    opened: list[text2everything.Text2EverythingClient] = []

    def opening(**given: Any) -> text2everything.Text2EverythingClient:
        opened.append(
            text2everything.Text2EverythingClient(
                embedding=WordEmbedder(), language_model=ScriptedModel(written), **given
            )
        )
        return opened[-1]

    monkeypatch.setitem(sys.modules, "text2everything_sdk", SimpleNamespace(Text2EverythingClient=opening))
    try:
        client = opening(base_url=tmp_path / "store.db")
        connector = client.connectors.create("proj-123", "shop", shop).connector_id
        ids, session = started(client, connector)
        names: dict[str, Any] = {}
        for block in found:
            asyncio.run(run(block, filled(block, ids | {"https://...": str(tmp_path / "store.db")}), names))
        assert "Marked execution for cache reuse" in capsys.readouterr().out

        answers = iter(["good", "Fine.", "bad", ""])
        monkeypatch.setattr(builtins, "input", lambda _: next(answers))
        for _ in range(2):
            ran = names["execute_with_validation"](client, "proj-123", session.id, "Count active users", connector)
            assert ran.result.records() == [{"users": 2}]
        opinions = {(each.feedback, each.is_positive) for each in client.feedback.list("proj-123")}
        assert {("Fine.", True), ("Results incorrect", False)} <= opinions
        withdraw(client)
        rows = names["smart_query"](client, "proj-123", connector, "Show active customers").records()
        assert "Using cached result" in capsys.readouterr().out
        assert rows == [{"name": "Ada"}, {"name": "Cleo"}]
    finally:
        for each in opened:
            each.close()


REFUSED = {
    # The document shows them as what not to do: refused by its own hook, which is asked first, in its own words.
    20: (ValueError, "Invalid rating: maybe"),
    21: (ValueError, "Please provide a comment with negative feedback"),
    22: (ValueError, "Comment too long: 100000 chars"),
    # A manager is made without naming its session, which no release of the original allows either.
    25: (TypeError, "session_id"),
    # No field that the document knows is given; here, that is refused.
    26: (Invalid, "neither a rating nor a comment"),
}


def test_sessions(
    mongodb_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Document 002, on a MongoDB; its application answers over HTTP."""
    found = blocks("002", "python")
    monkeypatch.setitem(sys.modules, "mongodb_session_manager", session_manager)
    database = urlsplit(mongodb_url).path.strip("/")
    places = {"mongodb://localhost:27017/": mongodb_url, "chat_db": database, "my_db": database}
    # What the document takes for granted.
    names: dict[str, Any] = dict.fromkeys(("send_alert_to_support_team", "validation_hook", "audit_hook"), print)
    names["notification_hook"] = print
    answers: dict[int, Any] = {}
    opened: list[Any] = []
    session_manager.initialize_global_factory(mongodb_url, database)
    try:
        with caplog.at_level("INFO"):
            for block in found:
                expected, words = REFUSED.get(block.number, (None, ""))
                if expected is None:
                    asyncio.run(run(block, filled(block, places), names))
                else:
                    with pytest.raises(expected, match=words):
                        asyncio.run(run(block, filled(block, places), names))
                if names.get("session_manager") not in (None, *opened):
                    opened.append(names["session_manager"])
                if block.text.lstrip().startswith("from fastapi"):
                    answers[block.number] = [_post(names["app"], given) for given in (LIKED, UNSURE, SILENT)]
        out = capsys.readouterr().out
    finally:
        for each in opened:
            each.close()
        session_manager.close_global_factory()
    assert len(found) == 24
    assert "Total feedbacks: 4" in out
    assert "Validation error: Please provide a comment with negative feedback" in out
    assert "[FEEDBACK AUDIT] Saved successfully" in caplog.text
    assert "[ALERT] Count: 1" in caplog.text
    statuses = [[status for status, _ in each] for each in answers.values()]
    assert statuses == [[200, 500, 200], [200, 400, 400], [200, 500, 200]]
    assert list(answers.values())[1][1:] == [
        (400, {"detail": "Invalid rating: maybe"}),
        (400, {"detail": "Please provide a comment with negative feedback"}),
    ]


LIKED = {"rating": "up", "comment": "Good."}
UNSURE = {"rating": "maybe", "comment": "Not sure"}
SILENT = {"rating": "down", "comment": ""}


def _post(app: Any, given: dict[str, str]) -> tuple[int, Any]:
    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.post("/api/sessions/user-9/feedback", json=given)
    return answer.status_code, answer.json() if answer.status_code == 400 else None
