"""cognee's HTTP interface, as its own client speaks it, and the flow of its guide to feedback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import wires
from wires import served

from heedful import Heedful

FACTS = ["Parcels may be returned within 30 days.", "Opened software can not be returned.", "Refunds take two weeks."]
QUESTION = "When may parcels be returned?"
SESSION = "/api/v1/sessions/my_session"


@pytest.fixture
def http(store: Heedful) -> Iterator[httpx.Client]:
    with served(store) as url, wires.client(url) as client:
        yield client


def post(http: httpx.Client, path: str, **body: Any) -> Any:
    answer = http.post(f"/api/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def uploaded(*texts: str | bytes) -> list[tuple[str, tuple[str, bytes, str]]]:
    """Texts as cognee's client sends them."""
    return [
        ("data", (f"text_{place}.txt", text if isinstance(text, bytes) else text.encode(), "text/plain"))
        for place, text in enumerate(texts)
    ]


def texts_of(store: Heedful, dataset: str = "main_dataset") -> list[str]:
    return [fact.text for fact in store.facts(dataset=dataset).items]


def test_the_documented_flow(http: httpx.Client, store: Heedful) -> None:
    post(http, "remember", data=FACTS, dataset_name="main_dataset", self_improvement=False)
    (result,) = post(http, "recall", query_text=QUESTION, query_type="GRAPH_COMPLETION", session_id="my_session")
    assert result["text"] == "Parcels may be returned within 30 days. [1]"
    assert (result["source"], result["kind"], result["dataset_name"]) == ("graph", "graph_completion", "main_dataset")
    entries = http.get(f"{SESSION}/entries", params={"last_n": 5}).json()
    latest = entries[-1]
    assert (latest["qa_id"], latest["question"], latest["answer"]) == (result["qa_id"], QUESTION, result["text"])
    assert {"context", "time", "feedback_text", "feedback_score"} <= latest.keys()
    feedback = f"{SESSION}/entries/{latest['qa_id']}/feedback"
    values = {"feedback_text": "Very helpful and accurate", "feedback_score": 5}
    http.headers["X-Heedful-Author"] = "ada"  # Without it, a visitor says so, who changes nothing.
    assert http.post(feedback, json=values).json() == {"success": True}
    assert values.items() <= http.get(f"{SESSION}/entries").json()[-1].items()
    done = post(http, "improve", dataset_name="main_dataset", session_ids=["my_session"])
    assert (done["status"], done["stages"][0]["counts"]["signals_added"]) == ("completed", 1)
    fact = store.facts().items[0]
    assert store.fact_stats(fact.fact_id).overall_usefulness > 0.5
    reply = post(http, "recall", query=QUESTION, searchType="CHUNKS", feedbackInfluence=0.5, topK=2)
    assert [each["kind"] for each in reply] == ["chunk", "chunk"]
    assert reply[0]["fact_id"] == reply[0]["metadata"]["fact_id"] == fact.fact_id
    assert store.receipt(reply[0]["recall_id"]).usefulness_weight == 0.5
    assert http.delete(feedback).json() == {"success": True}
    assert http.get(f"{SESSION}/entries").json()[-1]["feedback_score"] is None
    assert store.fact_stats(fact.fact_id).overall_usefulness == 0.5


def test_texts_are_uploaded_as_its_client_does(http: httpx.Client, store: Heedful) -> None:
    answer = http.post(
        "/api/v1/remember",
        data={"datasetName": "library", "self_improvement": "false", "session_id": "my_session", "labels": ""},
        files=uploaded("Books cost nothing.", "Maps cost a little."),
    )
    done = answer.json()
    assert (done["status"], done["dataset_name"], done["items_processed"]) == ("completed", "library", 2)
    assert done["session_ids"] == ["my_session"]
    assert texts_of(store, "library") == ["Books cost nothing.", "Maps cost a little."]
    assert [each["fact_id"] for each in done["items"]] == [
        fact.fact_id for fact in store.facts(dataset="library").items
    ]
    assert {fact.metadata["session_id"] for fact in store.facts(dataset="library").items} == {"my_session"}
    assert store.sessions.exists("my_session")


def test_a_form_may_hold_plain_texts_and_metadata_for_each(http: httpx.Client, store: Heedful) -> None:
    metadata = json.dumps([{"source": "crm"}, None])
    fields = {"datasetName": "main_dataset", "raw_data": "Said in a field.", "external_metadata": metadata}
    answer = http.post("/api/v1/remember", data=fields, files=uploaded("Said in a file."))
    assert answer.status_code == 200, answer.text
    assert {fact.text: fact.metadata for fact in store.facts().items} == {
        "Said in a file.": {"source": "crm"},
        "Said in a field.": {},
    }


