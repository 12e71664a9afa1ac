"""What a hit of the cache leaves behind: something to look at and to rate, and nothing that grows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, Cities, make_cities
from sqlalchemy import func, insert, select
from sqlite_steps import sqlite_steps

from heedful import Heedful
from heedful.errors import NotFound
from heedful.jobs.retention import maintain
from heedful.model import CacheMatch
from heedful.settings import Retention
from heedful.sql.reuse import candidates
from heedful.sql.reuse.candidates import Limits, Questions, find
from heedful.storage.schema import executions, feedbacks
from heedful.testing import ManualClock, ScriptedModel

IN_FRANCE = "How many cities are in France?"
PARAPHRASED = "how many cities are in Italy"
MANY = 60


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def geo(store: Heedful, cities: Cities) -> Heedful:
    store.connectors.create("geo", cities.url)
    return store


@pytest.fixture
def proven(geo: Heedful) -> str:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    geo.feedback.create_positive(execution_id=done, author="ann")
    return done


def best(store: Heedful, question: str = IN_ITALY, **options: Any) -> CacheMatch:
    return store.chat.execution_cache_lookup(question, **options).matches[0]


def hit(store: Heedful, question: str = IN_ITALY) -> str:
    found: str = best(store, question).execution["execution_id"]
    return found


def stored(store: Heedful) -> tuple[int, int, int]:
    """How many executions there are, how many have a vector, and how many bytes their results take."""
    size = func.length(executions.c.result.cast(executions.c.sql_query.type))
    with store._workspace.read() as connection:
        row = connection.execute(select(func.count(), func.count(executions.c.vector), func.sum(size))).one()
    return int(row[0]), int(row[1]), int(row[2])


@pytest.mark.slow
def test_hits_are_no_candidates_and_their_results_are_stored_once(geo: Heedful, proven: str) -> None:
    _, vectors, size = stored(geo)
    for place in range(MANY):
        match = best(geo, (IN_ITALY, PARAPHRASED, IN_FRANCE)[place % 3])
        assert match.execution["derived_from"] == proven
        assert match.has_feedback
        assert geo.chat.execution_cache_lookup(IN_ITALY).candidates_checked == 1
    count, after, grown = stored(geo)
    assert (count, after) == (1 + 2 * MANY, vectors)
    # The first result for France is new; all others are known.
    assert grown < 2 * size + 4 * count


@pytest.mark.slow
def test_what_is_proven_leads_in_the_prompt_however_often_it_was_used(
    open_store: Callable[..., Heedful], cities: Cities
) -> None:
    model = ScriptedModel(["```sql\nSELECT 1\n```"])
    store = open_store(language_model=model)
    store.connectors.create("geo", cities.url)
    for question, sql in ((IN_ITALY, IN_ITALY_SQL), ("How many streets?", "SELECT count(*) FROM street")):
        done = store.executions.execute_query(sql, question=question).execution_id
        store.feedback.create_positive(execution_id=done, author="ann")
    for place in range(MANY):
        hit(store, (PARAPHRASED, IN_FRANCE)[place % 2])
    store.chat.chat_to_sql(store.chat_sessions.create().id, "How many cities are in Italy, and not in France?")
    shown = "\n".join(message.content for message in model.prompts[0]).partition("Examples:")[2]
    examples = re.findall('^SQL: "(.*)"$', shown, re.MULTILINE)
    assert examples == [IN_ITALY_SQL, "SELECT count(*) FROM street"], "once each, the nearest first"


@pytest.mark.slow
def test_a_lookup_reads_no_more_in_a_project_with_many_ratings_of_sessions(
    new_store: Callable[..., Heedful], clock: ManualClock, cities: Cities
) -> None:
    with new_store(clock) as store:
        store.connectors.create("geo", cities.url)
        done = store.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
        store.feedback.create_positive(execution_id=done, author="ann")
        store.sessions.create("s")
        store.sessions.add_session_feedback("s", {"rating": "up"}, author="ann")
        best(store, PARAPHRASED)
        with sqlite_steps(store) as steps:
            best(store, PARAPHRASED)
        before = steps()
        with store._workspace.write() as connection:
            row = connection.execute(select(feedbacks).where(feedbacks.c.target_type == "session")).one()._asdict()
            del row["seq"]
            ids = [f"rating-{place}" for place in range(3000)]
            many = [row | {"id": each, "event_id": each, "author": f"author of {each}"} for each in ids]
            connection.execute(insert(feedbacks), many)
        assert before > 10
        with sqlite_steps(store) as steps:
            best(store, PARAPHRASED)
        assert steps() < 1.2 * before + 20


def test_a_hit_is_shown_whole_and_stays_what_it_was(geo: Heedful, proven: str, cities: Cities) -> None:
    first, second = hit(geo), hit(geo, PARAPHRASED)
    cities.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000)")
    third, fourth = hit(geo), hit(geo)
    assert [geo.executions.get(each).result.rows for each in (first, second, third, fourth)] == [
        [[2]],
        [[2]],
        [[3]],
        [[3]],
    ]
    assert geo.executions.get(second).question == PARAPHRASED
    assert [each.result.rows for each in geo.executions.list().items] == [[[3]], [[3]], [[2]], [[2]], [[2]]]
    for gone in (proven, third):
        geo.executions.delete(gone)
    assert [geo.executions.get(each).result.rows for each in (first, second, fourth)] == [[[2]], [[2]], [[3]]]


def test_a_rating_of_a_hit_counts_for_what_it_repeats_until_it_is_taken_back(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    repeated = hit(geo, PARAPHRASED)
    assert best(geo).has_feedback is False
    feedback = geo.feedback.create_positive(execution_id=repeated, feedback_text="Counted.")
    assert feedback.execution_id == repeated
    match = best(geo, only_positive_feedback=True)
    assert (match.execution["derived_from"], match.feedback_comment) == (done, "Counted.")
    geo.feedback.update(feedback.id, is_positive=False, feedback="Rome is missing.")
    refused = best(geo)
    assert (refused.gate, refused.feedback_is_positive) == ("feedback", False)
    assert "Rome" in refused.reason
    geo.retract(feedback.id)
    assert best(geo).has_feedback is False


def test_an_author_who_rates_many_hits_is_one_voice(geo: Heedful, proven: str) -> None:
    for _ in range(3):
        geo.feedback.create_positive(execution_id=hit(geo), author="ann")
    wrong = geo.executions.execute_query("SELECT 1", question="What is one?").execution_id
    geo.feedback.create_negative(execution_id=wrong)
    space, vector = geo._project.executions, geo._workspace.embed([IN_ITALY])[0]
    with geo._workspace.read() as connection:
        connector = space.connector(connection, "geo")
    wanted = Limits(None, 0.9, 9)
    with space.proofs.reading(connector, space.target, space.workspace.read) as known:
        found = find(space, known, connector, vector, wanted)
    assert [(each.row.id, each.opinions.positives, each.opinions.negatives) for each in found] == [(proven, 1, 0)]


@pytest.mark.slow
def test_a_hit_with_other_values_answers_others_once_it_is_right(geo: Heedful, proven: str) -> None:
    rebound = hit(geo, IN_FRANCE)
    assert best(geo, IN_FRANCE).decision == "rebind"
    feedback = geo.feedback.create_positive(execution_id=rebound)
    match = best(geo, IN_FRANCE)
    assert (match.decision, match.execution["derived_from"]) == ("serve", rebound)
    geo.executions.delete(proven)
    assert best(geo, IN_FRANCE).execution["result"].rows == [[2]]
    assert best(geo, IN_ITALY).decision == "rebind"
    geo.retract(feedback.id)
    assert geo.chat.execution_cache_lookup(IN_FRANCE).matches == []
    geo.feedback.create_positive(execution_id=rebound)
    assert geo.chat.execution_cache_lookup(IN_FRANCE).candidates_checked == 1


def test_use_keeps_what_is_proven_young(geo: Heedful, proven: str, clock: ManualClock) -> None:
    for question in (IN_FRANCE, IN_ITALY, IN_FRANCE):
        clock.advance(days=20)
        match = best(geo, question)
        assert (match.age_days, match.execution["derived_from"]) == (20, proven)
    # Its own result is as old as the last time that it ran.
    assert best(geo, reuse="result").age_days == 20
    clock.advance(days=20)
    refused = best(geo, reuse="result")
    assert (refused.gate, refused.stale) == ("data", True)


def test_a_golden_example_leaves_one_candidate(geo: Heedful) -> None:
    geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    session = geo.chat_sessions.create().id
    for _ in range(5):
        geo.chat.chat_to_answer(session, IN_ITALY)
    result = geo.chat.execution_cache_lookup(IN_ITALY)
    assert (result.cache_hit, result.candidates_checked) == (True, 1)
    assert len(geo.executions.list().items) == 6


def test_old_hits_that_nobody_rated_have_an_end(geo: Heedful, proven: str, clock: ManualClock, cities: Cities) -> None:
    cities.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000)")
    old, rated, right = hit(geo), hit(geo), hit(geo, IN_FRANCE)
    geo.feedback.create_negative(execution_id=rated)
    geo.feedback.create_positive(execution_id=right)
    assert geo.insight.coverage().executions.shown == 4
    database = geo._workspace.database
    clock.advance(days=90)
    assert not any("hits" in line for line in maintain(database, geo._workspace.now(), Retention()))
    clock.advance(days=1)
    assert "removed 1 hits of the cache" in maintain(database, geo._workspace.now(), Retention())
    with pytest.raises(NotFound):
        geo.executions.get(old)
    # The one that is gone had the result of the other.
    assert geo.executions.get(rated).result.rows == [[3]]
    assert geo.insight.coverage().executions.shown == 3
    assert {each.execution_id for each in geo.executions.list().items} == {proven, rated, right}
    assert all(check.ok for check in geo.doctor(repair=False))


@pytest.mark.nightly
def test_executions_that_were_removed_take_neither_a_place_nor_memory(
    geo: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "PRUNE_AFTER", 16)
    kept = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    most, places = 0, []
    for _ in range(MANY):
        removed = geo.executions.execute_query(IN_ITALY_SQL, question=PARAPHRASED).execution_id
        places.append(geo.chat.execution_cache_lookup(PARAPHRASED, limit=3).candidates_checked)
        geo.executions.delete(removed)
        (index,) = geo._workspace.part(Questions)._indexes.values()
        most = max(most, index.held)
    result = geo.chat.execution_cache_lookup(PARAPHRASED, limit=3)
    assert [match.execution["derived_from"] for match in result.matches] == [kept]
    assert places == [2] * MANY
    assert most <= 2 + 2 * 16


def test_what_an_erased_author_said_is_no_longer_shown(geo: Heedful, proven: str) -> None:
    geo.feedback.create_positive(execution_id=proven, feedback_text="Ann counted.", author="ann")
    assert best(geo).feedback_comment == "Ann counted."
    geo.forget(author="ann")
    assert best(geo).feedback_comment is None
