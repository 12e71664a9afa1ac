from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful import Conflict, Heedful, Signal, Unavailable
from heedful.providers.embedding import Vectors, bundled
from heedful.testing import WordEmbedder


class Other(WordEmbedder):
    """Another model: other directions, another width."""

    name = "other-words"

    def __init__(self, dimensions: int = 32) -> None:
        super().__init__(dimensions)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return super().embed([text.replace("a", "o") for text in texts])


class Stopping(Other):
    """Stops after some calls, as a machine that is switched off."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not self.calls:
            raise Unavailable("switched off")
        self.calls -= 1
        return super().embed(texts)


def test_another_model_is_refused_and_says_what_to_run(open_store: Callable[..., Heedful]) -> None:
    open_store().remember("x")
    with pytest.raises(Conflict, match=r"made by words-for-tests.*opened with other-words") as caught:
        open_store(embedding=Other())
    assert caught.value.code == "other_model"
    assert "heedful reembed" in str(caught.value)


def test_a_model_of_the_same_name_and_another_width_is_refused(open_store: Callable[..., Heedful]) -> None:
    open_store().remember("x")
    with pytest.raises(Conflict) as caught:
        open_store(embedding=WordEmbedder(32)).recall("x")
    assert caught.value.code == "other_model"


def test_an_empty_store_takes_any_model(open_store: Callable[..., Heedful]) -> None:
    open_store().recall("x")
    open_store(embedding=Other()).remember("y")


def test_after_it_the_new_model_serves_and_the_old_one_is_refused(
    open_store: Callable[..., Heedful], path: Path
) -> None:
    store = open_store()
    store.remember([f"apples number {number}" for number in range(5)])
    store.close()
    assert heedful.reembed(path, embedding=Other()) == 5
    again = open_store(embedding=Other())
    assert again.recall("apples number 3", top_k=1)[0].text == "apples number 3"
    assert all(check.ok and not check.repaired for check in again.doctor())
    with pytest.raises(Conflict, match="made by other-words"):
        open_store()


@pytest.mark.slow
def test_a_store_of_an_earlier_file_of_the_bundled_model_is_served_after_it(
    open_store: Callable[..., Heedful], path: Path
) -> None:
    earlier = bundled()
    earlier.name = "all-MiniLM-L6-v2-int8@8199be6f699a"
    store = open_store(embedding=earlier)
    fact = store.remember(["Anna is the chief executive.", "The gym opens at six."]).fact_ids[0]
    store.signal([Signal(fact_id=fact, signal_type="helpful", query="Who is the CEO?")])
    store.close()
    with pytest.raises(Conflict, match="8199be6f699a"):
        open_store(embedding="bundled")
    assert heedful.reembed(path, embedding="bundled") == 2
    hit = open_store(embedding="bundled").recall("Who is the CEO?", boost_by_usefulness=True)[0]
    assert (hit.fact_id, hit.usefulness_source) == (fact, "context")


def test_signals_and_contexts_survive(open_store: Callable[..., Heedful], path: Path) -> None:
    store = open_store()
    fact = store.remember("apples are red").fact_ids[0]
    store.signal([Signal(fact_id=fact, signal_type="helpful", query="apples red")])
    assert store.recall("red apples", boost_by_usefulness=True)[0].usefulness_source == "context"
    store.close()
    heedful.reembed(path, embedding=Other())
    hit = open_store(embedding=Other()).recall("red apples", boost_by_usefulness=True)[0]
    assert (hit.fact_id, hit.usefulness, hit.usefulness_source) == (fact, 0.65, "context")


def test_progress_is_told(open_store: Callable[..., Heedful], path: Path) -> None:
    open_store().remember([f"fact {number}" for number in range(600)])
    messages: list[tuple[int, int]] = []
    heedful.reembed(path, embedding=Other(), progress=lambda done, total: messages.append((done, total)))
    assert len(messages) > 1
    assert messages[-1] == (600, 600)


def test_it_may_be_stopped_and_started_again(open_store: Callable[..., Heedful], path: Path) -> None:
    store = open_store()
    store.remember([f"fact {number}" for number in range(600)])
    with pytest.raises(Unavailable):
        heedful.reembed(path, embedding=Stopping(1))
    assert store.recall("fact 7", top_k=1)[0].text == "fact 7"
    store.remember("a fact from meanwhile")
    assert 0 < heedful.reembed(path, embedding=Other()) < 601
    assert open_store(embedding=Other()).recall("meanwhile", top_k=1)[0].text == "a fact from meanwhile"


def test_vectors_are_never_mixed(open_store: Callable[..., Heedful], path: Path) -> None:
    open_store().remember(["one", "two"])
    heedful.reembed(path, embedding=Other())
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT v.vector, m.name FROM vectors v JOIN models m ON m.id = v.model_id").fetchall()
    connection.close()
    assert {name for _, name in rows} == {"other-words"}
    assert {len(np.frombuffer(vector, np.float16)) for vector, _ in rows} == {32}


def test_an_open_store_of_the_old_model_stops_serving(open_store: Callable[..., Heedful], path: Path) -> None:
    store = open_store()
    store.remember("x")
    heedful.reembed(path, embedding=Other())
    for verb in (lambda: store.recall("x"), lambda: store.remember("y")):
        with pytest.raises(Conflict, match="other-words"):
            verb()


def test_with_the_same_model_there_is_nothing_to_do(open_store: Callable[..., Heedful], path: Path) -> None:
    open_store().remember("x")
    assert heedful.reembed(path, embedding=WordEmbedder()) == 0


def test_every_project_of_the_store_is_done(open_store: Callable[..., Heedful], path: Path) -> None:
    open_store(project="a").remember("x")
    open_store(project="b").remember("y")
    assert heedful.reembed(path, embedding=Other()) == 2
