"""A process that opens a store on PostgreSQL reads few vectors before its first answer, and finds what others find."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import heedful
from heedful import Heedful
from heedful.model import MODES, Mode
from heedful.search import dataset
from heedful.storage import vectors
from heedful.testing import WordEmbedder
from heedful.workspace import Workspace

pytestmark = pytest.mark.slow

FACTS = 400
TEXTS = tuple(f"fact number{number} of group{number % 40} about topic{number % 7}" for number in range(FACTS))
QUERIES = tuple(f"number{number} topic{number % 5} group{number % 11}" for number in range(0, FACTS, 40))
SOON = 30

Open = Callable[[], Heedful]


@pytest.fixture(autouse=True)
def a_few_facts_count_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.search.dataset.SAVE_AFTER", 100)
    monkeypatch.setattr("heedful.search.vector_index.EXACT_BELOW", 20)
    monkeypatch.setattr("heedful.search.vector_index.RESCORE_COUNT", 20)
    monkeypatch.setattr("heedful.search.relevance.POOL", 10)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The facts whose vectors were read from the store after its index was loaded."""
    seqs: list[int] = []
    original = vectors.read_rows

    def noted(connection: Any, model: Any, asked: Any) -> Any:
        seqs.extend(asked.tolist())
        return original(connection, model, asked)

    monkeypatch.setattr(dataset, "read_rows", noted)
    return seqs


@pytest.fixture
def no_reading_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workspace, "do_later", lambda *_: None)


@pytest.fixture
def opening(empty_database: str, open_store: Callable[..., Heedful]) -> Open:
    return lambda: open_store(empty_database)


@pytest.fixture
def filled(opening: Open, read: list[int]) -> Heedful:
    """A process that has everything in memory, and saved it for others."""
    store = opening()
    store.remember(TEXTS, source="book")
    store._workspace.save_index(1)
    assert read == []
    return store


def hits(store: Heedful, mode: Mode = "hybrid", **options: Any) -> list[list[tuple[str, float]]]:
    found = (store.recall(query, mode=mode, top_k=5, **options) for query in QUERIES)
    return [[(hit.fact_id, hit.score) for hit in each] for each in found]


def until(condition: Callable[[], bool]) -> None:
    late = time.monotonic() + SOON
    while not condition() and time.monotonic() < late:
        time.sleep(0.02)
    assert condition()


def test_a_first_recall_reads_the_vectors_of_its_candidates(filled: Heedful, opening: Open, read: list[int]) -> None:
    expected = [hit.fact_id for hit in filled.recall(QUERIES[3])]
    assert [hit.fact_id for hit in opening().recall(QUERIES[3])] == expected
    assert 0 < len(read) < FACTS / 2


@pytest.mark.usefixtures("no_reading_ahead")
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "lexical"])
@pytest.mark.nightly
def test_it_finds_what_a_process_with_all_vectors_finds(
    filled: Heedful, opening: Open, read: list[int], mode: Mode
) -> None:
    assert hits(opening(), mode) == hits(filled, mode)
    assert 0 < len(read) == len(set(read)) < FACTS


@pytest.mark.usefixtures("filled")
def test_words_alone_need_no_vector(opening: Open, read: list[int]) -> None:
    opened = opening()
    assert opened.recall("number77", mode="lexical", top_k=1)[0].text == TEXTS[77]
    assert read == []
    opened.recall("number77", mode="semantic")
    assert read != []


def test_the_rest_is_read_while_nobody_waits(filled: Heedful, opening: Open, read: list[int]) -> None:
    opened = opening()
    opened.recall(QUERIES[0])
    opened.recall(QUERIES[0])
    until(lambda: len(set(read)) == FACTS)
    until(lambda: not opened._workspace._indexes[1, 1].has_unread_vectors)
    read.clear()
    assert hits(opened) == hits(filled)
    assert read == []


@pytest.mark.usefixtures("no_reading_ahead")
@pytest.mark.nightly
def test_changes_of_others_are_followed(filled: Heedful, opening: Open, read: list[int]) -> None:
    opened = opening()
    opened.recall(QUERIES[0])
    gone = [hit.fact_id for query in QUERIES for hit in filled.recall(query, top_k=2)]
    filled.forget(gone)
    (new,) = filled.remember("fact number40 of group40 about topic5, again").fact_ids
    corrected = filled.recall("number80 group0", top_k=1)[0].fact_id
    filled.supersede(corrected, by=new)
    found = hits(opened)
    assert found == hits(filled)
    assert {fact for each in found for fact, _ in each}.isdisjoint([*gone, corrected])
    assert 0 < len(read) < FACTS


