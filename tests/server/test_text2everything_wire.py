"""The real text2everything_sdk, unchanged, with Heedful behind its `base_url`: its document in order, from nothing."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from server import Running, running

from heedful import Heedful
from heedful.compat.foreign_api import ForeignRequest
from heedful.compat.text2everything.requests import window
from heedful.compat.text2everything.routes import ROUTES, parts_of, url_of
from heedful.compat.text2everything.texts import Remarks
from heedful.errors import Invalid
from heedful.providers.llm import ChatMessage
from heedful.sql.secrets import new_key
from heedful.testing import ManualClock, ScriptedModel

with warnings.catch_warnings():
    # Its models are written for an older pydantic.
    warnings.simplefilter("ignore")
    from text2everything_sdk import Text2EverythingClient  # type: ignore[import-untyped]
    from text2everything_sdk import exceptions as sdk

PROJECT = "proj-123"
ACTIVE = "SELECT * FROM customers WHERE status = 'active'"
USERS = "Count active users"
USERS_SQL = "SELECT count(*) AS users FROM users WHERE active = 1"
WRITTEN = {
    USERS: USERS_SQL,
    "Show customer metrics": "SELECT status, count(*) AS customers FROM customers GROUP BY status",
    "Count users": "SELECT count(*) AS users FROM users",
    "List the customers": "SELECT name FROM customers ORDER BY id",
}


def written(messages: Sequence[ChatMessage]) -> str:
    return f"```sql\n{WRITTEN[messages[-1].content.rpartition('Question: ')[2]]}\n```"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(written)


@pytest.fixture
def server(path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("HEEDFUL_CONNECTOR_SECRETS", "CRM_PASSWORD")
    with running(path, language_model=model) as started:
        yield started


@pytest.fixture
def clock(server: Running) -> ManualClock:
    return server.clock


@pytest.fixture
def client(server: Running) -> Iterator[Any]:
    with connected(server, server.key) as opened:
        yield opened


def connected(server: Running, key: str) -> Any:
    return Text2EverythingClient(
        base_url=server.url, access_token=key, workspace_name="workspaces/dev", max_retries=0, timeout=60
    )


@pytest.fixture
def crm(tmp_path: Path) -> Path:
    file = tmp_path / "crm.sqlite"
    connection = sqlite3.connect(file)
    with connection:
        connection.executescript("""
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, status TEXT, spent NUMERIC);
            INSERT INTO customers VALUES (1, 'Ada', 'active', 10.5), (2, 'Ben', 'closed', 0), (3, 'Cleo', 'active', 7);
            CREATE TABLE users (id INTEGER PRIMARY KEY, active INTEGER);
            INSERT INTO users VALUES (1, 1), (2, 0), (3, 1);
        """)
    connection.close()
    return file


@pytest.fixture
def connector(client: Any, crm: Path) -> str:
    """A SQLite connector; the client's own `create` refuses that kind before it asks the server."""
    client.projects.create(name=PROJECT)
    return str(add_connector(client, crm)["id"])


def add_connector(client: Any, file: Path, name: str = "crm") -> Any:
    return client.post(
        f"/projects/{PROJECT}/connectors",
        data={"name": name, "db_type": "sqlite", "database": str(file)},
    )


def answered(client: Any, connector: str, query: str = USERS) -> Any:
    session = client.chat_sessions.create(project_id=PROJECT)
    return client.chat.chat_to_answer(
        project_id=PROJECT, chat_session_id=session.id, query=query, connector_id=connector
    )


def rate(client: Any, execution: Any, *, good: bool = True, text: str = "Right.") -> Any:
    return client.feedback.create(
        project_id=PROJECT,
        chat_message_id=execution.chat_message_id,
        feedback=text,
        is_positive=good,
        execution_id=execution.execution_id,
    )


