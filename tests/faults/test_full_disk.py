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


def test_a_store_on_postgresql(judge: Judge, tmp_path: Path) -> None:
    """The disk of its tables. A server whose log has no room stops, which is the fault of a killed one."""
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