@pytest.mark.slow
def test_self_improvement_is_on_unless_it_is_switched_off(
    open_store: Callable[..., Heedful], http: httpx.Client, store: Heedful
) -> None:
    post(http, "remember", data=FACTS, self_improvement=False)
    (result,) = post(http, "recall", query=QUESTION, session_id="my_session")
    store.sessions.add_feedback("my_session", result["qa_id"], feedback_score=5)
    fact_id = store.facts().items[0].fact_id
    post(http, "remember", data="Parcels are weighed.")
    store.close()
    assert open_store().fact_stats(fact_id).signal_count == 1


def test_entries_and_feedback_are_kept_by_the_route_of_its_client(http: httpx.Client, store: Heedful) -> None:
    entry = {"type": "qa", "question": "Why?", "answer": "Because.", "context": "", "feedback_text": None}
    reply = post(http, "remember/entry", entry=entry, session_id="my_session", skill_improvement=None)
    assert (reply["status"], reply["entry_type"]) == ("session_stored", "qa")
    feedback = {"type": "feedback", "qa_id": reply["entry_id"], "feedback_text": "No.", "feedback_score": 1}
    assert post(http, "remember/entry", entry=feedback, session_id="my_session")["entry_id"] == reply["entry_id"]
    found = store.sessions.entry("my_session", reply["entry_id"])
    assert (found.question, found.answer, found.feedback_score, found.feedback_text) == ("Why?", "Because.", 1, "No.")
    rated = post(http, "remember/entry", entry={**entry, "feedback_score": 4}, session_id="my_session")
    assert store.sessions.entry("my_session", rated["entry_id"]).feedback_score == 4


def test_sessions_are_listed_and_shown_with_their_entries(http: httpx.Client, store: Heedful) -> None:
    for name in ("first", "second", "third"):
        store.sessions.add_entry(name, f"{name}?", "yes")
    store.sessions.add_entry("third", "and?", "no")
    page = http.get("/api/v1/sessions", params={"limit": 2}).json()
    assert ([each["session_id"] for each in page["sessions"]], page["total"]) == (["third", "second"], 3)
    assert page["has_more"]
    last = http.get("/api/v1/sessions", params={"limit": 2, "offset": 2, "range": "all"}).json()
    assert ([each["session_id"] for each in last["sessions"]], last["has_more"]) == (["first"], False)
    shown = http.get("/api/v1/sessions/third").json()
    assert (shown["session_id"], shown["label"], shown["msg_count"]) == ("third", "third?", 2)
    assert [each["question"] for each in shown["qas"]] == ["third?", "and?"]
    newest = http.get("/api/v1/sessions/third", params={"last_n": 1}).json()
    assert [each["question"] for each in newest["qas"]] == ["and?"]


@pytest.mark.parametrize(
    ("kind", "mode", "answers"),
    [
        (None, "graph", True),
        ("HYBRID_COMPLETION", "hybrid", True),
        ("GRAPH_COMPLETION_DECOMPOSITION", "graph", True),
        ("CHUNKS", "semantic", False),
        ("CHUNKS_LEXICAL", "lexical", False),
    ],
)
def test_search_types_mean_what_they_mean_in_python(
    http: httpx.Client, store: Heedful, kind: str | None, mode: str, answers: bool
) -> None:
    store.remember(FACTS)
    first = post(http, "recall", query=QUESTION, search_type=kind)[0]
    assert store.receipt(first["recall_id"]).mode == mode
    assert (first["fact_id"] is None) == answers
    assert first["search_type"] == (kind or "GRAPH_COMPLETION")


def test_only_the_context_is_given_and_nothing_is_kept(http: httpx.Client, store: Heedful) -> None:
    store.remember(FACTS)
    reply = post(http, "recall", query=QUESTION, session_id="my_session", only_context=True, top_k=2)
    assert (len(reply), reply[0]["text"]) == (2, FACTS[0])
    assert not store.sessions.exists("my_session")


