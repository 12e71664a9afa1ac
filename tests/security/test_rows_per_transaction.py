"""Small requests that need many rows: no transaction holds the lock of the store for long."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update
from statements import watched

import heedful
from heedful import Document, Heedful, Invalid, Signal
from heedful.ledger import events, tallies
from heedful.ledger.fold_cache import folds_of
from heedful.model import DEFAULT_DATASET
from heedful.model.limits import MAX_COPIED_METADATA, MAX_METADATA_VALUES
from heedful.sessions import lessons
from heedful.sql.reuse.candidates import Questions
from heedful.storage import rows
from heedful.storage.database import Database
from heedful.storage.schema import entities, executions, fact_tags, facts, links, queries
from heedful.testing import WordEmbedder
from heedful.workspace import VECTORS_BATCH_SIZE

MOST = 300
"""Rows that a transaction may add in these tests; it may remove as many."""


class Counted:
    """The rows and statements of each transaction that writes."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.statements: list[int] = []
        self.fails_at: int | None = None

    def clear(self) -> None:
        self.rows, self.statements = [], []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    counted, write = Counted(), Database.write

    @contextmanager
    def counting(self: Database, *args: Any, **options: Any) -> Iterator[Connection]:
        if counted.fails_at is not None and len(counted.rows) >= counted.fails_at:
            raise OSError("the disk is full")
        counted.rows.append(0)
        counted.statements.append(0)
        with write(self, *args, **options) as connection:
            yield connection

    def executed(statement: str, rows: int) -> None:
        if counted.rows and statement.lstrip().startswith(("INSERT", "UPDATE", "DELETE")):
            counted.rows[-1] += rows
            counted.statements[-1] += 1

    monkeypatch.setattr(Database, "write", counting)
    monkeypatch.setattr(rows, "MAX_ROWS", MOST)
    with watched(executed):
        yield counted


@pytest.fixture
def h(any_store: str, counted: Counted) -> Iterator[Heedful]:
    with heedful.open(any_store, embedding=WordEmbedder(), worker=False) as opened:
        counted.clear()
        yield opened


@pytest.fixture
def shop(h: Heedful, tmp_path: Path) -> str:
    """A connector."""
    sqlite3.connect(tmp_path / "shop.db").execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)").connection.close()
    return h.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.db'}").connector_id


def check(counted: Counted, at_least: int) -> None:
    """That much was written, in small transactions of few statements."""
    assert sum(counted.rows) >= at_least
    assert max(counted.rows) <= 2 * MOST + 20
    assert max(counted.statements) <= 60
    counted.clear()


def count(h: Heedful, *tables: Any) -> list[int]:
    with h._workspace.database.read() as connection:
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


@pytest.mark.slow
def test_many_keys_with_many_pieces(h: Heedful, counted: Counted) -> None:
    words = ". ".join(f"word{number} and word{number + 1}" for number in range(1500))
    stored = h.remember(words, metadata={f"k{number}": number for number in range(100)})
    assert stored.added > 20
    check(counted, 100 * stored.added)
    assert count(h, facts, fact_tags) == [stored.added, 100 * stored.added]
    assert h.forget(dataset=stored.dataset).facts == stored.added
    check(counted, 100 * stored.added)
    assert count(h, facts, fact_tags) == [0, 0]


@pytest.mark.nightly
def test_a_long_document_stored_shifted_and_replaced(h: Heedful, counted: Counted) -> None:
    texts = [f"{number} n{number * 7}" for number in range(1000)]
    assert h.remember(Document(source="f.txt", texts=texts)).added == 1000
    check(counted, 3000)
    shifted = h.remember(Document(source="f.txt", texts=texts[1:]))
    assert (shifted.added, shifted.known, shifted.removed) == (0, 999, 1)
    check(counted, 1998)
    with h._workspace.database.read() as connection:
        ordinals = connection.execute(select(facts.c.ordinal).order_by(facts.c.seq)).scalars().all()
    assert list(ordinals) == list(range(999))
    replaced = h.remember(Document(source="f.txt", texts=["x"]))
    assert (replaced.added, replaced.removed) == (1, 999)
    check(counted, 2997)
    assert count(h, facts) == [1]


@pytest.mark.nightly
def test_a_text_of_invented_names(h: Heedful, counted: Counted) -> None:
    stored = h.remember(" ".join(f"Xq{number}" for number in range(2000)))
    check(counted, 2000)
    assert count(h, entities)[0] > 1000
    assert h.forget([each.fact_id for each in stored.facts]).facts == stored.added
    check(counted, 2000)
    assert count(h, facts, entities, links) == [0, 0, 0]


