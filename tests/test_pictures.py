"""The pictures of the dashboard are there, small enough, and shown where the dashboard is told of."""

from __future__ import annotations

import importlib
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "howto" / "use-the-dashboard.md"


@pytest.fixture
def pictures() -> Iterator[ModuleType]:
    """docs/pictures.py, which is not installed and may not be on the path."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("docs.pictures")
    finally:
        sys.path.remove(str(ROOT))


def test_each_picture_has_its_size_and_few_bytes(pictures: ModuleType) -> None:
    for picture in pictures.PICTURES:
        content = picture.file.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert struct.unpack(">II", content[16:24]) == (picture.size["width"], picture.size["height"])
        assert len(content) <= pictures.LARGEST


def test_every_picture_is_shown_with_words_for_those_who_do_not_see_it(pictures: ModuleType) -> None:
    shown = re.findall(r"!\[(.+)\]\(\.\./images/(dashboard-[\w-]+\.png)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(name for _, name in shown) == sorted(picture.file.name for picture in pictures.PICTURES)
    assert sorted(path.name for path in pictures.FOLDER.glob("dashboard-*.png")) == sorted(name for _, name in shown)
