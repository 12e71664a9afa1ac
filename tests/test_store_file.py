"""A store's file that is moved, deleted or replaced while it is open: no write is acknowledged and then lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from server import running

from heedful import Heedful, Unavailable, transfer

SUFFIXES = ("", "-wal", "-shm")


@pytest.fixture
def store(path: Path, open_store: Callable[..., Heedful]) -> Heedful:
    memory = open_store()
    memory.remember("The gym opens at six.")
    memory.recall("When does the gym open?")
    return memory


def parts(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in SUFFIXES]


def refused(write: Callable[[], object]) -> str:
    with pytest.raises(Unavailable, match="open it again") as caught:
        write()
    assert caught.value.code == "store_moved"
    return caught.value.message


def test_a_write_to_a_deleted_file_is_refused(store: Heedful, path: Path) -> None:
    for part in parts(path):
        part.unlink()
    assert str(path) in refused(lambda: store.remember("The pool opens at nine."))
    refused(lambda: store.recall("When does the gym open?"))
    refused(lambda: store.sessions.create("s"))
    assert not path.exists()


def test_many_readers_of_a_deleted_file_make_no_new_one(store: Heedful, path: Path) -> None:
    for part in parts(path):
        part.unlink()
    with ThreadPoolExecutor(16) as pool:
        readers = [pool.submit(lambda: store.facts()) for _ in range(64)]
    assert {type(each.exception()) for each in readers} <= {type(None), Unavailable}
    assert not path.exists()


def test_every_concurrent_writer_is_told(store: Heedful, path: Path) -> None:
    for part in parts(path):
        part.unlink()
    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(store.remember, f"Room {number} is free.") for number in range(24)]
    assert {getattr(each.exception(), "code", None) for each in writers} == {"store_moved"}


def test_a_file_that_is_moved_back_takes_writes_again(store: Heedful, path: Path) -> None:
    away = [part.with_name(f"away-{part.name}") for part in parts(path)]
    for part, place in zip(parts(path), away, strict=True):
        part.rename(place)
    refused(lambda: store.remember("The pool opens at nine."))
    for part, place in zip(parts(path), away, strict=True):
        place.rename(part)
    store.remember("The sauna opens at ten.")
    assert {fact.text for fact in store.facts().items} == {"The gym opens at six.", "The sauna opens at ten."}


def test_a_backup_that_takes_its_place_is_not_overwritten(
    store: Heedful, path: Path, open_store: Callable[..., Heedful]
) -> None:
    transfer.backup(path, path.with_name("backup.db"))
    for part in parts(path)[1:]:
        part.unlink()
    os.replace(path.with_name("backup.db"), path)
    refused(lambda: store.remember("The pool opens at nine."))
    store.close()
    with open_store() as again:
        again.remember("The sauna opens at ten.")
        assert len(again.facts().items) == 2
        assert all(check.ok for check in again.doctor())


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_is_deleted_alone_is_noticed(
    suffix: str, store: Heedful, path: Path, open_store: Callable[..., Heedful]
) -> None:
    path.with_name(path.name + suffix).unlink()
    assert suffix in refused(lambda: store.remember("The pool opens at nine."))
    store.close()
    assert [fact.text for fact in open_store().facts().items] == ["The gym opens at six."]


def test_a_copy_beside_it_and_another_folder_are_no_move(
    store: Heedful, path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Callable[..., Heedful]
) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    here = open_store(Path("relative.db"))
    monkeypatch.chdir(path.parent.parent)
    here.remember("The pool opens at nine.")
    store.remember("The pool opens at nine.")
    assert path.with_name("relative.db").exists()


WRITER = """
import sys
import heedful
from heedful.testing import WordEmbedder

with heedful.open(sys.argv[1], embedding=WordEmbedder()) as store:
    for line in sys.stdin:
        try:
            store.remember(line)
            print("stored", flush=True)
        except heedful.Unavailable as error:
            print(error.code, flush=True)
"""


@pytest.mark.usefixtures("warm_processes")
@pytest.mark.slow
def test_every_process_that_has_it_open_is_told(store: Heedful, path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def ask(text: str) -> str:
            assert other.stdin is not None
            assert other.stdout is not None
            print(text, file=other.stdin, flush=True)
            return other.stdout.readline().strip()

        assert ask("The pool opens at nine.") == "stored"
        store.remember("The sauna opens at ten.")
        for part in parts(path):
            part.unlink()
        assert ask("The bar opens at noon.") == "store_moved"
        refused(lambda: store.remember("The bar opens at noon."))
        other.stdin.close()


def test_a_server_answers_that_its_store_is_unavailable(path: Path) -> None:
    with running(path) as server:
        headers = {"Authorization": f"Bearer {server.key}"}
        with server.connect() as memory:
            memory.remember("The gym opens at six.")
        for part in parts(path):
            part.unlink()
        body = {"texts": "The pool opens at nine."}
        answer = httpx.post(f"{server.url}/v1/projects/default/facts", headers=headers, json=body)
        assert (answer.status_code, answer.json()["code"]) == (503, "store_moved")
    assert not path.exists()