@pytest.mark.slow
def test_forgetting_a_long_source(h: Heedful, counted: Counted) -> None:
    h.remember([f"{number} n{number}" for number in range(600)], source="s")
    counted.clear()
    assert h.forget(source="s").facts == 600
    check(counted, 1800)


@pytest.mark.slow
def test_a_document_repeats_a_text_across_transactions(h: Heedful) -> None:
    texts = ["again", *(f"{number} n{number}" for number in range(300)), "again"]
    for _ in range(2):
        h.remember(Document(source="f.txt", texts=texts))
        with h._workspace.database.read() as connection:
            found = connection.execute(select(facts.c.text, facts.c.ordinal).order_by(facts.c.ordinal)).all()
        assert [(row.text, row.ordinal) for row in found] == [(text, at) for at, text in enumerate(texts[:-1])]


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.slow
def test_an_interrupted_document_loses_nothing_and_is_completed_by_the_next_call(
    h: Heedful, counted: Counted, steps: int
) -> None:
    old, new = ([f"{number} {word}" for number in range(400)] for word in ("old", "new"))
    h.remember(Document(source="f.txt", texts=old))
    counted.clear()
    counted.fails_at = steps
    with pytest.raises(OSError, match="full"):
        h.remember(Document(source="f.txt", texts=new))
    assert count(h, facts)[0] > 400
    counted.fails_at = None
    h.remember(Document(source="f.txt", texts=new))
    assert sorted(fact.text for fact in h.facts(limit=1000).items) == sorted(new)


def test_a_small_document_takes_one_transaction(h: Heedful, counted: Counted) -> None:
    h.remember(Document(source="f.txt", texts=["one", "two"]))
    counted.clear()
    h.remember(Document(source="f.txt", texts=["two", "three"]))
    assert len([each for each in counted.rows if each]) == 1


def test_too_many_values_in_metadata(store: Heedful) -> None:
    most = {"list": list(range(MAX_METADATA_VALUES - 1)), "one": {"inner": True}}
    store.remember("a text", metadata=most)
    with pytest.raises(Invalid, match="1001 values, the limit is 1000") as refused:
        store.remember("a text", metadata=most | {"more": 1})
    assert refused.value.field == "metadata"


@pytest.mark.parametrize(
    "texts",
    [
        lambda: [f"x {number}" for number in range(2000)],
        lambda: Document(source="f.txt", texts=[f"x {number}" for number in range(2000)]),
        lambda: "word " * 400_000,
    ],
    ids=["texts", "document", "pieces"],
)
def test_metadata_that_a_call_multiplies(store: Heedful, texts: Callable[[], Any]) -> None:
    with pytest.raises(Invalid, match=f"the limit is {MAX_COPIED_METADATA}") as refused:
        store.remember(texts(), metadata={"long": "x" * 30_000})
    assert refused.value.field == "metadata"
    assert refused.value.remedy


def test_metadata_of_each_text_is_no_copy(store: Heedful) -> None:
    texts = [f"x {number}" for number in range(200)]
    own = [{"long": str(number) * 10_000} for number in range(200)]
    assert store.remember(Document(source="f.txt", texts=texts, metadata=own)).added == 200


@pytest.mark.nightly
def test_forgetting_a_fact_that_superseded_many(h: Heedful, counted: Counted) -> None:
    ids = h.remember([f"{number} n{number}" for number in range(150)]).fact_ids
    truth = h.remember("the truth").fact_ids[0]
    for fact in ids:
        h.supersede(fact, by=truth)
    counted.clear()
    assert sorted(h.forget(truth).restored) == sorted(ids)
    check(counted, 150)
    assert len(h.recall("n7 n8", top_k=200)) == 150


@pytest.mark.nightly
def test_many_opinions_deleted_at_once(h: Heedful, counted: Counted, shop: str) -> None:
    run = h.executions.execute_query("SELECT 1", connector_id=shop, question="One?")
    ids = [
        h.feedback.create(is_positive=False, execution_id=run.execution_id, author=f"a{place}").id
        for place in range(120)
    ]
    counted.clear()
    assert h.feedback.bulk_delete([*ids, "unknown"]).model_dump() == {"deleted_count": 120, "failed_ids": ["unknown"]}
    assert len(counted.rows) == 3
    assert h.feedback.list().items == []


