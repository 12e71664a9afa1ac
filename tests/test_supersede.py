"""supersede: corrections that can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

import heedful
from heedful.testing import WordEmbedder


@pytest.fixture
def memory(tmp_path: Path) -> heedful.Heedful:
    return heedful.open(tmp_path / "store.db", embedding=WordEmbedder())


def texts(memory: heedful.Heedful, query: str = "Who is the CEO?") -> list[str]:
    return [hit.text for hit in memory.recall(query)]


def test_a_superseded_fact_is_not_recalled_and_its_correction_is(memory: heedful.Heedful) -> None:
    (old,) = memory.remember("The CEO is Ada.", metadata={"team": "board"}).fact_ids
    done = memory.supersede(old, "The CEO is now Bo.", author="ann")
    assert texts(memory) == ["The CEO is now Bo."]
    (hit,) = memory.recall("CEO").hits
    assert hit.fact_id == done.superseded_by
    assert hit.metadata == {"team": "board", "supersedes": old}


def test_retracting_a_supersession_brings_back_what_was(memory: heedful.Heedful) -> None:
    (old,) = memory.remember("The CEO is Ada.").fact_ids
    done = memory.supersede(old, "The CEO is now Bo.")
    memory.retract(done.event_id)
    assert texts(memory) == ["The CEO is Ada."]


def test_the_old_fact_stays_in_history_with_its_signals(memory: heedful.Heedful) -> None:
    (old,) = memory.remember("The CEO is Ada.").fact_ids
    memory.signal([{"fact_id": old, "signal_type": "helpful", "query": "Who is the CEO?"}])
    memory.supersede(old, "The CEO is now Bo.")
    assert memory.fact_stats(old).signal_count == 1


def test_an_existing_fact_can_supersede_another_and_stays_when_that_is_undone(memory: heedful.Heedful) -> None:
    old, new = memory.remember(["The CEO is Ada.", "Bo is the CEO."]).fact_ids
    done = memory.supersede(old, by=new)
    assert texts(memory) == ["Bo is the CEO."]
    memory.retract(done.event_id)
    assert set(texts(memory)) == {"The CEO is Ada.", "Bo is the CEO."}


def test_corrections_can_be_corrected_and_undone_one_by_one(memory: heedful.Heedful) -> None:
    (first,) = memory.remember("The CEO is Ada.").fact_ids
    second = memory.supersede(first, "The CEO is Bo.")
    third = memory.supersede(second.superseded_by, "The CEO is Cy.")
    assert texts(memory) == ["The CEO is Cy."]
    memory.retract(third.event_id)
    assert texts(memory) == ["The CEO is Bo."]


def test_a_supersession_survives_reopening_and_a_rebuilt_index(tmp_path: Path) -> None:
    with heedful.open(tmp_path / "s.db", embedding=WordEmbedder()) as memory:
        (old,) = memory.remember("The CEO is Ada.").fact_ids
        memory.supersede(old, "The CEO is now Bo.")
    with heedful.open(tmp_path / "s.db", embedding=WordEmbedder()) as memory:
        assert texts(memory) == ["The CEO is now Bo."]
        assert all(check.ok and not check.repaired for check in memory.doctor())


def test_a_file_that_is_remembered_again_keeps_its_corrections(memory: heedful.Heedful, tmp_path: Path) -> None:
    file = tmp_path / "people.md"
    file.write_text("The CEO is Ada.")
    (old,) = memory.remember(file).fact_ids
    memory.supersede(old, "The CEO is now Bo.")
    memory.remember(file)
    assert texts(memory) == ["The CEO is now Bo."]


def test_bad_supersessions_are_refused_and_change_nothing(memory: heedful.Heedful) -> None:
    (old,) = memory.remember("The CEO is Ada.").fact_ids
    (elsewhere,) = memory.remember("Bo is the CEO.", dataset="other").fact_ids
    with pytest.raises(heedful.Invalid, match="what supersedes"):
        memory.supersede(old)
    with pytest.raises(heedful.Invalid, match="itself"):
        memory.supersede(old, by=old)
    with pytest.raises(heedful.Invalid, match="another dataset"):
        memory.supersede(old, by=elsewhere)
    with pytest.raises(heedful.Invalid, match="blank"):
        memory.supersede(old, "  ")
    with pytest.raises(heedful.NotFound, match="no fact"):
        memory.supersede("nobody", "The CEO is now Bo.")
    assert texts(memory) == ["The CEO is Ada."]
    memory.supersede(old, "The CEO is now Bo.")
    with pytest.raises(heedful.Conflict, match="superseded already"):
        memory.supersede(old, "The CEO is now Cy.")


def test_a_correction_that_was_undone_can_be_made_again(store: heedful.Heedful) -> None:
    (old,) = store.remember("The CEO is Ada.").fact_ids
    for _ in range(2):
        done = store.supersede(old, "The CEO is Bo.")
        assert [hit.text for hit in store.recall("Who is the CEO?").hits] == ["The CEO is Bo."]
        store.retract(done.event_id)
        assert [hit.text for hit in store.recall("Who is the CEO?").hits] == ["The CEO is Ada."]
