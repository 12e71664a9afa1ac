"""A factory's managers share what is costly: connections, and the threads that deliver alerts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from heedful.compat.mongodb_session_manager import MongoDBSessionManagerFactory
from heedful.sessions.hooks import AlertHook


class Pager:
    name = "pager-of-the-factory"

    def __init__(self) -> None:
        self.paged: list[str] = []

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        self.paged.append(payload["session_id"])


def dispatchers() -> int:
    return sum(Pager.name in thread.name for thread in threading.enumerate())


def test_managers_of_a_factory_share_one_dispatcher(mongodb_url: str) -> None:
    pager = Pager()
    hook = AlertHook(pager)
    factory = MongoDBSessionManagerFactory(mongodb_url, mongodb_url.rpartition("/")[2].partition("?")[0])
    for number in range(5):
        manager = factory.create_session_manager(f"user-{number}", feedbackHook=hook)
        manager.add_feedback({"rating": "down", "comment": "No."})
        manager.close()
        assert dispatchers() == 1
    factory.close()
    assert dispatchers() == 0
    assert sorted(pager.paged) == [f"user-{number}" for number in range(5)]
