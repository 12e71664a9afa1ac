"""The review page: what it shows, each action and its undo, and two reviewers at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboards import HOSTILE, Dashboard, connect_shop, forms, send, undone

from heedful.model import ReviewItem, Signal
from heedful.testing import ManualClock

QUESTION = "How many days do refunds take?"


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    yield made
    made.close()


def disliked(dashboard: Dashboard, comment: str = "That was last year", session: str = "s") -> ReviewItem:
    """An answer that somebody disliked."""
    dashboard.store.remember("Refunds take 14 days.")
    answered = dashboard.store.recall(QUESTION, session_id=session)
    assert answered.qa_id is not None
    dashboard.store.sessions.add_feedback(session, answered.qa_id, comment, 1, author="vic")
    return dashboard.store.review.list(target_type="entry").items[0]


def wrong_sql(dashboard: Dashboard, author: str = "vic") -> ReviewItem:
    """An execution that somebody said is wrong."""
    store = dashboard.store
    connect_shop(store)
    ran = store.executions.execute_query("select 1 as orders", question="How many orders are there?")
    store.feedback.create_negative(execution_id=ran.execution_id, feedback="too few", author=author)
    return store.review.list(target_type="execution").items[0]


def test_an_item_has_its_question_answer_evidence_and_opinions(dashboard: Dashboard) -> None:
    item = disliked(dashboard)
    client = dashboard.visitor()
    assert QUESTION in client.get("/p/default/review").text
    page = client.get(f"/p/default/review/{item.item_id}").text
    for said in (QUESTION, "Refunds take 14 days.", "That was last year", "vic", "Relevance", "/sessions/s"):
        assert said in page
    assert "Correct this fact" in page


@pytest.mark.slow
def test_filters_are_in_the_address_and_a_wrong_one_is_told(dashboard: Dashboard) -> None:
    item = disliked(dashboard)
    dashboard.store.review.assign(item.item_id, "ada")
    client = dashboard.visitor()
    link = f"/review/{item.item_id}"
    for query, there in (("assignee=ada", True), ("assignee=bob", False), ("kind=entry", True), ("kind=fact", False)):
        assert (link in client.get(f"/p/default/review?{query}").text) is there, query
    assert link not in client.get("/p/default/review?status=resolved").text
    assert link in client.get("/p/default/review?status=all").text
    for query in ("status=done", "kind=nothing", "cursor=x"):
        assert client.get(f"/p/default/review?{query}").status_code == 422


@pytest.mark.parametrize(("action", "status"), [("resolve", "resolved"), ("dismiss", "dismissed")])
@pytest.mark.slow
def test_an_item_is_closed_with_a_note_undone_and_closed_once_more(
    dashboard: Dashboard, action: str, status: str
) -> None:
    item, client = disliked(dashboard), dashboard.visitor(name="Ada")
    url = f"/p/default/review/{item.item_id}"
    form = forms(client.get(url).text, "review_resolve")[0] | {"to": f"/p/default/do/review_{action}"}
    done = send(client, form, note="read it")
    assert dashboard.store.review.get(item.item_id).item.status == status
    page = undone(client, done)
    case = dashboard.store.review.get(item.item_id)
    assert case.item.status == "open"
    assert [(event.action, event.author, event.note, event.undone) for event in case.history] == [
        (action, "Ada", "read it", True)
    ]
    again = forms(page, f"review_{action}")
    send(client, next(form for form in again if form.get("note") == "read it"))
    assert dashboard.store.review.get(item.item_id).item.status == status


def test_an_item_is_opened_again_and_that_is_undone(dashboard: Dashboard) -> None:
    item, client = disliked(dashboard), dashboard.visitor(name="Ada")
    dashboard.store.review.dismiss(item.item_id, author="bob")
    done = send(client, forms(client.get(f"/p/default/review/{item.item_id}").text, "review_reopen")[0])
    assert dashboard.store.review.get(item.item_id).item.status == "open"
    undone(client, done)
    assert dashboard.store.review.get(item.item_id).item.status == "dismissed"


@pytest.mark.slow
def test_an_item_is_assigned_to_me_to_somebody_and_to_nobody(dashboard: Dashboard) -> None:
    item, client = disliked(dashboard), dashboard.visitor(name="Ada")
    url = f"/p/default/review/{item.item_id}"
    mine, somebody = forms(client.get(url).text, "review_assign")
    send(client, mine)
    assert dashboard.store.review.get(item.item_id).item.assignee == "Ada"
    somebody = forms(client.get(url).text, "review_assign")[-1]
    done = send(client, somebody, assignee="Bob")
    assert dashboard.store.review.get(item.item_id).item.assignee == "Bob"
    undone(client, done)
    assert dashboard.store.review.get(item.item_id).item.assignee == "Ada"


@pytest.mark.nightly
def test_a_fact_is_corrected_from_an_item_and_that_is_undone(dashboard: Dashboard) -> None:
    item, client = disliked(dashboard), dashboard.visitor(name="Ada")
    form = forms(client.get(f"/p/default/review/{item.item_id}").text, "review_fix")[0]
    assert form["fix"] == "supersede"
    done = send(client, form, text="Refunds take 30 days.")
    assert [hit.text for hit in dashboard.store.recall(QUESTION)] == ["Refunds take 30 days."]
    undone(client, done)
    assert [hit.text for hit in dashboard.store.recall(QUESTION)] == ["Refunds take 14 days."]


@pytest.mark.slow
def test_an_opinion_is_taken_back_and_given_again(dashboard: Dashboard) -> None:
    item, client = disliked(dashboard), dashboard.visitor(name="Ada")
    page = client.get(f"/p/default/review/{item.item_id}").text
    done = send(client, next(form for form in forms(page, "review_fix") if form["fix"] == "retract"))
    assert dashboard.store.review.list().items == []
    undone(client, done)
    (opinion,) = dashboard.store.review.get(item.item_id).opinions
    assert (opinion.author, opinion.comment, opinion.score) == ("vic", "That was last year", 1)


@pytest.mark.slow
def test_sql_is_blocked_and_an_example_is_added_each_with_undo(dashboard: Dashboard) -> None:
    item, client = wrong_sql(dashboard), dashboard.visitor(name="Ada")
    url = f"/p/default/review/{item.item_id}"
    named = {form["fix"]: form for form in forms(client.get(url).text, "review_fix")}
    done = send(client, named["block"])
    assert dashboard.store.feedback.list_negative().total == 2
    undone(client, done)
    assert dashboard.store.feedback.list_negative().total == 1
    named = {form["fix"]: form for form in forms(client.get(url).text, "review_fix")}
    done = send(client, named["add_example"], question="How many orders are there?", sql_query="select 2 as orders")
    assert [each.sql_query for each in dashboard.store.golden_examples.list()] == ["select 2 as orders"]
    undone(client, done)
    assert dashboard.store.golden_examples.list() == []


@pytest.mark.slow
def test_what_somebody_says_is_wrong_is_not_promoted_and_it_is_said_why(dashboard: Dashboard) -> None:
    item, client = wrong_sql(dashboard), dashboard.visitor(name="Ada")
    url = f"/p/default/review/{item.item_id}"
    named = {form["fix"]: form for form in forms(client.get(url).text, "review_fix")}
    refused = send(client, named["promote"])
    assert refused.status_code == 409
    assert "vic" in refused.text.partition('role="alert"')[2][:600]


@pytest.mark.slow
def test_a_reviewer_who_has_thought_better_of_it_promotes_the_sql_and_undoes_that(dashboard: Dashboard) -> None:
    item, client = wrong_sql(dashboard, author="Ada"), dashboard.visitor(name="Ada")
    page = client.get(f"/p/default/review/{item.item_id}").text
    done = send(client, next(form for form in forms(page, "review_fix") if form["fix"] == "promote"))
    assert [each.origin for each in dashboard.store.golden_examples.list()] == ["promoted"]
    undone(client, done)
    assert dashboard.store.golden_examples.list() == []
    assert [each.feedback for each in dashboard.store.feedback.list_negative()] == ["too few"]


@pytest.mark.slow
def test_the_second_of_two_reviewers_is_told_who_did_what_and_keeps_what_they_typed(dashboard: Dashboard) -> None:
    item = disliked(dashboard)
    ada, bob = dashboard.visitor(name="Ada"), dashboard.visitor(name="Bob")
    url = f"/p/default/review/{item.item_id}"
    first = forms(ada.get(url).text, "review_resolve")[0]
    second = forms(bob.get(url).text, "review_resolve")[0]
    correction = forms(bob.get(url).text, "review_fix")[0]
    assert send(ada, first, note="fixed it on Friday").status_code == 303
    reply = send(bob, second, note="I looked at it, too")
    assert reply.status_code == 409
    alert = reply.text.partition('role="alert"')[2].partition("</header>")[0]
    for said in ("Nothing was done", "Ada", "resolved it", "fixed it on Friday"):
        assert said in alert
    assert "I looked at it, too" in reply.text
    assert ">resolved<" in reply.text
    assert re.search(r'href="/p/default/review" aria-current="page"', reply.text)
    corrected = send(bob, correction, text="Refunds take 30 days.")
    assert corrected.status_code == 409
    assert "Refunds take 30 days." in corrected.text
    assert [event.author for event in dashboard.store.review.get(item.item_id).history] == ["Ada"]
    (kept,) = forms(corrected.text, "review_fix")[:1]
    assert send(bob, kept, text="Refunds take 30 days.").status_code == 303


@pytest.mark.slow
def test_an_action_in_the_history_is_undone_by_whoever_may(dashboard: Dashboard) -> None:
    item = disliked(dashboard)
    dashboard.store.review.resolve(item.item_id, note="done", author="bob")
    url = f"/p/default/review/{item.item_id}"
    readers = dashboard.visitor(dashboard.key("read"))
    assert forms(readers.get(url).text, "review_undo") == []
    client = dashboard.visitor(name="Ada")
    (form,) = forms(client.get(url).text, "review_undo")
    assert send(client, form).status_code == 303
    assert dashboard.store.review.get(item.item_id).item.status == "open"
    assert "undone" in client.get(url).text


def test_a_person_who_may_only_read_sees_no_buttons_and_is_refused(dashboard: Dashboard) -> None:
    item = disliked(dashboard)
    client = dashboard.visitor(dashboard.key("read"))
    page = client.get(f"/p/default/review/{item.item_id}").text
    assert "/do/" not in page
    assert "Your key may only read." in page
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    form = {"to": "/p/default/do/review_resolve", "token": token[1], "item_id": item.item_id}
    assert send(client, form).status_code == 403
    assert dashboard.store.review.get(item.item_id).item.status == "open"


@pytest.mark.slow
def test_asking_again_shows_both_answers_and_keeps_nothing(dashboard: Dashboard) -> None:
    item, client = disliked(dashboard), dashboard.visitor()
    dashboard.store.supersede(dashboard.store.recall(QUESTION)[0].fact_id, "Refunds take 30 days.")
    url = f"/p/default/review/{item.item_id}/again"
    part = client.get(url, headers={"X-Fragment": "1"}).text
    assert "<html" not in part
    assert "Refunds take 14 days." in part
    assert "Refunds take 30 days." in part
    assert "<html" in client.get(url).text
    assert len(dashboard.store.sessions.entries("s").items) == 1


def test_an_answer_without_feedback_is_asked_again_with_it(dashboard: Dashboard) -> None:
    store, client = dashboard.store, dashboard.visitor()
    wrong, right = store.remember(["Refunds take 14 days.", "Refunds take 30 days."]).fact_ids
    answered = store.recall(QUESTION, session_id="s", boost_by_usefulness=False)
    first, second = (hit.fact_id for hit in answered.hits)
    store.sessions.add_feedback("s", str(answered.qa_id), None, 1, author="vic")
    for author in ("ada", "bo"):
        store.signal([Signal(fact_id=second, signal_type="helpful", query=QUESTION, author=author)])
    item = store.review.list(target_type="entry").items[0]
    assert "asked for without feedback" in client.get(f"/p/default/review/{item.item_id}").text
    again = store.review.ask_again(item.item_id)
    assert {first, second} == {wrong, right}
    assert (again.usefulness_weight, again.changed, again.evidence_after[0].fact_id) == (0, True, second)
    part = client.get(f"/p/default/review/{item.item_id}/again", headers={"X-Fragment": "1"}).text
    assert "Disliked, without feedback" in part
    assert "Another answer comes now" in part


def test_a_disliked_fact_has_its_rank_now(dashboard: Dashboard) -> None:
    store, client = dashboard.store, dashboard.visitor()
    wrong = store.remember("Refunds take 14 days.").fact_ids[0]
    store.signal([Signal(fact_id=wrong, signal_type="not_helpful", query=QUESTION, author="vic")])
    item = store.review.list(target_type="fact").items[0]
    ask = f"/p/default/review/{item.item_id}/again"
    assert "The disliked fact comes first" in client.get(ask).text
    store.supersede(wrong, "Refunds take 30 days.")
    assert "The disliked fact no longer comes up" in client.get(ask).text


def test_long_and_hostile_words_are_shortened_and_stay_words(dashboard: Dashboard) -> None:
    item = disliked(dashboard, comment=HOSTILE + "x" * 9_900)
    client = dashboard.visitor()
    page = client.get(f"/p/default/review/{item.item_id}").text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "characters</summary>" in page
    assert 'dir="auto"' in page
    assert "<script>" not in client.get("/p/default/review").text


def test_an_item_that_is_not_there_is_said_so(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    assert client.get("/p/default/review/none").status_code == 404
    assert client.get("/p/default/review/none/again").status_code == 404


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("status=nope", "unknown status &#39;nope&#39;"),
        ("cursor=garbage", "Go to the start of the list"),
        ("dataset=nope", "has no dataset &#39;nope&#39;. It has: main_dataset"),
        ("kind=nope", "unknown kind &#39;nope&#39;"),
        ("target_type=nope", "unknown kind &#39;nope&#39;"),
    ],
)
def test_a_filter_that_can_not_be_is_told_and_no_zero_stands_for_what_was_not_counted(
    dashboard: Dashboard, query: str, message: str
) -> None:
    disliked(dashboard)
    answer = dashboard.visitor().get(f"/p/default/review?{query}")
    assert answer.status_code == 422
    assert message.lower() in answer.text.lower()
    assert "Nothing here" not in answer.text
    assert "next_cursor" not in answer.text
    counted = re.findall(r'<span class="num small">(\d+)</span>', answer.text.partition('aria-label="Status"')[2])
    assert counted in ([], ["1", "0", "0", "1"])


@pytest.mark.slow
def test_what_items_are_about_may_be_named_as_in_the_other_interfaces(dashboard: Dashboard) -> None:
    link = f"/review/{disliked(dashboard).item_id}"
    client = dashboard.visitor()
    assert link in client.get("/p/default/review?target_type=entry").text
    assert link not in client.get("/p/default/review?target_type=fact").text
