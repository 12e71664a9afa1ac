"""Who waits for a language model keeps nobody else waiting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from server import running

from heedful import Forbidden
from heedful.testing import ScriptedModel


class Slow(ScriptedModel):
    """Answers when it is let go."""

    def __init__(self, asked: threading.Semaphore, go: threading.Event) -> None:
        super().__init__([])
        self._reached, self._go = asked, go

    def complete(self, *given: Any, **options: Any) -> Any:
        self._reached.release()
        self._go.wait(60)
        raise TimeoutError


@pytest.mark.slow
def test_others_are_let_in_and_served(path: Path) -> None:
    asked, go = threading.Semaphore(0), threading.Event()
    with running(path, language_model=Slow(asked, go), threads=2) as server, server.connect() as h:
        h.remember("Ada is the CEO.")
        h.sessions.create("chat")
        key = h.keys.create("other").api_key
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(_answered, server.url, server.key) for _ in range(4)]
            assert asked.acquire(timeout=30)
            assert asked.acquire(timeout=30)
            try:
                assert httpx.get(f"{server.url}/readyz").status_code == 200
                with server.connect(key="hf_" + "0" * 32 + "_x") as stranger, pytest.raises(Forbidden):
                    stranger.datasets()
                with server.connect(key=key) as other:
                    assert other.sessions.add_session_feedback("chat", {"rating": "up"}) is not None
                    assert other.recall("Who is the CEO?").hits
            finally:
                go.set()
            assert [each.result() for each in answers] == [500] * 4


def _answered(url: str, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    body = {"query": "Who is the CEO?", "answer": True}
    return httpx.post(f"{url}/v1/projects/default/recall", headers=headers, json=body, timeout=60).status_code
