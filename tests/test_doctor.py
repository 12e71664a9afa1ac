from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from postgresql import CITUS
from sqlalchemy import delete, update

import heedful
from heedful import Heedful, Signal, Unavailable
from heedful.memory import doctor
from heedful.model import Check
from heedful.providers.embedding import Vectors
from heedful.storage.database import Database
from heedful.storage.schema import fact_tags, links, scores
from heedful.testing import WordEmbedder
from heedful.workspace import Workspace


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.fixture
def facts(store: Heedful) -> list[str]:
    ids = store.remember([f"fact number {number}" for number in range(5)]).fact_ids
    store.signal([Signal(fact_id=fact, signal_type="helpful", query="q") for fact in ids])
    return ids


def test_a_sound_store_needs_no_repair(store: Heedful, facts: list[str]) -> None:
    checks = store.doctor()
    assert [check.name for check in checks] == [
        "store",
        "model",
        "files",
        *(["nodes"] if CITUS else []),
        "counts",
        "scores of main_dataset",
        "strengths of main_dataset",
        "filters of main_dataset",
        "links of main_dataset",
        "index of main_dataset",
        "ratings",
    ]
    assert all(check.ok and not check.repaired and check.detail for check in checks)


def test_an_empty_store_is_sound(store: Heedful) -> None:
    assert all(check.ok for check in store.doctor())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE scores SET score = 0.99",
        "DELETE FROM scores",
        "UPDATE scores SET used = used + 1",
        "UPDATE scores SET last_at = 1",
    ],
)
def test_wrong_scores_are_recomputed(store: Heedful, facts: list[str], path: Path, damage: str) -> None:
    before = [store.fact_stats(fact) for fact in facts]
    harm(path, damage)
    looked = by_name(store.doctor(repair=False))["scores of main_dataset"]
    assert (looked.ok, looked.repaired) == (False, False)
    fixed = by_name(store.doctor())["scores of main_dataset"]
    assert (fixed.ok, fixed.repaired) == (True, True)
    assert "5 facts" in fixed.detail
    assert [store.fact_stats(fact) for fact in facts] == before
    assert by_name(store.doctor())["scores of main_dataset"].repaired is False


def test_an_index_that_lacks_facts_is_rebuilt(store: Heedful, facts: list[str], path: Path) -> None:
    store.recall("fact")
    harm(path, "DELETE FROM facts WHERE text = 'fact number 3'")
    looked = by_name(store.doctor(repair=False))["index of main_dataset"]
    assert (looked.ok, looked.repaired) == (False, False)
    fixed = by_name(store.doctor())["index of main_dataset"]
    assert (fixed.ok, fixed.repaired) == (True, True)
    assert by_name(store.doctor())["index of main_dataset"].repaired is False


def test_a_saved_index_with_other_content_is_rebuilt(
    open_store: Callable[..., Heedful], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.search.dataset.SAVE_AFTER", 100)
    store = open_store()
    store.remember([f"fact{number}" for number in range(300)])
    store.close()
    (file,) = path.with_name("store.db-index").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + bytes(len(content) - 4096))
    again = open_store()
    again.doctor()
    assert again.recall("fact7", top_k=1)[0].text == "fact7"


def test_a_vector_that_is_missing_is_named_with_what_to_run(store: Heedful, facts: list[str], path: Path) -> None:
    harm(path, "DELETE FROM vectors WHERE fact_seq = 2")
    check = by_name(store.doctor())["model"]
    assert not check.ok
    assert "heedful reembed" in check.detail


def test_filters_that_lost_their_tags_are_fixed(store: Heedful, path: Path) -> None:
    fact = store.remember("tagged", metadata={"lang": "en"}).fact_ids[0]
    harm(path, "DELETE FROM fact_tags")
    assert by_name(store.doctor(repair=False))["filters of main_dataset"].ok is False
    assert by_name(store.doctor())["filters of main_dataset"].repaired
    assert [hit.fact_id for hit in store.recall("tagged", where={"lang": "en"})] == [fact]


def test_a_model_that_can_not_be_used_is_named(open_store: Callable[..., Heedful]) -> None:
    class Gone(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            raise Unavailable("the server sleeps")

    check = by_name(open_store(embedding=Gone()).doctor())["model"]
    assert (check.ok, check.detail) == (False, "the server sleeps")


def test_a_damaged_store_is_named(open_store: Callable[..., Heedful], path: Path) -> None:
    store = open_store()
    store.remember([f"fact {number} {'x' * 900}" for number in range(150)])
    store.close()
    content = bytearray(path.read_bytes())
    middle = len(content) * 3 // 4
    content[middle : middle + 8192] = b"\xff" * 8192
    path.write_bytes(content)
    check = by_name(open_store().doctor())["store"]
    assert not check.ok
    assert str(path) in check.detail


def test_looking_changes_nothing(store: Heedful, facts: list[str], path: Path) -> None:
    harm(path, "UPDATE scores SET score = 0.99")
    store.doctor(repair=False)
    assert store.fact_stats(facts[0]).overall_usefulness == 0.99


def test_looking_takes_the_writer_at_no_time(any_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with heedful.open(any_store, embedding=WordEmbedder(), worker=False) as store:
        rated(store, 5)
        store.doctor()

        direct = Database.direct

        def refuse(*args: Any, **options: Any) -> Any:
            assert options.get("write") is False, "doctor took the writer"
            return direct(*args, **options)

        monkeypatch.setattr(Database, "write", refuse)
        monkeypatch.setattr(Database, "direct", refuse)
        assert all(check.ok for check in store.doctor(repair=False))
        assert all(check.ok for check in store.doctor(repair=True))


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (update(scores).values(score=0.99), "scores of main_dataset"),
        (delete(fact_tags), "filters of main_dataset"),
        (delete(links), "links of main_dataset"),
    ],
    ids=["scores", "tags", "links"],
)
@pytest.mark.slow
def test_a_repair_takes_short_transactions_beside_others_who_write(
    any_store: str, monkeypatch: pytest.MonkeyPatch, damage: Any, name: str
) -> None:
    """Others remember, rate and forget between two of them: what they did is right, too."""
    monkeypatch.setattr(doctor, "REPAIR_BATCH_SIZE", 3)
    with heedful.open(any_store, embedding=WordEmbedder(), worker=False) as store:
        facts = rated(store, 10)
        with store._workspace.write() as connection:
            connection.execute(damage)
        write, transactions = Workspace.write, 0

        def between(self: Workspace, **options: bool) -> Any:
            nonlocal transactions
            transactions += 1
            monkeypatch.setattr(Workspace, "write", write)
            store.forget(facts[-transactions])
            store.signal([Signal(fact_id=facts[0], signal_type="not_helpful", query="other")])
            store.remember(f"Grace met Alan {transactions} times.", metadata={"lang": "en"})
            monkeypatch.setattr(Workspace, "write", between)
            return write(self, **options)

        monkeypatch.setattr(Workspace, "write", between)
        assert by_name(store.doctor())[name].repaired
        monkeypatch.setattr(Workspace, "write", write)
        assert transactions >= 4
        assert all(check.ok and not check.repaired for check in store.doctor())


def rated(store: Heedful, count: int) -> list[str]:
    ids = store.remember(
        [f"Ada met Charles in London {number} times." for number in range(count)], metadata={"lang": "en"}
    ).fact_ids
    store.signal([Signal(fact_id=fact, signal_type="helpful", query="q") for fact in ids])
    store.sessions.create("s")
    return ids


def harm(path: Path, statement: str) -> None:
    """Changes a store behind its back."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(statement)
    connection.close()