@pytest.mark.nightly
def test_the_document_from_top_to_bottom(client: Any, connector: str, model: ScriptedModel) -> None:
    message = answered(client, connector).id
    feedback = client.feedback.create(
        project_id=PROJECT, chat_message_id=message, feedback="The SQL query worked perfectly!", is_positive=True
    )
    ran = client.executions.execute_from_chat(PROJECT, connector, message)
    linked = client.feedback.create(
        project_id=PROJECT,
        chat_message_id=message,
        execution_id=ran.execution_id,
        feedback="Query results are accurate and fast",
        is_positive=True,
    )
    assert (linked.execution_id, linked.chat_message_id) == (ran.execution_id, message)
    positive = client.feedback.create_positive(PROJECT, message, "Excellent query!", ran.execution_id)
    negative = client.feedback.create_negative(PROJECT, message, "Query returned incorrect results", ran.execution_id)
    assert (positive.is_positive, negative.is_positive) == (True, False)

    everything = client.feedback.list(project_id=PROJECT)
    assert {each.id for each in everything} == {feedback.id, linked.id, positive.id, negative.id}
    items = client.feedback.list(project_id=PROJECT, search="QUERY")
    assert {each.id for each in items} == {each.id for each in everything}
    assert len(client.feedback.list(project_id=PROJECT, skip=0, limit=2)) == 2
    assert client.feedback.get(PROJECT, linked.id) == linked
    updated = client.feedback.update(PROJECT, feedback.id, feedback="Updated: excellent!", is_positive=True)
    assert (updated.id, updated.feedback, updated.chat_message_id) == (feedback.id, "Updated: excellent!", message)
    assert client.feedback.delete(PROJECT, positive.id) is True
    result = client.feedback.bulk_delete(PROJECT, [negative.id, "feedback-2"])
    assert (result["deleted_count"], result["failed_ids"]) == (1, ["feedback-2"])
    assert len(client.feedback.list_positive(project_id=PROJECT)) == 2
    assert client.feedback.list_negative(project_id=PROJECT) == []
    assert {each.id for each in client.feedback.get_feedback_for_message(PROJECT, message)} == {linked.id, feedback.id}

    result = client.executions.execute_query(project_id=PROJECT, connector_id=connector, sql_query=ACTIVE)
    assert [row["name"] for row in result.result["data"]] == ["Ada", "Cleo"]
    rated = client.feedback.create_positive(PROJECT, result.chat_message_id, "Perfect!", result.execution_id)
    assert rated.execution_id == result.execution_id
    assert [each.id for each in client.feedback.get_feedback_for_message(PROJECT, result.chat_message_id)] == [rated.id]

    cached = client.chat.execution_cache_lookup(
        project_id=PROJECT, user_query="count active users", connector_id=connector, only_positive_feedback=True
    )
    assert cached.cache_hit
    best = cached.matches[0]
    assert (best.has_feedback, best.feedback_is_positive) == (True, True)
    assert (best.execution["sql_query"], best.execution["result"]["data"]) == (USERS_SQL, [{"users": 2}])

    answer = answered(client, connector)
    assert answer.execution_result.result["data"] == [{"users": 2}]
    marked = client.feedback.create_positive(
        PROJECT, answer.id, "Results are accurate", answer.execution_result.execution_id
    )
    assert marked.chat_message_id == answer.id == answer.execution_result.chat_message_id
    client.feedback.create_negative(PROJECT, answer.id, "Missing recent data", answer.execution_result.execution_id)

    count = len(model.prompts)
    response = client.chat.chat_to_sql(
        project_id=PROJECT,
        chat_session_id=answer.chat_session_id,
        query="Show customer metrics",
        feedback_cutoff=0.5,
    )
    assert response.sql_query == WRITTEN["Show customer metrics"]
    assert len(model.prompts) == count + 1
    # What is said of a repetition counts for what it repeats: three say it is right, and one that it is not.
    client.chat.chat_to_sql(PROJECT, answer.chat_session_id, "Count users", feedback_cutoff=0.7)
    assert 'Wrong, because: "Missing recent data"' in model.prompts[-1][-1].content

    rates = client.feedback.list(project_id=PROJECT)
    assert sum(each.is_positive for each in rates) == len(rates) - 1


@pytest.mark.slow
def test_the_smart_query_of_the_document(client: Any, connector: str, model: ScriptedModel) -> None:
    def smart(query: str) -> Any:
        cached = client.chat.execution_cache_lookup(
            PROJECT, query, connector, only_positive_feedback=True, similarity_threshold=0.8
        )
        if cached.cache_hit and cached.matches:
            return "cache", cached.matches[0].execution["result"]["data"]
        answer = answered(client, connector, query)
        rate(client, answer.execution_result)
        return "chat", answer.execution_result.result["data"]

    assert smart(USERS) == ("chat", [{"users": 2}])
    assert smart(USERS) == ("cache", [{"users": 2}])
    assert len(model.prompts) == 1


@pytest.mark.slow
def test_what_one_person_asks_about_themselves_is_served_in_their_chat_session(
    client: Any, connector: str, model: ScriptedModel
) -> None:
    WRITTEN["Am I active?"] = "SELECT status FROM customers WHERE id = 1"
    ann, bo = (client.chat_sessions.create(PROJECT).id for _ in range(2))
    first = client.chat.chat_to_answer(PROJECT, ann, "Am I active?", connector_id=connector)
    rate(client, first.execution_result)
    client.chat.chat_to_answer(PROJECT, ann, "Am I active?", connector_id=connector)
    assert len(model.prompts) == 1
    assert not client.chat.execution_cache_lookup(PROJECT, "Am I active?", connector).cache_hit
    client.chat.chat_to_answer(PROJECT, bo, "Am I active?", connector_id=connector)
    assert len(model.prompts) == 2


