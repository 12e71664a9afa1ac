"""What the tests of all adapters share: patience with memories that work, and memories that fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from loop import Broken
from silent_server import silent_server

import heedful
from heedful.integrations import turns


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy is no failure of Heedful's."""
    monkeypatch.setattr(turns, "DEADLINE", 60)
    monkeypatch.setattr(turns, "PATIENCE", 600)
    monkeypatch.setattr(turns, "FINISH", 60)


@pytest.fixture(params=["broken", "silent"])
def failing(request: pytest.FixtureRequest, patient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A memory whose calls all fail, or whose server accepts them and never answers."""
    if request.param == "broken":
        yield Broken()
        return
    monkeypatch.setattr(turns, "DEADLINE", 0.1)
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    monkeypatch.setattr(turns, "FINISH", 0.1)
    with silent_server() as server, heedful.connect(server.url, api_key="hf_x") as memory:
        yield memory
