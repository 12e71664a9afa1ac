"""Processes that write are killed in the midst of it, and started again."""

from __future__ import annotations

import random
from pathlib import Path

from crews import Crew
from judging import Judge
from worlds import World

ROUNDS = 3


def test_what_was_acknowledged_survives_the_one_who_wrote_it(world: World, judge: Judge, tmp_path: Path) -> None:
    chance = random.Random(7)
    with Crew(world, tmp_path) as crew:
        for _ in range(ROUNDS):
            crew.work(chance.randrange(5, 30))
            victims = chance.sample(range(len(crew)), 2)
            for place in victims:
                crew.kill(place)
            for place in victims:
                crew.start(place)
        crew.work(10)
        crew.stop()
        judge(world, crew)
    assert crew.errors == []
