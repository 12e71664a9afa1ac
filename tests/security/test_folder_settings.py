"""heedful.toml of a folder that is somebody else's: it must not decide where the facts of another store are sent."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from command import run_main

import heedful
from heedful import Invalid, settings

QUESTION = "What is the alarm code?"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder with a store of private facts."""
    folder = tmp_path / "home"
    folder.mkdir()
    with heedful.open(folder / "private.db", embedding="fast") as store:
        store.remember("The alarm code of the office is 4711.")
    return folder


@pytest.fixture
def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody else, which is the current one."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def received() -> Iterator[tuple[str, list[str]]]:
    """The address of a language model, and what it was sent."""
    bodies: list[str] = []

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])).decode())
            reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": "It is 4711 [1]."}}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1#m", bodies
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_clone_does_not_choose_the_model_of_a_store_elsewhere(
    home: Path, cloned: Path, received: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, bodies = received
    file = cloned / "heedful.toml"
    file.write_text(f'language_model = "{address}"\nauthors_to_teach = 1\n')
    ask = ("--embedding", "fast", "recall", QUESTION, "--answer")
    private = str(home / "private.db")
    assert run_main("--store", private, *ask).returncode == 0
    monkeypatch.setenv("HEEDFUL_STORE", private)
    assert run_main(*ask).returncode == 0
    with heedful.open(private, embedding="fast") as store:
        store.recall(QUESTION, answer=True)
    assert bodies == []
    # Whoever names the file trusts it.
    monkeypatch.setenv("HEEDFUL_CONFIG", str(file))
    assert run_main("--store", private, *ask).returncode == 0
    assert "4711" in bodies[0]


@pytest.mark.slow
def test_it_is_said_what_was_ignored_and_what_to_do(home: Path, cloned: Path) -> None:
    file = cloned / "heedful.toml"
    file.write_text('language_model = "http://127.0.0.1:9/v1#m"\ntrusted_proxies = ["10.0.0.1"]\nproject = "default"\n')
    ran = subprocess.run(
        [sys.executable, "-m", "heedful", "--store", home / "private.db", "--embedding", "fast", "facts"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "4711" in ran.stdout
    assert ran.stderr.count("ignored") == 1
    assert f"ignored language_model, trusted_proxies in {file}" in ran.stderr
    assert f"HEEDFUL_CONFIG={file}" in ran.stderr


@pytest.mark.parametrize(
    "store",
    [
        "{home}/private.db",
        "../home/private.db",
        "link.db",
        "folder/private.db",
        "~/private.db",
        "sqlite:///{home}/private.db",
        "sqlite:////{home}/private.db",
        "SQLite:///../home/private.db",
        "sqlite:///file:{home}/private.db?uri=true",
        "sqlite:///mine.db?uri=true",
        ":memory:",
        "postgresql://localhost/heedful",
        "postgresql://me@localhost/heedful",
        "postgresql://localhost/heedful?password=x:y@z",
        "postgresql:///heedful",
        # Any password will do where the database asks for none.
        "postgresql://me:secret@localhost/heedful",
    ],
)
def test_a_store_elsewhere_is_not_the_folders_even_if_its_file_names_it(
    store: str, home: Path, cloned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    (cloned / "link.db").symlink_to(home / "private.db")
    (cloned / "folder").symlink_to(home)
    for line in (
        'language_model = "http://127.0.0.1:9/v1#m"',
        'language_model_api_key = "k"',
        'embedding = "http://127.0.0.1:9/v1#m"',
        'embedding_api_key = "k"',
        'sessions = "mongodb://127.0.0.1:9/x"',
        'digest_webhook = "http://127.0.0.1:9/"',
        'digest_email = "me@example.com"',
        'trusted_proxies = ["0.0.0.0/0"]',
        'connector_hosts = ["db.example.com"]',
        'connector_folders = ["/"]',
        'connector_secrets = ["CRM"]',
        "authors_to_teach = 1",
        "authors_to_veto = 9",
        "receipt_days = 1",
        "audit_days = 1",
    ):
        (cloned / "heedful.toml").write_text(f"store = '{store.format(home=home)}'\n{line}\n")
        name = line.partition(" ")[0]
        assert getattr(settings.load({}), name) == getattr(settings.Settings(), name)
        found = settings.load({"HEEDFUL_STORE": store.format(home=home)})
        assert getattr(found, name) == getattr(settings.Settings(), name)


@pytest.mark.parametrize("store", ["mine.db", "below/mine.db", "sqlite:///mine.db", "{cloned}/mine.db"])
def test_a_store_of_the_folder_has_the_folders_settings(store: str, cloned: Path) -> None:
    named = store.format(cloned=cloned)
    (cloned / "heedful.toml").write_text(f'store = "{named}"\nlanguage_model = "http://127.0.0.1:9/v1#m"\n')
    assert settings.load({}).language_model == "http://127.0.0.1:9/v1#m"
    (cloned / "heedful.toml").write_text('language_model = "http://127.0.0.1:9/v1#m"\n')
    assert settings.load({}).language_model == "http://127.0.0.1:9/v1#m"
    assert settings.load({}, store=named).language_model == "http://127.0.0.1:9/v1#m"


def test_settings_that_send_nothing_count_for_every_store(home: Path, cloned: Path) -> None:
    (cloned / "heedful.toml").write_text('embedding = "fast"\nproject = "other"\nquery_rows = 7\n')
    found = settings.load({}, store=home / "private.db")
    assert (found.embedding, found.project, found.query_rows) == ("fast", "other", 7)


def test_every_setting_is_guarded_or_known_to_send_nothing() -> None:
    harmless = {"store", "project", "embedding", "embedding_timeout", "language_model_timeout", "search_in_memory"}
    harmless |= {"api_docs", "mcp", "digest_every", "auto_improve"}
    rest = {name for name in settings.Settings.model_fields if not name.startswith("query_")} - settings.GUARDED
    assert rest == harmless


def test_agents_take_no_address_from_the_folder_they_are_started_in(
    cloned: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = cloned / "heedful.toml"
    file.write_text('store = "mine.db"\nlanguage_model = "http://127.0.0.1:9/v1#m"\n')
    with settings.for_agents(), caplog.at_level(logging.WARNING):
        found = settings.load({})
        assert (found.store, found.language_model) == ("mine.db", None)
        assert settings.load({"HEEDFUL_CONFIG": str(file)}).language_model is not None
        file.write_text('store = "http://127.0.0.1:9"\n')
        with pytest.raises(Invalid, match="agents take no address") as caught:
            settings.load({})
        assert f"HEEDFUL_CONFIG={file}" in str(caught.value)
        assert settings.load({"HEEDFUL_STORE": "http://127.0.0.1:8"}).store == "http://127.0.0.1:8"
    assert "ignored language_model" in caplog.text


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.nightly
def test_mcp_sends_no_fact_to_the_model_of_a_clone(
    elsewhere: bool, home: Path, cloned: Path, received: tuple[str, list[str]]
) -> None:
    address, bodies = received
    (cloned / "heedful.toml").write_text(f'language_model = "{address}"\n')
    store = home / "private.db" if elsewhere else cloned / "heedful.db"
    if not elsewhere:
        store.write_bytes((home / "private.db").read_bytes())
    messages = (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {
            "id": 2,
            "method": "tools/call",
            "params": {"name": "recall", "arguments": {"query": QUESTION, "answer": True}},
        },
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "heedful",
            "--embedding",
            "fast",
            "mcp",
            "--tools=all",
            *(["--store", str(store)] if elsewhere else []),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("HEEDFUL_")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()
    answers = [process.stdout.readline(), process.stdout.readline()]
    _, said = process.communicate(timeout=60)
    assert "4711" in answers[1]
    assert bodies == []
    assert "ignored language_model" in said


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="HEEDFUL_CONFIG names"):
        settings.load({"HEEDFUL_CONFIG": str(tmp_path / "no.toml")})
