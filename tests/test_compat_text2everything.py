"""The flows that text2everything's users have, with nothing changed but the import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, Cities, make_cities

from heedful.compat import text2everything
from heedful.compat.text2everything import Text2EverythingClient
from heedful.errors import Invalid, NotFound
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder

PROJECT = "proj-123"
STREETS = "How many streets are there?"
STREETS_SQL = "SELECT count(*) AS streets FROM street"


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(lambda messages: f"```sql\n{STREETS_SQL}\n```")


@pytest.fixture
def client(path: Path, clock: ManualClock, model: ScriptedModel, cities: Cities) -> Iterator[Text2EverythingClient]:
    with Text2EverythingClient(
        base_url=path,
        access_token="a-token",
        workspace_name="workspaces/dev",
        clock=clock,
        embedding=WordEmbedder(),
        language_model=model,
    ) as opened:
        opened.connectors.create(PROJECT, "conn-456", cities.url)
        yield opened


def validated(client: Any, session_id: str, query: str) -> Any:
    """Asks, shows, and keeps what the person at the keyboard says."""
    answer = client.chat.chat_to_answer(
        project_id=PROJECT, chat_session_id=session_id, query=query, connector_id="conn-456"
    )
    if not answer.execution_result:
        return None
    print(f"{answer.sql_query}: {answer.execution_result.result}")
    rating, comment = input("good or bad? ").lower(), input("why? ")
    about = {"chat_message_id": answer.chat_message_id, "execution_id": answer.execution_result.execution_id}
    if rating == "good":
        client.feedback.create_positive(project_id=PROJECT, feedback_text=comment or "validated", **about)
    elif rating == "bad":
        client.feedback.create_negative(project_id=PROJECT, feedback=comment or "incorrect", **about)
    return answer.execution_result


def smart(client: Any, query: str) -> Any:
    """Takes what is proven, and asks otherwise."""
    cached = client.chat.execution_cache_lookup(
        project_id=PROJECT,
        user_query=query,
        connector_id="conn-456",
        only_positive_feedback=True,
        similarity_threshold=0.8,
    )
    if cached.cache_hit and cached.matches:
        return "cache", cached.matches[0].execution["result"]
    session = client.chat_sessions.create(project_id=PROJECT)
    answer = client.chat.chat_to_answer(
        project_id=PROJECT, chat_session_id=session.id, query=query, connector_id="conn-456"
    )
    return ("chat", answer.execution_result.result) if answer.execution_result else None


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def types(*lines: str) -> None:
        waiting = iter(lines)
        monkeypatch.setattr("builtins.input", lambda _: next(waiting))

    return types


@pytest.mark.slow
def test_people_validate_what_they_get(client: Text2EverythingClient, typing: Callable[..., None]) -> None:
    session = client.chat_sessions.create(project_id=PROJECT)
    typing("Good", "")
    right = validated(client, session.id, STREETS)
    assert right.result.rows == [[3]]
    [said] = client.feedback.list_positive(project_id=PROJECT)
    assert (said.feedback, said.execution_id, said.chat_message_id) == (
        "validated",
        right.execution_id,
        right.chat_message_id,
    )
    typing("bad", "paths are missing")
    wrong = validated(client, session.id, STREETS)
    assert wrong.origin == "served"
    [said] = client.feedback.get_feedback_for_message(project_id=PROJECT, chat_message_id=wrong.chat_message_id)
    assert (said.is_positive, said.feedback) == (False, "paths are missing")
    typing("hm", "")
    assert validated(client, session.id, STREETS).origin == "written"
    assert len(client.feedback.list(project_id=PROJECT)) == 2
    assert [each.question for each in client.chat_sessions.get_questions(PROJECT, session.id)] == [STREETS] * 3


def test_feedback_drives_the_cache(client: Text2EverythingClient, model: ScriptedModel) -> None:
    where, result = smart(client, STREETS)
    assert (where, result.rows) == ("chat", [[3]])
    assert smart(client, STREETS)[0] == "chat"
    done = client.executions.execute_query(
        project_id=PROJECT, connector_id="conn-456", sql_query=STREETS_SQL, question=STREETS
    )
    feedback = client.feedback.create_positive(
        project_id=PROJECT,
        chat_message_id=done.chat_message_id,
        feedback_text="Perfect results!",
        execution_id=done.execution_id,
    )
    where, result = smart(client, STREETS)
    assert (where, result.rows, len(model.prompts)) == ("cache", [[3]], 2)
    client.feedback.update(PROJECT, feedback.id, is_positive=False)
    assert smart(client, STREETS)[0] == "chat"
    client.feedback.update(PROJECT, feedback.id, is_positive=True)
    assert smart(client, STREETS)[0] == "cache"


def test_feedback_can_be_counted(client: Text2EverythingClient) -> None:
    done = client.executions.execute_query(PROJECT, "conn-456", IN_ITALY_SQL, question=IN_ITALY)
    for number in range(4):
        client.feedback.create(
            project_id=PROJECT, execution_id=done.execution_id, feedback=f"number {number}", is_positive=number > 0
        )
    every = client.feedback.list(project_id=PROJECT)
    positive = sum(1 for each in every if each.is_positive)
    assert f"{positive / len(every) * 100:.1f}%" == "75.0%"
    assert [each.feedback for each in every if not each.is_positive] == ["number 0"]
    assert [each.feedback for each in client.feedback.list(project_id=PROJECT, search="NUMBER 2")] == ["number 2"]
    assert len(client.feedback.list(project_id=PROJECT, skip=1, limit=2)) == 2
    assert len(client.feedback.list_negative(project_id=PROJECT)) == 1
    deletion = client.feedback.bulk_delete(project_id=PROJECT, feedback_ids=[every[0].id, "feedback-2"])
    assert (deletion["deleted_count"], deletion["failed_ids"]) == (1, ["feedback-2"])
    assert client.feedback.delete(project_id=PROJECT, feedback_id=every[1].id) is True
    with pytest.raises(NotFound):
        client.feedback.get(project_id=PROJECT, feedback_id=every[1].id)
    changed = client.feedback.update(project_id=PROJECT, feedback_id=every[2].id, feedback="better", is_positive=False)
    assert client.feedback.get(PROJECT, every[2].id) == changed


@pytest.mark.parametrize("limit", [-1, 0, 2.5])
def test_a_limit_that_is_none_is_refused(client: Text2EverythingClient, limit: Any) -> None:
    with pytest.raises(Invalid):
        client.feedback.list(project_id=PROJECT, limit=limit)


def test_the_matches_of_a_hit_say_who_trusts_them(client: Text2EverythingClient) -> None:
    done = client.executions.execute_query(PROJECT, "conn-456", IN_ITALY_SQL, question=IN_ITALY)
    client.feedback.create_positive(PROJECT, None, "Checked.", done.execution_id)
    for _ in range(2):
        result = client.chat.execution_cache_lookup(PROJECT, IN_ITALY, connector_id="conn-456")
        trusted = [match for match in result.matches if match.has_feedback and match.feedback_is_positive]
        assert result.cache_hit
        assert trusted[0].execution["sql_query"] == IN_ITALY_SQL
        assert trusted[0].execution["result"].rows == [[2]]


def test_projects_are_apart(client: Text2EverythingClient) -> None:
    done = client.executions.execute_query(PROJECT, "conn-456", IN_ITALY_SQL, question=IN_ITALY)
    with pytest.raises(NotFound):
        client.executions.get("proj-456", done.execution_id)
    with pytest.raises(NotFound):
        client.executions.execute_query("proj-456", "conn-456", "SELECT 1")
    assert client.feedback.list("proj-456") == []
    assert client.executions.get(PROJECT, done.execution_id) == done


def test_sessions_connectors_and_examples_are_managed(client: Text2EverythingClient) -> None:
    session = client.chat_sessions.create(PROJECT, name="Counting")
    assert [each.id for each in client.chat_sessions.list(PROJECT)] == [session.id]
    assert client.chat_sessions.get(PROJECT, session.id).name == "Counting"
    example = client.golden_examples.create(PROJECT, user_query=IN_ITALY, sql_query=IN_ITALY_SQL)
    assert [each.id for each in client.golden_examples.list(PROJECT)] == [example.id]
    answer = client.chat.chat_to_sql(
        project_id=PROJECT, chat_session_id=session.id, query=IN_ITALY, feedback_cutoff=0.5
    )
    assert client.executions.execute_from_chat(PROJECT, answer.chat_message_id).result.rows == [[2]]
    assert client.golden_examples.delete(PROJECT, example.id)
    assert client.chat_sessions.delete(PROJECT, session.id)
    assert client.connectors.delete(PROJECT, "conn-456")
    assert client.connectors.list(PROJECT) == []


def test_an_address_of_the_other_system_is_not_contacted(
    monkeypatch: pytest.MonkeyPatch, path: Path, cities: Cities
) -> None:
    monkeypatch.setenv("HEEDFUL_STORE", str(path))
    with Text2EverythingClient("https://t2e.invalid", "token", "workspaces/dev", embedding=WordEmbedder()) as client:
        client.connectors.create(PROJECT, "geo", cities.url)
    with Text2EverythingClient(path, embedding=WordEmbedder()) as client:
        assert [each.name for each in client.connectors.list(PROJECT)] == ["geo"]


def test_lists_are_whole_however_many_pages_they_take(
    client: Text2EverythingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.compat.text2everything.PAGE_LIMIT", 2)
    done = client.executions.execute_query(PROJECT, "conn-456", IN_ITALY_SQL, question=IN_ITALY)
    for number in range(10):
        client.feedback.create(PROJECT, execution_id=done.execution_id, is_positive=number % 2 == 0)
    assert len({each.id for each in client.feedback.list(PROJECT)}) == 10
    assert len(client.feedback.list(PROJECT, skip=3, limit=5)) == 5
    assert len(client.feedback.list_positive(PROJECT)) == len(client.feedback.list_negative(PROJECT)) == 5


def test_many_projects_share_one_store_and_one_model(
    path: Path, loaded: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text2everything, "MAX_OPEN_PROJECTS", 3)
    with Text2EverythingClient(base_url=path, embedding=WordEmbedder()) as client:
        project = client.project("kept")
        project.remember("Ada leads sales.")
        names = [f"project {number}" for number in range(10)]
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda name: client.chat_sessions.create(name, name="talk"), names))
        for name, session in zip(names, made, strict=True):
            assert [each.id for each in client.chat_sessions.list(name)] == [session.id]
        assert client._open is not None
        assert len(client._open._open) <= 3 + 1
        assert project.recall("Who leads sales?").hits, "what was asked for as a whole stays open"
        assert client.project("kept") is project
    assert len(loaded) == 1
