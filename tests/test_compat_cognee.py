"""Coming from cognee: its names and calls, on Heedful."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import heedful.compat.cognee as cognee
from heedful import Heedful, Invalid
from heedful.compat.cognee import SearchType
from heedful.testing import ScriptedModel, WordEmbedder

FACTS = ["Parcels may be returned within 30 days.", "Opened software can not be returned.", "Refunds take two weeks."]
QUESTION = "When may parcels be returned?"

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(params=["sqlite", "mongodb"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    sessions = {} if request.param == "sqlite" else {"sessions": request.getfixturevalue("mongodb_url")}
    return {"embedding": WordEmbedder(), **sessions}


@pytest.fixture
def run(path: Path, options: dict[str, Any]) -> Iterator[Run]:
    """Runs a program on a new store with three facts, and closes what it opened."""

    def running(program: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async def main() -> Any:
            await cognee.configure(path, **options)
            try:
                await cognee.remember(FACTS, self_improvement=False)
                return await program()
            finally:
                await cognee.close()

        return asyncio.run(main())

    yield running
    assert cognee._OPEN == []


def test_the_documented_flow(run: Run) -> None:
    async def program() -> None:
        results = await cognee.recall(
            query_text=QUESTION, query_type=SearchType.GRAPH_COMPLETION, session_id="my_session"
        )
        assert results[0].text == "Parcels may be returned within 30 days. [1]"
        entries = await cognee.session.get_session(session_id="my_session", last_n=5)
        latest = entries[-1]
        assert isinstance(latest, cognee.SessionQAEntry)
        assert (latest.qa_id, latest.question, latest.answer) == (results[0].qa_id, QUESTION, results[0].text)
        assert "[1] Parcels may be returned within 30 days." in latest.context
        assert (latest.feedback_text, latest.feedback_score) == (None, None)
        ok = await cognee.session.add_feedback(
            session_id="my_session",
            qa_id=latest.qa_id,
            feedback_text="Very helpful and accurate",
            feedback_score=5,
        )
        assert ok is True
        done = await cognee.improve(dataset="main_dataset", session_ids=["my_session"])
        assert done.signals_added == 1
        improved = await cognee.recall(
            query_text=QUESTION, query_type=SearchType.GRAPH_COMPLETION, feedback_influence=0.5
        )
        assert improved[0].text == results[0].text
        cleared = await cognee.session.delete_feedback(session_id="my_session", qa_id=latest.qa_id)
        assert cleared is True
        (entry,) = await cognee.session.get_session(session_id="my_session")
        assert (entry.feedback_text, entry.feedback_score) == (None, None)

    run(program)


def test_what_is_not_there_is_false_and_what_is_wrong_is_an_error(run: Run) -> None:
    async def program() -> None:
        assert await cognee.session.add_feedback("nowhere", "some-qa-id", feedback_score=5) is False
        assert await cognee.session.delete_feedback(session_id="nowhere", qa_id="some-qa-id") is False
        assert await cognee.session.get_session("nowhere") == []
        for score in (0, 6, 3.0, True):
            with pytest.raises(Invalid):
                await cognee.session.add_feedback("nowhere", "some-qa-id", feedback_score=score)  # type: ignore[arg-type]
        with pytest.raises(Invalid):
            await cognee.session.add_feedback("nowhere", "some-qa-id")

    run(program)


def test_entries_are_oldest_first_and_the_last_can_be_asked_for(run: Run) -> None:
    async def program() -> None:
        for number in range(4):
            await cognee.recall(f"Parcels {number}?", session_id="s")

        async def questions(last_n: int | None) -> list[str]:
            return [each.question for each in await cognee.session.get_session("s", last_n=last_n)]

        asked = [f"Parcels {number}?" for number in range(4)]
        assert await questions(None) == asked
        assert await questions(2) == asked[2:]
        assert await questions(5_000) == asked
        assert await questions(0) == []

    run(program)


@pytest.mark.parametrize(
    ("name", "mode", "answers"),
    [
        ("GRAPH_COMPLETION", "graph", True),
        ("GRAPH_COMPLETION_COT", "graph", True),
        ("GRAPH_SUMMARY_COMPLETION", "graph", True),
        ("TRIPLET_COMPLETION", "graph", True),
        ("RAG_COMPLETION", "hybrid", True),
        ("FEELING_LUCKY", "hybrid", True),
        ("SUMMARIES", "hybrid", True),
        ("CHUNKS", "semantic", False),
        ("CHUNKS_LEXICAL", "lexical", False),
    ],
)
def test_kinds_of_search_are_modes(name: str, mode: str, answers: bool) -> None:
    kind = SearchType[name]
    assert (kind, kind.value, kind.mode, kind.answers) == (SearchType(name), name, mode, answers)


@pytest.mark.parametrize("name", ["CYPHER", "NATURAL_LANGUAGE", "CODING_RULES", "NOTHING", "", None])
def test_a_search_that_has_no_like_here_is_refused(run: Run, name: Any) -> None:
    async def program() -> None:
        with pytest.raises(Invalid) as error:
            await cognee.recall(QUESTION, name, session_id="s")
        assert error.value.field == "query_type"
        assert await cognee.session.get_session("s") == []

    run(program)


def test_chunks_are_texts_and_need_no_language_model(run: Run, options: dict[str, Any]) -> None:
    options["language_model"] = model = ScriptedModel(["Within 30 days [1]."])

    async def program() -> None:
        chunks = await cognee.recall(QUESTION, SearchType.CHUNKS, top_k=2)
        assert [each.text for each in chunks] == [*FACTS[:1], chunks[1].text]
        assert all(each.fact_id and each.score is not None and each.qa_id is None for each in chunks)
        assert model.prompts == []
        (answer,) = await cognee.recall(QUESTION, SearchType.RAG_COMPLETION)
        assert (answer.text, answer.fact_id) == ("Within 30 days [1].", None)

    run(program)


def test_chunks_in_a_session_are_an_entry_too(run: Run) -> None:
    async def program() -> None:
        chunks = await cognee.recall(QUESTION, "CHUNKS_LEXICAL", session_id="s")  # type: ignore[arg-type]
        (entry,) = await cognee.session.get_session("s")
        assert {each.qa_id for each in chunks} == {entry.qa_id}

    run(program)


def test_a_user_has_a_memory_of_its_own(run: Run) -> None:
    async def program() -> None:
        ann, bo = SimpleNamespace(id="ann"), "bo"
        await cognee.remember("Ann likes tea.", user=ann, self_improvement=False)
        await cognee.remember("Bo likes rum.", user=bo, self_improvement=False)
        (answer,) = await cognee.recall("Who likes tea?", session_id="s", user=ann)
        assert answer.text == "Ann likes tea. [1]"
        assert len(await cognee.session.get_session("s", user=ann)) == 1
        assert await cognee.session.get_session("s", user=bo) == []
        assert await cognee.session.get_session("s") == []
        assert answer.qa_id is not None
        assert await cognee.session.add_feedback("s", answer.qa_id, None, 5, user=bo) is False
        assert await cognee.session.add_feedback("s", answer.qa_id, None, 5, user="ann") is True
        assert (await cognee.improve(user=bo)).changed is False
        assert (await cognee.improve(session_ids=["s"], user=ann)).changed is True
        for nobody in ("", " "):
            with pytest.raises(Invalid):
                await cognee.recall("Who likes tea?", user=nobody)

    run(program)


def test_tasks_that_begin_at_once_share_one_store(run: Run) -> None:
    async def program() -> None:
        await cognee.close()
        await asyncio.gather(*(cognee.recall(QUESTION, session_id=f"s{number}") for number in range(5)))
        assert len(cognee._OPEN) == 1
        for number in range(5):
            assert len(await cognee.session.get_session(f"s{number}")) == 1

    run(program)


def test_remembering_improves_in_the_background_as_documented(
    run: Run, open_store: Callable[..., Heedful], options: dict[str, Any]
) -> None:
    async def program() -> str:
        (answer,) = await cognee.recall(QUESTION, SearchType.RAG_COMPLETION, session_id="s")
        assert answer.qa_id is not None
        await cognee.session.add_feedback("s", answer.qa_id, feedback_score=5)
        await cognee.remember("Parcels are weighed.", session_id="s")
        return answer.recall_id

    recall_id = run(program)
    store = open_store(**options)
    first = store.receipt(recall_id).shown[0].fact_id
    assert store.fact_stats(first).signal_breakdown["helpful"] == 1
    (hit,) = store.recall("Parcels weighed", where={"session_id": "s"})
    assert hit.text == "Parcels are weighed."


def test_one_dataset_at_a_time(run: Run) -> None:
    async def program() -> None:
        await cognee.remember("Parcels may be returned within 7 days.", "other", self_improvement=False)
        for named in ("other", ["other"]):
            (answer,) = await cognee.recall(QUESTION, datasets=named)
            assert "7 days" in answer.text
        with pytest.raises(Invalid, match="2 names"):
            await cognee.recall(QUESTION, datasets=["other", "main_dataset"])

    run(program)


def test_every_documented_name_is_there_with_its_parameters() -> None:
    for name in cognee.__all__:
        assert hasattr(cognee, name)
    documented = {
        cognee.recall: ["query_text", "query_type", "session_id", "feedback_influence"],
        cognee.improve: ["dataset", "session_ids"],
        cognee.remember: ["self_improvement"],
        cognee.session.get_session: ["session_id", "last_n", "user"],
        cognee.session.add_feedback: ["session_id", "qa_id", "feedback_text", "feedback_score", "user"],
        cognee.session.delete_feedback: ["session_id", "qa_id", "user"],
    }
    for call, parameters in documented.items():
        assert inspect.iscoroutinefunction(call)
        assert set(parameters) <= set(inspect.signature(call).parameters)
    fields = {"qa_id", "question", "answer", "context", "time", "feedback_text", "feedback_score"}
    assert fields <= set(cognee.SessionQAEntry.model_fields)


def test_the_settings_name_the_store_where_nobody_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_STORE", str(tmp_path / "named.db"))

    async def program() -> None:
        await cognee.configure(embedding=WordEmbedder())
        await cognee.remember(FACTS, self_improvement=False)
        await cognee.close()

    asyncio.run(program())
    assert (tmp_path / "named.db").exists()


@pytest.mark.slow
def test_many_users_share_one_store_and_one_model(
    run: Run, loaded: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user costs what is in memory of their facts, and that only while they are among the last that came."""
    monkeypatch.setattr(cognee, "MAX_OPEN_USERS", 4)

    async def program() -> None:
        await cognee.close()
        users = [f"user {number}" for number in range(12)]
        await asyncio.gather(*(cognee.remember(f"{user} likes tea.", user=user) for user in users))
        for user in (*users, users[0]):
            (answer,) = await cognee.recall("Who likes tea?", SearchType.CHUNKS, user=user)
            assert answer.text == f"{user} likes tea."
        (opened,) = cognee._OPEN
        assert len(opened.store._open) <= 4

    run(program)
    assert len(loaded) == 2, "once for the fixture's facts, and once for all users"
