"""Checks an installed `heedful[server]` from outside of the repository: `python smoke.py`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import heedful

KEY = "a-secret-for-the-smoke-test"


def check_library() -> None:
    """The loop, with the bundled model."""
    with heedful.open(":memory:") as memory:
        memory.remember(["The gym opens at six.", "The canteen closes at three."])
        shown = memory.recall("When can I exercise?")
        assert shown[0].text == "The gym opens at six.", shown
        memory.signal_recall(shown.recall_id, helpful=[shown[0].fact_id])
        assert memory.fact_stats(shown[0].fact_id).overall_usefulness > 0.5


def check_command(folder: str) -> None:
    """The command, and a file it makes."""
    version = _run(folder, "--version")
    assert version == f"heedful {heedful.__version__}\n", version
    _run(folder, "remember", "The gym opens at six.")
    assert json.loads(_run(folder, "recall", "When does the gym open?", "--json"))["hits"]


def check_server(folder: str, command: str, path: str, expected: str) -> None:
    """`heedful serve` and `heedful dashboard` answer."""
    process = subprocess.Popen(
        [_program(), command, "--port", "0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HEEDFUL_ADMIN_KEY": KEY},
    )
    assert process.stderr is not None
    try:
        printed = ""
        while (found := re.search(r" on (http://\S+)", printed)) is None:
            line = process.stderr.readline()
            assert line, f"heedful {command} ended: {printed}"
            printed += line
        request = urllib.request.Request(found[1] + path, headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert expected in answer.read().decode(), path
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _program() -> str:
    return str(Path(sys.executable).with_name("heedful"))


def _run(folder: str, *arguments: str) -> str:
    return subprocess.run([_program(), *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    check_library()
    with tempfile.TemporaryDirectory() as folder:
        check_command(folder)
        check_server(folder, "serve", "/v1/projects", "default")
        check_server(folder, "dashboard", "/", "Heedful")
    print(f"heedful {heedful.__version__} works on Python {sys.version.split()[0]}")
