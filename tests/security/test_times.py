"""Times that no store can give back, sent to every call that takes one: before the year 1 or after 9999 in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args

import httpx
import pytest
from server import Running, running

from heedful import Heedful, Invalid
from heedful.api import CALLS
from heedful.interfaces.http.calls import PREFIX

EARLY = ("0001-01-01T00:00:00+14:00", "0001-01-01", "0001-01-01T00:00:00-14:00", "1969-12-31T23:59:59Z")
LATE = ("9999-12-31T23:59:59.999999-14:00",)

TAKING = [
    (name, field)
    for name, operation in CALLS.items()
    for field, info in operation.request.model_fields.items()
    if datetime in (info.annotation, *get_args(info.annotation))
]
"""Calls with a time among their parameters."""

RANGE = ("since", "until", "as_of")
"""Those that only say what is asked for."""

REQUIRED: dict[str, dict[str, Any]] = {
    "remember": {"texts": ["Ada is the CEO."]},
    "insight.rows": {"table": "signals"},
    "insight.satisfaction": {"by": "target_type"},
    "insight.training": {"format": "kto"},
    "sessions.add_message": {"role": "user", "content": "Hi"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("times") / "store.db", worker=False) as made:
        yield made


@pytest.fixture(scope="module")
def fact(server: Running) -> str:
    with server.connect() as h:
        h.sessions.create("s")
        return h.remember("Ada is the CEO.").fact_ids[0]


def send(server: Running, name: str, values: dict[str, Any]) -> httpx.Response:
    operation = CALLS[name]
    path = (PREFIX + operation.path).format(project="default", session_id="s")
    where: dict[str, Any] = {"params" if operation.in_query else "json": values}
    headers = {"Authorization": f"Bearer {server.key}"}
    return httpx.request(operation.method, server.url + path, headers=headers, timeout=60, **where)


def test_calls_with_times_are_found() -> None:
    assert {"remember", "replay", "audit", "sessions.add_message", "insight.digest", "insight.rows"} <= {
        name for name, _ in TAKING
    }


@pytest.mark.parametrize(("name", "field"), [each for each in TAKING if each[1] not in RANGE])
def test_every_call_refuses_what_can_not_be_stored(server: Running, fact: str, name: str, field: str) -> None:
    for moment in EARLY + LATE:
        answer = send(server, name, REQUIRED.get(name, {}) | {field: moment})
        told = answer.json()
        assert (answer.status_code, told["field"]) == (422, field), (moment, told)
        assert told["value"].startswith(moment[:10]), told


@pytest.mark.parametrize(("name", "field"), [each for each in TAKING if each[1] in RANGE])
def test_a_range_may_begin_and_end_at_any_time(server: Running, fact: str, name: str, field: str) -> None:
    # A report of the future is refused for another reason.
    for moment in EARLY if field == "since" else EARLY + LATE:
        answer = send(server, name, REQUIRED.get(name, {}) | {field: moment})
        assert answer.status_code == 200, (moment, answer.text)


@pytest.mark.parametrize("name", sorted({name for name, field in TAKING if field == "until"}))
def test_the_longest_range_is_answered(server: Running, fact: str, name: str) -> None:
    first, last = "1970-01-01", "9999-12-31T23:59:59.999999Z"
    for values in ({"since": first, "until": last}, {"until": "1970-01-02"}, {"since": first}, {"until": last}):
        answer = send(server, name, REQUIRED.get(name, {}) | values)
        assert answer.status_code == 200, (values, answer.text)


def test_no_signal_breaks_what_shows_it(server: Running, fact: str) -> None:
    signal = {"fact_id": fact, "signal_type": "not_helpful", "query": "Who leads?"}
    for moment in EARLY + LATE:
        answer = send(server, "signal", {"signals": [signal | {"at": moment}]})
        assert (answer.status_code, answer.json()["field"]) == (422, "signals[0].at"), moment
    assert send(server, "signal", {"signals": [signal | {"at": "1970-01-01T00:00:00Z"}]}).status_code == 200
    with server.connect() as h:
        assert h.review.list().items
        assert h.fact_history(fact).points
        assert h.fact_stats(fact)


def test_no_message_breaks_its_session(server: Running, fact: str) -> None:
    for moment in EARLY + LATE:
        message = {"role": "user", "content": "Hi", "at": moment}
        answer = send(server, "sessions.add_messages", {"messages": [message]})
        assert (answer.status_code, answer.json()["field"]) == (422, "messages[0].at"), moment
    with server.connect() as h:
        assert h.sessions.messages("s").items == []


def test_a_fact_may_expire_as_late_as_a_time_can_be(server: Running, fact: str) -> None:
    answer = send(server, "remember", {"texts": ["It is over at the end."], "expires_at": "9999-12-31T23:59:59Z"})
    assert answer.status_code == 200
    with server.connect() as h:
        assert h.fact(answer.json()["facts"][0]["fact_id"]).expires_at == datetime.fromisoformat("9999-12-31T23:59:59Z")


def test_the_engine_refuses_the_same(store: Heedful) -> None:
    early = datetime.fromisoformat("0001-01-01T00:00:00+14:00")
    store.sessions.create("s")
    with pytest.raises(Invalid, match="at is 0001-01-01T00:00:00\\+14:00, which is not in the years 1970 to 9999"):
        store.sessions.add_message("s", "user", "Hi", at=early)
    assert store.insight.digest(since=early)
