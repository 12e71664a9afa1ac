"""The examples of the server's schema: one for each operation, true, and as the code is now."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

import heedful
from heedful.api import CALLS
from heedful.api.calls import Call

ROOT = Path(__file__).parents[1]
FILE = Path(heedful.__file__).parent / "interfaces/http/examples.json"


@cache
def stored() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(FILE.read_bytes())
    return found


def test_every_operation_has_one_and_they_are_small() -> None:
    assert list(stored()) == list(CALLS)
    assert FILE.stat().st_size < 120_000


@pytest.mark.parametrize("operation", CALLS.values(), ids=lambda operation: operation.name)
def test_the_request_is_one_that_the_operation_takes(operation: Call) -> None:
    request = stored()[operation.name]["request"]
    assert set(operation.in_path) <= set(request)
    given = {name: value for name, value in request.items() if name not in (*operation.in_path, *operation.headers)}
    operation.request.model_validate_json(orjson.dumps(given), strict=True)


@pytest.mark.parametrize("operation", CALLS.values(), ids=lambda operation: operation.name)
def test_the_response_is_one_that_the_operation_gives(operation: Call) -> None:
    result = operation.result
    response = stored()[operation.name]["response"]
    read = result.validate_json(orjson.dumps(response))
    assert result.dump_python(read, mode="json") == response


@pytest.mark.slow
def test_they_are_what_the_code_gives_now() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        module = importlib.import_module("docs.examples")
    finally:
        sys.path.remove(str(ROOT))
    assert orjson.loads(module.written()) == stored(), "run python -m docs.examples"
