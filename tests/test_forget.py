from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful import Heedful, Invalid, NotFound, Signal


def texts_of(store: Heedful, dataset: str = "main_dataset") -> set[str]:
    return {hit.text for hit in store.recall("anything", dataset=dataset, mode="semantic", top_k=100)}


def test_one_fact_is_forgotten(store: Heedful) -> None:
    ids = store.remember(["one", "two"]).fact_ids
    result = store.forget(ids[0])
    assert (result.facts, result.dataset) == (1, "main_dataset")
    assert texts_of(store) == {"two"}
    with pytest.raises(NotFound):
        store.fact_stats(ids[0])


def test_many_facts_are_forgotten(store: Heedful) -> None:
    ids = store.remember(["one", "two", "three"]).fact_ids
    other = store.remember("four", dataset="second").fact_ids
    assert store.forget([*ids[:2], *other]).facts == 3
    assert texts_of(store) == {"three"}
    assert texts_of(store, "second") == set()


def test_an_unknown_fact_keeps_all_of_them(store: Heedful) -> None:
    ids = store.remember(["one", "two"]).fact_ids
    with pytest.raises(NotFound, match=r"'nobody'.*nothing was forgotten"):
        store.forget([ids[0], "nobody"])
    assert texts_of(store) == {"one", "two"}


def test_a_source_is_forgotten(store: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("from a file")
    store.remember(file)
    store.remember("from elsewhere", source="b")
    store.remember("from the same elsewhere", source="b", dataset="second")
    assert store.forget(source="b").facts == 1
    assert texts_of(store) == {"from a file"}
    assert texts_of(store, "second") == {"from the same elsewhere"}
    assert store.forget(source=file.as_posix()).facts == 1
    assert store.forget(source="b", dataset="second").facts == 1


def test_an_unknown_source_is_not_found(store: Heedful) -> None:
    store.remember("x")
    with pytest.raises(NotFound, match="'nowhere'"):
        store.forget(source="nowhere")


def test_a_dataset_is_forgotten(store: Heedful) -> None:
    fact = store.remember(["one", "two"], dataset="first").fact_ids[0]
    store.remember("three", dataset="second")
    store.signal([Signal(fact_id=fact, signal_type="used", query="q")])
    recall_id = store.recall("one", dataset="first").recall_id
    assert store.forget(dataset="first").facts == 2
    assert store.datasets() == ["second"]
    for verb in (lambda: store.recall("one", dataset="first"), lambda: store.receipt(recall_id)):
        with pytest.raises(NotFound):
            verb()
    assert texts_of(store, "second") == {"three"}


def test_a_dataset_may_be_begun_again(store: Heedful) -> None:
    store.remember("before")
    store.recall("before")
    store.forget(dataset="main_dataset")
    assert len(store.recall("before")) == 0
    fact = store.remember("before").fact_ids[0]
    assert [hit.fact_id for hit in store.recall("before")] == [fact]
    assert store.fact_stats(fact).signal_count == 0


def test_an_unknown_dataset_is_not_found(store: Heedful) -> None:
    with pytest.raises(NotFound, match="'nothing'"):
        store.forget(dataset="nothing")


def test_what_is_to_be_forgotten_must_be_named_and_only_once(store: Heedful) -> None:
    fact = store.remember("x", source="s").fact_ids[0]
    with pytest.raises(Invalid, match="nothing to forget"):
        store.forget()
    with pytest.raises(Invalid, match="fact_ids"):
        store.forget(fact, source="s")
    with pytest.raises(Invalid, match="fact_ids"):
        store.forget([fact], dataset="main_dataset")
    assert texts_of(store) == {"x"}


def test_the_scores_of_others_stay(store: Heedful) -> None:
    one, two = store.remember(["one", "two"]).fact_ids
    store.signal([Signal(fact_id=fact, signal_type="helpful", query="q") for fact in (one, two)])
    store.forget(one)
    assert store.fact_stats(two).overall_usefulness == 0.65
    assert store.usefulness_stats().total_signals == 1


def test_a_fact_that_is_remembered_again_starts_over(store: Heedful) -> None:
    fact = store.remember("again").fact_ids[0]
    store.signal([Signal(fact_id=fact, signal_type="helpful", query="q")])
    store.forget(fact)
    fresh = store.remember("again").fact_ids[0]
    assert fresh != fact
    assert store.fact_stats(fresh).overall_usefulness == 0.5


@pytest.mark.parametrize("everything", ["fact", "source", "dataset"])
def test_no_word_of_it_stays_in_the_store(open_store: Callable[..., Heedful], path: Path, everything: str) -> None:
    store = open_store()
    secret = "xylophonic-secret"
    fact = store.remember(
        f"the {secret} fact", metadata={secret: f"{secret} value"}, source=f"{secret}-source"
    ).fact_ids[0]
    store.signal([Signal(fact_id=fact, signal_type="used", query="an innocent question", context=f"{secret} note")])
    store.recall("an innocent question")
    if everything == "fact":
        store.forget(fact)
    elif everything == "source":
        store.forget(source=f"{secret}-source")
    else:
        store.forget(dataset="main_dataset")
    assert all(check.ok for check in store.doctor())
    store.close()
    with sqlite3.connect(path) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert fact in dump or everything != "fact"
    assert secret not in dump


def test_no_question_stays_when_a_dataset_is_forgotten(open_store: Callable[..., Heedful], path: Path) -> None:
    store = open_store()
    store.remember("a fact")
    store.recall("xylophonic question")
    store.forget(dataset="main_dataset")
    store.close()
    with sqlite3.connect(path) as connection:
        assert "xylophonic" not in "\n".join(connection.iterdump())
    connection.close()


def test_a_dataset_that_is_not_there_names_those_that_are(store: Heedful) -> None:
    store.remember("The office opens at nine.", dataset="handbook")
    for call in (store.forget, store.get_dataset):
        with pytest.raises(NotFound, match=r"has no dataset 'handbok'\. It has: handbook$"):
            call(dataset="handbok")
