"""A server of the tests in a thread of their own process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


@contextmanager
def threaded(server: uvicorn.Server, port: int = 0) -> Iterator[str]:
    """Runs a server in a thread; its address."""
    listening = socket.create_server(("127.0.0.1", port), backlog=512)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="server")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
