"""A store is copied whole: to either kind of store, also when it is stopped on its way."""

from __future__ import annotations

import itertools
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from lived import MOVED, QUESTION, Place, dumped

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound, Signal, Unavailable
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import backup, copy, table_rows, verify

pytestmark = pytest.mark.usefixtures("warm_processes")

KINDS = ("sqlite", "postgresql")


class Stopped(Exception):
    """The process is killed, as far as the store can tell."""


def stop_at(part: float) -> Callable[[int, int], None]:
    """Stops when this part of all rows is there."""

    def progress(done: int, total: int) -> None:
        if done >= part * total:
            raise Stopped

    return progress


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "BATCH_SIZE", 7)


def opened(url: str | Path, **options: Any) -> Heedful:
    return heedful.open(url, clock=ManualClock(), embedding=WordEmbedder(), **options)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.nightly
def test_a_copy_of_a_copy_of_a_copy_has_every_row_and_every_next_number(lived: Path, place: Place) -> None:
    ways = [str(lived), place("postgresql"), place("postgresql"), place("sqlite"), place("sqlite")]
    made = [copy(source, target) for source, target in itertools.pairwise(ways)]
    assert dumped(Path(ways[-1])) == dumped(Path(ways[-2])) == dumped(lived)
    assert all(each.projects == made[0].projects and each.tables == made[0].tables for each in made)
    assert made[0].written == sum(made[0].tables.values())
    assert [each.project for each in made[0].projects] == ["default", "other"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.nightly
def test_a_copy_works_on_like_its_source(lived: Path, place: Place, kind: str) -> None:
    target = place(kind)
    copy(lived, target)
    for project, question in itertools.product(("default", "other"), (QUESTION, MOVED, "desk visitors")):
        for boost in (True, False):
            with opened(lived, project=project) as source, opened(target, project=project) as made:
                before = source.recall(question, mode="graph", boost_by_usefulness=boost)
                after = made.recall(question, mode="graph", boost_by_usefulness=boost)
                assert [(hit.fact_id, hit.score) for hit in after] == [(hit.fact_id, hit.score) for hit in before]
                assert made.usefulness_stats() == source.usefulness_stats()
    with opened(target, project="other") as made:
        known = made.recall(QUESTION)[0].fact_id
        (new,) = made.remember("A new fact.").fact_ids
        made.signal([Signal(fact_id=each, signal_type="helpful", query="new") for each in (new, known)])
        assert all(check.ok and not check.repaired for check in made.doctor(repair=False))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
@pytest.mark.nightly
def test_a_copy_that_was_stopped_goes_on(lived: Path, place: Place, kind: str, part: float) -> None:
    target = place(kind)
    with pytest.raises(Stopped):
        copy(lived, target, progress=stop_at(part))
    with pytest.raises(Conflict, match="not finished") as refused:
        opened(target)
    assert refused.value.code == "store_unfinished"
    made = copy(lived, target)
    assert made.written <= (1 - part) * sum(made.tables.values())
    final = place("sqlite")
    copy(target, final)
    assert dumped(Path(final)) == dumped(lived)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [0.6, 1.0])
@pytest.mark.nightly
def test_what_changed_in_the_source_meanwhile_is_brought_over(
    lived: Path, place: Place, kind: str, part: float
) -> None:
    target = place(kind)
    with pytest.raises(Stopped):
        copy(lived, target, progress=stop_at(part))
    with opened(lived, project="other") as source:
        ids = [fact.fact_id for fact in source.facts().items]
        source.forget(ids[0])
        source.remember(["Something else."], dataset="new", metadata={"a": [1, 2]})
        source.signal([Signal(fact_id=ids[1], signal_type="helpful", query="meanwhile")])
        source.sessions.delete("tour")
    copy(lived, target)
    final = place("sqlite")
    copy(target, final)
    assert dumped(Path(final)) == dumped(lived)