@pytest.mark.slow
def test_without_a_language_model_a_golden_example_answers(
    tmp_path: Path, crm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path / "other.db") as server, connected(server, server.key) as client:
        connector = add_connector(client, crm)["id"]
        with pytest.raises(sdk.ServerError, match="no proven SQL"):
            answered(client, connector)
        example = client.golden_examples.create(PROJECT, USERS, USERS_SQL, description="by Ada")
        answer = answered(client, connector)
        assert (answer.sql_query, answer.execution_result.result["data"]) == (USERS_SQL, [{"users": 2}])
        assert client.golden_examples.get(PROJECT, example.id) == example
        assert (example.description, example.project_id, example.is_always_displayed) == ("by Ada", PROJECT, False)


@pytest.mark.nightly
def test_every_feedback_is_listed_however_many_there_are(client: Any, connector: str) -> None:
    ran = client.executions.execute_query(PROJECT, connector, ACTIVE)
    made = {rate(client, ran, good=number % 5 > 0, text=f"number {number}").id for number in range(150)}
    items = client.feedback.list(project_id=PROJECT)
    assert len(items) == 150
    assert {each.id for each in items} == made
    assert len(client.feedback.list_positive(PROJECT)) == 120
    assert len(client.feedback.list_negative(PROJECT)) == 30
    assert [each.id for each in client.feedback.list(PROJECT, skip=140)] == [each.id for each in items[140:]]
    assert [each.id for each in client.feedback.list(PROJECT, skip=10, limit=70)] == [each.id for each in items[10:80]]
    assert len(client.feedback.list(PROJECT, search="number 14")) == 11


@pytest.mark.slow
def test_executions_are_listed_and_read(client: Any, connector: str, clock: ManualClock) -> None:
    ran = [client.executions.execute_query(PROJECT, connector, f"SELECT {number}") for number in range(120)]
    listed = client.executions.list(project_id=PROJECT)
    assert [each.id for each in listed] == [each.execution_id for each in reversed(ran)]
    assert all(each.is_successful and each.connector_id == connector for each in listed)
    assert len(client.executions.list(PROJECT, limit=60)) == 60
    assert [each.sql_query for each in client.executions.list(PROJECT, q="select 77")] == ["SELECT 77"]
    (own,) = client.executions.list(PROJECT, chat_message_id=ran[5].chat_message_id, connector_id="crm")
    assert own.id == ran[5].execution_id
    got = client.executions.get(PROJECT, ran[5].execution_id)
    assert (got.id, got.sql_query, got.created_at) == (ran[5].execution_id, "SELECT 5", clock.now)
    again = client.executions.execute_from_chat(PROJECT, connector, ran[5].chat_message_id)
    assert again.sql_query == "SELECT 5"
    assert again.execution_id != ran[5].execution_id


@pytest.mark.slow
def test_what_is_refused_is_no_match(client: Any, connector: str) -> None:
    answer = answered(client, connector)
    rate(client, answer.execution_result, good=False, text="It counts the dead, too.")
    cached = client.chat.execution_cache_lookup(PROJECT, USERS, connector)
    assert (cached.cache_hit, cached.matches, cached.candidates_checked) == (False, [], 1)


@pytest.mark.slow
def test_sql_with_other_values_is_not_offered_as_it_was(client: Any, connector: str) -> None:
    for status in ("active", "closed"):
        WRITTEN[f"How many {status} customers are there?"] = (
            f"SELECT count(*) AS customers FROM customers WHERE status = '{status}'"
        )
        rate(client, answered(client, connector, f"How many {status} customers are there?").execution_result)
    cached = client.chat.execution_cache_lookup(PROJECT, "How many closed customers are there?", connector)
    assert cached.cache_hit
    assert all("'closed'" in each.execution["sql_query"] for each in cached.matches)
    assert cached.matches[0].execution["result"]["data"] == [{"customers": 1}]


@pytest.mark.slow
def test_contexts_are_facts_that_the_language_model_reads(
    client: Any, connector: str, server: Running, model: ScriptedModel, clock: ManualClock
) -> None:
    rules = client.contexts.create(PROJECT, "Rules", "Active users have active = 1.", description="by Ada")
    always = client.contexts.create(PROJECT, "Money", "Amounts are in euros.", is_always_displayed=True)
    others = [{"name": f"Planet {n}", "content": f"Planet {n} goes round star {n}."} for n in range(12)]
    client.contexts.bulk_create(PROJECT, others, max_workers=4)
    answered(client, connector)
    read = model.prompts[-1][-1].content
    assert "Rules: Active users have active = 1." in read
    assert "Money: Amounts are in euros." in read
    assert 0 < read.count("goes round") < 12

    clock.advance(days=1)
    changed = client.contexts.update(PROJECT, rules.id, content="Active users have active = 'yes'.")
    assert (changed.id, changed.description, changed.created_at) == (rules.id, "by Ada", rules.created_at)
    assert changed.updated_at == clock.now
    answered(client, connector)
    assert "active = 'yes'" in model.prompts[-1][-1].content
    assert "active = 1." not in model.prompts[-1][-1].content
    assert client.contexts.list_always_displayed(PROJECT) == [always]
    assert client.contexts.get_by_name(PROJECT, "Money") == always
    assert len(client.contexts.list(PROJECT)) == 14
    assert len(client.contexts.list(PROJECT, page=2, per_page=10)) == 4
    hits = Heedful(server.state.store.project(PROJECT)).recall("euros", dataset="contexts").hits
    assert hits[0].text == "Amounts are in euros."

    deletion = client.contexts.bulk_delete(PROJECT, [rules.id, "ctx-0"])
    assert deletion == {"deleted_count": 1, "failed_ids": ["ctx-0"]}
    assert client.contexts.delete(PROJECT, always.id)["message"]
    with pytest.raises(sdk.NotFoundError, match=always.id):
        client.contexts.get(PROJECT, always.id)


