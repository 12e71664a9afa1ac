"""The callback in LiteLLM's real proxy, with a scripted model behind it and OpenAI's client in front."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import litellm
import openai
import pytest
import uvicorn
from edge_cases import PRIVATE, STRUCTURED, EdgeCases, meaningless
from litellm.proxy import proxy_server
from litellm.proxy._types import UserAPIKeyAuth
from loop import (
    ANSWER,
    AT_SEVEN,
    AT_SIX,
    QUESTION,
    SESSION,
    Asked,
    Memory,
    check_loop,
    opened,
    run_examples,
    shown,
    warnings,
)
from model_server import ModelServer, Said, chat, chat_stream, model_server, response, response_stream
from patience import until
from threaded import threaded

import heedful
from heedful.errors import NotFound
from heedful.integrations.litellm import HeedfulCallback, user_of

Serve = Callable[..., "LiteLLM"]
MASTER = "sk-master-key-of-the-tests"
HEADERS = {"X-Heedful-Session": SESSION}


@dataclass
class LiteLLM:
    url: str
    model: ModelServer

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=MASTER, max_retries=0)


@pytest.fixture(scope="module", autouse=True)
def running() -> Iterator[LiteLLM]:
    """LiteLLM's proxy. What it logs belongs to the first loop that runs it, so there is one for all tests."""
    with pytest.MonkeyPatch.context() as patch, model_server(chat(ANSWER)) as model:
        patch.setenv("LITELLM_MASTER_KEY", MASTER)
        behind = {"model": "openai/m", "api_base": model.url, "api_key": "sk-up"}
        patch.setattr(proxy_server, "llm_router", litellm.Router([{"model_name": "m", "litellm_params": behind}]))
        with threaded(uvicorn.Server(uvicorn.Config(proxy_server.app, log_config=None))) as url:
            until(lambda: is_ready(url))
            yield LiteLLM(url, model)


@pytest.fixture
def serve(running: LiteLLM) -> Iterator[Serve]:
    """Adds a callback, and what the model says."""

    def start(callback: HeedfulCallback, *says: Said) -> LiteLLM:
        litellm.callbacks = [callback]
        running.model.sent.clear()
        running.model.says[:] = says
        return running

    yield start
    litellm.logging_callback_manager._reset_all_callbacks()


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/liveliness").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


def chatted(proxy: LiteLLM, answer_id: str) -> tuple[str, str]:
    proxy.model.says[:] = [chat(ANSWER, answer_id)]
    asked = [{"role": "user", "content": QUESTION}]
    completion = proxy.client().chat.completions.create(model="m", messages=asked, extra_headers=HEADERS)
    return completion.id, str(completion.choices[0].message.content)


def chatted_in_parts(proxy: LiteLLM, answer_id: str) -> tuple[str, str]:
    proxy.model.says[:] = [chat_stream(ANSWER, answer_id)]
    asked = [{"role": "user", "content": QUESTION}]
    chunks = list(proxy.client().chat.completions.create(model="m", messages=asked, stream=True, extra_headers=HEADERS))
    return chunks[0].id, "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def responded(proxy: LiteLLM, answer_id: str) -> tuple[str, str]:
    proxy.model.says[:] = [response(ANSWER, answer_id)]
    raw = proxy.client().responses.with_raw_response.create(model="m", input=QUESTION, extra_headers=HEADERS)
    return raw.headers["x-litellm-call-id"], raw.parse().output_text


def responded_in_parts(proxy: LiteLLM, answer_id: str) -> tuple[str, str]:
    proxy.model.says[:] = [response_stream(ANSWER, answer_id)]
    headers = {**HEADERS, "X-Heedful-Answer": answer_id}
    events = proxy.client().responses.create(model="m", input=QUESTION, stream=True, extra_headers=headers)
    [last] = [event for event in events if event.type == "response.completed"]
    return answer_id, last.response.output_text


