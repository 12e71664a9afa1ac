"""`heedful proxy` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from model_server import chat, model_server
from server import running

import heedful
from heedful.errors import HeedfulError, Invalid
from heedful.interfaces.cli.main import cli

MAIN = "from heedful.interfaces.cli import main; main()"
KEY = "a-key-for-the-proxy-of-the-tests"
QUESTION = {"messages": [{"role": "user", "content": "When does the gym open?"}]}


@contextmanager
def proxy(store: str, *options: str, **environment: str) -> Iterator[str]:
    """Starts the command, and stops it; its base URL."""
    command = [sys.executable, "-c", MAIN, "--store", store, "proxy", "--port", "0", *options]
    popen = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert popen.stderr is not None
    try:
        lines = []
        for line in popen.stderr:
            lines.append(line)
            if match := re.match(r"proxy on (http\S+), in front of", line):
                yield match[1].replace("0.0.0.0", "127.0.0.1")
                break
        else:
            pytest.fail("".join(lines))
    finally:
        popen.send_signal(signal.SIGTERM)
        popen.stderr.read()
        popen.stderr.close()
        assert popen.wait(60) in (0, -signal.SIGTERM)


@pytest.mark.usefixtures("warm_processes")
@pytest.mark.slow
def test_the_command_serves_a_store(path: Path) -> None:
    with heedful.open(path, worker=False) as memory:
        memory.remember("The gym opens at six.")
    headers = {"Authorization": f"Bearer {KEY}", "X-Heedful-Session": "1"}
    with (
        model_server(chat("At six.")) as model,
        proxy(
            *(str(path), "--host", "0.0.0.0"),
            HEEDFUL_UPSTREAM=model.url,
            HEEDFUL_UPSTREAM_API_KEY="sk-up",
            HEEDFUL_PROXY_KEY=KEY,
        ) as url,
    ):
        assert httpx.post(f"{url}/chat/completions", json=QUESTION).status_code == 401
        # The model is loaded meanwhile.
        for _ in range(3):
            assert httpx.post(f"{url}/chat/completions", json=QUESTION, headers=headers).content == model.says[0].whole
        assert "The gym opens at six." in model.sent[-1].prompt
        assert model.sent[-1].header("authorization") == ["Bearer sk-up"]
    with heedful.open(path, worker=False) as memory:
        # What was answered last was stored before it ended.
        assert memory.sessions.entries("1").items


@pytest.mark.usefixtures("warm_processes")
@pytest.mark.slow
def test_the_command_uses_the_memory_of_a_server(path: Path) -> None:
    with running(path) as server, server.connect() as remote, model_server(chat("At six.")) as model:
        remote.remember("The gym opens at six.")
        with proxy(server.url, "--upstream", model.url, HEEDFUL_API_KEY=server.key) as url:
            httpx.post(f"{url}/chat/completions", json=QUESTION, headers={"X-Heedful-Session": "1"}).raise_for_status()
        assert "The gym opens at six." in model.sent[0].prompt
        assert [each.answer for each in remote.sessions.entries("1").items] == ["At six."]
        assert model.sent[0].header("authorization") == []


@pytest.mark.parametrize(
    ("options", "environment", "field"),
    [
        ([], {}, "upstream"),
        (["--upstream", "api.openai.com"], {}, "upstream"),
        (["--upstream", "file:///etc/passwd"], {}, "upstream"),
        (["--upstream", "http://127.0.0.1:1/v1"], {"HEEDFUL_PROXY_KEY": "short"}, "HEEDFUL_PROXY_KEY"),
        (["--upstream", "http://127.0.0.1:1/v1", "--host", "0.0.0.0"], {"HEEDFUL_STORE": "http://127.0.0.1:1"}, "host"),
    ],
)
def test_what_is_missing_is_said(
    path: Path, options: list[str], environment: dict[str, str], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(cli, ["proxy", *options])
    assert isinstance(result.exception, Invalid)
    assert result.exception.field == field


def test_a_folder_does_not_choose_where_questions_and_keys_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "heedful.toml").write_text('upstream = "https://evil.example/v1"')
    monkeypatch.setenv("HEEDFUL_UPSTREAM_API_KEY", "sk-up")
    result = CliRunner().invoke(cli, ["--store", "store.db", "proxy"])
    assert isinstance(result.exception, HeedfulError)
    assert result.exception.code == "key_not_for_file"
    monkeypatch.delenv("HEEDFUL_UPSTREAM_API_KEY")
    elsewhere = str(path.parent.parent / "other.db")
    result = CliRunner().invoke(cli, ["--store", elsewhere, "proxy"])
    assert isinstance(result.exception, Invalid)
    assert result.exception.field == "upstream"
