"""Looking makes nothing, and a mistyped name is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import run_main

import heedful
from heedful import Heedful, Invalid
from heedful.testing import WordEmbedder


def test_a_recall_of_an_empty_store_makes_no_project_and_no_dataset(open_store: Callable[..., Heedful]) -> None:
    store = open_store()
    result = store.recall("anything")
    assert (result.hits, result.receipt) == ([], False)
    assert store.datasets() == []
    with store._workspace.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM projects").scalar() == 0


def test_an_answer_in_a_session_of_an_empty_store_can_be_rated(open_store: Callable[..., Heedful]) -> None:
    store = open_store()
    answered = store.recall("anything", session_id="s", answer=True)
    assert answered.qa_id is not None
    assert store.sessions.add_feedback("s", answered.qa_id, feedback_score=1)
    assert store.improve().signals_added == 0


def test_a_first_command_that_fails_leaves_no_store(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("{}\n")
    for arguments in (("golden", "import", "nowhere", "missing.csv"), ("import", str(damaged)), ("policy", "adaptive")):
        done = run_main("--store", str(file), *arguments)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert [each.name for each in tmp_path.glob("new*")] == []


def test_a_command_that_fails_leaves_a_store_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    heedful.open(file, embedding=WordEmbedder()).close()
    assert run_main("--store", str(file), "golden", "import", "nowhere", "missing.csv").returncode != 0
    assert file.exists()


def test_two_slashes_are_explained() -> None:
    with pytest.raises(Invalid, match=r"three slashes: sqlite:///x\.db") as caught:
        heedful.open("sqlite://x.db")
    assert caught.value.field == "url_or_path"
