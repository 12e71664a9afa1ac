"""Answers that take their place in memory until they are read."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from heedful.interfaces.http.limits import RoomLimiter

PART = 65_536
"""Bytes that are sent at once; the next are sent when these were taken."""

LARGE = 1_000_000
"""Bytes from which an answer needs room."""


class Answer(Response):
    """JSON of any size. A large one needs room while it is sent, in the share of its caller; `Unavailable` if those who
    don't read theirs take all of it."""

    def __init__(
        self,
        content: bytes,
        room: RoomLimiter,
        project: str,
        caller: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, status, headers, "application/json")
        self._room = room
        self._project = project
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(self.body)
        if size < LARGE:
            await super().__call__(scope, receive, send)
            return
        async with self._room.taking(self._project, self._caller, size):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for first in range(0, size, PART):
                part = bytes(self.body[first : first + PART])
                await send({"type": "http.response.body", "body": part, "more_body": first + PART < size})
