"""The server: its application, and starting it with its workers and the first key."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import orjson
import uvicorn
from starlette.middleware.cors import CORSMiddleware
from uvicorn.supervisors import Multiprocess

from heedful.access.credentials import create_key
from heedful.api import CALLS
from heedful.errors import Invalid, Unavailable
from heedful.interfaces.http import calls, foreign_routes, middleware
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig
from heedful.interfaces.http.mcp import Agents
from heedful.interfaces.http.middleware import Application, Endpoint, Measures, Routes
from heedful.interfaces.http.server_routes import ServerRoutes
from heedful.interfaces.http.state import ServerState
from heedful.model import NewKey
from heedful.storage import key_rows as keys
from heedful.store import Store
from heedful.workspace import Workspace

logger = logging.getLogger("heedful.interfaces.http")

CONFIG = "HEEDFUL_SERVER_CONFIG"
"""The variable with the configuration of a worker."""

ALLOWED_HEADERS = (
    *("authorization", "content-type", "idempotency-key", "if-match", foreign_routes.AUTHOR, "x-request-id"),
    *("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
)
"""Headers that pages of other origins may send."""


def create(config: Config, store: Store | None = None) -> Application:
    """The application for a store; `store` is one that is open already."""
    state = ServerState(config, store or open_store(config))
    measures = Measures()
    spans = middleware.provider()
    # MCP needs its extra.
    agents = Agents(state) if config.mcp and find_spec("mcp") is not None else None

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        state.start()
        async with nullcontext() if agents is None else agents.running():
            yield
        state.close()
        if spans is not None:
            await asyncio.to_thread(spans.shutdown)

    routes = _routes(state, measures)
    if agents is not None:
        routes |= {path: {"POST": agents.answer} for path in ("/mcp", f"{calls.PREFIX}/mcp")}
    app = Application(state, Routes(routes), measures, lifespan)
    if config.cors_origins:
        app.respond = CORSMiddleware(
            app.respond,
            allow_origins=config.cors_origins,
            allow_methods=["*"],
            allow_headers=ALLOWED_HEADERS,
            expose_headers=["etag", "x-request-id", "retry-after"],
        )
    if spans is not None:
        app.answer = middleware.Tracing(app.answer, spans)
    return app


def from_environment() -> Application:
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
    """Prepares a process that serves: a log, with a line for each request unless it is to be quiet, and threads that
    take turns often enough."""
    logging.basicConfig(
        level=logging.WARNING if config.quiet else logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(_rename_uvicorn)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # How long a thread waits for the interpreter's lock while another computes; the default is 5 ms.
    sys.setswitchinterval(0.00005)
    # The values of a long body are no garbage: by default, they are looked through again with every 700 of them.
    gc.set_threshold(7_000)


def _rename_uvicorn(record: logging.LogRecord) -> bool:
    """Uvicorn's lines as the server's own: it calls its log uvicorn.error, even where nothing is wrong."""
    if record.name.startswith("uvicorn"):
        record.name = "heedful.interfaces.http"
    return True


def open_store(config: Config, *, background_jobs: bool = False) -> Store:
    return Store(
        config.store,
        embedding=config.embedding,
        language_model=config.language_model,
        sessions=config.sessions,
        background_jobs=background_jobs,
    )


def _routes(state: ServerState, measures: Measures) -> dict[str, dict[str, Endpoint]]:
    """All endpoints, by path and method."""
    routes: dict[str, dict[str, Endpoint]] = {}
    for operation in CALLS.values():
        routes.setdefault(calls.PREFIX + operation.path, {})[operation.method] = calls.endpoint(operation, state)
    routes |= {path: {"GET": answer} for path, answer in ServerRoutes(state, measures).by_path().items()}
    for module in foreign_routes.FOREIGN_APIS:
        for route in module.ROUTES:
            routes.setdefault(route.path, {})[route.method] = foreign_routes.endpoint(route, module, state)
    return routes


GRACE = 30
"""Seconds that calls under way are given to end when the server is stopped; closing takes `CLOSE_SECONDS` at most."""


def first_key(config: Config, store: Store) -> NewKey | None:
    """A key for everything, where the store has none and none was given; with `new_key`, in place of those it has."""
    with store.database.write() as connection:
        good = [row for row in keys.list_keys(connection, None) if row.revoked_at is None]
        if config.new_key:
            for row in good:
                keys.revoke(connection, row.id, store.now())
    if (config.admin_key is not None or good) and not config.new_key:
        return None
    return admin_key(store)


def admin_key(store: Store) -> NewKey:
    workspace = Workspace(store.database, store.embedder, store.default_project, store.clock, shared=True)
    return create_key(workspace, "admin", ["admin"], None, of_all_projects=True)


def serve(config: Config, ready: Callable[[str, NewKey | None], None]) -> None:
    """Serves until it is stopped; `ready` is called with the address, and the first key of a store."""
    set_up(config)
    if config.store == ":memory:" and config.workers > 1:
        message, remedy = "a store in memory can't be shared by several workers", "Use --workers 1, or a file"
        raise Invalid(message, field="workers", value=config.workers, remedy=remedy)
    listening, address = listen(config)
    store = open_store(config)
    try:
        key = first_key(config, store)
    except BaseException:
        store.close()
        raise
    options = {"loop": "asyncio" if find_spec("uvloop") is None else "uvloop", "timeout_graceful_shutdown": GRACE}
    ready(address, key)
    if config.workers == 1:
        # The same store, not the same name: one in memory would be another.
        app = create(config, store)
        try:
            uvicorn.Server(ServerConfig(app, config, **options)).run(sockets=[listening])
        finally:
            if app.state.has_abandoned:
                # The interpreter would wait for their threads.
                os._exit(0)
        return
    store.close()
    with TemporaryDirectory(prefix="heedful-metrics-") as folder:
        os.environ[middleware.SHARED] = folder
        os.environ[CONFIG] = orjson.dumps(config.model_dump()).decode()
        settings = ServerConfig(
            "heedful.interfaces.http.app:from_environment", config, factory=True, workers=config.workers, **options
        )
        Workers(settings, sockets=[listening]).run()


def listen(config: Config) -> tuple[socket.socket, str]:
    """A socket that others can reach, and its address."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise _not_listening(config, error) from error
    listening.listen(2048)
    listening.set_inheritable(True)
    host, port = listening.getsockname()[:2]
    return listening, f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _not_listening(config: Config, error: OSError) -> Unavailable:
    message = f"can't listen on {config.host}:{config.port} ({error.strerror})"
    if error.errno == errno.EADDRINUSE:
        return Unavailable(message, code="address_in_use", remedy="Choose another --port, or stop what uses it")
    if isinstance(error, socket.gaierror):
        remedy = "--host is not known: use an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all"
    elif error.errno == errno.EADDRNOTAVAIL:
        remedy = "--host is not an address of this machine: use 127.0.0.1, or 0.0.0.0 for all"
    elif error.errno in (errno.EACCES, errno.EPERM):
        remedy = "This user may not use it: choose a --port of 1024 or above"
    else:
        remedy = "Choose another --host or --port"
    return Unavailable(message, code="address_unusable", remedy=remedy)


STARTING = 120
"""Seconds that a worker has to start."""


class Workers(Multiprocess):
    """Starts workers, and replaces those that die. A worker is given time to start: uvicorn kills one that doesn't
    answer within five seconds, which on a slow machine is every one, again and again."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._deadlines: dict[int | None, float] = {}
        """Until when a process may take to start; 0 once it answered."""

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            deadline = self._deadlines.setdefault(process.pid, time.monotonic() + STARTING)
            if time.monotonic() < deadline:
                if process.exitcode is None and not process.ping(timeout=0.01):
                    return
                self._deadlines[process.pid] = 0
        super().keep_subprocess_alive()
