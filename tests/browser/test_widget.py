"""The feedback widget in a real browser, on a page of another origin, with a real server behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect
from server import Running
from sqlalchemy import text
from widget_page import Show, Shown, Site

from heedful.interfaces.client.surface import RemoteHeedful


@dataclass
class Answer:
    """An answer that was given, and a token to rate it."""

    session_id: str
    qa_id: str
    token: str

    @property
    def attributes(self) -> dict[str, str]:
        return {"session-id": self.session_id, "qa-id": self.qa_id, "token": self.token}


@pytest.fixture
def answered(memory: RemoteHeedful) -> Callable[..., Answer]:
    """Makes an answer, and a token for it in the name of Ann."""

    def make(session_id: str = "chat/1", author: str = "ann") -> Answer:
        entry = memory.sessions.add_entry(session_id, "What is it?", "A library.")
        signed = memory.keys.create_token({"session_id": session_id, "qa_id": entry.qa_id}, author=author)
        return Answer(session_id, entry.qa_id, signed.token)

    return make


@pytest.fixture
def answer(answered: Callable[..., Answer]) -> Answer:
    return answered()


@pytest.fixture
def session_token(memory: RemoteHeedful) -> dict[str, str]:
    """The attributes of a widget about a whole session."""
    memory.sessions.create("talk")
    signed = memory.keys.create_token({"session_id": "talk"}, author="ann")
    return {"session-id": "talk", "token": signed.token}


def rated(memory: RemoteHeedful, answer: Answer) -> tuple[int | None, str | None]:
    entry = memory.sessions.entry(answer.session_id, answer.qa_id)
    return entry.feedback_score, entry.feedback_text


def ledger(server: Running) -> list[tuple[str, str]]:
    """Every event that feedback left: what it was, and whose."""
    with server.state.store.database.read() as connection:
        rows = connection.execute(text("SELECT kind, author FROM events ORDER BY seq"))
        return [(row.kind, row.author) for row in rows]


def up(page: Page | Locator) -> Locator:
    return page.get_by_role("button", name="Helpful", exact=True)


def down(page: Page | Locator) -> Locator:
    return page.get_by_role("button", name="Not helpful", exact=True)


def star(page: Page | Locator, number: int) -> Locator:
    return page.get_by_role("radio", name=f"{number} of 5 stars")


def status(page: Page | Locator) -> Locator:
    return page.get_by_role("status")


def pressed(button: Locator, yes: bool = True) -> None:
    expect(button).to_have_attribute("aria-pressed", str(yes).lower())


class Trouble:
    """Stands between the page and the server, and spoils the first calls."""

    def __init__(self, page: Page, times: int, spoil: Callable[[Route], None]) -> None:
        self.left = times
        self.sent: list[tuple[str, str | None]] = []
        self._spoil = spoil
        page.route("**/v1/**", self._handle)

    def _handle(self, route: Route) -> None:
        self.sent.append((route.request.method, route.request.headers.get("idempotency-key")))
        if self.left > 0:
            self.left -= 1
            self._spoil(route)
        else:
            route.continue_()


class Held:
    """Keeps calls back until they are released."""

    def __init__(self, page: Page) -> None:
        self._routes: list[Route] | None = []
        page.route("**/v1/**", self._handle)

    def _handle(self, route: Route) -> None:
        if self._routes is None:
            route.continue_()
        else:
            self._routes.append(route)

    def release(self) -> None:
        routes, self._routes = self._routes, None
        for route in routes or []:
            route.continue_()


def pass_time(shown: Shown, until: Callable[[], bool]) -> None:
    """Moves the clock of the page until something is so; in between, the server gets the time it needs."""
    for _ in range(3_000):
        if until():
            return
        shown.page.clock.fast_forward(6_000)
        shown.page.wait_for_timeout(10)
    raise AssertionError(f"it never came; there is {shown.page.locator('main').aria_snapshot()}")


def unavailable(route: Route) -> None:
    route.fulfill(status=503, body="{}", headers={"access-control-allow-origin": "*"})


def lost_reply(route: Route) -> None:
    """The server does it, and the page never hears of it."""
    route.fetch()
    route.abort()


@pytest.mark.nightly
def test_thumbs_on_an_answer_are_kept_changed_and_undone_under_the_name_of_the_token(
    show: Show, server: Running, memory: RemoteHeedful, answer: Answer
) -> None:
    shown = show(answer.attributes)
    pressed(up(shown.page), False)
    up(shown.page).click()
    expect(status(shown.page)).to_have_text("Saved")
    pressed(up(shown.page))
    assert rated(memory, answer) == (5, None)

    down(shown.page).click()
    shown.wait_for("heedful-feedback", 2)
    pressed(down(shown.page))
    pressed(up(shown.page), False)
    assert rated(memory, answer) == (1, None)

    down(shown.page).click()
    expect(status(shown.page)).to_have_text("Undone")
    pressed(down(shown.page), False)
    assert rated(memory, answer) == (None, None)
    assert {author for _, author in ledger(server)} == {"ann"}
    assert [each["value"] for each in shown.events] == ["up", "down", None]
    assert shown.events[0]["target"] == {"session_id": answer.session_id, "qa_id": answer.qa_id}


def test_a_session_is_rated_and_the_rating_is_changed_and_retracted(
    show: Show, memory: RemoteHeedful, session_token: dict[str, str]
) -> None:
    shown = show(session_token)
    up(shown.page).click()
    first = shown.wait_for("heedful-feedback")
    [feedback] = memory.sessions.feedbacks("talk").items
    assert (feedback.rating, feedback.author, feedback.feedback_id) == ("up", "ann", first["feedbackId"])
    down(shown.page).click()
    shown.wait_for("heedful-feedback", 2)
    assert [each.rating for each in memory.sessions.feedbacks("talk").items] == ["down"]
    shown.page.get_by_role("button", name="Undo").click()
    expect(status(shown.page)).to_have_text("Undone")
    assert memory.sessions.feedbacks("talk").items == []


@pytest.mark.parametrize(("number", "rating"), [(5, "up"), (4, "up"), (3, None), (2, "down"), (1, "down")])
@pytest.mark.nightly
def test_stars_for_a_session_become_its_rating(
    show: Show, memory: RemoteHeedful, session_token: dict[str, str], number: int, rating: str | None
) -> None:
    shown = show({**session_token, "kind": "stars"})
    star(shown.page, number).click()
    shown.wait_for("heedful-feedback")
    assert [each.rating for each in memory.sessions.feedbacks("talk").items] == [rating]


@pytest.mark.nightly
def test_executions_are_right_or_wrong_and_have_no_stars(show: Show, memory: RemoteHeedful, tmp_path: Path) -> None:
    memory.connectors.create("geo", make_cities(tmp_path).url)
    done = memory.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    token = memory.keys.create_token({"execution_id": done.execution_id}, author="ann").token
    shown = show({"execution-id": done.execution_id, "token": token, "comment": ""})
    up(shown.page).click()
    shown.wait_for("heedful-feedback")
    down(shown.page).click()
    shown.wait_for("heedful-feedback", 2)
    shown.page.get_by_role("textbox").fill("Rome is missing.")
    shown.page.get_by_role("button", name="Send").click()
    shown.wait_for("heedful-feedback", 3)
    [feedback] = memory.feedback.list().items
    assert (feedback.is_positive, feedback.feedback, feedback.author) == (False, "Rome is missing.", "ann")
    down(shown.page).click()
    expect(status(shown.page)).to_have_text("Undone")
    assert memory.feedback.list().total == 0

    said: list[str] = []
    shown.page.on("console", lambda message: said.append(message.text))
    shown.page.evaluate("document.querySelector('heedful-feedback').kind = 'stars'")
    expect(up(shown.page)).to_be_visible()
    assert any("no stars for executions" in each for each in said)


@pytest.mark.nightly
def test_a_message_of_a_chat_is_right_or_wrong(show: Show, memory: RemoteHeedful, tmp_path: Path) -> None:
    memory.connectors.create("geo", make_cities(tmp_path).url)
    memory.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    chat = memory.chat_sessions.create()
    message = memory.chat.chat_to_answer(chat.id, IN_ITALY).chat_message_id
    token = memory.keys.create_token({"chat_message_id": message}, author="ann").token
    shown = show({"chat-message-id": message, "token": token})
    down(shown.page).click()
    shown.wait_for("heedful-feedback")
    [feedback] = memory.feedback.get_feedback_for_message(message).items
    assert (feedback.is_positive, feedback.author) == (False, "ann")
    down(shown.page).click()
    expect(status(shown.page)).to_have_text("Undone")
    assert memory.feedback.get_feedback_for_message(message).total == 0


@pytest.mark.nightly
def test_stars_are_chosen_with_the_keyboard_and_only_where_the_keys_stop_is_saved(
    show: Show, server: Running, memory: RemoteHeedful, answer: Answer
) -> None:
    shown = show({**answer.attributes, "kind": "stars"}, clock=True)
    keys = shown.page.keyboard
    keys.press("Tab")
    expect(star(shown.page, 1)).to_be_focused()
    assert rated(memory, answer) == (None, None)
    for key, number in [("ArrowRight", 2), ("ArrowUp", 3), ("ArrowLeft", 2), ("ArrowDown", 1), ("ArrowLeft", 1)]:
        keys.press(key)
        expect(star(shown.page, number)).to_be_focused()
        expect(star(shown.page, number)).to_be_checked()
    keys.press("End")
    expect(star(shown.page, 5)).to_be_checked()
    keys.press("Home")
    keys.press("ArrowRight")
    assert ledger(server) == []
    shown.page.clock.fast_forward(1_000)
    shown.wait_for("heedful-feedback")
    assert rated(memory, answer) == (2, None)
    assert len(ledger(server)) == 1
    expect(shown.page.get_by_role("radio", checked=True)).to_have_count(1)

    keys.press("ArrowRight")
    keys.press("Space")
    shown.wait_for("heedful-feedback", 2)
    assert rated(memory, answer) == (3, None)

    keys.press("ArrowRight")
    keys.press("Tab")
    shown.wait_for("heedful-feedback", 3)
    assert rated(memory, answer) == (4, None)
    expect(shown.page.get_by_role("button", name="Undo")).to_be_focused()
    keys.press("Enter")
    shown.wait_for("heedful-feedback", 4)
    assert rated(memory, answer) == (None, None)
    expect(star(shown.page, 1)).to_be_focused()


@pytest.mark.slow
def test_arrow_keys_follow_the_direction_of_the_text(show: Show, answer: Answer) -> None:
    shown = show({**answer.attributes, "kind": "stars", "dir": "rtl"})
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("ArrowLeft")
    expect(star(shown.page, 2)).to_be_checked()
    shown.page.keyboard.press("ArrowRight")
    expect(star(shown.page, 1)).to_be_checked()


@pytest.mark.nightly
def test_thumbs_work_with_the_keyboard(show: Show, memory: RemoteHeedful, answer: Answer) -> None:
    shown = show(answer.attributes)
    shown.page.keyboard.press("Tab")
    expect(up(shown.page)).to_be_focused()
    shown.page.keyboard.press("Tab")
    expect(down(shown.page)).to_be_focused()
    assert (
        shown.page.evaluate(
            "getComputedStyle(document.querySelector('heedful-feedback').shadowRoot.activeElement).outlineStyle"
        )
        == "solid"
    )
    shown.page.keyboard.press("Space")
    shown.wait_for("heedful-feedback")
    assert rated(memory, answer) == (1, None)
    shown.page.keyboard.press("Enter")
    shown.wait_for("heedful-feedback", 2)
    assert rated(memory, answer) == (None, None)
    expect(down(shown.page)).to_be_focused()


HOSTILE = {
    "markup": "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "right to left": "‮ספר טוב מאוד‬ ﷽ مرحبا",
    "quotes": "\"'`; DROP TABLE events; -- \\u0000 \\ {{x}} ${x}",
    "emoji": "👩‍👩‍👧‍👦 ❤️",
    "long": "x" * 10_000,
    "lines": "one\n\n  two\tthree",
}


@pytest.mark.parametrize("comment", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.nightly
def test_a_comment_is_kept_as_the_text_it_is(show: Show, memory: RemoteHeedful, answer: Answer, comment: str) -> None:
    shown = show({**answer.attributes, "comment": ""})
    expect(shown.page.get_by_role("textbox")).to_be_hidden()
    up(shown.page).click()
    shown.page.get_by_label("Anything to add?").fill(comment)
    shown.page.get_by_role("button", name="Send").click()
    shown.page.wait_for_function("() => events.some((each) => each.comment)")
    assert rated(memory, answer) == (5, comment)
    expect(shown.page.get_by_role("button", name="Comment")).to_be_focused()
    assert shown.page.evaluate("window.hacked") is None

    # Another rating keeps the words; undo takes all back.
    down(shown.page).click()
    shown.page.wait_for_function("() => events.at(-1).value === 'down'")
    assert rated(memory, answer) == (1, comment)
    shown.page.get_by_role("button", name="Comment").click()
    expect(shown.page.get_by_role("textbox")).to_have_value(comment)
    shown.page.get_by_role("button", name="Undo").click()
    expect(status(shown.page)).to_have_text("Undone")
    assert rated(memory, answer) == (None, None)


@pytest.mark.slow
def test_a_comment_has_no_more_characters_than_are_kept(show: Show, answer: Answer) -> None:
    shown = show({**answer.attributes, "comment": ""})
    up(shown.page).click()
    box = shown.page.get_by_role("textbox")
    box.fill("x" * 9_999)
    box.press("End")
    box.press_sequentially("yyy")
    assert len(box.input_value()) == 10_000


def test_hostile_attributes_stay_texts(show: Show, answer: Answer) -> None:
    bad = '<img src=x onerror="window.hacked = 1">'
    words = '{"up": "<b>Helpful</b>", "group": "<script>window.hacked = 1</script>", "undo": "<i>Undo</i>"}'
    shown = show({**answer.attributes, "labels": words, "value": "up", "comment": "", "comment-value": bad})
    expect(shown.page.get_by_role("button", name="<b>Helpful</b>")).to_be_visible()
    expect(shown.page.get_by_role("button", name="<i>Undo</i>")).to_be_visible()
    shown.page.get_by_role("button", name="Comment").click()
    expect(shown.page.get_by_role("textbox")).to_have_value(bad)
    assert (
        shown.page.evaluate("document.querySelector('heedful-feedback').shadowRoot.querySelector('b, i, img')") is None
    )
    assert shown.page.evaluate("window.hacked") is None


@pytest.mark.slow
def test_what_is_clicked_offline_shows_at_once_and_is_saved_when_the_network_is_back(
    show: Show, memory: RemoteHeedful, answer: Answer
) -> None:
    shown = show(answer.attributes)
    context: BrowserContext = shown.page.context
    context.set_offline(True)
    up(shown.page).click()
    pressed(up(shown.page))
    expect(status(shown.page)).to_have_text("Still trying to save…")
    assert rated(memory, answer) == (None, None)
    context.set_offline(False)
    expect(status(shown.page)).to_have_text("Saved")
    assert rated(memory, answer) == (5, None)


@pytest.mark.slow
def test_a_server_that_fails_a_few_times_is_asked_again(show: Show, memory: RemoteHeedful, answer: Answer) -> None:
    shown = show(answer.attributes, clock=True)
    trouble = Trouble(shown.page, 3, unavailable)
    up(shown.page).click()
    expect(status(shown.page)).to_have_text("Still trying to save…")
    pressed(up(shown.page))
    pass_time(shown, lambda: len(trouble.sent) >= 4)
    expect(status(shown.page)).to_have_text("Saved")
    assert rated(memory, answer) == (5, None)


@pytest.mark.slow
def test_a_post_whose_reply_is_lost_counts_once(
    show: Show, server: Running, memory: RemoteHeedful, session_token: dict[str, str]
) -> None:
    shown = show(session_token, clock=True)
    trouble = Trouble(shown.page, 2, lost_reply)
    up(shown.page).click()
    pass_time(shown, lambda: len(trouble.sent) >= 3)
    expect(status(shown.page)).to_have_text("Saved")
    assert len(memory.sessions.feedbacks("talk").items) == 1
    assert len(ledger(server)) == 1
    [(_, key), *others] = trouble.sent
    assert len(others) == 2
    assert key is not None
    assert {each for _, each in others} == {key}

    trouble.left = 1
    shown.page.get_by_role("button", name="Undo").click()
    pass_time(shown, lambda: len(trouble.sent) >= 5)
    expect(status(shown.page)).to_have_text("Undone")
    assert memory.sessions.feedbacks("talk").items == []


@pytest.mark.nightly
def test_what_can_not_be_saved_goes_back_and_can_be_tried_again(
    show: Show, memory: RemoteHeedful, answer: Answer
) -> None:
    shown = show({**answer.attributes, "comment": ""}, clock=True)
    up(shown.page).click()
    shown.wait_for("heedful-feedback")
    trouble = Trouble(shown.page, 10_000, lambda route: route.abort())
    shown.page.get_by_role("textbox").fill("All of it.")
    shown.page.get_by_role("button", name="Send").click()
    down(shown.page).click()
    pressed(down(shown.page))
    pass_time(shown, lambda: any(each["type"] == "heedful-error" for each in shown.events))
    assert len(trouble.sent) == 4
    expect(status(shown.page)).to_have_text("Couldn’t be saved")
    pressed(up(shown.page))
    pressed(down(shown.page), False)
    expect(shown.page.get_by_role("textbox")).to_have_value("All of it.")
    error = shown.wait_for("heedful-error")
    assert (error["status"], error["code"], error["value"]) == (0, "network", "up")
    assert error["lost"] == {"value": "down", "comment": "All of it."}
    assert rated(memory, answer) == (5, None)

    trouble.left = 0
    shown.page.get_by_role("button", name="Try again").click()
    expect(status(shown.page)).to_have_text("Saved")
    expect(shown.page.get_by_role("button", name="Try again")).to_be_hidden()
    assert rated(memory, answer) == (1, "All of it.")


@pytest.mark.nightly
def test_a_server_that_asks_for_time_is_given_it(show: Show, memory: RemoteHeedful, answer: Answer) -> None:
    def busy(route: Route) -> None:
        headers = {"access-control-allow-origin": "*", "access-control-expose-headers": "retry-after"}
        route.fulfill(status=429, body="{}", headers={**headers, "retry-after": "20"})

    shown = show(answer.attributes, clock=True)
    trouble = Trouble(shown.page, 1, busy)
    up(shown.page).click()
    expect(status(shown.page)).to_have_text("Still trying to save…")
    shown.page.clock.fast_forward(15_000)
    expect(status(shown.page)).to_have_text("Still trying to save…")
    assert len(trouble.sent) == 1
    shown.page.clock.fast_forward(5_000)
    expect(status(shown.page)).to_have_text("Saved")


@pytest.mark.slow
def test_quick_clicks_end_in_the_last_state(show: Show, server: Running, memory: RemoteHeedful, answer: Answer) -> None:
    shown = show(answer.attributes)
    clicks = ["up", "down", "up", "up", "down", "up", "down", "down", "up"]
    shown.page.evaluate(
        """(clicks) => {
          const root = document.querySelector("heedful-feedback").shadowRoot;
          for (const each of clicks) root.querySelector(`.${each}`).click();
        }""",
        clicks,
    )
    shown.wait_for("heedful-feedback")
    pressed(up(shown.page))
    assert rated(memory, answer) == (5, None)
    assert len(ledger(server)) == 1
    assert len(shown.events) == 1


@pytest.mark.slow
def test_a_double_click_is_one_opinion(show: Show, server: Running, memory: RemoteHeedful, answer: Answer) -> None:
    shown = show(answer.attributes)
    up(shown.page).dblclick()
    expect(status(shown.page)).to_have_text("Saved")
    pressed(up(shown.page))
    assert rated(memory, answer) == (5, None)
    assert len(ledger(server)) == 1


@pytest.mark.nightly
def test_an_undo_before_the_first_reply_is_an_undo(
    show: Show, memory: RemoteHeedful, session_token: dict[str, str]
) -> None:
    shown = show(session_token)
    held = Held(shown.page)
    up(shown.page).click()
    shown.page.wait_for_function("() => document.querySelector('heedful-feedback').value === 'up'")
    up(shown.page).click()
    pressed(up(shown.page), False)
    held.release()
    expect(status(shown.page)).to_have_text("Undone")
    assert memory.sessions.feedbacks("talk").items == []


@pytest.mark.slow
def test_a_click_on_the_way_out_arrives(show: Show, memory: RemoteHeedful, answer: Answer) -> None:
    shown = show({**answer.attributes, "kind": "stars"})
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("End")
    shown.page.goto("about:blank")
    for _ in range(100):
        if rated(memory, answer) == (5, None):
            break
        shown.page.wait_for_timeout(50)
    assert rated(memory, answer) == (5, None)


@pytest.mark.slow
def test_an_expired_token_is_renewed_and_the_click_is_not_lost(
    show: Show, server: Running, memory: RemoteHeedful, answer: Answer
) -> None:
    shown = show(answer.attributes)
    target = {"session_id": answer.session_id, "qa_id": answer.qa_id}
    shown.page.expose_function("newToken", lambda: memory.keys.create_token(target, author="ann").token)
    shown.page.evaluate("() => { document.querySelector('heedful-feedback').refreshToken = () => window.newToken() }")
    server.clock.advance(seconds=601)
    up(shown.page).click()
    shown.wait_for("heedful-feedback")
    assert shown.wait_for("heedful-token-expired")["code"] == "token_expired"
    assert rated(memory, answer) == (5, None)
    assert [each["type"] for each in shown.events] == ["heedful-token-expired", "heedful-feedback"]


@pytest.mark.slow
def test_a_page_may_bring_a_new_token_later(show: Show, server: Running, memory: RemoteHeedful, answer: Answer) -> None:
    shown = show(answer.attributes)
    server.clock.advance(seconds=601)
    up(shown.page).click()
    expect(status(shown.page)).to_have_text("Reload the page to rate this")
    pressed(up(shown.page), False)
    target = {"session_id": answer.session_id, "qa_id": answer.qa_id}
    fresh = memory.keys.create_token(target, author="ann").token
    shown.page.evaluate("(token) => { document.querySelector('heedful-feedback').token = token; }", fresh)
    expect(status(shown.page)).to_have_text("Saved")
    assert rated(memory, answer) == (5, None)


@pytest.mark.slow
def test_a_refresh_that_fails_is_an_error_that_can_be_tried_again(show: Show, server: Running, answer: Answer) -> None:
    shown = show(answer.attributes)
    shown.page.evaluate(
        "() => { document.querySelector('heedful-feedback').refreshToken = () => Promise.reject('signed out') }"
    )
    server.clock.advance(seconds=601)
    up(shown.page).click()
    error = shown.wait_for("heedful-error")
    assert (error["status"], error["code"]) == (401, "token_expired")
    expect(shown.page.get_by_role("button", name="Try again")).to_be_visible()


@pytest.mark.slow
def test_a_token_for_something_else_is_refused_and_that_is_shown(
    show: Show, server: Running, memory: RemoteHeedful, answered: Callable[..., Answer]
) -> None:
    mine, other = answered(), answered()
    shown = show({**other.attributes, "token": mine.token})
    up(shown.page).click()
    error = shown.wait_for("heedful-error")
    assert (error["status"], error["code"]) == (403, "scope_missing")
    expect(status(shown.page)).to_have_text("This can’t be rated here")
    expect(shown.page.get_by_role("button", name="Try again")).to_be_hidden()
    pressed(up(shown.page), False)
    assert ledger(server) == []


@pytest.mark.nightly
def test_two_widgets_of_a_page_do_not_meddle(
    show: Show, memory: RemoteHeedful, answered: Callable[..., Answer]
) -> None:
    first, second = answered(author="ann"), answered(author="bob")
    shown = show({"id": "one", **first.attributes}, {"id": "two", **second.attributes, "kind": "stars"})
    one, two = shown.page.locator("#one"), shown.page.locator("#two")
    down(one).click()
    star(two, 4).click()
    expect(status(one)).to_have_text("Saved")
    expect(status(two)).to_have_text("Saved")
    assert (rated(memory, first), rated(memory, second)) == ((1, None), (4, None))
    assert {(each["id"], each["value"]) for each in shown.events} == {("one", "down"), ("two", 4)}


@pytest.mark.nightly
def test_a_widget_can_be_pointed_at_something_else(
    show: Show, memory: RemoteHeedful, answered: Callable[..., Answer]
) -> None:
    first, second = answered(), answered()
    shown = show(first.attributes)
    held = Held(shown.page)
    up(shown.page).click()
    shown.page.evaluate(
        """([qaId, token]) => Object.assign(document.querySelector("heedful-feedback"), { qaId, token })""",
        [second.qa_id, second.token],
    )
    pressed(up(shown.page), False)
    held.release()
    down(shown.page).click()
    shown.wait_for("heedful-feedback")
    assert (rated(memory, first), rated(memory, second)) == ((5, None), (1, None))
    assert [each["value"] for each in shown.events] == ["down"]


@pytest.mark.nightly
def test_what_was_said_before_a_widget_was_pointed_elsewhere_is_sent_again_with_its_own_token(
    show: Show, memory: RemoteHeedful, answered: Callable[..., Answer]
) -> None:
    first, second = answered(), answered()
    shown = show(first.attributes, clock=True)
    trouble = Trouble(shown.page, 1, unavailable)
    up(shown.page).click()
    expect(status(shown.page)).to_have_text("Still trying to save…")
    shown.page.evaluate(
        """([qaId, token]) => Object.assign(document.querySelector("heedful-feedback"), { qaId, token })""",
        [second.qa_id, second.token],
    )
    expect(status(shown.page)).to_have_text("")
    pass_time(shown, lambda: len(trouble.sent) >= 2 and rated(memory, first) == (5, None))
    pressed(up(shown.page), False)
    assert shown.events == []


@pytest.mark.nightly
def test_what_was_said_before_can_be_shown_changed_and_undone(
    show: Show, memory: RemoteHeedful, session_token: dict[str, str]
) -> None:
    feedback = memory.sessions.add_session_feedback("talk", {"rating": "up", "comment": "Good."}, author="ann")
    assert feedback is not None
    shown = show({**session_token, "value": "up", "comment-value": "Good.", "feedback-id": feedback.feedback_id})
    pressed(up(shown.page))
    expect(status(shown.page)).to_have_text("")
    down(shown.page).click()
    shown.wait_for("heedful-feedback")
    [now] = memory.sessions.feedbacks("talk").items
    assert (now.rating, now.comment) == ("down", "Good.")
    down(shown.page).click()
    shown.wait_for("heedful-feedback", 2)
    assert memory.sessions.feedbacks("talk").items == []


@pytest.mark.nightly
def test_without_its_id_an_earlier_opinion_of_a_session_can_be_changed_but_not_undone(
    show: Show, memory: RemoteHeedful, session_token: dict[str, str]
) -> None:
    memory.sessions.add_session_feedback("talk", {"rating": "up"}, author="ann")
    shown = show({**session_token, "value": "up"})
    expect(shown.page.get_by_role("button", name="Undo")).to_be_hidden()
    up(shown.page).click()
    pressed(up(shown.page))
    down(shown.page).click()
    shown.wait_for("heedful-feedback")
    expect(shown.page.get_by_role("button", name="Undo")).to_be_visible()
    assert [each.rating for each in memory.sessions.feedbacks("talk").items] == ["down"]


@pytest.mark.nightly
def test_a_widget_that_lacks_something_says_so_and_can_not_be_pressed(show: Show, answer: Answer) -> None:
    said: list[str] = []
    shown = show({**answer.attributes, "token": ""})
    shown.page.on("console", lambda message: said.append(message.text))
    expect(up(shown.page)).to_be_disabled()
    shown.page.evaluate("document.querySelector('heedful-feedback').executionId = 'x'")
    shown.page.wait_for_function("() => true")
    assert "nothing can be saved without token and one of session-id, execution-id and chat-message-id" in said[-1]
    shown.page.evaluate(
        "(token) => Object.assign(document.querySelector('heedful-feedback'), { token, executionId: null })",
        answer.token,
    )
    expect(up(shown.page)).to_be_enabled()


@pytest.mark.nightly
def test_texts_can_be_of_another_language_also_before_the_script_has_come(show: Show, answer: Answer) -> None:
    early = """
    document.addEventListener("DOMContentLoaded", () => 0);
    new MutationObserver(() => {
      const found = document.querySelector("heedful-feedback:not(:defined)");
      if (found && !found.labels) found.labels = { up: "Hilfreich", saved: "Gespeichert" };
    }).observe(document, { childList: true, subtree: true });
    """
    shown = show(answer.attributes, before=early)
    shown.page.get_by_role("button", name="Hilfreich").click()
    expect(status(shown.page)).to_have_text("Gespeichert")
    expect(down(shown.page)).to_be_visible()


@pytest.mark.nightly
def test_names_roles_and_states_are_in_the_accessibility_tree(show: Show, answered: Callable[..., Answer]) -> None:
    first, second = answered(), answered()
    shown = show(
        {"id": "one", **first.attributes, "value": "down", "comment": ""},
        {"id": "two", **second.attributes, "kind": "stars", "value": "3"},
    )
    expect(shown.page.locator("#one")).to_match_aria_snapshot(
        """
        - group "Rate this answer":
          - button "Helpful"
          - button "Not helpful" [pressed]
        - button "Undo"
        - button "Comment"
        """
    )
    expect(shown.page.locator("#two")).to_match_aria_snapshot(
        """
        - radiogroup "Rate this answer":
          - radio "1 of 5 stars"
          - radio "2 of 5 stars"
          - radio "3 of 5 stars" [checked]
          - radio "4 of 5 stars"
          - radio "5 of 5 stars"
        - button "Undo"
        """
    )
    shown.page.locator("#one").get_by_role("button", name="Comment").click()
    order = []
    shown.page.locator("#one").get_by_role("button", name="Helpful", exact=True).focus()
    for _ in range(7):
        order.append(
            shown.page.evaluate(
                """() => {
                  const found = document.activeElement.shadowRoot?.activeElement;
                  return found && (found.ariaLabel || found.labels?.[0]?.textContent || found.textContent);
                }"""
            )
        )
        shown.page.keyboard.press("Tab")
    assert order == [
        "Helpful", "Not helpful", "Undo", "Anything to add? (optional)", "Send", "Cancel", "3 of 5 stars",
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.nightly
def test_what_is_to_be_read_stands_out_and_what_is_to_be_pressed_is_large_enough(
    show: Show, answer: Answer, scheme: str
) -> None:
    shown = show({**answer.attributes, "value": "up", "comment": ""}, color_scheme=scheme, reduced_motion="reduce")
    shown.page.evaluate("document.documentElement.style.colorScheme = 'light dark'")
    shown.page.get_by_role("button", name="Comment").click()
    for name in ("Helpful", "Not helpful", "Undo", "Send", "Cancel"):
        box = shown.page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 24
    ratios = shown.page.evaluate(CONTRASTS)
    assert set(ratios) == {"up", "down", "undo", "label", "send", "cancel"}
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
    assert (
        shown.page.evaluate(
            "document.querySelector('heedful-feedback').shadowRoot.getAnimations({ subtree: true }).length"
        )
        == 0
    )


CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const page = matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#fff";
  const over = (...colours) => {
    for (const each of colours) { canvas.fillStyle = each; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const root = document.querySelector("heedful-feedback").shadowRoot;
  const found = {};
  for (const part of ["up", "down", "undo", "label", "send", "cancel"]) {
    const { color, backgroundColor } = getComputedStyle(root.querySelector(`[part~=${part}]`));
    const [a, b] = [light(over(page, backgroundColor)), light(over(page, backgroundColor, color))];
    found[part] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }
  return found;
}"""


