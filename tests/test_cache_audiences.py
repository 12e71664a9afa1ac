"""Who gets whose results: audiences, and the owners of SQL without one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from server import running
from sqlalchemy import Connection

import heedful
from heedful import Heedful
from heedful.errors import Conflict, Invalid, Unavailable
from heedful.ledger import proven_sql as stored_proofs
from heedful.model import CacheLookup, CacheMatch
from heedful.sql.reuse import proofs
from heedful.storage.rows import AnyRow
from heedful.testing import ScriptedModel

ORDERS = "What are the orders?"
ANNS = "SELECT id, total FROM orders WHERE customer = 'ann' ORDER BY id"
BOS = "SELECT id, total FROM orders WHERE customer = 'bo' ORDER BY id"
ALL = "SELECT id, total FROM orders ORDER BY id"
OWED = "How much is owed by this customer?"
OWED_BY_ANN = "SELECT sum(total) AS owed FROM orders WHERE customer = 'ann'"
SHOP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL, status TEXT, deleted INTEGER);
INSERT INTO orders VALUES (1, 'ann', 10, 'open', 0), (2, 'bo', 20, 'open', 0), (3, 'cy', 30, 'shut', 0);
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    file = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(SHOP)
    connection.close()
    return f"sqlite:///{file}"


@pytest.fixture
def shop(open_store: Callable[..., Heedful], url: str) -> Heedful:
    store = open_store()
    store.connectors.create("shop", url)
    return store


@pytest.fixture
def either(open_either: Callable[..., Heedful], url: str) -> Heedful:
    """A store with its sessions in it, or in MongoDB."""
    store = open_either()
    store.connectors.create("shop", url)
    return store


def prove(store: Any, question: str, sql: str, *authors: str | None, audience: str | None = None) -> str:
    """Has a question proven by these authors, or by the program."""
    done = store.executions.execute_query(sql, question=question, audience=audience)
    for author in authors or (None,):
        store.feedback.create_positive(execution_id=done.execution_id, author=author)
    return str(done.execution_id)


def look(store: Any, question: str, **asker: Any) -> Any:
    return store.chat.execution_cache_lookup(question, **asker)


def served(store: Any, question: str, **asker: Any) -> str | None:
    """The SQL that a lookup ran, if it did."""
    found = look(store, question, **asker)
    return found.matches[0].execution["sql_query"] if found.cache_hit else None


def refusal(store: Any, question: str, **asker: Any) -> CacheMatch:
    found: CacheLookup = look(store, question, **asker)
    assert not found.cache_hit
    return found.matches[0]


def test_what_is_proven_for_an_audience_does_not_exist_for_others(shop: Heedful) -> None:
    prove(shop, ORDERS, ANNS, audience="acme")
    assert served(shop, ORDERS, audience="acme") == ANNS
    for other in (None, "Acme", "ACME", "acme2", "ａcme", "acme/", "%", "acm_"):
        found = look(shop, ORDERS, audience=other)
        assert (found.cache_hit, found.matches, found.candidates_checked, found.suggestion) == (False, [], 0, None)


def test_each_audience_has_its_own_answer_and_neither_disputes_the_other(shop: Heedful) -> None:
    prove(shop, ORDERS, ANNS, "ann", audience="acme")
    prove(shop, ORDERS, BOS, "bo", audience="bolt")
    prove(shop, ORDERS, ALL, "cy")
    assert served(shop, ORDERS, audience="acme") == ANNS
    assert served(shop, ORDERS, audience="bolt") == BOS
    assert served(shop, ORDERS) == ALL


def test_what_is_proven_for_everybody_answers_where_the_audience_has_nothing(shop: Heedful) -> None:
    prove(shop, ORDERS, ALL)
    prove(shop, "How many customers are there?", "SELECT count(DISTINCT customer) AS n FROM orders", audience="acme")
    found = look(shop, ORDERS, audience="acme")
    assert (found.cache_hit, found.matches[0].execution["audience"]) == (True, "acme")
    assert found.matches[0].execution["sql_query"] == ALL


def test_what_an_audience_is_served_belongs_to_it(shop: Heedful) -> None:
    prove(shop, ORDERS, ALL)
    hit = look(shop, ORDERS, audience="acme").matches[0].execution["execution_id"]
    shop.feedback.create_negative(execution_id=hit, feedback="ann's secret", author="ann")
    assert refusal(shop, ORDERS, audience="acme").gate == "feedback"
    found = look(shop, ORDERS)
    assert (found.cache_hit, found.matches[0].feedback_comment) == (True, None)
    assert served(shop, ORDERS, audience="bolt") == ALL


def test_sql_that_is_wrong_for_everybody_is_wrong_for_each_audience(shop: Heedful) -> None:
    prove(shop, ORDERS, ALL, audience="acme")
    assert served(shop, ORDERS, audience="acme") == ALL
    done = shop.executions.execute_query(ALL, question=ORDERS).execution_id
    wrong = shop.feedback.create_negative(execution_id=done)
    assert refusal(shop, ORDERS, audience="acme").gate == "feedback"
    shop.feedback.delete(wrong.id)
    assert served(shop, ORDERS, audience="acme") == ALL


def test_sql_that_was_wrong_for_an_audience_stays_blocked_for_it_alone_when_deleted(shop: Heedful) -> None:
    prove(shop, ORDERS, ALL)
    done = shop.executions.execute_query(ALL, question=ORDERS, audience="acme").execution_id
    shop.feedback.create_negative(execution_id=done)
    shop.executions.delete(done)
    assert refusal(shop, ORDERS, audience="acme").gate == "feedback"
    assert served(shop, ORDERS) == served(shop, ORDERS, audience="bolt") == ALL


def test_the_words_of_one_audience_teach_no_other(shop: Heedful) -> None:
    for status in ("open", "shut"):
        for verb in ("has", "lists"):
            sql = f"SELECT count(*) AS n FROM orders WHERE status = '{status}'"
            prove(shop, f"Number of orders that the shop {verb} as {status}", sql, "ann", audience="acme")
    prove(shop, "Total of orders that the shop has as open", "SELECT sum(total) AS n FROM orders WHERE status = 'open'")
    assert served(shop, "Total of orders that the shop lists as open") is None
    assert served(shop, "Number of orders that the shop has as open") is None


@pytest.mark.parametrize("crowd", [None, "bolt"])
@pytest.mark.slow
def test_others_do_not_crowd_out_what_an_audience_has(shop: Heedful, crowd: str | None) -> None:
    prove(shop, ORDERS, ANNS, audience="acme")
    for number in range(200):
        sql = f"SELECT id, total FROM orders WHERE id = {number}"
        shop.executions.execute_query(sql, question=f"What are the orders? ({number})", audience=crowd)
    found = look(shop, "What are the orders", audience="acme", limit=5)
    assert found.cache_hit
    assert found.matches[0].execution["sql_query"] == ANNS


@pytest.mark.slow
def test_many_audiences_are_read_when_they_ask_and_no_other_is_read_again(
    shop: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "MAX_AUDIENCES", 5)
    ids = {name: prove(shop, ORDERS, ANNS, audience=name) for name in map(str, range(12))}
    for name in ids:
        assert served(shop, ORDERS, audience=name) == ANNS
    (kept,) = shop._project.executions.proofs._kept.values()
    assert len(kept.audiences) == 5
    read: list[str] = []
    questions = stored_proofs.questions

    def counted(connection: Connection, names: Sequence[str]) -> list[AnyRow]:
        read.extend(names)
        return questions(connection, names)

    monkeypatch.setattr(stored_proofs, "questions", counted)
    shop.feedback.create_negative(execution_id=ids["11"])
    assert refusal(shop, ORDERS, audience="11").gate == "feedback"
    assert served(shop, ORDERS, audience="10") == ANNS
    assert read == []
    assert served(shop, ORDERS, audience="0") == ANNS
    assert read == [ids["0"]]


def test_a_chat_session_has_an_audience_and_what_runs_in_it_has_the_same(either: Heedful) -> None:
    prove(either, ORDERS, ANNS, audience="acme")
    chat = either.chat_sessions.create(name="orders", audience="acme")
    assert (chat.audience, either.chat_sessions.get(chat.id).audience) == ("acme", "acme")
    assert [each.audience for each in either.chat_sessions.list().items] == ["acme"]
    answer = either.chat.chat_to_answer(chat.id, ORDERS)
    assert answer.execution_result is not None
    assert (answer.sql_query, answer.execution_result.audience) == (ANNS, "acme")
    message = either.chat.chat_to_sql(chat.id, ORDERS).chat_message_id
    assert either.executions.execute_from_chat(message).audience == "acme"
    assert either.executions.execute_query(ANNS, chat_message_id=message).audience == "acme"
    for other in (None, "bolt"):
        with pytest.raises(Unavailable, match="Nothing like it was proven"):
            either.chat.chat_to_answer(either.chat_sessions.create(audience=other).id, ORDERS)


def test_a_language_model_reads_nothing_of_another_audience(open_store: Callable[..., Heedful], url: str) -> None:
    model = ScriptedModel(lambda messages: f"```sql\n{ALL}\n```")
    store = open_store(language_model=model)
    store.connectors.create("shop", url)
    prove(store, "Which orders are there?", ANNS, audience="acme")
    wrong = store.executions.execute_query(BOS, question="Which orders are there now?", audience="acme").execution_id
    store.feedback.create_negative(execution_id=wrong, feedback="that is our rival")
    store.golden_examples.create("List the orders", "SELECT 'secret'", audience="acme")
    prove(store, "Which orders exist?", OWED_BY_ANN, "ann")

    def prompt(audience: str | None) -> str:
        store.chat.chat_to_sql(
            store.chat_sessions.create(audience=audience).id, "Which orders are there, List the details"
        )
        return "\n".join(message.content for message in model.prompts[-1])

    for other in (None, "bolt"):
        for secret in ("'ann'", "'bo'", "rival", "secret"):
            assert secret not in prompt(other)
    for own in (ANNS, BOS, "rival", "secret"):
        assert own in prompt("acme")
    assert OWED_BY_ANN not in prompt("acme")


def test_golden_examples_are_for_everybody_or_for_an_audience(shop: Heedful) -> None:
    shop.golden_examples.create(ORDERS, ALL)
    own = shop.golden_examples.create(ORDERS, ANNS, audience="acme")
    assert own.audience == "acme"
    with pytest.raises(Conflict, match="already has a golden example"):
        shop.golden_examples.create("what are the orders", BOS, audience="acme")

    def answer(audience: str | None) -> str:
        return shop.chat.chat_to_sql(shop.chat_sessions.create(audience=audience).id, ORDERS).sql_query

    assert [answer(each) for each in (None, "acme", "bolt")] == [ALL, ANNS, ALL]
    assert shop.golden_examples.update(own.id, audience="bolt").audience == "bolt"
    assert [answer(each) for each in (None, "acme", "bolt")] == [ALL, ALL, ANNS]
    with pytest.raises(Conflict, match="already has a golden example"):
        shop.golden_examples.update(own.id, audience=None)
    shop.golden_examples.import_examples([{"question": ORDERS, "sql_query": BOS, "audience": "cyan"}])
    assert [answer(each) for each in (None, "bolt", "cyan")] == [ALL, ANNS, BOS]


@pytest.mark.slow
def test_a_promoted_execution_keeps_its_audience(shop: Heedful) -> None:
    own = prove(shop, "What are my orders?", ANNS, "ann", audience="ann")
    assert shop.golden_examples.promote(own).audience == "ann"
    with pytest.raises(Conflict, match="is for the audience 'ann'"):
        shop.golden_examples.promote(own, audience="bo")
    personal = prove(shop, "What are my orders?", BOS, "bo")
    with pytest.raises(Invalid, match="in the first person") as refused:
        shop.golden_examples.promote(personal)
    assert (refused.value.code, refused.value.field) == ("personal_example", "audience")
    assert "audience='…'" in str(refused.value.remedy)
    assert shop.golden_examples.promote(personal, audience="bo").audience == "bo"
    assert shop.golden_examples.promote(personal, question="What are the orders of Bo?").audience is None


def test_a_first_person_question_is_answered_within_its_audience(shop: Heedful) -> None:
    prove(shop, "What are my orders?", ANNS, audience="ann")
    assert served(shop, "what are my orders", audience="ann") == ANNS
    assert served(shop, "What are my orders?", audience="bo") is None


@pytest.mark.parametrize("audience", ["", " ", " ann", "ann ", "ann\n", "\u200bann", "a\0b", "x" * 201, 7])
def test_an_audience_is_a_name(shop: Heedful, audience: Any) -> None:
    for call in (
        lambda: look(shop, ORDERS, audience=audience),
        lambda: shop.chat_sessions.create(audience=audience),
        lambda: shop.executions.execute_query(ALL, audience=audience),
        lambda: shop.golden_examples.create(ORDERS, ALL, audience=audience),
    ):
        with pytest.raises(Invalid) as refused:
            call()
        assert refused.value.field == "audience"


def test_an_external_id_of_another_audience_gives_nothing_away(shop: Heedful) -> None:
    shop.executions.execute_query(ALL, external_id="run-1", audience="acme")
    with pytest.raises(Conflict, match="was used for another execution"):
        shop.executions.execute_query(ALL, external_id="run-1", audience="bolt")


def test_a_first_person_question_is_for_the_author_who_proved_it(shop: Heedful) -> None:
    prove(shop, "What are my orders?", ANNS, "ann")
    assert served(shop, "What are my orders?", author="ann") == ANNS
    for other in (None, "bo", "Ann", "visitor-ann"):
        assert refusal(shop, "What are my orders?", author=other).gate == "asker"
    chat = shop.chat_sessions.create().id
    assert shop.chat.chat_to_sql(chat, "What are my orders?", author="ann").sql_query == ANNS


def test_the_program_and_visitors_prove_nothing_about_a_person(shop: Heedful) -> None:
    done = prove(shop, "What are my orders?", ANNS)
    shop.feedback.create_positive(execution_id=done, author="visitor-1")
    for asker in (None, "visitor-1"):
        assert refusal(shop, "What are my orders?", author=asker).gate == "asker"


def test_who_rates_the_chat_of_somebody_else_does_not_own_it(either: Heedful) -> None:
    anns = either.chat_sessions.create().id
    example = either.golden_examples.create("What are my orders?", ANNS)
    message = either.chat.chat_to_sql(anns, "What are my orders?").chat_message_id
    either.golden_examples.delete(example.id)
    done = either.executions.execute_from_chat(message).execution_id
    either.feedback.create_positive(execution_id=done, author="bo")
    assert refusal(either, "What are my orders?", author="bo").gate == "asker"
    assert either.chat.chat_to_sql(anns, "What are my orders?").sql_query == ANNS


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        (OWED, OWED_BY_ANN),
        ("What did he order?", ANNS),
        ("Orders of the current user", 'SELECT id FROM orders WHERE customer = "ann"'),
        ("Orders of whoever is logged in", "SELECT id FROM orders WHERE customer LIKE 'an%'"),
        ("The order at hand", "SELECT total FROM orders WHERE id = 1"),
        ("The orders at hand", "SELECT total FROM orders WHERE id IN (1, 3)"),
        ("Orders around here", "SELECT total FROM orders WHERE id BETWEEN 1 AND 2"),
        ("Orders in this account", "WITH own AS (SELECT 'ann' AS c) SELECT id FROM orders JOIN own ON customer = c"),
        ("Orders of the account", "SELECT id FROM orders WHERE instr(customer, 'ann') > 0"),
        ("Orders of the user", "SELECT id FROM orders WHERE customer = x'616e6e'"),
    ],
)
def test_sql_with_a_value_that_is_not_named_stays_with_its_author(shop: Heedful, question: str, sql: str) -> None:
    done = prove(shop, question, sql, "ann")
    assert served(shop, question, author="ann") == sql
    for other in (None, "bo"):
        match = refusal(shop, question, author=other)
        assert (match.gate, "a value that the question doesn't name" in match.reason) == ("asker", True)
    shop.feedback.create_positive(execution_id=done, author="bo")
    assert served(shop, question, author="cy") == sql


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        ("What are the orders of Ann?", ANNS),
        ("How many orders are there?", "SELECT count(*) AS n FROM orders WHERE deleted = 0"),
        ("The two largest orders", "SELECT id FROM orders ORDER BY total DESC LIMIT 2"),
        ("Average total", "SELECT round(avg(total) * 1.0, 2) AS average FROM orders"),
        ("Which customers have orders?", "SELECT customer FROM orders GROUP BY customer HAVING count(*) > 0"),
        ("How big is each order?", "SELECT id, CASE WHEN total THEN 'big' ELSE 'small' END AS size FROM orders"),
    ],
)
def test_sql_without_such_a_value_is_for_everybody(shop: Heedful, question: str, sql: str) -> None:
    prove(shop, question, sql, "ann")
    assert served(shop, question, author="bo") == sql
    assert served(shop, question) == sql


def test_what_the_program_proves_is_the_programs(shop: Heedful) -> None:
    prove(shop, OWED, OWED_BY_ANN)
    assert served(shop, OWED) == OWED_BY_ANN
    assert refusal(shop, OWED, author="bo").gate == "asker"


def test_a_condition_that_several_authors_have_in_other_questions_is_a_default(shop: Heedful) -> None:
    total = "SELECT sum(total) AS total FROM orders WHERE status = 'open'"
    prove(shop, "What is the total?", total, "ann")
    prove(shop, "How many customers are there?", "SELECT count(*) AS n FROM orders WHERE status = 'open'", "ann")
    assert served(shop, "What is the total?", author="cy") is None
    other = prove(shop, "What is the mean?", "SELECT avg(total) AS mean FROM orders WHERE status = 'open'", "bo")
    assert served(shop, "What is the total?", author="cy") == total
    shop.executions.delete(other)
    assert served(shop, "What is the total?", author="cy") is None


@pytest.mark.slow
def test_a_persons_own_value_is_no_default_however_often_they_use_it(either: Heedful) -> None:
    for number, what in enumerate(("id", "total", "status", "deleted", "customer")):
        prove(either, f"Give the {what} in question", f"SELECT {what} FROM orders WHERE customer = 'ann'", "ann")
        chat = either.chat_sessions.create(name=str(number)).id
        example = either.golden_examples.create(OWED, OWED_BY_ANN)
        message = either.chat.chat_to_sql(chat, OWED).chat_message_id
        either.golden_examples.delete(example.id)
        done = either.executions.execute_from_chat(message).execution_id
        either.feedback.create_positive(execution_id=done, author="ann")
    for other in (None, "bo"):
        assert refusal(either, OWED, author=other).gate == "asker"
        assert refusal(either, "Give the total in question", author=other).gate == "asker"
    with pytest.raises(Unavailable, match="a value that the question doesn't name"):
        either.chat.chat_to_answer(either.chat_sessions.create().id, OWED)


def test_a_lookup_in_the_first_person_reads_no_messages(either: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = either.chat_sessions.create().id
    prove(either, "What are my orders?", ANNS, "ann")
    monkeypatch.setattr(type(either._project.sessions.store), "messages", None, raising=False)
    with pytest.raises(Unavailable, match="first person"):
        either.chat.chat_to_sql(chat, "What are my orders?")


@pytest.mark.parametrize("reuse", ["sql", "result"])
@pytest.mark.slow
def test_over_http_another_person_gets_nothing(tmp_path: Path, url: str, reuse: str) -> None:
    with running(tmp_path / "store.db") as server, server.connect(project="mine") as program:
        program.connectors.create("shop", url)
        for question in ("What are my orders?", "How much did I spend?", "The orders of our company", OWED):
            done = program.executions.execute_query(ANNS, question=question).execution_id
            token = program.keys.create_token([{"execution_id": done}], author="ann").token
            with heedful.connect(server.url, api_key=token, project="mine") as ann:
                ann.feedback.create_positive(execution_id=done)
            assert not look(program, question, reuse=reuse, only_positive_feedback=True).cache_hit
            assert not look(program, question, reuse=reuse, author="bo").cache_hit
            with pytest.raises(Unavailable, match="is only reused for the author"):
                program.chat.chat_to_answer(program.chat_sessions.create(name="bo").id, question)


@pytest.mark.slow
def test_a_visitor_over_http_proves_nothing(tmp_path: Path, url: str) -> None:
    question = "How many orders are there?"
    with running(tmp_path / "store.db") as server, server.connect(project="mine") as program:
        program.connectors.create("shop", url)
        done = program.executions.execute_query("SELECT 0 AS n", question=question).execution_id
        whom: list[tuple[dict[str, Any], bool]] = [({"subject": "x"}, False), ({"author": "mallory"}, True)]
        for who, hits in whom:
            token = program.keys.create_token([{"execution_id": done}], **who).token
            with heedful.connect(server.url, api_key=token, project="mine") as person:
                person.feedback.create_positive(execution_id=done)
            assert look(program, question, only_positive_feedback=True).cache_hit is hits


@pytest.mark.slow
def test_an_audience_over_rest_and_the_routes_of_the_other_system(tmp_path: Path, url: str) -> None:
    with running(tmp_path / "store.db") as server, server.connect(project="shop") as program:
        connector = program.connectors.create("shop", url).connector_id
        prove(program, ORDERS, ANNS, audience="acme")
        key = program.keys.create("reader", scopes=["read"]).api_key
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}) as reader:
            body = {"user_query": ORDERS, "audience": "acme"}
            assert reader.post("/v1/projects/shop/execution-cache-lookup", json=body).status_code == 403
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}) as client:
            foreign = "/api/projects/shop/execution-cache-lookup"
            for audience, hits in (("acme", True), ("Acme", False), (None, False)):
                named = {} if audience is None else {"audience": audience}
                body = {"user_query": ORDERS, **named}
                found = client.post("/v1/projects/shop/execution-cache-lookup", json=body).json()
                assert (found["cache_hit"], found["candidates_checked"]) == (hits, int(hits))
                found = client.post(foreign, json={**body, "connector_id": connector}).json()
                assert (found["cache_hit"], found["candidates_checked"] > 0) == (hits, hits)
            chat = client.post("/api/projects/shop/chat-sessions", json={"audience": "acme"}).json()
            asked = {"query": ORDERS, "connector_id": connector}
            answer = client.post(f"/api/projects/shop/chat-sessions/{chat['id']}/chat-to-answer", json=asked).json()
            assert answer["sql_query"] == ANNS
            refused = client.post("/v1/projects/shop/chat-sessions", json={"audience": " x"})
            assert (refused.status_code, refused.json()["field"]) == (422, "audience")


@pytest.mark.slow
def test_the_author_of_a_lookup_on_the_other_systems_routes_is_in_a_header(tmp_path: Path, url: str) -> None:
    with running(tmp_path / "store.db") as server, server.connect(project="shop") as program:
        connector = program.connectors.create("shop", url).connector_id
        prove(program, "What are my orders?", ANNS, "ann")
        body = {"user_query": "What are my orders?", "connector_id": connector}
        for author, hits in (("ann", True), ("bo", False), ("", False)):
            headers = {"Authorization": f"Bearer {server.key}", "X-Heedful-Author": author}
            found = httpx.post(f"{server.url}/api/projects/shop/execution-cache-lookup", json=body, headers=headers)
            assert found.json()["cache_hit"] is hits


@pytest.mark.slow
def test_erasing_a_person_erases_their_audience(either: Heedful) -> None:
    done = prove(either, ORDERS, ANNS, "ann", audience="ann")
    wrong = either.executions.execute_query("SELECT 7", question="Whose?", audience="ann").execution_id
    either.feedback.create_negative(execution_id=wrong, author="bo")
    either.executions.delete(wrong)
    either.golden_examples.create(ORDERS, ANNS, audience="ann")
    chat = either.chat_sessions.create(audience="ann").id
    either.chat.chat_to_answer(chat, ORDERS)
    assert served(either, ORDERS, audience="ann") == ANNS
    report = either.forget(author="ann").erased
    assert report is not None
    assert (report.sessions, report.executions >= 2) == (1, True)
    execution = either.executions.get(done)
    assert (execution.question, execution.audience) == (None, report.author)
    assert either.chat_sessions.get(chat).audience == report.author
    assert either.golden_examples.list() == []
    assert look(either, ORDERS, audience="ann").matches == []
    with either._workspace.read() as connection:
        assert "ann" not in {str(each.audience) for each in stored_proofs.retained_complaints(connection, 1, "shop")}
