"""All that can be done on the dashboard, as people do it: by clicking, and with its undo."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from dashboard_page import TESTED, Served, Visit, does
from dashboards import connect_shop
from playwright.sync_api import Locator, expect

from heedful.interfaces.dashboard.app import ACTIONS
from heedful.model import FIXES
from heedful.notifications.outbox import AlertRow

pytestmark = pytest.mark.slow

ASKED = "How many days do refunds take?"
COUNTED = "How many orders are there?"


def disliked(served: Served) -> str:
    """An item about an answer that somebody disliked."""
    store = served.dashboard.store
    store.remember("Refunds take 14 days.")
    answered = store.recall(ASKED, session_id="s")
    assert answered.qa_id is not None
    store.sessions.add_feedback("s", answered.qa_id, "That was last year", 1, author="vic")
    return store.review.list(target_type="entry").items[0].item_id


def ran(served: Served) -> str:
    """An execution."""
    connect_shop(served.dashboard.store)
    made = served.dashboard.store.executions.execute_query("select count(*) as orders from orders", question=COUNTED)
    return made.execution_id


def wrong(served: Served, author: str = "vic") -> str:
    """An item about an execution that somebody said is wrong."""
    store = served.dashboard.store
    store.feedback.create_negative(execution_id=ran(served), feedback="too few", author=author)
    return store.review.list(target_type="execution").items[0].item_id


def part(visit: Visit, heading: str) -> Locator:
    """The part of a page below a heading."""
    return visit.page.locator("section.card").filter(has=visit.page.get_by_role("heading", name=heading, exact=True))


def status(visit: Visit, word: str) -> None:
    expect(visit.page.locator(".heading .badge").first).to_have_text(word)


def test_every_action_is_done_here() -> None:
    names = {action.name for action in ACTIONS} - {"review_fix"}
    assert (names | {f"review_fix {fix}" for fix in FIXES}) - TESTED == set()


@does("supersede", "retract")
@pytest.mark.nightly
def test_a_fact_is_corrected_and_brought_back(served: Served) -> None:
    store, ada = served.dashboard.store, served.visitor()
    (fact,) = store.remember("Refunds take 14 days.").fact_ids
    page = ada.open(f"facts/{fact}")
    page.get_by_text("Correct", exact=True).click()
    page.get_by_label("What is right").fill("Refunds take 30 days.")
    page.get_by_role("button", name="Put it in its place").click()
    ada.expect_message("The fact was corrected")
    expect(page.locator(".fact-text")).to_have_text("Refunds take 30 days.")
    assert [hit.text for hit in store.recall(ASKED)] == ["Refunds take 30 days."]
    ada.undo()
    ada.expect_message("It was retracted")
    expect(page.locator(".fact-text")).to_have_text("Refunds take 14 days.")
    assert [hit.text for hit in store.recall(ASKED)] == ["Refunds take 14 days."]
    store.supersede(fact, "Refunds take 60 days.", author="bob")
    page.reload()
    page.get_by_role("button", name="Bring it back").click()
    ada.expect_message("It was retracted")
    expect(page.get_by_text("recalled in its place")).to_be_hidden()


@does("retract", "signal")
def test_a_signal_is_retracted_and_given_back(served: Served) -> None:
    store, ada = served.dashboard.store, served.visitor()
    store.remember("Refunds take 14 days.")
    result = store.recall(ASKED)
    store.signal_recall(result.recall_id, helpful=[result[0]], author="vic")
    before = store.fact_stats(result[0].fact_id).overall_usefulness
    page = ada.open(f"facts/{result[0].fact_id}")
    signals = part(ada, "Signals")
    expect(signals).to_contain_text("vic")
    signals.get_by_role("button", name="Retract").click()
    ada.expect_message("It was retracted")
    expect(signals).to_contain_text("Nobody said yet")
    ada.undo()
    ada.expect_message("It counts again")
    expect(signals).to_contain_text("vic")
    assert store.fact_stats(result[0].fact_id).overall_usefulness == before
    expect(page.locator(".figure-number")).to_have_text(f"{before:.2f}")


@does("review_resolve", "review_undo")
@pytest.mark.nightly
def test_an_item_is_resolved_with_a_note_opened_by_undo_and_resolved_once_more(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    page = ada.open("review")
    page.get_by_role("link", name=ASKED).first.click()
    page.get_by_label("Note").fill("asked the warehouse")
    page.get_by_role("button", name="Resolve").click()
    ada.expect_message("It is resolved")
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    ada.undo()
    ada.expect_message("Undone: Ada resolved it.")
    status(ada, "open")
    expect(part(ada, "History")).to_contain_text("asked the warehouse")
    ada.undo()
    ada.expect_message("It is resolved")
    assert served.dashboard.store.review.get(item).item.status == "resolved"


@does("review_dismiss", "review_undo", "review_reopen")
@pytest.mark.nightly
def test_an_item_is_dismissed_by_a_key_and_opened_again_in_two_ways(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    page = ada.open(f"review/{item}")
    page.keyboard.press("d")
    ada.expect_message("It is dismissed")
    ada.undo()
    ada.expect_message("Undone: Ada dismissed it.")
    status(ada, "open")
    page.get_by_role("button", name="Dismiss").click()
    ada.expect_message("It is dismissed")
    page = ada.open(f"review/{item}")
    page.get_by_label("Note").fill("it is work after all")
    page.get_by_role("button", name="Open it again").click()
    ada.expect_message("It is open again")
    status(ada, "open")
    ada.undo()
    ada.expect_message("Undone")
    status(ada, "dismissed")


@does("review_assign", "review_undo")
@pytest.mark.nightly
def test_an_item_is_assigned_to_me_to_somebody_else_and_back(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    page = ada.open(f"review/{item}")
    assigned = part(ada, "Assigned to")
    page.get_by_role("button", name="Assign to me").click()
    ada.expect_message("Ada is assigned now")
    expect(assigned.locator(".assignee")).to_have_text("Ada")
    assigned.get_by_text("Somebody else").click()
    assigned.get_by_label("Name").fill("Bob")
    assigned.get_by_role("button", name="Assign", exact=True).click()
    ada.expect_message("Bob is assigned now")
    ada.undo()
    ada.expect_message("Undone")
    expect(assigned.locator(".assignee")).to_have_text("Ada")
    page.goto(f"{ada.url}/p/default/review")
    page.get_by_role("link", name="Mine").click()
    expect(page.locator("[data-list] li")).to_have_count(1)


@does("review_fix supersede", "review_undo")
@pytest.mark.nightly
def test_a_fact_behind_an_answer_is_corrected_compared_and_brought_back(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    page = ada.open(f"review/{item}")
    page.get_by_text("Correct this fact").click()
    page.get_by_label("What is right").fill("Refunds take 30 days.")
    page.get_by_role("button", name="Put it in its place").click()
    ada.expect_message("The fact was corrected")
    page.get_by_role("link", name="Ask again").click()
    again = part(ada, "Ask again and compare")
    expect(again.locator(".beside > div").nth(0)).to_contain_text("Refunds take 14 days.")
    expect(again.locator(".beside > div").nth(1)).to_contain_text("Refunds take 30 days.")
    expect(again).to_contain_text("It is not what it was")
    part(ada, "History").get_by_role("button", name="Undo").click()
    ada.expect_message("Undone: Ada corrected a fact.")
    assert [hit.text for hit in served.dashboard.store.recall(ASKED)] == ["Refunds take 14 days."]


@does("review_fix retract", "review_undo")
@pytest.mark.nightly
def test_an_opinion_is_taken_back_and_given_again(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    ada.open(f"review/{item}")
    said = part(ada, "Feedback")
    said.get_by_role("button", name="Retract").click()
    ada.expect_message("The opinion was retracted")
    expect(said).to_contain_text("No active opinion is left")
    ada.undo()
    ada.expect_message("Undone")
    expect(said).to_contain_text("That was last year")


@does("review_fix teach", "review_undo")
@pytest.mark.nightly
def test_what_somebody_said_is_taught_and_forgotten(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    page = ada.open(f"review/{item}")
    page.get_by_text("Teach this").click()
    page.get_by_label("What is true").fill("Refunds take 30 days since May.")
    page.get_by_role("button", name="Make it a fact").click()
    ada.expect_message("It is a fact now")
    assert any("30 days since May" in hit.text for hit in served.dashboard.store.recall(ASKED))
    ada.undo()
    ada.expect_message("Undone")
    assert [hit.text for hit in served.dashboard.store.recall(ASKED)] == ["Refunds take 14 days."]


@does("review_fix block", "review_fix add_example", "review_undo")
@pytest.mark.nightly
def test_sql_is_blocked_and_a_better_one_is_added_each_with_its_undo(served: Served) -> None:
    item, ada = wrong(served), served.visitor()
    store = served.dashboard.store
    page = ada.open(f"review/{item}")
    page.get_by_role("button", name="Block it").click()
    ada.expect_message("The execution is blocked")
    assert store.feedback.list_negative().total == 2
    ada.undo()
    ada.expect_message("Undone")
    assert store.feedback.list_negative().total == 1
    page.get_by_label("SQL that answers it").fill("select count(*) as all_orders from orders")
    page.get_by_role("button", name="Add it").click()
    ada.expect_message("The golden example was added")
    assert [each.sql_query for each in store.golden_examples.list()] == ["select count(*) as all_orders from orders"]
    ada.undo()
    ada.expect_message("Undone")
    assert store.golden_examples.list() == []


@does("review_fix promote", "review_undo")
def test_a_reviewer_who_was_wrong_promotes_the_sql_and_undoes_that(served: Served) -> None:
    item, ada = wrong(served, author="Ada"), served.visitor()
    store = served.dashboard.store
    page = ada.open(f"review/{item}")
    page.get_by_role("button", name="It is right: make it a golden example").click()
    ada.expect_message("The execution is a golden example now")
    assert [each.origin for each in store.golden_examples.list()] == ["promoted"]
    ada.undo()
    ada.expect_message("Undone")
    assert store.golden_examples.list() == []


@does("rate_execution", "unrate_execution")
@pytest.mark.nightly
def test_an_execution_is_said_to_be_right_then_wrong_and_all_of_it_is_undone(served: Served) -> None:
    execution, ada = ran(served), served.visitor()
    page = ada.open("executions")
    page.get_by_role("link", name=COUNTED).click()
    said = part(ada, "Was it right?")
    said.get_by_label("Comment").fill("as in the books")
    said.get_by_role("button", name="Right").click()
    ada.expect_message("You said that it is right")
    said.get_by_label("Change your mind").fill("too few")
    said.get_by_role("button", name="Wrong").click()
    ada.expect_message("You said that it is wrong")
    ada.undo()
    ada.expect_message("You said that it is right")
    expect(said.locator(".opinions")).to_contain_text("as in the books")
    said.get_by_role("button", name="Retract").click()
    ada.expect_message("It was retracted")
    expect(said).to_contain_text("Nobody said yet")
    ada.undo()
    ada.expect_message("You said that it is right")
    ada.open(f"executions/{execution}")
    expect(said.locator(".opinions")).to_contain_text("as in the books")


@does("rate_execution", "promote_execution", "remove_example")
def test_a_golden_example_is_made_removed_and_made_again_by_undo(served: Served) -> None:
    execution, ada = ran(served), served.visitor()
    page = ada.open(f"executions/{execution}")
    golden = part(ada, "Golden example")
    expect(golden.get_by_role("button")).to_have_count(0)
    page.get_by_role("button", name="Right").click()
    golden.get_by_role("button", name="Make it one").click()
    ada.expect_message("It is a golden example now")
    ada.undo()
    ada.expect_message("It is no longer a golden example")
    ada.undo()
    ada.expect_message("It is a golden example now")
    golden.get_by_role("button", name="Remove").click()
    ada.expect_message("It is no longer a golden example")
    assert served.dashboard.store.golden_examples.list() == []


@does("confirm_suggestion", "unrate_execution")
def test_what_a_question_probably_means_is_confirmed_and_undone(served: Served) -> None:
    store, ada = served.dashboard.store, served.visitor()
    connect_shop(store)
    with closing(sqlite3.connect("shop.sqlite")) as database:
        database.executescript(
            "create table staff (name text, phone text);"
            "insert into staff values ('Ann Lee', '1'), ('Bob Ray', '2'), ('Cy Moss', '3')"
        )
    store.connectors.refresh("shop")
    for name in ("Ann Lee", "Bob Ray"):
        sql = f"select phone from staff where name = '{name}'"
        run = store.executions.execute_query(sql, question=f"What is the private mobile phone contact of {name}?")
        store.feedback.create_positive(execution_id=run.execution_id)
    question = "the private mobile phone contact of Cy Moss, quickly"
    assert not store.chat.execution_cache_lookup(question).cache_hit
    page = ada.open("executions/coverage")
    part(ada, "To prove next").get_by_role("button", name="Confirm").click()
    ada.expect_message("It is proven for this question now")
    assert store.chat.execution_cache_lookup(question).cache_hit
    ada.undo()
    ada.expect_message("It was retracted")
    expect(page.get_by_role("heading", name="To prove next")).to_be_visible()
    assert not store.chat.execution_cache_lookup(question).cache_hit


@does("make_key", "revoke_key")
@pytest.mark.nightly
def test_a_key_is_made_shown_once_works_and_is_revoked(served: Served) -> None:
    ada = served.visitor()
    page = ada.open("settings")
    page.get_by_text("Make a key").click()
    page.get_by_label("Name").fill("a program")
    page.get_by_label("feedback").check()
    page.get_by_role("button", name="Make it").click()
    made = page.locator(".key-made")
    key = made.locator("code").inner_text()
    bob = served.visitor("Bob", key)
    bob.open("overview")
    expect(bob.page.get_by_role("link", name="Settings")).to_have_count(0)
    made.get_by_role("link", name="I have it").click()
    expect(page.get_by_text(key)).to_have_count(0)
    row = page.locator("tr", has_text="a program")
    row.locator("summary").click()
    row.get_by_role("button", name="Revoke").click()
    ada.expect_message("is revoked")
    expect(row).to_contain_text("revoked")
    bob.page.goto(f"{bob.url}/p/default/sessions")
    expect(bob.page.get_by_role("heading", name="Log in")).to_be_visible()


@does("set_policy")
def test_a_policy_is_set_beside_experiments_and_undone(served: Served) -> None:
    ada = served.visitor()
    served.dashboard.store.remember("Refunds take 14 days.", dataset="help")
    page = ada.open("experiments")
    row = part(ada, "Policy").locator("tr", has_text="help")
    row.get_by_label("Policy for help").select_option("adaptive")
    row.get_by_role("button", name="Set").click()
    ada.expect_message("Recalls of “help” use the policy adaptive")
    expect(row.get_by_role("combobox")).to_have_value("adaptive")
    ada.undo()
    ada.expect_message("that is usual there")
    expect(row.get_by_role("combobox")).to_have_value("")
    assert page.url.endswith("experiments")


@does("deliver_alerts", "discard_alert")
def test_alerts_are_delivered_or_given_up_after_a_question(served: Served) -> None:
    dashboard, ada = served.dashboard, served.visitor()
    dashboard.store.sessions.create("s")
    now = dashboard.opened.now()
    waiting = AlertRow("a1", "slack", {"text": "down"}, now, next_at=now)
    dashboard.store._project.sessions.store.write(lambda tx: tx.outbox.add("s", [waiting]))
    page = ada.open("settings")
    page.get_by_role("button", name="Deliver now").click()
    ada.expect_message("Nothing was delivered here")
    row = page.locator("tr", has_text="slack")
    row.locator("summary").click()
    expect(row.get_by_text("It is not tried again.")).to_be_visible()
    row.get_by_role("button", name="Give up").click()
    ada.expect_message("The alert was given up")
    expect(page.get_by_text("No alert waits to be delivered.")).to_be_visible()


@does("review_resolve")
@pytest.mark.nightly
def test_the_second_of_two_reviewers_is_told_and_keeps_what_they_typed(served: Served) -> None:
    item = disliked(served)
    ada, bob = served.visitor("Ada"), served.visitor("Bob")
    for reviewer, note in ((ada, "fixed it on Friday"), (bob, "I looked at it, too")):
        reviewer.open(f"review/{item}").get_by_label("Note").fill(note)
    ada.page.get_by_role("button", name="Resolve").click()
    ada.expect_message("It is resolved")
    bob.refused = {409}
    bob.page.get_by_role("button", name="Resolve").click()
    alert = bob.page.get_by_role("alert")
    expect(alert).to_contain_text("Nothing was done: the item has changed since you opened it.")
    expect(alert).to_contain_text("Ada resolved it")
    expect(alert).to_contain_text("fixed it on Friday")
    status(bob, "resolved")
    expect(bob.page.get_by_label("Note")).to_have_value("I looked at it, too")
    assert [event.author for event in served.dashboard.store.review.get(item).history] == ["Ada"]


@does("review_fix supersede")
@pytest.mark.nightly
def test_a_login_that_expires_in_the_middle_loses_nothing(served: Served) -> None:
    item, ada = disliked(served), served.visitor()
    page = ada.open(f"review/{item}")
    page.get_by_text("Correct this fact").click()
    page.get_by_label("What is right").fill("Refunds take 30 days.\nSince May.")
    served.dashboard.clock.advance(hours=9)
    ada.refused = {401}
    page.get_by_role("button", name="Put it in its place").click()
    expect(page.get_by_role("status")).to_contain_text("You were about to correct a fact")
    expect(page.get_by_label("Your name")).to_have_value("Ada")
    page.get_by_label("Key", exact=True).fill("hf_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("This key or link is not valid")
    page.get_by_label("Key", exact=True).fill(served.dashboard.admin)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing has been done yet, and nothing is lost")
    expect(page.get_by_label("Text")).to_have_value("Refunds take 30 days.\nSince May.")
    page.get_by_role("button", name="Go on").click()
    ada.expect_message("The fact was corrected")
    assert [hit.text for hit in served.dashboard.store.recall(ASKED)] == ["Refunds take 30 days.\nSince May."]
