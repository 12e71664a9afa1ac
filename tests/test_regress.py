"""`regress`: what people rated well, asked again of a store with a change."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import heedful
from heedful import Heedful, Invalid, NotFound, RegressReport, transfer
from heedful.engine import project_of
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder, assert_no_regressions

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
    own = "project_id = :own_project"
    with project_of(store).workspace.read() as connection:
        for table in ("facts", "events", "receipts", "queries", "executions", "changes", "vectors", "entries"):
            found[table] = connection.execute(text(f"SELECT count(*) FROM {table} WHERE {own}")).scalar()
        made = f"SELECT count(*) FROM queries WHERE vector IS NOT NULL AND {own}"
        found["made"] = connection.execute(text(made)).scalar()
    return found


@pytest.mark.slow
def test_an_unchanged_store_is_not_accused(rated: Heedful) -> None:
    report = rated.regress()
    assert counts(report) == (0, 8, 0)
    assert (report.rated, report.compared, report.needs, report.complete) == (8, 8, 8, True)
    assert (report.kept.value, report.kept.low, report.change.value, report.is_worse) == (1.0, 1.0, 0.0, False)
    assert (report.worst, report.not_compared, report.candidate) == ([], [], "the store as it is")


@pytest.mark.nightly
def test_nothing_is_stored(rated: Heedful) -> None:
    rated.doctor()  # A recall before may still be fitting strengths in the background.
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


@pytest.mark.nightly
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


@pytest.mark.slow
def test_another_model_of_the_same_kind_is_not_accused(rated: Heedful) -> None:
    report = rated.regress(embedding=Renamed())
    assert counts(report) == (0, 8, 0)


class Renamed(WordEmbedder):
    name = "renamed-for-tests"


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.nightly
def test_a_document_that_was_imported_again_with_parts_missing(
    store: Heedful, tmp_path: Path, open_store: Callable[..., Heedful]
) -> None:
    def remember(memory: Heedful, texts: list[str]) -> None:
        project_of(memory).store_documents("main_dataset", [("book", True, [(each, {}) for each in texts])])

    texts = [f"{topic} alpha of the whole book" for topic in TOPICS]
    remember(store, texts)
    for topic in TOPICS:
        recall = store.recall(f"{topic} alpha")
        store.signal_recall(recall.recall_id, helpful=[recall.hits[0]], author="ann")
    copy = tmp_path / "copy.db"
    lines = tmp_path / "lines"
    url = project_of(store).workspace.database.url.render_as_string(hide_password=False)
    transfer.export_file(url, lines, project="default")
    transfer.import_file(copy, lines, embedding=WordEmbedder())
    with open_store(copy, clock=None) as other:
        remember(other, ["parcels alpha of the", *texts[1:]])
    report = store.regress(against=copy)
    assert counts(report) == (0, 7, 1)
    assert report.worst[0].reason == "only a part of the fact is there: 'parcels alpha of the'"
    with open_store(copy, clock=None) as other:
        other.forget(other.recall("refunds alpha").hits[0].fact_id)
    assert store.regress(against=copy).worse == 2  # Its document was imported anew: nobody knows who removed it.


def rate_answer(store: Heedful, score: int, text: str | None = None) -> None:
    fact = store.remember("Parcels may be returned within 45 days.").fact_ids[0]
    recall = store.recall("When may parcels be returned?")
    entry = store.sessions.add_entry("s", recall.query, "Within 45 days.", recall_id=recall.recall_id, used=[fact])
    store.sessions.add_feedback("s", entry.qa_id, text, score, author="ann")


@pytest.mark.parametrize(("said", "kept"), [("It is 45 days [1].", 1), ("It is 30 days [1].", 0)])
def test_answers_are_written_again_by_the_model(open_either: Callable[..., Heedful], said: str, kept: int) -> None:
    store = open_either(language_model=ScriptedModel(lambda messages: said))
    rate_answer(store, 5)
    report = store.regress(answers=True)
    assert (report.same, report.worse) == (1 + kept, 1 - kept)
    if not kept:
        (worst,) = report.worst
        assert (worst.kind, worst.before, worst.after) == ("answer", "Within 45 days.", said)
        assert worst.reason == "it no longer says: 45"


def test_without_a_model_answers_are_quoted(store: Heedful) -> None:
    rate_answer(store, 5)
    assert counts(store.regress(answers=True)) == (0, 2, 0)


def test_a_model_that_follows_a_correction_is_better(store: Heedful, open_store: Callable[..., Heedful]) -> None:
    rate_answer(store, 1, "Wrong, it is 60 days.")
    assert store.regress(answers=True).compared == 1
    store.close()
    with open_store(language_model=ScriptedModel(lambda messages: "60 days")) as again:
        assert counts(again.regress(answers=True)) == (1, 0, 0)


def test_a_model_that_fails_is_no_regression(store: Heedful, open_store: Callable[..., Heedful]) -> None:
    def fail(messages: Any) -> str:
        raise heedful.Unavailable("the model sleeps")

    rate_answer(store, 5)
    store.close()
    with open_store(language_model=ScriptedModel(fail)) as again:
        report = again.regress(answers=True)
    assert counts(report) == (0, 1, 0)
    assert [item.reason for item in report.not_compared] == ["not_written"]


@pytest.fixture
def shop(store: Heedful, tmp_path: Path) -> Heedful:
    """A store with proven SQL on a small database."""
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as made:
        made.executescript("CREATE TABLE sales (year INTEGER); INSERT INTO sales VALUES (2023), (2024)")
    store.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.sqlite'}")
    run = store.executions.execute_query("SELECT year FROM sales ORDER BY year", question="Which years?")
    store.feedback.create_positive(execution_id=run.execution_id, author="ann")
    return store


def change_shop(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "shop.sqlite")) as made:
        made.executescript(sql)


def test_proven_sql_is_run_again(shop: Heedful, tmp_path: Path) -> None:
    before = rows(shop)
    assert counts(shop.regress()) == (0, 1, 0)
    assert rows(shop) == before
    change_shop(tmp_path, "INSERT INTO sales VALUES (2025)")
    report = shop.regress()
    assert report.compared == 0
    assert [(item.kind, item.reason) for item in report.not_compared] == [("execution", "rows_changed")]
    change_shop(tmp_path, "DROP TABLE sales")
    (worst,) = shop.regress().worst
    assert (worst.kind, worst.question, worst.after) == ("execution", "Which years?", None)
    assert worst.reason.startswith("it is refused: ")
    assert worst.before == "2 rows (year): 2023; 2024"
    assert shop.regress(executions=False).rated == 0


def test_a_sample_is_drawn_by_its_seed(rated: Heedful) -> None:
    report = rated.regress(sample=3, seed=5)
    assert (report.rated, report.compared, report.complete, report.seed) == (8, 3, True, 5)


def test_a_deadline_ends_it(rated: Heedful) -> None:
    report = rated.regress(deadline=0)
    assert (report.rated, report.compared, report.complete) == (8, 0, False)


@pytest.mark.slow
def test_progress_is_told(rated: Heedful) -> None:
    told: list[tuple[int, int]] = []
    rated.regress(progress=lambda done, total: told.append((done, total)))
    assert told == [(8, 8)]


def test_a_dataset_and_a_time_limit_what_is_asked(store: Heedful, clock: ManualClock) -> None:
    rate(store, fill(store))
    clock.advance(days=1)
    start = clock()
    fact = store.remember("parcels alpha", dataset="other").fact_ids[0]
    store.signal([{"fact_id": fact, "signal_type": "helpful", "query": "parcels", "author": "ann"}])
    assert [group.name for group in store.regress().datasets] == ["main_dataset", "other"]
    assert store.regress(dataset="other").rated == 1
    assert store.regress(since=start).rated == 1
    with pytest.raises(NotFound, match="nowhere"):
        store.regress(dataset="nowhere")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"policy": "best"}, "policy"),
        ({"usefulness_weight": 2}, "weight"),
        ({"mode": "magic"}, "mode"),
        ({"embedding": "nowhere"}, "embedding"),
        ({"sample": 0}, "sample"),
        ({"top_k": 1000}, "top_k"),
        ({"deadline": -1}, "deadline"),
        ({"seed": -1}, "seed"),
        ({"answers": "yes"}, "answers"),
        ({"as_of": "yesterday"}, "as_of"),
    ],
)
@pytest.mark.nightly
def test_bad_arguments_are_named(rated: Heedful, change: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid, match=field):
        rated.regress(**change)


def test_a_store_that_is_not_there(rated: Heedful, tmp_path: Path, clock: ManualClock) -> None:
    with pytest.raises(NotFound, match="no store"):
        rated.regress(against=tmp_path / "none.db")
    with pytest.raises(Invalid, match="can't be combined"):
        rated.regress(against=tmp_path / "none.db", as_of=clock())


@pytest.mark.nightly
def test_an_assertion_for_tests(rated: Heedful) -> None:
    assert assert_no_regressions(rated).compared == 8
    with pytest.raises(AssertionError, match="rated questions get worse with mode=semantic, embedding=deaf-for-tests"):
        assert_no_regressions(rated, {"embedding": Deaf(), "mode": "semantic"})
    assert_no_regressions(rated, {"embedding": Deaf(), "mode": "semantic"}, least=0)
    with pytest.raises(AssertionError, match="0 of 8 rated questions were compared, which proves nothing"):
        assert_no_regressions(rated, deadline=0)


@pytest.mark.slow
def test_own_votes_count_if_they_are_asked_for(rated: Heedful) -> None:
    report = rated.regress(embedding=Deaf(), mode="semantic", own_votes=True)
    assert counts(report) == (0, 8, 0)
