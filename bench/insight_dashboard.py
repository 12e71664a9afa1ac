"""The dashboard over many page loads: how long the overview takes, whether its process grows, and when it is seen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

import heedful
from heedful.testing import WordEmbedder

START = (
    "import sys; from heedful.interfaces.dashboard.app import create; from heedful.store import Store; "
    "from heedful.testing import WordEmbedder; import uvicorn; "
    "app = create(Store(sys.argv[1], embedding=WordEmbedder())); "
    "uvicorn.run(app, port=int(sys.argv[2]), log_level='warning')"
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMES = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  performance.getEntriesByType("navigation")[0].loadEventEnd,
  Math.max(...performance.getEntriesByType("resource").map((each) => each.responseEnd)),
]"""
PAGES = ("overview", "sessions", "facts", "review", "executions", "experiments")


@dataclass(frozen=True, slots=True)
class Loads:
    first_ms: float
    p50_ms: float
    early_mb: float
    late_mb: float


@dataclass(frozen=True, slots=True)
class Painted:
    """Milliseconds from the click until a browser shows something, has the page, and has the parts that come later."""

    first_ms: float
    loaded_ms: float
    whole_ms: float


def loads(where: str, count: int) -> Loads:
    """Loads the overview `count` times, and another page after each tenth."""
    with _served(where) as (process, address, key), httpx.Client(timeout=120, follow_redirects=True) as client:
        client.base_url = httpx.URL(address)
        client.post("/login", data={"api_key": key}).raise_for_status()
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


def paints(where: str, count: int) -> Painted | None:
    """Medians of the overview in Chromium, `count` times with an empty cache; None where there is no browser."""
    chromium = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    spent: list[list[float]] = []
    with _served(where) as (_, address, key), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(count):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.request.post(f"{address}/login", form={"api_key": key})
            page = context.new_page()
            page.goto(f"{address}/p/default/overview")
            page.locator("[aria-busy]").first.wait_for(state="detached")
            while page.locator("[aria-busy]").count():
                page.wait_for_timeout(10)
            spent.append(page.evaluate(TIMES))
            context.close()
        browser.close()
    first, loaded, whole = (median(times) for times in zip(*spent, strict=True))
    return Painted(first, loaded, whole)


@contextmanager
def _served(where: str) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """A dashboard in a process of its own: that, its address and a key."""
    with heedful.open(where, embedding=WordEmbedder(), worker=False) as store:
        key = store.keys.create("bench", scopes=["read"]).api_key
    port = _free()
    process = subprocess.Popen([sys.executable, "-c", START, where, str(port)])
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(address)
        yield process, address, key
    finally:
        process.terminate()
        process.wait()


def _wait(address: str) -> None:
    for _ in range(200):
        try:
            httpx.get(f"{address}/login").raise_for_status()
            return
        except httpx.ConnectError:
            time.sleep(0.1)


def _memory(pid: int) -> float:
    """What is resident, in MB."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert match is not None
    return int(match[1]) / 1024


def _free() -> int:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
