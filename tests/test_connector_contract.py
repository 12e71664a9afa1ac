"""What every kind of connector does alike: run, reuse, chat, examples and review, embedded and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from kinds import KINDS, TABLES, Place
from server import Running, running

import heedful
from heedful import Heedful
from heedful.clock import new_id
from heedful.errors import Forbidden, HeedfulError, Invalid
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.providers.llm import ChatMessage
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder

pytestmark = pytest.mark.slow

ITALY = "How many cities are in Italy?"
FRANCE = "How many cities are in France?"
# Nothing that a formatter would leave as it is.
ITALY_SQL = """select count( distinct c.id )  as CITIES
  from city c, city d
 where c.id=d.id and c.country='Italy'"""
FRANCE_SQL = ITALY_SQL.replace("Italy", "France")
STREETS = "How many streets are there?"
STREETS_SQL = "SELECT count(*) AS streets FROM street"
MINE = "How many people live in my city?"
HEADCOUNT = "What is the official census headcount figure of {}?"
PEOPLE_SQL = "SELECT people FROM city WHERE name = '{}'"
LARGE = "Which cities have an area over 400.5?"
LARGE_SQL = "SELECT name, area FROM city WHERE area>400.5 ORDER BY name"


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = KINDS[request.param](request, tmp_path)
    made.write(TABLES)
    return made


def written(messages: Sequence[ChatMessage]) -> str:
    known = {STREETS: STREETS_SQL, ITALY: ITALY_SQL, MINE: PEOPLE_SQL.format("Rome")}
    return f"```sql\n{known[messages[-1].content.rpartition('Question: ')[2]]}\n```"


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel(written)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "store.db", language_model=model) as started:
        yield started


@pytest.fixture
def embedded(tmp_path: Path, empty_store: bytes, model: ScriptedModel, clock: ManualClock) -> Iterator[Heedful]:
    file = tmp_path / "store.db"
    file.write_bytes(empty_store)
    with heedful.open(file, clock=clock, embedding=WordEmbedder(), language_model=model) as store:
        yield store


@pytest.fixture
def http(server: Running) -> Iterator[RemoteHeedful]:
    with server.connect(project=new_id()) as remote:
        yield remote


@pytest.fixture(params=["embedded", "http"])
def towns(request: pytest.FixtureRequest, place: Place) -> Any:
    """A project with a connector `towns`, through each of its two interfaces."""
    store = request.getfixturevalue(request.param)
    store.connectors.create("towns", place.url)
    return store


def prove(store: Any, question: str = ITALY, sql: str = ITALY_SQL) -> str:
    done = store.executions.execute_query(sql, question=question).execution_id
    store.feedback.create_positive(execution_id=done, feedback_text="Checked.")
    return str(done)


def ask(store: Any, question: str) -> Any:
    return store.chat.chat_to_answer(store.chat_sessions.create().id, question)


def test_queries_run_are_kept_and_are_refused(towns: Any, place: Place) -> None:
    connector = towns.connectors.get("towns")
    assert (connector.dialect, connector.tables) == (place.kind, 2)
    sql = "SELECT name, people FROM city WHERE country = :country AND id < :most ORDER BY id"
    done = towns.executions.execute_query(sql, parameters={"country": "France", "most": 5})
    assert done.result.records() == [{"name": "Nice", "people": None}]
    assert towns.executions.get(done.execution_id) == done
    assert towns.executions.list(connector_id="towns").items == [done]
    for wrong, kind, code in [
        ("DELETE FROM city", Forbidden, "sql_writes"),
        ("SELECT 1; SELECT 2", Forbidden, "sql_several"),
        ("SELECT height FROM city", Invalid, "unknown_column"),
        ("SELECT name FROM nowhere", Invalid, "unknown_table"),
    ]:
        with pytest.raises(HeedfulError) as caught:
            towns.executions.execute_query(wrong)
        assert (type(caught.value), caught.value.code) == (kind, code), wrong


@pytest.mark.nightly
def test_what_is_proven_is_served_rebound_and_blocked(towns: Any, place: Place) -> None:
    proven = prove(towns)
    served = towns.chat.execution_cache_lookup("how many cities are in italy")
    match = served.matches[0]
    assert (served.cache_hit, match.decision, match.feedback_is_positive) == (True, "serve", True)
    assert match.execution["result"].rows == [[2]]
    assert match.execution["sql_query"] == towns.executions.get(proven).sql_query == ITALY_SQL
    place.write("INSERT INTO city VALUES (6, 'Lyon', 'France', 500000, 47.87)")
    rebound = towns.chat.execution_cache_lookup(FRANCE, only_positive_feedback=True).matches[0]
    assert (rebound.decision, rebound.execution["result"].rows) == ("rebind", [[3]])
    assert rebound.execution["sql_query"] == FRANCE_SQL
    towns.feedback.create_negative(execution_id=proven, feedback="Counts villages.", author="ida")
    refused = towns.chat.execution_cache_lookup(FRANCE)
    assert (refused.cache_hit, refused.matches[0].gate) == (False, "feedback")


@pytest.mark.nightly
def test_a_question_in_the_first_person_is_reused_for_who_proved_it(towns: Any) -> None:
    chat = towns.chat_sessions.create().id
    done = towns.chat.chat_to_answer(chat, MINE)
    assert (done.origin, done.execution_result.result.rows) == ("written", [[2800000]])
    towns.feedback.create_positive(execution_id=done.execution_result.execution_id, author="ann")
    assert towns.chat.chat_to_answer(chat, MINE).origin == "served"
    for reuse in ("sql", "result"):
        found = towns.chat.execution_cache_lookup(MINE, reuse=reuse)
        assert (found.cache_hit, found.matches[0].gate) == (False, "asker")
    assert ask(towns, MINE).origin == "written"


def test_a_date_that_only_the_sql_names_ends_with_the_day(
    towns: Any, place: Place, server: Running, clock: ManualClock
) -> None:
    lately, cast = "How many cities were there lately?", "DATE " if place.kind != "sqlite" else ""
    prove(towns, lately, f"SELECT count(*) AS n FROM city WHERE id > 0 AND {cast}'2026-11-16' > '2026-11-15'")
    assert towns.chat.execution_cache_lookup(lately).cache_hit
    (server.clock if isinstance(towns, RemoteHeedful) else clock).advance(days=7)
    found = towns.chat.execution_cache_lookup(lately)
    assert (found.cache_hit, found.matches[0].gate) == (False, "relative_dates")


VISITS = """
CREATE TABLE visit (id integer PRIMARY KEY, day date, seen timestamp NULL);
INSERT INTO visit VALUES (1, '2024-02-01', '2024-02-01 00:00:00'), (2, '2024-02-29', '2024-02-29 23:59:59'),
    (3, '2024-03-01', '2024-03-01 00:00:00'), (4, '2025-03-31', '2025-03-31 12:00:00'),
    (5, '2026-11-23', '2026-11-23 08:30:00'), (6, '2026-11-24', '2026-11-24 07:00:00');
