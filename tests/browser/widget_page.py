"""A real Chromium, a server, and pages of another origin with widgets in them."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from server import Running, running

from heedful.interfaces.client.surface import RemoteHeedful

# Machines that test are busy.
expect.set_options(timeout=30_000)

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows, and takes half the time."""
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), "")
REQUIRED = bool(os.environ.get("CI") or os.environ.get("HEEDFUL_REQUIRE_BROWSER"))
MISSING = "NO CHROMIUM: the widget and the dashboard are NOT tested. On Debian: apt-get install chromium-headless-shell"
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

MORNING = datetime(2026, 1, 1, 8, tzinfo=UTC)

POLICY = "default-src 'none'; script-src 'self' {server}; connect-src {server}; style-src 'none'; base-uri 'none'"
"""What a strict page allows: no inline scripts, no styles, and calls to the server alone."""


class Site:
    """A site of its own origin, which serves the pages that it is given."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.policy = ""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = site.pages.get(self.path)
                self.send_response(404 if body is None else 200)
                kind = "text/javascript" if self.path.endswith(".js") else "text/html"
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Security-Policy", site.policy)
                self.end_headers()
                self.wfile.write((body or "").encode())

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="site")
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@dataclass
class Shown:
    """A page with widgets, and what they told it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    @property
    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate("window.events")
        return found

    def wait_for(self, name: str, count: int = 1) -> dict[str, Any]:
        """The last event of a name, when there are so many."""
        self.page.wait_for_function(
            "([name, count]) => window.events.filter((each) => each.type === name).length >= count", arg=[name, count]
        )
        return [each for each in self.events if each["type"] == name][-1]


LISTENER = """
window.events = [];
for (const type of ["heedful-feedback", "heedful-confirmed", "heedful-error", "heedful-token-expired"]) {
  document.addEventListener(type, (event) => window.events.push({ type, id: event.target.id, ...event.detail }));
}
"""

Show = Callable[..., Shown]


# Not for the session: as long as it runs, its event loop keeps other tests from running theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        if REQUIRED:
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield launched
        launched.close()


@pytest.fixture
def site() -> Iterator[Site]:
    with closing(Site()) as made:
        yield made


@pytest.fixture
def server(tmp_path: Path, site: Site) -> Iterator[Running]:
    """A server whose pages may come from the site."""
    with running(tmp_path / "store.db", cors_origins=[site.origin]) as started:
        site.policy = POLICY.format(server=started.url)
        yield started


@pytest.fixture
def memory(server: Running) -> Iterator[RemoteHeedful]:
    with server.connect() as connected:
        yield connected


@pytest.fixture
def show(browser: Browser, server: Running, site: Site) -> Iterator[Show]:
    """Opens a page with some widgets: each is its attributes. Nothing on it may be against the page's policy.

    With `clock`, time on the page stands still until it is told to move.
    """
    contexts = []
    pages: list[Shown] = []

    def opening(*widgets: dict[str, str], before: str = "", clock: bool = False, **options: Any) -> Shown:
        context = browser.new_context(**options)
        contexts.append(context)
        shown = Shown(context.new_page())
        pages.append(shown)
        shown.page.on("pageerror", lambda error: shown.problems.append(str(error)))
        shown.page.on(
            "console", lambda said: shown.problems.append(said.text) if "Content Security" in said.text else None
        )
        if clock:
            shown.page.clock.install(time=MORNING)
        made = "".join(tag({"server": server.url, "project": "default", **each}) for each in widgets)
        site.pages["/page.js"] = LISTENER + before
        site.pages["/"] = (
            "<!doctype html><html lang='en'><meta charset='utf-8'><title>Answers</title>"
            f"<script src='/page.js'></script><script src='{server.url}/widget.js' defer></script>"
            f"<body><main><h1>Answers</h1>{made}</main></body></html>"
        )
        shown.page.goto(site.origin)
        if clock:
            shown.page.clock.pause_at(MORNING + timedelta(hours=1))
        return shown

    yield opening
    for context in contexts:
        context.close()
    assert [problem for each in pages for problem in each.problems] == []


def tag(attributes: dict[str, str]) -> str:
    kind = "heedful-suggestion" if "suggestion" in attributes else "heedful-feedback"
    given = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{kind} {given}></{kind}>"
