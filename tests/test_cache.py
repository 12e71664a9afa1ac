"""The safe cache: similarity finds, gates decide, and what is used is filled with a result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, Cities, make_cities

import heedful
from heedful import Heedful
from heedful.errors import Invalid, NotFound
from heedful.model import CacheLookup, CacheMatch
from heedful.providers.embedding import Embedder
from heedful.sql import executions
from heedful.testing import ManualClock

IN_FRANCE = "How many cities are in France?"


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def geo(store: Heedful, cities: Cities) -> Heedful:
    store.connectors.create("geo", cities.url)
    return store


@pytest.fixture
def proven(geo: Heedful) -> str:
    """The id of an execution that somebody says is right."""
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    geo.feedback.create_positive(execution_id=done, feedback_text="Checked.")
    return done


def look(store: Heedful, question: str, **options: Any) -> CacheLookup:
    return store.chat.execution_cache_lookup(question, **options)


def best(store: Heedful, question: str, **options: Any) -> CacheMatch:
    return look(store, question, **options).matches[0]


def also_right(store: Heedful, question: str) -> str:
    """Looks a question up and says that what ran is right; returns its id."""
    made: str = best(store, question).execution["execution_id"]
    store.feedback.create_positive(execution_id=made)
    return made


def test_an_empty_cache_has_nothing(geo: Heedful) -> None:
    found = look(geo, IN_ITALY)
    assert (found.cache_hit, found.matches, found.candidates_checked) == (False, [], 0)


def test_the_same_question_is_served_and_run_now(geo: Heedful, proven: str, cities: Cities, clock: ManualClock) -> None:
    clock.advance(days=2)
    cities.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000)")
    found = look(geo, "how many cities are in Italy")
    match = found.matches[0]
    assert found.cache_hit
    assert (match.decision, match.gate, match.differences) == ("serve", "same", [])
    assert (match.question, match.age_days, match.stale) == (IN_ITALY, 2.0, False)
    assert (match.has_feedback, match.feedback_is_positive, match.feedback_comment) == (True, True, "Checked.")
    assert match.execution["result"].rows == [[3]]
    assert match.execution["sql_query"] == IN_ITALY_SQL
    stored = geo.executions.get(match.execution["execution_id"])
    assert (stored.origin, stored.derived_from, stored.question) == ("served", proven, "how many cities are in Italy")


def test_other_values_are_rebound_and_said(geo: Heedful, proven: str) -> None:
    match = best(geo, IN_FRANCE)
    assert (match.decision, match.gate) == ("rebind", "rebind")
    assert "france" in match.reason.lower()
    assert len(match.differences) == 1
    assert match.execution["result"].rows == [[2]]
    assert "'France'" in match.execution["sql_query"]
    stored = geo.executions.get(match.execution["execution_id"])
    assert (stored.origin, stored.derived_from, stored.parameters) == ("rebound", proven, {})
    assert geo.executions.execute_query(stored.sql_query).result == stored.result


@pytest.mark.parametrize(
    ("question", "gate"),
    [
        ("How many cities are not in Italy?", "negation"),
        ("How many streets are in Italy?", "words"),
        ("How many cities are in Atlantis?", None),
        ("Which cities are in Italy?", None),
        ("How many cities are in Italy or France?", None),
    ],
)
def test_what_only_looks_alike_is_refused(geo: Heedful, proven: str, question: str, gate: str | None) -> None:
    found = look(geo, question, similarity_threshold=0.3)
    assert not found.cache_hit
    match = found.matches[0]
    assert match.decision == "refuse"
    assert match.reason
    assert gate in (None, match.gate)
    assert match.execution["result"] is None
    assert match.execution["execution_id"] == proven


def test_what_was_served_is_not_preferred_to_what_was_proven(geo: Heedful, proven: str) -> None:
    for _ in range(7):
        match = best(geo, IN_ITALY)
        assert (match.has_feedback, match.execution["derived_from"]) == (True, proven)


def test_similarity_is_never_above_one(geo: Heedful, proven: str) -> None:
    assert 0.99 < best(geo, IN_ITALY).similarity_score <= 1


def test_matches_come_in_the_order_serve_rebind_refuse(geo: Heedful, proven: str) -> None:
    also_right(geo, IN_FRANCE)
    geo.executions.execute_query("SELECT count(*) FROM street", question="How many streets are in Italy?")
    found = look(geo, IN_FRANCE, similarity_threshold=0.3)
    decisions = [match.decision for match in found.matches]
    assert set(decisions) == {"serve", "rebind", "refuse"}
    assert decisions == sorted(decisions, key=["serve", "rebind", "refuse"].index)
    assert [match.execution["result"] is not None for match in found.matches] == [True] + [False] * (len(decisions) - 1)
    assert found.candidates_checked == len(found.matches)


def test_only_so_many_are_shown(geo: Heedful, proven: str) -> None:
    also_right(geo, IN_FRANCE)
    assert len(look(geo, IN_FRANCE).matches) == 2
    assert len(look(geo, IN_FRANCE, top_n=1).matches) == 1
    assert look(geo, IN_FRANCE, top_n=1).matches[0].decision == "serve"


def test_a_lookup_gives_the_same_each_time(geo: Heedful, proven: str, open_store: Callable[..., Heedful]) -> None:
    def told(store: Heedful) -> list[tuple[str, str, float, str]]:
        return [
            (match.decision, match.gate, match.similarity_score, match.execution["execution_id"])
            for match in look(store, "How many cities are not in Italy?").matches
        ]

    assert told(geo) == told(geo) == told(open_store())


def test_a_negative_blocks_at_once_and_its_retraction_unblocks(geo: Heedful, proven: str) -> None:
    wrong = geo.feedback.create_negative(execution_id=proven, feedback="towns are missing")
    for question in (IN_ITALY, IN_FRANCE):
        found = look(geo, question)
        assert not found.cache_hit
        assert (found.matches[0].decision, found.matches[0].gate) == ("refuse", "feedback")
        assert "towns are missing" in found.matches[0].reason
    assert (found.matches[0].feedback_is_positive, found.matches[0].feedback_comment) == (False, "towns are missing")
    geo.retract(wrong.id)
    assert [best(geo, question).decision for question in (IN_ITALY, IN_FRANCE)] == ["serve", "rebind"]


def test_a_negative_on_one_value_blocks_the_others(geo: Heedful, proven: str) -> None:
    rebound = also_right(geo, IN_FRANCE)
    wrong = geo.feedback.create_negative(execution_id=rebound)
    assert [match.gate for match in look(geo, IN_ITALY).matches] == ["feedback", "feedback"]
    geo.feedback.delete(wrong.id)
    assert look(geo, IN_ITALY).cache_hit


def test_a_negative_on_a_number_blocks_those_below_zero(geo: Heedful) -> None:
    question, sql = "Which cities have more than {} people?", "SELECT name FROM city WHERE people > {} ORDER BY id"
    made = [geo.executions.execute_query(sql.format(n), question=question.format(n)).execution_id for n in (7, -5)]
    for wrong in made:
        feedback = geo.feedback.create_negative(execution_id=wrong)
        assert [look(geo, question.format(n)).cache_hit for n in (7, -5)] == [False, False]
        geo.retract(feedback.id)


def test_a_negative_on_a_message_blocks_all_that_ran_for_it(geo: Heedful) -> None:
    geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    told = geo.chat.chat_to_sql(geo.chat_sessions.create().id, IN_ITALY).chat_message_id
    wrong = geo.feedback.create_negative(chat_message_id=told, feedback="too few")
    for _ in range(2):
        geo.executions.execute_from_chat(told)
    match = best(geo, IN_ITALY)
    assert (match.decision, match.gate) == ("refuse", "feedback")
    assert "too few" in match.reason
    geo.retract(wrong.id)
    assert look(geo, IN_ITALY).cache_hit
    later = geo.feedback.create_negative(chat_message_id=told)
    assert later.execution_id is None
    assert not look(geo, IN_FRANCE).cache_hit


def test_a_rating_that_flips_is_followed_at_once(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    feedback = geo.feedback.create_negative(execution_id=done)
    assert not look(geo, IN_ITALY).cache_hit
    # The clock stands still: nothing but the opinion changes.
    geo.feedback.update(feedback.id, is_positive=True)
    assert look(geo, IN_FRANCE, only_positive_feedback=True, similarity_threshold=0.99).cache_hit
    geo.feedback.update(feedback.id, is_positive=False)
    assert not look(geo, IN_FRANCE).cache_hit


def test_only_what_is_rated_as_right_can_be_asked_for(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    assert look(geo, IN_ITALY).cache_hit
    found = look(geo, IN_ITALY, only_positive_feedback=True)
    assert (found.cache_hit, found.matches) == (False, [])
    feedback = geo.feedback.create_positive(execution_id=done)
    found = look(geo, IN_ITALY, only_positive_feedback=True)
    assert (found.cache_hit, [match.feedback_is_positive for match in found.matches]) == (True, [True])
    geo.retract(feedback.id)
    assert not look(geo, IN_ITALY, only_positive_feedback=True).cache_hit


def test_what_is_too_old_is_no_candidate(geo: Heedful, proven: str, clock: ManualClock) -> None:
    clock.advance(days=30)
    assert best(geo, IN_FRANCE, reuse="result").age_days == 30
    clock.advance(seconds=1)
    assert look(geo, IN_ITALY).matches == []
    assert look(geo, IN_ITALY, max_age_days=30.5).cache_hit
    assert look(geo, IN_ITALY, max_age_days=0).cache_hit


def test_another_schema_refuses_what_ran_before(geo: Heedful, proven: str, cities: Cities) -> None:
    cities.write("ALTER TABLE city ADD COLUMN mayor text")
    geo.connectors.refresh("geo")
    match = best(geo, IN_ITALY)
    assert (match.decision, match.gate, match.stale) == ("refuse", "schema", True)
    geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    found = look(geo, IN_ITALY)
    assert [(match.decision, match.stale) for match in found.matches] == [("serve", False), ("refuse", True)]


def test_a_stored_result_is_reused_with_its_age(geo: Heedful, proven: str, clock: ManualClock) -> None:
    clock.advance(days=3)
    found = look(geo, IN_ITALY, reuse="result")
    assert found.cache_hit
    assert found.matches[0].execution["execution_id"] == proven
    assert found.matches[0].execution["result"].rows == [[2]]
    assert found.matches[0].age_days == 3
    assert len(geo.executions.list().items) == 1


def test_a_stored_result_is_not_reused_for_other_values(geo: Heedful, proven: str) -> None:
    found = look(geo, IN_FRANCE, reuse="result")
    assert (found.cache_hit, found.matches[0].decision, found.matches[0].gate) == (False, "refuse", "rebind")


def test_a_stored_result_is_not_reused_once_the_data_changed(geo: Heedful, proven: str, cities: Cities) -> None:
    cities.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000)")
    found = look(geo, IN_ITALY, reuse="result")
    assert not found.cache_hit
    assert (found.matches[0].gate, found.matches[0].stale) == ("data", True)
    assert best(geo, IN_ITALY).execution["result"].rows == [[3]]
    assert best(geo, IN_ITALY, reuse="result").execution["result"].rows == [[3]]


def test_a_stored_result_is_not_reused_while_changes_can_not_be_told(geo: Heedful, proven: str, cities: Cities) -> None:
    cities.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000)", settled=False)
    assert best(geo, IN_ITALY, reuse="result").gate == "data"
    assert best(geo, IN_ITALY).execution["result"].rows == [[3]]
    cities.write("INSERT INTO city VALUES (7, 'Pisa', 'Italy', 90000)", settled=False)
    assert [match.gate for match in look(geo, IN_ITALY, reuse="result").matches] == ["data"]


def test_a_result_that_was_cut_off_is_not_reused_but_its_sql_is(
    geo: Heedful, open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "Which cities are in France?"
    sql = "SELECT name FROM city WHERE country = 'France' ORDER BY id"
    with monkeypatch.context() as patched:
        patched.setenv("HEEDFUL_QUERY_ROWS", "1")
        open_store().executions.execute_query(sql, question=question)
    refused = best(geo, question, reuse="result")
    assert (refused.decision, refused.gate) == ("refuse", "truncation")
    assert best(geo, question).execution["result"].rows == [["Nice"], ["Paris"]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM city LIMIT 1",
        "SELECT name FROM city ORDER BY random()",
        "SELECT name, datetime('now') FROM city",
        "SELECT name, CURRENT_TIMESTAMP FROM city",
    ],
)
def test_what_gives_other_rows_each_time_is_refused(geo: Heedful, sql: str) -> None:
    geo.executions.execute_query(sql, question="Name some cities")
    match = best(geo, "Name some cities")
    assert (match.decision, match.gate) == ("refuse", "determinism")


def test_what_no_longer_runs_is_refused_and_tried_once(
    geo: Heedful, proven: str, cities: Cities, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    cities.write("ALTER TABLE city RENAME COLUMN country TO land")
    tried: list[str] = []
    execute = executions.execute

    def counted(*arguments: Any, **options: Any) -> Any:
        tried.append(arguments[2].sql)
        return execute(*arguments, **options)

    monkeypatch.setattr(executions, "execute", counted)
    found = look(geo, IN_ITALY)
    assert not found.cache_hit
    assert [(match.decision, match.gate) for match in found.matches] == [("refuse", "run")] * 3
    assert "country" in found.matches[0].reason
    assert len(tried) == 1


def test_an_execution_that_was_deleted_is_no_longer_found(geo: Heedful, proven: str) -> None:
    assert look(geo, IN_ITALY, reuse="result").cache_hit
    geo.executions.delete(proven)
    assert look(geo, IN_ITALY).matches == []


def test_other_connectors_and_projects_have_their_own(
    geo: Heedful, proven: str, cities: Cities, open_store: Callable[..., Heedful]
) -> None:
    geo.connectors.create("second", cities.url)
    assert look(geo, IN_ITALY, connector_id="second").matches == []
    assert look(geo, IN_ITALY, connector_id="geo").cache_hit
    other = open_store(project="other")
    other.connectors.create("geo", cities.url)
    assert look(other, IN_ITALY).matches == []


def test_a_negative_on_one_connector_says_nothing_of_another(geo: Heedful, proven: str, cities: Cities) -> None:
    geo.connectors.create("second", cities.url)
    execution_id = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY, connector_id="second").execution_id
    geo.feedback.create_negative(execution_id=execution_id)
    assert look(geo, IN_ITALY, connector_id="geo").cache_hit
    assert not look(geo, IN_ITALY, connector_id="second").cache_hit


def test_proven_questions_with_different_sql_refuse_each_other(geo: Heedful, proven: str) -> None:
    other = "SELECT count(*) AS cities FROM city WHERE country = 'Italy' AND people > 0"
    done = geo.executions.execute_query(other, question=IN_ITALY).execution_id
    geo.feedback.create_positive(execution_id=done)
    found = look(geo, IN_ITALY)
    assert (found.cache_hit, {match.gate for match in found.matches}) == (False, {"conflict"})


@pytest.mark.slow
def test_a_dispute_ends_when_one_side_is_deleted(geo: Heedful, proven: str) -> None:
    other = "SELECT count(*) AS cities FROM city WHERE country = 'Italy' AND people > 0"
    done = geo.executions.execute_query(other, question=IN_ITALY).execution_id
    geo.feedback.create_positive(execution_id=done)
    assert not look(geo, IN_FRANCE).cache_hit
    geo.executions.delete(done)
    assert best(geo, IN_FRANCE).decision == "rebind"
    assert best(geo, IN_ITALY).decision == "serve"


def test_a_database_that_went_away_is_an_error_and_not_a_miss(
    geo: Heedful, proven: str, cities: Cities, open_store: Callable[..., Heedful]
) -> None:
    cities.file.unlink()
    with pytest.raises(NotFound, match=r"cities\.db"):
        look(geo, IN_ITALY)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("similarity_threshold", 7.5),
        ("similarity_threshold", -0.1),
        ("similarity_threshold", float("nan")),
        ("similarity_threshold", "0.5"),
        ("max_age_days", -5),
        ("max_age_days", float("nan")),
        ("max_age_days", float("inf")),
        ("max_age_days", True),
        ("max_age_days", "30"),
        ("limit", 0),
        ("limit", 2.5),
        ("limit", 10**9),
        ("top_n", 0),
        ("top_n", -1),
        ("only_positive_feedback", "yes"),
        ("only_positive_feedback", 1),
        ("reuse", "both"),
        ("reuse", None),
        ("reuse", ["sql"]),
        ("connector_id", 7),
    ],
)
def test_arguments_out_of_range_are_refused_by_name(geo: Heedful, proven: str, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as refused:
        look(geo, IN_ITALY, **{field: value})
    assert refused.value.field == field
    assert len(geo.executions.list().items) == 1


@pytest.mark.parametrize("question", ["", "  ", None, 7, "x" * 100_000, "a\x00b"])
def test_a_question_that_is_none_is_refused(geo: Heedful, question: Any) -> None:
    with pytest.raises(Invalid) as refused:
        look(geo, question)
    assert refused.value.field == "user_query"


def test_a_connector_that_is_not_there_is_said(geo: Heedful) -> None:
    with pytest.raises(NotFound):
        look(geo, IN_ITALY, connector_id="nope")


def test_a_lookup_can_be_written_as_json(geo: Heedful, proven: str) -> None:
    found = CacheLookup.model_validate_json(look(geo, IN_FRANCE).model_dump_json())
    assert found.matches[0].execution["result"].rows == [[2]]


def test_another_model_finds_what_was_stored_by_the_first(
    geo: Heedful, proven: str, path: Path, bundled: Embedder, open_store: Callable[..., Heedful]
) -> None:
    geo.close()
    heedful.reembed(path, embedding=bundled)
    again = open_store(embedding=bundled)
    assert [best(again, question).decision for question in (IN_ITALY, IN_FRANCE)] == ["serve", "rebind"]


def test_what_was_wrong_stays_blocked_when_it_is_deleted_until_it_is_taken_back(geo: Heedful, proven: str) -> None:
    copy = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    wrong = geo.feedback.create_negative(execution_id=copy, feedback="Rome is missing.")
    geo.feedback.update(wrong.id, feedback="Rome and Bari are missing.")
    geo.executions.delete(copy)
    match = best(geo, IN_FRANCE)
    assert (match.decision, match.gate) == ("refuse", "feedback")
    assert "Bari" in match.reason
    geo.feedback.delete(wrong.id)
    assert best(geo, IN_FRANCE).decision == "rebind"