"""
MARCH = {
    "sqlite": ("strftime('%Y-%m', day) = '2025-03'", "day LIKE '2025-03%'"),
    "postgresql": ("day >= '2025-03-01'::date AND day < '2025-04-01'::date", "to_char(day, 'YYYY-MM') = '2025-03'"),
    "duckdb": ("day >= '2025-03-01'::date AND day < '2025-04-01'::date", "strftime(day, '%Y-%m') = '2025-03'"),
    "mysql": ("YEAR(day) = 2025 AND MONTH(day) = 3", "DATE_FORMAT(day, '%Y-%m') = '2025-03'"),
}
IN_MARCH = (
    "day BETWEEN DATE '2025-03-01' AND DATE '2025-03-31'",
    "seen >= TIMESTAMP '2025-03-01 00:00:00' AND seen < TIMESTAMP '2025-04-01 00:00:00'",
    "EXTRACT(YEAR FROM day) = 2025 AND EXTRACT(MONTH FROM day) = 3",
)
OF_ANY_KIND = ("day >= '2025-03-01' AND day < '2025-04-01'", "day BETWEEN '2025-03-01' AND '2025-03-31'")


@pytest.mark.nightly
def test_dates_are_rebound_as_the_database_writes_them(towns: Any, place: Place) -> None:
    place.write(VISITS)
    towns.connectors.create("visits", place.url)
    ways = (*OF_ANY_KIND, *MARCH[place.kind], *(IN_MARCH if place.kind != "sqlite" else ()))
    for letter, condition in zip("abcdefg", ways, strict=False):
        question = f"How many visits of group {letter} were there in March 2025?"
        sql = f"SELECT count(*) AS n FROM visit WHERE {condition}"
        done = towns.executions.execute_query(sql, question=question, connector_id="visits")
        assert done.result.rows == [[1]]
        towns.feedback.create_positive(execution_id=done.execution_id)
        asked = question.replace("March 2025", "February 2024")
        found = towns.chat.execution_cache_lookup(asked, connector_id="visits")
        assert found.cache_hit, (condition, found.matches[0].reason)
        assert found.matches[0].execution["result"].rows == [[2]], found.matches[0].execution["sql_query"]


@pytest.mark.nightly
def test_hours_are_rebound_from_the_clock(towns: Any, place: Place, server: Running, clock: ManualClock) -> None:
    place.write(VISITS)
    towns.connectors.create("visits", place.url)
    question, cast = "How many visits were there in the past 24 hours?", "TIMESTAMP " if place.kind != "sqlite" else ""
    ticking = server.clock if isinstance(towns, RemoteHeedful) else clock
    sql, proven_at = f"SELECT count(*) AS n FROM visit WHERE seen >= {cast}'{{:%Y-%m-%d %H:%M}}'", ticking()
    written = sql.format(proven_at - timedelta(hours=24))
    done = towns.executions.execute_query(written, question=question, connector_id="visits")
    towns.feedback.create_positive(execution_id=done.execution_id)
    ticking.advance(days=8)
    match = towns.chat.execution_cache_lookup(question, connector_id="visits").matches[0]
    assert (match.decision, match.execution["sql_query"]) == ("rebind", sql.format(proven_at + timedelta(days=7)))


def test_a_number_with_a_fraction_is_rebound(towns: Any) -> None:
    prove(towns, LARGE, LARGE_SQL)
    match = towns.chat.execution_cache_lookup("Which cities have an area over 480.75?").matches[0]
    assert (match.decision, match.execution["sql_query"]) == ("rebind", LARGE_SQL.replace("400.5", "480.75"))
    assert [row[0] for row in match.execution["result"].rows] == ["Oslo", "Rome"]


def test_a_stored_result_is_used_while_no_data_changed(towns: Any, place: Place) -> None:
    for _ in range(20):
        prove(towns)
        result = towns.chat.execution_cache_lookup(ITALY, reuse="result")
        if result.cache_hit:  # PostgreSQL can't tell this database's changes from those of others on the same server.
            break
    assert (result.cache_hit, result.matches[0].execution["result"].rows) == (True, [[2]])
    place.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000, 117.39)")
    result = towns.chat.execution_cache_lookup(ITALY, reuse="result")
    # Where nobody can tell, a stored result is taken as old as it is, which is what was asked for.
    assert result.matches[0].gate == ("data" if place.tells_changes else "same")


def test_another_schema_is_another_database(towns: Any, place: Place) -> None:
    prove(towns)
    before = towns.connectors.get("towns").fingerprint
    place.write("ALTER TABLE city ADD COLUMN mayor varchar(50)")
    assert towns.connectors.refresh("towns").fingerprint != before
    result = towns.chat.execution_cache_lookup(ITALY)
    assert (result.cache_hit, result.matches[0].gate) == (False, "schema")


@pytest.mark.nightly
def test_chat_answers_by_the_model_and_then_by_what_is_proven(towns: Any, model: ScriptedModel) -> None:
    first = ask(towns, ITALY)
    assert (first.origin, first.execution_result.result.rows) == ("written", [[2]])
    assert "country" in model.prompts[-1][0].content
    towns.feedback.create_positive(execution_id=first.execution_result.execution_id)
    count = len(model.prompts)
    second, third = ask(towns, ITALY), ask(towns, FRANCE)
    assert (second.origin, second.sql_query) == ("served", first.sql_query)
    assert (third.origin, third.sql_query, third.execution_result.result.rows) == ("rebound", FRANCE_SQL, [[2]])
    session = towns.chat_sessions.create()
    planned = towns.chat.chat_to_sql(session.id, FRANCE)
    assert (planned.origin, planned.sql_query) == ("rebound", FRANCE_SQL)
    ran = towns.executions.execute_from_chat(planned.chat_message_id)
    assert (ran.result.rows, ran.sql_query) == ([[2]], FRANCE_SQL)
    assert len(model.prompts) == count
    assert ask(towns, STREETS).execution_result.result.records() == [{"streets": 3}]


def test_a_likely_reading_is_suggested_and_confirmed(towns: Any) -> None:
    for city in ("Rome", "Oslo"):
        prove(towns, HEADCOUNT.format(city), PEOPLE_SQL.format(city))
    asked = "the official census headcount figure of Paris, quickly"
    result = towns.chat.execution_cache_lookup(asked)
    assert (result.cache_hit, result.suggestion.sql_query) == (False, PEOPLE_SQL.format("Paris"))
    done = towns.chat.confirm_suggestion(asked, result.suggestion.execution_id, author="ann")
    assert done.result.rows == [[2100000]]
    again = towns.chat.execution_cache_lookup(asked)
    assert (again.cache_hit, again.matches[0].decision, again.suggestion) == (True, "serve", None)


def test_golden_examples_are_made_changed_promoted_and_used(towns: Any) -> None:
    example = towns.golden_examples.create(ITALY, ITALY_SQL)
    assert ask(towns, FRANCE).sql_query == FRANCE_SQL
    changed = towns.golden_examples.update(example.id, sql_query="SELECT 7 AS cities")
    assert (changed.id, ask(towns, ITALY).execution_result.result.rows) == (example.id, [[7]])
    promoted = towns.golden_examples.promote(prove(towns, STREETS, STREETS_SQL))
    assert (promoted.question, promoted.sql_query) == (STREETS, STREETS_SQL)
    assert towns.golden_examples.delete(example.id) is True
    assert [each.id for each in towns.golden_examples.list()] == [promoted.id]
    with pytest.raises(Forbidden):
        towns.golden_examples.create("Empty it", "DELETE FROM city")


@pytest.mark.nightly
def test_the_review_queue_blocks_promotes_and_adds_examples(towns: Any) -> None:
    right = prove(towns)
    wrong = towns.executions.execute_query("SELECT count(*) AS n FROM city", question=ITALY).execution_id
    towns.feedback.create_negative(execution_id=wrong, feedback="Counts all of them.", author="ida")
    (item,) = towns.review.list().items
    assert item.question == ITALY
    blocked = towns.review.fix(item.item_id, "block", execution_id=right, author="rev")
    assert towns.chat.execution_cache_lookup(ITALY).cache_hit is False
    towns.review.undo(blocked.event_id, author="rev")
    promoted = towns.review.fix(item.item_id, "promote", execution_id=right, author="rev")
    assert towns.chat.execution_cache_lookup(FRANCE).matches[0].execution["sql_query"] == FRANCE_SQL
    towns.review.undo(promoted.event_id, author="rev")
    towns.review.fix(item.item_id, "add_example", question=STREETS, sql_query=STREETS_SQL, author="rev")
    assert [each.sql_query for each in towns.golden_examples.list()] == [STREETS_SQL]


EXACT = "12345678901234567.89"
COMMON = f"SELECT CAST(NULL AS char(3)) AS missing, 9223372036854775807 AS big, 'ü''s' AS text, {EXACT} AS exact"
VALUES: dict[str, tuple[str, dict[str, Any]]] = {
    # It has five types, and no more; dates, JSON and yes or no are what the columns hold.
    "sqlite": (
        "1 AS yes, '2024-02-29' AS day, '{\"a\": [1]}' AS document, x'00ff' AS raw",
        {"exact": float(EXACT), "yes": 1, "day": "2024-02-29", "document": '{"a": [1]}'},
    ),
    "postgresql": (
        "true AS yes, date '2024-02-29' AS day, '{\"a\": [1]}'::jsonb AS document, '\\x00ff'::bytea AS raw,"
        " timestamptz '2024-02-29 01:02:03+05:30' AS zoned, ARRAY[1.5, NULL] AS list, 0.10::numeric AS money",
        {},
    ),
    "duckdb": (
        "true AS yes, date '2024-02-29' AS day, '{\"a\": [1]}'::json AS document, '\\x00\\xFF'::blob AS raw,"
        " timestamptz '2024-02-29 01:02:03+05:30' AS zoned, [1.5, NULL] AS list, 0.10 AS money",
        {},
    ),
    # Yes and no are numbers to it, and JSON is text in MariaDB; moments have no zone.
    "mysql": (
        "true AS yes, date '2024-02-29' AS day, '{\"a\": [1]}' AS document, x'00ff' AS raw, 0.10 AS money",
        {"yes": 1, "document": '{"a": [1]}'},
    ),
}
ALIKE = {
    "missing": None,
    "big": 2**63 - 1,
    "text": "ü's",
    "exact": Decimal(EXACT),
    "yes": True,
    "day": date(2024, 2, 29),
    "document": {"a": [1]},
    "raw": b"\0\xff",
    "zoned": datetime(2024, 2, 28, 19, 32, 3, tzinfo=UTC),
    "list": [Decimal("1.5"), None],
    "money": Decimal("0.10"),
}


def test_values_come_back_alike(towns: Any, place: Place) -> None:
    own, differ = VALUES[place.kind]
    done = towns.executions.execute_query(f"{COMMON}, {own}")
    for execution in (done, towns.executions.get(done.execution_id)):
        (row,) = execution.result.records()
        expected = {name: value for name, value in {**ALIKE, **differ}.items() if name in row}
        assert [(name, value, type(value)) for name, value in row.items()] == [
            (name, expected[name], type(expected[name])) for name in row
        ]
