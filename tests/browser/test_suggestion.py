"""The suggestion of a question in a real browser: shown, confirmed with one click, and proven from then on."""

from __future__ import annotations

from pathlib import Path

import pytest
from cities import make_cities
from playwright.sync_api import Locator, Page, expect
from server import Running
from widget_page import Show

from heedful.errors import Forbidden
from heedful.interfaces.client.surface import RemoteHeedful

SQL = "SELECT people FROM city WHERE name = '{}'"
ASKED = "the official census headcount figure of Paris, quickly"
MEANT = "What is the official census headcount figure of paris?"


@pytest.fixture
def attributes(memory: RemoteHeedful, tmp_path: Path) -> dict[str, str]:
    """The attributes of a suggestion, with a token in the name of Ann."""
    memory.connectors.create("geo", make_cities(tmp_path).url)
    for city in ("Rome", "Oslo"):
        question = f"What is the official census headcount figure of {city}?"
        done = memory.executions.execute_query(SQL.format(city), question=question)
        memory.feedback.create_positive(execution_id=done.execution_id)
    likely = memory.chat.execution_cache_lookup(ASKED).suggestion
    assert likely is not None
    token = memory.keys.create_token({"execution_id": likely.execution_id, "question": ASKED}, author="ann").token
    return {
        "question": ASKED,
        "suggestion": likely.question,
        "execution-id": likely.execution_id,
        "connector-id": "geo",
        "token": token,
    }


def yes(page: Page) -> Locator:
    return page.get_by_role("button", name="Yes")


@pytest.mark.slow
def test_one_click_confirms_what_a_question_means(
    show: Show, memory: RemoteHeedful, attributes: dict[str, str]
) -> None:
    shown = show(attributes)
    expect(shown.page.get_by_text(f"Did you mean: {MEANT}")).to_be_visible()
    yes(shown.page).click()
    expect(shown.page.get_by_role("status")).to_have_text("Confirmed")
    confirmed = shown.wait_for("heedful-confirmed")
    assert (confirmed["question"], confirmed["execution"]["result"]["rows"]) == (ASKED, [[2100000]])
    yes(shown.page).click(force=True)  # It counts once.
    found = memory.chat.execution_cache_lookup(ASKED)
    assert (found.cache_hit, found.matches[0].decision) == (True, "serve")
    (said,) = [each for each in memory.feedback.list().items if each.author == "ann"]
    assert said.execution_id == confirmed["execution"]["execution_id"]


@pytest.mark.slow
def test_what_is_no_longer_suggested_is_said_to_be_so(
    show: Show, memory: RemoteHeedful, attributes: dict[str, str]
) -> None:
    shown = show({**attributes, "labels": '{"confirm": "Ja", "gone": "Nicht mehr"}'})
    memory.feedback.create_negative(execution_id=attributes["execution-id"], feedback="No longer.")
    shown.page.get_by_role("button", name="Ja").click()
    expect(shown.page.get_by_role("status")).to_have_text("Nicht mehr")
    assert shown.wait_for("heedful-error")["code"] == "not_suggested"


@pytest.mark.slow
def test_a_token_confirms_what_it_names_and_nothing_else(
    memory: RemoteHeedful, attributes: dict[str, str], server: Running
) -> None:
    with server.connect(key=attributes["token"]) as visitor:
        for question, execution in [("Another?", attributes["execution-id"]), (ASKED, "another")]:
            with pytest.raises(Forbidden):
                visitor.chat.confirm_suggestion(question, execution)
        with pytest.raises(Forbidden):
            visitor.chat.execution_cache_lookup(ASKED)
        with pytest.raises(Forbidden):
            visitor.feedback.create_positive(execution_id=attributes["execution-id"])
        assert visitor.chat.confirm_suggestion(ASKED, attributes["execution-id"]).result.rows == [[2100000]]