@pytest.mark.parametrize("way", [chatted, chatted_in_parts, responded, responded_in_parts])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(
    memory: Memory, serve: Serve, way: Any
) -> None:
    proxy = serve(HeedfulCallback(memory), chat(ANSWER))

    def ask() -> Asked:
        answer_id, said = way(proxy, f"answer-{uuid4()}")
        until(lambda: is_stored(memory, answer_id))
        return Asked(proxy.model.sent[-1].prompt, answer_id, said)

    check_loop(memory, ask)


def is_stored(memory: Memory, answer_id: str) -> bool:
    try:
        return memory.sessions.entry(SESSION, answer_id).answer == ANSWER
    except NotFound:
        return False


def test_users_have_memories_of_their_own(memory: Memory, serve: Serve) -> None:
    memory.remember("Ada's gym has a pool.", metadata={"user": "ada"})
    proxy = serve(HeedfulCallback(memory), *(chat(ANSWER, f"answer-{number}") for number in range(3)))
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    for fields in ({"user": "ada"}, {"user": "bob"}, {}):
        proxy.client().chat.completions.create(model="m", messages=asked, extra_headers=HEADERS, **fields)
    assert ["pool" in each.prompt for each in proxy.model.sent] == [True, False, False]
    assert all(AT_SIX in each.prompt and "Be brief." in each.prompt for each in proxy.model.sent)
    for session in (f"ada/{SESSION}", f"bob/{SESSION}", SESSION):
        until(lambda session=session: memory.sessions.exists(session))


def test_nobody_with_a_key_of_their_own_is_somebody_else() -> None:
    data = {"user": "bob", "proxy_server_request": {"headers": {"X-Heedful-User": "bob"}}}
    assert user_of(UserAPIKeyAuth(user_id="ada"), data) == "ada"
    assert user_of(UserAPIKeyAuth(user_id="default_user_id"), data) == "bob"
    assert user_of(UserAPIKeyAuth(), {"user": "bob"}) == "bob"
    assert user_of(UserAPIKeyAuth(), {}) is None