@pytest.mark.slow
def test_the_source_may_be_written_while_it_is_copied(lived: Path, place: Place) -> None:
    target = place("sqlite")
    with opened(lived, project="other") as source:
        before = source.usefulness_stats().total_facts

        def write(done: int, total: int) -> None:
            source.remember(f"Written while {done} of {total} rows were copied.")

        copy(lived, target, progress=write)
        assert source.usefulness_stats().total_facts > before
    with opened(target, project="other") as made:
        assert made.usefulness_stats().total_facts == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_process_that_is_killed_leaves_a_copy_that_goes_on(lived: Path, place: Place, kind: str) -> None:
    target = place(kind)
    program = (
        "import os, signal, sys\n"
        "from heedful.transfer import copy, table_rows, verify\n"
        "table_rows.BATCH_SIZE = 5\n"
        "die = lambda done, total: done > 150 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "copy(sys.argv[1], sys.argv[2], progress=die)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(lived), target], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    with pytest.raises(Conflict, match="not finished"):
        opened(target)
    made = copy(lived, target)
    assert made.written < sum(made.tables.values()) - 100


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_target_with_something_in_it_is_left_alone(lived: Path, place: Place, kind: str) -> None:
    target = place(kind)
    with opened(target) as store:
        (fact,) = store.remember("Mine.").fact_ids
    with pytest.raises(Conflict, match="is not empty") as refused:
        copy(lived, target)
    assert refused.value.code == "target_not_empty"
    with opened(target) as store:
        assert [each.fact_id for each in store.facts().items] == [fact]


def test_an_unfinished_copy_of_another_source_is_left_alone(lived: Path, place: Place) -> None:
    target, other = place("sqlite"), place("sqlite")
    with opened(other) as store:
        store.remember("Another store.")
    with pytest.raises(Stopped):
        copy(lived, target, progress=stop_at(0.1))
    before = dumped(Path(target))
    with pytest.raises(Conflict, match="unfinished copy of"):
        copy(other, target)
    assert dumped(Path(target)) == before


@pytest.mark.usefixtures("small_batches")
def test_of_two_copies_at_once_the_first_one_stops(lived: Path, place: Place) -> None:
    target = place("sqlite")
    begun: list[int] = []

    def begin_another(done: int, total: int) -> None:
        if not begun:
            begun.append(done)
            with pytest.raises(Stopped):
                copy(lived, target, progress=stop_at(0.3))

    with pytest.raises(Conflict, match="another heedful copy"):
        copy(lived, target, progress=begin_another)
    copy(lived, target)
    assert dumped(Path(target)) == dumped(lived)


def test_somebody_who_writes_to_the_target_is_noticed(lived: Path, place: Place) -> None:
    target = place("sqlite")
    with opened(target) as early:

        def write(done: int, total: int) -> None:
            if done == total:
                early.sessions.create("mine")

        with pytest.raises(Conflict) as refused:
            copy(lived, target, progress=write)
        assert refused.value.code == "copy_differs"
    copy(lived, target)
    assert dumped(Path(target)) == dumped(lived)


def test_bad_addresses_are_refused(lived: Path, tmp_path: Path, place: Place) -> None:
    target = place("sqlite")
    with pytest.raises(NotFound, match="there is no store"):
        copy(tmp_path / "missing.db", target)
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(Invalid, match="same store"):
        copy(lived, f"sqlite:///{lived}")
    with pytest.raises(Invalid, match="same store"):
        copy(lived, f"SQLite+pysqlite:///{lived}?timeout=5")
    with pytest.raises(Invalid, match="same store"):
        copy(lived, lived.parent / "." / lived.name)
    with pytest.raises(Invalid, match="in memory"):
        copy(lived, ":memory:")
    with pytest.raises(Unavailable, match="does not exist"):
        copy(lived, tmp_path / "no" / "folder.db")
    (tmp_path / "text.db").write_text("This is no store, only some text that is long enough to be looked at." * 20)
    with pytest.raises(Unavailable, match="not a Heedful store"):
        copy(tmp_path / "text.db", target)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as foreign:
        foreign.execute("CREATE TABLE cats (name)")
    with pytest.raises(Conflict, match="another program"):
        copy(tmp_path / "foreign.db", target)
    with pytest.raises(Unavailable, match="can't be reached"):
        copy(lived, "postgresql://nobody@127.0.0.1:1/nothing")
    assert not Path(target).exists()


