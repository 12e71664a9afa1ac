"""Any OpenAI-compatible chat endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain
from typing import Any

import httpx

from heedful.errors import Invalid, Unavailable
from heedful.providers.llm.contract import ChatMessage, Completion, OnToken, Usage
from heedful.providers.llm.stream import Part, Reported, Unreadable, events, part
from heedful.retrying import RETRIED, TryAgain, retry, seconds

MAX_RESPONSE = 16 * 1024 * 1024
"""The limit of bytes per answer, in case a model never stops."""

_REFUSALS = frozenset({400, 422})
_OPTIONAL = ("stream_options", "temperature")
"""Optional fields, which are left out if a server refuses them."""


class EndpointModel:
    """POSTs to `{url}/chat/completions` and reads the answer as it is written.

    `timeout` is how many seconds to wait for a connection, for the first token and for each next one. A server that
    is busy, out of reach or cut off is asked again, unless `on_token` was given a part of the answer already. Where
    a server doesn't count tokens, the fields of `usage` are None.
    """

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
        self.name = f"{model}@{_checked_url(url)}"
        self._model = model
        self._timeout = timeout
        self._attempts = attempts
        self._sleep = sleep
        self._refused: frozenset[str] = frozenset()
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._client = httpx.Client(base_url=url.rstrip("/"), timeout=timeout, headers=headers)

    def complete(self, messages: Sequence[ChatMessage], *, on_token: OnToken | None = None) -> Completion:
        answer = _Answer(on_token)
        try:
            return retry(lambda: self._adapted(messages, answer), attempts=self._attempts, sleep=self._sleep)
        except TryAgain as failure:
            raise self._unavailable(failure.problem) from failure

    def _adapted(self, messages: Sequence[ChatMessage], answer: _Answer) -> Completion:
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

    def _attempt(self, body: dict[str, Any], answer: _Answer) -> Completion:
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

    def _exchange(self, body: dict[str, Any], answer: _Answer) -> None:
        with self._client.stream("POST", "/chat/completions", json=body) as response:
            chunks = self._chunks(response, answer)
            if not response.is_success:
                raise self._failure(response, b"".join(chunks).decode(errors="replace"))
            first = next(chunks, b"")
            if first.lstrip().startswith(b"{"):
                answer.add(part(b"".join([first, *chunks])))
                answer.is_complete = True
                return
            streamed = False
            for data in events(chain([first], chunks)):
                streamed = True
                if data == b"[DONE]":
                    answer.is_complete = True
                    return
                answer.add(part(data))
            if not streamed and first.strip() and not first.startswith(b":"):
                raise Unreadable(f"neither a stream of events nor JSON: {first.decode(errors='replace')}")

    def _chunks(self, response: httpx.Response, answer: _Answer) -> Iterator[bytes]:
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

    def _broken(self, problem: str, answer: _Answer) -> Exception:
        streamed = self._sanitize(problem)
        if answer.has_streamed:
            return self._unavailable(f"{streamed}, after a part of the answer was handed on")
        return TryAgain(streamed)

    def _unavailable(self, problem: str) -> Unavailable:
        return Unavailable(
            f"the language model {self.name} answered with {problem}",
            code="model_unreachable",
            remedy="Check HEEDFUL_LANGUAGE_MODEL and HEEDFUL_LANGUAGE_MODEL_API_KEY, and that the server runs",
        )

    def _sanitize(self, problem: str) -> str:
        """A server's message as it may be shown: short, and without the key, which servers may quote."""
        return (problem.replace(self._key, "…") if self._key else problem)[:300]


class _Refused(Exception):
    """The server refused the request, perhaps because of these fields."""

    def __init__(self, problem: str, fields: Set[str]) -> None:
        self.fields = fields
        super().__init__(problem)


class _Answer:
    """The answer received so far."""

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

    def add(self, part: Part) -> None:
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


def _checked_url(url: str) -> str:
    """The URL as it may be shown."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Invalid(f"the URL of the language model can't be read: {error}", field="language_model") from error
    if parsed.userinfo or parsed.query:
        raise Invalid(
            "the URL of the language model holds a password or a query",
            field="language_model",
            remedy="Leave it out of the URL, and give a key in HEEDFUL_LANGUAGE_MODEL_API_KEY",
        )
    return url.rstrip("/")


def _checked_key(api_key: str | None) -> str:
    """The key without a trailing newline from a file."""
    key = (api_key or "").strip()
    if not key.isascii() or not key.isprintable():
        raise Invalid(
            "the key of the language model has characters that are not allowed in a header",
            field="language_model_api_key",
        )
    return key
