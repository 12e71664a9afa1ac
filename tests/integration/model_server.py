"""A scripted model behind an OpenAI-compatible endpoint, on a real socket: it says what a test wants, and keeps what it
was sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send
from threaded import threaded


@dataclass
class Sent:
    """A request that reached the model."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def prompt(self) -> str:
        """What the model is instructed with."""
        given = self.json
        if "input" in given:
            return str(given.get("instructions") or "")
        return "\n".join(each["content"] for each in given["messages"] if each["role"] in ("system", "developer"))


@dataclass
class Said:
    """An answer, in the pieces in which it is sent."""

    parts: Sequence[bytes]
    status: int = 200
    headers: Sequence[tuple[str, str]] = (("content-type", "application/json"),)
    hangs: bool = False
    """Whether it stays silent after the parts."""
    breaks: bool = False
    """Whether it ends after the parts without an end."""

    @property
    def whole(self) -> bytes:
        return b"".join(self.parts)


STREAM = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("x-request-id", "req_1"),
    ("cache-control", "no-cache"),
)


def chat(text: str | None, answer_id: str = "chatcmpl-1", **message: Any) -> Said:
    finish = "tool_calls" if "tool_calls" in message else "stop"
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "finish_reason": finish, "logprobs": None}
    document = {"id": answer_id, "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Said([json.dumps({**document, "made_up": {"x": 1.50}}).encode()])


def chat_stream(
    text: str, answer_id: str = "chatcmpl-1", finish: str | None = "stop", before: str | None = None
) -> Said:
    """A chunk for each word, cut in odd places, with a comment in between as some send to keep a connection. `before`
    is what the chunks before the last give as the reason to finish."""

    def chunk(delta: dict[str, Any], finish: str | None = before) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        document = {"id": answer_id, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"

    chunks = [chunk({"role": "assistant", "content": ""}), b": keep-alive\n\n"]
    chunks += [chunk({"content": word}) for word in text.split(" ") for word in (word, " ")][:-1]
    chunks += [chunk({}, finish)] if finish else []
    return Said(_cut(b"".join([*chunks, b"data: [DONE]\n\n"])), headers=STREAM)


def response_document(text: str, answer_id: str = "resp_1", calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    output = [*([said] if text else []), *calls]
    return {
        "id": answer_id,
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response(text: str, answer_id: str = "resp_1", calls: Sequence[dict[str, Any]] = ()) -> Said:
    return Said([json.dumps(response_document(text, answer_id, calls)).encode()])


def response_stream(text: str, answer_id: str = "resp_1") -> Said:
    document = response_document(text, answer_id)
    created = {"type": "response.created", "sequence_number": 0}
    events: list[dict[str, Any]] = [{**created, "response": {**document, "status": "in_progress", "output": []}}]
    delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    events += [{**delta, "delta": word, "sequence_number": 1, "logprobs": []} for word in text.split(" ")]
    events += [{"type": "response.completed", "sequence_number": 2, "response": document}]
    lines = [f"event: {event['type']}\r\ndata: {json.dumps(event)}\r\n\r\n" for event in events]
    return Said(_cut("".join(lines).encode()), headers=STREAM)


def _cut(whole: bytes) -> list[bytes]:
    return [whole[start : start + 37] for start in range(0, len(whole), 37)]


@dataclass
class ModelServer:
    url: str = ""
    says: list[Said] = field(default_factory=list)
    """What it answers next; the last one again and again."""
    sent: list[Sent] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    """Set when somebody left before the end of an answer."""
    next_part: threading.Event | None = None
    """If there is one, waited for before each part but the first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        headers = [(name.decode(), value.decode("latin-1")) for name, value in scope["headers"]]
        path = scope["raw_path"].decode() + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        self.sent.append(Sent(scope["method"], path, headers, b"".join(parts)))
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if not said.parts and said.hangs:
            await self._wait_until_left(receive)
            return
        given = [(name.encode(), value.encode()) for name, value in said.headers]
        await send({"type": "http.response.start", "status": said.status, "headers": given})
        for number, part in enumerate(said.parts):
            if number and self.next_part is not None:
                await asyncio.to_thread(self.next_part.wait, 60)
                self.next_part.clear()
            await send({"type": "http.response.body", "body": part, "more_body": True})
        if said.hangs:
            await self._wait_until_left(receive)
        elif not said.breaks:
            await send({"type": "http.response.body", "body": b""})

    async def _wait_until_left(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()


@contextmanager
def model_server(*says: Said) -> Iterator[ModelServer]:
    model = ModelServer(says=list(says))
    config = uvicorn.Config(model, lifespan="off", log_config=None, timeout_graceful_shutdown=1, server_header=False)
    with threaded(uvicorn.Server(config)) as url:
        model.url = f"{url}/v1"
        yield model
