"""Experiments: variants and when to stop, replays, and the policy with its undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboards import HOSTILE, Dashboard, forms, send, undone

from heedful.interfaces.dashboard import views
from heedful.testing import ManualClock


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    yield made
    made.close()


def variant(dashboard: Dashboard, name: str, ups: int, downs: int) -> None:
    sessions = dashboard.store.sessions
    for place in range(ups + downs):
        session = sessions.create(metadata={"variant": name}).session_id
        entry = sessions.add_entry(session, "why?", "because")
        sessions.add_feedback(session, entry.qa_id, None, 5 if place < ups else 1)


def test_a_variant_that_is_surely_better_is_to_be_taken(dashboard: Dashboard) -> None:
    variant(dashboard, "A", 10, 30)
    variant(dashboard, "B", 35, 5)
    page = dashboard.visitor().get("/p/default/experiments").text
    assert "Take B" in page
    assert "no proof that it is better" in page
    assert "Each against each" in page


@pytest.mark.slow
def test_names_of_variants_stay_as_they_are(dashboard: Dashboard) -> None:
    variant(dashboard, "alpha", 35, 5)
    variant(dashboard, "beta", 10, 30)
    page = dashboard.visitor().get("/p/default/experiments").text
    assert "Take alpha" in page
    assert "Alpha" not in page
    assert "Beta" not in page


def test_variants_that_are_hardly_rated_go_on(dashboard: Dashboard) -> None:
    variant(dashboard, "A", 2, 1)
    variant(dashboard, HOSTILE, 1, 2)
    page = dashboard.visitor().get("/p/default/experiments?by=variant").text
    assert "Keep going" in page
    assert "<script>" not in page


def test_a_key_that_nobody_has_and_a_range_that_is_none_are_told(dashboard: Dashboard) -> None:
    variant(dashboard, "A", 1, 0)
    variant(dashboard, "B", 1, 0)
    client = dashboard.visitor()
    assert client.get("/p/default/experiments?by=colour").status_code == 422
    assert client.get("/p/default/experiments?since=x").status_code == 422


@pytest.mark.slow
def test_a_replay_comes_when_it_is_asked_for_and_says_what_it_needs(dashboard: Dashboard) -> None:
    store, client = dashboard.store, dashboard.visitor()
    assert "data-lazy" not in client.get("/p/default/experiments").text
    assert "/experiments/replay" in client.get("/p/default/experiments?replay=1").text
    assert "signal_recall" in client.get("/p/default/experiments/replay").text
    facts = store.remember(["Refunds take 14 days.", "Refunds need a receipt.", "Parcels take 3 days."]).fact_ids
    for _ in range(3):
        result = store.recall("refunds days")
        store.signal_recall(result.recall_id, helpful=[facts[1]], not_helpful=[facts[0]])
    part = client.get("/p/default/experiments/replay", headers={"X-Fragment": "1"}).text
    assert "As it was shown" in part
    assert "Relevance alone" in part
    assert "<svg" in part


def test_the_policy_is_set_and_set_back(dashboard: Dashboard) -> None:
    dashboard.store.remember("Refunds take 14 days.", dataset="help")
    dashboard.store.set_policy("documented")
    client = dashboard.visitor()
    project, dataset = forms(client.get("/p/default/experiments").text, "set_policy")
    done = send(client, project, policy="adaptive")
    assert views.policies(dashboard.store).project == "adaptive"
    undone(client, done)
    assert views.policies(dashboard.store).project == "documented"
    done = send(client, dataset, policy="adaptive")
    assert views.policies(dashboard.store).datasets == {"help": "adaptive"}
    undone(client, done)
    assert views.policies(dashboard.store).datasets == {"help": None}


def test_readers_see_the_policy_and_can_not_set_it(dashboard: Dashboard) -> None:
    client = dashboard.visitor(dashboard.key("read"))
    assert forms(client.get("/p/default/experiments").text, "set_policy") == []


def test_rated_questions_are_asked_again_with_a_change(dashboard: Dashboard) -> None:
    store, client = dashboard.store, dashboard.visitor()
    assert "No rated questions" in client.get("/p/default/experiments/regress?mode=lexical").text
    facts = store.remember(["The build is red when a test fails.", "Ask the infra team about failing builds."]).fact_ids
    found = store.recall("Who knows about failing builds?")
    store.signal_recall(found.recall_id, helpful=[facts[1]], author="ann")
    assert "/experiments/regress?mode=lexical" in client.get("/p/default/experiments?mode=lexical").text
    part = client.get("/p/default/experiments/regress?mode=lexical", headers={"X-Fragment": "1"}).text
    report = store.regress(mode="lexical", executions=False)
    assert (report.compared, report.worse) == (1, 1)
    assert "mode=lexical" in part
    assert "1 worse, 0 better, 0 the same" in part
    assert "Who knows about failing builds?" in part


def test_rated_questions_need_a_change_and_a_key_that_writes(dashboard: Dashboard) -> None:
    writer, reader = dashboard.visitor(), dashboard.visitor(dashboard.key("read"))
    assert "Choose a policy or a mode" in writer.get("/p/default/experiments/regress").text
    assert "hybrid" in writer.get("/p/default/experiments/regress?mode=x").text
    assert "Try a mode" not in reader.get("/p/default/experiments").text
    assert "needs a key that may write" in reader.get("/p/default/experiments/regress?mode=lexical").text
