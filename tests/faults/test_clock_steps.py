"""The clocks of those who write step back and forth by hours, days and years, each for itself."""

from __future__ import annotations

from pathlib import Path

from crews import Crew
from judging import Judge
from worlds import World


def test_scores_are_the_fold_of_the_ledger_whatever_the_clocks_say(world: World, judge: Judge, tmp_path: Path) -> None:
    with Crew(world, tmp_path, jumping=True) as crew:
        crew.work(30)
        crew.kill(0)
        crew.start(0)
        crew.work(10)
        crew.stop()
    assert crew.errors == []
    judge(world, crew)