@pytest.mark.nightly
def test_nothing_is_cut_off_on_a_narrow_page_at_twice_the_size(show: Show, answer: Answer) -> None:
    shown = show({**answer.attributes, "value": "up", "comment": ""}, viewport={"width": 320, "height": 640})
    shown.page.get_by_role("button", name="Comment").click()
    shown.page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_script_is_for_everybody_and_is_kept_by_caches(server: Running) -> None:
    first = httpx.get(f"{server.url}/widget.js", headers={"Origin": "https://anywhere.example"})
    assert first.status_code == 200
    assert first.headers["content-type"] == "application/javascript; charset=utf-8"
    assert first.headers["access-control-allow-origin"] == "*"
    assert "max-age" in first.headers["cache-control"]
    tag = first.headers["etag"]
    again = httpx.get(f"{server.url}/widget.js", headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    head = httpx.head(f"{server.url}/widget.js")
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.nightly
def test_pages_of_the_named_origins_may_send_everything_that_a_widget_sends(
    server: Running, site: Site, method: str
) -> None:
    parameters = {
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
    }
    url = f"{server.url}/v1/projects/default/feedback"
    allowed = httpx.options(url, headers={"Origin": site.origin, **parameters})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == site.origin
    assert method in allowed.headers["access-control-allow-methods"]
    other = httpx.options(url, headers={"Origin": "https://other.example", **parameters})
    assert "access-control-allow-origin" not in other.headers
