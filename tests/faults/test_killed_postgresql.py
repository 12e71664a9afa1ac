"""The database server is killed with all its processes in the midst of writes, and started again."""

from __future__ import annotations

from pathlib import Path

from crews import Crew
from judging import Judge
from worlds import World

ROUNDS = 3


def test_what_was_acknowledged_survives_the_death_of_the_server(
    on_postgresql: World, judge: Judge, tmp_path: Path
) -> None:
    assert on_postgresql.server is not None
    with Crew(on_postgresql, tmp_path) as crew:
        crew.work(10)
        for _ in range(ROUNDS):
            on_postgresql.server.kill()
            crew.fail("store_unreachable")
            on_postgresql.server.start()
            crew.work(15)
        crew.stop()
        judge(on_postgresql, crew)
    assert {code for code, _ in crew.errors} == {"store_unreachable"}
