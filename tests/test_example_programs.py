"""The programs in examples/: each runs, and shows that answers become better."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from server import Running, running

pytestmark = pytest.mark.usefixtures("warm_processes")

EXAMPLES = Path(__file__).parents[1] / "examples"


def program(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLES / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "store.db") as server:
        yield server


def test_the_support_agent_becomes_right(tmp_path: Path) -> None:
    shares = program("support_agent/improve.py").main(picture=tmp_path / "improvement.svg")
    assert shares[0] < 0.7
    assert shares[-1] == 1
    assert (tmp_path / "improvement.svg").read_text(encoding="utf-8").startswith("<svg")


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]


def test_an_answer_of_the_support_agent_streams_and_is_rated(served: Running) -> None:
    app = program("support_agent/support.py")
    with served.connect() as memory, TestClient(app.create(memory, served.url, "http://dashboard")) as browser:
        memory.remember("You can return a parcel within 30 days.")
        page = browser.get("/").text
        assert f"{served.url}/widget.js" in page
        said = events(browser.post("/ask", json={"question": "Within how many days can I return a parcel?"}).text)
        assert "".join(each["part"] for each in said[:-1]) == "You can return a parcel within 30 days. [1]"
        rated = said[-1]["done"]
        # As the widget does.
        answer = httpx.put(
            f"{served.url}/v1/projects/default/sessions/{rated['session_id']}/entries/{rated['qa_id']}/feedback",
            json={"feedback_score": 5},
            headers={"Authorization": f"Bearer {rated['token']}"},
        )
        assert answer.status_code == 200, answer.text
        assert memory.sessions.entry(rated["session_id"], rated["qa_id"]).feedback_score == 5
        assert browser.get("/token", params={"qa_id": rated["qa_id"]}).json()["token"]


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def test_the_support_agent_starts_with_one_command(tmp_path: Path) -> None:
    ports = {name: free_port() for name in ("PORT", "SERVER_PORT", "DASHBOARD_PORT")}
    command = [sys.executable, str(EXAMPLES / "support_agent/support.py")]
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | ports, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as started:
        try:
            assert started.stdout is not None
            line = next(line for line in started.stdout if line.startswith("Ask at"))
            assert f"http://127.0.0.1:{ports['DASHBOARD_PORT']}" in line
            transport = httpx.HTTPTransport(retries=20)
            with httpx.Client(transport=transport, timeout=30) as browser:
                origin = f"http://127.0.0.1:{ports['PORT']}"
                assert "How can we help?" in browser.get(origin).text
                said = events(browser.post(f"{origin}/ask", json={"question": "How are refunds paid?"}).text)
                assert "done" in said[-1]
        finally:
            started.terminate()
    for name in ("SERVER_PORT", "DASHBOARD_PORT"):
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{ports[name]}")


def test_the_bot_runs_proven_sql_again(tmp_path: Path) -> None:
    shares = program("sql_bot/bot.py").main(picture=tmp_path / "reuse.svg")
    assert shares[0] < shares[-1] == 1
    assert (tmp_path / "reuse.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_reaction_that_is_removed_counts_no_more(tmp_path: Path) -> None:
    import sqlite3

    import heedful
    from heedful.testing import WordEmbedder

    bots = program("sql_bot/bot.py")
    shop = sqlite3.connect(tmp_path / "shop.db")
    shop.executescript(bots.SHOP)
    shop.close()
    with heedful.open(tmp_path / "memory.db", embedding=WordEmbedder(), worker=False) as memory:
        memory.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.db'}")
        bot = bots.Bot(memory, "shop", bots.scripted)
        question = "How much did we sell in Rome in 2025?"
        assert bot.ask(question, "1.0").text.startswith("120\n")
        bot.react("1.0", "+1", "ada")
        bot.react("1.0", "eyes", "ada")
        assert bot.ask(question, "2.0").reused
        bot.react("1.0", "+1", "ada", removed=True)
        assert not bot.ask(question, "3.0").reused
