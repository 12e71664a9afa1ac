"""Executions: what ran, what the cache decided, and saying whether it was right."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from dashboards import HOSTILE, Dashboard, connect_shop, forms, send, undone

from heedful.testing import ManualClock

ASKED = "How many orders are there?"


@pytest.fixture
def dashboard(path: Path, clock: ManualClock) -> Iterator[Dashboard]:
    made = Dashboard(path, clock)
    connect_shop(made.store)
    yield made
    made.close()


def ran(dashboard: Dashboard, sql: str = "select count(*) as orders from orders", asked: str | None = ASKED) -> str:
    """What ran, as its address."""
    made = dashboard.store.executions.execute_query(sql, question=asked)
    return f"/p/default/executions/{made.execution_id}"


def stored_feedback(dashboard: Dashboard) -> list[tuple[bool, str | None, str | None]]:
    return [(each.is_positive, each.feedback, each.author) for each in dashboard.store.feedback.list().items]


def test_the_newest_comes_first_and_older_ones_are_reached_by_a_link(dashboard: Dashboard) -> None:
    for number in range(51):
        ran(dashboard, f"select {number} as number", f"Which number is number {number}?")
    client = dashboard.visitor()
    page = client.get("/p/default/executions").text
    assert page.index("number 50?") < page.index("number 49?")
    assert "number 0?" not in page
    assert 'rel="next"' in page
    assert client.get("/p/default/executions?cursor=x").status_code == 422


def test_an_execution_has_its_sql_its_first_rows_and_what_people_say(dashboard: Dashboard) -> None:
    rows = " union all ".join(f"select {number} as n, '{HOSTILE}' as words" for number in range(60))
    execution = ran(dashboard, rows)
    dashboard.store.feedback.create_negative(
        execution_id=execution.rpartition("/")[2], feedback=HOSTILE + "y" * 9_000, author="vic"
    )
    page = dashboard.visitor().get(execution).text
    assert "60 rows" in page
    assert "the first 50 are shown" in page
    assert "<script>" not in page
    assert "characters</summary>" in page
    assert "vic" in page


def test_somebody_says_that_it_is_right_and_undoes_that(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor(name="Ada")
    (form,) = forms(client.get(there).text, "rate_execution")
    done = send(client, form, rating="right", comment="as in the books")
    assert stored_feedback(dashboard) == [(True, "as in the books", "Ada")]
    undone(client, done)
    assert stored_feedback(dashboard) == []


@pytest.mark.slow
def test_undoing_a_changed_mind_brings_back_what_was_said_before(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor(name="Ada")
    send(client, forms(client.get(there).text, "rate_execution")[0], rating="right", comment="as in the books")
    done = send(client, forms(client.get(there).text, "rate_execution")[0], rating="wrong", comment="too few")
    assert stored_feedback(dashboard) == [(False, "too few", "Ada")]
    undone(client, done)
    assert stored_feedback(dashboard) == [(True, "as in the books", "Ada")]


@pytest.mark.slow
def test_an_opinion_is_taken_back_and_given_again(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor(name="Ada")
    send(client, forms(client.get(there).text, "rate_execution")[0], rating="wrong", comment="too few")
    done = send(client, forms(client.get(there).text, "unrate_execution")[0])
    assert stored_feedback(dashboard) == []
    undone(client, done)
    assert stored_feedback(dashboard) == [(False, "too few", "Ada")]


def test_what_is_neither_right_nor_wrong_is_refused_with_what_was_typed(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor(name="Ada")
    answer = send(client, forms(client.get(there).text, "rate_execution")[0], rating="maybe", comment="I wonder")
    assert answer.status_code == 422
    assert "I wonder" in answer.text
    assert stored_feedback(dashboard) == []


def test_what_is_proven_becomes_a_golden_example_and_that_is_undone_and_redone(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor(name="Ada")
    assert forms(client.get(there).text, "promote_execution") == []
    dashboard.store.feedback.create_positive(execution_id=there.rpartition("/")[2], author="vic")
    done = send(client, forms(client.get(there).text, "promote_execution")[0])
    assert [each.question for each in dashboard.store.golden_examples.list()] == [ASKED]
    page = undone(client, done)
    assert dashboard.store.golden_examples.list() == []
    send(client, next(form for form in forms(page, "promote_execution") if "question" in form))
    assert [each.origin for each in dashboard.store.golden_examples.list()] == ["promoted"]
    assert "It is one" in client.get(there).text


def test_what_the_cache_decided_is_told_by_reason(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor()
    assert "decided nothing" in client.get("/p/default/executions/cache").text
    dashboard.store.feedback.create_positive(execution_id=there.rpartition("/")[2])
    dashboard.store.chat.execution_cache_lookup(ASKED)
    dashboard.store.chat.execution_cache_lookup(f"Something else {HOSTILE}")
    page = client.get("/p/default/executions/cache").text
    assert "Served: it asks for the same" in page
    assert "Nothing found: no stored question is like it" in page
    assert "1 (50%)" in page
    assert "<script>" not in page


PHONE = "What is the private mobile phone contact of {}?"
QUICKLY = "the private mobile phone contact of Cy Moss, quickly"


@pytest.mark.slow
def test_what_the_cache_covers_and_a_suggestion_that_is_confirmed_and_undone(dashboard: Dashboard) -> None:
    client = dashboard.visitor(name="Ada")
    assert "Nothing is proven yet" in client.get("/p/default/executions/coverage").text
    with closing(sqlite3.connect("shop.sqlite")) as database:
        database.executescript(
            "create table staff (name text, phone text);"
            "insert into staff values ('Ann Lee', '1'), ('Bob Ray', '2'), ('Cy Moss', '3')"
        )
    dashboard.store.connectors.refresh("shop")
    for name in ("Ann Lee", "Bob Ray"):
        there = ran(dashboard, f"select phone from staff where name = '{name}'", PHONE.format(name))
        dashboard.store.feedback.create_positive(execution_id=there.rpartition("/")[2])
    dashboard.store.chat.execution_cache_lookup(QUICKLY)
    dashboard.store.chat.execution_cache_lookup(f"Something else {HOSTILE}")
    page = client.get("/p/default/executions/coverage").text
    assert "of 1 kinds" in page
    assert PHONE.format("Cy Moss") in page
    assert "no stored question is like it" in page
    assert "<script>" not in page
    (form,) = forms(page, "confirm_suggestion")
    done = send(client, form)
    assert dashboard.store.chat.execution_cache_lookup(QUICKLY).cache_hit
    assert ("Ada" in str(stored_feedback(dashboard))) is True
    assert PHONE.format("Cy Moss") in undone(client, done)
    reader = dashboard.visitor(dashboard.key("read"))
    assert "/do/" not in reader.get("/p/default/executions/coverage").text
    assert reader.get("/p/default/executions/coverage?connector=nope").status_code == 422


def test_readers_see_no_buttons(dashboard: Dashboard) -> None:
    execution = ran(dashboard)
    page = dashboard.visitor(dashboard.key("read")).get(execution).text
    assert "/do/" not in page


def test_a_range_that_is_none_is_told_and_an_unknown_execution_too(dashboard: Dashboard) -> None:
    client = dashboard.visitor()
    wrong = client.get("/p/default/executions/cache?since=soon&until=")
    assert wrong.status_code == 422
    assert 'value="soon"' in wrong.text
    assert client.get("/p/default/executions/none").status_code == 404


def test_executions_are_shown_of_one_connector_and_one_that_is_not_there_is_told(dashboard: Dashboard) -> None:
    there, client = ran(dashboard), dashboard.visitor()
    assert there in client.get("/p/default/executions?connector=shop").text
    wrong = client.get("/p/default/executions?connector=nope")
    assert wrong.status_code == 422
    assert "no connector &#39;nope&#39;" in wrong.text.lower()
    assert there not in wrong.text
