"""Models behind any OpenAI-compatible endpoint: embeddings, and chats whose answers are read as they are written."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import httpx
import numpy as np
from httpx_sse import EventSource

from heedful.errors import Invalid, Unavailable
from heedful.providers.embedding import Vectors, normalize
from heedful.providers.llm import ChatMessage, Completion, OnToken, Usage
from heedful.retrying import RETRIED, TryAgain, retry, seconds
from heedful.text.same_question import PLAIN, Calibration

Answered = TypeVar("Answered")


class _Endpoint:
    """A model behind an address, which is asked again when the server is busy or out of reach."""

    _kind: str
    _setting: str

    def __init__(
        self, url: str, model: str, key: str | None, timeout: float, attempts: int, sleep: Callable[[float], None]
    ) -> None:
        self.name = f"{model}@{url.rstrip('/')}"
        self._model = model
        self._attempts = attempts
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(base_url=url.rstrip("/"), timeout=timeout, headers=headers)

    def _retry(self, call: Callable[[], Answered]) -> Answered:
        try:
            return retry(call, attempts=self._attempts, sleep=self._sleep)
        except TryAgain as failure:
            raise self._unavailable(failure.problem) from failure

    def _unavailable(self, problem: str) -> Unavailable:
        message = f"the {self._kind} {self.name} answered with {problem}"
        remedy = f"Check {self._setting} and {self._setting}_API_KEY, and that the server runs"
        return Unavailable(message, code="model_unreachable", remedy=remedy)


class EndpointEmbedder(_Endpoint):
    """POSTs batches to `{url}/embeddings`."""

    calibration: Calibration = PLAIN
    _kind, _setting = "embedding endpoint", "HEEDFUL_EMBEDDING"

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 4,
        batch: int = 128,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(url, model, api_key, timeout, attempts, sleep)
        self._batch = batch
        self._dimensions: int | None = None
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        with self._lock:
            if self._dimensions is None:
                self._dimensions = self._request(["dimensions"]).shape[1]
            return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        parts = [self._request(texts[start : start + self._batch]) for start in range(0, len(texts), self._batch)]
        return np.concatenate(parts)

    def _request(self, texts: Sequence[str]) -> Vectors:
        return self._retry(lambda: self._attempt(texts))

    def _attempt(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            response = self._client.post("/embeddings", json=body)
        except httpx.TransportError as error:
            raise TryAgain(f"{type(error).__name__}: {error}") from error
        problem = f"HTTP {response.status_code}: {response.text[:200]}"
        if response.status_code in RETRIED:
            raise TryAgain(problem, seconds(response.headers.get("Retry-After", "")))
        if response.is_error:
            raise self._unavailable(problem)
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, expected: int) -> Vectors:
        try:
            rows: list[dict[str, Any]] = sorted(response.json()["data"], key=lambda row: row["index"])
            vectors = np.asarray([row["embedding"] for row in rows], np.float32)
            if [row["index"] for row in rows] != list(range(expected)):
                raise ValueError("the indexes don't match the texts")
        except (ValueError, KeyError, TypeError) as error:
            raise self._unavailable(f"an answer that is not a list of embeddings ({error!r})") from error
        if vectors.ndim != 2 or len(vectors) != expected or not np.isfinite(vectors).all():
            raise self._unavailable(f"{len(vectors)} embeddings for {expected} texts, or broken ones")
        return normalize(vectors)


MAX_RESPONSE = 16 * 1024 * 1024
"""The limit of bytes per answer, in case a model never stops."""

_REFUSALS = frozenset({400, 422})
_OPTIONAL = ("stream_options", "temperature")
"""Optional fields, which are left out if a server refuses them."""


class EndpointModel(_Endpoint):
    """POSTs to `{url}/chat/completions` and reads the answer as it is written.

    `timeout` is how many seconds to wait for a connection, for the first token and for each next one. A server that
    is busy, out of reach or cut off is asked again, unless `on_token` was given a part of the answer already. Where
    a server doesn't count tokens, the fields of `usage` are None.
    """

    _kind, _setting = "language model", "HEEDFUL_LANGUAGE_MODEL"

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._key = _checked_key(api_key)
        _check_url(url)
        super().__init__(url, model, self._key, timeout, attempts, sleep)
        self._timeout = timeout
        self._refused: frozenset[str] = frozenset()

    def complete(self, messages: Sequence[ChatMessage], *, on_token: OnToken | None = None) -> Completion:
        answer = _AnswerSoFar(on_token)
        return self._retry(lambda: self._adapted(messages, answer))

    def _adapted(self, messages: Sequence[ChatMessage], answer: _AnswerSoFar) -> Completion:
        """One attempt, without the fields that this server has refused."""
        refused = self._refused
        while True:
            try:
                completion = self._attempt(self._body(messages, refused), answer)
            except _Refused as refusal:
                if refusal.fields <= refused:
                    raise self._unavailable(str(refusal)) from refusal
                refused |= refusal.fields
            else:
                self._refused = refused
                return completion

    def _body(self, messages: Sequence[ChatMessage], refused: frozenset[str]) -> dict[str, Any]:
        body = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        return {field: value for field, value in body.items() if field not in refused}

    def _attempt(self, body: dict[str, Any], answer: _AnswerSoFar) -> Completion:
        answer.begin()
        # The server's message is kept out of the chain of errors: it may quote the key.
        try:
            self._exchange(body, answer)
        except (httpx.TransportError, httpx.DecodingError) as error:
            if not answer.is_complete:
                raise self._broken(f"{type(error).__name__}: {error}", answer) from None
        except Reported as error:
            problem = f"an error: {error}"
            if error.status in RETRIED:
                raise self._broken(problem, answer) from None
            raise self._unavailable(self._sanitize(problem)) from None
        except Unreadable as error:
            raise self._unavailable(self._sanitize(str(error))) from None
        if not answer.is_complete:
            raise self._broken("an answer that was cut off", answer)
        if not answer.text.strip():
            raise self._unavailable(self._sanitize(f"no text (it ended with {answer.finish or 'nothing'})"))
        return Completion(answer.text, answer.usage)

    def _exchange(self, body: dict[str, Any], answer: _AnswerSoFar) -> None:
        with self._client.stream("POST", "/chat/completions", json=body) as response:
            chunks = self._chunks(response, answer)
            if not response.is_success:
                raise self._failure(response, b"".join(chunks).decode(errors="replace"))
            first = next(chunks, b"")
            if first.lstrip().startswith(b"{"):
                answer.add(read_part(b"".join([first, *chunks])))
                answer.is_complete = True
                return
            streamed = False
            for data in events(chain([first], chunks)):
                streamed = True
                if data == b"[DONE]":
                    answer.is_complete = True
                    return
                answer.add(read_part(data))
            if not streamed and first.strip() and not first.startswith(b":"):
                raise Unreadable(f"neither a stream of events nor JSON: {first.decode(errors='replace')}")

    def _chunks(self, response: httpx.Response, answer: _AnswerSoFar) -> Iterator[bytes]:
        """The chunks of the body; fails if no token comes for too long, or the answer is too large."""
        size = 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > MAX_RESPONSE:
                raise Unreadable("an answer without an end")
            yield chunk
            # The socket's timeout doesn't notice a server that only sends keep-alives.
            if time.monotonic() - answer.last_activity > self._timeout:
                raise httpx.ReadTimeout(f"no token in {self._timeout:g} seconds")

    def _failure(self, response: httpx.Response, text: str) -> Exception:
        problem = self._sanitize(f"HTTP {response.status_code}: {text}")
        if response.status_code in RETRIED:
            return TryAgain(problem, seconds(response.headers.get("Retry-After", "")))
        if response.status_code in _REFUSALS:
            # If the server names no field, it most likely refuses the newer one.
            return _Refused(problem, frozenset(field for field in _OPTIONAL if field in text) or {_OPTIONAL[0]})
        return self._unavailable(problem)

    def _broken(self, problem: str, answer: _AnswerSoFar) -> Exception:
        streamed = self._sanitize(problem)
        if answer.has_streamed:
            return self._unavailable(f"{streamed}, after a part of the answer was handed on")
        return TryAgain(streamed)

    def _sanitize(self, problem: str) -> str:
        """A server's message as it may be shown: short, and without the key, which servers may quote."""
        return (problem.replace(self._key, "…") if self._key else problem)[:300]


