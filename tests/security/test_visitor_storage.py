"""Visitors who try to fill the store: with large metadata, with opinions that change all the time, and together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from server import Running, running
from sqlalchemy import func, select
from statements import watched

from heedful.access import visitors
from heedful.ledger.opinions import SqlFeedbacks
from heedful.model.limits import MAX_COMMENT, MAX_VISITOR_DETAILS
from heedful.sessions.mongo.feedback import MongoFeedbacks
from heedful.storage.schema import metadata, visitor_usage
from heedful.testing import ManualClock

BASE = "/v1/projects/default"
Serve = Callable[[], Running]
BOTH = ({"session_id": "page"}, {"session_id": "other"})


@pytest.fixture(params=["sqlite", "postgresql", "mongodb"])
def serve(request: pytest.FixtureRequest, path: Path, clock: ManualClock) -> Iterator[Serve]:
    """Starts a server on the test's store, on SQLite, on PostgreSQL, and with its sessions in a MongoDB."""
    store: Path | str = request.getfixturevalue("empty_database") if request.param == "postgresql" else path
    sessions = request.getfixturevalue("mongodb_url") if request.param == "mongodb" else None
    with ExitStack() as started:
        yield lambda: started.enter_context(running(store, sessions=sessions, clock=clock, worker=False))


@pytest.fixture
def server(serve: Serve) -> Running:
    made = serve()
    with made.connect() as h:
        h.sessions.create("page")
        h.sessions.create("other")
    return made


def token(server: Running, subject: str | None = "one", *targets: dict[str, str]) -> str:
    with server.connect() as h:
        return h.keys.create_token(targets or [{"session_id": "page"}], subject=subject).token


def send(server: Running, key: str, feedback: dict[str, Any], session: str = "page") -> httpx.Response:
    """An opinion about a session."""
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{server.url}{BASE}/sessions/{session}/feedback", json={"feedback": feedback}, headers=headers)


def sizes(server: Running) -> Counter[str]:
    """The rows of each table."""
    with server.state.store.database.read() as connection:
        tables = {table.name: select(func.count()).select_from(table) for table in metadata.sorted_tables}
        return Counter({name: connection.execute(count).scalar_one() for name, count in tables.items()})


