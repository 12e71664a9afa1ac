"""Logging in: who is let in, for how long, and that nothing is lost when it ends in the middle of something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from dashboards import Dashboard, hidden, token
from sqlalchemy import text
from starlette.testclient import TestClient

from heedful.access import credentials
from heedful.interfaces.dashboard.app import create
from heedful.model import Scope
from heedful.testing import ManualClock


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    yield made
    made.close()


def correct(fact_id: str, form: str, text: str = "Refunds take 30 days.") -> dict[str, str]:
    return {"fact_id": fact_id, "text": text, "token": form, "back": f"/p/default/facts/{fact_id}"}


def remembered(dashboard: Dashboard, text: str = "Refunds take 14 days.") -> str:
    return dashboard.store.remember(text).fact_ids[0]


def test_pages_are_for_those_who_are_logged_in_and_logging_in_leads_back_to_them(dashboard: Dashboard) -> None:
    client = dashboard.client()
    reply = client.get("/p/default/facts?q=refund")
    assert reply.status_code == 303
    page = client.get(reply.headers["location"]).text
    entered = client.post("/login", data={"api_key": dashboard.admin, "to": hidden(page, "to")})
    assert entered.headers["location"] == "/p/default/facts?q=refund"
    assert client.get(entered.headers["location"]).status_code == 200


def test_a_printed_link_logs_in_once_soon_and_here(dashboard: Dashboard, clock: ManualClock) -> None:
    logins = dashboard.app.state.site.logins
    here = TestClient(dashboard.app, "http://dashboard.test", client=("127.0.0.1", 1), follow_redirects=False)
    there = TestClient(dashboard.app, "http://dashboard.test", client=("192.0.2.7", 1), follow_redirects=False)

    def code() -> str:
        address, _, found = logins.link("http://127.0.0.1:8001").partition("#once=")
        assert address == "http://127.0.0.1:8001/login"
        return str(found)

    def enter(client: TestClient, code: str) -> int:
        return int(client.post("/login", data={"api_key": code}).status_code)

    first = code()
    assert (enter(there, first), enter(here, f"{first}x"), enter(here, first)) == (401, 401, 303)
    assert here.get("/p/default/settings").status_code == 200
    assert enter(TestClient(dashboard.app, client=("127.0.0.1", 1)), first) == 401
    late = code()
    clock.advance(minutes=11)
    assert enter(here, late) == 401
    replaced = code()
    assert (enter(here, code()), enter(here, replaced)) == (303, 401)
    assert [logins.link(f"http://{host}:8001") for host in ("0.0.0.0", "192.0.2.7", "[::]")] == [None] * 3


def test_a_login_by_link_ends_with_the_dashboard_that_printed_it(dashboard: Dashboard) -> None:
    client = TestClient(dashboard.app, client=("127.0.0.1", 1), follow_redirects=False)
    link = dashboard.app.state.site.logins.link("http://127.0.0.1:8001")
    client.post("/login", data={"api_key": link.partition("#once=")[2]})
    again = TestClient(create(dashboard.opened), cookies=dict(client.cookies))
    assert "a dashboard that was stopped" in again.get("/login").text
    with dashboard.opened.database.read() as connection:
        rows = [tuple(row) for row in connection.execute(text("SELECT * FROM logins"))]
    assert link.partition("#once=")[2] not in repr(rows)


@pytest.mark.slow
def test_every_wrong_key_is_refused_in_the_same_words(dashboard: Dashboard) -> None:
    revoked = dashboard.store.keys.create("gone")
    dashboard.store.keys.revoke(revoked.key_id)
    signed = dashboard.store.keys.create_token({"session_id": "s"}).token
    assert signed.startswith(credentials.TOKEN_PREFIX)
    answers = [
        dashboard.client().post("/login", data={"api_key": wrong})
        for wrong in ("", "nonsense", revoked.api_key, revoked.api_key[:-1] + "x", signed)
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert not any("set-cookie" in answer.headers for answer in answers)


def test_many_wrong_keys_at_once_have_to_wait(path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.interfaces.dashboard.responses.PAUSE", 0)
    dashboard = Dashboard(path, clock)
    client = dashboard.client()
    answers = [client.post("/login", data={"api_key": "nonsense"}) for _ in range(40)]
    dashboard.close()
    # A slow machine earns some attempts meanwhile.
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert int(refused[-1].headers["retry-after"]) >= 1


@pytest.mark.parametrize("target", ["https://elsewhere.test/", "//elsewhere.test", "/\\elsewhere.test", "\t/x"])
def test_logging_in_leads_nowhere_else(dashboard: Dashboard, target: str) -> None:
    entered = dashboard.client().post("/login", data={"api_key": dashboard.admin, "to": target})
    assert entered.headers["location"] == "/"


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(dashboard: Dashboard) -> None:
    entered = dashboard.client().post("/login", data={"api_key": dashboard.admin})
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    client = dashboard.client()
    client.base_url = "https://dashboard.test"
    assert "secure" in client.post("/login", data={"api_key": dashboard.admin}).headers["set-cookie"].lower()


def test_a_cookie_that_was_changed_is_worth_nothing(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    good = client.cookies["heedful_login"]
    client.cookies.clear()
    client.cookies.set("heedful_login", good[:-2] + ("aa" if good[-2:] != "aa" else "bb"))
    assert client.get("/p/default/overview").status_code == 303


def test_a_key_that_is_revoked_ends_its_logins_at_once(dashboard: Dashboard) -> None:
    key = dashboard.store.keys.create("ada", scopes=["read"])
    client = dashboard.visitor(key.api_key)
    assert client.get("/p/default/facts").status_code == 200
    dashboard.store.keys.revoke(key.key_id)
    reply = client.get("/p/default/facts")
    assert reply.status_code == 303
    assert "it was revoked or replaced" in client.get(reply.headers["location"]).text
    assert "revoked" not in dashboard.client().get("/login").text


def test_a_login_ends_after_eight_hours(dashboard: Dashboard, clock: ManualClock) -> None:
    client = dashboard.visitor()
    clock.advance(hours=7.9)
    assert client.get("/p/default/facts").status_code == 200
    assert "has expired" not in client.get("/login").text
    clock.advance(hours=0.2)
    assert client.get("/p/default/facts").status_code == 303
    assert "Your login has expired" in client.get("/login").text


def test_who_logs_out_is_out(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    client.post("/logout", data={"token": "forged"})
    page = client.get("/p/default/overview")
    assert page.status_code == 200
    client.post("/logout", data={"token": token(page.text)})
    assert client.get("/p/default/overview").status_code == 303


def test_a_key_of_one_project_opens_no_other(dashboard: Dashboard) -> None:
    dashboard.opened.open("secret").remember("Nobody knows this.")
    client = dashboard.visitor(dashboard.key("read", "admin"))
    assert client.get("/p/secret/facts").status_code == 404
    assert "secret" not in client.get("/p/default/settings").text.replace("secret is", "")
    assert dashboard.visitor().get("/p/secret/facts").status_code == 200


def test_a_project_that_is_not_there_is_told_with_those_that_are(dashboard: Dashboard) -> None:
    for name in ("helpdesk", "shop"):
        dashboard.opened.open(name).remember("Refunds take 14 days.")
    answer = dashboard.visitor().get("/p/helpdeks/overview")
    assert answer.status_code == 404
    text = unescape(answer.text)
    assert "There is no project 'helpdeks'" in text
    assert "Did you mean 'helpdesk'? There are: helpdesk, shop" in text
    # Who has the key of one project is not told of others.
    assert "shop" not in dashboard.visitor(dashboard.key("read")).get("/p/helpdeks/overview").text


def test_a_key_that_may_not_look_is_told_so(dashboard: Dashboard) -> None:
    answer = dashboard.client().post("/login", data={"api_key": dashboard.key("feedback")})
    assert answer.status_code == 403
    assert "read" in answer.text


@pytest.mark.parametrize(("scopes", "sees"), [(("read",), False), (("read", "write"), True)])
def test_who_may_not_do_something_sees_no_button_and_is_refused(
    dashboard: Dashboard, scopes: tuple[Scope, ...], sees: bool
) -> None:
    fact = remembered(dashboard)
    client = dashboard.visitor(dashboard.key(*scopes))
    page = client.get(f"/p/default/facts/{fact}").text
    assert ("/do/supersede" in page) is sees
    answer = client.post("/p/default/do/supersede", data=correct(fact, token(page)))
    assert answer.status_code == (303 if sees else 403)
    assert (dashboard.store.fact_history(fact).superseded_by is not None) is sees


def test_settings_are_for_admins(dashboard: Dashboard) -> None:
    client = dashboard.visitor(dashboard.key("read", "write", "feedback"))
    assert client.get("/p/default/settings").status_code == 403
    assert "/settings" not in client.get("/p/default/overview").text


@pytest.mark.parametrize("forged", ["", "forged", "a.b"])
def test_a_form_without_a_token_of_this_login_does_nothing(dashboard: Dashboard, forged: str) -> None:
    fact = remembered(dashboard)
    answer = dashboard.visitor().post("/p/default/do/supersede", data=correct(fact, forged))
    assert answer.status_code == 403
    assert dashboard.store.fact_history(fact).superseded_by is None


def test_the_token_of_somebody_else_does_nothing(dashboard: Dashboard) -> None:
    fact = remembered(dashboard)
    theirs = token(dashboard.visitor(dashboard.key("read")).get("/p/default/overview").text)
    answer = dashboard.visitor().post("/p/default/do/supersede", data=correct(fact, theirs))
    assert answer.status_code == 403
    assert dashboard.store.fact_history(fact).superseded_by is None


@pytest.mark.slow
def test_a_form_that_another_site_posts_is_refused(dashboard: Dashboard) -> None:
    fact = remembered(dashboard)
    client = dashboard.visitor()
    form = correct(fact, token(client.get(f"/p/default/facts/{fact}").text))
    answer = client.post("/p/default/do/supersede", data=form, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert dashboard.store.fact_history(fact).superseded_by is None


def test_a_form_that_is_sent_twice_is_done_once(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    form = {"name": "twice", "scopes": "read", "token": token(client.get("/p/default/settings").text)}
    assert client.post("/p/default/do/make_key", data=form).status_code == 200
    assert client.post("/p/default/do/make_key", data=form).status_code == 303
    assert [key.name for key in dashboard.store.keys.list()] == ["twice"]


@pytest.mark.slow
def test_what_is_sent_after_the_login_has_expired_is_kept_and_done_once_after_logging_in(
    dashboard: Dashboard, clock: ManualClock
) -> None:
    fact = remembered(dashboard)
    client = dashboard.visitor(name="Ada")
    form = correct(fact, token(client.get(f"/p/default/facts/{fact}").text), text="<b>30</b> days & more\nin two lines")
    clock.advance(hours=9)
    refused = client.post("/p/default/do/supersede", data=form)
    assert refused.status_code == 401
    assert "Your login has expired. You were about to correct a fact" in refused.text
    assert hidden(refused.text, "name") == "Ada"

    kept = hidden(refused.text, "pending")
    wrong = client.post("/login", data={"api_key": "wrong", "pending": kept})
    assert hidden(wrong.text, "pending")
    entered = client.post("/login", data={"api_key": dashboard.admin, "name": "Ada", "pending": kept})
    page = client.get(entered.headers["location"]).text
    assert "You were about to correct a fact" in page
    assert "&lt;b&gt;30&lt;/b&gt; days &amp; more\nin two lines</textarea>" in page
    assert dashboard.store.fact_history(fact).superseded_by is None

    again = {**form, "token": token(page.partition("/do/supersede")[2])}
    done = client.post("/p/default/do/supersede", data=again)
    assert done.status_code == 303
    client.post("/p/default/do/supersede", data=again)
    superseded = dashboard.store.fact_history(fact).superseded_by
    assert superseded is not None
    assert superseded.author == "Ada"
    assert dashboard.store.fact(superseded.superseded_by).text == "<b>30</b> days & more\nin two lines"
    assert client.get("/resume").headers["location"] == "/"


def test_a_form_of_an_earlier_login_is_shown_again_with_what_was_typed(dashboard: Dashboard) -> None:
    fact = remembered(dashboard)
    client = dashboard.visitor()
    form = correct(fact, token(client.get(f"/p/default/facts/{fact}").text))
    client.post("/login", data={"api_key": dashboard.admin})
    answer = client.post("/p/default/do/supersede", data=form)
    assert answer.status_code == 403
    assert "Refunds take 30 days.</textarea>" in answer.text
    assert dashboard.store.fact_history(fact).superseded_by is None
    form["token"] = token(answer.text.partition("/do/supersede")[2])
    assert client.post("/p/default/do/supersede", data=form).status_code == 303


def test_kept_forms_that_were_made_up_are_ignored(dashboard: Dashboard) -> None:
    entered = dashboard.client().post("/login", data={"api_key": dashboard.admin, "pending": "bm90aGluZw.bm90aGluZw"})
    assert entered.headers["location"] == "/"


def test_a_key_in_the_environment_opens_everything_until_it_is_another(path: Path, clock: ManualClock) -> None:
    first = Dashboard(path, clock, admin_key="one-long-admin-key")
    client = first.visitor("one-long-admin-key")
    assert client.get("/p/default/settings").status_code == 200
    cookie = client.cookies["heedful_login"]
    first.close()
    second = Dashboard(path, clock, admin_key="another-admin-key")
    client = second.client()
    client.cookies.set("heedful_login", cookie)
    assert client.get("/p/default/settings").status_code == 303
    second.close()


def expired(dashboard: Dashboard, clock: ManualClock, form: dict[str, str], action: str) -> tuple[TestClient, str]:
    """Somebody whose form came too late, and what the login page keeps of it."""
    client = dashboard.visitor()
    clock.advance(hours=9)
    refused = client.post(f"/p/default/do/{action}", data=form)
    assert refused.status_code == 401
    return client, hidden(refused.text, "pending")


def shown(page: str) -> str:
    """The words of a page, without its fields."""
    return re.sub(r"<(input|form)[^>]*>", "", page.partition("<main")[2].partition("</main>")[0])


def test_what_is_kept_is_told_in_words_and_not_in_its_fields(dashboard: Dashboard, clock: ManualClock) -> None:
    fact = remembered(dashboard)
    answered = dashboard.store.recall("How many days do refunds take?", session_id="s")
    assert answered.qa_id is not None
    dashboard.store.sessions.add_feedback("s", answered.qa_id, "no", 1)
    item = dashboard.store.review.list().items[0].item_id
    form = {
        "item_id": item,
        "fix": "supersede",
        "fact_id": fact,
        "text": "Thirty days.",
        "if_match": "x1",
        "seen": "0",
    }
    client, kept = expired(dashboard, clock, form, "review_fix")
    client.post("/login", data={"api_key": dashboard.admin, "pending": kept})
    page = client.get("/resume").text
    words = shown(page)
    for said in (
        "You were about to correct a fact",
        "How many days do refunds take?",
        "Refunds take 14 days.",
        "Go on",
    ):
        assert said in words
    for raw in ("item id", "if match", "seen", "x1", item, fact):
        assert raw not in words
    assert hidden(page, "if_match") == "x1"


def test_a_key_that_may_not_go_on_is_told_so_and_what_was_typed_stays(dashboard: Dashboard, clock: ManualClock) -> None:
    fact = remembered(dashboard)
    keys = [dashboard.key("read"), dashboard.opened.open("another").keys.create("k", scopes=["read", "write"]).api_key]
    for key in keys:
        client, kept = expired(dashboard, clock, correct(fact, "", "Thirty days."), "supersede")
        client.post("/login", data={"api_key": key, "pending": kept})
        answer = client.get("/resume")
        assert answer.status_code == 200
        assert "may not do this" in answer.text
        assert "Thirty days.</textarea>" in answer.text
        assert "Go on" not in answer.text
        assert ("Refunds take 14 days." in answer.text) is (key == keys[0])
