"""A stream of events, line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from heedful.client.exchange import Answer


class Events:
    """Calls back for each event, until the result or a problem comes."""

    def __init__(self, callbacks: Mapping[str, Callable[..., object]]) -> None:
        self._callbacks = callbacks
        self._name = ""
        self.answer: Answer | None = None

    def line(self, line: str) -> None:
        """Takes one line."""
        if line.startswith("event: "):
            self._name = line[7:]
        elif line.startswith("data: "):
            self._event(line[6:])

    def _event(self, data: str) -> None:
        if self._name == "result":
            self.answer = Answer(200, data.encode())
        elif self._name == "problem":
            self.answer = Answer(orjson.loads(data)["status"], data.encode())
        elif self._name in self._callbacks:
            self._callbacks[self._name](*orjson.loads(data))

    def end(self) -> Answer:
        """What the stream said in the end."""
        return self.answer or Answer(0, problem="the stream ended before the result")