@pytest.mark.slow
def test_a_fact_a_dataset_or_everything_is_forgotten(http: httpx.Client, store: Heedful) -> None:
    ids = store.remember(FACTS).fact_ids
    store.remember("x", dataset="second")
    store.remember("y", dataset="third")
    store.sessions.add_entry("my_session", "a?", "b")
    assert post(http, "forget", dataset="main_dataset", dataId=ids[0])["status"] == "success"
    assert texts_of(store) == FACTS[1:]
    assert http.post("/api/v1/forget", json={"dataset": "second", "data_id": ids[1]}).status_code == 404
    assert post(http, "forget", dataset="second", memory_only=False) == {"dataset_name": "second", "status": "success"}
    assert [each["name"] for each in http.get("/api/v1/datasets").json()] == ["main_dataset", "third"]
    assert post(http, "forget", everything=True) == {"datasets_removed": 2, "status": "success"}
    assert http.get("/api/v1/datasets").json() == []
    assert not store.sessions.exists("my_session")


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("recall", {}, "query"),
        ("recall", {"query": " "}, "query"),
        ("recall", {"query": "x", "feedback_influence": 2}, "feedback_influence"),
        ("recall", {"query": "x", "search_type": "CYPHER"}, "query_type"),
        ("recall", {"query": "x", "search_type": "NOTHING"}, "query_type"),
        ("recall", {"query": "x", "datasets": ["a", "b"]}, "datasets"),
        ("recall", {"query": "x", "node_name": ["a"]}, "node_name"),
        ("recall", {"query": "x", "scope": "code"}, "scope"),
        ("recall", {"query": "x", "top_k": 0}, "top_k"),
        ("remember", {}, "data"),
        ("remember", {"data": ""}, "data"),
        ("remember", {"data": "x", "dataset_id": "1"}, "dataset_id"),
        ("remember", {"data": ["x", "y"], "external_metadata": [{}]}, "metadata"),
        ("remember/entry", {"entry": {"type": "trace"}, "session_id": "s"}, "entry"),
        ("remember/entry", {"entry": {"type": "qa", "answer": "x"}, "session_id": "s"}, "entry"),
        ("remember/entry", {"entry": {"type": "qa", "question": "x", "answer": "x"}}, "session_id"),
        ("forget", {}, "dataset"),
        ("forget", {"dataset": "x", "memory_only": True}, "memory_only"),
        ("improve", {"dataset_id": "1"}, "dataset_id"),
    ],
)
def test_a_request_that_cant_be_accepted_is_a_400_that_says_where(
    http: httpx.Client, store: Heedful, route: str, body: dict[str, Any], field: str
) -> None:
    answer = http.post(f"/api/v1/{route}", json=body)
    assert answer.status_code == 400, answer.text
    (problem,) = answer.json()["detail"]
    assert problem["loc"][:2] == ["body", field]
    assert store.datasets() == []


@pytest.mark.parametrize("params", [{"range": "7d"}, {"status": "running"}, {"limit": 0}])
def test_a_list_of_sessions_that_cant_be_made_is_refused(http: httpx.Client, params: dict[str, Any]) -> None:
    assert http.get("/api/v1/sessions", params=params).status_code == 400


def test_a_file_that_is_no_text_is_refused(http: httpx.Client, store: Heedful) -> None:
    answer = http.post("/api/v1/remember", data={"datasetName": "x"}, files=uploaded("fine", b"\xff\xfe\x00"))
    assert answer.status_code == 400
    assert "UTF-8" in answer.json()["detail"][0]["msg"]
    assert store.datasets() == []


@pytest.mark.parametrize("score", [0, 6, 2.5, None])
def test_a_rating_that_is_none_is_a_400(http: httpx.Client, store: Heedful, score: Any) -> None:
    qa_id = store.sessions.add_entry("my_session", "a?", "b").qa_id
    answer = http.post(f"{SESSION}/entries/{qa_id}/feedback", json={"feedback_score": score})
    assert answer.status_code == 400
    assert store.sessions.entry("my_session", qa_id).feedback_score is None


def test_what_is_not_there_is_a_404(http: httpx.Client, store: Heedful) -> None:
    store.sessions.create("my_session")
    feedback = f"{SESSION}/entries/nobody/feedback"
    answers = [
        http.post(feedback, json={"feedback_score": 5}),
        http.delete(feedback),
        http.get("/api/v1/sessions/nowhere"),
        http.get("/api/v1/sessions/nowhere/entries"),
        http.post("/api/v1/forget", json={"dataset": "nowhere"}),
        http.post("/api/v1/recall", json={"query": "x", "datasets": ["nowhere"]}),
        http.post(
            "/api/v1/remember/entry",
            json={"entry": {"type": "feedback", "qa_id": "nobody", "feedback_score": 1}, "session_id": "my_session"},
        ),
    ]
    assert [answer.status_code for answer in answers] == [404] * 7
    assert all("no" in answer.json()["detail"] for answer in answers)


@pytest.mark.parametrize(
    ("method", "route", "instead"),
    [
        ("POST", "add", "remember"),
        ("POST", "cognify", "remember"),
        ("POST", "search", "recall"),
        ("GET", "search", "recall"),
        ("DELETE", "delete", "forget"),
    ],
)
def test_what_is_not_here_is_answered_with_what_to_use(
    http: httpx.Client, method: str, route: str, instead: str
) -> None:
    answer = http.request(method, f"/api/v1/{route}")
    assert answer.status_code == 501
    assert f"Use POST /api/v1/{instead}" in answer.json()["detail"]
