"""Who waits for a language model, or for a hook, keeps nobody else waiting."""

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


def test_a_hook_that_waits_keeps_no_other_feedback_waiting(path: Path) -> None:
    reached, go = threading.Semaphore(0), threading.Event()

    def wait(original_func: Any, action: str, session_id: str, **kwargs: Any) -> Any:
        if session_id == "slow":
            reached.release()
            go.wait(60)
        return original_func(kwargs["feedback"])

    with running(path, feedback_hook=wait) as server, server.connect() as h, ThreadPoolExecutor(3) as pool:
        for session in ("slow", "quick"):
            h.sessions.create(session)

        def rate(session: str) -> object:
            return h.sessions.add_session_feedback(session, {"rating": "up"})

        slow = [pool.submit(rate, "slow") for _ in range(3)]
        try:
            assert all(reached.acquire(timeout=30) for _ in slow)
            assert rate("quick") is not None
        finally:
            go.set()
        assert None not in [each.result() for each in slow]
