"""Keys and tokens in the engine: what is kept of them, what they allow, and when they end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from server import running

from heedful import Heedful
from heedful.access import credentials
from heedful.errors import Forbidden, Invalid, NotFound
from heedful.interfaces.http.state import Caller, Callers, presented_key
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder


def stored_bytes(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.iterdir() if each.name.startswith(path.name))


def test_the_store_has_no_secret(store: Heedful, path: Path) -> None:
    made = store.keys.create("app")
    token = store.keys.create_token({"session_id": "s"})
    assert made.api_key.startswith("hf_")
    assert made.key_id.encode() in stored_bytes(path)
    assert made.api_key.encode() not in stored_bytes(path)
    assert made.api_key.split("_", 2)[2].encode() not in stored_bytes(path)
    assert token.token.encode() not in stored_bytes(path)


def test_a_key_is_shown_once(store: Heedful) -> None:
    made = store.keys.create("app", scopes=["read"], rate_limit=5)
    assert made.api_key not in repr(made)
    assert made.api_key not in repr(store.keys.list())
    assert "api_key" not in store.keys.list()[0].model_dump()
    token = store.keys.create_token({"session_id": "s"})
    assert token.token not in repr(token)


def test_keys_are_listed_with_their_scopes_and_revoked_ones_stay(store: Heedful) -> None:
    first = store.keys.create("first", scopes=["feedback", "read", "read"])
    second = store.keys.create("second")
    assert first.scopes == ["read", "feedback"]
    assert second.scopes == ["read", "write", "feedback"]
    revoked = store.keys.revoke(first.key_id)
    assert revoked.revoked_at is not None
    assert store.keys.revoke(first.key_id) == revoked
    assert [(each.name, each.revoked_at is None) for each in store.keys.list()] == [("first", False), ("second", True)]


def test_no_key_of_another_project_is_listed_or_revoked(path: Path) -> None:
    opened = Store(path, embedding=WordEmbedder())
    mine, theirs = opened.open("mine"), opened.open("theirs")
    made = theirs.keys.create("app")
    assert mine.keys.list() == []
    with pytest.raises(NotFound):
        mine.keys.revoke(made.key_id)
    assert theirs.keys.list()[0].revoked_at is None
    mine.close()
    theirs.close()
    opened.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"name": "a\0b"},
        {"name": "n", "scopes": []},
        {"name": "n", "scopes": "read"},
        {"name": "n", "scopes": ["root"]},
        {"name": "n", "scopes": [None]},
        {"name": "n", "rate_limit": 0},
        {"name": "n", "rate_limit": True},
        {"name": "n", "rate_limit": 1.5},
    ],
)
def test_keys_that_cant_be_made(store: Heedful, arguments: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        store.keys.create(**arguments)
    assert store.keys.list() == []


@pytest.mark.parametrize(
    ("targets", "options"),
    [
        ([], {}),
        ({}, {}),
        ({"qa_id": "q"}, {}),
        ({"session_id": "s", "execution_id": "e"}, {}),
        ({"session_id": ""}, {}),
        ({"fact_id": "f"}, {}),
        ([{"session_id": str(number)} for number in range(101)], {}),
        ({"session_id": "s"}, {"expires_in": 0}),
        ({"session_id": "s"}, {"expires_in": 86_401}),
        ({"session_id": "s"}, {"expires_in": True}),
        ({"session_id": "s"}, {"author": "a\0"}),
    ],
)
def test_tokens_that_cant_be_made(store: Heedful, targets: Any, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        store.keys.create_token(targets, **options)


def test_a_token_is_good_where_it_was_signed_and_until_it_ends(clock: ManualClock) -> None:
    claims = credentials.Claims("p", "zoe", ({"session_id": "s"},), 100)
    token = credentials.sign_claims(claims, b"secret")
    assert credentials.verify_token(token, [b"secret"], 99) == claims
    for known, now, code in (
        ([b"secret"], 100, "token_expired"),
        ([b"other"], 0, "token_invalid"),
        ([], 0, "token_invalid"),
    ):
        with pytest.raises(Forbidden) as caught:
            credentials.verify_token(token, known, now)
        assert caught.value.code == code


def test_what_does_not_look_like_a_key_is_none() -> None:
    good = credentials.new_secret("01a1de65-1509-7046-830e-8dd8ce9c4106")
    assert credentials.id_of(good) == "01a1de65-1509-7046-830e-8dd8ce9c4106"
    for bad in ("", "hf_", "hf__x", good[3:], good.replace("_", "-"), "hf_" + "z" * 32 + "_x", good.partition("_")[0]):
        assert credentials.id_of(bad) is None


class TestCallers:
    @pytest.mark.slow
    def test_uses_are_noted_and_revoked_keys_end_within_a_second(self, path: Path) -> None:
        clock = ManualClock()
        opened = Store(path, clock=clock, embedding=WordEmbedder())
        engine = opened.open("p")
        made = engine.keys.create("app", scopes=["read"], rate_limit=7)
        assert engine.keys.list()[0].last_used_at is None
        callers = Callers(opened, None)
        found = callers.find(made.api_key)
        assert found == Caller(made.key_id, "p", frozenset({"read"}), 7)
        callers.close()
        assert engine.keys.list()[0].last_used_at == clock()
        assert callers.remembered(made.api_key) == found
        engine.keys.revoke(made.key_id)
        time.sleep(1.01)
        assert callers.remembered(made.api_key) is None
        with pytest.raises(Forbidden):
            callers.find(made.api_key)
        for bad in (made.api_key[:-1], f"{made.api_key}x", "admin", "", "hft_x"):
            with pytest.raises(Forbidden):
                callers.find(bad)
            assert callers.remembered(bad) is None
        engine.close()
        opened.close()

    def test_admin_includes_all(self, path: Path) -> None:
        opened = Store(path, embedding=WordEmbedder())
        engine = opened.open("p")
        callers = Callers(opened, None)
        found = callers.find(engine.keys.create("root", scopes=["admin"]).api_key)
        callers.close()
        for scope in ("read", "write", "feedback", "admin"):
            found.check(scope)
        with pytest.raises(NotFound):
            found.choose("another")
        engine.close()
        opened.close()

    def test_the_key_of_the_environment_opens_all_projects(self, path: Path) -> None:
        opened = Store(path, embedding=WordEmbedder())
        found = Callers(opened, "a-long-enough-key").find("a-long-enough-key")
        assert found.choose("any") == "any"
        with pytest.raises(Forbidden):
            Callers(opened, None).find("a-long-enough-key")
        opened.close()


@pytest.mark.parametrize(
    ("authorization", "api_key", "found"),
    [
        ("Bearer k", None, "k"),
        ("bearer   k ", None, "k"),
        ("Basic k", "x", "x"),
        (None, " x ", "x"),
        ("Bearer k", "x", "k"),
        ("Bearer", None, None),
        ("k", None, None),
        (None, "", None),
        (None, None, None),
    ],
)
def test_where_a_key_is_looked_for(authorization: str | None, api_key: str | None, found: str | None) -> None:
    if found is None:
        with pytest.raises(Forbidden):
            presented_key(authorization, api_key)
    else:
        assert presented_key(authorization, api_key) == found


@pytest.mark.parametrize(
    ("authorization", "text"),
    [
        (None, "no key was sent"),
        ("Bearer ", "no key was sent"),
        ("hf_secret", "the header Authorization has no scheme before the key"),
        ("Basic secret", "the header Authorization has another scheme than Bearer"),
    ],
)
def test_what_is_wrong_with_a_header_is_said_and_not_what_it_holds(authorization: str | None, text: str) -> None:
    with pytest.raises(Forbidden) as caught:
        presented_key(authorization, None)
    assert (caught.value.code, caught.value.message) == ("key_missing", text)
    assert "secret" not in str(caught.value)


def test_a_project_s_admin_sees_its_own_project_alone(path: Path) -> None:
    with running(path) as server, server.connect("theirs") as theirs, server.connect("mine") as mine:
        theirs.remember("x")
        key = mine.keys.create("root", scopes=["admin"]).api_key
        headers = {"Authorization": f"Bearer {key}"}
        assert httpx.get(f"{server.url}/v1/projects", headers=headers).json() == ["mine"]
        every = httpx.get(f"{server.url}/v1/projects", headers={"Authorization": f"Bearer {server.key}"}).json()
        assert sorted(every) == ["mine", "theirs"]
        assert "theirs" not in httpx.get(f"{server.url}/metrics", headers=headers).text


def test_a_key_that_may_only_read_can_not_keep_an_answer(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        h.remember("Anna leads the company")
        key = h.keys.create("reader", scopes=["read"]).api_key
        with server.connect(key=key) as reader:
            assert len(reader.recall("Who leads the company")) == 1
            with pytest.raises(Forbidden, match="write"):
                reader.recall("Who leads the company", session_id="chat")
        assert not h.sessions.exists("chat")


def test_nor_can_it_by_a_route_of_another_system(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        h.remember("Anna leads the company")
        key = h.keys.create("reader", scopes=["read"]).api_key
        for extra, status in (({}, 200), ({"session_id": "chat"}, 403), ({"sessionId": "chat"}, 403)):
            parameters = {"query": "Who leads the company", **extra}
            answer = httpx.post(f"{server.url}/api/v1/recall", json=parameters, headers={"X-API-Key": key})
            assert answer.status_code == status, answer.text
        assert not h.sessions.exists("chat")