@pytest.mark.usefixtures("no_reading_ahead")
@pytest.mark.nightly
def test_datasets_are_read_apart(filled: Heedful, opening: Open, read: list[int]) -> None:
    filled.remember([f"{text} elsewhere" for text in TEXTS], dataset="other")
    filled._workspace.save_index(2)
    opened = opening()
    for name in ("other", "main_dataset"):
        assert hits(opened, dataset=name) == hits(filled, dataset=name)
    assert 0 < len(read) == len(set(read)) < 2 * FACTS


@pytest.mark.usefixtures("no_reading_ahead")
def test_sign_bits_that_are_made_again_take_all_vectors(
    filled: Heedful, opening: Open, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.search.vector_index.MAX_DRIFT", 0.0)
    opened = opening()
    opened.recall(QUERIES[0])
    filled.remember("one more moves the centre")
    assert hits(opened) == hits(filled)
    assert sorted(read) == sorted(set(read))
    assert len(read) == FACTS


@pytest.mark.nightly
def test_dead_rows_are_copied_out_once_all_vectors_are_read(
    filled: Heedful, opening: Open, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "MIN_DEAD_ROWS", 10)
    opened = opening()
    opened.recall(QUERIES[0])
    index = opened._workspace._indexes[1, 1]
    filled.forget([fact.fact_id for fact in filled.facts(limit=300).items])
    opened.recall(QUERIES[0])
    until(lambda: not index.has_unread_vectors)
    filled.remember("the last one")
    assert hits(opened) == hits(filled)
    assert index.held == len(index) == FACTS - 300 + 1
    assert read != []


@pytest.mark.nightly
def test_a_process_that_has_not_read_all_saves_all(
    filled: Heedful, opening: Open, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = opening()
    second.recall(QUERIES[0])
    assert 0 < len(read) < FACTS
    second.forget(filled.recall("number77", top_k=1)[0].fact_id)
    second.remember([f"newcomer{number} of group{number % 40}" for number in range(150)])
    second.recall(QUERIES[0])
    second.close()
    # What is not in the saved index is not found.
    monkeypatch.setattr("heedful.storage.facts.indexable", lambda *_: iter(()))
    third = opening()
    for mode in ("semantic", "lexical", "hybrid"):
        for text in (TEXTS[5], TEXTS[78], TEXTS[399], "newcomer99 of group19"):
            assert third.recall(text, mode=mode, top_k=1)[0].text == text
        assert TEXTS[77] not in {hit.text for hit in third.recall(TEXTS[77], mode=mode)}
    assert all(check.ok and not check.repaired for check in third.doctor())


@pytest.mark.nightly
def test_first_recalls_at_once_agree(filled: Heedful, opening: Open, read: list[int]) -> None:
    opened = opening()
    expected = hits(filled)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: hits(opened), range(8))) == [expected] * 8
    assert read != []


@pytest.mark.usefixtures("filled")
def test_vectors_of_a_model_that_comes_back_are_found(empty_database: str, opening: Open, read: list[int]) -> None:
    class Other(WordEmbedder):
        name = "other"

    opened = opening()
    before = opened.recall(QUERIES[0], mode="semantic")
    index = opened._workspace._indexes[1, 1]
    heedful.reembed(empty_database, embedding=Other())
    # What reads in the background must not take them for facts without a vector.
    for _ in opened._workspace._read_vectors(index):
        pass
    assert index.has_unread_vectors
    heedful.reembed(empty_database, embedding=WordEmbedder())
    with heedful.open(empty_database, embedding=WordEmbedder()) as fresh:
        assert hits(opened, "semantic") == hits(fresh, "semantic")
    assert opened.recall(QUERIES[0], mode="semantic").hits == before.hits
    assert read != []


@pytest.mark.parametrize(("times", "bytes_per_count"), [(255, 1), (256, 4)])
@pytest.mark.nightly
def test_repeated_words_count_as_before(
    filled: Heedful, opening: Open, read: list[int], times: int, bytes_per_count: int
) -> None:
    filled.remember(["7 " * times, "7 once, and topic1"])
    filled.recall("7")
    filled._workspace.save_index(1)
    opened = opening()
    assert [hit.score for hit in opened.recall("7 topic1", mode="lexical", top_k=9)] == [
        hit.score for hit in filled.recall("7 topic1", mode="lexical", top_k=9)
    ]
    assert opened._workspace._indexes[1, 1]._held.segments[0].counts.itemsize == bytes_per_count
    assert read == []
