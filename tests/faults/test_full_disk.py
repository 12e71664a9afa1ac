"""The disk fills up under load, and room is made: errors say what is wrong, nothing is lost, and all goes on."""

from __future__ import annotations

from pathlib import Path

import psycopg
from crews import Crew
from disks import MEGABYTE, Disk, as_postgresql, small_disk
from judging import Judge
from postgresql import new_store
from postgresql_process import Server
from worlds import World


def fill_and_make_room(disk: Disk, crew: Crew, left: int) -> None:
    with crew:
        crew.work(5)
        for _ in range(2):
            disk.fill(left)
            crew.fail("disk_full", 10)
            disk.empty()
            crew.work(5)
        crew.stop()
    assert {code for code, _ in crew.errors} == {"disk_full"}
    assert all("nothing was changed" in said and "Free some space" in said for _, said in crew.errors)


def test_a_store_in_a_file(on_sqlite: World, judge: Judge, tmp_path: Path) -> None:
    with small_disk(16) as disk:
        where = disk.folder / "store.db"
        crew = Crew(on_sqlite, tmp_path, where=str(where), within=disk.within())
        disk.bring(Path(on_sqlite.url))
        fill_and_make_room(disk, crew, 64 * 1024)
        disk.fetch(tmp_path)
    judge(on_sqlite, crew)


def test_the_tables_of_postgresql(judge: Judge, tmp_path: Path) -> None:
    with small_disk(64) as disk:
        server = Server(within=as_postgresql(disk))
        try:
            with psycopg.connect(server.url.replace("DATABASE", "postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}'".encode())
            with new_store(server.url, options="TABLESPACE small") as url:
                world = World(url, server)
                crew = Crew(world, tmp_path)
                fill_and_make_room(disk, crew, MEGABYTE // 4)
                judge(world, crew)
        finally:
            server.close()


def test_the_log_of_postgresql(judge: Judge, tmp_path: Path) -> None:
    """A server that can't write its log any more ends all connections, and may stop; it is started again when there
    is room."""
    # It needs new files, and gives back no old ones.
    growing = ("wal_recycle=off", "max_wal_size=1GB", "checkpoint_timeout=1h")
    with small_disk(32) as disk:
        server = Server(*growing, wal=disk.folder / "wal", within=as_postgresql(disk))
        try:
            with new_store(server.url) as url:
                world = World(url, server)
                with Crew(world, tmp_path) as crew:
                    crew.work(5)
                    disk.fill(0)
                    crew.fail("store_unreachable")
                    disk.empty()
                    server.kill()
                    server.start()
                    crew.work(5)
                    crew.stop()
                judge(world, crew)
        finally:
            server.close()
    assert {code for code, _ in crew.errors} <= {"store_unreachable", "disk_full"}
