from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine

import heedful
from heedful import Heedful, Invalid, Unavailable
from heedful.testing import WordEmbedder


def test_a_store_is_made_where_it_is_named(open_store: Callable[..., Heedful], path: Path) -> None:
    open_store(path)
    assert path.is_file()


def test_a_store_is_there_again(open_store: Callable[..., Heedful]) -> None:
    with open_store() as store:
        store.remember("kept")
    assert [hit.text for hit in open_store().recall("kept")] == ["kept"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "HTTPS://memory.example.com", "http://ada:pw@host"])
def test_a_server_is_not_opened_but_connected_to(url: str) -> None:
    with pytest.raises(Invalid, match=r"This is a server: use heedful\.connect\(url\)") as caught:
        heedful.open(url)
    assert "pw" not in f"{caught.value} {caught.value.value}"


def test_a_path_may_be_a_text_or_a_url(open_store: Callable[..., Heedful], path: Path) -> None:
    open_store(path).remember("kept")
    for name in (str(path), f"sqlite:///{path}", f"SQLite:///{path}", os.path.relpath(path)):
        assert len(open_store(name).recall("kept")) == 1


@pytest.mark.parametrize("name", ["with space.db", "what?.db", "100%.db", "a%20b.db", "a#b.db", "ünï.db", "x=1&y.db"])
def test_a_file_may_have_any_name(open_store: Callable[..., Heedful], tmp_path: Path, name: str) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    with open_store(folder / name) as store:
        store.remember("x")
        assert [file.name for file in folder.iterdir() if not file.name.endswith(("-wal", "-shm"))] == [name]
    assert len(open_store(folder / name).recall("x")) == 1


def test_a_store_in_memory_is_gone_when_it_is_closed(open_store: Callable[..., Heedful]) -> None:
    with open_store(":memory:") as store:
        file = Path(store._workspace.database.name)
        store.remember("x")
        assert len(store.recall("x")) == 1
    assert not file.exists()
    assert not file.parent.exists()
    assert len(open_store(":memory:").recall("x")) == 0


def test_two_stores_in_memory_are_two(open_store: Callable[..., Heedful]) -> None:
    open_store(":memory:").remember("x")
    assert len(open_store("sqlite://").recall("x")) == 0


def test_settings_say_what_the_caller_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_STORE", str(tmp_path / "from-environment.db"))
    (tmp_path / "heedful.toml").write_text('project = "from-file"\n')
    with heedful.open(embedding=WordEmbedder()) as store:
        assert repr(store) == f"<Heedful {tmp_path}/from-environment.db project='from-file'>"
    with heedful.open(tmp_path / "other.db", project="mine", embedding=WordEmbedder()) as store:
        assert repr(store) == f"<Heedful {tmp_path}/other.db project='mine'>"


@pytest.mark.slow
def test_the_default_is_a_file_in_the_current_folder_and_the_default_project(tmp_path: Path) -> None:
    with heedful.open(embedding=WordEmbedder()) as store:
        store.remember("x")
        assert "project='default'" in repr(store)
    assert (tmp_path / "heedful.db").is_file()
    with heedful.open(tmp_path / "heedful.db", project="default", embedding=WordEmbedder()) as store:
        assert len(store.recall("x")) == 1


def test_a_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    heedful.open("~/mine.db", embedding=WordEmbedder()).close()
    assert (tmp_path / "mine.db").is_file()


@pytest.mark.parametrize("url", ["", "  ", "mysql://u:secret@host/db", "nonsense://x", "sqlite+nonsense:///x.db"])
def test_a_url_that_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        heedful.open(url, embedding=WordEmbedder())
    assert caught.value.field == "url_or_path"
    assert "secret" not in str(caught.value)


def test_a_driver_that_can_not_serve_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        heedful.open("sqlite+aiosqlite:///x.db", embedding=WordEmbedder())
    assert caught.value.field == "url_or_path"


@pytest.mark.parametrize("project", ["", " ", "x" * 201, 3])
def test_a_project_without_a_name_is_refused(path: Path, project: str) -> None:
    with pytest.raises(Invalid, match="project"):
        heedful.open(path, project=project, embedding=WordEmbedder())
    assert not path.exists()


def test_opening_reads_and_writes_no_rows(store: Heedful) -> None:
    assert store.datasets() == []


def test_a_model_may_be_chosen_by_name(path: Path) -> None:
    with pytest.raises(Invalid, match="embedding"):
        heedful.open(path, embedding="no such model")
    assert not path.exists()


def test_a_closed_store_says_so(store: Heedful) -> None:
    store.close()
    with pytest.raises(Unavailable, match="is closed") as caught:
        store.recall("x")
    assert caught.value.code == "store_closed"


def test_closing_twice_is_closing_once(store: Heedful) -> None:
    store.close()
    store.close()


def test_closing_leaves_one_file(open_store: Callable[..., Heedful], path: Path) -> None:
    with open_store() as store:
        store.remember("x")
        store.recall("x")
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


@pytest.mark.slow
def test_threads_may_open_new_stores_at_once(open_store: Callable[..., Heedful], tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda number: open_store(tmp_path / f"{number}.db"), range(16)))
    for store in stores:
        assert store.remember("x").added == 1


def test_threads_may_open_one_new_store_at_once(open_store: Callable[..., Heedful], path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_store(path), range(8)))
    for store in stores:
        store.remember("x")
    assert stores[0].usefulness_stats().total_facts == 1


@pytest.mark.slow
def test_threads_may_share_a_store(store: Heedful) -> None:
    facts = store.remember([f"fact number {number}" for number in range(10)]).fact_ids

    def work(number: int) -> None:
        store.remember(f"thread {number} was here")
        store.signal([{"fact_id": facts[number % 10], "signal_type": "used", "query": f"question {number}"}])
        assert len(store.recall("fact number", boost_by_usefulness=True)) == 10

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    stats = store.usefulness_stats()
    assert (stats.total_facts, stats.total_signals) == (50, 40)
    assert all(check.ok and not check.repaired for check in store.doctor())


def test_no_verb_waits_for_a_second_connection_while_it_holds_one(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(url: URL, **options: Any) -> Engine:
        pool = {} if "pool" in options else {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.5}
        return create_engine(url, **{**options, **pool})

    monkeypatch.setattr("heedful.storage.database.create_engine", small)
    store = open_store()
    fact, other = store.remember(["one fact", "another fact"]).fact_ids
    event = store.signal([{"fact_id": fact, "signal_type": "used", "query": "a new question"}]).event_ids[0]
    recall = store.recall("yet another question", boost_by_usefulness=True, explain=True)
    store.signal([{"fact_id": fact, "signal_type": "used", "query": "a third question"}])
    store.fact_stats(fact)
    store.signal_recall(recall.recall_id, used=[fact])
    store.usefulness_stats()
    store.retract(event)
    store.forget(other)
    assert all(check.ok for check in store.doctor())


@pytest.mark.parametrize("where", [5, b"store.db", ["store.db"]])
def test_what_is_no_path_is_refused(where: Any) -> None:
    with pytest.raises(Invalid, match="must be a path or a URL"):
        heedful.open(where, embedding=WordEmbedder())
