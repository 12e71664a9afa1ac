"""Opens a store in several processes at once; run with its address, how many, and `killed` if the first is to die.

That one is stopped when all is migrated and nothing is committed; the others are at the door when it is killed. Prints
the exit status of each.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import heedful
from heedful.storage.postgresql import tables
from heedful.testing import WordEmbedder


def main() -> None:
    where, count, first = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if first == "killed":
        arrived, arrives = os.pipe()
        victim = started(partial(die_in_the_middle, where, arrives))
        assert os.read(arrived, 1) == b"!"
        children = [started(partial(use, where, place)) for place in range(count)]
        os.kill(victim, signal.SIGKILL)
        assert waited(victim) == -signal.SIGKILL
    else:
        gate, go = os.pipe()
        children = [started(partial(use, where, place, gate)) for place in range(count)]
        os.write(go, b"!" * count)
    print([waited(child) for child in children])


def started(work: Callable[[], None]) -> int:
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    return pid


def waited(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def use(where: str, place: int, gate: int | None = None) -> None:
    if gate is not None:
        os.read(gate, 1)
    with heedful.open(where, project=f"p{place}", embedding=WordEmbedder()) as store:
        assert store.remember(f"by number {place}").added == 1


def die_in_the_middle(where: str, arrives: int) -> None:
    parent = os.getppid()

    def stop(*given: Any) -> None:
        os.write(arrives, b"!")
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(1)

    # The last step of a migration, in its transaction.
    vars(tables)["ensure_partitions"] = stop
    heedful.open(where, embedding=WordEmbedder())


if __name__ == "__main__":
    main()
