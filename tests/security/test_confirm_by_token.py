"""Tokens that confirm a suggestion: in the audience and on the connector of the execution that they name, no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cities import make_cities
from server import Running, running

from heedful.errors import Forbidden
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.testing import ManualClock

SQL = "SELECT people FROM city WHERE name = '{}'"
PROVEN = "What is the official census headcount figure of {}?"
ASKED = "the official census headcount figure of Paris, quickly"


@pytest.fixture
def server(path: Path, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("HEEDFUL_CONNECTOR_FOLDERS", str(tmp_path))
    with running(path, clock=clock, worker=False) as server, server.connect() as h:
        url = make_cities(tmp_path).url
        h.connectors.create("geo", url)
        h.connectors.create("other", url)
        yield server


def suggest(h: RemoteHeedful, audience: str | None) -> tuple[str, str]:
    """The execution suggested to an audience, and a token of Ann's that names it."""
    for city in ("Rome", "Oslo"):
        ran = h.executions.execute_query(
            SQL.format(city), connector_id="geo", question=PROVEN.format(city), audience=audience
        )
        h.feedback.create_positive(execution_id=ran.execution_id)
    likely = h.chat.execution_cache_lookup(ASKED, connector_id="geo", audience=audience).suggestion
    assert likely is not None
    token = h.keys.create_token({"execution_id": likely.execution_id, "question": ASKED}, author="ann").token
    return likely.execution_id, token


@pytest.mark.parametrize("audience", [None, "staff"])
@pytest.mark.slow
def test_a_token_proves_nothing_for_another_audience_or_connector(server: Running, audience: str | None) -> None:
    with server.connect() as h:
        execution, token = suggest(h, audience)
        before = len(h.executions.list().items)
        with server.connect(key=token) as visitor:
            with pytest.raises(Forbidden):
                visitor.chat.confirm_suggestion(ASKED, execution, audience="vip")
            for connector in ("other", "none"):
                with pytest.raises(Forbidden):
                    visitor.chat.confirm_suggestion(ASKED, execution, connector_id=connector)
        assert len(h.executions.list().items) == before


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("audience", [None, "staff"])
@pytest.mark.slow
def test_a_token_confirms_for_the_audience_of_what_it_names(server: Running, audience: str | None, named: bool) -> None:
    with server.connect() as h:
        execution, token = suggest(h, audience)
        with server.connect(key=token) as visitor:
            if named:
                done = visitor.chat.confirm_suggestion(ASKED, execution, connector_id="geo", audience=audience)
            else:
                done = visitor.chat.confirm_suggestion(ASKED, execution)
        assert (done.audience, done.result.rows) == (audience, [[2100000]])
        assert h.chat.execution_cache_lookup(ASKED, connector_id="geo", audience=audience).cache_hit
        if audience is not None:
            assert not h.chat.execution_cache_lookup(ASKED, connector_id="geo").cache_hit


@pytest.mark.slow
def test_a_token_confirms_what_a_golden_example_suggests(server: Running) -> None:
    with server.connect() as h:
        for city in ("Rome", "Oslo"):
            h.golden_examples.create(PROVEN.format(city), SQL.format(city), connector_id="geo")
        likely = h.chat.chat_to_answer(h.chat_sessions.create().id, ASKED, connector_id="geo").suggestion
        assert likely is not None
        token = h.keys.create_token({"execution_id": likely.execution_id, "question": ASKED}, author="ann").token
        with server.connect(key=token) as visitor:
            with pytest.raises(Forbidden):
                visitor.chat.confirm_suggestion(ASKED, likely.execution_id, audience="vip")
            assert visitor.chat.confirm_suggestion(ASKED, likely.execution_id).result.rows == [[2100000]]
