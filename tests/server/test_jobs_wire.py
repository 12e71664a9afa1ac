"""Jobs over HTTP: a server does them, and shows each project its own."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from server import KEY, running

from heedful import NotFound


@pytest.mark.slow
def test_a_server_does_what_is_added_to_it(path: Path) -> None:
    with running(path) as server, server.connect() as store:
        store.remember("Ada is the CEO.")
        result = store.recall("Who is the CEO?", session_id="chat")
        assert result.qa_id is not None
        store.sessions.add_feedback("chat", result.qa_id, feedback_score=5)
        store.remember("Bo sings.", self_improvement=True)
        (added,) = store.jobs.list().items
        deadline = time.monotonic() + 60
        while store.jobs.get(added.job_id).status != "done":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert store.usefulness_stats().total_signals == 1


def test_a_server_without_a_worker_leaves_them(path: Path) -> None:
    with running(path, worker=False) as server, server.connect() as store:
        added = store.jobs.improve()
    with running(path, worker=False) as server, server.connect() as store:
        assert store.jobs.get(added.job_id).status == "waiting"


def test_a_key_of_a_project_sees_that_project_s_jobs_alone(path: Path) -> None:
    with running(path, worker=False) as server, server.connect("shop") as shop, server.connect("kiosk") as kiosk:
        added = shop.jobs.improve()
        with pytest.raises(NotFound):
            kiosk.jobs.cancel(added.job_id)
        own = shop.keys.create("boss", scopes=["admin"]).api_key
        everything = _jobs(server.url, KEY)
        assert [(each["job_id"], each["project"]) for each in everything.json()] == [(added.job_id, "shop")]
        refused = _jobs(server.url, own)
        assert refused.status_code == 403
        assert refused.json()["remedy"] == "Look at its own jobs: /v1/projects/shop/jobs"
        reader = shop.keys.create("reader", scopes=["read"]).api_key
        with server.connect("shop", key=reader) as reading:
            assert reading.jobs.get(added.job_id).status == "waiting"


def _jobs(url: str, key: str) -> httpx.Response:
    return httpx.get(f"{url}/v1/jobs", headers={"Authorization": f"Bearer {key}"})
