"""The help desk of `heedful demo --dashboard`, as it is at a fixed moment."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sharing import make_once

from heedful.interfaces.cli.demo_commands import fill_demo
from heedful.testing import WordEmbedder

NOW = datetime(2026, 3, 13, 17, tzinfo=UTC)


@dataclass(frozen=True)
class HelpDeskStore:
    """A store that the demo filled, and the counts that it prints."""

    file: Path
    since: datetime
    until: datetime
    counts: dict[str, int]


@pytest.fixture(scope="session")
def help_desk(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], HelpDeskStore]:
    """Makes a copy of the demo's store, which is filled once."""

    def fill(folder: Path) -> None:
        filled = fill_demo(folder / "demo.db", NOW, WordEmbedder())
        (folder / "filled.json").write_text(json.dumps(asdict(filled), default=datetime.isoformat))

    def copy() -> HelpDeskStore:
        folder = tmp_path_factory.mktemp("help-desk")
        shutil.copytree(made := make_once(tmp_path_factory, "help-desk", fill), folder, dirs_exist_ok=True)
        filled = json.loads((made / "filled.json").read_text())
        since, until = (datetime.fromisoformat(filled[name]) for name in ("since", "until"))
        return HelpDeskStore(folder / "demo.db", since, until, filled["counts"])

    return copy