@pytest.mark.parametrize("secret", ["ada:secret@db/heedful", "ada@db/heedful?password=secret&sslmode=require"])
def test_no_password_is_shown(secret: str) -> None:
    with pytest.raises(Invalid, match="same store, postgresql://ada") as refused:
        copy(f"postgresql://{secret}", f"postgresql://{secret}")
    assert "secret" not in f"{refused.value} {refused.value.value} {refused.value.remedy}"


def test_a_source_of_a_newer_version_is_refused(lived: Path, place: Place) -> None:
    with closing(sqlite3.connect(lived)) as newer, newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Conflict, match="revision 9999"):
        copy(lived, place("sqlite"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_jobs_stay_where_they_are(lived: Path, place: Place, kind: str) -> None:
    with closing(sqlite3.connect(lived)) as source, source:
        columns = "id, kind, arguments, digest, status, attempts, created_at, due_at, cancelling"
        source.execute(f"INSERT INTO jobs ({columns}) VALUES ('j', 'improve', '{{}}', x'00', 'waiting', 0, 1, 1, 0)")
    target = place(kind)
    assert "jobs" not in copy(lived, target).tables
    with opened(target) as store:
        assert store.jobs.list().items == []


def test_an_unfinished_copy_is_no_source(lived: Path, place: Place) -> None:
    half = place("sqlite")
    with pytest.raises(Stopped):
        copy(lived, half, progress=stop_at(0.5))
    with pytest.raises(Conflict, match="not finished"):
        copy(half, place("sqlite"))
    with pytest.raises(Conflict, match="not finished") as refused:
        backup(half, lived.parent / "backup.db")
    assert refused.value.code == "store_unfinished"
    assert not (lived.parent / "backup.db").exists()


def test_a_disk_without_room_is_told_and_the_copy_goes_on_later(lived: Path, place: Place) -> None:
    target = place("sqlite")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(done: int, total: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (lived.stat().st_size // 3, hard))

    try:
        with pytest.raises(Unavailable) as refused:
            copy(lived, target, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.code in ("disk_full", "store_io")
    copy(lived, target)
    assert dumped(Path(target)) == dumped(lived)


@pytest.mark.nightly
def test_a_role_that_may_only_read_is_enough_for_the_source(lived: Path, place: Place, postgresql_url: str) -> None:
    source, target = postgresql_url, place("sqlite")
    copy(lived, source)
    role = f"reader_{uuid4().hex}"
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"GRANT pg_read_all_data TO {role}".encode())
        try:
            reading = source.replace("postgres@", f"{role}@")
            assert verify(reading).ok
            copy(reading, target)
        finally:
            connection.execute(f"DROP ROLE {role}".encode())
    assert dumped(Path(target)) == dumped(lived)


def test_an_empty_database_of_a_server_is_no_source(place: Place) -> None:
    with pytest.raises(NotFound, match="there is no store"):
        copy(place("postgresql"), place("sqlite"))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.slow
def test_a_row_that_the_target_can_not_hold_is_named_and_can_be_corrected(tmp_path: Path, place: Place) -> None:
    source, target = tmp_path / "source.db", place("postgresql")
    with opened(source) as store:
        store.remember([f"fact {number}" for number in range(20)])
    with closing(sqlite3.connect(source)) as by_hand, by_hand:
        by_hand.execute("UPDATE facts SET source = 'a' || char(0) || 'b' WHERE seq = 11")
    with pytest.raises(Invalid, match=r"row \(11,\) of facts") as caught:
        copy(source, target)
    assert (caught.value.code, caught.value.field) == ("unstorable", "facts")
    with pytest.raises(Conflict, match="not finished"):
        opened(target)
    with closing(sqlite3.connect(source)) as by_hand, by_hand:
        by_hand.execute("UPDATE facts SET source = NULL WHERE seq = 11")
    copy(source, target)
    with opened(target) as store:
        assert len(store.facts(limit=100).items) == 20
