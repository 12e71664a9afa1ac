"""Overview: what people say of answers, with where each number comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboards import HOSTILE, Dashboard, forms, send

from heedful.interfaces.dashboard import views
from heedful.testing import ManualClock

pytestmark = pytest.mark.slow


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    yield made
    made.close()


def rated(dashboard: Dashboard, ups: int, downs: int, comment: str | None = None, **metadata: str) -> None:
    """So many good and bad ratings, each of a session of its own."""
    sessions = dashboard.store.sessions
    for place in range(ups + downs):
        session = sessions.create(metadata=metadata or None).session_id
        entry = sessions.add_entry(session, "why?", "because")
        sessions.add_feedback(session, entry.qa_id, comment if place >= ups else None, 5 if place < ups else 1)


@pytest.mark.nightly
def test_satisfaction_is_told_with_its_interval_and_how_it_was_before(dashboard: Dashboard, clock: ManualClock) -> None:
    rated(dashboard, 10, 10)
    clock.advance(days=7)
    rated(dashboard, 6, 2)
    page = dashboard.visitor().get("/p/default/overview").text
    figures = page.partition('class="cards figures"')[2].partition("Satisfaction by")[0]
    assert "75%" in figures
    assert figures.count("6 up, 2 down, 0 neutral") == 1
    assert "up 25.0 points from 50.0%" in figures
    assert "4.00" in figures
    assert "8 of 8" in figures
    assert "<summary>Numbers</summary>" in page
    earlier = dashboard.visitor().get("/p/default/overview?since=&until=").text
    assert "too few ratings before to compare with" in earlier


def test_ranges_that_are_none_are_told_and_kept(dashboard: Dashboard) -> None:
    rated(dashboard, 1, 1)
    client = dashboard.visitor()
    for query, said in (
        ("since=2026-02-31&until=", "is not a date"),
        ("since=2026-02-03&until=2026-02-01", "ends before it begins"),
    ):
        wrong = client.get(f"/p/default/overview?{query}")
        assert wrong.status_code == 422
        assert said in wrong.text
        assert f'value="{query[6:16]}"' in wrong.text
    assert client.get("/p/default/overview?since=0001-01-01&until=9999-12-31").status_code == 200


@pytest.mark.nightly
def test_satisfaction_is_compared_by_what_is_chosen(dashboard: Dashboard) -> None:
    rated(dashboard, 3, 1, plan="gold")
    rated(dashboard, 1, 3, plan=HOSTILE)
    client = dashboard.visitor()
    page = client.get("/p/default/overview?by=metadata.plan").text
    assert "gold" in page
    assert "<script>" not in page
    for by in ("dataset", "source", "author_kind", "model", "target_type"):
        assert client.get(f"/p/default/overview?by={by}").status_code == 200
    unknown = client.get("/p/default/overview?by=nothing")
    assert unknown.status_code == 422
    assert "nothing" in unknown.text


def test_keys_that_tell_nothing_apart_are_not_offered(dashboard: Dashboard) -> None:
    for place in range(60):
        dashboard.store.sessions.create(metadata={"user": f"u{place}", "plan": "gold" if place % 2 else "basic"})
    rated(dashboard, 1, 0)
    page = dashboard.visitor().get("/p/default/overview").text
    assert 'value="metadata.plan"' in page
    assert 'value="metadata.user"' not in page


@pytest.mark.parametrize("part", ["waiting", "changes", "themes"])
@pytest.mark.nightly
def test_parts_that_take_longer_come_after_the_page_and_are_pages_without_a_script(
    dashboard: Dashboard, part: str
) -> None:
    rated(dashboard, 1, 2, HOSTILE)
    client = dashboard.visitor()
    assert f'data-lazy="/p/default/overview/{part}"' in client.get("/p/default/overview").text
    alone = client.get(f"/p/default/overview/{part}", headers={"X-Fragment": "1"}).text
    assert "<html" not in alone
    assert "<script>" not in alone
    text = client.get(f"/p/default/overview/{part}").text
    assert "<html" in text
    assert "Back" in text


def test_a_change_is_told_with_its_arithmetic_and_where_to_look(dashboard: Dashboard, clock: ManualClock) -> None:
    for day in range(14):
        rated(dashboard, 10 if day < 10 else 2, 1 if day < 10 else 9)
        clock.advance(days=1)
    part = dashboard.visitor().get("/p/default/overview/changes").text
    assert "The arithmetic" in part
    assert 'href="/p/default/review"' in part


def test_negative_comments_are_told_by_theme(dashboard: Dashboard) -> None:
    rated(dashboard, 0, 4, "the refund took weeks")
    part = dashboard.visitor().get("/p/default/overview/themes").text
    assert "refund" in part
    assert "the refund took weeks" in part


def test_items_that_wait_are_counted(dashboard: Dashboard) -> None:
    rated(dashboard, 0, 1)
    part = dashboard.visitor().get("/p/default/overview/waiting").text
    assert "1 open, 0 resolved" in part
    assert "Review 1 item<" in part


def test_a_change_of_policy_that_made_it_worse_is_undone_there(dashboard: Dashboard, clock: ManualClock) -> None:
    for day in range(10):
        if day == 6:
            dashboard.store.set_policy("documented")
        rated(dashboard, 8 if day < 6 else 2, 2 if day < 6 else 8)
        clock.advance(days=1)
    client = dashboard.visitor()
    part = client.get("/p/default/overview/changes").text
    assert "the policy of the project changed from the default to documented" in part
    assert 'href="/p/default/experiments"' in part
    (form,) = forms(part, "retract")
    send(client, form)
    assert views.policies(dashboard.store).project is None
    reader = dashboard.visitor(dashboard.key("read")).get("/p/default/overview/changes").text
    assert forms(reader, "retract") == []
