"""What the processes of one test run share: servers, and files that take long to make."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

State = dict[str, Any]
"""What a process has to know about a server that another one started."""


def run_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder that all workers of the run have."""
    base = factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder with something that the first process that needs it makes; nobody changes it afterwards."""
    folder = run_folder(factory, name)
    with _locked(folder):
        if not (folder / "made").exists():
            content = folder / "content"
            content.mkdir()
            make(content)
            (folder / "made").touch()
    return folder / "content"


@contextlib.contextmanager
def shared_server(folder: Path, start: Callable[[], State], stop: Callable[[State], None]) -> Iterator[State]:
    """A server that the first of several processes starts, and the last one stops."""
    file = folder / "state.json"
    with _locked(folder):
        known = json.loads(file.read_text()) if file.exists() else {**start(), "users": []}
        known["users"].append(os.getpid())
        file.write_text(json.dumps(known))
    try:
        yield known
    finally:
        with _locked(folder):
            known = json.loads(file.read_text())
            known["users"] = [each for each in known["users"] if each != os.getpid() and _runs(each)]
            if known["users"]:
                file.write_text(json.dumps(known))
            else:
                file.unlink()
                stop(known)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
