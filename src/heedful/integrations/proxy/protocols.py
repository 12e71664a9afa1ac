"""The two protocols that get memories, chat completions and Responses: what a request asks, where memories go in it,
and what an answer says. No I/O."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from typing import Any

from heedful.model import limits

MAX_READ = 25_000_000
"""Bytes of an answer that is kept until it is complete, or of one event in a stream; longer ones are not stored."""

_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
"""Items of a response that wait for the caller."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a request that matter to memory."""

    question: str = ""
    """The text of the user's last message; empty if it has none, such as an image alone."""
    first: str = ""
    """The text of the user's first message, or the name that the request gives its conversation."""
    user: str | None = None
    previous: str | None = None
    """The response that this request continues."""


@dataclass(slots=True)
class Reply:
    """The parts of an answer that were read."""

    id: str | None = None
    parts: list[str] = field(default_factory=list)
    """Of its text."""
    is_complete: bool = False
    is_final: bool = False
    """Whether nothing of it can follow: some endpoints call each part of a stream the last one."""
    calls_tool: bool = False
    """Whether it waits for the result of a tool."""

    @property
    def is_answer(self) -> bool:
        """Whether it has a text, and is neither cut off nor waits for anything."""
        return self.is_complete and not self.calls_tool and bool(self.text.strip())

    @property
    def text(self) -> str:
        return "".join(self.parts)


class Protocol(ABC):
    """One way to ask a model. Methods accept any JSON, since it is the endpoint that decides what it accepts."""

    @abstractmethod
    def asked(self, request: Mapping[str, Any]) -> Asked:
        """The question of a request, and whose it is."""

    @abstractmethod
    def with_memories(self, text: str, prompt: str) -> str:
        """A request that asks something, with memories; the rest of its text stays as it is, to the byte."""

    @abstractmethod
    def read(self, document: Mapping[str, Any], reply: Reply) -> None:
        """Adds what a whole answer says, or an event of a stream."""


class Chat(Protocol):
    """Chat completions. Memories go to the end of the last leading system or developer message; many models take only
    one. Without any, they are one."""

    def asked(self, request: Mapping[str, Any]) -> Asked:
        return Asked(*_first_and_last(request.get("messages")), _name(request.get("user")))

    def with_memories(self, text: str, prompt: str) -> str:
        messages = list(_members(text, _value_of(text, "messages")))
        leading = list(takewhile(lambda message: _role(message[0]) in ("system", "developer"), messages))
        if leading and isinstance(leading[-1][0].get("content"), str | list):
            return _extended(text, _value_of(text, "content", leading[-1][1]), prompt)
        place = messages[len(leading)][1]
        return f"{text[:place]}{json.dumps({'role': 'system', 'content': prompt})},{text[place:]}"

    def read(self, document: Mapping[str, Any], reply: Reply) -> None:
        reply.id = reply.id or _name(document.get("id"))
        for choice in _objects(document.get("choices")):
            message = choice.get("message") or choice.get("delta")
            if choice.get("index", 0) == 0 and isinstance(message, dict):
                reply.parts.append(_text(message.get("content")))
                reply.calls_tool |= bool(message.get("tool_calls") or message.get("function_call"))
                # Some send an empty one with each part.
                reply.is_complete |= bool(choice.get("finish_reason"))


class Responses(Protocol):
    """The Responses API. Memories go behind the instructions."""

    def asked(self, request: Mapping[str, Any]) -> Asked:
        given, named = request.get("input"), request.get("conversation")
        question, first = (given, given) if isinstance(given, str) else _first_and_last(given)
        conversation = _name(named.get("id") if isinstance(named, dict) else named)
        previous = _name(request.get("previous_response_id"))
        return Asked(question, conversation or previous or first, _name(request.get("user")), previous)

    def with_memories(self, text: str, prompt: str) -> str:
        opening = text.index("{")
        if all(name != "instructions" for name, *_ in _members(text, opening)):
            return f'{text[: opening + 1]}"instructions":{json.dumps(prompt)},{text[opening + 1 :]}'
        return _extended(text, _value_of(text, "instructions"), prompt)

    def read(self, document: Mapping[str, Any], reply: Reply) -> None:
        response = document.get("response") if str(document.get("type")).startswith("response.") else document
        if not isinstance(response, dict) or response.get("status", "completed") not in ("completed", "incomplete"):
            return
        reply.id, reply.is_complete, reply.is_final = _name(response.get("id")), True, True
        for item in _objects(response.get("output")):
            reply.calls_tool |= item.get("type") in _CALLS
            if item.get("type") == "message":
                # What a model says before it uses a tool is not its answer.
                reply.parts = [_text(item.get("content"))]


