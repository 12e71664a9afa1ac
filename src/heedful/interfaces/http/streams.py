"""Calls that tell how they go: callbacks as events of a stream, then the result or the problem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from heedful.interfaces.http.envelope import document
from heedful.interfaces.http.state import State
from heedful.interfaces.operations import Shape


def wants_stream(request: Request, made: Shape) -> bool:
    """Whether the caller asks for a stream, and there is something to stream."""
    return bool(made.callbacks) and "text/event-stream" in request.headers.get("accept", "")


def stream(state: State, request: Request, made: Shape, call: Callable[[Mapping[str, Any]], bytes]) -> Response:
    """Runs a call and sends what it tells; it is done to the end, also when nobody listens any more."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def tell(name: str, *given: Any) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event(name, orjson.dumps(given)))

    async def work() -> None:
        try:
            result = await state.run(lambda: call({name: partial(tell, name) for name in made.callbacks}))
            queue.put_nowait(event("result", result))
        except Exception as error:
            request.scope["heedful.error"] = error
            queue.put_nowait(event("problem", document(error, request.scope["heedful.request_id"])[1]))
        finally:
            queue.put_nowait(None)

    async def events(task: asyncio.Task[None]) -> AsyncIterator[bytes]:
        while (each := await queue.get()) is not None:
            yield each
        await task

    return StreamingResponse(
        events(asyncio.ensure_future(work())), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


def event(name: str, data: bytes) -> bytes:
    """One event of a stream; JSON has no line breaks of its own."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
