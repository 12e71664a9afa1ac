"""Forms of strangers: small, read apart from the pages of others, and good for nothing without a login."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboards import Dashboard, hidden

from heedful.interfaces.dashboard import responses, site
from heedful.testing import ManualClock

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ROUTES = ("/login", "/logout", "/theme", "/p/default/do/supersede")


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Dashboard]:
    made = Dashboard(tmp_path / "store.db", ManualClock())
    yield made
    made.close()


@pytest.mark.parametrize("route", ROUTES)
def test_a_stranger_may_send_a_key_and_a_name(dashboard: Dashboard, route: str) -> None:
    for cookie in ("", "heedful_login=AAAA.AAAA"):
        answer = dashboard.client().post(route, content=b"a=" + b"%41" * 6_000, headers=FORM | {"Cookie": cookie})
        assert answer.status_code == 422
        assert f"the limit is {responses.MAX_STRANGERS_FORM}" in answer.text


def test_whoever_has_logged_in_may_send_a_text(dashboard: Dashboard) -> None:
    visitor = dashboard.visitor()
    fact = dashboard.store.remember("Ada is the CEO.").facts[0]
    form = {"fact_id": fact.fact_id, "text": "Bob is the CEO. " * 20_000}
    dashboard.clock.advance(hours=9)
    kept = visitor.post("/p/default/do/supersede", data=form)
    assert kept.status_code == 401
    again = visitor.post("/login", data={"api_key": dashboard.admin, "pending": hidden(kept.text, "pending")})
    assert (again.status_code, again.headers["location"]) == (303, "/resume")
    assert form["text"].strip() in visitor.get("/resume").text


@pytest.mark.parametrize("route", ROUTES)
def test_forms_are_not_read_on_the_event_loop(
    dashboard: Dashboard, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    usual = responses._fields

    def fields(body: bytes) -> dict[str, str]:
        threads.append(threading.current_thread().name)
        return usual(body)

    monkeypatch.setattr(responses, "_fields", fields)
    dashboard.client().post(route, data={"api_key": "x"})
    assert threads
    assert all(name.startswith("heedful-call") for name in threads)


def test_a_field_that_is_sent_many_times_is_put_together_once() -> None:
    found = responses._fields(b"&".join([b"a=" + b"x" * 1_900] * responses.MAX_FIELDS))
    assert found["a"].count("\n") == responses.MAX_FIELDS - 1


def test_forms_that_wait_for_a_login_have_a_size_together() -> None:
    notes = site.Notes(site.MAX_PENDING, site._size)
    for number in range(100):
        assert notes.put(str(number), site.PendingAction("default", "supersede", {"text": "x" * 1_000_000}))
    kept = [number for number in range(100) if notes.get(str(number)) is not None]
    assert kept == list(range(81, 100))
