"""Routes of another system behind a real socket, so that its own clients can be let loose on them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heedful import Conflict, Forbidden, Heedful, HeedfulError, Invalid, NotFound, Unavailable
from heedful.web.wire import Asked, Reply, Wire

KINDS = {Invalid: 422, NotFound: 404, Conflict: 409, Forbidden: 403, Unavailable: 503}


@contextmanager
def served(store: Heedful, module: ModuleType) -> Iterator[str]:
    """The address of a server that has the routes of a module, on one project."""
    routes = [Route(wire.path, _endpoint(store, module, wire), methods=[wire.method]) for wire in module.ROUTES]
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _endpoint(store: Heedful, module: ModuleType, wire: Wire) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        asked = await _asked(request)
        try:
            answer = await run_in_threadpool(wire.handle, store, asked)
        except HeedfulError as error:
            status = next(number for kind, number in KINDS.items() if isinstance(error, kind))
            status = module.STATUSES.get(status, status)
            answer = Reply(status, module.refused(error, status))
        reply = answer if isinstance(answer, Reply) else Reply(wire.status, answer)
        return Response(
            orjson.dumps(reply.body, default=lambda value: value.model_dump(mode="json")),
            reply.status,
            dict(reply.headers),
            "application/json",
        )

    return endpoint


async def _asked(request: Request) -> Asked:
    files: dict[str, bytes] = {}
    fields: dict[str, str] = {}
    body: Any = None
    if request.headers.get("content-type", "").startswith("multipart/"):
        async with request.form() as form:
            for place, (name, value) in enumerate(form.multi_items()):
                if isinstance(value, UploadFile):
                    files[name if name not in files else f"{name}[{place}]"] = await value.read()
                else:
                    fields[name] = value
    elif raw := await request.body():
        body = orjson.loads(raw)
    return Asked(
        path=request.path_params,
        query=dict(request.query_params),
        body=body,
        headers=dict(request.headers),
        files=files,
        fields=fields,
        server=None,  # type: ignore[arg-type]
    )
