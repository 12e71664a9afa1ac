"""`heedful dashboard`, as people start it."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from command import started

from heedful.errors import Unavailable
from heedful.interfaces.cli.main import cli

pytestmark = pytest.mark.usefixtures("warm_processes")


@pytest.mark.slow
def test_the_first_start_prints_a_key_with_which_one_logs_in_and_the_next_prints_none(
    path: Path, empty_store: bytes
) -> None:
    path.write_bytes(empty_store)
    arguments = ["--embedding", "fast", "dashboard", "--store", str(path)]
    with started(arguments, {}) as first:
        assert first.key is not None
        with httpx.Client(base_url=first.url, follow_redirects=True) as browser:
            assert "Log in" in browser.get("/").text
            page = browser.post("/login", data={"api_key": first.key})
            assert page.url.path == "/p/default/overview"
            assert page.headers["content-encoding"] == "gzip"
    with started(arguments, {}) as second:
        assert second.key is None


def test_a_missing_extra_is_told_with_what_to_do(
    path: Path, empty_store: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(empty_store)
    monkeypatch.setitem(sys.modules, "heedful.interfaces.dashboard.app", None)
    result = CliRunner().invoke(cli, ["--store", str(path), "dashboard"])
    assert isinstance(result.exception, Unavailable)
    assert 'pip install "heedful[server]"' in str(result.exception)
