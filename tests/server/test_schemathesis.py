"""The server keeps to its own description: requests made from /openapi.json, right and wrong, find no fault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from server import Running, running
from things import things

from heedful.api import CALLS
from heedful.interfaces.http.calls import PREFIX
from heedful.testing import ScriptedModel

THOROUGH = os.environ.get("HEEDFUL_TEST_EXAMPLES") == "thorough"

PHASES = [
    "examples",
    pytest.param("coverage", marks=pytest.mark.nightly),
    *([pytest.param("fuzzing,stateful", marks=pytest.mark.hypothesis)] if THOROUGH else []),
]
"""What the examples of the schema make, and every night its edges and random requests."""

EXAMPLES = 10
"""Random requests for each operation."""

MAPPING = "what a mapping may hold (dotted names, operators, numbers of 64 bits) is more than a schema says"
ONE_OF = "one of several parameters has to be given, and each alone is optional"
MATCH = "a header can't be told not to be empty"
RANGE = "a time must begin before it ends, and a metadata key must be one that sessions have"
CONNECTOR = "which connector is meant depends on how many the project has; and SQL has a grammar of its own"

RATING = "a number may need the scale that it is on, and a word must be one that rates"

PAST = "a time must not be in the future"

REFUSES = {
    "signal": PAST,
    "recall": MAPPING,
    "facts": MAPPING,
    "remember": MAPPING,
    "sessions.create": MAPPING,
    "sessions.list": MAPPING,
    "sessions.update_metadata": MAPPING,
    "sessions.delete_metadata": MAPPING,
    "sessions.add_entry": MAPPING,
    "sessions.add_session_feedback": MAPPING,
    "sessions.rate": RATING,
    "insight.satisfaction": MAPPING,
    "insight.trend": RANGE,
    "insight.coverage": RANGE,
    "insight.cache": RANGE,
    "insight.themes": RANGE,
    "insight.notes": RANGE,
    "insight.rows": RANGE,
    "insight.training": RANGE,
    "insight.digest": RANGE,
    "supersede": ONE_OF,
    "forget": ONE_OF,
    "set_policy": ONE_OF,
    "signal_recall": ONE_OF,
    "sessions.add_feedback": ONE_OF,
    "feedback.create": ONE_OF,
    "feedback.create_positive": ONE_OF,
    "feedback.create_negative": ONE_OF,
    "feedback.update": ONE_OF,
    "keys.create_token": ONE_OF,
    "connectors.create": CONNECTOR,
    "executions.execute_query": CONNECTOR,
    "executions.execute_from_chat": CONNECTOR,
    "chat.execution_cache_lookup": CONNECTOR,
    "chat.chat_to_sql": CONNECTOR,
    "chat.chat_to_answer": CONNECTOR,
    "golden_examples.create": CONNECTOR,
    "golden_examples.update": CONNECTOR,
    "golden_examples.promote": CONNECTOR,
    "golden_examples.import_examples": CONNECTOR,
    "review.assign": MATCH,
    "review.dismiss": MATCH,
    "review.reopen": MATCH,
    "review.resolve": MATCH,
    "review.fix": ONE_OF,
    "review.ask_again": CONNECTOR,
}
"""Operations that may refuse what their schema allows, and why; all other checks hold for them too."""


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.slow
def test_nothing_is_found(phases: str, path: Path, tmp_path: Path) -> None:
    with running(path, language_model=ScriptedModel(lambda messages: "SELECT a FROM t")) as server:
        settings = tmp_path / "schemathesis.toml"
        with server.connect() as h:
            settings.write_text(_settings(server, {"project": "default", **things(h, tmp_path)}))
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "--config-file",
                str(settings),
                "run",
                f"{server.url}/openapi.json",
                f"--phases={phases}",
            ],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, "\n".join(line[:500] for line in done.stdout.splitlines()) + done.stderr


def _settings(server: Running, things: dict[str, str]) -> str:
    named = "\n".join(f"{name} = {{ values = [{_quoted(value)}] }}" for name, value in things.items())
    bound = "\n".join(f'"path.{name}" = {{ dictionary = "{name}", probability = 0.7 }}' for name in things)
    refusing = "\n".join(
        f"""[[operations]]
include-name = {_quoted(f"{CALLS[name].method} {PREFIX}{CALLS[name].path}")}
[operations.checks.positive_data_acceptance]
enabled = false"""
        for name in REFUSES
    )
    return f"""
workers = 1
continue-on-failure = true
warnings = false
headers = {{ Authorization = "Bearer {server.key}" }}
[generation]
mode = "all"
max-examples = {EXAMPLES}
deterministic = true
no-shrink = true
[checks]
enabled = true
[checks.positive_data_acceptance]
# 412: an If-Match that is made up is never that of what is there.
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 412]
[checks.negative_data_rejection]
# 413: a list of too many items may be a body of too many bytes.
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422]
[dictionaries]
{named}
[parameters]
{bound}
{refusing}
"""


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