@pytest.mark.slow
def test_many_examples_imported_at_once(h: Heedful, counted: Counted, shop: str) -> None:
    examples = [{"question": f"Is it {place}?", "sql_query": f"SELECT {place}"} for place in range(120)]
    counted.clear()
    imported = h.golden_examples.import_examples(examples, connector_id=shop)
    assert [each.question for each in imported] == [each["question"] for each in examples]
    assert len(counted.rows) == 3
    counted.clear()
    counted.fails_at = 1
    with pytest.raises(OSError, match="full"):
        h.golden_examples.import_examples(examples, connector_id=shop)
    counted.fails_at = None
    again = h.golden_examples.import_examples(examples, connector_id=shop)
    assert [each.id for each in again] == [each.id for each in imported]


@pytest.mark.slow
def test_a_connector_with_many_executions_is_deleted_in_steps(
    h: Heedful, counted: Counted, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "FOLD_AFTER", 0)

    def run(place: int) -> str:
        return h.executions.execute_query("SELECT 'x'", connector_id=shop, question=f"Question {place}?").execution_id

    ids = [run(place) for place in range(50)]
    assert h.insight.coverage().executions.shown == 50
    counted.clear()
    counted.fails_at = 1
    with pytest.raises(OSError, match="full"):
        h.connectors.delete(shop)
    counted.fails_at = None
    left = h.executions.list(limit=100).items
    assert [each.execution_id for each in left] == ids[:30] or [each.execution_id for each in left] == ids[29::-1]
    assert all(h.executions.get(each.execution_id).result for each in left)
    assert h.connectors.delete(shop)
    assert h.executions.list().items == []
    assert h.insight.coverage().executions.shown == 0
    assert all(each.ok for each in h.doctor(repair=False))


def test_erasing_the_author_of_many_ratings_reads_each_lesson_once(
    h: Heedful, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(30):
        entry = h.sessions.add_entry("s", f"What is n{place}?", f"It is {place}.")
        h.sessions.add_feedback("s", entry.qa_id, f"No, n{place} is {place + 1}.", 1, author="ada")
    read: list[int] = []
    learnt = lessons.learnt

    def counting(*args: Any) -> list[lessons.Learnt]:
        found = learnt(*args)
        read.append(len(found))
        return found

    monkeypatch.setattr(lessons, "learnt", counting)
    erased = h.forget(author="ada").erased
    assert erased is not None
    assert erased.feedback == 30
    assert len(read) == 2


def test_vectors_of_many_new_queries(h: Heedful, counted: Counted) -> None:
    fact = h.remember("the Nile is a river").fact_ids[0]
    texts = [f"query {place}" for place in range(VECTORS_BATCH_SIZE + 100)]
    h.signal([Signal(fact_id=fact, signal_type="helpful", query=text) for text in texts])
    workspace = h._workspace
    with workspace.read() as connection:
        number, model = workspace.dataset(connection, DEFAULT_DATASET), workspace.model(connection)
        assert number is not None
        assert model is not None
        needed = connection.execute(select(queries.c.id)).scalars().all()
        folds_of(workspace).contexts(connection, number, model, events.last_event(connection, number), needed)
    counted.clear()
    folds_of(workspace).keep_vectors()
    assert counted.rows == [VECTORS_BATCH_SIZE, 100]
    assert counted.statements == [1, 1]
    with workspace.read() as connection:
        assert None not in connection.execute(select(queries.c.vector)).scalars().all()


@pytest.mark.slow
def test_vectors_of_many_new_questions(h: Heedful, counted: Counted, shop: str) -> None:
    ids = [
        h.executions.execute_query("SELECT 1", connector_id=shop, question=f"Question {place}?").execution_id
        for place in range(30)
    ]
    with h._workspace.write() as connection:
        connection.execute(update(executions).values(model_id=None, vector=None))
    h._workspace.part(Questions)._indexes.clear()
    counted.clear()
    h.chat.execution_cache_lookup("Question 3?", connector_id=shop)
    written = [count for count in zip(counted.rows, counted.statements, strict=True) if count[0] >= len(ids)]
    assert len(written) == 1
    # The lookup itself is written, too.
    assert written[0][1] < 10
    with h._workspace.read() as connection:
        assert (
            None not in connection.execute(select(executions.c.vector).where(executions.c.id.in_(ids))).scalars().all()
        )
