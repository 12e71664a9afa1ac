"""Takes the pictures of the dashboard in docs/images: `python -m docs.pictures`, or `make pictures`.

They show the help desk of `heedful demo --dashboard`, with the bundled model and always with the same traffic and date.
It needs the extra `dev`, and Chromium.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import uvicorn
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from heedful.dashboard.app import create
from heedful.engine import Heedful
from heedful.opening import Host
from heedful.server.serve import admin_key
from heedful.simulate import traffic

FOLDER = Path(__file__).parent / "images"
PROJECT = "demo"
UNTIL = datetime(2026, 3, 13, 17, tzinfo=UTC)
LARGEST = 200_000
"""Bytes of a picture."""

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: what it is called, and where it is taken; `{fact}` and so on stand for something worth a look."""

    name: str
    place: str
    size: ViewportSize
    theme: Literal["light", "dark"] = "light"

    @property
    def file(self) -> Path:
        return FOLDER / f"dashboard-{self.name}.png"


PICTURES = (
    Picture("overview", "overview", DESK),
    Picture("overview-dark", "overview", DESK, "dark"),
    Picture("overview-phone", "overview", PHONE),
    Picture("review", "review", DESK),
    Picture("review-item", "review/{item}", DESK),
    Picture("sessions", "sessions", DESK),
    Picture("session", "sessions/{session}", DESK),
    Picture("facts", "facts?q=How+long+do+refunds+take%3F&boost=1&dataset=help", DESK),
    Picture("fact", "facts/{fact}", DESK),
    Picture("executions", "executions", DESK),
    Picture("execution", "executions/{execution}", DESK),
    Picture("experiments", "experiments", DESK),
    Picture("settings", "settings", DESK),
)


def main() -> None:
    browser = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))))
    with tempfile.TemporaryDirectory(prefix="heedful-pictures-") as folder:
        store = Path(folder) / "demo.db"
        traffic.fill(store, project=PROJECT, seed=1, until=UNTIL)
        host = Host(store, clock=lambda: UNTIL)
        key = admin_key(host).api_key
        opened = host.project(PROJECT)
        places = worth_a_look(opened)
        opened.close()
        with serving(host) as address, sync_playwright() as playwright:
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            for picture in PICTURES:
                take(started, address, key, picture, places)
            started.close()


def worth_a_look(store: Heedful) -> dict[str, str]:
    """Something of each kind that much was said of."""
    items = store.review.list(target_type="entry", limit=200).items
    facts = [fact for fact in store.usefulness_stats("help").most_useful]
    executions = [each for each in store.executions.list(limit=200).items if len(each.result.rows) > 1]
    sessions = store.sessions.list(limit=200).items
    return {
        "item": max(items, key=lambda item: (item.opinions, bool(item.comment))).item_id,
        "fact": max(facts, key=lambda fact: fact.signal_count).fact_id,
        "execution": executions[0].execution_id,
        "session": max(sessions, key=lambda each: _said(store, each.session_id)).session_id,
    }


def take(browser: Browser, address: str, key: str, picture: Picture, places: dict[str, str]) -> None:
    """Takes one picture, when all that comes later is there."""
    context = browser.new_context(viewport=picture.size, color_scheme=picture.theme)
    page = context.new_page()
    page.goto(f"{address}/login?to=/p/{PROJECT}/overview")
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Log in").click()
    page.goto(f"{address}/p/{PROJECT}/{picture.place.format(**places)}")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=picture.file)
    context.close()
    size = picture.file.stat().st_size
    print(f"wrote {picture.file.name}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"{picture.file.name} is larger than {LARGEST:,} bytes")


@contextmanager
def serving(host: Host) -> Iterator[str]:
    """The address of a dashboard on a store, which is closed at the end."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create(host), log_config=None, access_log=False, lifespan="on"))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="dashboard")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _said(store: Heedful, session_id: str) -> int:
    """How much people wrote of a session's answers."""
    return sum(len(entry.feedback_text or "") for entry in store.sessions.entries(session_id).items)


if __name__ == "__main__":
    main()
