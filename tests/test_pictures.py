"""The pictures of the dashboard are there, small enough, and shown where the dashboard is told of."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from docs.pictures import FOLDER, LARGEST, PICTURES, Picture

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "use-the-dashboard.md"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_has_its_size_and_few_bytes(picture: Picture) -> None:
    content = picture.file.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (picture.size["width"], picture.size["height"])
    assert len(content) <= LARGEST


def test_every_picture_is_shown_with_words_for_those_who_do_not_see_it() -> None:
    shown = re.findall(r"!\[(.+)\]\(\.\./images/(dashboard-[\w-]+\.png)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(name for _, name in shown) == sorted(picture.file.name for picture in PICTURES)
    assert sorted(path.name for path in FOLDER.glob("dashboard-*.png")) == sorted(name for _, name in shown)
