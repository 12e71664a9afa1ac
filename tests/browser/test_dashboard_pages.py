"""Every page of the dashboard, with data and without: whole, quiet, reachable, on a phone and in the dark as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from dashboard_page import PROJECT, Served, Visit
from playwright.sync_api import Page, ViewportSize, expect

from heedful.interfaces.dashboard.app import PAGES, SECTIONS
from heedful.model import Signal

pytestmark = pytest.mark.slow

PHONE: ViewportSize = {"width": 390, "height": 844}

PLACES = {
    "overview": "Overview",
    "overview?by=metadata.variant&dataset=help&since=&until=": "Overview",
    "overview/waiting": "To do now",
    "overview/changes": "What changed",
    "overview/themes": "Complaints by theme",
    "review": "Review",
    "review/{item}": None,
    "review/{item}?again=1": None,
    "review/{run_item}": None,
    "review/{item}/again": "Asked again",
    "sessions": "Sessions",
    "sessions/{session}": "Conversation",
    "facts": "Facts",
    "facts?q=How+long+does+a+refund+take": "Facts",
    "facts/usefulness?dataset=help": "Usefulness",
    "facts/{fact}": "Fact",
    "learning": "How it learns",
    "learning?q=How+long+does+a+refund+take&dataset=help": "How it learns",
    "executions": "Executions",
    "executions/cache": "Executions",
    "executions/coverage": "Executions",
    "executions/{execution}": None,
    "experiments": "Experiments",
    "experiments?replay=1&dataset=help": "Experiments",
    "experiments/replay?dataset=help": "Replay of help",
    "experiments?mode=lexical&dataset=help": "Experiments",
    "experiments/regress?mode=lexical&dataset=help": "Rated questions",
    "settings": "Settings",
}
"""Each page with its heading; None where that is what somebody asked."""

PARTS = ("overview?", "overview/", "review/{item}", "review/{item}/again", "facts/usefulness", "experiments/")
"""Pages that others consist of, as these begin: axe-core looks at the others."""

EMPTY = {
    "overview": "Nothing was asked or rated yet",
    "review": "Nobody was unhappy yet",
    "sessions": "No sessions yet",
    "facts": "No facts yet",
    "learning": "Nothing was learnt yet",
    "executions": "No database is connected",
    "executions/cache": "The cache decided nothing in this time",
    "executions/coverage": "Nothing is proven yet",
    "experiments": "No variants to compare yet",
    "experiments?replay=1": "Nothing to replay",
    "experiments?mode=lexical": "No rated questions",
    "settings": "No databases",
}
"""What pages say where there is nothing."""


@pytest.fixture(scope="module")
def things(looked_at: Served) -> dict[str, str]:
    """Something of each kind."""
    store = looked_at.dashboard.store
    entries = store.review.list(target_type="entry").items
    return {
        "item": max(entries, key=lambda item: item.opinions).item_id,
        "run_item": store.review.list(target_type="execution", status=None).items[0].item_id,
        "session": store.sessions.list().items[0].session_id,
        "fact": max(store.usefulness_stats("help").most_useful, key=lambda fact: fact.signal_count).fact_id,
        "execution": store.executions.list().items[0].execution_id,
    }


@pytest.fixture
def visit(looked_at: Served) -> Iterator[Visit]:
    yield looked_at.visitor()
    assert looked_at.leave() == set()


@pytest.fixture
def newcomer(bare: Served) -> Iterator[Visit]:
    yield bare.visitor()
    assert bare.leave() == set()


def serious(page: Page, **options: Any) -> list[str]:
    """What axe-core finds that keeps somebody out."""
    # The rows of a list are alike, and there are many.
    context = {"include": [["html"]], "exclude": [["[data-list] :is(li, tr):nth-child(n+9)"]]}
    found = Axe().run(page, context, {"resultTypes": ["violations"], **options}).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


def sideways(page: Page) -> int:
    """By how many pixels a page is wider than the window."""
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


def unfold(page: Page) -> None:
    """Opens all that is folded, but menus that cover other things."""
    page.evaluate("document.querySelectorAll('details:not(.switch, .sure)').forEach((each) => { each.open = true; })")


def everywhere(page: Page) -> list[str]:
    """What is wrong in light and dark, on a desk and on a phone."""
    unfold(page)
    colours = {"runOnly": ["color-contrast"]}
    found = serious(page)
    page.emulate_media(color_scheme="dark")
    found += serious(page, **colours)
    page.set_viewport_size(PHONE)
    found += serious(page, **colours)
    page.emulate_media(color_scheme="light")
    found += serious(page)
    if sideways(page) > 0:
        found.append(f"{sideways(page)} pixels too wide for a phone")
    return found


def test_every_page_is_looked_at_here() -> None:
    named = {re.sub(r"\{\w+\}", "{}", place.partition("?")[0]) for place in PLACES}
    assert {re.sub(r"\{\w+\}", "{}", page.path.removeprefix("/")) for page in PAGES} <= named
    assert {section.name for section in SECTIONS} <= EMPTY.keys()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.nightly
def test_a_page_is_whole_and_open_to_everybody(visit: Visit, things: dict[str, str], place: str) -> None:
    page = visit.open(place.format(**things))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_count(1)
    if PLACES[place] is not None:
        expect(heading).to_have_text(PLACES[place] or "")
    assert page.title().endswith(" · Heedful")
    expect(page.locator("[data-lazy] > a:only-child")).to_have_count(0)
    assert sideways(page) == 0
    assert page.evaluate("window.shifted") < 0.1
    for chart in page.locator(".chart").all():
        expect(chart.locator("xpath=ancestor::section[1]//table//tbody/tr").first).to_be_attached()
    if not place.startswith(PARTS) or place.endswith("?again=1"):
        assert everywhere(page) == []


@pytest.mark.parametrize("place", EMPTY)
@pytest.mark.nightly
def test_a_page_without_data_says_what_to_do(newcomer: Visit, place: str) -> None:
    page = newcomer.open(place)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    empty = page.locator(".empty", has_text=EMPTY[place])
    expect(empty).to_be_visible()
    expect(empty.locator("p")).not_to_be_empty()
    assert page.evaluate("window.shifted") < 0.1
    assert serious(page) == []
    page.set_viewport_size(PHONE)
    assert sideways(page) == 0


@pytest.mark.parametrize("place", ["nowhere", "facts/nothing", "review/nothing", "sessions/nobody", "executions/none"])
@pytest.mark.nightly
def test_what_is_not_there_is_said_on_a_page_that_leads_on(visit: Visit, place: str) -> None:
    visit.refused = {404}
    page = visit.open(place)
    page.get_by_role("link", name="Go to the overview").click()
    page.wait_for_url("**/overview")


@pytest.mark.nightly
def test_on_a_phone_nothing_jumps_while_the_overview_comes(looked_at: Served) -> None:
    visit = looked_at.visitor(viewport=PHONE)
    page = visit.open("overview")
    assert page.evaluate("window.shifted") < 0.1
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_role("link", name="Settings", exact=True)).to_be_in_viewport()
    looked_at.leave()


def test_the_theme_follows_the_browser_until_somebody_chooses(looked_at: Served) -> None:
    visit = looked_at.visitor(color_scheme="dark")
    page = visit.open("overview")
    ink = "getComputedStyle(document.body).color"
    dark = page.evaluate(ink)
    with page.expect_response("**/theme"):
        page.get_by_role("button", name="Theme: auto").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.evaluate(ink) != dark
    with page.expect_response("**/theme"):
        page.get_by_role("button", name="Theme: light").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(ink) == dark
    looked_at.leave()


def test_a_chart_tells_its_values_on_pointing(visit: Visit) -> None:
    page = visit.open("overview")
    page.locator(".chart [data-tip]").first.hover(force=True)
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).not_to_be_empty()


@pytest.mark.nightly
def test_filters_make_an_address_that_somebody_else_can_open(looked_at: Served, visit: Visit) -> None:
    page = visit.open("overview")
    page.get_by_role("link", name="30 d").click()
    page.get_by_label("Compare by").select_option("metadata.variant")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Satisfaction by variant")).to_be_visible()
    other = looked_at.visitor("Bob")
    other.page.goto(page.url)
    expect(other.page.get_by_role("heading", name="Satisfaction by variant")).to_be_visible()
    expect(other.page.get_by_role("link", name="30 d")).to_have_attribute("aria-current", "true")


def test_a_search_of_facts_and_of_sessions_shows_what_it_found(visit: Visit) -> None:
    page = visit.open("facts?dataset=help")
    page.get_by_label("Search facts").fill("How long does a refund take?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What “How long does a refund take?” recalls")).to_be_visible()
    assert page.locator("[data-list] tbody tr").count() > 1
    page = visit.open("sessions")
    page.get_by_label("Search by metadata").fill("variant=A channel=web")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/sessions?q=*")
    shown = page.locator("[data-list] li")
    assert shown.count() == page.locator("[data-list] li", has_text="variant A").count() > 0


@pytest.mark.nightly
def test_letters_lead_to_pages_and_through_lists(visit: Visit) -> None:
    page = visit.open("overview")
    for section in SECTIONS:
        if section.key is not None:
            page.keyboard.press("g")
            page.keyboard.press(section.key)
            page.wait_for_url(f"**/p/{PROJECT}/{section.name}")
    page = visit.open("review")
    rows = page.locator("[data-list] a[data-row]")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.nth(0)).to_be_focused()
    there = rows.nth(0).get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{there}")


def test_the_keys_for_search_and_help(visit: Visit) -> None:
    page = visit.open("facts")
    page.keyboard.press("/")
    expect(page.get_by_label("Search facts")).to_be_focused()
    page.keyboard.type("g?j")
    expect(page.get_by_label("Search facts")).to_have_value("g?j")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert serious(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


@pytest.mark.parametrize("place", ["overview", "review/{item}", "settings"])
@pytest.mark.nightly
def test_tab_reaches_all_that_can_be_used(visit: Visit, things: dict[str, str], place: str) -> None:
    page = visit.open(place.format(**things))
    expected = page.evaluate(
        """() => {
          const found = Array.from(document.querySelectorAll("a[href], button, input, select, textarea, summary"));
          const seen = (each) => each.checkVisibility({ visibilityProperty: true }) && each.type !== "hidden";
          window.wanted = found.filter(seen);
          return window.wanted.length;
        }"""
    )
    reached = set()
    # A field for a day has several stops.
    for _ in range(expected + 12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("window.wanted.indexOf(document.activeElement)"))
        assert page.evaluate("document.activeElement.matches(':focus-visible, body, [type=date]')"), place
    assert set(range(expected)) - reached == set()


def test_the_first_tab_skips_to_the_content(visit: Visit) -> None:
    page = visit.open("overview")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_without_its_script_a_page_has_links_in_place_of_what_comes_later(looked_at: Served) -> None:
    visit = looked_at.visitor(java_script_enabled=False)
    visit.page.goto(f"{visit.url}/p/{PROJECT}/overview")
    visit.page.get_by_role("link", name="Show what changed").click()
    expect(visit.page.get_by_role("heading", name="What changed", level=1)).to_be_visible()
    visit.page.close()
    looked_at.leave()


@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 800}])
@pytest.mark.nightly
def test_long_names_and_values_stay_within_the_page(served: Served, size: ViewportSize) -> None:
    store = served.dashboard.store
    for number, value in enumerate(("W" * 300, "名" * 300, "three words " * 30)):
        session = f"s{number}"
        store.create_dataset(f"{number}" + "d" * 60)
        store.sessions.create(session, metadata={"k" * 200: "one", "variant": value, "v" * 200: value})
        store.remember("Refunds take 14 days.")
        answered = store.recall("How long do refunds take?", session_id=session)
        assert answered.qa_id is not None
        store.sessions.add_feedback(session, answered.qa_id, None, 5, author="a" * 200)
    page = served.visitor(viewport=size).page
    long = f"experiments?by={'v' * 200}"
    for place in ("sessions", "sessions/s0", "experiments", long, "overview?by=metadata.variant"):
        page.goto(f"{served.url}/p/{PROJECT}/{place}")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        unfold(page)
        assert sideways(page) == 0, place
        assert page.evaluate(
            """() => Array.from(document.querySelectorAll(".chart text")).every((each) => {
              const card = each.closest(".card").getBoundingClientRect(), box = each.getBoundingClientRect();
              return box.left >= card.left && box.right <= card.right;
            })"""
        ), place


def test_authors_of_signals_are_not_broken_within_their_names(served: Served) -> None:
    store = served.dashboard.store
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    store.signal(Signal(fact_id=fact, signal_type="not_helpful", query="q", author="kofi.costa@example.com"))
    page = served.visitor().open(f"facts/{fact}")
    name = page.get_by_text("kofi.costa@example.com", exact=True)
    assert name.evaluate("(each) => each.getClientRects().length") == 1
