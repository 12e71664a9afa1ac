"""The agent memory for Vanna 2, with its own agent and tools, and a scripted model."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from edge_cases import LOG, EdgeCases, meaningless
from loop import ANSWER, SESSION, Asked, Memory, check_warned, opened, run_examples, warnings
from vanna.core.agent import Agent
from vanna.core.llm import LlmRequest, LlmResponse, LlmService, LlmStreamChunk
from vanna.core.registry import ToolRegistry
from vanna.core.tool import ToolCall, ToolContext
from vanna.core.user import RequestContext, User, UserResolver
from vanna.integrations.sqlite import SqliteRunner
from vanna.tools import RunSqlTool
from vanna.tools.agent_memory import SaveQuestionToolArgsTool, SearchSavedCorrectToolUsesTool

from heedful import HeedfulError, Invalid, NotFound, Unavailable
from heedful.integrations import turns
from heedful.integrations.vanna import CorrectSqlTool, HeedfulAgentMemory

IN_FRANCE = "How many cities are in France?"
WRONG_SQL = "SELECT count(*) FROM city"


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    # Vanna's tool writes its results to the working directory.
    monkeypatch.chdir(tmp_path)
    with opened(request.param, tmp_path) as memory:
        memory.connectors.create("geo", make_cities(tmp_path).url)
        yield memory


class Visitor(UserResolver):
    """Everybody is the same."""

    async def resolve_user(self, request_context: RequestContext) -> User:
        return User(id="ada", group_memberships=["user"])


class Scripted(LlmService):
    """Looks a question up, runs what was found or what it knows itself, saves that, and answers."""

    def __init__(self) -> None:
        self.written = 0
        """How often it wrote SQL itself."""

    async def send_request(self, request: LlmRequest) -> LlmResponse:
        question = next(each.content for each in request.messages if each.role == "user")
        done = [each for each in request.messages if each.role == "tool"]
        if not done:
            return _call("search_saved_correct_tool_uses", question=question)
        if len(done) == 1:
            found = done[0].content.partition("Args: {'sql': \"")[2].partition('"}')[0]
            self.written += not found
            self._sql = found or IN_ITALY_SQL
            return _call("run_sql", sql=self._sql)
        if len(done) == 2:
            return _call("save_question_tool_args", question=question, tool_name="run_sql", args={"sql": self._sql})
        return LlmResponse(content="There are two.", finish_reason="stop")

    async def stream_request(self, request: LlmRequest) -> AsyncGenerator[LlmStreamChunk, None]:
        answer = await self.send_request(request)
        yield LlmStreamChunk(content=answer.content, tool_calls=answer.tool_calls, finish_reason=answer.finish_reason)

    async def validate_tools(self, tools: list[Any]) -> list[str]:
        return []


def _call(name: str, **arguments: Any) -> LlmResponse:
    return LlmResponse(
        tool_calls=[ToolCall(id=str(uuid4()), name=name, arguments=arguments)], finish_reason="tool_calls"
    )


def context(saved: HeedfulAgentMemory, request_id: str = "request-1", user: str = "ada") -> ToolContext:
    return ToolContext(user=User(id=user), conversation_id="chat-1", request_id=request_id, agent_memory=saved)


def look(saved: HeedfulAgentMemory, question: str) -> list[str]:
    found = asyncio.run(saved.search_similar_usage(question, context(saved)))
    return [each.memory.args["sql"] for each in found]


def save(saved: HeedfulAgentMemory, question: str, sql: str, request_id: str = "request-1") -> None:
    asyncio.run(saved.save_tool_usage(question, "run_sql", {"sql": sql}, context(saved, request_id)))


def test_sql_is_found_once_it_is_proven_and_no_more_when_that_is_retracted(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    save(saved, IN_ITALY, IN_ITALY_SQL)
    assert look(saved, IN_ITALY) == []
    rated = memory.feedback.create_positive(execution_id="request-1", author="ada")
    assert look(saved, IN_ITALY) == [IN_ITALY_SQL]
    # Another country: with its name in place, or not at all.
    assert look(saved, IN_FRANCE) in ([], [IN_ITALY_SQL.replace("Italy", "France")])
    memory.feedback.delete(rated.id)
    assert look(saved, IN_ITALY) == []


def test_what_one_user_saved_is_found_for_others_where_they_share_an_audience(memory: Memory) -> None:
    for saved, request, found in (
        (HeedfulAgentMemory(memory, "geo"), "request-1", 0),
        (HeedfulAgentMemory(memory, "geo", audience=lambda user: "staff"), "request-2", 1),
    ):
        save(saved, IN_ITALY, IN_ITALY_SQL, request)
        memory.feedback.create_positive(execution_id=request, author="ada")
        assert look(saved, IN_ITALY) == [IN_ITALY_SQL]
        other = context(saved, user="bo")
        assert len(asyncio.run(saved.search_similar_usage(IN_ITALY, other))) == found
        assert len(asyncio.run(saved.get_recent_memories(other))) >= found


def tools(folder: Path) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in (
        RunSqlTool(SqliteRunner(str(folder / "cities.db"))),
        SearchSavedCorrectToolUsesTool(),
        SaveQuestionToolArgsTool(),
    ):
        registry.register_local_tool(tool, access_groups=["user"])
    return registry


def test_an_agent_uses_what_was_proven_instead_of_writing_it_again(memory: Memory, tmp_path: Path) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    model = Scripted()
    agent = Agent(llm_service=model, tool_registry=tools(tmp_path), user_resolver=Visitor(), agent_memory=saved)

    async def ask() -> str:
        parts = [part async for part in agent.send_message(RequestContext(), IN_ITALY)]
        return str([part.simple_component for part in parts])

    assert "There are two." in asyncio.run(ask())
    assert "There are two." in asyncio.run(ask())
    assert model.written == 2
    recent = asyncio.run(saved.get_recent_memories(context(saved)))
    assert recent[0].args == {"sql": IN_ITALY_SQL}
    memory.feedback.create_positive(execution_id=str(recent[0].memory_id), author="ada")
    asyncio.run(ask())
    assert model.written == 2


def test_a_correction_is_found_instead_of_what_was_wrong(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    save(saved, IN_ITALY, WRONG_SQL)
    memory.feedback.create_positive(execution_id="request-1", author="ada")
    assert look(saved, IN_ITALY) == [WRONG_SQL]
    for _ in range(2):
        right = asyncio.run(saved.correct(context(saved), "request-1", IN_ITALY_SQL, "All countries are counted."))
        assert (right.question, right.args) == (IN_ITALY, {"sql": IN_ITALY_SQL})
        assert look(saved, IN_ITALY) == [IN_ITALY_SQL]
    (wrong,) = memory.feedback.list_negative().items
    assert (wrong.author, wrong.feedback) == ("ada", "All countries are counted.")


def test_nobody_corrects_what_is_anothers_or_with_sql_that_fails(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    save(saved, IN_ITALY, WRONG_SQL)
    with pytest.raises(NotFound, match="no memory 'request-1'"):
        asyncio.run(saved.correct(context(saved, user="bo"), "request-1", IN_ITALY_SQL))
    with pytest.raises(Invalid, match="the SQL that was wrong"):
        asyncio.run(saved.correct(context(saved), "request-1", f"{WRONG_SQL} "))
    with pytest.raises(HeedfulError, match="nothing"):
        asyncio.run(saved.correct(context(saved), "request-1", "SELECT nothing"))
    assert memory.feedback.list().items == []


def test_an_agent_corrects_what_its_user_calls_wrong(memory: Memory, tmp_path: Path) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    save(saved, IN_ITALY, WRONG_SQL)

    class Corrects(Scripted):
        async def send_request(self, request: LlmRequest) -> LlmResponse:
            told = [each.content for each in request.messages if each.role == "tool"]
            if len(told) == 2:
                return LlmResponse(content="\n".join(told), finish_reason="stop")
            return _call("correct_saved_sql", wrong_sql=(WRONG_SQL, "SELECT 1")[len(told)], sql=IN_ITALY_SQL)

    registry = tools(tmp_path)
    registry.register_local_tool(CorrectSqlTool(saved), access_groups=["user"])
    agent = Agent(llm_service=Corrects(), tool_registry=registry, user_resolver=Visitor(), agent_memory=saved)

    async def ask() -> str:
        parts = [part async for part in agent.send_message(RequestContext(), "Wrong: only count those in Italy.")]
        return str([part.simple_component for part in parts])

    said = asyncio.run(ask())
    assert "Corrected" in said
    assert "is not saved" in said
    assert look(saved, IN_ITALY) == [IN_ITALY_SQL]


def test_what_cant_be_proven_is_not_saved(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    here = context(saved)
    asyncio.run(saved.save_tool_usage("Draw it.", "visualize_data", {"filename": "a.csv"}, here))
    asyncio.run(saved.save_tool_usage(IN_ITALY, "run_sql", {"sql": "SELECT nothing"}, here, success=False))
    assert asyncio.run(saved.get_recent_memories(here)) == []
    assert asyncio.run(saved.search_similar_usage("Draw it.", here, tool_name_filter="visualize_data")) == []


def test_two_queries_of_one_request_and_requests_at_the_same_time(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    save(saved, IN_ITALY, IN_ITALY_SQL)
    save(saved, "How many cities are there?", "SELECT count(*) FROM city")

    async def many() -> None:
        await asyncio.gather(
            *(
                saved.save_tool_usage(
                    f"Which city has the id {n}?",
                    "run_sql",
                    {"sql": f"SELECT name FROM city WHERE id = {n}"},
                    context(saved, f"r-{n}"),
                )
                for n in range(1, 5)
            )
        )

    asyncio.run(many())
    found = {each.question: each.args["sql"] for each in asyncio.run(saved.get_recent_memories(context(saved)))}
    assert len(found) == 6
    for number in range(1, 5):
        assert found[f"Which city has the id {number}?"].endswith(f"= {number}")
        assert memory.executions.get(f"r-{number}").question == f"Which city has the id {number}?"


def test_memories_are_deleted(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    here = context(saved)

    async def run() -> None:
        assert await saved.get_recent_text_memories(here) == []
        text = await saved.save_text_memory("A city is big from a million people on.", here)
        other = await saved.save_text_memory("Countries are in English.", here)
        found = await saved.search_text_memories("When is a city big?", here)
        assert found[0].memory.memory_id == text.memory_id
        assert [each.memory_id for each in await saved.get_recent_text_memories(here, 1)] == [other.memory_id]
        assert await saved.delete_text_memory(here, str(text.memory_id))
        assert not await saved.delete_text_memory(here, str(text.memory_id))
        await saved.save_tool_usage(IN_ITALY, "run_sql", {"sql": IN_ITALY_SQL}, here)
        key = str((await saved.get_recent_memories(here))[0].memory_id)
        assert await saved.delete_by_id(here, key)
        assert not await saved.delete_by_id(here, key)
        await saved.save_tool_usage(IN_ITALY, "run_sql", {"sql": IN_ITALY_SQL}, context(saved, "request-2"))
        assert await saved.clear_memories(here, before_date="2020-01-01") == 0
        assert await saved.clear_memories(here, tool_name="run_sql") == 1
        assert await saved.clear_memories(here) == 1

    asyncio.run(run())


def test_texts_are_found_and_deleted_for_their_user_alone(memory: Memory) -> None:
    memory.remember("Cities are in the table city.", dataset="vanna")

    async def run(saved: HeedfulAgentMemory, user: str) -> list[str]:
        here = context(saved, user=user)
        found = await saved.search_text_memories("Which cities are big?", here)
        recent = await saved.get_recent_text_memories(here)
        assert sorted(each.memory.content for each in found) == sorted(each.content for each in recent)
        return sorted(each.content for each in recent)

    own, shared = HeedfulAgentMemory(memory, "geo"), HeedfulAgentMemory(memory, "geo", audience="staff")
    for_all = HeedfulAgentMemory(memory, "geo", audience=None)
    for saved, whose in ((own, "Ada"), (shared, "staff"), (for_all, "all")):
        asyncio.run(saved.save_text_memory(f"Big cities of {whose}.", context(saved)))
    everybody = ["Big cities of all.", "Cities are in the table city."]
    assert asyncio.run(run(own, "ada")) == ["Big cities of Ada.", *everybody]
    assert asyncio.run(run(own, "bo")) == everybody
    assert asyncio.run(run(shared, "bo")) == ["Big cities of all.", "Big cities of staff.", everybody[1]]
    texts = {fact.text: fact.fact_id for fact in memory.facts(dataset="vanna").items}
    bo = context(own, user="bo")
    assert not asyncio.run(own.delete_text_memory(bo, texts["Big cities of Ada."]))
    assert asyncio.run(own.clear_memories(bo)) == 2
    assert asyncio.run(run(own, "ada")) == ["Big cities of Ada."]


def test_saved_sql_is_deleted_for_its_user_alone(memory: Memory) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    save(saved, IN_ITALY, IN_ITALY_SQL)
    (own,) = asyncio.run(saved.get_recent_memories(context(saved)))
    bo = context(saved, user="bo")
    assert not asyncio.run(saved.delete_by_id(bo, str(own.memory_id)))
    assert asyncio.run(saved.clear_memories(bo)) == 0
    assert asyncio.run(saved.delete_by_id(context(saved), str(own.memory_id)))


def test_the_dataset_and_the_author_may_be_those_of_a_user(memory: Memory) -> None:
    saved = HeedfulAgentMemory(
        memory, "geo", dataset=lambda user: f"of-{user.id}", author=lambda user: f"{user.id}@example.com"
    )
    asyncio.run(saved.save_text_memory("A city is big from a million people on.", context(saved)))
    assert [fact.text for fact in memory.facts(dataset="of-ada").items] == ["A city is big from a million people on."]
    save(saved, IN_ITALY, WRONG_SQL)
    asyncio.run(saved.correct(context(saved), "request-1", IN_ITALY_SQL))
    assert {each.author for each in memory.feedback.list().items} == {"ada@example.com"}


def test_searches_find_nothing_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    saved = HeedfulAgentMemory(failing)
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            assert look(saved, IN_ITALY) == []
            assert asyncio.run(saved.search_text_memories("Why?", context(saved))) == []
    check_warned(caplog)


def test_saving_says_so_when_heedful_fails(failing: Any) -> None:
    saved = HeedfulAgentMemory(failing)
    with pytest.raises(Unavailable):
        save(saved, IN_ITALY, IN_ITALY_SQL)
    with pytest.raises(Unavailable):
        asyncio.run(saved.get_recent_memories(context(saved)))


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_cities(tmp_path)
    given: dict[str, Any] = {"model": Scripted(), "user_resolver": Visitor(), "registry": ToolRegistry()}
    run_examples("vanna", given)
    given["memory"].close()


def test_a_search_before_anything_was_saved_is_no_failure(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    saved = HeedfulAgentMemory(memory, "geo")
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        assert asyncio.run(saved.search_text_memories("When is a city big?", context(saved))) == []
    assert caplog.records == []


def test_an_application_rates_by_its_own_id(memory: Memory, tmp_path: Path) -> None:
    saved = HeedfulAgentMemory(memory, "geo", external_id=lambda user: user.metadata.get("message_id"))

    class Resolver(UserResolver):
        async def resolve_user(self, request_context: RequestContext) -> User:
            return User(id="ada", group_memberships=["user"], metadata={"message_id": request_context.headers["x-id"]})

    async def ask() -> None:
        agent = Agent(
            llm_service=Scripted(), tool_registry=tools(tmp_path), user_resolver=Resolver(), agent_memory=saved
        )
        async for _ in agent.send_message(RequestContext(headers={"x-id": "message-1"}), IN_ITALY):
            pass

    asyncio.run(ask())
    memory.feedback.create_positive(execution_id="message-1", author="ada")
    assert look(saved, IN_ITALY) == [IN_ITALY_SQL]


class TestEdgeCases(EdgeCases):
    """Of the agent memory, which sees questions but no answers."""

    @pytest.fixture
    def memory(self, patient: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
        monkeypatch.chdir(tmp_path)
        with opened("open", tmp_path) as memory:
            memory.connectors.create("geo", make_cities(tmp_path).url)
            yield memory

    def ask(
        self, memory: Any, question: str = IN_ITALY, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        """Whether Vanna's agent answers, and with which memories of its own."""
        saved = HeedfulAgentMemory(memory, "geo", **options)
        here = context(saved, session, user)
        found = asyncio.run(saved.search_similar_usage(question, here))
        texts = asyncio.run(saved.search_text_memories(question, here))
        return Asked(
            str([each.memory.args for each in found] + [each.memory.content for each in texts]), session, ANSWER
        )

    def test_locked(
        self, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
    ) -> None:
        save(HeedfulAgentMemory(memory, "geo"), IN_ITALY, IN_ITALY_SQL)
        monkeypatch.setattr(turns, "DEADLINE", 0.2)
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert self.ask(memory).prompt == "[]"
            other.execute("ROLLBACK")

    def test_long(self, memory: Memory, log: pytest.LogCaptureFixture) -> None:
        assert self.ask(memory, f"{IN_ITALY}\n{LOG}").prompt == "[]"
        save(HeedfulAgentMemory(memory, "geo"), f"{IN_ITALY}\n{LOG}", IN_ITALY_SQL)
        assert memory.executions.get("request-1").question
        assert warnings(log) == []

    def test_empty(self, memory: Memory, log: pytest.LogCaptureFixture) -> None:
        assert self.ask(memory, "").prompt == "[]"
        assert warnings(log) == []

    def test_parallel(self, memory: Memory) -> None:
        meaningless("above, requests at the same time are saved: Vanna's memory has one call for each")

    def test_two_users_at_once(self, memory: Memory) -> None:
        saved = HeedfulAgentMemory(memory, "geo")
        save(saved, IN_ITALY, IN_ITALY_SQL)
        memory.feedback.create_positive(execution_id="request-1", author="ada")

        def one(number: int) -> tuple[str, Asked]:
            user = ("ada", "bo")[number % 2]
            return user, self.ask(memory, user=user)

        with ThreadPoolExecutor(4) as pool:
            for user, asked in pool.map(one, range(8)):
                assert (IN_ITALY_SQL in asked.prompt) == (user == "ada")

    def test_trace(self, memory: Memory) -> None:
        from opentelemetry.sdk.trace import TracerProvider

        tracer = TracerProvider().get_tracer("agent")
        with tracer.start_as_current_span("request") as span:
            save(HeedfulAgentMemory(memory, "geo", external_id="trace"), IN_ITALY, IN_ITALY_SQL)
        assert memory.executions.get(f"{span.get_span_context().trace_id:032x}").question == IN_ITALY

    @pytest.mark.parametrize(
        "case", ["image", "structured", "stream", "cancelled", "retried", "approval", "sub_agent", "tools"]
    )
    def test_others(self, case: str) -> None:
        meaningless(f"{case}: Vanna's agent memory is given questions and SQL, and no messages, answers or runs")

    test_tools = test_a_tool_says_that_it_failed = None  # type: ignore[assignment]
    test_image = test_structured = test_stream = None  # type: ignore[assignment]
    test_cancelled = test_retried = test_approval = test_sub_agent = None  # type: ignore[assignment]