@pytest.mark.slow
def test_a_long_context_comes_back_as_it_was_written(client: Any, server: Running) -> None:
    client.projects.create(PROJECT)
    long = "  # Rules\n\n" + "Same line.\n" * 300 + "\n## More\n" + "x" * 2500 + " \n"
    made = client.contexts.create(PROJECT, "Long", long)
    assert client.contexts.get(PROJECT, made.id).content == long
    assert client.contexts.list(PROJECT) == [made]
    assert len(Remarks(server.state.store.project(PROJECT).workspace, "contexts").list()) == 1


@pytest.mark.slow
def test_schemas_are_read_too_and_come_back_as_they_were(client: Any, connector: str, model: ScriptedModel) -> None:
    columns = [{"name": f"column_{n}", "type": "text", "note": "wide\n" * 9} for n in range(40)]
    wide = {"table": {"name": "wide", "columns": columns}}
    users = {"table": {"name": "users", "columns": [{"name": "active", "description": "1 for active users"}]}}
    first = client.schema_metadata.create(PROJECT, "Wide", wide)
    second = client.schema_metadata.create(PROJECT, "Users", users, is_always_displayed=True)
    assert (first.schema_data, first.split_group_id) == (wide, None)
    assert client.schema_metadata.get(PROJECT, first.id) == first
    assert client.schema_metadata.list(PROJECT) == sorted([first, second], key=lambda each: each.id)
    assert client.schema_metadata.list_by_type(PROJECT, "table") == client.schema_metadata.list(PROJECT)
    assert client.schema_metadata.list(PROJECT, is_always_displayed=True) == [second]
    answered(client, connector)
    assert "1 for active users" in model.prompts[-1][-1].content
    assert client.schema_metadata.update(PROJECT, second.id, description="new").schema_data == users
    assert client.schema_metadata.delete(PROJECT, first.id) is True


@pytest.mark.slow
def test_what_a_question_names_is_read(client: Any, connector: str, model: ScriptedModel) -> None:
    for number in range(12):
        client.contexts.create(PROJECT, f"Users {number}", f"Count active users by rule {number}.")
    far = client.contexts.create(PROJECT, "Far", "Ships sail at dawn.")
    schema = client.schema_metadata.create(PROJECT, "S", {"relationship": {"of": "ships"}})
    example = client.golden_examples.create(PROJECT, "Which ships sail?", "SELECT name FROM customers")
    other = client.golden_examples.create(PROJECT, "What is one?", "SELECT 1", is_always_displayed=True)
    assert other.is_always_displayed
    session = client.chat_sessions.create(PROJECT)
    answer = client.chat.chat_with_context(
        PROJECT,
        session.id,
        USERS,
        context_id=far.id,
        schema_metadata_id=schema.id,
        example_id=example.id,
        system_prompt="Prefer short names.",
        connector_id=connector,
    )
    assert (answer.context_id, answer.schema_metadata_id, answer.example_id) == (far.id, schema.id, example.id)
    read = model.prompts[-1][-1].content.replace('\\"', '"')
    for text in ("Ships sail at dawn.", '"of": "ships"', "Which ships sail?", "Prefer short names.", "What is one?"):
        assert text in read, text
    with pytest.raises(sdk.NotFoundError):
        client.chat.chat_with_context(PROJECT, session.id, USERS, context_id="ctx-0")


@pytest.mark.slow
def test_an_example_that_went_with_its_connector_is_not_missed(client: Any, connector: str, crm: Path) -> None:
    client.golden_examples.create(PROJECT, USERS, USERS_SQL, is_always_displayed=True)
    client.connectors.delete(PROJECT, connector)
    again = add_connector(client, crm)["id"]
    assert client.golden_examples.list_always_displayed(PROJECT) == []
    assert answered(client, again, "List the customers").execution_result.result["row_count"] == 3


