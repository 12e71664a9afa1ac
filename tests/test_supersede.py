"""supersede: corrections that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

import heedful
from heedful.testing import ManualClock, WordEmbedder


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
    with pytest.raises(heedful.Invalid, match="replacement is missing"):
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
    with pytest.raises(heedful.Conflict, match="already superseded"):
        memory.supersede(old, "The CEO is now Cy.")


def test_a_correction_that_was_undone_can_be_made_again(store: heedful.Heedful) -> None:
    (old,) = store.remember("The CEO is Ada.").fact_ids
    for _ in range(2):
        done = store.supersede(old, "The CEO is Bo.")
        assert [hit.text for hit in store.recall("Who is the CEO?").hits] == ["The CEO is Bo."]
        store.retract(done.event_id)
        assert [hit.text for hit in store.recall("Who is the CEO?").hits] == ["The CEO is Ada."]


def test_a_correction_that_was_undone_is_shown_again_when_it_is_named_again(store: heedful.Heedful) -> None:
    (old,) = store.remember("The CEO is Ada.").fact_ids
    first = store.supersede(old, "The CEO is Bo.")
    store.retract(first.event_id)
    store.supersede(old, by=first.superseded_by)
    assert [hit.text for hit in store.recall("Who is the CEO?").hits] == ["The CEO is Bo."]


def test_what_is_superseded_itself_supersedes_nothing(store: heedful.Heedful) -> None:
    one, other = store.remember(["The CEO is Ada.", "Bo is the CEO."]).fact_ids
    store.supersede(one, by=other)
    with pytest.raises(heedful.Conflict, match="is superseded itself"):
        store.supersede(other, by=one)
    assert [hit.text for hit in store.recall("Who is the CEO?").hits] == ["Bo is the CEO."]


def found(store: heedful.Heedful) -> list[str]:
    return [hit.text for hit in store.recall("Who is the CEO?").hits]


def test_forgetting_a_correction_brings_back_what_it_replaced(store: heedful.Heedful) -> None:
    (old,) = store.remember("The CEO is Ada.").fact_ids
    store.signal([{"fact_id": old, "signal_type": "helpful", "query": "Who is the CEO?"}])
    before = store.fact_stats(old).overall_usefulness
    done = store.supersede(old, "The CEO is Bo.")
    assert store.forget(done.superseded_by).restored == [old]
    assert found(store) == ["The CEO is Ada."]
    assert [fact.fact_id for fact in store.facts().items] == [old]
    assert store.fact_stats(old).overall_usefulness == before
    assert store.fact_history(old).superseded_by is None
    assert all(check.ok and not check.repaired for check in store.doctor())
    store.supersede(old, "The CEO is Cy.")
    assert found(store) == ["The CEO is Cy."]


def test_forgetting_a_fact_that_took_the_place_of_others_brings_all_of_them_back(store: heedful.Heedful) -> None:
    first, second, new = store.remember(["The CEO is Ada.", "The CEO is Al.", "The CEO is Bo."], source="f").fact_ids
    (right,) = store.remember("The CEO is Di.").fact_ids
    for old in (first, second, new):
        store.supersede(old, by=right)
    assert sorted(store.forget([right, new]).restored) == sorted([first, second])
    assert sorted(found(store)) == ["The CEO is Ada.", "The CEO is Al."]


def test_a_chain_of_corrections_falls_back_one_at_a_time(store: heedful.Heedful) -> None:
    (first,) = store.remember("The CEO is Ada.").fact_ids
    second = store.supersede(first, "The CEO is Bo.").superseded_by
    third = store.supersede(second, "The CEO is Cy.").superseded_by
    assert store.forget(third).restored == [second]
    assert found(store) == ["The CEO is Bo."]
    assert store.forget(second).restored == [first]
    assert found(store) == ["The CEO is Ada."]


def test_forgetting_the_middle_of_a_chain_changes_no_recall(store: heedful.Heedful) -> None:
    (first,) = store.remember("The CEO is Ada.").fact_ids
    second = store.supersede(first, "The CEO is Bo.").superseded_by
    last = store.supersede(second, "The CEO is Cy.")
    assert store.forget(second).restored == []
    assert found(store) == ["The CEO is Cy."]
    store.retract(last.event_id)
    assert found(store) == ["The CEO is Ada."]


def test_sources_datasets_and_people_are_forgotten_likewise(store: heedful.Heedful) -> None:
    old, other = store.remember(["The CEO is Ada.", "The CFO is Ada."]).fact_ids
    (page,) = store.remember("The CEO is Bo.", source="page").fact_ids
    store.supersede(old, by=page)
    assert store.forget(source="page").restored == [old]
    store.supersede(old, "The CEO is Cy.", author="ann")
    store.supersede(other, "The CFO is Cy.", author="bob")
    assert store.forget(author="ann").restored == [old]
    assert {fact.text for fact in store.facts().items} == {"The CEO is Ada.", "The CFO is Cy."}
    assert store.forget(dataset="main_dataset").restored == []


def test_a_file_that_no_longer_says_it_gives_way_to_what_it_replaced(store: heedful.Heedful, tmp_path: Path) -> None:
    (old,) = store.remember("The CEO is Ada.").fact_ids
    file = tmp_path / "people.md"
    file.write_text("The CEO is Bo.")
    store.supersede(old, by=store.remember(file).fact_ids[0])
    file.write_text("The CFO is Di.")
    store.remember(file)
    assert {fact.text for fact in store.facts().items} == {"The CEO is Ada.", "The CFO is Di."}


Step = tuple[str, int, int]
sequences = st.lists(
    st.tuples(st.sampled_from(["text", "by", "retract", "forget"]), st.integers(0, 5), st.integers(0, 2)),
    min_size=2,
    max_size=12,
)


@some(1 / 4)
@given(steps=sequences)
@pytest.mark.nightly
def test_whatever_is_superseded_and_undone_recall_finds_what_stands(
    steps: list[Step], new_store: Callable[..., heedful.Heedful]
) -> None:
    """A fact is found unless supersessions that stand lead to another, or it was made by corrections and none of them
    stands."""
    with new_store(ManualClock()) as store:
        known = list(store.remember(["Ada leads sales.", "Bo leads sales."]).fact_ids)
        made: set[str] = set()
        gone: set[str] = set()
        active: dict[str, tuple[str, str]] = {}
        events: list[str] = []
        for action, place, which in steps:
            fact = known[place % len(known)]
            if action == "retract":
                if events:
                    event = events[place % len(events)]
                    store.retract(event)
                    active.pop(event, None)
                continue
            if action == "forget":
                if fact not in gone:
                    store.forget(fact)
                    gone.add(fact)
                continue
            try:
                if action == "text":
                    done = store.supersede(fact, ["Cy leads sales.", "Di leads sales.", "Ed leads sales."][which])
                else:
                    done = store.supersede(fact, by=known[which % len(known)])
            except (heedful.Conflict, heedful.Invalid, heedful.NotFound):
                continue
            if done.superseded_by not in known:
                known.append(done.superseded_by)
                made.add(done.superseded_by)
            active[done.event_id] = (fact, done.superseded_by)
            events.append(done.event_id)
            # Of facts with one text, recall shows one.
            assert store.fact(done.superseded_by).text in {hit.text for hit in store.recall("leads sales").hits}
        named = {new for _, new in active.values()}

        def replaced(fact: str) -> bool:
            successors = [new for old, new in active.values() if old == fact]
            return any(new not in gone or replaced(new) for new in successors)

        there = [fact for fact in known if fact not in gone]
        expected = {fact for fact in there if not replaced(fact) and (fact not in made or fact in named)}
        texts = {store.fact(fact).text for fact in expected}
        assert {hit.text for hit in store.recall("leads sales", top_k=50).hits} == texts
        assert {fact.fact_id for fact in store.facts().items} == expected
        assert expected or not set(known) - made - gone
