"""Pages: what they show, what can be done there, and that hostile texts stay texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from html import unescape
from pathlib import Path

import pytest
from dashboards import HOSTILE, Dashboard, hidden, token, undo

from heedful.interfaces.dashboard.comparison import from_request
from heedful.model import Signal
from heedful.notifications.outbox import AlertRow
from heedful.testing import ManualClock

PAGES = ("overview", "review", "sessions", "facts", "learning", "executions", "experiments", "settings")


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    yield made
    made.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_an_empty_store_says_what_to_do(dashboard: Dashboard, name: str) -> None:
    answer = dashboard.visitor().get(f"/p/default/{name}")
    assert answer.status_code == 200
    assert "empty" in answer.text
    assert 'aria-current="page"' in answer.text


@pytest.mark.parametrize("address", ["/login", "/p/default/overview", "/nowhere", "/p/default/facts/none"])
def test_every_answer_keeps_strangers_scripts_out(dashboard: Dashboard, address: str) -> None:
    answer = dashboard.visitor().get(address)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "<script>" not in answer.text
    assert not re.search(r"\s(style|onclick|onload)=", answer.text)


def test_files_are_kept_for_long_under_an_address_that_changes_with_them(dashboard: Dashboard) -> None:
    client = dashboard.client()
    page = client.get("/login").text
    for found in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        answer = client.get(found)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert client.get("/static/0000000000000000/dashboard.css").status_code == 404
    assert client.get("/static/0000000000000000/..%2Fapp.py").status_code == 404


@pytest.mark.slow
def test_hostile_texts_are_shown_as_texts_wherever_they_come_from(dashboard: Dashboard) -> None:
    store = dashboard.store
    fact = store.remember(HOSTILE, metadata={HOSTILE: HOSTILE}, source=HOSTILE).fact_ids[0]
    store.signal(Signal(fact_id=fact, signal_type="helpful", query=HOSTILE, author=HOSTILE))
    store.sessions.create(HOSTILE, metadata={"who": HOSTILE})
    store.sessions.add_message(HOSTILE, "user", HOSTILE)
    answered = store.recall(HOSTILE, session_id=HOSTILE)
    assert answered.qa_id is not None
    store.sessions.add_feedback(HOSTILE, answered.qa_id, HOSTILE, 1, author=HOSTILE)
    store.sessions.add_session_feedback(HOSTILE, {"rating": "down", "comment": HOSTILE}, author=HOSTILE)
    store.keys.create(HOSTILE)
    store.create_dataset(HOSTILE)
    client = dashboard.visitor(name=HOSTILE)
    session = re.search(r'href="(/p/default/sessions/[^"]+)"', client.get("/p/default/sessions").text)
    assert session is not None
    addresses = [session[1], f"/p/default/facts/{fact}", "/p/default/facts/usefulness?dataset=main_dataset"]
    addresses += [f"/p/default/{name}" for name in PAGES]
    addresses += [f"/p/default/{name}?q={HOSTILE}" for name in ("facts", "sessions")]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code in (200, 422), address
        assert "alert(" in answer.text, address
        assert "<script>" not in answer.text, address


def test_a_session_whose_name_has_slashes_has_a_page(dashboard: Dashboard) -> None:
    dashboard.store.sessions.add_message("a/b?c#d é", "user", "hello there")
    client = dashboard.visitor()
    match = re.search(r'href="(/p/default/sessions/[^"]+)"', client.get("/p/default/sessions").text)
    assert match is not None
    assert "hello there" in client.get(match[1]).text


def test_a_conversation_has_its_ratings_their_authors_and_the_facts_that_were_used(dashboard: Dashboard) -> None:
    store = dashboard.store
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    answered = store.recall("How many days do refunds take?", session_id="s")
    assert answered.qa_id is not None
    store.sessions.add_message("s", "user", "How many days do refunds take?")
    store.sessions.add_message("s", "tool", "looked it up")
    store.sessions.add_feedback("s", answered.qa_id, "too slow", 2, author="ada")
    store.sessions.add_feedback("s", answered.qa_id, None, 5, author="bob")
    page = dashboard.visitor().get("/p/default/sessions/s").text
    assert page.count("How many days do refunds take?") == 1
    assert "looked it up" in page
    assert "too slow" in page
    assert "ada" in page
    assert "bob" in page
    assert f'href="/p/default/facts/{fact}"' in page
    assert 'aria-label="thumbs down"' in page
    assert 'aria-label="thumbs up"' in page


def test_sessions_are_found_by_metadata(dashboard: Dashboard) -> None:
    for name, metadata in (("one", {"tier": "gold", "seats": 3}), ("two", {"tier": "basic"})):
        dashboard.store.sessions.create(name, metadata=metadata)
    client = dashboard.visitor()
    page = client.get("/p/default/sessions", params={"q": "tier=gold seats=3"}).text
    assert "/sessions/one" in page
    assert "/sessions/two" not in page
    wrong = client.get("/p/default/sessions", params={"q": "gold"})
    assert wrong.status_code == 422
    assert 'value="gold"' in wrong.text


def test_more_sessions_than_a_page_holds_are_reached_by_a_link(dashboard: Dashboard) -> None:
    for number in range(60):
        dashboard.store.sessions.create(f"s{number:02}")
    client = dashboard.visitor()
    page = client.get("/p/default/sessions").text
    link = re.search(r'rel="next" href="([^"]+)"', page)
    assert link is not None
    following = client.get(unescape(link[1])).text
    assert "/sessions/s59" in page
    assert "/sessions/s00" not in page
    assert "/sessions/s00" in following


def test_facts_rank_as_for_an_agent_unless_feedback_is_left_out(dashboard: Dashboard) -> None:
    store, question = dashboard.store, "How do I reset my password?"
    texts = ["A code from the help desk will reset the password.", "Reset the password rules: twelve letters, my dear."]
    liked, other = store.remember(texts).fact_ids
    store.signal([{"fact_id": liked, "signal_type": "helpful", "query": question, "author": "ada"}])

    def ranked(**params: str) -> list[str]:
        page = dashboard.visitor().get("/p/default/facts", params={"q": question, **params}).text
        return re.findall(r'data-row class="wide" href="/p/default/facts/([^"]+)"', page)

    assert ranked() == [hit.fact_id for hit in store.recall(question)]
    assert ranked(unrated="1") == [other, liked]
    assert ranked() != ranked(unrated="1")


def test_looking_for_facts_leaves_no_receipt(dashboard: Dashboard) -> None:
    dashboard.store.remember("Refunds take 14 days.")
    answer = dashboard.visitor().get("/p/default/facts", params={"q": "refunds days"})
    assert "Refunds take 14 days." in answer.text
    with dashboard.opened.database.read() as connection:
        assert connection.exec_driver_sql("select count(*) from receipts").scalar() == 0


def test_a_signal_is_retracted_and_given_back_as_it_was(dashboard: Dashboard, clock: ManualClock) -> None:
    store = dashboard.store
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    store.signal(Signal(fact_id=fact, signal_type="helpful", query="refund?", confidence=0.5, author="bob"))
    clock.advance(days=3)
    before = store.fact_history(fact)
    client = dashboard.visitor(name="Ada")
    page = client.get(f"/p/default/facts/{fact}").text
    form = page.partition("/do/retract")[2].partition("</form>")[0]
    fields = {name: unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form)}
    done = client.post("/p/default/do/retract", data=fields)
    assert store.fact_history(fact).points == []
    flash = client.get(done.headers["location"]).text
    assert 'role="status"' in flash
    back = undo(flash)
    assert client.post(back.pop("to"), data=back).status_code == 303
    (given,) = store.fact_history(fact).points
    (former,) = before.points
    assert given.model_dump(exclude={"event_id"}) == former.model_dump(exclude={"event_id"})
    assert store.fact_stats(fact).overall_usefulness == pytest.approx(before.overall_usefulness)


@pytest.mark.slow
def test_a_correction_is_told_with_its_author_and_undone(dashboard: Dashboard) -> None:
    store = dashboard.store
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    client = dashboard.visitor(name="Ada")
    page = client.get(f"/p/default/facts/{fact}").text
    form = {"fact_id": fact, "text": "Refunds take 30 days.", "token": token(page), "back": f"/p/default/facts/{fact}"}
    done = client.post("/p/default/do/supersede", data=form)
    corrected = client.get(done.headers["location"]).text
    assert "Refunds take 30 days." in corrected
    assert "by Ada" in client.get(f"/p/default/facts/{fact}").text
    back = undo(corrected)
    undone = client.post(back.pop("to"), data=back)
    assert undone.headers["location"] == f"/p/default/facts/{fact}"
    assert store.fact_history(fact).superseded_by is None
    assert client.get(f"/p/default/facts/{fact}").text.count("Bring it back") == 0


@pytest.mark.slow
def test_what_can_not_be_done_keeps_what_was_typed(dashboard: Dashboard) -> None:
    fact = dashboard.store.remember("Refunds take 14 days.").fact_ids[0]
    dashboard.store.supersede(fact, "Refunds take 20 days.")
    client = dashboard.visitor()
    form = {"fact_id": fact, "text": "Refunds take 30 days.", "token": token(client.get("/p/default/overview").text)}
    answer = client.post("/p/default/do/supersede", data=form)
    assert answer.status_code == 409
    assert "is already superseded" in answer.text
    assert "Refunds take 30 days.</textarea>" in answer.text


def test_a_key_is_shown_once_when_it_is_made_and_can_be_revoked(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    form = {"name": "web shop", "scopes": ["read", "feedback"], "token": token(client.get("/p/default/settings").text)}
    made = client.post("/p/default/do/make_key", data=form)
    match = re.search(r"hf_[\w-]+", made.text)
    assert match is not None
    assert made.headers["cache-control"] == "no-store"
    again = client.get("/p/default/settings").text
    assert match[0] not in again
    (key,) = dashboard.store.keys.list()
    assert key.scopes == ["read", "feedback"]
    client.post("/p/default/do/revoke_key", data={"key_id": key.key_id, "token": token(again)})
    assert dashboard.store.keys.list()[0].revoked_at is not None


def test_an_alert_that_failed_is_shown_with_its_reason_and_can_be_given_up(dashboard: Dashboard) -> None:
    store = dashboard.store
    store.sessions.create("s")
    now = dashboard.opened.now()
    waiting = AlertRow("a1", "slack", {"text": "down"}, now, next_at=now)
    store._project.sessions.store.write(lambda tx: tx.outbox.add("s", [waiting]))
    store._project.sessions.store.write(lambda tx: tx.outbox.settle("a1", 3, now, None, "<b>no</b> route"))
    client = dashboard.visitor()
    page = client.get("/p/default/settings").text
    assert "&lt;b&gt;no&lt;/b&gt; route" in page
    reply = client.post("/p/default/do/deliver_alerts", data={"token": token(page), "back": "/p/default/settings"})
    assert "Nothing was delivered here" in client.get(reply.headers["location"]).text
    client.post(
        "/p/default/do/discard_alert", data={"alert_id": "a1", "token": token(client.get("/p/default/settings").text)}
    )
    assert store.sessions.alerts(pending=True).items == []
    assert "given up" in client.get("/p/default/settings?alerts=all").text


def test_after_a_key_was_made_other_forms_lead_back_to_the_settings(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    page = client.get("/p/default/settings").text
    form = {"name": "k", "scopes": "read", "token": token(page), "back": "/p/default/settings"}
    made = client.post("/p/default/do/make_key", data=form).text
    assert 'value="/p/default/do/' not in made
    assert hidden(made, "back") == "/p/default/settings"


def test_the_policy_of_a_dataset_is_chosen(dashboard: Dashboard) -> None:
    dashboard.store.remember("Refunds take 14 days.")
    client = dashboard.visitor()
    form = {"dataset": "main_dataset", "policy": "adaptive", "token": token(client.get("/p/default/experiments").text)}
    client.post("/p/default/do/set_policy", data=form)
    assert dashboard.store.recall("refunds").policy == "adaptive"
    assert '<option value="adaptive" selected>adaptive</option>' in client.get("/p/default/experiments").text


def test_the_theme_is_in_the_page_from_its_first_byte(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    assert "data-theme=" not in client.get("/p/default/overview").text.partition("<body")[0]
    answer = client.post("/theme", data={"theme": "dark", "back": "/p/default/facts"})
    assert answer.headers["location"] == "/p/default/facts"
    assert '<html lang="en" data-theme="dark">' in client.get("/p/default/overview").text


@pytest.mark.parametrize(
    ("since", "until", "message"),
    [
        ("yesterday", "", "is not a date"),
        ("2026-02-30", "", "is not a date"),
        ("2026-02-02", "2026-02-01", "before it begins"),
    ],
)
def test_a_wrong_range_is_told_and_kept(dashboard: Dashboard, since: str, until: str, message: str) -> None:
    answer = dashboard.visitor().get("/p/default/overview", params={"since": since, "until": until})
    assert answer.status_code == 422
    assert message in answer.text
    assert hidden(answer.text, "since") == since


def test_a_range_covers_its_last_day() -> None:
    found = from_request({"since": "2026-11-01", "until": "2026-11-03"}, date(2026, 11, 15))
    assert found.start is not None
    assert found.end is not None
    assert (found.end - found.start).days == 3


def test_the_usual_range_is_the_last_two_weeks_and_an_empty_one_is_all_time() -> None:
    usual = from_request({}, date(2026, 11, 15))
    assert (usual.since, usual.until, usual.preset) == (date(2026, 11, 9), date(2026, 11, 15), 7)
    everything = from_request({"since": "", "until": ""}, date(2026, 11, 15))
    assert (everything.start, everything.end, everything.problem) == (None, None, None)


@pytest.mark.parametrize(
    ("address", "listed"),
    [
        ("facts/nope", "facts"),
        ("sessions/nope", "sessions"),
        ("review/nope", "review"),
        ("executions/nope", "executions"),
    ],
)
def test_what_is_not_there_is_told_without_code_and_leads_to_the_list(
    dashboard: Dashboard, address: str, listed: str
) -> None:
    for name in ("another", "default"):
        dashboard.opened.open(name).remember("Refunds take 14 days.")
    answer = dashboard.visitor().get(f"/p/default/{address}")
    assert answer.status_code == 404
    shown = answer.text.partition('class="empty"')[2].partition("</main>")[0]
    assert f'It may have been deleted; <a href="/p/default/{listed}">' in shown
    assert "()" not in shown
    assert "heedful " not in shown


@pytest.mark.parametrize("name", ["sessions", "facts", "executions"])
def test_a_list_whose_cursor_is_wrong_leads_to_its_start(dashboard: Dashboard, name: str) -> None:
    dashboard.store.remember("Refunds take 14 days.")
    answer = dashboard.visitor().get(f"/p/default/{name}?cursor=garbage")
    assert answer.status_code == 422
    assert "next_cursor" not in answer.text
    assert "Go to the start of the list" in answer.text


@pytest.mark.parametrize(
    ("question", "target"),
    [
        ("/p/default/", "/p/default"),
        ("/p/default/overview/", "/p/default/overview"),
        ("/p/default/facts//?q=a", "/p/default/facts?q=a"),
        ("/p/default/sessions/a%2F/", "/p/default/sessions/a%2F"),
    ],
)
def test_an_address_that_ends_with_a_slash_leads_to_the_page(dashboard: Dashboard, question: str, target: str) -> None:
    assert dashboard.visitor().get(question).headers["location"] == target


def test_the_first_days_of_all_are_written_in_full() -> None:
    assert from_request({"since": "0001-01-01"}, date(2026, 11, 15)).words == "since 0001-01-01"
