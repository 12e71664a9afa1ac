"""Several processes open a new store at once; one is killed in the middle of its migration."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from worlds import World

from heedful.storage import open_store
from heedful.storage.database import _version
from heedful.storage.migrations import HEAD

OPENERS = Path(__file__).with_name("openers.py")
COUNT = 4


@pytest.mark.parametrize("first", ["lives", "killed"])
def test_a_store_is_migrated_once_and_whole(world: World, first: str) -> None:
    done = subprocess.run(
        [sys.executable, str(OPENERS), world.url, str(COUNT), first], capture_output=True, text=True, timeout=200
    )
    assert (done.returncode, done.stdout.strip()) == (0, str([0] * COUNT)), done.stderr
    with closing(open_store(world.url)) as database, database.read() as connection:
        assert _version(connection) == HEAD
    for place in range(COUNT):
        with world.open(f"p{place}") as store:
            assert [fact.text for fact in store.facts().items] == [f"by number {place}"]
            assert [check for check in store.doctor(repair=False) if not check.ok] == []
