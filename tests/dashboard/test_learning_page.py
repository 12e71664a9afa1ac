"""How it learns: ranks with and without feedback, and the opinions behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from dashboards import Dashboard, hidden, token

from heedful.testing import ManualClock

QUESTION = "How do I reset my password?"
HELPFUL = "A code from the help desk will reset the password."
FACTS = ("Reset the password rules: twelve letters, my dear.", HELPFUL, "The gym opens at six.")


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    yield made
    made.close()


def cells(html: str) -> list[list[str]]:
    """The rows of all tables, as texts."""
    return [
        [
            re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", cell))).strip()
            for cell in re.findall(r"<td.*?</td>", row)
        ]
        for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
        if "<td" in row
    ]


def test_a_question_shows_ranks_before_and_after_and_whose_opinions_count(dashboard: Dashboard) -> None:
    store = dashboard.store
    store.remember(list(FACTS))
    for author in ("ana", "ben", "carla", "dmitri"):
        shown = store.recall(QUESTION)
        by_text = {hit.text: hit for hit in shown}
        store.signal_recall(shown.recall_id, helpful=[by_text[HELPFUL]], not_helpful=[by_text[FACTS[0]]], author=author)
    client = dashboard.visitor()
    page = client.get("/p/default/learning", params={"q": QUESTION}).text
    ranks = {row[2]: (row[0], row[1], row[3]) for row in cells(page) if len(row) == 6}
    assert ranks[HELPFUL] == ("2", "1", "up 1")
    assert ranks[FACTS[0]] == ("1", "2", "down 1")
    assert {name for name in ("ana", "ben", "carla", "dmitri") if name in page} == {"ana", "ben", "carla", "dmitri"}
    assert "The arithmetic of the first rank" in page
    assert QUESTION in client.get("/p/default/learning").text


def test_an_opinion_is_retracted_there(dashboard: Dashboard) -> None:
    store = dashboard.store
    store.remember(list(FACTS))
    shown = store.recall(QUESTION)
    store.signal_recall(shown.recall_id, helpful=[shown[1]], author="ana")
    client = dashboard.visitor()
    page = client.get("/p/default/learning", params={"q": QUESTION}).text
    event = hidden(page, "event_id")
    client.post("/p/default/do/retract", data={"event_id": event, "token": token(page), "back": "/p/default/learning"})
    after = client.get("/p/default/learning", params={"q": QUESTION}).text
    assert event not in after


def test_a_question_that_nobody_rated_ranks_by_relevance(dashboard: Dashboard) -> None:
    dashboard.store.remember(list(FACTS))
    page = dashboard.visitor().get("/p/default/learning", params={"q": "When does the gym open?"}).text
    assert "rank by relevance alone" in page
    assert "Opinions that count" not in page


def test_looking_counts_for_nothing(dashboard: Dashboard) -> None:
    dashboard.store.remember(list(FACTS))
    dashboard.visitor().get("/p/default/learning", params={"q": QUESTION})
    assert dashboard.store.insight.coverage().recalls.shown == 0
