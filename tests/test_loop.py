"""The loop closes by itself: whoever rates, by whatever surface, the next recall follows, and follows a retraction."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import wires
from closed_loop import AT_SEVEN, AT_SIX, AUTHORS, QUESTION, Memory, ask, check_closes, recalled
from command import run_main
from dashboards import forms, send
from mcp import Client
from patience import SOON, until
from server import KEY, running
from starlette.testclient import TestClient

import heedful
from heedful import Heedful
from heedful.interfaces.dashboard.app import create
from heedful.interfaces.mcp.serving import server_of
from heedful.jobs import worker
from heedful.jobs.kinds import NEW_FEEDBACK
from heedful.store import Store, worker_of
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")


@pytest.fixture(autouse=True)
def automatic(no_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default, with less to wait for."""
    monkeypatch.delenv("HEEDFUL_AUTO_IMPROVE")
    monkeypatch.setattr(worker, "FEEDBACK_SECONDS", 0.05)


@pytest.fixture(params=["sqlite", "postgresql", "mongodb"])
def where(request: pytest.FixtureRequest, tmp_path: Any) -> dict[str, Any]:
    """A store of each kind, as the options of `open`."""
    if request.param == "postgresql":
        return {"url_or_path": request.getfixturevalue("empty_database")}
    sessions = request.getfixturevalue("mongodb_url") if request.param == "mongodb" else None
    return {"url_or_path": str(tmp_path / "store.db"), "sessions": sessions}


def open_at(where: dict[str, Any], **options: Any) -> Heedful:
    return heedful.open(**where, **{"embedding": WordEmbedder(), **options})


@contextmanager
def served(where: dict[str, Any], **options: Any) -> Iterator[Memory]:
    with running(where["url_or_path"], sessions=where.get("sessions"), **options) as server, server.connect() as remote:
        yield remote


def check_sessions(memory: Memory, session_id: str = "chat", dataset: str = "main_dataset") -> None:
    qa_id = ask(memory, session_id, dataset)
    check_closes(
        memory,
        lambda author: memory.sessions.add_feedback(session_id, qa_id, feedback_score=1, author=author),
        lambda author: memory.sessions.delete_feedback(session_id, qa_id, author=author),
        dataset,
    )


def processed(memory: Memory) -> list[str]:
    """The states of the jobs that new feedback led to, the newest first."""
    return [job.status for job in memory.jobs.list(kind="improve").items if job.arguments == NEW_FEEDBACK]


def has_processed(memory: Memory, jobs: int) -> bool:
    return processed(memory) == ["done"] * jobs


def test_in_a_program(where: dict[str, Any]) -> None:
    with open_at(where) as memory:
        check_sessions(memory)


def test_on_a_server(where: dict[str, Any]) -> None:
    with served(where) as memory:
        check_sessions(memory)
        until(lambda: set(processed(memory)) == {"done"})


def test_in_another_dataset_than_the_default(where: dict[str, Any]) -> None:
    with open_at(where) as memory:
        check_sessions(memory, "handbook", "handbook")


def test_ratings_of_a_whole_session(where: dict[str, Any]) -> None:
    with open_at(where) as memory:
        ask(memory)
        given: dict[str, str] = {}

        def rate(author: str) -> None:
            stored = memory.sessions.add_session_feedback("chat", {"rating": "down"}, author=author)
            assert stored is not None
            given[author] = stored.feedback_id

        check_closes(memory, rate, lambda author: memory.retract(given[author]))


def test_ratings_that_waited_for_their_answer(where: dict[str, Any]) -> None:
    with open_at(where) as memory:
        memory.remember([AT_SIX, AT_SEVEN])
        for author in AUTHORS:
            assert not memory.sessions.rate("run-1", "down", author=author)
        recall = memory.recall(QUESTION)
        memory.sessions.add_entry("chat", QUESTION, AT_SIX, recall_id=recall.recall_id, external_id="run-1")
        until(lambda: recalled(memory) == [AT_SEVEN, AT_SIX])


@pytest.mark.parametrize("score", [1, None])
def test_authors_of_different_sessions_teach_a_fact_together(where: dict[str, Any], score: int | None) -> None:
    with open_at(where) as memory:
        answers = {author: ask(memory, f"chat-{author}") for author in AUTHORS[:2]}
        scores = dict(zip(AUTHORS, (1, score), strict=False))
        for count, (author, qa_id) in enumerate(answers.items(), start=1):
            words = "No, the gym opens at eight."
            memory.sessions.add_feedback(f"chat-{author}", qa_id, words, scores[author], author=author)
            until(partial(has_processed, memory, count))
        assert any("eight" in fact.text for fact in memory.facts().items)


