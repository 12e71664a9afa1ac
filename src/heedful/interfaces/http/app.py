"""The application: routes and middleware."""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from importlib.util import find_spec
from types import ModuleType

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from heedful.errors import HeedfulError, Invalid, NotFound
from heedful.interfaces.http import (
    administration,
    calls,
    cognee,
    compatible,
    hindsight,
    mongodb_session_manager,
    text2everything,
)
from heedful.interfaces.http.agents import Agents
from heedful.interfaces.http.assets import api_pages, widget
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import BodyTimeout
from heedful.interfaces.http.envelope import Envelope, document, headers_of
from heedful.interfaces.http.metrics import Measures, Tracing, provider
from heedful.interfaces.http.routing import Endpoint, Routes
from heedful.interfaces.http.state import State
from heedful.interfaces.operations import OPERATIONS
from heedful.store import Store
from heedful.version import __version__

logger = logging.getLogger("heedful.interfaces.http")

CONFIG = "HEEDFUL_SERVER_CONFIG"
"""The variable with the configuration of a worker."""

MCP_HEADERS = ("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id")
"""What clients of MCP send besides."""

COMPATIBLE_APIS: tuple[ModuleType, ...] = (
    hindsight,
    text2everything,
    cognee,
    mongodb_session_manager,
)
"""Systems whose clients find their own routes here."""


def create(config: Config, store: Store | None = None) -> FastAPI:
    """The application for a store; `host` is one that is open already."""
    state = State(config, store or open_store(config))
    measures = Measures()
    spans = provider()
    agents = _agents(state)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state.start()
        async with nullcontext() if agents is None else agents.running():
            yield
        state.close()
        if spans is not None:
            await asyncio.to_thread(spans.shutdown)

    app = FastAPI(
        title="Heedful",
        version=__version__,
        lifespan=lifespan,
        # FastAPI's own pages would load scripts from elsewhere.
        openapi_url=None,
        exception_handlers={HeedfulError: _error_response, HTTPException: _not_found},
    )
    app.router.redirect_slashes = False
    routes = _routes(state, measures)
    if agents is not None:
        routes |= {path: {"POST": agents.answer} for path in ("/mcp", f"{calls.PREFIX}/mcp")}
    app.router.routes.append(Routes(routes))
    if config.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["*"],
            allow_headers=[
                "authorization",
                "content-type",
                "idempotency-key",
                "if-match",
                compatible.AUTHOR,
                "x-request-id",
                *MCP_HEADERS,
            ],
            expose_headers=["etag", "x-request-id", "retry-after"],
        )
    app.add_middleware(BodyTimeout, seconds=config.body_seconds)
    app.add_middleware(Envelope, measures=measures, refusals=state.refusals)
    if spans is not None:
        app.add_middleware(Tracing, provider=spans)
    app.state.heedful = state
    return app


def from_environment() -> FastAPI:
    """The application of a worker that another process has started."""
    config = Config(**orjson.loads(os.environ[CONFIG]))
    set_up(config)
    threading.Thread(target=_end_with_parent, name="heedful-parent", daemon=True).start()
    return create(config)


def _end_with_parent() -> None:
    """Stops this worker when the process that minds it has died: nobody else would, and it holds the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        logger.error("the process that started this worker has died: stopping")
        os.kill(os.getpid(), signal.SIGTERM)


def set_up(config: Config) -> None:
    """What a process that serves needs: a log, and threads that take turns often enough."""
    log(config)
    # How long a thread waits for the interpreter's lock while another computes; the default is 5 ms.
    sys.setswitchinterval(0.00005)
    # The values of a long body are no garbage: by default, they are looked through again with every 700 of them.
    gc.set_threshold(7_000)


def log(config: Config) -> None:
    """Has a line for each request written to standard error, unless it is to be quiet."""
    logging.basicConfig(
        level=logging.WARNING if config.quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(_rename_uvicorn)
    for noisy in ("alembic", "procrastinate"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _rename_uvicorn(record: logging.LogRecord) -> bool:
    """Uvicorn's lines as the server's own: it calls its log uvicorn.error, even where nothing is wrong."""
    if record.name.startswith("uvicorn"):
        record.name = "heedful.interfaces.http"
    return True


def open_store(config: Config, *, background_jobs: bool = False) -> Store:
    """The store that a server serves."""
    return Store(
        config.store,
        embedding=config.embedding,
        language_model=config.language_model,
        sessions=config.sessions,
        background_jobs=background_jobs,
    )


def _agents(state: State) -> Agents | None:
    """What answers agents, where it is wanted and the extra is there."""
    return Agents(state) if state.config.mcp and find_spec("mcp") is not None else None


def _routes(state: State, measures: Measures) -> dict[str, dict[str, Endpoint]]:
    """What answers, by path and method."""
    routes: dict[str, dict[str, Endpoint]] = {}
    for operation in OPERATIONS.values():
        routes.setdefault(calls.PREFIX + operation.path, {})[operation.method] = calls.endpoint(operation, state)
    routes["/"] = {"GET": _root(state)}
    routes["/healthz"] = {"GET": administration.healthz(state)}
    routes["/health"] = {"GET": administration.health(state)}
    routes["/readyz"] = {"GET": administration.readyz(state)}
    routes["/widget.js"] = {"GET": widget()}
    routes["/metrics"] = {"GET": administration.metrics(state, measures)}
    routes["/openapi.json"] = {"GET": administration.openapi(state)}
    if state.config.api_docs:
        routes |= {path: {"GET": endpoint} for path, endpoint in api_pages().items()}
    routes["/v1/projects"] = {"GET": administration.projects(state)}
    routes["/v1/jobs"] = {"GET": administration.jobs(state)}
    routes["/v1/audit"] = {"GET": administration.audit(state)}
    for module in COMPATIBLE_APIS:
        for route in module.ROUTES:
            routes.setdefault(route.path, {})[route.method] = compatible.endpoint(route, module, state)
    return routes


def _root(state: State) -> Endpoint:
    """What this is, for those who look with a browser; it needs no key."""
    info = {"name": "heedful", "version": __version__, "openapi": "/openapi.json"}
    if state.config.api_docs:
        info["docs"] = "/docs"

    async def answer(request: Request) -> Response:
        return Response(orjson.dumps(info), media_type="application/json")

    return answer


async def _error_response(request: Request, error: Exception) -> Response:
    request.scope["heedful.error"] = error
    status, body, problem = document(error, request.scope["heedful.request_id"])
    return Response(body, status, headers_of(problem, status), "application/problem+json")


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        problem: HeedfulError = Invalid(
            f"{request.method} is not allowed here", code="method", value=request.method, remedy=f"Use {allowed}"
        )
        response = await _error_response(request, problem)
        response.headers["Allow"] = allowed
        return response
    missing = NotFound(f"no route for {request.url.path[:200]}", code="no_route", remedy="All routes: /openapi.json")
    return await _error_response(request, missing)
