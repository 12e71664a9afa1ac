"""The processes of a server that has several."""

from __future__ import annotations

import socket
import time

from uvicorn import Config
from uvicorn.supervisors import Multiprocess

STARTING = 120
"""Seconds that a worker has to start."""


class Workers(Multiprocess):
    """Starts workers, and replaces those that die. A worker is given time to start: uvicorn kills one that doesn't
    answer within five seconds, which on a slow machine is every one, again and again."""

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
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
