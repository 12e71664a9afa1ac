"""The example of the widget, run as it stands."""

from __future__ import annotations

import importlib.util
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, expect
from server import Running, running

EXAMPLE = Path(__file__).parents[2] / "examples" / "widget" / "app.py"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Running]]:
    """Its address, and the server that it calls."""
    listening = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with running(tmp_path / "store.db", cors_origins=[origin]) as server:
        spec = importlib.util.spec_from_file_location("widget_example", EXAMPLE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        page = EXAMPLE.with_name("index.html").read_text(encoding="utf-8")
        (tmp_path / "index.html").write_text(page.replace("http://127.0.0.1:8000", server.url), encoding="utf-8")
        monkeypatch.setattr(module, "__file__", str(tmp_path / "app.py"))
        memory = server.connect()
        memory.remember(module.FACTS)
        site = uvicorn.Server(uvicorn.Config(module.create(memory, server.url), log_config=None))
        thread = threading.Thread(target=lambda: site.run(sockets=[listening]), name="example")
        thread.start()
        try:
            yield origin, server
        finally:
            site.should_exit = True
            thread.join()
            listening.close()
            memory.close()


@pytest.mark.slow
def test_a_visitor_asks_rates_and_may_take_a_long_time(browser: Browser, example: tuple[str, Running]) -> None:
    origin, server = example
    page = browser.new_page()
    page.goto(origin)
    page.get_by_role("textbox", name="Question").fill("Where is <b>feedback</b> stored?")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("article")).to_contain_text("ledger")
    server.clock.advance(hours=1)
    page.get_by_role("button", name="Helpful", exact=True).click()
    page.get_by_role("textbox", name="Anything to add?").fill("Clear.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("button", name="Comment")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Saved")
    with server.connect() as memory:
        [session] = memory.sessions.list().items
        [entry] = memory.sessions.entries(session.session_id).items
    assert entry.question == "Where is <b>feedback</b> stored?"
    assert (entry.feedback_score, entry.feedback_text) == (5, "Clear.")
    page.close()