@pytest.mark.nightly
def test_golden_examples_are_kept_and_changed(client: Any, connector: str, crm: Path) -> None:
    first = client.golden_examples.create(PROJECT, USERS, USERS_SQL)
    changed = client.golden_examples.update(PROJECT, first.id, sql_query="SELECT 2 AS users", description="checked")
    assert (changed.id, changed.sql_query, changed.description) == (first.id, "SELECT 2 AS users", "checked")
    many = [{"user_query": f"What is {number}?", "sql_query": f"SELECT {number}"} for number in range(120)]
    client.golden_examples.bulk_create(PROJECT, many, parallel=False)
    assert len(client.golden_examples.list(PROJECT)) == 121
    assert len(client.golden_examples.list(PROJECT, limit=30)) == 30
    assert [each.id for each in client.golden_examples.list(PROJECT, search="active")] == [first.id]
    assert client.golden_examples.bulk_delete(PROJECT, [first.id, "x"]) == {"deleted_count": 1, "failed_ids": ["x"]}
    with pytest.raises(sdk.Text2EverythingError, match="only reading is allowed") as caught:
        client.golden_examples.create(PROJECT, "Delete it", "DELETE FROM users")
    assert caught.value.status_code == 403


@pytest.mark.slow
def test_of_several_connectors_a_golden_example_names_one(client: Any, connector: str, crm: Path) -> None:
    add_connector(client, crm, "second")
    with pytest.raises(sdk.ValidationError, match="2 connectors"):
        client.golden_examples.create(PROJECT, USERS, USERS_SQL)
    made = client.post(
        f"/projects/{PROJECT}/golden-examples",
        data={"user_query": USERS, "sql_query": USERS_SQL, "connector_id": connector},
    )
    assert made["connector_id"] == connector


@pytest.mark.slow
def test_connectors_are_shown_without_their_secrets(
    client: Any, connector: str, crm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = client.connectors.list(PROJECT)
    assert (shown.id, shown.name, shown.db_type, shown.database) == (connector, "crm", "sqlite", str(crm))
    assert (shown.host, shown.username, shown.password) == ("", "", None)
    assert client.connectors.get(PROJECT, connector) == shown
    assert client.connectors.test_connection(PROJECT, connector) is True
    assert client.connectors.update(PROJECT, connector, description="The customers").description == "The customers"
    assert client.connectors.get(PROJECT, connector).description == "The customers"
    with pytest.raises(sdk.ValidationError, match="belongs to its database"):
        client.connectors.update(PROJECT, connector, database="/elsewhere.db")
    assert client.connectors.delete(PROJECT, connector) is True
    assert client.connectors.list(PROJECT) == []
    with pytest.raises(sdk.NotFoundError):
        client.connectors.get(PROJECT, connector)


@pytest.mark.slow
def test_a_postgresql_connector_is_made_by_the_client_itself(
    client: Any, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_PASSWORD", "open-sesame")
    address = urlsplit(postgresql_url)
    values = {
        "db_type": "postgres",
        "host": address.hostname,
        "port": address.port,
        "username": "reader",
        "database": address.path.strip("/"),
    }
    with pytest.raises(sdk.ValidationError, match="HEEDFUL_SECRET_KEY"):
        client.connectors.create(PROJECT, "plain", password="open-sesame", **values)
    made = client.connectors.create(PROJECT, "crm", password_secret_id="CRM_PASSWORD", **values)
    assert (made.db_type, made.host, made.port) == ("postgres", address.hostname, address.port)
    assert (made.password, made.password_secret_name) == (None, "environment/secrets/CRM_PASSWORD")
    assert client.connectors.update(PROJECT, made.id, description="kept").description == "kept"
    assert client.executions.execute_query(PROJECT, made.id, "SELECT 1 AS one").result["data"] == [{"one": 1}]
    monkeypatch.setenv("HEEDFUL_SECRET_KEY", new_key())
    sealed = client.connectors.create(PROJECT, "sealed", password="open-sesame", **values)
    assert (sealed.password, sealed.username) == (None, "reader")
    assert "open-sesame" not in repr(client.get(f"/projects/{PROJECT}/connectors"))
    assert [each.name for each in client.connectors.list_by_type(PROJECT, "postgres")] == ["crm", "sealed"]
    strong = {**values, "username": "postgres"}
    with pytest.raises(sdk.Text2EverythingError, match="may do more than read"):
        client.connectors.create(PROJECT, "strong", password_secret_id="CRM_PASSWORD", **strong)
    accepted = {"config": {"privileged": True}, "password_secret_id": "CRM_PASSWORD"}
    assert client.connectors.create(PROJECT, "strong", **accepted, **strong).username == "postgres"
    with pytest.raises(sdk.ValidationError, match="no connector for"):
        client.connectors.create(PROJECT, "my", **{**values, "db_type": "snowflake"}, password="open-sesame")


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ({"db_type": "sqlite", "database": "/a/b.db"}, "sqlite:////a/b.db"),
        ({"db_type": "DuckDB", "database": "b.duckdb"}, "duckdb:///b.duckdb"),
        ({"db_type": "mysql", "port": 3306}, "mysql://me@host:3306/base"),
        ({"password": "p@s/s:w%"}, "postgresql://me:p%40s%2Fs%3Aw%25@host/base"),
        ({"password": "${WORD}", "port": 5433}, "postgresql://me:${WORD}@host:5433/base"),
        ({"password": "${not one"}, "postgresql://me:%24%7Bnot%20one@host/base"),
        ({"username": "a:b", "host": "::1"}, "postgresql://a%3Ab@[::1]/base"),
        ({"config": {"sslmode": "require", "role": "reader"}}, "postgresql://me@host/base?sslmode=require"),
    ],
)
def test_a_connector_is_a_url(value: dict[str, Any], url: str) -> None:
    usual = {"db_type": "postgres", "host": "host", "username": "me", "database": "base"}
    assert url_of({**usual, **value}) == url


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("db_type", "snowflake"),
        ("db_type", None),
        ("host", "evil@host/x"),
        ("host", ""),
        ("port", 70_000),
        ("port", "5432"),
        ("database", "a?sslmode=disable"),
        ("username", None),
        ("password", 7),
        ("password_secret_id", "a b"),
        ("config", ["sslmode"]),
    ],
)
def test_what_is_no_connector_is_refused_by_name(field: str, value: Any) -> None:
    usual = {"db_type": "postgres", "host": "host", "username": "me", "database": "base"}
    with pytest.raises(Invalid) as caught:
        url_of({**usual, field: value})
    assert caught.value.field == field