def test_those_who_like_the_same_answer_in_different_sessions_teach_it_together(where: dict[str, Any]) -> None:
    with open_at(where) as memory:
        memory.remember([AT_SIX, AT_SEVEN])
        answer = "At six on weekdays, so you can be there before work."
        for count, author in enumerate(AUTHORS[:2], start=1):
            facts = memory.recall(QUESTION)
            used = [hit.fact_id for hit in facts if hit.text == AT_SIX]
            memory.sessions.add_entry(
                f"chat-{author}", QUESTION, answer, recall_id=facts.recall_id, used=used, external_id=author
            )
            memory.sessions.rate(author, "up", author=author)
            until(partial(has_processed, memory, count))
            assert any(answer in fact.text for fact in memory.facts().items) == (count == 2)


def test_with_asyncio(where: dict[str, Any]) -> None:
    async def check() -> None:
        async with await heedful.aopen(**where, embedding=WordEmbedder()) as memory:
            await memory.remember([AT_SIX, AT_SEVEN])
            recall = await memory.recall(QUESTION)
            entry = await memory.sessions.add_entry("chat", QUESTION, AT_SIX, recall_id=recall.recall_id)

            async def follows(expected: list[str]) -> None:
                async with asyncio.timeout(SOON):
                    while [hit.text for hit in await memory.recall(QUESTION)] != expected:
                        await asyncio.sleep(0.01)

            for author in AUTHORS:
                await memory.sessions.add_feedback("chat", entry.qa_id, feedback_score=1, author=author)
            await follows([AT_SEVEN, AT_SIX])
            for author in AUTHORS:
                await memory.sessions.delete_feedback("chat", entry.qa_id, author=author)
            await follows([AT_SIX, AT_SEVEN])

    asyncio.run(check())


