"""A network that fails: stands between a client and a server, and cuts, delays or holds what they send."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

Fate = Literal["passes", "before", "half", "after"]
"""What becomes of something sent: it passes, or the connection is cut before it arrives, when half of it has arrived,
or when it was done, before its answer arrives."""

Choice = Callable[[bytes], Fate]


def at_random(seed: int, *, marked: bytes = b"", chance: float = 0.06) -> Choice:
    """Cuts now and then, in all ways; only what holds a mark, if there is one, is cut before or after."""
    source = random.Random(seed)
    lock = threading.Lock()

    def choose(sent: bytes) -> Fate:
        with lock:
            if source.random() >= chance * (2 if marked and marked in sent else 1):
                return "passes"
            return source.choice(["before", "after", "half"]) if marked in sent else "half"

    return choose


@dataclass(slots=True)
class _Connection:
    client: socket.socket
    server: socket.socket
    doomed: bool = False
    """Whether it is cut as soon as the server answers."""

    def cut(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                # At once, without a word.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Listens on a port of its own, and passes everything on to another one of this machine."""

    def __init__(self, port: int, choose: Choice = lambda sent: "passes", *, delay: float = 0.0) -> None:
        """`delay` is how many seconds each piece takes that arrives, in both directions."""
        self._target = ("127.0.0.1", port)
        self._choose = choose
        self._delay = delay
        self._free = threading.Event()
        self._free.set()
        self._closing = False
        self._connections: list[_Connection] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.fates: Counter[Fate] = Counter()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listening.getsockname()[1]
        self._run(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing = True
        self._free.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in list(self._connections):
            connection.cut()
        for thread in list(self._threads):
            thread.join()
        for connection in self._connections:
            connection.client.close()
            connection.server.close()

    def hold(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        self._free.clear()

    def release(self) -> None:
        """What was held arrives."""
        self._free.set()

    def _run(self, work: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=work, args=given)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(client, server)
            with self._lock:
                self._connections.append(connection)
            self._run(self._up, connection)
            self._run(self._down, connection)

    def _up(self, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while sent := self._received(connection.client):
                fate = self._choose(sent)
                with self._lock:
                    self.fates[fate] += 1
                if fate == "before":
                    break
                connection.doomed = fate == "after"
                connection.server.sendall(sent[: len(sent) // 2] if fate == "half" else sent)
                if fate == "half":
                    break
        connection.cut()

    def _down(self, connection: _Connection) -> None:
        with contextlib.suppress(OSError):
            while (sent := self._received(connection.server)) and not connection.doomed:
                connection.client.sendall(sent)
        connection.cut()

    def _received(self, end: socket.socket) -> bytes:
        sent = end.recv(65536)
        if self._delay:
            time.sleep(self._delay)
        self._free.wait()
        return sent
