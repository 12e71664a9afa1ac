"""Every foreign route, fed with the ids and names of another project: nothing is read, and nothing changes there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from server import Running, running
from things import things

from heedful.interfaces.http.foreign_routes import FOREIGN_APIS

SECRET = "Zanzibar-77"
"""What only the other project knows."""

WIRES = [wire for module in FOREIGN_APIS for wire in module.ROUTES]

NAMES = [
    "id",
    "ids",
    "fact_id",
    "data_id",
    "dataset",
    "dataset_name",
    "datasetId",
    "datasets",
    "bank_id",
    "session_id",
    "sessionId",
    "qa_id",
    "user_id",
    "connector_id",
    "execution_id",
    "chat_message_id",
    "chat_session_id",
    "feedback_id",
    "custom_tool_id",
]
"""Fields of bodies and queries by which foreign clients name things."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("others") / "store.db", worker=False) as made:
        yield made


@pytest.fixture(scope="module")
def theirs(server: Running, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("databases")
    with server.connect("theirs") as h:
        h.remember(f"The password is {SECRET}.")
        made = things(h, folder, f"session {SECRET}")
        h.sessions.add_entry(made["session_id"], f"What is {SECRET}?", SECRET)
        h.sessions.add_session_feedback(made["session_id"], {"rating": "down", "comment": SECRET})
    return {name: value for name, value in made.items() if SECRET not in value} | {"project": "theirs"}


@pytest.fixture(scope="module")
def http(server: Running, theirs: dict[str, str]) -> Iterator[httpx.Client]:
    with server.connect("mine") as h:
        h.remember("Bo sings.")
        key = h.keys.create("all", scopes=["admin"]).api_key
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}) as client:
        yield client


def state(server: Running) -> Any:
    """All that can be read of the other project."""
    with server.connect("theirs") as h:
        return (
            [(fact.text, fact.metadata) for name in sorted(h.datasets()) for fact in h.facts(dataset=name).items],
            [each.name for each in h.connectors.list()],
            [each.model_dump() for each in h.sessions.list().items],
            [each.question for each in h.golden_examples.list()],
            len(h.keys.list()),
        )


@pytest.mark.slow
def test_no_foreign_route_reaches_another_project(server: Running, theirs: dict[str, str], http: httpx.Client) -> None:
    before = state(server)
    for wire in WIRES:
        for value in sorted({*theirs.values()}):
            path = re.sub(r"\{[^}]*\}", value.replace(" ", "%20"), wire.path)
            given = dict.fromkeys(NAMES, value)
            answer = http.request(
                wire.method,
                path,
                params=given if wire.method in ("GET", "DELETE") else None,
                json=None if wire.method in ("GET", "DELETE") else given | {"query": SECRET[:4], "text": "x"},
                headers={"X-Heedful-Project": "theirs"} if value == theirs["project"] else {},
            )
            assert SECRET not in answer.text, (wire.method, path, answer.status_code)
            assert answer.status_code < 500 or answer.status_code == 501, (wire.method, path, answer.text)
    assert state(server) == before
