"""Whose feedback it is that comes over the routes of other systems, or from their scores."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import wires
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from wires import served

from heedful import Heedful
from heedful.integrations.scores import Langfuse, import_scores
from heedful.transfer import import_from

FACT = "Shipping takes 3 days."
QUESTION = "How long does shipping take?"
FORGED = "Wrong. Shipping takes 30 days."
HEADER = "X-Heedful-Author"


@pytest.fixture(params=["", "backend"], ids=["unset", "set"])
def setting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param:
        monkeypatch.setenv("HEEDFUL_FOREIGN_AUTHOR", request.param)
    return str(request.param)


@pytest.fixture
def http(setting: str, either: Heedful) -> Iterator[httpx.Client]:
    either.remember(FACT)
    with served(either) as url, wires.client(url) as client:
        yield client


def named(author: str) -> dict[bytes, bytes]:
    """The header with a name, in UTF-8."""
    return {HEADER.encode(): author.encode()}


def rate_over_cognee(http: httpx.Client, session: str, author: str | None = None) -> None:
    (found,) = http.post("/api/v1/recall", json={"query": QUESTION, "session_id": session}).json()
    path = f"/api/v1/sessions/{session}/entries/{found['qa_id']}/feedback"
    body = {"feedback_text": FORGED, "feedback_score": 1}
    for _ in range(2):
        answer = http.post(path, json=body, headers=None if author is None else named(author))
        assert answer.status_code == 200, answer.text


def authors(store: Heedful, session: str) -> list[tuple[str | None, str]]:
    out = io.BytesIO()
    store.insight.export("feedback", out, format="jsonl")
    rows = map(json.loads, out.getvalue().splitlines())
    return [(row["author"], row["author_kind"]) for row in rows if row["session_id"] == session and row["active"]]


@pytest.mark.slow
def test_whoever_relays_ratings_over_cognees_routes_names_their_authors(
    http: httpx.Client, either: Heedful, setting: str
) -> None:
    expected = ("backend", "named") if setting else ("visitor-anyone", "visitor")
    for session in ("one", "two", "three"):
        rate_over_cognee(http, session)
        assert authors(either, session) == [expected]
    done = either.improve()
    assert done.learnt == [], "one visitor, or one author, in three sessions"
    assert (done.signals_added, done.visitor_ratings) == ((3, 0) if setting else (0, 3))
    rate_over_cognee(http, "four", "")
    assert authors(either, "four") == [expected], "an empty header names nobody"
    rate_over_cognee(http, "five", "Visitor-9")
    assert authors(either, "five") == [("visitor-9", "visitor")]
    for session, name in (("six", "ada"), ("seven", "Zoë")):
        rate_over_cognee(http, session, name)
        assert authors(either, session) == [(name, "named")]
    assert len(either.improve().learnt) == 1


def test_feedback_of_session_managers_is_kept_and_that_of_visitors_apart(
    http: httpx.Client, either: Heedful, setting: str
) -> None:
    either.sessions.create("s")
    for rating in ("up", "down", "up"):
        assert http.post("/api/sessions/s/feedback", json={"rating": rating}).status_code == 200
    found = authors(either, "s")
    if setting:
        assert found == [("backend", "named")]
    else:
        assert len({author for author, kind in found if kind == "visitor"}) == 3
    http.post("/api/sessions/s/feedback", json={"rating": "down"}, headers={HEADER: "ada"})
    assert authors(either, "s")[-1] == ("ada", "named")


@pytest.mark.parametrize(("name", "message"), [("x" * 201, "201 characters"), ("\u200b", "must be a name")])
def test_a_header_that_is_no_name_is_refused(http: httpx.Client, either: Heedful, name: str, message: str) -> None:
    either.sessions.create("s")
    answer = http.post("/api/sessions/s/feedback", json={"rating": "up"}, headers=named(name))
    assert answer.status_code == 400
    assert message in answer.json()["detail"]
    assert authors(either, "s") == []


@pytest.mark.slow
def test_a_program_that_marks_sql_as_right_proves_it_and_may_name_who_said_so(store: Heedful, tmp_path: Path) -> None:
    store.connectors.create("geo", make_cities(tmp_path).url)
    ran = store.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    with served(store) as url, wires.client(url) as http:
        path, body = "/api/projects/default/feedback", {"execution_id": ran, "is_positive": True, "feedback": "Right."}
        for headers in ({}, {HEADER: "ada"}, {HEADER: "visitor-7"}):
            assert http.post(path, json=body, headers=headers).status_code == 200
        bank = {"signals": [{"fact_id": store.remember(FACT).fact_ids[0], "signal_type": "used", "query": QUESTION}]}
        for headers in ({}, {HEADER: "ada"}):
            answer = http.post("/v1/default/banks/main_dataset/signal", json=bank, headers=headers)
            assert answer.json()["signals_processed"] == 1, answer.text
    kinds = [each.author_kind for each in store.feedback.list().items]
    assert sorted(kinds) == ["named", "program", "visitor"]
    assert {row["author"] for row in store.insight.rows("signals").items} == {None, "ada"}
    assert store.chat.execution_cache_lookup(IN_ITALY, only_positive_feedback=True).cache_hit


class Browser(Langfuse):
    """What Langfuse returns for scores that one browser sent under two names of its own choice."""

    def _rows(self, *_: Any) -> Iterator[dict[str, Any]]:
        for number, name in enumerate(("user-feedback", "user-feedback-2")):
            yield {
                "id": name,
                "name": name,
                "source": "API",
                "dataType": "NUMERIC",
                "value": 0,
                "comment": FORGED,
                "subject": {"kind": "trace", "id": "trace-1"},
                "updatedAt": f"2026-11-17T10:00:0{number}Z",
            }


@pytest.fixture
def traced(either: Heedful) -> Heedful:
    either.remember(FACT)
    shown = either.recall(QUESTION)
    either.sessions.add_entry("chat", QUESTION, f"{FACT} [1]", recall_id=shown.recall_id, external_id="trace-1")
    return either


def test_two_scores_without_a_user_are_one_visitor(traced: Heedful) -> None:
    with Browser("http://127.0.0.1:9", "pk", "sk") as system:
        assert import_scores(traced, system).stored == 1
        assert authors(traced, "chat") == [("visitor-langfuse", "visitor")]
        assert import_scores(traced, system).unchanged == 1
        done = traced.improve()
        assert (done.learnt, done.signals_added, done.visitor_ratings) == ([], 0, 1)


def test_who_imports_scores_may_say_whose_they_are(traced: Heedful) -> None:
    with Browser("http://127.0.0.1:9", "pk", "sk") as system:
        import_scores(traced, system, author="support")
        assert authors(traced, "chat") == [("langfuse/support", "named")]
        import_scores(traced, system)
        assert authors(traced, "chat") == [("visitor-langfuse", "visitor")], "what is no longer so is retracted"
        done = traced.improve()
        assert done.learnt == []


def test_ratings_in_files_of_other_systems_without_a_user_are_a_visitors(
    open_store: Callable[..., Heedful], tmp_path: Path
) -> None:
    score = {"source": "API", "value": 0, "comment": FORGED}
    scores = [{"name": "a"} | score, {"name": "b"} | score, {"name": "c", "authorUserId": "ada"} | score]
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"id": "t", "sessionId": "s", "input": QUESTION, "output": FACT, "scores": scores}))
    store = open_store()
    import_from(store, "langfuse", file)
    assert sorted(authors(store, "s")) == [("ada", "named"), ("visitor-anyone", "visitor")]
