"""Questions in the first person: what one person proved about themselves is not served to another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cities import Cities, make_cities
from server import running

import heedful
from heedful import Heedful
from heedful.errors import Conflict, Unavailable
from heedful.testing import ScriptedModel

MY_STREETS = "What are my streets?"
ROMAN = "SELECT name FROM street WHERE city_id = 1 ORDER BY id"
OF_OSLO = "SELECT name FROM street WHERE city_id = 2 ORDER BY id"
REASON = (
    "A question in the first person is only reused for the author who proved it, or in the chat session where it was "
    "proven."
)


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def geo(open_either: Callable[..., Heedful], cities: Cities) -> Heedful:
    store = open_either()
    store.connectors.create("geo", cities.url)
    return store


def prove(store: Any, question: str, sql: str, author: str | None = None, chat: str | None = None) -> str:
    """Has a question proven, as it is asked in a chat session if there is one; the id of the execution."""
    message = None
    if chat is not None:
        example = store.golden_examples.create(question, sql)
        message = store.chat.chat_to_sql(chat, question).chat_message_id
        store.golden_examples.delete(example.id)
    done = store.executions.execute_query(sql, question=question, chat_message_id=message)
    store.feedback.create_positive(execution_id=done.execution_id, author=author)
    return str(done.execution_id)


def new_chat(store: Any) -> str:
    return str(store.chat_sessions.create().id)


def test_what_was_proven_in_a_chat_session_is_served_there_alone(geo: Heedful) -> None:
    ann, bo = new_chat(geo), new_chat(geo)
    proven = prove(geo, MY_STREETS, ROMAN, "ann", ann)
    answer = geo.chat.chat_to_answer(ann, "what are my streets")
    assert (answer.origin, answer.derived_from, answer.answer) == ("served", proven, "2 rows: Via Appia, Via Veneto")
    with pytest.raises(Unavailable, match=REASON) as refused:
        geo.chat.chat_to_answer(bo, MY_STREETS)
    assert refused.value.code == "nothing_proven"
    with pytest.raises(Unavailable, match=REASON):
        geo.chat.chat_to_sql(bo, MY_STREETS)


@pytest.mark.parametrize("reuse", ["sql", "result"])
@pytest.mark.parametrize("author", [None, "ann"])
def test_a_lookup_knows_nobody_so_it_is_refused(geo: Heedful, author: str | None, reuse: Any) -> None:
    prove(geo, MY_STREETS, ROMAN, author)
    found = geo.chat.execution_cache_lookup(MY_STREETS, reuse=reuse)
    (match,) = found.matches
    assert (found.cache_hit, match.decision, match.gate, match.reason) == (False, "refuse", "asker", REASON)
    assert match.execution["result"] is None
    assert found.suggestion is None
    with pytest.raises(Conflict):
        geo.chat.confirm_suggestion(MY_STREETS, match.execution["execution_id"], author="bo")


def test_each_asker_has_an_answer_of_their_own(geo: Heedful) -> None:
    ann, bo = new_chat(geo), new_chat(geo)
    for chat, sql, author in ((ann, ROMAN, "ann"), (bo, OF_OSLO, "bo")):
        prove(geo, MY_STREETS, sql, author, chat)
    assert geo.chat.chat_to_answer(ann, MY_STREETS).sql_query == ROMAN
    assert geo.chat.chat_to_answer(bo, MY_STREETS).sql_query == OF_OSLO


def test_other_values_are_rebound_for_the_same_asker_alone(geo: Heedful) -> None:
    ann, bo = new_chat(geo), new_chat(geo)
    prove(
        geo, "Which of my cities are in Italy?", "SELECT name FROM city WHERE country = 'Italy' AND id < 3", "ann", ann
    )
    france = "Which of my cities are in France?"
    assert geo.chat.chat_to_answer(ann, france).origin == "rebound"
    with pytest.raises(Unavailable, match=REASON):
        geo.chat.chat_to_answer(bo, france)


@pytest.mark.slow
def test_what_many_proved_of_themselves_is_no_evidence_for_others(geo: Heedful) -> None:
    for place, author in enumerate(("ann", "bo", "cy", "di")):
        sql = f"SELECT name FROM street WHERE city_id = {place} ORDER BY id"
        for question in (MY_STREETS, "Which streets are mine?", "List my streets", "streets of me"):
            prove(geo, question, sql, author, new_chat(geo))
    for question in ("Which streets do I have?", "my streets", "What are the streets?", "which are streets of mine"):
        found = geo.chat.execution_cache_lookup(question)
        assert (found.cache_hit, found.suggestion) == (False, None), question
    coverage = geo.chat.execution_cache_coverage()
    assert (coverage.proven, coverage.proven_questions) == ([], 0)
    assert [each.question for each in coverage.missing] == ["What are the streets?"]


def test_a_golden_example_is_for_everybody(geo: Heedful) -> None:
    geo.golden_examples.create(MY_STREETS, ROMAN)
    assert geo.chat.chat_to_answer(new_chat(geo), MY_STREETS).origin == "served"


def test_what_we_have_is_for_all_unless_the_sql_has_a_value_of_its_own(geo: Heedful) -> None:
    prove(geo, "How many streets do we have?", "SELECT count(*) AS n FROM street")
    prove(geo, "Which are the cities of our company?", "SELECT name FROM city WHERE country = 'Italy' ORDER BY id")
    prove(geo, "Which are our towns?", 'SELECT name FROM city WHERE country = "Italy" ORDER BY id')
    prove(geo, "What are our places?", "SELECT name FROM city WHERE country = x'4974616c79' ORDER BY id")
    prove(geo, "Which of our cities are in Italy?", "SELECT name FROM city WHERE country = 'Italy' ORDER BY id")
    assert geo.chat.execution_cache_lookup("How many streets do we have?").cache_hit
    assert geo.chat.execution_cache_lookup("Which of our cities are in France?").cache_hit
    for question in ("Which are the cities of our company?", "Which are our towns?", "What are our places?"):
        assert geo.chat.execution_cache_lookup(question).matches[0].gate == "asker", question


def test_a_polite_question_is_nobodys(geo: Heedful) -> None:
    prove(geo, "Show me the streets", "SELECT name FROM street WHERE id > 0 ORDER BY id")
    for question in ("show me the streets", "Could you please show us all the streets", "I want to see the streets"):
        assert geo.chat.execution_cache_lookup(question).cache_hit, question


def test_a_language_model_reads_no_examples_about_somebody_else(
    open_store: Callable[..., Heedful], cities: Cities
) -> None:
    model = ScriptedModel(lambda messages: f"```sql\n{OF_OSLO}\n```")
    store = open_store(language_model=model)
    store.connectors.create("geo", cities.url)
    ann = new_chat(store)
    first = store.chat.chat_to_answer(ann, MY_STREETS).execution_result
    assert first is not None
    store.feedback.create_positive(execution_id=first.execution_id, author="ann")
    prove(store, "Which streets are there?", "SELECT name FROM street ORDER BY id")
    assert store.chat.chat_to_answer(new_chat(store), MY_STREETS).origin == "written"
    prompt = "\n".join(message.content for message in model.prompts[-1])
    assert "Which streets are there?" in prompt
    assert OF_OSLO not in prompt


def test_over_http_with_the_token_of_another_person(tmp_path: Path, cities: Cities) -> None:
    with running(tmp_path / "store.db") as server, server.connect(project="shop") as program:
        program.connectors.create("geo", cities.url)
        done = program.executions.execute_query(ROMAN, question=MY_STREETS)
        token = program.keys.create_token([{"execution_id": done.execution_id}], author="ann").token
        with heedful.connect(server.url, api_key=token, project="shop") as ann:
            ann.feedback.create_positive(execution_id=done.execution_id)
        with pytest.raises(Unavailable, match=REASON):
            program.chat.chat_to_answer(new_chat(program), MY_STREETS)
        for reuse in ("sql", "result"):
            assert not program.chat.execution_cache_lookup(MY_STREETS, reuse=reuse).cache_hit
