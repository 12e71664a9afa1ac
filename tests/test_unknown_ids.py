"""An id of nothing is NotFound, whichever call takes it and wherever it is made."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server import running
from things import things

import heedful
from heedful import NotFound
from heedful.api import CALLS
from heedful.clock import new_id
from heedful.testing import ManualClock, WordEmbedder

NAMED = {
    "by": "fact_id",
    "used": "fact_id",
    "helpful": "fact_id",
    "not_helpful": "fact_id",
    "fact_ids": "fact_id",
    "feedback_ids": "feedback_id",
    "session_ids": "session_id",
}
"""Parameters that name things, and are not called after them."""

LISTS = {"used", "helpful", "not_helpful", "fact_ids", "feedback_ids", "session_ids"}

VALUES: dict[str, Any] = {
    "answer": "Ada.",
    "assignee": "bob",
    "content": "x",
    "examples": [{"question": "Which a?", "sql_query": "SELECT a FROM t"}],
    "feedback": {"rating": "up"},
    "feedback_score": 3,
    "is_positive": True,
    "keys": ["team"],
    "messages": [{"role": "user", "content": "x"}],
    "metadata": {"team": "red"},
    "policy": "adaptive",
    "query": "Who is the CEO?",
    "question": "Which a?",
    "role": "user",
    "sql_query": "SELECT a FROM t",
    "table": "facts",
    "texts": ["x"],
    "user_query": "Which a?",
}
"""What the other parameters get, where they are required."""

ALSO: dict[tuple[str, str], dict[str, Any]] = {
    ("supersede", "fact_id"): {"text": "Bo is the CEO."},
    ("sessions.add_entry", "used"): {"recall_id": "recall_id"},
    ("sessions.add_feedback", "session_id"): {"feedback_score": 3},
    ("sessions.add_feedback", "qa_id"): {"feedback_score": 3},
    ("sessions.rate", "external_id"): {"rating": "up"},
    ("review.fix", "item_id"): {"action": "block", "execution_id": "execution_id"},
    ("review.fix", "fact_id"): {"action": "supersede", "text": "Bo is the CEO."},
    ("review.fix", "by"): {"action": "supersede", "fact_id": "fact_id"},
    ("review.fix", "event_id"): {"action": "retract"},
    ("review.fix", "execution_id"): {"action": "block"},
    ("review.fix", "connector_id"): {"action": "add_example", "question": "Which a?", "sql_query": "SELECT a FROM t"},
    ("insight.training", "dataset"): {"format": "kto"},
    ("signal", "dataset"): {"signals": [{"fact_id": "fact_id", "signal_type": "used", "query": "q"}]},
}
"""What some calls need besides; a value that is the name of a thing is the id of that."""

CREATED = {
    ("recall", "session_id"),
    ("recall", "external_id"),
    ("remember", "dataset"),
    ("create_dataset", "dataset"),
    ("sessions.create", "session_id"),
    ("sessions.add_message", "session_id"),
    ("sessions.add_messages", "session_id"),
    ("sessions.add_entry", "session_id"),
    ("sessions.add_entry", "external_id"),
    ("executions.execute_query", "external_id"),
}
"""Names that the call gives to something new, if nothing has them."""

ANSWERS: dict[tuple[str, str], Any] = {
    # The document that these come from promises False.
    ("sessions.add_feedback", "session_id"): False,
    ("sessions.add_feedback", "qa_id"): False,
    ("sessions.delete_feedback", "session_id"): False,
    ("sessions.delete_feedback", "qa_id"): False,
    # The answer may come after its rating, which waits.
    ("sessions.rate", "external_id"): {"status": "waiting"},
    ("sessions.exists", "session_id"): False,
    # A batch does what it can.
    ("feedback.bulk_delete", "feedback_ids"): {"deleted_count": 0},
    # The system that this comes from has an empty list.
    ("feedback.get_feedback_for_message", "chat_message_id"): {"total": 0},
}
"""The calls that answer about what is not there, and what they say."""

NO_THINGS = {("insight.satisfaction", "by"), ("insight.trend", "by"), ("insight.notes", "by")}

PLACES = [
    (name, parameter)
    for name, operation in CALLS.items()
    for parameter in operation.signature.parameters
    if parameter.endswith("_id") or parameter == "dataset" or parameter in NAMED
    if (name, parameter) not in NO_THINGS | CREATED
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Any, dict[str, str]]]]:
    """An engine and a client of a server, each with one of each thing."""
    folder: Path = tmp_path_factory.mktemp("unknown")
    with (
        heedful.open(folder / "own.db", embedding=WordEmbedder(), clock=ManualClock(), worker=False) as engine,
        running(folder / "served.db") as server,
        server.connect() as client,
    ):
        yield {
            "engine": (engine, things(engine, folder, "a session")),  # type: ignore[arg-type]
            "client": (client, things(client, folder, "another session")),
        }


@pytest.mark.parametrize("where", ["engine", "client"])
@pytest.mark.parametrize(("name", "parameter"), PLACES)
@pytest.mark.slow
def test_it_is_not_found(name: str, parameter: str, where: str, world: dict[str, tuple[Any, dict[str, str]]]) -> None:
    memory, ids = world[where]
    call = memory
    for part in name.split("."):
        call = getattr(call, part)
    arguments = _arguments(name, parameter, ids)
    if (name, parameter) in ANSWERS:
        result, expected = call(**arguments), ANSWERS[name, parameter]
        fields = {field: getattr(result, field) for field in expected} if isinstance(expected, dict) else result
        assert fields == expected
        return
    with pytest.raises(NotFound) as caught:
        call(**arguments)
    assert caught.value.message


def _arguments(name: str, parameter: str, ids: dict[str, str]) -> dict[str, Any]:
    unknown = new_id()
    arguments: dict[str, Any] = {parameter: [unknown] if parameter in LISTS else unknown}
    for other, about in CALLS[name].signature.parameters.items():
        if other != parameter and about.default is inspect.Parameter.empty:
            thing = ids.get(NAMED.get(other, other))
            value = VALUES.get(other) if thing is None else thing
            if value is not None:
                arguments[other] = [value] if other in LISTS else value
    more = _filled(ALSO.get((name, parameter), {}), ids)
    return {**arguments, **more}


def _filled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, ids) for inner in value]
    return ids.get(value, value) if isinstance(value, str) else value