def test_what_is_closed_right_after_a_rating_has_learnt_from_it(
    where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FEEDBACK_SECONDS", 3600.0)
    with open_at(where) as memory:
        rate_down(memory)
    with open_at(where, worker=False) as memory:
        assert recalled(memory) == [AT_SEVEN, AT_SIX]
        assert processed(memory) == ["done"]


def rate_down(memory: Memory) -> str:
    qa_id = ask(memory)
    for author in AUTHORS:
        memory.sessions.add_feedback("chat", qa_id, feedback_score=1, author=author)
    return qa_id


PROGRAM = """
import os, sys
sys.path[:0] = {path!r}
import heedful
from closed_loop import ask, AUTHORS
from heedful.testing import WordEmbedder

memory = heedful.open(*sys.argv[1:2], sessions=sys.argv[2] or None, embedding=WordEmbedder())
qa_id = ask(memory)
for author in AUTHORS:
    memory.sessions.add_feedback("chat", qa_id, feedback_score=1, author=author)
{end}
"""


def run_program(where: dict[str, Any], end: str = "") -> None:
    program = PROGRAM.format(path=[path for path in sys.path if "tests" in path], end=end)
    arguments = [str(where["url_or_path"]), where.get("sessions") or ""]
    subprocess.run([sys.executable, "-c", program, *arguments], timeout=SOON, check=not end)


def test_a_script_that_rates_and_ends_without_closing_has_learnt_from_it(where: dict[str, Any]) -> None:
    run_program(where)
    with open_at(where, worker=False) as memory:
        assert recalled(memory) == [AT_SEVEN, AT_SIX]


def test_a_worker_learns_from_ratings_whose_process_was_killed(where: dict[str, Any]) -> None:
    run_program(where, end="os.kill(os.getpid(), 9)")
    with open_at(where, worker=False) as memory:
        assert recalled(memory) == [AT_SIX, AT_SEVEN]
    store = Store(**where, embedding=WordEmbedder())
    worker_of(store).drain()
    store.close()
    with open_at(where, worker=False) as memory:
        assert recalled(memory) == [AT_SEVEN, AT_SIX]


def test_so_does_the_next_program_that_opens_the_store(any_store: str) -> None:
    run_program({"url_or_path": any_store}, end="os.kill(os.getpid(), 9)")
    with heedful.open(any_store, embedding=WordEmbedder()) as memory:
        until(lambda: recalled(memory) == [AT_SEVEN, AT_SIX])


def test_without_a_worker_it_is_left_to_others(where: dict[str, Any]) -> None:
    with open_at(where, worker=False) as memory:
        rate_down(memory)
        assert processed(memory) == []
    with open_at(where, worker=False) as memory:
        assert recalled(memory) == [AT_SIX, AT_SEVEN]
    with served(where) as remote:
        until(lambda: recalled(remote) == [AT_SEVEN, AT_SIX])


def test_it_can_be_turned_off(where: dict[str, Any]) -> None:
    with open_at(where, auto_improve=False) as memory:
        rate_down(memory)
    with open_at(where, auto_improve=False) as memory:
        assert recalled(memory) == [AT_SIX, AT_SEVEN]
        assert memory.jobs.list().items == []
        assert memory.improve().signals_added == 3
        assert recalled(memory) == [AT_SEVEN, AT_SIX]
    with pytest.raises(heedful.Invalid) as error:
        open_at(where, auto_improve="no")
    assert error.value.field == "auto_improve"


@pytest.mark.parametrize("dataset", [None, "main_dataset"])
def test_a_call_leaves_no_job_behind(
    where: dict[str, Any], dataset: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FEEDBACK_SECONDS", 3600.0)
    with open_at(where) as memory:
        rate_down(memory)
        assert memory.improve(dataset, session_ids=["chat"]).signals_added == 3
    with open_at(where, worker=False) as memory:
        assert memory.jobs.list().items == []


def test_a_call_for_one_dataset_leaves_the_others_to_the_job(where: dict[str, Any]) -> None:
    with open_at(where, worker=False) as memory:
        rate_down(memory)
        qa_id = ask(memory, dataset="other")
        for author in AUTHORS:
            memory.sessions.add_feedback("chat", qa_id, feedback_score=1, author=author)
        assert memory.improve("other").signals_added == 3
    with served(where) as remote:
        until(lambda: recalled(remote) == [AT_SEVEN, AT_SIX])


def test_many_ratings_share_a_run(where: dict[str, Any]) -> None:
    with served(where) as memory:
        answers = [(f"chat-{number}", ask(memory, f"chat-{number}")) for number in range(10)]
        for author in (f"author {number}" for number in range(10)):
            for session_id, qa_id in answers:
                memory.sessions.add_feedback(session_id, qa_id, feedback_score=1, author=author)
        until(lambda: memory.improve().changed is False and recalled(memory) == [AT_SEVEN, AT_SIX])
        # One every two seconds, however slow the machine is.
        assert len(processed(memory)) < 50


def test_from_the_command_line(tmp_path: Any) -> None:
    path = str(tmp_path / "store.db")
    with heedful.open(path, worker=False) as memory:
        qa_id = ask(memory)

        def run(command: str, author: str, *options: str) -> None:
            done = run_main("--store", path, "sessions", command, "chat", qa_id, "--author", author, *options)
            assert done.returncode == 0, done.stderr

        check_closes(
            memory,
            lambda author: run("add-feedback", author, "--feedback-score", "1"),
            lambda author: run("remove-feedback", author),
        )


def test_by_an_agent(where: dict[str, Any]) -> None:
    async def call(tool: str, **arguments: Any) -> None:
        async with (
            await heedful.aopen(**where, embedding=WordEmbedder()) as store,
            Client(server_of(store, "1", "all")) as client,
        ):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error

    with open_at(where, worker=False) as memory:
        qa_id = ask(memory)

        def rate(author: str) -> None:
            about = {"session_id": "chat", "qa_id": qa_id, "author": author}
            asyncio.run(call("feedback", **about, feedback_score=1))

        def retract(author: str) -> None:
            (given,) = [
                opinion.event_id
                for item in memory.review.list().items
                for opinion in memory.review.get(item.item_id).opinions
                if opinion.author == author
            ]
            asyncio.run(call("retract", event_id=given))

        check_closes(memory, rate, retract)


def test_on_the_dashboard(where: dict[str, Any]) -> None:
    store = Store(**where, embedding=WordEmbedder(), background_jobs=True)
    with TestClient(create(store, admin_key=KEY), base_url="http://dashboard.test", follow_redirects=False) as client:
        client.post("/login", data={"api_key": KEY, "name": "Ada"})
        with open_at(where, worker=False) as memory:
            rate_down(memory)
            memory.improve()
            assert recalled(memory) == [AT_SEVEN, AT_SIX]
            (item,) = memory.review.list().items

            def press(action: str, fix: str | None = None) -> None:
                page = client.get(f"/p/default/review/{item.item_id}").text
                send(client, next(form for form in forms(page, action) if form.get("fix") == fix))

            for _ in AUTHORS:
                press("review_fix", "retract")
            until(lambda: recalled(memory) == [AT_SIX, AT_SEVEN])
            for _ in AUTHORS:
                press("review_undo")
            until(lambda: recalled(memory) == [AT_SEVEN, AT_SIX])


@pytest.mark.slow
def test_by_the_routes_of_other_systems(where: dict[str, Any]) -> None:
    """Whom they trust is another question: here, that their feedback is processed."""
    with running(where["url_or_path"], sessions=where.get("sessions")) as server, server.connect() as memory:
        qa_id = ask(memory)
        with wires.client(server.url) as http:
            calls: list[tuple[str, str, dict[str, Any]]] = [
                ("post", f"/api/v1/sessions/chat/entries/{qa_id}/feedback", {"json": {"feedback_score": 1}}),
                ("post", "/api/sessions/chat/feedback", {"json": {"rating": "down", "comment": "No."}}),
                ("delete", f"/api/v1/sessions/chat/entries/{qa_id}/feedback", {}),
            ]
            for count, (method, path, body) in enumerate(calls, start=1):
                assert getattr(http, method)(path, **body).status_code == 200, path
                until(partial(has_processed, memory, count))
