"""Calls that are sent again count once, and changes that were overtaken are refused."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from server import Running, running
from sqlalchemy import select

from heedful.access import repeated_calls
from heedful.access.repeated_calls import LEASE, run_once
from heedful.errors import Conflict, Invalid
from heedful.storage import open_store
from heedful.storage.schema import requests
from heedful.testing import ManualClock


def post(server: Running, path: str, body: Any, key: str | None = None, method: str = "POST") -> httpx.Response:
    headers = {"Authorization": f"Bearer {server.key}"} | ({} if key is None else {"Idempotency-Key": key})
    url = f"{server.url}/v1/projects/default{path}"
    return httpx.request(method, url, headers=headers, json=body, timeout=30)


CALLS: list[tuple[str, Any, Callable[[Any], int]]] = [
    ("/sessions/s/messages", {"role": "user", "content": "hello"}, lambda h: len(h.sessions.messages("s").items)),
    ("/sessions/s/entries", {"question": "q", "answer": "a"}, lambda h: len(h.sessions.entries("s").items)),
    ("/sessions/s/feedback", {"feedback": {"rating": "up"}}, lambda h: len(h.sessions.feedbacks("s").items)),
    ("/chat-sessions", {"name": "one"}, lambda h: len(h.chat_sessions.list().items)),
]
"""Some calls that would count twice: two whose key the engine keeps, and others whose key the server keeps."""


@pytest.mark.slow
def test_the_same_key_and_body_get_the_same_answer_also_after_a_restart(path: Path) -> None:
    first = []
    with running(path) as server:
        for number, (where, body, _) in enumerate(CALLS):
            answers = [post(server, where, body, f"key-{number}") for _ in range(3)]
            assert {each.status_code for each in answers} == {200}
            assert len({each.content for each in answers}) == 1
            first.append(answers[0].content)
    with running(path) as server, server.connect() as h:
        for number, (where, body, count) in enumerate(CALLS):
            assert post(server, where, body, f"key-{number}").content == first[number]
            assert count(h) == 1


def test_the_same_key_with_another_body_or_another_call_is_a_conflict(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        h.sessions.create("t")
        for number, (where, body, count) in enumerate(CALLS):
            assert post(server, where, body, f"key-{number}").status_code == 200
            other = orjson.loads(orjson.dumps(body).replace(b"one", b"two").replace(b"hello", b"bye"))
            other = {**other, "answer": "b"} if "answer" in other else other
            other = {**other, "author": "bo"} if "feedback" in other else other
            sent = [(where, other)]
            if not where.endswith("feedback"):
                # The keys of session feedback are kept with the sessions, which may be in another store.
                sent.append(("/sessions", {"session_id": "u"}))
            for path_again, body_again in sent:
                again = post(server, path_again, body_again, f"key-{number}")
                assert (again.status_code, again.json()["code"]) == (409, "idempotency_key_reused")
            assert count(h) == 1


@pytest.mark.slow
def test_eight_at_once_count_once(path: Path) -> None:
    with running(path) as server, server.connect() as h, ThreadPoolExecutor(8) as pool:
        h.sessions.create("s")
        for number, (where, body, count) in enumerate(CALLS):
            sent = [pool.submit(post, server, where, body, f"key-{number}") for _ in range(8)]
            answers = [each.result() for each in sent]
            assert {each.status_code for each in answers} <= {200, 409}
            assert len({each.content for each in answers if each.status_code == 200}) == 1
            for each in answers:
                if each.status_code == 409:
                    assert each.json()["code"] == "in_progress"
                    assert each.headers["retry-after"] == "1"
            assert count(h) == 1


def test_a_call_that_failed_may_be_sent_again(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        body = {"question": "Which a?", "sql_query": "SELECT 1"}
        assert post(server, "/golden-examples", body, "k").status_code == 422
        assert post(server, "/sessions/none", None, "d", "DELETE").status_code == 404
        h.sessions.create("none")
        assert post(server, "/sessions/none", None, "d", "DELETE").status_code == 200
        assert post(server, "/sessions/none", None, "d", "DELETE").status_code == 200
        assert post(server, "/sessions/none", None, "e", "DELETE").status_code == 404


@pytest.mark.parametrize("key", ["x" * 201, " ", "日" * 201])
def test_keys_that_cant_be(path: Path, key: str) -> None:
    with running(path) as server:
        for where in ("/sessions/s/messages", "/sessions/s/feedback"):
            body = CALLS[0][1] if where.endswith("messages") else CALLS[2][1]
            headers = {b"Authorization": f"Bearer {server.key}".encode(), b"Idempotency-Key": key.strip().encode()}
            answer = httpx.post(f"{server.url}/v1/projects/default{where}", headers=headers, json=body)
            assert answer.status_code == 422


def test_keys_in_any_script_are_the_same_by_both_ways(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        h.sessions.create("s")
        items = [h.sessions.add_session_feedback("s", {"rating": "up"}, idempotency_key="日本語-é") for _ in range(2)]
        assert items[0] == items[1]
        for bad in ("a\nb", " a", "", "a\x7f"):
            with pytest.raises(Invalid):
                h.sessions.add_session_feedback("s", {"rating": "up"}, idempotency_key=bad)


def test_a_secret_is_shown_once_and_kept_nowhere(path: Path) -> None:
    with running(path) as server:
        made = post(server, "/keys", {"name": "n"}, "k").json()
        again = post(server, "/keys", {"name": "n"}, "k")
        assert (again.status_code, again.json()["code"]) == (409, "shown_once")
        token = post(server, "/tokens", {"targets": [{"session_id": "s"}]}, "t").json()["token"]
        with server.connect() as h:
            assert [each.key_id for each in h.keys.list()] == [made["key_id"]]
        kept = b"".join(each.read_bytes() for each in path.parent.iterdir() if each.name.startswith(path.name))
        assert made["key_id"].encode() in kept
        assert made["api_key"].encode() not in kept
        assert made["api_key"].split("_", 2)[2].encode() not in kept
        assert token.encode() not in kept


class TestOnce:
    def test_a_call_keeps_its_place_however_long_it_takes(self, any_store: str, monkeypatch: Any) -> None:
        clock = ManualClock()
        database = open_store(any_store)
        monkeypatch.setattr(repeated_calls, "RENEW_SECONDS", 0.01)
        monkeypatch.setattr("heedful.access.repeated_calls.HEARTBEAT", repeated_calls.Heartbeat())

        def now() -> int:
            return int(clock().timestamp() * 1_000_000)

        def until() -> int:
            with database.read("p") as connection:
                return int(connection.execute(select(requests.c.result)).scalar_one()["until"])

        def slow() -> str:
            for _ in range(20):
                clock.advance(seconds=LEASE / 1_000_000 / 2)
                while until() < now() + LEASE:
                    pass
                with pytest.raises(Conflict, match="in progress"):
                    run_once(database, "p", now, "k", b"f", lambda: "never")
            return "first"

        assert run_once(database, "p", now, "k", b"f", slow) == "first"
        assert run_once(database, "p", now, "k", b"f", lambda: "again") == "first"
        database.close()

    def test_a_process_that_stood_still_loses_its_place_and_leaves_the_key_alone(self, path: Path) -> None:
        clock = ManualClock()
        database = open_store(path)

        def now() -> int:
            return int(clock().timestamp() * 1_000_000)

        def slow() -> str:
            with pytest.raises(Conflict, match="in progress"):
                run_once(database, "p", now, "k", b"f", lambda: "never")
            clock.advance(seconds=LEASE / 1_000_000)
            assert run_once(database, "p", now, "k", b"f", lambda: "second") == "second"
            raise ValueError("the first one failed after all")

        with pytest.raises(ValueError, match="after all"):
            run_once(database, "p", now, "k", b"f", slow)
        assert run_once(database, "p", now, "k", b"f", lambda: "third") == "second"
        database.close()


class TestTags:
    def test_of_two_writers_one_wins(self, path: Path) -> None:
        with running(path) as server, server.connect() as h:
            h.sessions.create("s", metadata={"n": 0})
            url = f"{server.url}/v1/projects/default/sessions/s/metadata"
            key = {"Authorization": f"Bearer {server.key}"}
            tag = httpx.get(url, headers=key).headers["etag"]

            def write(number: int) -> int:
                body = {"metadata": {"n": number}}
                return httpx.patch(url, headers={**key, "If-Match": tag}, json=body).status_code

            with ThreadPoolExecutor(8) as pool:
                assert sorted(pool.map(write, range(1, 9))) == [200] + [412] * 7
            late = httpx.patch(url, headers={**key, "If-Match": tag}, json={"metadata": {"n": 9}})
            assert late.json()["code"] == "changed_meanwhile"
            assert httpx.patch(url, headers={**key, "If-Match": "*"}, json={"metadata": {"n": 9}}).status_code == 200

    def test_what_did_not_change_is_not_sent(self, path: Path) -> None:
        with running(path) as server, server.connect() as h:
            h.sessions.create("s", metadata={"n": 0})
            url = f"{server.url}/v1/projects/default/sessions/s/metadata"
            key = {"Authorization": f"Bearer {server.key}"}
            first = httpx.get(url, headers=key)
            same = httpx.get(url, headers={**key, "If-None-Match": first.headers["etag"]})
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
            changed = httpx.patch(url, headers=key, json={"metadata": {"n": 1}})
            now = httpx.get(url, headers={**key, "If-None-Match": first.headers["etag"]})
            assert now.json() == {"n": 1}
            assert now.headers["etag"] == changed.headers["etag"]
