"""The dashboard's threads and processor are shared as the server's are: by project and key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from dashboards import Dashboard
from starlette.responses import Response

from heedful.interfaces.dashboard import responses
from heedful.testing import ManualClock

MANY = 60
"""Pages that one visitor loads at the same time: more than there are threads."""


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    opened = Dashboard(path, clock)
    yield opened
    opened.close()


@pytest.fixture
def stuck(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Keys whose pages take until the test ends."""
    keys: set[str] = set()
    ends = threading.Event()
    usual = responses.render

    def render(site: Any, request: Any, visitor: Any, *rest: Any, **options: Any) -> Response:
        if visitor.caller.key_id in keys:
            assert ends.wait(60)
        return usual(site, request, visitor, *rest, **options)

    monkeypatch.setattr(responses, "render", render)
    yield keys
    ends.set()


def load_beside_many(dashboard: Dashboard, busy: str, busy_page: str, other: str, page: str) -> int:
    """The status of a page while somebody else loads many that don't end."""

    def client(key: str) -> httpx.AsyncClient:
        cookies = dashboard.visitor(key).cookies
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(dashboard.app), base_url="http://dashboard.test", cookies=dict(cookies)
        )

    async def load() -> int:
        async with client(busy) as first, client(other) as second:
            loading = [asyncio.ensure_future(first.get(busy_page)) for _ in range(MANY)]
            await asyncio.sleep(0.5)
            try:
                return (await asyncio.wait_for(second.get(page), 30)).status_code
            finally:
                for each in loading:
                    each.cancel()

    return asyncio.run(load())


@pytest.mark.slow
def test_pages_of_one_project_keep_no_other_waiting(dashboard: Dashboard, stuck: set[str]) -> None:
    with dashboard.opened.open("b") as b:
        b.remember("a fact")
        other = b.keys.create("reader", scopes=["read"])
    busy = dashboard.store.keys.create("reader", scopes=["read"])
    stuck.add(busy.key_id)
    assert load_beside_many(dashboard, busy.api_key, "/p/default/facts", other.api_key, "/p/b/facts") == 200


def test_a_key_s_limit_of_calls_holds_for_its_pages(dashboard: Dashboard) -> None:
    key = dashboard.store.keys.create("slow", scopes=["read"], rate_limit=1).api_key
    visitor = dashboard.visitor(key)
    answers = [visitor.get("/p/default/facts") for _ in range(4)]
    assert [each.status_code for each in answers[:2]] == [200, 200]
    assert answers[-1].status_code == 503
    assert answers[-1].headers["retry-after"] == "1"
    assert "more than 1 call a second" in answers[-1].text
