"""What is kept of an index for the next process is derived: with it or without it, facts are found alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from heedful import Heedful
from heedful.storage import facts
from heedful.storage.postgresql.word_index import saved_indexes
from heedful.workspace import Workspace

pytestmark = pytest.mark.slow

TEXTS = tuple(f"fact number{number} about topic{number % 7}" for number in range(300))

Open = Callable[..., Heedful]


@pytest.fixture(autouse=True)
def small_indexes_are_saved_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.search.dataset.SAVE_AFTER", 100)


@pytest.fixture
def open_any(any_store: str, open_store: Open) -> Open:
    """Opens the test's store, of each kind."""
    return partial(open_store, any_store)


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many facts were read from the store to index them, call by call."""
    counts: list[int] = []
    original = facts.indexable

    def counting(*arguments: Any) -> Iterator[Any]:
        rows = list(original(*arguments))
        counts.append(len(rows))
        return iter(rows)

    monkeypatch.setattr(facts, "indexable", counting)
    return counts


def hits(store: Heedful, query: str = "number77 topic0") -> list[tuple[str, float]]:
    return [(hit.fact_id, hit.score) for hit in store.recall(query, top_k=20)]


def saved(store: Heedful) -> list[bytes]:
    """What is kept for the next process."""
    database = store._workspace.database
    if database.folder is not None:
        return [each.read_bytes() for each in database.folder.iterdir()] if database.folder.exists() else []
    with database.read() as connection:
        rows = connection.execute(text("SELECT content FROM saved_indexes ORDER BY dataset_id, model_id, part"))
        return [b"".join(bytes(row.content) for row in rows)]


def damage(store: Heedful, change: Callable[[bytes], bytes]) -> None:
    database = store._workspace.database
    if database.folder is not None:
        (file,) = database.folder.iterdir()
        file.write_bytes(change(file.read_bytes()))
        return
    with database.write() as connection:
        content = bytes(connection.execute(text("SELECT content FROM saved_indexes")).scalar_one())
        connection.execute(text("UPDATE saved_indexes SET content = :new"), {"new": change(content)})


def filled(open_any: Open) -> list[str]:
    store = open_any()
    ids = store.remember(TEXTS).fact_ids
    store.close()
    return ids


def test_it_finds_what_a_new_one_finds_without_reading_the_facts(open_any: Open, indexed: list[int]) -> None:
    first = open_any()
    first.remember(TEXTS)
    expected = hits(first)
    first.close()
    indexed.clear()
    assert hits(open_any()) == expected
    assert sum(indexed) == 0


@pytest.mark.nightly
def test_a_score_depends_on_neither_the_other_facts_nor_the_process(open_any: Open) -> None:
    store = open_any()
    texts = [f"The {place} opens at {hour}." for place in ("gym", "pool", "sauna") for hour in ("six", "ten", "noon")]
    questions = [f"when does the {place} open {when}" for place in ("gym", "pool", "bar") for when in "abcdefgh"]

    def scores(reader: Heedful) -> dict[tuple[str, str], float]:
        return {
            (question, hit.text): hit.score
            for question in questions
            for hit in reader.recall(question, mode="semantic", top_k=20)
        }

    for number, fact in enumerate(texts):
        before = scores(store)
        store.remember(fact)
        after = scores(store)
        assert len(after) == len(questions) * (number + 1)
        assert {key: after[key] for key in before} == before
    assert scores(open_any()) == after


@pytest.mark.nightly
def test_changes_after_the_save_are_found(open_any: Open, indexed: list[int]) -> None:
    ids = filled(open_any)
    second = open_any()
    second.remember("a newcomer named zebra")
    second.forget(ids[5])
    indexed.clear()
    third = open_any()
    assert third.recall("zebra")[0].text == "a newcomer named zebra"
    assert ids[5] not in {hit.fact_id for hit in third.recall("number5", top_k=50)}
    assert sum(indexed) == 1
    assert all(check.ok and not check.repaired for check in third.doctor())


def test_it_is_right_after_facts_have_changed_their_places(open_any: Open) -> None:
    first = open_any()
    ids = first.remember(TEXTS).fact_ids
    (other,) = first.remember("fact number3 is about nothing").fact_ids
    first.supersede(ids[3], by=other)
    first.close()
    second = open_any()
    second.forget(other)
    second._workspace.save_index(1)
    expected = hits(second, "number3 topic3"), hits(second, "number250")
    second.close()
    third = open_any()
    assert (hits(third, "number3 topic3"), hits(third, "number250")) == expected
    assert all(check.ok and not check.repaired for check in third.doctor())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda content: content[:1000], id="cut"),
        pytest.param(lambda content: b"?" + content[1:], id="other"),
        pytest.param(lambda content: b"", id="empty"),
    ],
)
def test_one_that_is_not_whole_is_rebuilt(open_any: Open, change: Callable[[bytes], bytes]) -> None:
    filled(open_any)
    store = open_any()
    damage(store, change)
    assert store.recall("number77", top_k=1)[0].text == TEXTS[77]


def test_one_with_other_content_is_found_out_and_rebuilt(open_any: Open) -> None:
    filled(open_any)
    store = open_any()
    damage(store, lambda content: content[:4096] + bytes(len(content) - 4096))
    checks = {check.name: check for check in store.doctor()}
    assert checks["index of main_dataset"].repaired
    assert store.recall("number7", top_k=1)[0].text == TEXTS[7]
    again = open_any()
    assert all(check.ok and not check.repaired for check in again.doctor())


def test_forgetting_all_that_it_had_saves_an_empty_one(open_any: Open) -> None:
    first = open_any()
    first.remember(TEXTS, source="all")
    first.close()
    second = open_any()
    second.recall("topic1")
    second.forget(source="all")
    assert len(second.recall("topic1")) == 0
    second.close()
    third = open_any()
    third.remember("only this")
    assert [hit.text for hit in third.recall("only this topic1")] == ["only this"]


def test_a_dataset_that_is_forgotten_leaves_nothing(open_any: Open) -> None:
    first = open_any()
    first.remember(TEXTS, dataset="gone")
    first._workspace.save_indexes(last=True)
    assert saved(first) != []
    behind = open_any()
    behind.recall("topic1", dataset="gone")
    first.forget(dataset="gone")
    # Another process that still has the index keeps nothing of it either.
    behind._workspace.save_index(1)
    assert b"".join(saved(first)) == b""


@pytest.mark.nightly
def test_a_process_that_lags_behind_does_not_replace_a_newer_one(open_any: Open, indexed: list[int]) -> None:
    filled(open_any)
    behind, ahead = open_any(), open_any()
    hits(behind)
    ahead.remember([f"another{number}" for number in range(200)])
    hits(ahead)
    ahead.close()
    for index in behind._workspace._indexes.values():
        index.save()
    indexed.clear()
    third = open_any()
    assert third.recall("another7", top_k=1)[0].text == "another7"
    assert sum(indexed) == 0


@pytest.mark.nightly
def test_processes_that_save_at_once_leave_a_whole_one(open_any: Open) -> None:
    filled(open_any)
    stores = [open_any() for _ in range(4)]
    for store in stores:
        hits(store)

    def save(workspace: Workspace) -> None:
        for _ in range(5):
            workspace.save_index(1)

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(save, [store._workspace for store in stores]))
    last = open_any()
    assert all(check.ok and not check.repaired for check in last.doctor())
    assert last.recall("number77", top_k=1)[0].text == TEXTS[77]


def test_an_index_in_several_parts_is_put_together(open_any: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.storage.postgresql.word_index.PART_BYTES", 5000)
    filled(open_any)
    store = open_any()
    expected = hits(store)
    assert all(check.ok and not check.repaired for check in store.doctor())
    monkeypatch.setattr("heedful.storage.postgresql.word_index.PART_BYTES", 20_000)
    store._workspace.save_index(1)
    assert hits(open_any()) == expected


class TestFiles:
    """On SQLite, it is a file beside the store."""

    def test_an_index_of_another_store_is_not_used(self, open_store: Open, path: Path) -> None:
        first = open_store()
        first.remember(TEXTS)
        first.close()
        path.unlink()
        second = open_store()
        second.remember([f"entirely different thing{number}" for number in range(350)])
        assert second.recall("thing7", top_k=1)[0].text == "entirely different thing7"
        second.close()
        assert open_store().recall("thing7", top_k=1)[0].text == "entirely different thing7"

    def test_a_place_where_no_index_can_be_saved_does_no_harm(self, open_store: Open, path: Path) -> None:
        path.with_name("store.db-index").write_text("in the way")
        store = open_store()
        assert store.remember(TEXTS).added == len(TEXTS)
        assert store.recall("number77", top_k=1)[0].text == TEXTS[77]
        store.close()


class TestTables:
    """On PostgreSQL, it is in the store, and only its project sees it."""

    def test_another_project_does_not_see_it(self, empty_database: str, open_store: Open) -> None:
        store = open_store(empty_database)
        store.remember(TEXTS)
        store._workspace.save_indexes(last=True)
        database = store._workspace.database
        count = select(func.count()).select_from(saved_indexes)
        with database.read("default") as own, database.read("other") as other:
            assert own.execute(count).scalar() == 1
            assert other.execute(count).scalar() == 0

    def test_a_store_that_was_set_back_does_not_use_it(self, empty_database: str, open_store: Open) -> None:
        first = open_store(empty_database)
        first.remember(TEXTS)
        first.close()
        second = open_store(empty_database)
        with second._workspace.database.write() as connection:
            connection.execute(text("DELETE FROM changes WHERE fact_seq > 200"))
            connection.execute(text("DELETE FROM facts WHERE seq > 200"))
        assert {hit.text for hit in second.recall("number250", top_k=50)} <= set(TEXTS[:200])
