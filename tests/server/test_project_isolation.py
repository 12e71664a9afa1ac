"""Projects, scopes and tokens: what is not yours is not there, and what you may not do is not done."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from server import Running, running
from things import things

from heedful.api import CALLS
from heedful.api.calls import Call
from heedful.clock import new_id
from heedful.model import SCOPES

BODIES: dict[str, Any] = {
    "signal_recall": {"helpful": []},
    "detect": {"answer": "Ada."},
    "supersede": {"text": "Bo is the CEO."},
    "sessions.add_message": {"role": "user", "content": "hello"},
    "sessions.add_messages": {"messages": [{"role": "user", "content": "hello"}]},
    "sessions.update_message": {"content": "hello again"},
    "sessions.update_metadata": {"metadata": {"team": "red"}},
    "sessions.add_entry": {"question": "q", "answer": "a"},
    "sessions.add_feedback": {"feedback_score": 1},
    "sessions.rate": {"rating": "down"},
    "sessions.add_session_feedback": {"feedback": {"rating": "down"}},
    "feedback.update": {"is_positive": False},
    "chat.chat_to_sql": {"query": "Which a?"},
    "chat.chat_to_answer": {"query": "Which a?"},
    "chat.confirm_suggestion": {"user_query": "Which a?", "execution_id": "none", "connector_id": "none"},
    "golden_examples.update": {"question": "Which b?"},
    "review.assign": {"assignee": "Ada"},
    "review.fix": {"action": "add_example", "question": "Which b?", "sql_query": "SELECT a FROM t"},
}
"""What the operations need beside the ids in their paths."""

QUERIES = {"sessions.delete_metadata": {"keys": "team"}}

NAMED_IN_BODIES = [
    ("recall", {"query": "q"}, "session_id"),
    ("supersede", {}, "by"),
    ("sessions.add_entry", {"question": "q", "answer": "a"}, "recall_id"),
    ("executions.execute_query", {"sql_query": "SELECT 1"}, "connector_id"),
    ("executions.execute_query", {"sql_query": "SELECT a FROM t"}, "chat_message_id"),
    ("feedback.create", {"is_positive": True}, "execution_id"),
    ("feedback.create", {"is_positive": True}, "chat_message_id"),
    ("feedback.create_positive", {}, "execution_id"),
    ("feedback.create_negative", {}, "chat_message_id"),
    ("chat.execution_cache_lookup", {"user_query": "Which a?"}, "connector_id"),
    ("chat.chat_to_sql", {"query": "Which a?"}, "connector_id"),
    ("golden_examples.create", {"question": "q", "sql_query": "SELECT 1"}, "connector_id"),
    ("golden_examples.promote", {}, "execution_id"),
    ("golden_examples.import_examples", {"examples": []}, "connector_id"),
]

EMPTY = {"sessions.exists", "feedback.get_feedback_for_message", "recall"}
"""Operations that answer about what is not there instead of refusing."""

MAKES = {"sessions.add_message", "sessions.add_messages", "sessions.add_entry", "sessions.rate", "create_dataset"}
"""Operations that make what they name in their own project, if it is not there, or wait for it."""

WITH_IDS = [name for name, operation in CALLS.items() if "{" in operation.path]


@dataclass(frozen=True, slots=True)
class Two:
    """A server with two projects that have one of each thing, one for what calls make, and a key for each."""

    server: Running
    ids: dict[str, dict[str, str]]
    keys: dict[str, str]
    http: httpx.Client

    def send(
        self, operation: Call, project: str, key: str | None, ids: dict[str, str], body: Any = None
    ) -> httpx.Response:
        path = f"/v1/projects/{project}" + operation.path.format(**ids)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.http.request(
            operation.method,
            path,
            headers=headers,
            params=QUERIES.get(operation.name),
            json=body if operation.method not in ("GET", "DELETE") else None,
        )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder: Path = tmp_path_factory.mktemp("two")
    with running(folder / "store.db") as server:
        ids, keys = {}, {}
        for project in ("mine", "theirs"):
            with server.connect(project) as h:
                ids[project] = {**things(h, folder, f"session of {project}"), "alert_id": new_id()}
                keys[project] = h.keys.create("all", scopes=["admin"]).api_key
        with server.connect("making") as h:
            keys["making"] = h.keys.create("all", scopes=["admin"]).api_key
        with httpx.Client(base_url=server.url) as http:
            yield Two(server, ids, keys, http)


def normalized(response: httpx.Response, ids: dict[str, str]) -> Any:
    """What an answer says, but for the ids that it was asked about."""
    text = response.text
    for each in sorted(ids.values(), key=len, reverse=True):
        text = text.replace(each, "ID")
    found = httpx.Response(200, text=text).json()
    if isinstance(found, dict):
        found.pop("request_id", None)
    return response.status_code, found


@pytest.mark.parametrize("name", WITH_IDS)
@pytest.mark.slow
def test_what_is_another_projects_is_as_what_was_never_there(two: Two, name: str) -> None:
    operation = CALLS[name]
    unknown = {each: new_id() for each in two.ids["theirs"]}
    body = BODIES.get(name, {})
    asker = "making" if name in MAKES else "mine"
    never = normalized(two.send(operation, asker, two.keys[asker], unknown, body), unknown)
    theirs = two.ids["theirs"] | {"session_id": new_id()}
    with two.server.connect("theirs") as h:
        h.sessions.create(theirs["session_id"])
    foreign = normalized(two.send(operation, asker, two.keys[asker], theirs, body), theirs)
    if name in MAKES:
        assert foreign[0] == never[0] == 200
        return
    assert foreign == never
    assert never[0] == (200 if name in EMPTY else 404), never


@pytest.mark.parametrize(("name", "body", "field"), NAMED_IN_BODIES)
@pytest.mark.slow
def test_bodies_cant_name_what_is_another_projects(two: Two, name: str, body: dict[str, Any], field: str) -> None:
    operation = CALLS[name]
    kind = {"by": "fact_id"}.get(field, field)
    unknown = {kind: new_id()}
    mine = two.ids["mine"]
    never = normalized(two.send(operation, "mine", two.keys["mine"], mine, {**body, field: unknown[kind]}), unknown)
    theirs = {kind: two.ids["theirs"][kind]}
    foreign = normalized(two.send(operation, "mine", two.keys["mine"], mine, {**body, field: theirs[kind]}), theirs)
    if name == "recall":
        assert foreign[0] == never[0] == 200
        return
    assert foreign == never
    assert never[0] == 404, never


@pytest.mark.parametrize("name", list(CALLS))
def test_a_key_of_another_project_finds_no_project(two: Two, name: str) -> None:
    for project in ("theirs", "nobody's"):
        answer = two.send(CALLS[name], project, two.keys["mine"], two.ids["theirs"], {})
        if CALLS[name].everywhere:
            assert (answer.status_code, answer.json()["code"]) == (403, "project_key")
            continue
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert answer.json()["detail"] == f"no project {project!r}" or project == "nobody's"
        assert answer.json()["remedy"].startswith("This key opens project 'mine': name that one")


def test_after_all_that_the_other_project_is_as_it_was(two: Two) -> None:
    with two.server.connect("theirs") as h:
        theirs = two.ids["theirs"]
        assert h.sessions.get_metadata(theirs["session_id"]) == {"team": "green"}
        assert [each.answer for each in h.sessions.entries(theirs["session_id"]).items] == ["Ada."]
        assert h.sessions.entry(theirs["session_id"], theirs["qa_id"]).feedback_score is None
        assert h.feedback.get(theirs["feedback_id"]).is_positive
        assert h.golden_examples.get(theirs["example_id"]).question == "Which a?"
        assert {each.revoked_at for each in h.keys.list()} == {None}


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.nightly
def test_every_operation_asks_for_a_key_and_for_its_scope(two: Two, name: str) -> None:
    operation = CALLS[name]
    nobody = two.send(operation, "mine", None, two.ids["mine"], {})
    assert (nobody.status_code, nobody.json()["code"]) == (401, "key_missing")
    assert nobody.headers["www-authenticate"] == "Bearer"
    wrong = two.send(operation, "mine", f"{two.keys['mine']}x", two.ids["mine"], {})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "key_invalid")
    assert wrong.json()["title"] == "The key is not valid"
    less = two.send(operation, "mine", _without(two, operation), two.ids["mine"], {})
    assert (less.status_code, less.json()["code"]) == (403, "scope_missing")
    expected = "admin" if operation.scope == "admin" else f"{operation.scope} or admin"
    assert less.json()["remedy"].startswith(f"Use a key with {expected}; this key has ")


_LESS: dict[tuple[str, str], str] = {}


def _without(two: Two, operation: Call) -> str:
    """A key with every scope but the one that is needed; admin includes all, so that one is missing too."""
    wanted = (two.server.url, operation.scope)
    if wanted not in _LESS:
        scopes = [each for each in SCOPES if each not in (operation.scope, "admin")]
        with two.server.connect("mine") as h:
            _LESS[wanted] = h.keys.create("less", scopes=scopes).api_key
    return _LESS[wanted]


@pytest.mark.slow
def test_a_key_that_is_revoked_stops_within_a_second(two: Two) -> None:
    with two.server.connect("mine") as h:
        made = h.keys.create("short", scopes=["read"])
        with two.server.connect("mine", key=made.api_key) as short:
            assert "main_dataset" in short.datasets()
            h.keys.revoke(made.key_id)
            # The clock of the store stands still: what counts is the one that can't be set.
            time.sleep(1.05)
            answer = two.send(CALLS["datasets"], "mine", made.api_key, {})
            assert (answer.status_code, answer.json()["code"]) == (401, "key_invalid")


@pytest.fixture
def token(two: Two) -> Iterator[str]:
    """May rate one session and one execution of `mine`, for a minute."""
    mine = two.ids["mine"]
    with two.server.connect("mine") as h:
        named: list[dict[str, str]] = [
            {"session_id": mine["session_id"]},
            {"execution_id": mine["execution_id"]},
            {"session_id": mine["session_id"], "qa_id": mine["qa_id"]},
            {"recall_id": mine["recall_id"]},
        ]
        yield h.keys.create_token(named, author="zoe", expires_in=60).token


@pytest.mark.slow
def test_a_token_rates_what_it_names_and_nothing_else(two: Two, token: str) -> None:
    mine = two.ids["mine"]

    def send(name: str, body: Any, **others: str) -> httpx.Response:
        return two.send(CALLS[name], "mine", token, {**mine, **others}, body)

    reply = send("feedback.create", {"is_positive": False, "execution_id": mine["execution_id"], "author": "eve"})
    assert reply.json()["author"] == "zoe"
    assert send("sessions.add_feedback", {"feedback_score": 4}).json() is True
    given = send("sessions.add_session_feedback", {"feedback": {"rating": "up"}})
    assert given.status_code == 200
    assert send("signal_recall", {"helpful": [mine["fact_id"]]}).status_code == 200
    assert send("feedback.update", {"is_positive": True}, feedback_id=reply.json()["id"]).status_code == 200
    assert send("retract", {}, event_id=given.json()["feedback_id"]).status_code == 200
    assert send("feedback.delete", None, feedback_id=reply.json()["id"]).status_code == 200
    # Of others, or about others:
    assert send("feedback.update", {"is_positive": True}).status_code == 404
    assert send("feedback.delete", None).status_code == 404
    assert send("retract", {}).status_code == 404
    for body in ({"chat_message_id": mine["chat_message_id"]}, {}, {"execution_id": new_id()}):
        assert send("feedback.create", {"is_positive": True, **body}).status_code == 403
    assert send("sessions.add_feedback", {"feedback_score": 4}, qa_id=new_id()).status_code == 403
    assert send("signal_recall", {"helpful": []}, recall_id=new_id()).status_code == 403


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.nightly
def test_a_token_opens_no_other_project_and_reads_nothing(two: Two, token: str, name: str) -> None:
    operation = CALLS[name]
    ids = two.ids["theirs"]
    assert two.send(operation, "theirs", token, ids, BODIES.get(name, {})).status_code in (403, 404)
    if operation.scope != "feedback":
        refused = two.send(operation, "mine", token, two.ids["mine"], BODIES.get(name, {})).json()
        # A token may confirm a suggestion that it names.
        missing = f"has no scope {operation.scope!r}" if name != "chat.confirm_suggestion" else "does not allow this"
        assert (refused["code"], refused["detail"]) == ("scope_missing", f"the token {missing}")


def test_a_token_makes_no_tokens(two: Two, token: str) -> None:
    body = {"targets": [{"session_id": two.ids["mine"]["session_id"]}]}
    assert two.send(CALLS["keys.create_token"], "mine", token, {}, body).status_code == 403
    signals = {"signals": [{"fact_id": two.ids["mine"]["fact_id"], "signal_type": "helpful", "query": "q"}]}
    assert two.send(CALLS["signal"], "mine", token, {}, signals).status_code == 403


def test_a_token_that_was_touched_is_none(two: Two, token: str) -> None:
    body, _, seal = token.removeprefix("hft_").partition(".")
    plain = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    forged = base64.urlsafe_b64encode(plain.replace(b"zoe", b"eve")).decode().rstrip("=")
    touched = [f"hft_{forged}.{seal}", f"hft_{body}.", f"hft_{body}", "hft_.", "hft_", f"hft_{body}.{seal}=="]
    touched += [f"hft_{body}.{seal[:-1]}{letter}" for letter in "ABCDEFGH_-" if letter != seal[-1]]
    touched += [f"hft_{body[:4]}!{body[4:]}.{seal}", f"hft_{body}.{seal}.{seal}", token.upper()]
    for each in touched:
        answer = two.send(CALLS["sessions.add_feedback"], "mine", each, two.ids["mine"], {"feedback_score": 1})
        assert answer.status_code == 401, each


def test_a_token_ends(path: Path, tmp_path: Path) -> None:
    with running(path) as server, server.connect() as h:
        h.sessions.create("s")
        token = h.keys.create_token({"session_id": "s"}, expires_in=60)
        assert token.author.startswith("visitor-")
        with server.connect(key=token.token) as visitor:
            assert visitor.sessions.add_session_feedback("s", {"rating": "up"}) is not None
            server.clock.advance(seconds=60)
            answer = httpx.post(
                f"{server.url}/v1/projects/default/sessions/s/feedback",
                headers={"Authorization": f"Bearer {token.token}"},
                json={"feedback": {"rating": "up"}},
            )
        assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")


@pytest.mark.slow
def test_a_caller_who_calls_too_often_is_told_when_to_come_back(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        slow = h.keys.create("slow", rate_limit=1).api_key
        url = f"{server.url}/v1/projects/default/datasets"
        with httpx.Client(headers={"X-Api-Key": slow}) as http:
            answers = [http.get(url) for _ in range(5)]
        refused = [each for each in answers if each.status_code == 429]
        assert [each.status_code for each in answers[:2]] == [200, 200]
        assert refused
        assert {each.headers["retry-after"] for each in refused} == {"1"}
        assert (refused[0].json()["code"], refused[0].json()["detail"]) == ("rate_limited", "more than 1 call a second")
        assert httpx.get(url, headers={"X-Api-Key": server.key}).status_code == 200
