"""Takes the pictures of the dashboard in docs/images: `python -m docs.pictures`, or `make pictures`.

They show the help desk of `heedful demo --dashboard`, with the bundled model and always with the same traffic and date.
It needs the extra `dev`, and Chromium.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote_plus

import uvicorn
from playwright.sync_api import Browser, ViewportSize, expect, sync_playwright

from heedful.engine import Heedful
from heedful.interfaces.cli.demo_commands import PROJECT, fill_demo
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.app import create
from heedful.interfaces.http.app import admin_key
from heedful.model import Hit
from heedful.simulate.shop import WANTS
from heedful.store import Store

FOLDER = Path(__file__).parent / "images"
UNTIL = datetime(2026, 3, 13, 17, tzinfo=UTC)
LARGEST = 200_000
"""Bytes of a picture."""

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# The parts of a page that come later take their time on a busy machine.
expect.set_options(timeout=60_000)

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
    Picture("facts", "facts?q=How+long+can+I+return+articles%3F&dataset=help", DESK),
    Picture("fact", "facts/{fact}", DESK),
    Picture("learning", "learning?q={question}&dataset=help", DESK),
    Picture("executions", "executions", DESK),
    Picture("execution", "executions/{execution}", DESK),
    Picture("experiments", "experiments", DESK),
    Picture("settings", "settings", DESK),
)


def main() -> None:
    found = (shutil.which(name) for name in BROWSERS)
    browser = next((path for path in found if path), None)
    if browser is None:
        raise SystemExit("there is no Chromium: install it (on Debian: apt-get install chromium-headless-shell)")
    with tempfile.TemporaryDirectory(prefix="heedful-pictures-") as folder:
        file = Path(folder) / "demo.db"
        fill_demo(file, UNTIL)
        store = Store(file, clock=lambda: UNTIL)
        key = admin_key(store).api_key
        opened = store.open(PROJECT)
        places = worth_a_look(opened)
        opened.close()
        with serving(store) as address, sync_playwright() as playwright:
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            for picture in PICTURES:
                take(started, address, key, picture, places)
            started.close()


def worth_a_look(store: Heedful) -> dict[str, str]:
    """Something of each kind that much was said of."""
    items = [
        item for item in store.review.list(target_type="entry", limit=200).items if _from_facts(store, item.item_id)
    ]
    facts = store.usefulness_stats("help").most_useful
    executions = [each for each in store.executions.list(limit=200).items if len(each.result.rows) > 1]
    sessions = store.sessions.list(limit=200).items
    return {
        "item": max(items, key=lambda item: item.opinions).item_id,
        "fact": max(facts, key=lambda fact: fact.signal_count).fact_id,
        "execution": executions[0].execution_id,
        "question": quote_plus(_learnt_question(store)),
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
    expect(page.locator("[aria-busy]")).to_have_count(0)
    page.screenshot(path=picture.file)
    context.close()
    size = picture.file.stat().st_size
    print(f"wrote {picture.file.name}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"{picture.file.name} is larger than {LARGEST:,} bytes")


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """The address of a dashboard on a store, which is closed at the end."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create(store), log_config=None, access_log=False, lifespan="on"))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="dashboard")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _plain(texts: Iterable[str | None]) -> bool:
    """Whether all is said by the shop: what was learnt from visitors has their question in a line of its own."""
    return all(text is not None and "\n" not in text for text in texts)


def _from_facts(store: Heedful, item_id: str) -> bool:
    """Whether an answer comes from what the shop says."""
    evidence = store.review.get(item_id).evidence
    return len(evidence) > 1 and _plain(each.text for each in evidence[:2])


def _learnt_question(store: Heedful) -> str:
    """A question that another fact answers thanks to feedback."""

    def first(question: str, *, boost: bool) -> Hit:
        return views.search(store, question, "help", boost=boost).hits[0]

    for question in (each for want in WANTS for each in want.queries):
        before, now = first(question, boost=False), first(question, boost=True)
        if before.fact_id != now.fact_id and _plain((before.text, now.text)):
            return question
    raise LookupError("feedback changes the first rank of no question")


def _said(store: Heedful, session_id: str) -> int:
    """How much people wrote of a session's answers; nothing, if those repeat what people wrote before."""
    entries = store.sessions.entries(session_id).items
    used = [fact.fact_id for entry in entries for fact in entry.used or []]
    texts = views.texts(store, used)
    plain = bool(used) and _plain(texts.get(fact_id) for fact_id in used)
    return sum(len(entry.feedback_text or "") for entry in entries) if plain else 0


if __name__ == "__main__":
    main()