def test_of_a_url_that_cannot_be_read_nothing_is_shown() -> None:
    assert parts_of("(encrypted)") == {
        "host": "",
        "port": None,
        "username": "",
        "database": "",
        "password_secret_name": None,
    }


@pytest.mark.slow
def test_a_chat_session_lives_and_ends(client: Any, connector: str) -> None:
    session = client.chat_sessions.create(PROJECT, name="Data analysis")
    client.chat_sessions.create(PROJECT)
    for query in (USERS, "List the customers", USERS):
        client.chat.chat_to_sql(PROJECT, session.id, query, connector_id=connector)
    questions = client.chat_sessions.get_questions(PROJECT, session.id)
    assert [each.question for each in questions] == [USERS, "List the customers"]
    assert len(client.chat_sessions.get_questions(PROJECT, session.id, limit=1)) == 1
    assert client.chat_sessions.list(PROJECT, search="ANALYSIS") == [session]
    assert len(client.chat_sessions.list(PROJECT)) == 2
    assert len(client.chat_sessions.list(PROJECT, limit=1)) == 1
    assert client.chat_sessions.get_custom_tool(PROJECT, session.id) is None
    assert client.chat_sessions.delete(PROJECT, session.id) is True
    with pytest.raises(sdk.NotFoundError):
        client.chat.chat_to_sql(PROJECT, session.id, USERS)


def test_projects_are_made_listed_and_described(client: Any, server: Running, clock: ManualClock) -> None:
    assert client.projects.exists(PROJECT) is False
    made = client.projects.create(PROJECT, description="Customers")
    assert (made.id, made.name, made.description, made.created_at) == (PROJECT, PROJECT, "Customers", clock.now)
    assert client.projects.get(PROJECT) == made
    other = client.projects.create("Zweites Projekt")
    assert [each.id for each in client.projects.list()] == [PROJECT, other.id]
    assert client.projects.get_by_name(other.name) == client.projects.get(other.id) == other
    assert client.projects.update(PROJECT, description="New").description == "New"
    with pytest.raises(sdk.ValidationError, match="can't be renamed"):
        client.projects.update(PROJECT, name="else")
    with pytest.raises(sdk.ValidationError, match="can't be part of a URL"):
        client.projects.create("a/b")
    with pytest.raises(sdk.Text2EverythingError, match="already") as caught:
        client.projects.create(PROJECT)
    assert caught.value.status_code == 409


def test_a_project_is_not_older_than_its_last_change(tmp_path: Path) -> None:
    class Ticking(ManualClock):
        def __call__(self) -> datetime:
            self.advance(milliseconds=1)
            return super().__call__()

    with running(tmp_path / "other.db", clock=Ticking()) as server, connected(server, server.key) as client:
        made = client.projects.create(PROJECT, description="Customers")
        assert made.created_at <= made.updated_at
        assert made.created_at < client.projects.update(PROJECT, description="New").updated_at


