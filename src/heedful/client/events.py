"""A stream of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from heedful.client.exchange import Answer


class Events:
    """Calls back for each event, until the result or a problem comes."""

    def __init__(self, callbacks: Mapping[str, Callable[..., object]]) -> None:
        self._callbacks = callbacks
        self._name = ""
        self._left: list[bytes] = []
        self.answer: Answer | None = None
        self.told = False
        """Whether a callback has heard something."""

    def take(self, part: bytes) -> None:
        """Takes what has arrived. Lines end where \\n is: Unicode knows other ends, which JSON leaves as they are."""
        first, *others = part.split(b"\n")
        self._left.append(first)
        for other in others:
            self._line(b"".join(self._left).removesuffix(b"\r"))
            self._left = [other]

    def _line(self, line: bytes) -> None:
        if line.startswith(b"event: "):
            self._name = line[7:].decode()
        elif line.startswith(b"data: "):
            self._event(line[6:])

    def _event(self, data: bytes) -> None:
        if self._name == "result":
            self.answer = Answer(200, data)
        elif self._name == "problem":
            self.answer = Answer(orjson.loads(data)["status"], data)
        elif self._name in self._callbacks:
            self.told = True
            self._callbacks[self._name](*orjson.loads(data))

    def end(self) -> Answer:
        """What the stream said in the end."""
        return self.answer or Answer(0, problem="the stream ended before the result", told=self.told)
