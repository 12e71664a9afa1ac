"""The proxy with OpenAI's own client, which reads what passed through."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
from loop import ANSWER, QUESTION, SESSION, Asked, Memory, check_loop, opened, run_examples
from model_server import Said, chat, chat_stream, response, response_stream
from patience import until
from proxying import Proxied, proxied
from pydantic import BaseModel

from heedful.errors import NotFound

HEADERS = {"X-Heedful-Session": SESSION}


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


def client(proxy: Proxied, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=proxy.url, api_key="sk-client", **options)


def chatted(proxy: Proxied, answer_id: str) -> str:
    proxy.model.says[:] = [chat(ANSWER, answer_id)]
    asked = [{"role": "user", "content": QUESTION}]
    completion = client(proxy).chat.completions.create(model="m", messages=asked, extra_headers=HEADERS)
    assert completion.id == answer_id
    return str(completion.choices[0].message.content)


def chatted_in_parts(proxy: Proxied, answer_id: str) -> str:
    proxy.model.says[:] = [chat_stream(ANSWER, answer_id)]
    asked = [{"role": "user", "content": QUESTION}]
    chunks = client(proxy).chat.completions.create(model="m", messages=asked, stream=True, extra_headers=HEADERS)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def responded(proxy: Proxied, answer_id: str) -> str:
    proxy.model.says[:] = [response(ANSWER, answer_id)]
    said = client(proxy).responses.create(model="m", input=QUESTION, extra_headers=HEADERS)
    assert said.id == answer_id
    return said.output_text


def responded_in_parts(proxy: Proxied, answer_id: str) -> str:
    proxy.model.says[:] = [response_stream(ANSWER, answer_id)]
    events = client(proxy).responses.create(model="m", input=QUESTION, stream=True, extra_headers=HEADERS)
    [last] = [event for event in events if event.type == "response.completed"]
    return last.response.output_text


WAYS = [chatted, chatted_in_parts, responded, responded_in_parts]


@pytest.mark.parametrize("way", WAYS)
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: Any) -> None:
    with proxied(memory, chat(ANSWER)) as proxy:

        def ask() -> Asked:
            answer_id = f"answer-{uuid4()}"
            said = way(proxy, answer_id)
            until(lambda: is_stored(memory, answer_id))
            return Asked(proxy.model.sent[-1].prompt, answer_id, said)

        check_loop(memory, ask)


def is_stored(memory: Memory, answer_id: str) -> bool:
    try:
        return memory.sessions.entry(SESSION, answer_id).answer == ANSWER
    except NotFound:
        return False


def test_the_client_awaits_many_at_once(memory: Memory) -> None:
    with proxied(memory, *(chat(ANSWER, f"answer-{number}") for number in range(20))) as proxy:

        async def ask() -> list[str]:
            async with openai.AsyncOpenAI(base_url=proxy.url, api_key="sk-client") as awaited:
                asked = [
                    awaited.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": f"Number {number}?"}], user=f"user-{number}"
                    )
                    for number in range(20)
                ]
                return [each.id for each in await asyncio.gather(*asked)]

        ids = asyncio.run(ask())
        for number, answer_id in enumerate(ids):
            sessions = until(lambda number=number: memory.sessions.list(where={"user": f"user-{number}"}).items)
            [entry] = until(lambda session=sessions[0]: memory.sessions.entries(session.session_id).items)
            assert (entry.question, entry.external_id) == (f"Number {number}?", answer_id)


def test_structured_output_tools_and_vision_work_as_before(memory: Memory) -> None:
    class Hours(BaseModel):
        opens: str

    with proxied(memory, chat('{"opens": "06:00"}')) as proxy:
        asked = [{"role": "user", "content": QUESTION}]
        parsed = client(proxy).chat.completions.parse(
            model="m", messages=asked, response_format=Hours, extra_headers=HEADERS
        )
        assert parsed.choices[0].message.parsed == Hours(opens="06:00")
        until(lambda: memory.sessions.exists(SESSION) and memory.sessions.entries(SESSION).items)
        assert memory.sessions.entries(SESSION).items[0].answer == '{"opens": "06:00"}'
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        client(proxy).chat.completions.create(model="m", messages=[{"role": "user", "content": [image]}])
        assert proxy.model.sent[-1].json["messages"] == [{"role": "user", "content": [image]}]


def test_errors_are_those_of_the_endpoint_or_say_what_is_wrong_here(memory: Memory) -> None:
    limited = Said([b'{"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}}'], 429)
    with proxied(memory, limited) as proxy, pytest.raises(openai.RateLimitError, match="Slow down") as raised:
        chatted_again(client(proxy, max_retries=0))
    assert raised.value.code == "rate_limit_exceeded"
    with proxied(memory, chat(ANSWER), max_body=1024) as proxy, pytest.raises(openai.APIStatusError) as large:
        chatted_again(client(proxy, max_retries=0), "x" * 2000)
    assert (large.value.status_code, large.value.code) == (413, "body_too_large")


def chatted_again(given: openai.OpenAI, question: str = QUESTION) -> Any:
    return given.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])


def test_the_client_goes_on_when_heedful_fails(failing: Any) -> None:
    with proxied(failing, chat(ANSWER)) as proxy:
        assert chatted_again(client(proxy)).choices[0].message.content == ANSWER


def test_the_page_says_what_works(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the address of the page in place of its own."""
    with proxied(memory, chat(ANSWER)) as proxy:
        moved = {"base_url": proxy.url, "api_key": "sk-client"}
        put = httpx.put
        real = openai.OpenAI
        monkeypatch.setattr(openai, "OpenAI", lambda base_url: real(**moved))
        monkeypatch.setattr(
            httpx, "put", lambda url, json: put(url.replace("http://127.0.0.1:8002", proxy.url[:-3]), json=json)
        )
        run_examples("proxy", {})
        until(lambda: memory.sessions.exists("ada/chat-1") and memory.sessions.entries("ada/chat-1").items)
        until(lambda: memory.sessions.entries("ada/chat-1").items[0].feedback_score == 5)
