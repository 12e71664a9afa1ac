"""The programs in examples/: each runs as it stands, and shows that feedback changes what comes next."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from fastapi.testclient import TestClient
from server import running

import heedful
from heedful.testing import ManualClock

pytestmark = pytest.mark.usefixtures("warm_processes")

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py"))
QUESTION = "How long do I have to return a parcel?"
OTHER_WORDS = "Within how many days can I return a parcel?"
OLD, NEW = '"Parcels can be returned within 14 days." [1]', '"Since May, parcels can be returned within 30 days." [1]'


def program(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLES / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PROGRAMS)
def test_each_is_short_and_listed_for_readers(path: str) -> None:
    assert 30 <= (EXAMPLES / path).read_text(encoding="utf-8").count("\n") <= 80
    assert f"(examples/{path})" in (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    assert f"({path})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_a_thumb_in_the_chat_changes_the_answer_to_other_words_and_can_be_undone() -> None:
    chat = program("chat.py")
    with heedful.open(":memory:") as memory, TestClient(chat.create(memory)) as browser:
        memory.remember(chat.FACTS)
        assert QUESTION in browser.get("/").text
        first = browser.post("/ask", json={"question": QUESTION}).json()
        assert first["answer"] == OLD
        assert browser.post("/rate", json={"answer_id": first["answer_id"], "thumb": "down"}).json() is True
        memory.improve()
        assert browser.post("/ask", json={"question": OTHER_WORDS}).json()["answer"] == NEW
        assert browser.post("/rate", json={"answer_id": first["answer_id"], "thumb": "undo"}).json() is True
        assert browser.post("/ask", json={"question": OTHER_WORDS}).json()["answer"] == OLD


def test_confirmed_sql_is_reused_with_other_values_and_nothing_else_is() -> None:
    answers = program("text_to_sql.py").main()
    assert [(answer.rows, answer.origin) for answer in answers] == [
        ([[120]], "written by the model"),
        ([[310]], "reused"),
        ([[815]], "written by the model"),
    ]


@pytest.mark.slow
def test_the_page_with_the_widget_gets_answers_and_tokens_for_them(tmp_path: Path) -> None:
    widget = program("widget/app.py")
    with (
        running(tmp_path / "store.db") as server,
        server.connect() as memory,
        TestClient(widget.create(memory, server.url)) as browser,
    ):
        memory.remember(widget.FACTS)
        page = browser.get("/").text
        assert "/widget.js" in page
        shown = browser.get("/answer", params={"question": "Where is feedback stored?"}).json()
        assert "ledger" in shown["answer"]
        again = browser.get("/token", params={"qa_id": shown["qa-id"]}).json()["token"]
        # As the widget does.
        rated = httpx.put(
            f"{shown['server']}/v1/projects/default/sessions/{shown['session-id']}/entries/{shown['qa-id']}/feedback",
            json={"feedback_score": 5},
            headers={"Authorization": f"Bearer {again}"},
        )
        assert rated.status_code == 200, rated.text
        entry = memory.sessions.entry(shown["session-id"], shown["qa-id"])
    assert (entry.feedback_score, entry.used is None) == (5, True)


@pytest.mark.slow
def test_the_digest_says_what_people_said_and_what_to_fix() -> None:
    clock = ManualClock()
    with heedful.open(":memory:", clock=clock, worker=False) as memory:
        memory.remember(["Parcels can be returned within 14 days.", "A gift card is valid for one year."])
        for question, score, comment in [(QUESTION, 1, "It is 30 days."), ("How long is a gift card valid?", 5, None)]:
            found = memory.recall(question, session_id="chat-1")
            memory.sessions.add_feedback("chat-1", str(found.qa_id), comment, score, author="ada")
        mail = program("nightly_digest.py").write(memory, clock.now + timedelta(hours=1))
    assert mail["Subject"] == "default: 50% satisfied in a day"
    assert "Answers rated: 2 of 2" in mail.get_content()
    assert f'- {QUESTION}: 1 negative, "It is 30 days."' in mail.get_content()


@pytest.mark.slow
def test_the_digest_runs_as_in_a_crontab(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    heedful.open(store, worker=False).close()
    command = [sys.executable, str(EXAMPLES / "nightly_digest.py")]
    around = {name: value for name, value in os.environ.items() if name != "SMTP_HOST"}
    done = subprocess.run([*command, str(store)], env=around, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("default: ")
    assert done.stdout.count("nobody said anything") == 1
    assert "To fix first" not in done.stdout
    missing = subprocess.run(
        [*command, str(tmp_path / "no.db")], env=around, capture_output=True, text=True, timeout=60
    )
    assert missing.returncode == 1
    assert missing.stderr.startswith("Usage: ")
    assert not (tmp_path / "no.db").exists()