PROTOCOLS: Mapping[str, Protocol] = {"/chat/completions": Chat(), "/responses": Responses()}
"""By path behind the base URL."""


@dataclass(slots=True)
class AnswerReader:
    """Reads an answer while its bytes pass by."""

    protocol: Protocol
    keep: Callable[[Reply], None]
    """Called once with an answer that is complete."""
    is_stream: bool
    length: int | None = None
    """Bytes of the whole, if it was said before."""
    _reply: Reply = field(default_factory=Reply)
    _rest: bytearray = field(default_factory=bytearray)
    _is_readable: bool = True

    def feed(self, data: bytes) -> None:
        """Reads the next bytes."""
        if not self._is_readable:
            return
        self._rest += data
        if self.is_stream and b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._read(line[5:])
        self._is_readable = len(self._rest) <= MAX_READ
        if self._reply.is_final or len(self._rest) == self.length:
            self.end()

    def end(self) -> None:
        """Says that no more bytes follow."""
        if self._is_readable and not self.is_stream:
            self._read(self._rest)
        if self._is_readable and self._reply.is_complete:
            self.keep(self._reply)
        self._is_readable = False

    def _read(self, data: bytearray) -> None:
        if data.strip() == b"[DONE]":
            self._reply.is_final = True
            return
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            self.protocol.read(document, self._reply)


def session_name(user: str | None, session: str | None, asked: Asked) -> str:
    """The session of a conversation. Different users never share one, whatever they call theirs.

    >>> session_name("ada", "chat-1", Asked()), session_name(None, "ada/chat-1", Asked())
    ('ada/chat-1', 'ada%2Fchat-1')
    """
    name = session or sha256(asked.first.encode(errors="replace")).hexdigest()[:32]
    parts = [name] if user is None else [user, name]
    whole = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
    return whole if len(whole) <= limits.MAX_NAME else sha256(whole.encode(errors="replace")).hexdigest()


def answer_name(answer_id: str) -> str:
    """The id under which an answer is stored: some endpoints have ids that are longer than names may be."""
    return answer_id if len(answer_id) <= limits.MAX_NAME else sha256(answer_id.encode(errors="replace")).hexdigest()


def _first_and_last(messages: Any) -> tuple[str, str]:
    """The text of the user's last message, and that of the first."""
    said = [_text(message.get("content")) for message in _objects(messages) if message.get("role") == "user"]
    return (said[-1], said[0]) if said else ("", "")


def _objects(values: Any) -> Iterator[dict[str, Any]]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


def _text(content: Any) -> str:
    """The text of a message, whose content may come in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in _objects(content) if isinstance(part.get("text"), str))


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _members(text: str, place: int) -> Iterator[tuple[Any, int, int]]:
    """The items of the list, or the keys of the object, at a place of valid JSON; and where their values are."""
    is_object, place = text[place] == "{", _after_space(text, place + 1)
    while text[place] not in "}]":
        key, end = _DECODER.raw_decode(text, place)
        if is_object:
            place = _after_space(text, _after_space(text, end) + 1)
            _, end = _DECODER.raw_decode(text, place)
        yield key, place, end
        place = _after_space(text, end)
        place = _after_space(text, place + 1) if text[place] == "," else place


def _value_of(text: str, key: str, place: int | None = None) -> int:
    """Where the value of a key begins, in the object at a place, or in the whole; of one that is there twice, the last,
    which counts."""
    place = text.index("{") if place is None else place
    return [start for name, start, _ in _members(text, place) if name == key][-1]


def _extended(text: str, start: int, prompt: str) -> str:
    """A request with more at the end of a text, of the parts of one, or in place of null."""
    value, end = _DECODER.raw_decode(text, start)
    if isinstance(value, str | list) and value:
        # Before the quotation mark, or the bracket.
        added = json.dumps(f"\n\n{prompt}")[1:-1] if isinstance(value, str) else f",{_part(prompt)}"
        return f"{text[: end - 1]}{added}{text[end - 1 :]}"
    return f"{text[:start]}{f'[{_part(prompt)}]' if value == [] else json.dumps(prompt)}{text[end:]}"


def _part(prompt: str) -> str:
    return json.dumps({"type": "text", "text": prompt})


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return place if match is None else match.end()
