"""The interactive pages about the API, in a browser that reaches nothing but the server."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect
from server import Running

from heedful.interfaces.http.server_routes import POLICY


@pytest.mark.slow
def test_a_call_is_tried_on_the_page_without_any_other_network(browser: Browser, server: Running) -> None:
    problems: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)

    def only_here(route: Route) -> None:
        if not route.request.url.startswith(server.url):
            problems.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route("**/*", only_here)
    try:
        response = page.goto(f"{server.url}/docs")
        assert response is not None
        assert response.headers["content-security-policy"] == POLICY
        expect(page.get_by_role("heading", name="Heedful", exact=False).first).to_be_visible()
        page.get_by_role("button", name="Authorize").click()
        page.get_by_label("Value").fill(server.key)
        page.get_by_role("button", name="Apply credentials").click()
        page.get_by_role("button", name="Close").click()
        page.locator("#operations-memory-datasets button.opblock-summary-control").click()
        page.get_by_role("button", name="Try it out").click()
        page.get_by_role("button", name="Execute", exact=True).click()
        expect(page.locator("#operations-memory-datasets .live-responses-table")).to_contain_text("200")
    finally:
        context.close()
    assert problems == []