@pytest.mark.slow
def test_a_token_sends_little_besides_the_comment(server: Running) -> None:
    visitor = token(server)
    large = {"rating": "up", "blob": "x" * MAX_VISITOR_DETAILS}
    refused = send(server, visitor, large)
    assert refused.status_code == 422
    assert refused.json()["field"] == "feedback"
    assert f"the limit for a token is {MAX_VISITOR_DETAILS}" in refused.json()["detail"]
    nested = send(server, visitor, {"rating": "up", "comment": ["x"] * MAX_VISITOR_DETAILS})
    assert nested.status_code == 422
    allowed = {"rating": "up", "comment": "ü" * MAX_COMMENT, "page": "y" * (MAX_VISITOR_DETAILS // 2)}
    assert send(server, visitor, allowed).status_code == 200
    assert send(server, server.key, large).status_code == 200


@pytest.mark.slow
def test_changes_of_one_opinion_are_bounded_and_begin_again_the_next_day(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitors, "MAX_CHANGES", 5)
    both = token(server, "one", {"session_id": "page"}, {"session_id": "other"})
    other = token(server, "two")
    ratings = ["up", "down"] * 4
    answers = [send(server, both, {"rating": rating}) for rating in ratings]
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 3
    last = answers[-1]
    assert last.json()["code"] == "rate_limited"
    assert "5 changes" in last.json()["detail"]
    assert 0 < int(last.headers["Retry-After"]) <= 86_400
    # Neither another target, nor another visitor, nor a program.
    assert send(server, both, {"rating": "up"}, "other").status_code == 200
    assert send(server, other, {"rating": "up"}).status_code == 200
    assert [send(server, server.key, {"rating": rating}).status_code for rating in ratings] == [200] * 8
    server.clock.advance(seconds=int(last.headers["Retry-After"]))
    again = token(server, "one")
    assert send(server, again, {"rating": "up"}).status_code == 200
    with server.state.store.database.read() as connection:
        days = connection.execute(select(visitor_usage.c.day).distinct()).all()
    assert len(days) == 1


@pytest.mark.slow
def test_opinions_that_are_undone_count(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "MAX_CHANGES", 6)
    with server.connect() as h:
        entry = h.sessions.add_entry("page", "Who is the CEO?", "Ada.")
        claims = {"session_id": "page", "qa_id": entry.qa_id}
    key = token(server, "one", claims)
    address = f"{server.url}{BASE}/sessions/page/entries/{entry.qa_id}/feedback"
    headers = {"Authorization": f"Bearer {key}"}
    statuses = []
    for _ in range(5):
        statuses.append(httpx.put(address, json={"feedback_score": 5}, headers=headers).status_code)
        statuses.append(httpx.delete(address, headers=headers).status_code)
    assert statuses == [200] * 6 + [429] * 4


def retract(server: Running, key: str, event_id: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{server.url}{BASE}/events/{event_id}/retract", json={}, headers=headers)


@pytest.mark.slow
def test_retractions_by_id_count(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "MAX_CHANGES", 4)
    key = token(server)
    for _ in range(2):
        given = send(server, key, {"rating": "up"}).json()["feedback_id"]
        assert retract(server, key, given).status_code == 200
    refused = send(server, key, {"rating": "up"})
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")


def test_only_an_own_opinion_about_a_named_session_is_retracted(server: Running) -> None:
    key = token(server)
    foreign = send(server, token(server, "two"), {"rating": "up"}).json()["feedback_id"]
    elsewhere = send(server, token(server, "one", *BOTH), {"rating": "up"}, "other").json()["feedback_id"]
    for event_id in (foreign, elsewhere, "01a1ee7a-5b25-77b4-bd34-9ff33f400bf5"):
        refused = retract(server, key, event_id)
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    with server.connect() as h:
        assert [len(h.sessions.feedbacks(name).items) for name in ("page", "other")] == [1, 1]


@pytest.mark.slow
def test_a_refused_retraction_reads_no_opinions_of_the_sessions(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise AssertionError("all opinions of a session were read")

    names = [f"page {number}" for number in range(20)]
    with server.connect() as h:
        for name in names:
            h.sessions.create(name)
            h.sessions.add_session_feedback(name, {"rating": "up"})
    few, many = token(server), token(server, "one", *({"session_id": name} for name in names))
    for feedbacks in (SqlFeedbacks, MongoFeedbacks):
        monkeypatch.setattr(feedbacks, "of_session", fail)
    statements: list[str] = []
    counts = []
    with watched(lambda statement, _: statements.append(statement)):
        for key in (few, many):
            statements.clear()
            assert retract(server, key, "01a1ee7a-5b25-77b4-bd34-9ff33f400bf5").status_code == 404
            counts.append(len(statements))
    assert max(counts) <= 12, counts


@pytest.mark.slow
def test_nobody_gets_past_the_limit_by_sending_all_at_once(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "MAX_CHANGES", 5)
    key = token(server)
    with ThreadPoolExecutor(10) as threads:
        answers = threads.map(lambda n: send(server, key, {"rating": "up", "comment": str(n)}).status_code, range(30))
    assert Counter(answers) == {200: 5, 429: 25}


@pytest.mark.nightly
def test_all_visitors_share_a_budget_that_outlives_the_server(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_VISITOR_DAILY_BYTES", "20000")
    first, second = serve(), serve()
    with first.connect() as h, first.connect("quiet") as quiet:
        h.sessions.create("page")
        quiet.sessions.create("page")
        other = quiet.keys.create_token({"session_id": "page"}, subject="one").token
    keys = [token(first, f"{number}") for number in range(8)]
    long = words(3000)
    answers = [send([first, second][number % 2], key, long).status_code for number, key in enumerate(keys)]
    assert answers == [200] * 5 + [429] * 3
    refused = send(serve(), keys[-1], long)
    assert "visitor_daily_bytes" in refused.json()["detail"]
    # Neither the program nor the visitors of another project.
    assert send(second, second.key, long).status_code == 200
    headers = {"Authorization": f"Bearer {other}"}
    address = f"{first.url}/v1/projects/quiet/sessions/page/feedback"
    assert httpx.post(address, json={"feedback": long}, headers=headers).status_code == 200


def words(size: int) -> dict[str, Any]:
    return {"rating": "up", "comment": "x" * size}


def test_one_author_uses_a_part_of_the_budget_over_all_targets(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "MAX_BYTES", 8_000)
    monkeypatch.setenv("HEEDFUL_VISITOR_DAILY_BYTES", "200000")
    server = serve()
    with server.connect() as h:
        h.sessions.create("page")
        h.sessions.create("other")
    greedy, other = token(server, "greedy", *BOTH), token(server, "other", *BOTH)
    answers = [send(server, greedy, words(3000), session) for session in ("page", "other", "page", "other")]
    assert [each.status_code for each in answers] == [200, 200, 429, 429]
    assert "more than 10000 bytes of feedback of one author" in answers[-1].json()["detail"]
    # A new token of the same subject changes nothing, and others are not affected.
    assert send(server, token(server, "greedy", *BOTH), words(3000)).status_code == 429
    assert send(server, other, words(3000)).status_code == 200


def test_the_part_of_an_author_has_room_for_one_target() -> None:
    for most, part in ((50_000_000, 2_500_000), (100_000, visitors.MAX_BYTES), (0, 0)):
        assert visitors._limits("visitor-1", most)[1].bytes == part


@pytest.mark.slow
def test_visitors_without_a_subject_use_half_of_the_budget(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_VISITOR_DAILY_BYTES", "20000")
    server = serve()
    with server.connect() as h:
        h.sessions.create("page")
        h.sessions.create("other")
    anyone = token(server, None, *BOTH)
    answers = [send(server, anyone, words(4000), session) for session in ("page", "other", "page")]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert "more than 10000 bytes of feedback of visitors without a subject" in answers[-1].json()["detail"]
    assert send(server, anyone, {"rating": "down"}).status_code == 200
    assert send(server, token(server, "one"), words(4000)).status_code == 200


@pytest.mark.slow
def test_bare_ratings_have_a_reserve(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_VISITOR_DAILY_BYTES", "20000")
    server = serve()
    with server.connect() as h:
        h.sessions.create("page")
    assert [send(server, token(server, f"{n}"), words(9300)).status_code for n in range(2)] == [200, 200]
    assert send(server, token(server, "late"), words(700)).status_code == 429
    assert send(server, token(server, "late"), {"rating": "up", "page": "y" * 1000}).status_code == 429
    ratings = [send(server, token(server, f"late {n}"), {"rating": "up"}).status_code for n in range(10)]
    assert ratings == [200] * 4 + [429] * 6
    # A short comment is no bare rating.
    assert send(server, token(server, "late"), words(1)).status_code == 429


def test_comments_count_in_bytes_of_utf_8() -> None:
    size = visitors.size_of({"feedback": {"rating": "up", "comment": "😀" * 1000}})
    assert 4000 + visitors.EVENT_BYTES < size.bytes < 4100 + visitors.EVENT_BYTES
    assert not size.bare
    assert visitors.size_of({"session_id": "s", "feedback": {"rating": "up", "comment": ""}}).bare
    assert not visitors.size_of({"feedback": "short", "is_positive": True}).bare


@pytest.mark.nightly
def test_refused_feedback_leaves_nothing_and_takes_nothing_from_others(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = token(server)
    wrong = [send(server, key, {"rating": "sideways", "comment": "x" * 5000}).status_code for _ in range(5)]
    assert set(wrong) == {422}
    with server.state.store.database.read() as connection:
        assert connection.execute(select(func.sum(visitor_usage.c.bytes))).scalar_one() == 0
    monkeypatch.setattr(visitors, "MAX_CHANGES", 1)
    assert send(server, key, {"rating": "up"}).status_code == 200
    before = sizes(server)
    for number in range(15):
        assert send(server, key, {"rating": "down", "comment": f"{number}"}).status_code == 429
    server.state.refusals.flush()
    grown = sizes(server) - before
    assert set(grown) <= {"audit"}
    assert grown["audit"] <= 2


def test_feedback_on_executions_counts_with_its_changes(
    path: Path, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitors, "MAX_CHANGES", 4)
    cities = make_cities(tmp_path)
    monkeypatch.setenv("HEEDFUL_CONNECTOR_FOLDERS", str(tmp_path))
    with running(path, clock=clock, worker=False) as server, server.connect() as h:
        h.connectors.create("geo", cities.url)
        ran = h.executions.execute_query(IN_ITALY_SQL, connector_id="geo", question=IN_ITALY)
        made = h.keys.create_token({"execution_id": ran.execution_id}, subject="one").token
        with server.connect(key=made) as visitor:
            given = visitor.feedback.create(is_positive=True, execution_id=ran.execution_id)
            for positive in (False, True, False):
                visitor.feedback.update(given.id, is_positive=positive)
        refused = httpx.delete(f"{server.url}{BASE}/feedback/{given.id}", headers={"Authorization": f"Bearer {made}"})
        assert refused.status_code == 429, refused.text
