"""`regress`: what people rated well, asked again of a store with a change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from heedful import Heedful, RegressReport
from heedful.engine import project_of
from heedful.testing import ManualClock, WordEmbedder

TOPICS = ["parcels", "refunds", "invoices", "vouchers", "couriers", "stickers", "baskets", "reviews"]


def fill(store: Heedful, **options: Any) -> dict[str, str]:
    """Facts on some topics, three of each; the id of the first by its topic."""
    texts = [f"{topic} {word} rule{place}" for topic in TOPICS for place, word in enumerate(("alpha", "beta", "gamma"))]
    ids = store.remember(texts, **options).fact_ids
    return dict(zip(TOPICS, ids[::3], strict=True))


def rate(store: Heedful, facts: dict[str, str], author: str = "ann") -> None:
    """Somebody asks for the first fact of each topic, and finds it helpful."""
    for topic, fact in facts.items():
        recall = store.recall(f"{topic} alpha")
        store.signal_recall(recall.recall_id, helpful=[fact], author=author)


@pytest.fixture
def rated(store: Heedful) -> Heedful:
    rate(store, fill(store))
    return store


def counts(report: RegressReport) -> tuple[int, int, int]:
    return report.better, report.same, report.worse


def rows(store: Heedful) -> dict[str, Any]:
    """How many rows each table has, and what queries have for vectors."""
    found = {}
    with project_of(store).workspace.read() as connection:
        for table in ("facts", "events", "receipts", "queries", "executions", "changes", "vectors", "entries"):
            found[table] = connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()
        made = "SELECT count(*) FROM queries WHERE vector IS NOT NULL"
        found["made"] = connection.execute(text(made)).scalar()
    return found


def test_an_unchanged_store_is_not_accused(rated: Heedful) -> None:
    report = rated.regress()
    assert counts(report) == (0, 8, 0)
    assert (report.rated, report.compared, report.needs, report.complete) == (8, 8, 8, True)
    assert (report.kept.value, report.kept.low, report.change.value, report.is_worse) == (1.0, 1.0, 0.0, False)
    assert (report.worst, report.not_compared, report.candidate) == ([], [], "the store as it is")


def test_nothing_is_stored(rated: Heedful) -> None:
    before = rows(rated)
    rated.regress(policy="documented", usefulness_weight=0.9)
    rated.regress(mode="graph", answers=True)
    rated.regress(embedding=WordEmbedder(32))
    assert rows(rated) == before


class Deaf(WordEmbedder):
    """A worse model: to it, all texts are alike."""

    name = "deaf-for-tests"

    def embed(self, texts: Any) -> Any:
        return super().embed(["x"] * len(texts))


def test_a_worse_model_is_caught_with_the_reason(rated: Heedful) -> None:
    report = rated.regress(embedding=Deaf(), mode="semantic")
    assert report.worse >= 6
    assert report.is_worse
    assert report.change.high < 0
    first = report.worst[0]
    assert (first.kind, first.dataset, first.facts[0].old_rank) == ("question", "main_dataset", 1)
    assert first.facts[0].new_rank != 1
    assert first.change == min(one.change for one in report.worst)
    assert first.before == f"{first.question} rule0"
    assert "meaning" in first.reason or "not among the first 10" in first.reason
    assert report.candidate == "mode=semantic, embedding=deaf-for-tests"
    assert report.kept.value == pytest.approx(1 - report.worse / 8)


def test_another_model_of_the_same_kind_is_not_accused(rated: Heedful) -> None:
    report = rated.regress(embedding=Renamed())
    assert counts(report) == (0, 8, 0)


class Renamed(WordEmbedder):
    name = "renamed-for-tests"


def test_a_policy_and_a_weight_are_tried(store: Heedful, clock: ManualClock) -> None:
    facts = fill(store)
    rate(store, facts)
    others = store.recall("parcels alpha", boost_by_usefulness=False).hits
    for hit in others[1:3]:
        for number in range(9):
            store.signal([{"fact_id": hit.fact_id, "signal_type": "used", "query": f"other {number} {hit.text}"}])
    report = store.regress(policy="documented", usefulness_weight=1.0)
    assert report.candidate == "policy=documented, usefulness_weight=1.0"
    assert report.compared == 8


def test_ratings_of_visitors_and_retracted_ones_do_not_count(store: Heedful) -> None:
    facts = fill(store)
    rate(store, facts, author="visitor-x")
    assert store.regress().rated == 0
    given = store.signal([{"fact_id": facts["parcels"], "signal_type": "helpful", "query": "p", "author": "ann"}])
    assert store.regress().rated == 1
    store.retract(given.event_ids[0])
    assert store.regress().rated == 0


def test_what_is_gone_on_purpose_is_listed_apart(rated: Heedful, clock: ManualClock) -> None:
    hits = {topic: rated.recall(f"{topic} alpha").hits[0].fact_id for topic in TOPICS}
    rated.supersede(hits["parcels"], "parcels alpha are new")
    rated.forget(hits["refunds"])
    report = rated.regress()
    assert counts(report) == (0, 6, 0)
    assert {(item.question, item.reason) for item in report.not_compared} == {
        ("parcels alpha", "superseded"),
        ("refunds alpha", "forgotten"),
    }
    assert report.retired == 2


def test_a_copy_is_compared(rated: Heedful, tmp_path: Path, open_store: Callable[..., Heedful]) -> None:
    copy = tmp_path / "copy.db"
    with open_store(copy) as other:
        facts = fill(other)
        other.forget(facts["parcels"])
        other.remember("parcels alp")
    report = rated.regress(against=copy)
    assert counts(report) == (0, 7, 1)
    (worst,) = report.worst
    assert (worst.question, worst.facts[0].new_rank) == ("parcels alpha", None)
    assert worst.reason


def test_facts_that_were_forgotten_in_a_copy_are_listed_apart(
    rated: Heedful, tmp_path: Path, open_store: Callable[..., Heedful]
) -> None:
    copy = tmp_path / "copy.db"
    with open_store(copy) as other:
        facts = fill(other)
        rate(other, facts)
        theirs = facts["parcels"]
    report = rated.regress(against=copy)
    assert counts(report) == (0, 8, 0)
    with open_store(copy) as other:
        other.forget(theirs)
    assert rated.regress(against=copy).worse == 1  # Another id: only its own ledger could tell.


def test_an_earlier_time_of_the_ledger(store: Heedful, clock: ManualClock) -> None:
    facts = fill(store)
    then = clock()
    clock.advance(days=1)
    late = store.remember("parcels alpha late").fact_ids[0]
    rate(store, facts | {"late": late})
    clock.advance(days=1)
    report = store.regress(as_of=then)
    assert {(item.fact_id, item.reason) for item in report.not_compared} == {(late, "not_stored_then")}
    assert report.compared == 8
    assert counts(store.regress(as_of=clock())) == (0, 9, 0)


def test_corrections_that_came_later_are_taken_back(store: Heedful, clock: ManualClock) -> None:
    facts = fill(store)
    then = clock()
    clock.advance(days=1)
    fixed = store.supersede(facts["parcels"], "parcels alpha fixed")
    recall = store.recall("parcels alpha fixed")
    store.signal_recall(recall.recall_id, helpful=[fixed.superseded_by], author="ann")
    clock.advance(days=1)
    report = store.regress(as_of=then)
    assert [(item.reason, item.fact_id) for item in report.not_compared] == [("not_stored_then", fixed.superseded_by)]
