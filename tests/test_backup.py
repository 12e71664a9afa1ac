"""A backup is taken while others write, and what was stored before it began is in it."""

from __future__ import annotations

import os
import resource
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from lived import Place, dumped
from postgresql_process import binaries

import heedful
from heedful import Conflict, Invalid, NotFound, Unavailable
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import backup, backups, copy, verify

pytestmark = pytest.mark.usefixtures("warm_processes")

WRITER = """
import sys
import heedful
from heedful.testing import ManualClock, WordEmbedder

with heedful.open(sys.argv[1], clock=ManualClock(), embedding=WordEmbedder()) as store:
    (fact,) = store.remember("It is written about.").fact_ids
    for number in range(1_000_000):
        made = store.signal([{"fact_id": fact, "signal_type": "used", "query": f"question {number % 9}"}])
        print(made.event_ids[0], flush=True)
"""


@pytest.mark.slow
def test_a_backup_has_all_that_the_store_has(lived: Path, tmp_path: Path) -> None:
    made = backup(lived, tmp_path / "backup.db")
    # But for the secret that tokens are signed with.
    assert dumped(tmp_path / "backup.db") == dumped(lived) | {"signing": []}
    assert made.bytes == (tmp_path / "backup.db").stat().st_size
    assert made.tables["facts"] == len(dumped(lived)["facts"])
    assert verify(tmp_path / "backup.db") == verify(lived).model_copy(update={"store": str(tmp_path / "backup.db")})


@pytest.mark.slow
def test_a_backup_under_load_has_every_write_that_was_acknowledged(
    lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Many small steps, so that writes come in between.
    monkeypatch.setattr(backups, "PAGES", 5)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(lived)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            acknowledged = [writer.stdout.readline().strip() for _ in range(50)]
            meanwhile: list[str] = []

            def progress(done: int, total: int) -> None:
                # Each step waits for a write: they are not kept out, and don't make the backup start over.
                assert writer.stdout is not None
                if len(meanwhile) < 20:
                    meanwhile.append(writer.stdout.readline().strip())

            backup(lived, tmp_path / "backup.db", progress=progress)
        finally:
            writer.kill()
    assert len(meanwhile) == 20
    with closing(sqlite3.connect(tmp_path / "backup.db")) as copied:
        stored = {row[0] for row in copied.execute("SELECT id FROM events")}
    assert set(acknowledged) <= stored
    assert verify(tmp_path / "backup.db").ok
    with heedful.open(tmp_path / "backup.db", clock=ManualClock(), embedding=WordEmbedder()) as restored:
        assert restored.recall("What is written about?").hits


def test_a_file_is_replaced_only_when_asked(lived: Path, tmp_path: Path) -> None:
    (tmp_path / "backup.db").write_text("precious")
    with pytest.raises(Conflict, match="already exists"):
        backup(lived, tmp_path / "backup.db")
    assert (tmp_path / "backup.db").read_text() == "precious"
    backup(lived, tmp_path / "backup.db", force=True)
    assert verify(tmp_path / "backup.db").ok


def test_neither_the_store_nor_one_that_is_open_is_replaced(lived: Path, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="the store itself"):
        backup(lived, lived, force=True)
    with pytest.raises(Invalid, match="the store itself"):
        backup(lived, f"{lived}-wal", force=True)
    with heedful.open(tmp_path / "open.db", clock=ManualClock(), embedding=WordEmbedder()) as store:
        store.remember("Mine.")
        with pytest.raises(Conflict, match="open"):
            backup(lived, tmp_path / "open.db", force=True)


def test_what_is_no_file_is_not_replaced(lived: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(Invalid, match="not a file") as refused:
            backup(lived, name, force=True)
        assert (refused.value.field, refused.value.value) == ("file", str(name))
    assert (tmp_path / "pipe").is_fifo()


def test_bad_names_are_refused(lived: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no store"):
        backup(tmp_path / "missing.db", tmp_path / "backup.db")
    with pytest.raises(Unavailable, match="can't be written"):
        backup(lived, tmp_path / "no" / "backup.db")
    (tmp_path / "text.db").write_text("This is no store, only some text that is long enough to be looked at." * 20)
    with pytest.raises(Unavailable, match="not a Heedful store"):
        backup(tmp_path / "text.db", tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as foreign:
        foreign.execute("CREATE TABLE cats (name)")
    with pytest.raises(Conflict, match="not a store"):
        backup(tmp_path / "foreign.db", tmp_path / "backup.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign.db", "lived.db", "text.db"]


def test_a_backup_of_an_older_store_leaves_it_old(lived: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(lived)) as older, older:
        older.execute("UPDATE alembic_version SET version_num = '0000'")
    backup(lived, tmp_path / "backup.db")
    for path in (lived, tmp_path / "backup.db"):
        assert dumped(path)["alembic_version"] == [("0000",)]


def test_a_disk_without_room_is_told_and_leaves_nothing(lived: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        with pytest.raises(Unavailable) as refused:
            backup(lived, tmp_path / "backup.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.code in ("disk_full", "store_io")
    assert [path.name for path in tmp_path.iterdir()] == ["lived.db"]


@pytest.mark.slow
def test_a_store_on_a_server_names_the_commands_that_do_it(lived: Path, tmp_path: Path, place: Place) -> None:
    source, target = place("postgresql"), place("postgresql")
    copy(lived, source)
    with pytest.raises(Invalid, match="PostgreSQL's own tools") as refused:
        backup(
            f"{source.replace('keeper@', 'keeper:secret@')}{'&' if '?' in source else '?'}password=secret",
            tmp_path / "store.dump",
        )
    assert refused.value.remedy is not None
    assert "secret" not in refused.value.remedy
    assert "***" not in refused.value.remedy, "it can be run as it is written"
    dump, extension, restore = (line.partition(": ")[2] for line in refused.value.remedy.splitlines())
    name = target.rpartition("/")[2]
    assert "command='CREATE EXTENSION vector SCHEMA public'" in extension
    with heedful.open(source, clock=ManualClock(), embedding=WordEmbedder()):
        _run(dump)
    _run(f"psql --dbname={shlex.quote(target)} --command='DROP SCHEMA IF EXISTS heedful CASCADE'")
    _run(extension.replace("NEW_DATABASE", name).replace("EXTENSION", "EXTENSION IF NOT EXISTS"))
    _run(restore.replace("NEW_DATABASE", name))
    assert verify(target).projects == verify(source).projects
    assert verify(target).ok


def _run(command: str) -> None:
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [binaries() / program, *arguments], capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