class _Refused(Exception):
    """The server refused the request, perhaps because of these fields."""

    def __init__(self, problem: str, fields: Set[str]) -> None:
        self.fields = fields
        super().__init__(problem)


class _AnswerSoFar:
    def __init__(self, on_token: OnToken | None) -> None:
        self._on_token = on_token
        self.has_streamed = False
        self.begin()

    def begin(self) -> None:
        """Starts a new attempt."""
        self._parts: list[str] = []
        self.usage = Usage()
        self.finish: str | None = None
        self.is_complete = False
        self.last_activity = time.monotonic()

    def add(self, part: AnswerPart) -> None:
        if part.usage is not None:
            self.usage = part.usage
        if part.finish is not None:
            self.finish = part.finish
            self.is_complete = True
        if part.text:
            self._parts.append(part.text)
            if self._on_token is not None:
                self.has_streamed = True
                self._on_token(part.text)
        if part.alive:
            # After `on_token`, so that its own time doesn't count as the server's.
            self.last_activity = time.monotonic()

    @property
    def text(self) -> str:
        return "".join(self._parts)


def _check_url(url: str) -> None:
    """Refuses a URL that must not be shown."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Invalid(f"the URL of the language model can't be read: {error}", field="language_model") from error
    if parsed.userinfo or parsed.query:
        message = "the URL of the language model holds a password or a query"
        remedy = "Leave it out of the URL, and give a key in HEEDFUL_LANGUAGE_MODEL_API_KEY"
        raise Invalid(message, field="language_model", remedy=remedy)


def _checked_key(api_key: str | None) -> str:
    """The key without a trailing newline from a file."""
    key = (api_key or "").strip()
    if not key.isascii() or not key.isprintable():
        problem = "the key of the language model has characters that are not allowed in a header"
        raise Invalid(problem, field="language_model_api_key")
    return key


class Unreadable(ValueError):
    """The data is not part of an answer."""


class Reported(Exception):
    """The server reported an error in the middle of an answer; `status` if it gave one."""

    def __init__(self, message: str, status: int | None) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """The part of an answer that one event adds."""

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


def read_part(data: bytes) -> AnswerPart:
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
        return AnswerPart(usage=usage)
    choice = choices[0]
    message = (choice.get("delta") or choice.get("message") or {}) if isinstance(choice, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("content") or "", str):
        raise Unreadable(f"a choice without a message: {data.decode(errors='replace')}")
    text = message.get("content") or ""
    finish = choice.get("finish_reason")
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    return AnswerPart(text, bool(text or thoughts), None if finish is None else str(finish), usage)


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
