from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search import snapshot

ARRAYS: snapshot.Arrays = {
    "numbers": np.arange(100, dtype=np.int64),
    "table": np.arange(12, dtype=np.float32).reshape(3, 4),
    "none": np.empty((0, 4), np.float32),
    "flags": np.array([True, False, True]),
}
ABOUT = {"change": 7, "model": "m"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "1-1.index"
    snapshot.save(path, ABOUT, ARRAYS)
    return path


def test_what_was_saved_is_loaded(file: Path) -> None:
    loaded = snapshot.load(file)
    assert loaded is not None
    about, arrays = loaded
    assert about == ABOUT
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_saving_again_replaces_the_file_and_leaves_nothing_beside_it(file: Path) -> None:
    before = snapshot.load(file)
    snapshot.save(file, {"change": 8}, {"numbers": np.arange(3)})
    after = snapshot.load(file)
    assert before is not None
    assert after is not None
    assert after[0] == {"change": 8}
    np.testing.assert_array_equal(before[1]["numbers"], ARRAYS["numbers"])
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert snapshot.load(tmp_path / "nothing.index") is None


@pytest.mark.parametrize("content", [b"", b"\0", b"not an index at all", snapshot.MAGIC, snapshot.MAGIC + b"\xff" * 8])
def test_another_file_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "1-1.index"
    path.write_bytes(content)
    assert snapshot.load(path) is None


@pytest.mark.parametrize(
    "header", [b"[]", b"{}", b'{"about": {}, "arrays": {"a": ["?!", [1], 0]}}', b"null", b"\xff\xff"]
)
def test_a_header_that_makes_no_sense_is_none(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "1-1.index"
    path.write_bytes(snapshot.MAGIC + len(header).to_bytes(8, "little") + header + b"\0" * 64)
    assert snapshot.load(path) is None


def test_a_folder_in_its_place_is_none(tmp_path: Path) -> None:
    (tmp_path / "1-1.index").mkdir()
    assert snapshot.load(tmp_path / "1-1.index") is None


def test_a_truncated_file_is_none(file: Path) -> None:
    content = file.read_bytes()
    for length in range(0, len(content) - 64, 37):
        file.write_bytes(content[:length])
        assert snapshot.load(file) is None


@given(st.data())
def test_a_damaged_file_never_raises(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("damaged") / "1-1.index"
    snapshot.save(path, ABOUT, ARRAYS)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, 420))
    content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    snapshot.load(path)
