"""A server with several workers is killed while clients write: one worker, the process that minds them, and all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crews import Crew
from judging import Judge
from serving import KEY, serving
from worlds import World


def test_what_was_acknowledged_survives_the_death_of_workers_and_of_the_whole_server(
    world: World, judge: Judge, tmp_path: Path
) -> None:
    # A server can't be given the quick model of the tests.
    served = replace(world, embedding="fast")
    with serving(served, tmp_path) as server, Crew(served, tmp_path, where=server.url, key=KEY) as crew:
        crew.work(5)
        for place in (0, 1):
            server.kill_worker(place)
            crew.work(5)
            server.answers()
        server.kill_all()
        server.start()
        crew.work(5)
        if world.kind == "sqlite":
            # The workers must not go on without it: they would hold the port.
            server.kill()
            server.start()
            crew.work(5)
        crew.stop()
    judge(served, crew)
    assert {code for code, _ in crew.errors} <= {"server_unreachable"}
