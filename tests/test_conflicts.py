"""Contradictions that are noticed on writing, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import heedful
from heedful import Heedful
from heedful.model import ReviewItem
from heedful.testing import ManualClock, WordEmbedder

OLD, NEW = "The Lisbon office opens at 8.", "The Lisbon office opens at 9."


def only(store: Heedful) -> ReviewItem:
    (item,) = store.review.list().items
    return item


@pytest.mark.slow
def test_another_value_of_the_same_thing_is_returned(any_store: str) -> None:
    with heedful.open(any_store, embedding=WordEmbedder()) as store:
        (old,) = store.remember([OLD]).fact_ids
        assert store.remember("Visitors sign in at the desk.").conflicts == []
        result = store.remember(NEW)
        (found,) = result.conflicts
        assert (found.fact_id, found.conflicts_with, found.text) == (result.fact_ids[0], old, OLD)
        assert (found.kind, found.value, found.other_value) == ("number", "9", "8")
        # Nothing is done about it.
        assert {fact.text for fact in store.facts().items} >= {OLD, NEW}
        item = only(store)
        assert (item.kind, item.target_type, item.opinions, item.status) == ("conflict", "fact", 1, "open")
        assert item.comment == f"Another fact says: {OLD}"
        case = store.review.get(item.item_id)
        assert [each.text for each in case.evidence] == [NEW, OLD]
        assert case.fixes == ["supersede", "retract"]
        store.supersede(old, by=result.fact_ids[0])
        assert store.review.list().items == []


@pytest.mark.parametrize(
    ("old", "new", "kind", "value"),
    [
        ("Returns are accepted within 30 days.", "Returns are now accepted within 45 days.", "number", "45"),
        ("Refunds take 5 days.", "Refunds take 2 weeks.", "number", "2 weeks"),
        ("Ada has two children.", "Ada has 3 children.", "number", "3"),
        ("The deadline is June 5.", "The deadline is June 12.", "date", "June 12"),
        ("The standup is on Monday.", "The standup is on Friday.", "date", "Friday"),
        ("Ada was born in 1984.", "Ada was born in 1985.", "date", "1985"),
        ("The CEO of Acme is Ada Berg.", "The CEO of Acme is Bo Lind.", "name", "Bo Lind"),
        ("Ada is the CEO of Acme.", "Bo is the CEO of Acme.", "name", "Bo"),
        ("Ada lives in Rome.", "Ada moved to Milan.", "name", "Milan"),
        ("Ada's email is ada@a.com.", "Ada's email is ada@b.com.", "name", "ada@b.com"),
    ],
)
def test_numbers_dates_and_names_are_compared(store: Heedful, old: str, new: str, kind: str, value: str) -> None:
    store.remember(old)
    assert [(each.kind, each.value) for each in store.remember(new).conflicts] == [(kind, value)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, "The Porto office opens at 9."),
        (OLD, "The Lisbon office closes at 18."),
        (OLD, "The Lisbon office opens at 8:00."),
        (OLD, "Does the Lisbon office open at 9?"),
        (OLD, "Maybe the Lisbon office opens at 9."),
        ("Room 4 is free.", "Room 5 is free."),
        ("Ada visited Rome.", "Ada visited Paris."),
        ("Ada ran 5 km.", "Ada ran 8 km."),
        ("Ada works in sales.", "Bo works in sales."),
        ("Revenue is 5 million in 2023.", "Revenue is 5 million in 2024."),
        ("Ada is the CEO of Acme.", "Ada Berg is the CEO of Acme."),
        ("The Pro plan costs 39 euros.", "The Team plan costs 59 euros."),
    ],
)
def test_what_both_can_be_true_is_no_conflict(store: Heedful, old: str, new: str) -> None:
    store.remember(old)
    assert store.remember(new).conflicts == []
    assert store.review.list().items == []


def test_facts_of_other_people_datasets_and_projects_do_not_conflict(open_store: Callable[..., Heedful]) -> None:
    store, other = open_store(), open_store(project="other")
    store.remember("I live in Rome.", metadata={"user_id": "ada"})
    assert store.remember("I live in Milan.", metadata={"user_id": "bo"}).conflicts == []
    assert store.remember("I live in Oslo.", dataset="second").conflicts == []
    assert other.remember("I live in Oslo.").conflicts == []
    same = store.remember("I live in Oslo.", metadata={"user_id": "ada", "created_at": "2026-01-01"}).conflicts
    assert [each.text for each in same] == ["I live in Rome."]


def test_superseded_expired_and_forgotten_facts_do_not_conflict(store: Heedful, clock: ManualClock) -> None:
    (old,) = store.remember(OLD).fact_ids
    store.supersede(old, "The Lisbon office opens at 10.")
    assert [each.other_value for each in store.remember(NEW).conflicts] == ["10"]
    store.remember("Ada is 34 years old.", expires_at=clock.now + timedelta(days=1))
    clock.advance(days=2)
    assert store.remember("Ada is 35 years old.").conflicts == []
    store.forget(store.remember("Bo is 41 years old.").fact_ids)
    assert store.remember("Bo is 42 years old.").conflicts == []


def test_a_file_that_changes_does_not_conflict_with_what_it_said(store: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "office.txt"
    file.write_text(OLD)
    store.remember(file)
    file.write_text(NEW)
    assert store.remember(file).conflicts == []


def test_an_import_is_not_compared(store: Heedful) -> None:
    store.remember(OLD)
    assert store.remember([NEW, *(f"Desk {n} is empty." for n in range(64))]).conflicts == []
    assert store.remember(["The Lisbon office opens at 10.", *(f"Door {n} is shut." for n in range(60))]).conflicts


def test_the_same_fact_again_counts_once(store: Heedful) -> None:
    store.remember(OLD)
    store.remember(NEW)
    store.remember(NEW)
    assert only(store).opinions == 1


@pytest.mark.slow
def test_superseding_closes_it_and_undoing_that_opens_it_again(store: Heedful) -> None:
    (old,) = store.remember(OLD).fact_ids
    (new,) = store.remember(NEW).fact_ids
    item = only(store)
    done = store.review.fix(item.item_id, "supersede", fact_id=old, by=new, author="eva")
    assert done.details["superseded_by"] == new
    assert store.review.list().items == []
    assert [fact.text for fact in store.facts().items] == [NEW]
    store.review.undo(done.event_id)
    assert only(store).item_id == item.item_id
    store.supersede(new, by=old)
    assert store.review.list().items == []


def test_forgetting_either_fact_closes_it(store: Heedful) -> None:
    for forgotten in (0, 1):
        ids = [*store.remember(OLD).fact_ids, *store.remember(NEW).fact_ids]
        assert only(store).opinions == 1
        store.forget(ids[forgotten])
        assert store.review.list().items == []
        store.forget(ids[1 - forgotten])


def test_both_may_be_true(store: Heedful) -> None:
    store.remember(OLD)
    (found,) = store.remember(NEW).conflicts
    item = only(store)
    assert store.review.dismiss(item.item_id, note="Summer and winter.", author="eva").status == "dismissed"
    assert store.review.list().items == []
    store.review.reopen(item.item_id, author="eva")
    retraction = store.retract(found.event_id)
    assert (retraction.retracted, retraction.updated_facts) == (found.event_id, [])
    assert store.retract(found.event_id) == retraction
    assert store.review.list().items == []


def test_a_reviewer_retracts_and_restores_it(store: Heedful) -> None:
    store.remember(OLD)
    (found,) = store.remember(NEW).conflicts
    item = only(store)
    done = store.review.fix(item.item_id, "retract", event_id=found.event_id, author="eva")
    assert store.review.list().items == []
    store.review.undo(done.event_id)
    assert only(store).kind == "conflict"


def test_no_score_moves_and_the_ledger_verifies(store: Heedful) -> None:
    store.remember(OLD)
    before = store.recall("When does the Lisbon office open?")
    store.remember(NEW)
    after = {hit.fact_id: hit for hit in store.recall("When does the Lisbon office open?")}
    assert after[before[0].fact_id].usefulness == 0.5
    assert store.usefulness_stats().total_signals == 0
    assert all(check.ok for check in store.doctor(repair=False))
    events = store.insight.rows("events").items
    assert [(event["kind"], event["value"]) for event in events] == [("conflict", "number")]


def test_what_people_say_of_the_fact_joins_the_item(store: Heedful) -> None:
    store.remember(OLD)
    (new,) = store.remember(NEW).fact_ids
    recall = store.recall("When does the Lisbon office open?")
    store.signal_recall(recall.recall_id, not_helpful=[new], author="ann")
    item = only(store)
    assert (item.kind, item.opinions) == ("conflict", 2)
