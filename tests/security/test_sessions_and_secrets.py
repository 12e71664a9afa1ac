"""Signing secrets, logins and idempotency keys in the hands of somebody else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from dashboards import Dashboard, token
from server import Running, running

import heedful
from heedful import Conflict, Forbidden, Heedful, transfer
from heedful.storage import key_rows as keys
from heedful.testing import ManualClock, WordEmbedder


@pytest.fixture
def server(any_store: str) -> Iterator[Running]:
    with running(any_store, worker=False) as made:
        yield made


@pytest.mark.slow
def test_a_rotated_secret_ends_tokens_at_once_and_with_a_grace_later(server: Running) -> None:
    with server.connect() as admin:
        admin.sessions.create("monday")

        def status(made: Any) -> int:
            return httpx.post(
                f"{server.url}/v1/projects/default/sessions/monday/feedback",
                headers={"Authorization": f"Bearer {made.token}"},
                json={"feedback": {"rating": "up"}},
            ).status_code

        first = admin.keys.create_token({"session_id": "monday"}, author="Ida", expires_in=86_400)
        assert status(first) == 200
        admin.keys.rotate_signing()
        assert status(first) == 401
        second = admin.keys.create_token({"session_id": "monday"}, author="Ida", expires_in=86_400)
        admin.keys.rotate_signing(grace=3600)
        third = admin.keys.create_token({"session_id": "monday"}, author="Ida", expires_in=86_400)
        assert [status(each) for each in (first, second, third)] == [401, 200, 200]
        server.clock.advance(hours=1)
        assert [status(each) for each in (second, third)] == [401, 200]
        project_admin = admin.keys.create("p", scopes=["admin"]).api_key
    with server.connect(key=project_admin) as other, pytest.raises(Forbidden) as refused:
        other.keys.rotate_signing()
    assert refused.value.code == "project_key"


@pytest.mark.slow
def test_a_callers_idempotency_key_is_not_anothers(server: Running) -> None:
    with server.connect() as admin:
        admin.sessions.create("monday")
        fact = admin.remember("Ada is the CEO.").fact_ids[0]
        recall = admin.recall("Who is the CEO?")
        program = admin.keys.create("program", scopes=["feedback"]).api_key
        visitor = admin.keys.create_token(
            [{"session_id": "monday"}, {"recall_id": recall.recall_id}], author="Eve"
        ).token
    said: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("sessions/monday/feedback", {"feedback": {"rating": "down"}}, {"feedback": {"rating": "up"}}),
        (f"recalls/{recall.recall_id}/signals", {"not_helpful": [fact]}, {"helpful": [fact]}),
    ]
    for path, visitors, programs in said:
        sent = [
            httpx.post(
                f"{server.url}/v1/projects/default/{path}",
                headers={"Authorization": f"Bearer {key}", "Idempotency-Key": "order-17"},
                json=body,
            )
            for key, body in ((visitor, visitors), (program, programs), (program, programs))
        ]
        assert [each.status_code for each in sent] == [200, 200, 200], [each.text for each in sent]
        assert sent[1].json() == sent[2].json() != sent[0].json()
    with server.connect(key=program) as same, pytest.raises(Conflict):
        same.sessions.add_session_feedback("monday", {"rating": "down"}, idempotency_key="order-17")


def test_what_a_program_keys_itself_is_counted_once_as_before(store: Heedful) -> None:
    fact = store.remember("Ada is the CEO.").fact_ids[0]
    values = {"fact_id": fact, "signal_type": "helpful", "query": "Who is the CEO?", "idempotency_key": "one"}
    assert store.signal([values]).event_ids == store.signal([values]).event_ids
    assert store.fact_stats(fact).signal_count == 1


def test_a_backup_has_no_secret_to_sign_with(path: Path, tmp_path: Path) -> None:
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as store:
        store.remember("Ada is the CEO.")
        made = store.keys.create_token({"session_id": "s"})
        with store._workspace.database.read() as connection:
            [secret] = keys.signing_secrets(connection, 0)
        transfer.backup(path, tmp_path / "backup.db")
        transfer.backup(path, tmp_path / "whole.db", with_signing=True)
        transfer.export_file(path, tmp_path / "project.jsonl", project="default")
    assert secret in (tmp_path / "whole.db").read_bytes()
    assert secret not in (tmp_path / "backup.db").read_bytes()
    assert secret.hex().encode() not in (tmp_path / "project.jsonl").read_bytes()
    with closing(sqlite3.connect(tmp_path / "backup.db")) as copy:
        assert copy.execute("SELECT count(*) FROM signing").fetchone() == (0,)
    with heedful.open(tmp_path / "backup.db", embedding=WordEmbedder(), worker=False) as restored:
        assert restored.keys.create_token({"session_id": "s"}).token != made.token


@pytest.fixture
def dashboard(any_store: str, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(any_store, clock)
    yield made
    made.close()


@pytest.mark.slow
def test_a_cookie_is_good_for_nothing_after_logout_in_any_process(dashboard: Dashboard, clock: ManualClock) -> None:
    visitor, thief = dashboard.visitor(), dashboard.client()
    thief.cookies = visitor.cookies
    thief.cookies.update(visitor.cookies)
    elsewhere = Dashboard(dashboard.opened.database.url.render_as_string(hide_password=False), clock)
    try:
        other = elsewhere.client()
        other.cookies.update(visitor.cookies)
        assert [each.get("/p/default/overview").status_code for each in (thief, other)] == [200, 200]
        stolen = dict(visitor.cookies)
        form = token(visitor.get("/p/default/settings").text)
        assert visitor.post("/logout", data={"token": form}).status_code == 303
        for each in (dashboard.client(), elsewhere.client()):
            each.cookies.update(stolen)
            assert each.get("/p/default/overview").status_code == 303
            refused = each.post("/p/default/do/make_key", data={"token": form, "name": "x", "scopes": "admin"})
            assert refused.status_code == 401
    finally:
        elsewhere.close()


def test_a_forged_cookie_is_no_login_even_with_the_secret(dashboard: Dashboard) -> None:
    forged = dashboard.app.state.site.logins.sealed(
        "dashboard-login", [dashboard.store.keys.create("k", scopes=["admin"]).key_id, "Eve", 2**60, "made-up"]
    )
    client = dashboard.client()
    client.cookies.set("heedful_login", forged)
    assert client.get("/p/default/overview").status_code == 303


def test_rotating_the_secret_ends_logins(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.interfaces.dashboard.site.KEY_CACHE_SECONDS", 0.0)
    visitor = dashboard.visitor()
    dashboard.store.keys.rotate_signing(grace=60)
    assert visitor.get("/p/default/overview").status_code == 200
    dashboard.store.keys.rotate_signing()
    assert visitor.get("/p/default/overview").status_code == 303
