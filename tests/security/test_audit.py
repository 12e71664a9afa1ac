"""Probing without leaving a trace, and a flood of refusals as a way to fill the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from dashboards import Dashboard, token
from server import Running, running

from heedful import Forbidden, Heedful
from heedful.access.audit import BURST_LIMIT, SUMMARY_CODE, Refusals
from heedful.interfaces.cli.main import cli
from heedful.model import AuditEntry
from heedful.storage import open_store
from heedful.storage.audit import Refusal
from heedful.testing import ManualClock

SECRET = "hf_00000000000000000000000000000000_probed-secret"


@pytest.fixture
def server(any_store: str) -> Iterator[Running]:
    with running(any_store, worker=False) as made:
        yield made


def audit_trail(server: Running) -> list[AuditEntry]:
    """The audit trail of the whole server, the newest first."""
    server.state.refusals.flush()
    answer = httpx.get(f"{server.url}/v1/audit", headers={"Authorization": f"Bearer {server.key}"})
    assert answer.status_code == 200, answer.text
    return [AuditEntry(**each) for each in answer.json()["items"]]


@pytest.mark.slow
def test_refusals_and_what_admins_do_leave_a_line_each_and_nothing_of_what_was_sent(
    server: Running, any_store: str
) -> None:
    with server.connect() as admin:
        reader = admin.keys.create("reader", scopes=["read"])
        writer = admin.keys.create("writer", scopes=["write"])
        admin.keys.revoke(writer.key_id)
        admin.set_policy("adaptive")
        admin.keys.rotate_signing()
    with server.connect(key=reader.api_key) as store, pytest.raises(Forbidden):
        store.remember("probed-text")
    for key in (SECRET, writer.api_key):
        httpx.get(f"{server.url}/v1/projects/probed-project/facts", headers={"Authorization": f"Bearer {key}"})
    httpx.post(
        f"{server.url}/api/projects/default/connectors/probed-id/test",
        headers={"Authorization": f"Bearer {reader.api_key}"},
    )
    found = audit_trail(server)
    names = {(each.kind, each.operation, each.code, each.caller, each.project, each.target) for each in found}
    assert names == {
        ("action", "keys.create", None, "admin", "default", reader.key_id),
        ("action", "keys.create", None, "admin", "default", writer.key_id),
        ("action", "keys.revoke", None, "admin", "default", writer.key_id),
        ("action", "set_policy", None, "admin", "default", None),
        ("action", "keys.rotate_signing", None, "admin", None, None),
        ("refusal", "remember", "scope_missing", reader.key_id, "default", None),
        ("refusal", "facts", "key_invalid", None, None, None),
        (
            "refusal",
            "POST /api/projects/{project_id}/connectors/{connector_id}/test",
            "scope_missing",
            reader.key_id,
            "default",
            None,
        ),
    }
    assert {each.address for each in found} == {"127.0.0.1"}
    assert sum(each.times for each in found if each.code == "key_invalid") == 2
    assert "probed" not in str(found)
    with server.connect() as admin:
        own = admin.audit(kind="refusal")
        assert {each.code for each in own.items} == {"scope_missing"}
        assert admin.audit(limit=1, cursor=admin.audit(limit=1).next_cursor).items[0] == admin.audit().items[1]
    printed = CliRunner().invoke(cli, ["--store", any_store, "audit", "--kind", "refusal"])
    assert printed.exit_code == 0, printed.output
    assert "key_invalid" in printed.output
    assert "rotate" not in printed.output


def test_the_trail_is_for_admins_and_a_projects_own(server: Running) -> None:
    with server.connect() as admin:
        admin.set_policy("adaptive")
        key = admin.keys.create("agent").api_key
    with server.connect("other") as other:
        own = other.keys.create("admin", scopes=["admin"]).api_key
    with server.connect(key=key) as agent, pytest.raises(Forbidden):
        agent.audit()
    with server.connect("other", key=own) as other:
        assert {each.operation for each in other.audit().items} == {"keys.create"}
    assert httpx.get(f"{server.url}/v1/audit", headers={"Authorization": f"Bearer {own}"}).status_code == 403


@pytest.mark.slow
def test_logins_leave_a_line_each(any_store: str, clock: ManualClock) -> None:
    dashboard = Dashboard(any_store, clock)
    try:
        assert dashboard.client().post("/login", data={"api_key": SECRET}).status_code == 401
        visitor = dashboard.visitor(dashboard.key("read", name="looker"))
        refused = visitor.post("/p/default/do/make_key", data={"token": "x", "name": "x", "scopes": "admin"})
        assert refused.status_code == 403
        admin = dashboard.visitor()
        admin.post("/logout", data={"token": token(admin.get("/p/default/settings").text)})
        dashboard.app.state.site.refusals.flush()
        with dashboard.opened.database.read() as connection:
            rows: list[Any] = list(connection.exec_driver_sql("SELECT operation, code FROM audit ORDER BY seq"))
    finally:
        dashboard.close()
    messages = [tuple(row) for row in rows]
    assert ("dashboard.login", "key_invalid") in messages
    assert ("keys.create", "scope_missing") in messages
    assert messages.count(("dashboard.login", None)) == 2
    assert ("dashboard.logout", None) in messages


def test_a_flood_of_refusals_fills_no_disk(any_store: str) -> None:
    database = open_store(any_store)
    refusals = Refusals(database, lambda: 0)
    for number in range(20 * BURST_LIMIT):
        refusals.note(Refusal("recall", "key_invalid", address=f"10.0.{number % 250}.{number}"))
        if number % BURST_LIMIT == 0:
            refusals.flush()
    refusals.close()
    with database.read() as connection:
        rows = connection.exec_driver_sql("SELECT count(*), sum(times) FROM audit").one()
        more = connection.exec_driver_sql(f"SELECT sum(times) FROM audit WHERE code = '{SUMMARY_CODE}'").scalar_one()
    database.close()
    assert rows[0] <= BURST_LIMIT + 5
    assert rows[1] == 20 * BURST_LIMIT
    assert more > 10 * BURST_LIMIT


def test_what_is_done_with_connectors_leaves_a_line_each(store: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "sales.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE t (a INTEGER)")
    connector = store.connectors.create("sales", f"sqlite:///{file}")
    store.connectors.delete("sales")
    lines = [(each.operation, each.target) for each in store.audit(kind="action").items]
    assert lines == [("connectors.delete", connector.connector_id), ("connectors.create", connector.connector_id)]
