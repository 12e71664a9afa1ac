"""The audit of facts: what is found, what to do about it, and that nothing is changed."""

from __future__ import annotations

from datetime import timedelta

import pytest

import heedful
from heedful import Heedful, Invalid
from heedful.model import FactFinding, FactReport
from heedful.testing import ManualClock, WordEmbedder


def found(report: FactReport) -> dict[str, FactFinding]:
    return {finding.kind: finding for finding in report.findings}


@pytest.mark.slow
def test_every_problem_is_found_and_has_a_remedy(any_store: str, clock: ManualClock) -> None:
    with heedful.open(any_store, embedding=WordEmbedder(), clock=clock) as store:
        (first,) = store.remember("Visitors sign in at the desk.", source="handbook").fact_ids
        (twin,) = store.remember("Visitors sign in at  the desk.", source="wiki").fact_ids
        (other,) = store.remember("At the desk, visitors sign in.").fact_ids
        (bad,) = store.remember("The printer is on fire.").fact_ids
        (unused,) = store.remember("Zebras graze at night.").fact_ids
        (gone,) = store.remember("The lift is broken.", expires_at=clock.now + timedelta(days=40)).fact_ids
        clock.advance(days=45)
        for visitor in ("ann", "bo", "eva"):
            recall = store.recall("Is the printer on fire at the desk of the visitors?", top_k=3)
            store.signal_recall(recall.recall_id, not_helpful=[bad], used=[first, other], author=visitor)
        report = store.check_facts()
        problems = found(report)
        assert (report.dataset, report.facts, report.recalls) == ("main_dataset", 5, 3)
        assert [(fact.fact_id, fact.other) for fact in problems["duplicate"].facts] == [(twin, first)]
        assert {fact.fact_id for fact in problems["near_duplicate"].facts} == {other}
        # A copy is not shown beside what it copies.
        assert {fact.fact_id for fact in problems["never_recalled"].facts} == {twin, unused}
        assert [fact.fact_id for fact in problems["always_ignored"].facts] == [bad]
        assert [fact.fact_id for fact in problems["expired"].facts] == [gone]
        assert all(finding.remedy and finding.count == len(finding.facts) for finding in report.findings)
        # Nothing was changed.
        assert store.check_facts() == report


def test_facts_that_differ_in_a_value_or_in_whom_they_are_about_are_no_duplicates(store: Heedful) -> None:
    store.remember(["The office opens at 8.", "The office opens at 9."])
    store.remember("I like tea.", metadata={"user_id": "ada"})
    store.remember("I like tea.", metadata={"user_id": "bo"})
    assert store.check_facts().findings == []


def test_a_corrected_fact_is_not_called_ignored(any_store: str) -> None:
    with heedful.open(any_store, embedding=WordEmbedder()) as store:
        (wrong,) = store.remember("The printer is on the first floor.").fact_ids
        for visitor in ("ann", "bo", "eva"):
            store.signal([{"fact_id": wrong, "signal_type": "not_helpful", "query": "printer?", "author": visitor}])
        assert found(store.check_facts())["always_ignored"].count == 1
        store.supersede(wrong, "The printer is on the second floor.")
        assert store.check_facts().findings == []


def test_an_empty_store_and_a_clean_one_have_no_findings(store: Heedful) -> None:
    assert store.check_facts() == FactReport(dataset="main_dataset", facts=0, recalls=0, findings=[])
    store.remember(["one", "two"])
    assert store.check_facts().findings == []


def test_new_facts_are_not_called_unused(store: Heedful, clock: ManualClock) -> None:
    store.remember(["The office opens at eight.", "Zebras graze at night."])
    store.recall("When does the office open?", top_k=1)
    assert store.check_facts().findings == []
    clock.advance(days=31)
    assert found(store.check_facts())["never_recalled"].count == 1


def test_only_some_of_each_kind_are_named(store: Heedful) -> None:
    store.remember([f"text {n}" for n in range(8)])
    for source in ("a", "b"):
        store.remember([f"text {n}" for n in range(8)], source=source)
    report = store.check_facts(limit=3)
    duplicate = found(report)["duplicate"]
    assert (duplicate.count, len(duplicate.facts)) == (16, 3)
    for wrong in (0, 1_001, "5", True):
        with pytest.raises(Invalid, match="limit"):
            store.check_facts(limit=wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_near_duplicates_are_found_among_many(store: Heedful) -> None:
    words = [f"word{n}" for n in range(300)]
    texts = [" ".join(words[(7 * n + 31 * k) % 300] for k in range(8)) for n in range(300)]
    store.remember(texts)
    store.remember([" ".join(reversed(text.split())) for text in texts[:40]])
    assert found(store.check_facts())["near_duplicate"].count == 40
