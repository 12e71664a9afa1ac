"""Writes a request and a response for each operation to the examples of the server: `python -m docs.examples`.

They come from the life of a project that the tests tell, with the same ids and times whenever it is told.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

import heedful
from heedful.api import CALLS
from heedful.api.calls import Call
from heedful.interfaces.client.surface import adapted
from heedful.testing import ManualClock, WordEmbedder

ROOT = Path(__file__).parents[1]
FILE = ROOT / "src/heedful/interfaces/http/examples.json"

SET: dict[str, Any] = {
    "execution_time_ms": 3,
    "api_key": "hf_0198c0de000070008000000000000001_mQ0v3xkJYb1n7sT9cUe2ZrLwPaHf5gDi8oXyRtEjNqM",
    "token": "hft_WyJkZWZhdWx0IiwiSWRhIl0.c2lnbmVk",
    "if_match": "7215fb597d5e94a20ba0674293d6b1f7",
    "attempts": 1,
    "error": "nobody is at the desk",
}
"""What would be another each time."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def examples() -> dict[str, Any]:
    """By the names of operations: what is given, by the names of parameters, and what comes back."""
    sys.path.insert(0, str(ROOT / "tests/integration"))
    try:
        import scenario
    finally:
        sys.path.pop(0)
    with TemporaryDirectory() as folder:
        world = scenario.make_world(Path(folder))
        clock = ManualClock()
        store = Path(folder, "heedful.db")
        with heedful.open(
            store,
            clock=clock,
            embedding=WordEmbedder(),
            language_model=scenario.model(),
            feedback_hook=scenario.hook(),
            worker=False,
        ) as engine:
            steps = scenario.live(engine, clock, world)
        stable = _Stable(folder)
        found: dict[str, Any] = {}
        for name, operation in CALLS.items():
            step = next(each for each in steps if each.name == name and not isinstance(each.result, scenario.Failure))
            request = _request(operation, step.args, step.kwargs)
            response = operation.result.dump_python(step.result, mode="json")
            found[name] = {"request": stable.of(request), "response": stable.of(response)}
    return found


def _request(operation: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    _, given, _ = adapted(operation, operation.arguments(args, kwargs))
    return {
        name: to_jsonable_python(value, exclude_none=True)
        for name, value in given.items()
        if name not in operation.callbacks and value is not None
    }


class _Stable:
    """Makes values the same each time: ids are numbered, and numbers of a processor rounded."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._ids: dict[str, str] = {}

    def of(self, value: Any, name: str = "") -> Any:
        if name in SET:
            return SET[name]
        if name == "next_at" and value is not None:
            return "2026-01-01T00:04:00Z"
        if isinstance(value, dict):
            return {self.of(key): self.of(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.of(each) for each in value]
        if isinstance(value, float):
            return round(value, 4)
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        return _ID.sub(self._numbered, text.replace(self._folder, "/data"))

    def _numbered(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"0198c0de-0000-7000-8000-{len(self._ids) + 1:012}")


def written() -> bytes:
    """The file, as it should be."""
    return orjson.dumps(examples(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    FILE.write_bytes(written())
    print(f"wrote {FILE.relative_to(ROOT)}")
