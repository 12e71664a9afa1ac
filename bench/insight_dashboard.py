"""The dashboard over many page loads: how long the overview takes, and whether its process grows."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

import heedful
from heedful.testing import WordEmbedder

START = (
    "import sys; from heedful.dashboard.app import create; from heedful.opening import Host; "
    "from heedful.testing import WordEmbedder; import uvicorn; "
    "app = create(Host(sys.argv[1], embedding=WordEmbedder())); "
    "uvicorn.run(app, port=int(sys.argv[2]), log_level='warning')"
)
PAGES = ("overview", "sessions", "facts", "review", "executions", "experiments")


@dataclass(frozen=True, slots=True)
class Loads:
    first_ms: float
    p50_ms: float
    early_mb: float
    late_mb: float


def loads(where: str, count: int) -> Loads:
    """Loads the overview `count` times, and another page after each tenth."""
    with heedful.open(where, embedding=WordEmbedder(), worker=False) as store:
        key = store.keys.create("bench", scopes=["read"]).api_key
    port = _free()
    process = subprocess.Popen([sys.executable, "-c", START, where, str(port)])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, follow_redirects=True) as client:
            _log_in(client, key)
            spent: list[float] = []
            early = 0.0
            for place in range(count):
                started = time.perf_counter()
                client.get("/p/default/overview").raise_for_status()
                spent.append(time.perf_counter() - started)
                if place % 10 == 0:
                    client.get(f"/p/default/{PAGES[place // 10 % len(PAGES)]}").raise_for_status()
                if place == count // 10:
                    early = _memory(process.pid)
            return Loads(spent[0] * 1000, median(spent) * 1000, early, _memory(process.pid))
    finally:
        process.terminate()
        process.wait()


def _log_in(client: httpx.Client, key: str) -> None:
    for _ in range(200):
        try:
            page = client.get("/login")
            break
        except httpx.ConnectError:
            time.sleep(0.1)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    client.post("/login", data={**hidden, "key": key}).raise_for_status()


def _memory(pid: int) -> float:
    """What is resident, in MB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) / 1024


def _free() -> int:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
