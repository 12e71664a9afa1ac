from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SERVER = """
import socket
from heedful.interfaces.http.connections import ServerConfig
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.app import Workers

if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    # No worker can answer as quickly as this when it has only begun to start.
    impatient = ServerConfig("app:app", Config(), workers=1, timeout_worker_healthcheck=0.2)
    Workers(impatient, sockets=[listening]).run()
"""
APP = """
import os, pathlib

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        pathlib.Path("started").write_text(str(os.getpid()))
        await receive()
"""


@pytest.mark.slow
def test_a_worker_that_starts_slowly_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(SERVER)
    (tmp_path / "app.py").write_text(APP)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "serve.py"], cwd=tmp_path, env=environment)
    try:
        late = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            assert time.monotonic() < late, "no worker has started"
            time.sleep(0.05)
    finally:
        process.terminate()
        process.wait(60)
