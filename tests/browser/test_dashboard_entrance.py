"""The way into the dashboard, and what other people's words do there: nothing."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from dashboard_page import Served
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = {
    "script": SCRIPT,
    "long": ("a" * 90 + " ") * 50 + "x" * 5_450,
    "right to left": "התשובה שגויה \u202eevil\u202c مرحبا",
    "emoji": "👎🏽👩‍👩‍👧‍👦 🏳️‍🌈 Z̸̧͝a̵l̶g̷o̸",
    "a template": "{{ 7 * 7 }} {% raw %} ${alert(3)} javascript:alert(4)",
}


def test_a_key_that_is_not_valid_is_refused_and_what_was_wanted_is_kept(served: Served) -> None:
    somebody = served.stranger()
    page = somebody.page
    page.goto(f"{served.url}/p/default/facts?q=refund&unrated=1")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    somebody.refused = {401}
    for key in ("hf_nonsense", SCRIPT):
        page.get_by_label("Key", exact=True).fill(key)
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("This key or link is not valid")
        expect(page.get_by_label("Your name")).to_have_value("Ada")
    page.get_by_label("Key", exact=True).fill(served.dashboard.admin)
    page.keyboard.press("Enter")
    page.wait_for_url("**/p/default/facts?q=refund&unrated=1")
    expect(page.locator(".who")).to_contain_text("Ada")


def test_whoever_logs_out_is_out(served: Served) -> None:
    ada = served.visitor()
    page = ada.open("overview")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto(f"{served.url}/p/default/sessions")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_key_that_may_only_read_has_no_buttons_and_no_settings(served: Served) -> None:
    (fact,) = served.dashboard.store.remember("Refunds take 14 days.").fact_ids
    reader = served.visitor("Rea", served.dashboard.key("read"))
    page = reader.open(f"facts/{fact}")
    expect(page.locator("form[action*='/do/']")).to_have_count(0)
    expect(page.get_by_role("link", name="Settings")).to_have_count(0)
    reader.refused = {403}
    reader.open("settings")
    expect(page.get_by_role("heading", level=1)).to_contain_text("admin")


def named(words: str) -> str:
    """As much of them as a name may have."""
    return "".join(letter for letter in words if letter.isprintable())[:60].strip()


def test_hostile_words_are_shown_as_words_everywhere(served: Served) -> None:
    store = served.dashboard.store
    for session, words in HOSTILE.items():
        short = words[:200]
        store.remember(f"Refunds take 14 days. {short}")
        answered = store.recall(f"How long? {short}", session_id=session)
        assert answered.qa_id is not None
        store.sessions.update_metadata(session, {"note": short})
        store.sessions.add_feedback(session, answered.qa_id, words, 1, author=named(short))
    items = store.review.list(target_type="entry").items
    for item in items:
        store.review.assign(item.item_id, named(item.comment or ""), author=named(item.comment or ""))
    ada = served.visitor(viewport={"width": 390, "height": 844})

    def shown(place: str) -> str:
        page = ada.open(place)
        assert page.locator("script").count() == 1, place
        expect(page.locator("img[src=x]")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        return page.locator("main").text_content() or ""

    for place in ("review", "sessions", "facts", "experiments", "overview?by=metadata.note"):
        assert "alert(" in shown(place), place
    reviewed = [shown(f"review/{item.item_id}") for item in items]
    assert [any(words in text for text in reviewed) for words in HOSTILE.values()] == [True] * len(HOSTILE)
    for session, words in HOSTILE.items():
        assert words in shown(f"sessions/{quote(session)}"), session


def test_right_to_left_words_have_their_own_direction(served: Served) -> None:
    store = served.dashboard.store
    store.remember("Refunds take 14 days.")
    answered = store.recall("How long?", session_id="s")
    assert answered.qa_id is not None
    store.sessions.add_feedback("s", answered.qa_id, "התשובה שגויה", 1)
    (item,) = store.review.list(target_type="entry").items
    ada = served.visitor()
    for place in (f"review/{item.item_id}", "sessions/s"):
        said = ada.open(place).get_by_text("התשובה שגויה").first
        assert said.evaluate("(each) => getComputedStyle(each).direction") == "rtl", place