def test_the_model_answers_when_heedful_fails(failing: Any, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        proxy = serve(HeedfulCallback(failing), chat(ANSWER))
        assert chatted(proxy, "answer-1")[1] == ANSWER
        until(lambda: warnings(caplog))


def test_other_calls_pass(memory: Memory, serve: Serve) -> None:
    embedded = Said([b'{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}]}'])
    proxy = serve(HeedfulCallback(memory), embedded, chat(ANSWER))
    proxy.client().embeddings.create(model="m", input="The gym", encoding_format="float")
    proxy.client().chat.completions.create(
        model="m", messages=[{"role": "user", "content": QUESTION}], extra_headers={"X-Heedful-Skip": "title"}
    )
    assert AT_SIX not in proxy.model.sent[-1].prompt
    chatted(proxy, "answer-1")
    until(lambda: is_stored(memory, "answer-1"))
    assert len(memory.sessions.list().items) == 1


def test_the_page_says_what_works(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {}
    run_examples("litellm", given)
    proxy = serve(given["callback"], chat(ANSWER))
    chatted(proxy, "answer-1")
    assert "The gym opens at six." in proxy.model.sent[-1].prompt
    until(lambda: is_stored(given["memory"], "answer-1"))
    given["memory"].close()


IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
DOWN = Said([b'{"error": {"message": "the model is down"}}'], status=500)


class TestEdgeCases(EdgeCases):
    """Of chat completions."""

    @pytest.fixture(autouse=True)
    def proxied(self, serve: Serve) -> None:
        self._serve = serve
        self._made: tuple[Any, LiteLLM] | None = None
        self._lock = threading.Lock()
        self._answered = 0

    def proxy(self, memory: Any, *says: Said) -> LiteLLM:
        """One for all that is asked of a memory."""
        with self._lock:
            if self._made is None or self._made[0] is not memory or says:
                self._made = memory, self._serve(HeedfulCallback(memory), *(says or [chat(ANSWER)]))
            return self._made[1]

    def ask(
        self,
        memory: Any,
        question: Any = QUESTION,
        *,
        session: str = SESSION,
        user: str = "ada",
        says: tuple[Said, ...] = (),
        stream: bool = False,
        **options: Any,
    ) -> Asked:
        proxy, run_id = self.proxy(memory, *says), f"answer-{uuid4()}"
        headers = {"X-Heedful-Session": session, "X-Heedful-User": user, "X-Heedful-Answer": run_id}
        asked: Any = [{"role": "system", "content": run_id}, {"role": "user", "content": question}]
        client = proxy.client().with_options(max_retries=2)
        if stream:
            chunks = client.chat.completions.create(model="m", messages=asked, stream=True, extra_headers=headers)
            answer = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        else:
            completion = client.chat.completions.create(model="m", messages=asked, extra_headers=headers, **options)
            answer = str(completion.choices[0].message.content)
        with self._lock:
            self._answered += isinstance(question, str) and bool(question)
        return Asked(next(each.prompt for each in proxy.model.sent if run_id in each.prompt), run_id, answer)

    def ask_with_image_alone(self, memory: Any) -> str:
        return self.ask(memory, IMAGE).answer

    def ask_for_hours(self, memory: Any) -> None:
        schema = {"name": "hours", "schema": {"type": "object", "properties": {"hour": {"type": "string"}}}}
        form = {"type": "json_schema", "json_schema": schema}
        self.ask(memory, says=(chat(STRUCTURED),), response_format=form)

    def stream(self, memory: Any) -> Asked:
        return self.ask(memory, says=(chat_stream(ANSWER),), stream=True)

    def cancel(self, memory: Any) -> None:
        begun = Said(chat_stream(ANSWER).parts[:6], headers=chat_stream("").headers, hangs=True)
        proxy = self.proxy(memory, begun, chat(ANSWER))
        asked: Any = [{"role": "user", "content": QUESTION}]
        with proxy.client().chat.completions.create(model="m", messages=asked, stream=True) as chunks:
            next(iter(chunks))
        assert proxy.model.left.wait(60)

    def retry(self, memory: Any) -> Asked:
        return self.ask(memory, says=(DOWN, chat(ANSWER)))

    def approve(self, memory: Any) -> Asked:
        meaningless("a tool is run by the caller, whose next request has its result")

    def delegate(self, memory: Any) -> Asked:
        meaningless("to the proxy, an agent is a caller like any other")

    def entries(self, memory: Memory) -> list[heedful.Entry]:
        # LiteLLM tells its callbacks of an answer after it was given.
        until(lambda: len(EdgeCases.entries(self, memory)) >= self._answered)
        return super().entries(memory)

    def test_two_users_at_once(self, memory: Memory) -> None:
        memory.remember(PRIVATE, metadata={"user": "ada"})

        def one(number: int) -> tuple[str, Asked]:
            user = ("ada", "bo")[number % 2]
            return user, self.ask(memory, user=user)

        with ThreadPoolExecutor(4) as pool:
            asked = list(pool.map(one, range(8)))
        for user, each in asked:
            assert (PRIVATE in each.prompt) == (user == "ada")
            assert shown(each.prompt) == [AT_SIX, AT_SEVEN]
        assert len(self.entries(memory)) == 8
        for user in ("ada", "bo"):
            ids = {each.external_id for each in memory.sessions.entries(f"{user}/{SESSION}").items}
            assert ids == {each.run_id for name, each in asked if name == user}

    def test_others(self) -> None:
        meaningless("the callers have the tools, and the traces: the header X-Heedful-Answer takes the id of one")

    test_tools = test_a_tool_says_that_it_failed = test_trace = None  # type: ignore[assignment]