@pytest.mark.slow
def test_numbers_are_numbers_to_a_client_that_knows_no_kinds(client: Any, postgresql_url: str) -> None:
    with psycopg.connect(postgresql_url) as connection:
        connection.execute("CREATE TABLE price (amount numeric(9, 2))")
        connection.execute("INSERT INTO price VALUES (10.50), (NULL), (0.25)")
        connection.execute("GRANT SELECT ON price TO guest")
    client.projects.create(PROJECT)
    address = urlsplit(postgresql_url)
    connector = client.post(
        f"/projects/{PROJECT}/connectors",
        data={
            "name": "shop",
            "db_type": "postgres",
            "host": address.hostname,
            "port": address.port,
            "username": "guest",
            "database": address.path.strip("/"),
        },
    )["id"]
    sql = "SELECT amount, ARRAY[amount] AS list, DATE '2024-02-29' AS day, 2::numeric ^ 70 AS huge FROM price"
    rows = client.executions.execute_query(PROJECT, connector, sql).result["data"]
    assert [row["amount"] for row in rows] == [10.5, None, 0.25]
    assert (rows[0]["list"], rows[0]["day"]) == ([10.5], "2024-02-29")
    # A float can't hold it to the last digit.
    assert rows[0]["huge"] == "1180591620717411303424"


def test_a_key_of_one_project_sees_that_project_alone(server: Running, client: Any, connector: str) -> None:
    client.projects.create("another")
    keys = Heedful(server.state.store.project(PROJECT)).keys
    with connected(server, keys.create("all of one", scopes=["admin"]).api_key) as own:
        assert [each.id for each in own.projects.list()] == [PROJECT]
        assert own.connectors.get(PROJECT, connector).name == "crm"
        asks: list[Callable[[], Any]] = [
            lambda: own.projects.get("another"),
            lambda: own.projects.create("third"),
            lambda: own.projects.update("another", description="mine"),
            lambda: own.feedback.list("another"),
            lambda: own.contexts.create("another", "n", "c"),
        ]
        for ask in asks:
            with pytest.raises(sdk.NotFoundError):
                ask()
    assert [each.id for each in client.projects.list()] == ["another", PROJECT]


@pytest.mark.slow
def test_a_key_does_what_its_scopes_allow(server: Running, client: Any, connector: str, crm: Path) -> None:
    keys = Heedful(server.state.store.project(PROJECT)).keys
    ran = client.executions.execute_query(PROJECT, connector, ACTIVE)
    with connected(server, keys.create("reader", scopes=["read"]).api_key) as reader:
        assert [each.id for each in reader.connectors.list(PROJECT)] == [connector]
        assert reader.executions.get(PROJECT, ran.execution_id).sql_query == ACTIVE
        asks: list[Callable[[], Any]] = [
            lambda: rate(reader, ran),
            lambda: reader.executions.execute_query(PROJECT, connector, ACTIVE),
            lambda: reader.chat_sessions.create(PROJECT),
            lambda: reader.chat.execution_cache_lookup(PROJECT, USERS, connector),
            lambda: reader.contexts.create(PROJECT, "n", "c"),
        ]
        for ask in asks:
            with pytest.raises(sdk.Text2EverythingError, match="no scope") as caught:
                ask()
            assert caught.value.status_code == 403
    with connected(server, keys.create("rater", scopes=["feedback"]).api_key) as rater:
        assert rate(rater, ran).is_positive
    with connected(server, keys.create("writer", scopes=["read", "write"]).api_key) as writer:
        assert writer.executions.execute_query(PROJECT, connector, ACTIVE).result["row_count"] == 2
        with pytest.raises(sdk.Text2EverythingError, match="no scope 'admin'"):
            add_connector(writer, crm, "second")
        with pytest.raises(sdk.Text2EverythingError, match="no scope 'admin'"):
            writer.connectors.delete(PROJECT, connector)


