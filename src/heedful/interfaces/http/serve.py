"""Starting a server: workers on one store, and the first key."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory

import orjson
import uvicorn
from uvicorn.supervisors import Multiprocess

from heedful.access.keys import create_key
from heedful.errors import Invalid, Unavailable
from heedful.interfaces.http.app import CONFIG, create, open_store, set_up
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig
from heedful.interfaces.http.metrics import SHARED
from heedful.memory.workspace import Workspace
from heedful.model import NewKey
from heedful.storage import keys
from heedful.store import Store

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
    """A new key for everything."""
    workspace = Workspace(store.database, store.embedder, store.default_project, store.clock, shared=True)
    return create_key(workspace, None, "admin", ["admin"], None)


def serve(config: Config, ready: Callable[[str, NewKey | None], None]) -> None:
    """Serves until it is stopped; `ready` is called with the address, and the first key of a store."""
    set_up(config)
    _check_shared(config)
    listening, address = listen(config)
    store = open_store(config)
    try:
        key = first_key(config, store)
    except BaseException:
        store.close()
        raise
    options = {"loop": "uvloop" if _have("uvloop") else "asyncio", "timeout_graceful_shutdown": GRACE}
    ready(address, key)
    if config.workers == 1:
        # The same store, not the same name: one in memory would be another.
        app = create(config, store)
        try:
            uvicorn.Server(ServerConfig(app, config.limits, **options)).run(sockets=[listening])
        finally:
            if app.state.heedful.has_abandoned:
                # The interpreter would wait for their threads.
                os._exit(0)
        return
    store.close()
    with TemporaryDirectory(prefix="heedful-metrics-") as folder:
        os.environ[SHARED] = folder
        os.environ[CONFIG] = orjson.dumps(config.model_dump()).decode()
        settings = ServerConfig(
            "heedful.interfaces.http.app:from_environment",
            config.limits,
            factory=True,
            workers=config.workers,
            **options,
        )
        Workers(settings, sockets=[listening]).run()


def _check_shared(config: Config) -> None:
    if config.store == ":memory:" and config.workers > 1:
        raise Invalid(
            "a store in memory can't be shared by several workers",
            field="workers",
            value=config.workers,
            remedy="Use --workers 1, or a file",
        )


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


def _have(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


STARTING = 120
"""Seconds that a worker has to start."""


class Workers(Multiprocess):
    """Starts workers, and replaces those that die. A worker is given time to start: uvicorn kills one that doesn't
    answer within five seconds, which on a slow machine is every one, again and again."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._late: dict[int | None, float] = {}
        """Until when a process may take to start; 0 once it answered."""

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            late = self._late.setdefault(process.pid, time.monotonic() + STARTING)
            if time.monotonic() < late:
                if process.exitcode is None and not process.ping(timeout=0.01):
                    return
                self._late[process.pid] = 0
        super().keep_subprocess_alive()
