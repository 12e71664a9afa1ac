"""A server that accepts connections and answers nothing, or so slowly that no answer ever ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

DRIP = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"


@dataclass
class SilentServer:
    url: str
    drips: bool
    accepted: list[socket.socket] = field(default_factory=list)
    """One for each call that reached it: none gets an answer, so none is used again."""


@contextmanager
def silent_server(*, drips: bool = False) -> Iterator[SilentServer]:
    """Runs one. At the end, all who still wait are cut off."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        server = SilentServer(f"http://127.0.0.1:{listening.getsockname()[1]}", drips)
        threads = [threading.Thread(target=_accept, args=(server, listening), daemon=True)]
        if drips:
            threads.append(threading.Thread(target=_drip, args=(server, ended), daemon=True))
        for thread in threads:
            thread.start()
        try:
            yield server
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(10)
            for each in server.accepted:
                each.close()


def _accept(server: SilentServer, listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            accepted, _ = listening.accept()
            if server.drips:
                accepted.sendall(DRIP)
            server.accepted.append(accepted)


def _drip(server: SilentServer, ended: threading.Event) -> None:
    while not ended.wait(0.02):
        for each in list(server.accepted):
            with suppress(OSError):
                each.sendall(b" ")