@pytest.mark.slow
def test_errors_are_the_clients_own(client: Any, connector: str) -> None:
    with pytest.raises(sdk.NotFoundError) as caught:
        client.feedback.get(PROJECT, "feedback-abc")
    assert (
        caught.value.response_data["detail"]
        == caught.value.message
        == "no feedback 'feedback-abc' in project 'proj-123'"
    )
    with pytest.raises(sdk.NotFoundError, match="msg-456"):
        client.feedback.create_positive(PROJECT, "msg-456", "?")
    with pytest.raises(sdk.NotFoundError, match="no execution 'exec-789'"):
        client.feedback.create_positive(PROJECT, "msg-456", "?", "exec-789")
    with pytest.raises(sdk.NotFoundError, match="conn-456"):
        client.executions.execute_query(PROJECT, "conn-456", ACTIVE)
    with pytest.raises(sdk.ValidationError, match="similarity_threshold"):
        client.chat.execution_cache_lookup(PROJECT, USERS, connector, similarity_threshold=7)
    with pytest.raises(sdk.ValidationError, match="limit must be a whole number from 1"):
        client.feedback.list(PROJECT, limit=0)
    feedback = rate(client, client.executions.execute_query(PROJECT, connector, ACTIVE))
    with pytest.raises(sdk.ValidationError, match="can't be moved"):
        client.feedback.update(PROJECT, feedback.id, execution_id="exec-0")
    with pytest.raises(sdk.Text2EverythingError, match="only reading is allowed") as refusal:
        client.executions.execute_query(PROJECT, connector, "DROP TABLE users")
    assert refusal.value.status_code == 403
    client.access_token = "hf_another"
    with pytest.raises(sdk.AuthenticationError):
        client.projects.list()


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.custom_tools.list(PROJECT),
        lambda client: client.custom_tools.get(PROJECT, "tool-1"),
        lambda client: client.chat_presets.list(PROJECT),
        lambda client: client.chat_presets.activate(PROJECT, "preset-1"),
        lambda client: client.chat_presets.list_prompt_templates(PROJECT),
        lambda client: client.chat_presets.get_preset_options(PROJECT),
        lambda client: client.chat_sessions.create_from_active_preset(PROJECT),
        lambda client: client.chat_sessions.create_from_preset(PROJECT, "preset-1"),
        lambda client: client.chat_sessions.create(PROJECT, custom_tool_id="tool-1"),
        lambda client: client.chat_sessions.update_custom_tool(PROJECT, "session-1", "tool-1"),
        lambda client: client.chat.chat_with_agent(PROJECT, "session-1", USERS, "crm"),
        lambda client: client.chat.chat_to_answer(PROJECT, "s", USERS, "crm", custom_tool_id="tool-1"),
        lambda client: client.chat.chat_to_answer(PROJECT, "s", USERS, "crm", auto_add_feedback={"positive": True}),
        lambda client: client.projects.list_collections(PROJECT),
        lambda client: client.projects.get_collection_by_type(PROJECT, "contexts"),
        lambda client: client.projects.delete(PROJECT),
        lambda client: client.schema_metadata.get_split_group(PROJECT, "group-1"),
    ],
)
@pytest.mark.nightly
def test_what_heedful_does_not_have_says_so(client: Any, ask: Callable[[Any], Any]) -> None:
    with pytest.raises(sdk.NotFoundError, match="not part of Heedful") as caught:
        ask(client)
    assert caught.value.response_data["code"] == "not_part_of_heedful"


def test_only_those_who_may_can_change_things() -> None:
    scopes = {(route.method, route.path.removeprefix("/projects")): route.scope for route in ROUTES}
    for route in ROUTES:
        assert scopes[route.method, route.path.removeprefix("/api").removeprefix("/projects")] == route.scope
    project = "/{project_id}"
    assert (
        scopes["POST", f"{project}/connectors"] == scopes["DELETE", f"{project}/connectors/{{connector_id}}"] == "admin"
    )
    assert scopes["POST", f"{project}/sql/execute"] == scopes["POST", f"{project}/execution-cache-lookup"] == "write"
    assert scopes["POST", f"{project}/feedback"] == scopes["POST", f"{project}/feedback/bulk-delete"] == "feedback"
    assert {scope for (method, _), scope in scopes.items() if method == "GET"} == {"read"}
    assert len(scopes) == len(ROUTES)
    assert all(route.project == "project_id" for route in ROUTES if not route.path.endswith("/projects"))


@pytest.mark.parametrize(
    ("query", "start", "count", "ends"),
    [
        ({}, 0, 100, False),
        ({"skip": "5", "limit": "20"}, 5, 20, False),
        ({"limit": "100", "page": "3", "per_page": "50"}, 100, 50, False),
        ({"limit": "70", "page": "1"}, 0, 50, False),
        ({"limit": "70", "page": "2", "skip": "10"}, 60, 20, True),
        ({"limit": "70", "page": "3"}, 100, 0, True),
    ],
)
def test_a_page_is_a_part_of_what_is_asked_for(query: dict[str, str], start: int, count: int, ends: bool) -> None:
    part = window(ForeignRequest({}, query, {}, None, None, None), 100)  # type: ignore[arg-type]
    assert (part.start, part.count, part.ends) == (start, count, ends)


@pytest.mark.parametrize("query", [{"page": "x"}, {"skip": "-1"}, {"limit": "0"}, {"per_page": "0", "page": "1"}])
def test_a_page_that_cannot_be_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Invalid) as caught:
        window(ForeignRequest({}, query, {}, None, None, None), 100)  # type: ignore[arg-type]
    assert caught.value.field == next(iter(query))


def test_the_paths_of_the_document_lead_there_too(server: Running) -> None:
    headers = {"Authorization": f"Bearer {server.key}"}
    for prefix in ("", "/api"):
        answer = httpx.get(f"{server.url}{prefix}/projects/proj-1/feedback", headers=headers)
        assert (answer.status_code, answer.json()) == (
            200,
            httpx.get(f"{server.url}/api/projects/proj-1/feedback", headers=headers).json(),
        )
        assert httpx.get(f"{server.url}{prefix}/projects/proj-1/feedback").status_code == 401
