"""Questions to SQL: what was proven comes first, a language model second, and a guess never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, Cities, make_cities

import heedful
from heedful import Heedful
from heedful.errors import Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.providers.llm import ChatMessage
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder

IN_FRANCE = "How many cities are in France?"
STREETS = "How many streets are there?"
STREETS_SQL = "SELECT count(*) AS streets FROM street"


def block(sql: str) -> str:
    return f"Here it is:\n```sql\n{sql}\n```"


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def open_geo(open_store: Callable[..., Heedful], cities: Cities) -> Callable[..., Heedful]:
    def opening(answers: Sequence[str] | Callable[..., str] | None = None, **options: Any) -> Heedful:
        if answers is not None:
            options["language_model"] = ScriptedModel(answers)
        store = open_store(**options)
        if not store.connectors.list():
            store.connectors.create("geo", cities.url)
        return store

    return opening


@pytest.fixture
def geo(open_geo: Callable[..., Heedful]) -> Heedful:
    return open_geo()


def prove(store: Heedful, question: str = IN_ITALY, sql: str = IN_ITALY_SQL) -> str:
    done = store.executions.execute_query(sql, question=question).execution_id
    store.feedback.create_positive(execution_id=done)
    return done


def with_model(open_geo: Callable[..., Heedful], answers: Any) -> tuple[Heedful, ScriptedModel]:
    model = ScriptedModel(answers)
    return open_geo(language_model=model), model


def ask(store: Heedful, question: str, **options: Any) -> Any:
    return store.chat.chat_to_answer(store.chat_sessions.create().id, question, **options)


def prompted(messages: Sequence[ChatMessage]) -> str:
    return "\n\n".join(message.content for message in messages)


def test_what_is_proven_is_served(geo: Heedful) -> None:
    proven = prove(geo)
    answer = ask(geo, "how many cities are in Italy")
    assert (answer.origin, answer.derived_from, answer.model) == ("served", proven, None)
    assert answer.sql_query == IN_ITALY_SQL
    assert IN_ITALY in answer.explanation
    assert answer.answer == "cities: 2"
    done = answer.execution_result
    assert (done.origin, done.chat_message_id, done.question) == ("served", answer.chat_message_id, answer.query)
    assert geo.executions.get(done.execution_id) == done


def test_what_is_proven_with_other_values_is_rebound(geo: Heedful) -> None:
    proven = prove(geo)
    answer = ask(geo, IN_FRANCE)
    assert (answer.origin, answer.derived_from) == ("rebound", proven)
    assert "'France'" in answer.sql_query
    assert answer.execution_result.result.rows == [[2]]
    assert answer.execution_result.sql_query == answer.sql_query


def test_a_golden_example_is_proven(geo: Heedful) -> None:
    example = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    assert [(ask(geo, question).origin, ask(geo, question).derived_from) for question in (IN_ITALY, IN_FRANCE)] == [
        ("served", example.id),
        ("rebound", example.id),
    ]


def test_a_golden_example_that_changed_is_followed(geo: Heedful, clock: ManualClock) -> None:
    example = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    assert ask(geo, IN_FRANCE).execution_result.result.rows == [[2]]
    clock.advance(seconds=1)
    geo.golden_examples.update(example.id, sql_query=f"{IN_ITALY_SQL} AND people IS NOT NULL")
    assert ask(geo, IN_FRANCE).execution_result.result.rows == [[1]]
    geo.golden_examples.delete(example.id)
    with pytest.raises(Unavailable):
        ask(geo, IN_FRANCE)


def test_golden_examples_survive_another_model(geo: Heedful, path: Path, open_store: Callable[..., Heedful]) -> None:
    class Other(WordEmbedder):
        name = "other-words"

    geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    geo.close()
    heedful.reembed(path, embedding=Other(32))
    assert ask(open_store(embedding=Other(32)), IN_FRANCE).origin == "rebound"


@pytest.mark.slow
def test_what_merely_ran_is_not_proven(geo: Heedful) -> None:
    geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    with pytest.raises(Unavailable):
        ask(geo, IN_ITALY)


def test_with_nothing_proven_and_no_model_the_nearest_is_named(geo: Heedful) -> None:
    with pytest.raises(Unavailable, match="Nothing like it was proven") as refused:
        ask(geo, STREETS)
    assert refused.value.code == "nothing_proven"
    prove(geo)
    with pytest.raises(Unavailable, match=r"How many cities are in Italy\?") as refused:
        ask(geo, "How many streets are in Italy?")
    assert "golden_examples.create" in str(refused.value.remedy)
    assert "HEEDFUL_LANGUAGE_MODEL" in str(refused.value.remedy)
    assert len(geo.executions.list().items) == 1


def test_a_negative_takes_the_proof_away(geo: Heedful) -> None:
    proven = prove(geo)
    wrong = geo.feedback.create_negative(execution_id=proven)
    with pytest.raises(Unavailable):
        ask(geo, IN_FRANCE)
    geo.retract(wrong.id)
    assert ask(geo, IN_FRANCE).origin == "rebound"


def test_proven_sql_that_no_longer_runs_gives_way_to_the_model(
    open_geo: Callable[..., Heedful], cities: Cities
) -> None:
    new = "SELECT count(*) AS cities FROM city WHERE land = 'Italy'"
    geo, model = with_model(open_geo, [block(new)])
    prove(geo)
    cities.write("ALTER TABLE city RENAME COLUMN country TO land")
    answer = ask(geo, IN_ITALY)
    assert (answer.origin, answer.execution_result.result.rows, len(model.prompts)) == ("written", [[2]], 1)


def test_a_model_is_not_asked_for_what_is_proven(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [])
    prove(geo)
    assert [ask(geo, question).origin for question in (IN_ITALY, IN_FRANCE)] == ["served", "rebound"]
    assert model.prompts == []


def test_a_model_writes_from_schema_examples_and_warnings(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL)])
    prove(geo)
    geo.golden_examples.create("How many people live in Rome?", "SELECT people FROM city WHERE name = 'Rome'")
    wrong = geo.executions.execute_query("SELECT count(*) FROM city", question="How many roads are there?")
    geo.feedback.create_negative(execution_id=wrong.execution_id, feedback="Roads are\nin street.")
    geo.executions.execute_query("SELECT 77", question="How many streets are unrated?")
    answer = ask(geo, STREETS)
    assert (answer.origin, answer.model, answer.derived_from) == ("written", "scripted-for-tests", None)
    assert answer.execution_result.result.rows == [[3]]
    shown = prompted(model.prompts[0])
    assert "sqlite" in shown
    assert "city (id INTEGER, name TEXT, country TEXT, people INTEGER)" in shown
    assert "(city_id) refers to city (id)" in shown
    examples, warnings = shown.split("Examples:")[1].split("Warnings:")
    assert IN_ITALY_SQL in examples
    assert "SELECT people FROM city WHERE name = 'Rome'" in examples
    assert 'SQL: "SELECT count(*) FROM city"\nWrong, because: "Roads are\\nin street."' in warnings
    assert "77" not in shown
    rules, asked = model.prompts[0]
    assert (rules.role, asked.role) == ("system", "user")
    assert asked.content.endswith(f"\n\nQuestion: {STREETS}")
    assert not any(words in rules.content for words in (IN_ITALY_SQL, "Rome", "Roads"))


def test_what_a_model_wrote_is_not_proven_by_that(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, lambda messages: block(STREETS_SQL))
    first = ask(geo, STREETS)
    assert ask(geo, STREETS).origin == "written"
    assert len(model.prompts) == 2
    geo.feedback.create_positive(
        execution_id=first.execution_result.execution_id, chat_message_id=first.chat_message_id
    )
    assert ask(geo, STREETS).origin == "served"


@pytest.mark.parametrize(
    ("cutoff", "in_examples", "in_warnings"),
    [(0.0, True, False), (0.5, True, False), (0.6, False, True), (1.0, False, True)],
)
def test_the_cutoff_says_how_reliable_an_example_must_be(
    open_geo: Callable[..., Heedful], cutoff: float, in_examples: bool, in_warnings: bool
) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL)])
    disputed = prove(geo)
    geo.feedback.create_negative(execution_id=disputed, feedback="not sure")
    ask(geo, STREETS, feedback_cutoff=cutoff)
    examples, _, warnings = prompted(model.prompts[0]).partition("Warnings:\n")
    assert (IN_ITALY_SQL in examples, IN_ITALY_SQL in warnings) == (in_examples, in_warnings)


@pytest.mark.parametrize("cutoff", [0.0, 0.3, 0.5, 1.0])
def test_what_is_only_called_wrong_is_a_warning_at_any_cutoff(open_geo: Callable[..., Heedful], cutoff: float) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL)])
    wrong = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    geo.feedback.create_negative(execution_id=wrong, feedback="towns are missing")
    ask(geo, STREETS, feedback_cutoff=cutoff)
    examples, _, warnings = prompted(model.prompts[0]).partition("Warnings:\n")
    assert IN_ITALY_SQL not in examples
    assert "towns are missing" in warnings


def test_a_warning_says_what_was_wrong_and_not_what_was_praised(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL)])
    disputed = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    geo.feedback.create_negative(execution_id=disputed, feedback="towns are missing")
    geo.feedback.create_positive(execution_id=disputed, feedback_text="lovely")
    ask(geo, STREETS, feedback_cutoff=0.9)
    assert 'Wrong, because: "towns are missing"' in prompted(model.prompts[0])
    match = geo.chat.execution_cache_lookup(IN_ITALY).matches[0]
    assert (match.feedback_is_positive, match.feedback_comment) == (False, "towns are missing")


def test_an_example_is_shown_once_however_often_it_was_rated(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL)])
    for _ in range(3):
        prove(geo)
    ask(geo, STREETS)
    assert prompted(model.prompts[0]).count(IN_ITALY_SQL) == 1


def test_golden_examples_pass_the_strictest_cutoff(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL)])
    geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    ask(geo, STREETS, feedback_cutoff=1)
    assert IN_ITALY_SQL in prompted(model.prompts[0])


@pytest.mark.parametrize("cutoff", [-0.1, 1.1, float("nan"), "0.5", None, True])
def test_a_cutoff_out_of_range_is_refused(geo: Heedful, cutoff: Any) -> None:
    with pytest.raises(Invalid) as refused:
        ask(geo, IN_ITALY, feedback_cutoff=cutoff)
    assert refused.value.field == "feedback_cutoff"


def test_an_error_is_repaired_once(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block("SELECT count(*) FROM roads"), block(STREETS_SQL)])
    assert ask(geo, STREETS).sql_query == STREETS_SQL
    assert "SELECT count(*) FROM roads" in model.prompts[1][-2].content
    assert "roads" in model.prompts[1][-1].content


def test_an_error_is_not_repaired_twice(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, lambda messages: block("SELECT count(*) FROM roads"))
    with pytest.raises(HeedfulError, match="roads"):
        ask(geo, STREETS)
    assert len(model.prompts) == 2
    assert geo.executions.list().items == []


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM city", "-- tidy up\nDROP TABLE city", "SELECT 1; DELETE FROM city", "PRAGMA writable_schema = 1"],
)
def test_a_model_that_writes_what_changes_data_is_refused(
    open_geo: Callable[..., Heedful], cities: Cities, sql: str
) -> None:
    before = cities.file.read_bytes()
    geo, model = with_model(open_geo, lambda messages: block(sql))
    chat = geo.chat_sessions.create()
    with pytest.raises(Forbidden):
        geo.chat.chat_to_answer(chat.id, STREETS)
    assert len(model.prompts) == 2
    assert geo.executions.list().items == []
    assert geo.chat_sessions.get_questions(chat.id) == []
    assert cities.file.read_bytes() == before


def test_a_model_that_corrects_itself_is_used(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block("DELETE FROM street"), block(STREETS_SQL)])
    assert ask(geo, STREETS).execution_result.result.rows == [[3]]
    assert len(model.prompts) == 2


@pytest.mark.parametrize(
    "text",
    [
        STREETS_SQL,
        f"{STREETS_SQL};",
        f"```\n{STREETS_SQL}\n```",
        f"```SQL\n-- all of them\n{STREETS_SQL}\n```",
        f"First ```python\nprint(1)\n``` and then ```sql\n{STREETS_SQL};\n```",
    ],
)
def test_sql_is_found_in_what_a_model_says(open_geo: Callable[..., Heedful], text: str) -> None:
    geo, _ = with_model(open_geo, [text])
    assert ask(geo, STREETS).execution_result.result.rows == [[3]]


def test_a_model_that_writes_no_sql_is_quoted(open_geo: Callable[..., Heedful]) -> None:
    geo, _ = with_model(open_geo, ["The schema has no weather."])
    with pytest.raises(Unavailable, match="The schema has no weather") as refused:
        ask(geo, "How is the weather?")
    assert refused.value.code == "no_sql_written"


def test_a_model_knows_what_was_asked_before(open_geo: Callable[..., Heedful]) -> None:
    geo, model = with_model(open_geo, [block(STREETS_SQL), block("SELECT name FROM street ORDER BY id")])
    chat = geo.chat_sessions.create().id
    geo.chat.chat_to_sql(chat, STREETS)
    geo.chat.chat_to_sql(chat, "And their names?")
    assert [message.content for message in model.prompts[1][1:]] == [
        STREETS,
        f"```sql\n{STREETS_SQL}\n```",
        "And their names?",
    ]


def test_chat_to_sql_runs_nothing_and_execute_from_chat_does(geo: Heedful) -> None:
    proven = prove(geo)
    chat = geo.chat_sessions.create().id
    answer = geo.chat.chat_to_sql(chat, IN_FRANCE)
    assert (answer.origin, answer.query, answer.chat_session_id) == ("rebound", IN_FRANCE, chat)
    assert len(geo.executions.list().items) == 1
    done = geo.executions.execute_from_chat(answer.chat_message_id)
    assert (done.result.rows, done.sql_query, done.origin) == ([[2]], answer.sql_query, "rebound")
    assert (done.chat_message_id, done.question, done.derived_from) == (answer.chat_message_id, IN_FRANCE, proven)
    geo.feedback.create_positive(chat_message_id=answer.chat_message_id)
    assert geo.chat.execution_cache_lookup(IN_FRANCE, only_positive_feedback=True).matches[0].decision == "serve"


@pytest.mark.slow
def test_a_whole_conversation_in_either_store(
    open_either: Callable[..., Heedful], cities: Cities, clock: ManualClock
) -> None:
    store = open_either()
    store.connectors.create("geo", cities.url)
    store.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    chat = store.chat_sessions.create(name="Counting")
    assert (chat.name, chat.created_at) == ("Counting", clock.now)
    answers = []
    for question in (IN_ITALY, IN_FRANCE):
        clock.advance(seconds=1)
        answers.append(store.chat.chat_to_answer(chat.id, question))
    questions = store.chat_sessions.get_questions(chat.id)
    assert [(each.question, each.chat_message_id, each.sql_query, each.origin) for each in questions] == [
        (each.query, each.chat_message_id, each.sql_query, each.origin) for each in answers
    ]
    assert questions[1].created_at == clock.now
    feedback = store.feedback.create_negative(chat_message_id=answers[1].chat_message_id, feedback="wrong")
    done = answers[1].execution_result
    assert done is not None
    assert feedback.execution_id == done.execution_id
    assert list(store.feedback.get_feedback_for_message(answers[1].chat_message_id)) == [feedback]
    assert store.executions.execute_from_chat(answers[0].chat_message_id).result.rows == [[2]]
    assert store.chat_sessions.delete(chat.id) is True
    with pytest.raises(NotFound):
        store.chat_sessions.get_questions(chat.id)
    assert store.feedback.get(feedback.id) == feedback
    assert store.executions.get(done.execution_id) == done


def test_chat_sessions_are_listed_the_newest_first_and_apart_from_others(geo: Heedful, clock: ManualClock) -> None:
    geo.sessions.create("another kind")
    made = []
    for number in range(3):
        clock.advance(seconds=1)
        made.append(geo.chat_sessions.create(name=f"chat {number}"))
    page = geo.chat_sessions.list(limit=2)
    assert page.items == made[:0:-1]
    assert geo.chat_sessions.list(cursor=page.next_cursor).items == made[:1]
    assert geo.chat_sessions.get(made[0].id) == made[0]
    geo.chat_sessions.delete(made[0].id)
    assert [each.id for each in geo.chat_sessions.list().items] == [made[2].id, made[1].id]


@pytest.mark.parametrize("name", ["nope", "another kind"])
def test_a_chat_session_that_is_none_is_not_found(geo: Heedful, name: str) -> None:
    geo.sessions.create("another kind")
    for call in (
        lambda: geo.chat_sessions.get(name),
        lambda: geo.chat_sessions.get_questions(name),
        lambda: geo.chat_sessions.delete(name),
        lambda: geo.chat.chat_to_sql(name, IN_ITALY),
        lambda: geo.chat.chat_to_answer(name, IN_ITALY),
    ):
        with pytest.raises(NotFound) as refused:
            call()
        assert refused.value.field == "chat_session_id"
    assert geo.sessions.exists("another kind")


def test_messages_of_others_in_a_chat_session_are_left_alone(geo: Heedful) -> None:
    prove(geo)
    chat = geo.chat_sessions.create().id
    geo.sessions.add_message(chat, "assistant", "Hello!")
    geo.sessions.add_message(chat, "assistant", '{"question": 1}')
    geo.sessions.add_message(chat, "assistant", "[1]")
    answer = geo.chat.chat_to_sql(chat, IN_ITALY)
    assert [each.chat_message_id for each in geo.chat_sessions.get_questions(chat)] == [answer.chat_message_id]


@pytest.mark.parametrize("question", ["", "  ", None, 7, "x" * 100_000])
def test_a_question_that_is_none_is_refused(geo: Heedful, question: Any) -> None:
    with pytest.raises(Invalid) as refused:
        ask(geo, question)
    assert refused.value.field == "query"


@pytest.mark.parametrize(
    ("question", "sql", "words"),
    [
        ("Which cities have no name?", "SELECT name FROM city WHERE name = ''", "No rows."),
        ("Where is Rome?", "SELECT name, country FROM city WHERE name = 'Rome'", "name: Rome, country: Italy"),
        ("Which cities are in Italy?", "SELECT name FROM city WHERE id IN (1, 4) ORDER BY id", "2 rows: Rome, Milan"),
        ("List all cities", "SELECT id, name FROM city ORDER BY id", "5 rows with id, name."),
    ],
)
def test_a_result_is_told_in_words(geo: Heedful, question: str, sql: str, words: str) -> None:
    geo.golden_examples.create(question, sql)
    assert ask(geo, question).answer == words


def test_the_model_reads_what_people_say_about_the_data(open_geo: Callable[..., Heedful]) -> None:
    store, model = with_model(open_geo, lambda messages: block(STREETS_SQL))
    store.remember([f"Planet {n} goes round star {n}." for n in range(12)], dataset="contexts")
    store.remember("Streets are what has a name in the table street.", dataset="contexts")
    store.remember("street.city_id says where it is.", dataset="schema_metadata", metadata={"name": "street"})
    answer = ask(store, STREETS, remarks=["Count dead ends, too."])
    prompt = prompted(model.prompts[-1])
    remarks = prompt[prompt.index("\nRemarks:") :]
    assert remarks.index("dead ends") < remarks.index("Streets are what") < remarks.index("street: street.city_id")
    assert 0 < remarks.count("goes round") < 12
    assert "with 7 remarks" in answer.explanation


def test_what_is_always_displayed_is_read_whatever_is_asked(open_geo: Callable[..., Heedful]) -> None:
    store, model = with_model(open_geo, lambda messages: block(STREETS_SQL))
    store.remember([f"Streets of kind {n} are streets." for n in range(12)], dataset="contexts")
    store.remember("Amounts are in euros.", dataset="contexts", metadata={"is_always_displayed": True})
    ask(store, STREETS)
    assert "Amounts are in euros." in prompted(model.prompts[-1])
    store.supersede(store.recall("euros", dataset="contexts").hits[0].fact_id, "Amounts are in kroner.")
    ask(store, STREETS)
    assert "in euros" not in prompted(model.prompts[-1])


def test_without_remarks_there_are_none(open_geo: Callable[..., Heedful]) -> None:
    store, model = with_model(open_geo, lambda messages: block(STREETS_SQL))
    answer = ask(store, STREETS)
    assert "\nRemarks:" not in prompted(model.prompts[-1])
    assert "remarks" not in answer.explanation
    assert store.datasets() == []
    store.remember("x", dataset="contexts")
    store.forget(dataset="contexts")
    ask(store, STREETS)
    assert "\nRemarks:" not in prompted(model.prompts[-1])


def test_remarks_are_bounded(open_geo: Callable[..., Heedful]) -> None:
    store, model = with_model(open_geo, lambda messages: block(STREETS_SQL))
    ask(store, STREETS, remarks=["first", "word " * 10_000])
    prompt = prompted(model.prompts[-1])
    assert "first" in prompt
    assert len(prompt) < 20_000


@pytest.mark.parametrize("remarks", ["a text", [""], [7], 7])
def test_remarks_are_texts(open_geo: Callable[..., Heedful], remarks: Any) -> None:
    store, _ = with_model(open_geo, [])
    with pytest.raises(Invalid) as caught:
        ask(store, STREETS, remarks=remarks)
    assert caught.value.field == "remarks"
