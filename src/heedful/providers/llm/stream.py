"""Reads the streamed response of an OpenAI-compatible server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx
from httpx_sse import EventSource

from heedful.providers.llm.contract import Usage


class Unreadable(ValueError):
    """The data is not part of an answer."""


class Reported(Exception):
    """The server reported an error in the middle of an answer; `status` if it gave one."""

    def __init__(self, message: str, status: int | None) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Part:
    """What one event adds to an answer."""

    text: str = ""
    alive: bool = False
    """Whether the model is working: it wrote text, or reasoning that is not shown."""
    finish: str | None = None
    """Why the answer ended, if it did."""
    usage: Usage | None = None


def events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event, without the comments that only keep a connection open."""
    # Latin-1 takes all bytes as they are: UTF-8 is read with the JSON, where what is broken is an error.
    headers = {"Content-Type": "text/event-stream; charset=latin-1"}
    # Some servers omit the blank line after the last event.
    response = httpx.Response(200, headers=headers, content=chain(chunks, [b"\n\n"]))
    for event in EventSource(response).iter_sse():
        if data := event.data.encode("latin-1").strip():
            yield data


def part(data: bytes) -> Part:
    """Parses one event of a stream, or an answer that was not streamed."""
    try:
        event = json.loads(data)
    except ValueError as error:
        raise Unreadable(f"something that is not JSON: {data.decode(errors='replace')}") from error
    if not isinstance(event, dict):
        raise Unreadable(f"JSON that is not an answer: {data.decode(errors='replace')}")
    if event.get("error"):
        raise _reported(event["error"])
    choices = event.get("choices")
    if not isinstance(choices, list):
        raise Unreadable(f"JSON without choices: {data.decode(errors='replace')}")
    usage = _usage(event.get("usage"))
    if not choices:
        return Part(usage=usage)
    choice = choices[0]
    message = (choice.get("delta") or choice.get("message") or {}) if isinstance(choice, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("content") or "", str):
        raise Unreadable(f"a choice without a message: {data.decode(errors='replace')}")
    text = message.get("content") or ""
    finish = choice.get("finish_reason")
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    return Part(text, bool(text or thoughts), None if finish is None else str(finish), usage)


def _reported(error: Any) -> Reported:
    if not isinstance(error, dict):
        return Reported(str(error), None)
    code = error.get("code")
    status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else None
    return Reported(str(error.get("message") or error), status)


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
