"""Writers as processes: started, killed and started again, with a list of all that they were told is done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from deeds import Deed, Facts
from worlds import World

NURSERY = Path(__file__).with_name("nursery.py")
LATE = 90
"""Seconds after which a writer that gets nothing done is stuck."""


@dataclass(slots=True)
class _Writer:
    name: str
    project: str
    pid: int | None = None
    """Its process, while that runs."""
    status: int = 0
    begun: int = -1
    failed: int = 0
    """How many of its attempts failed."""
    done: dict[int, str] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """What it does next, if it is started now."""
        return max(self.done, default=-1) + 1


class Crew:
    """Some writers in each of some projects. Those of a project judge the same facts."""

    def __init__(
        self,
        world: World,
        logs: Path,
        *,
        projects: Sequence[str] = ("red", "blue"),
        each: int = 2,
        where: str | None = None,
        key: str | None = None,
        jumping: bool = False,
        within: Sequence[str] = (),
    ) -> None:
        """`where` is the address that they use, if it isn't the store's; `within` is a command that runs another."""
        self._logs = logs
        self._command = [*within, sys.executable, str(NURSERY)]
        self._told = {"where": where or world.url, "key": key, "embedding": world.embedding, "jumping": jumping}
        self._changed = threading.Condition()
        self.errors: list[tuple[str, str]] = []
        """(code, message) of all attempts that failed."""
        self.facts: dict[str, Facts] = {}
        """What all writers of a project judge."""
        self._writers: list[_Writer] = []
        for project in projects:
            names = [f"{project}{letter}" for letter in "abcdefgh"[:each]]
            self.facts[project] = world.prepare(project, names)
            self._writers += [_Writer(name, project) for name in names]

    def __enter__(self) -> Self:
        self._nursery = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        for place in range(len(self)):
            self.start(place)
        return self

    def __exit__(self, *exception: object) -> None:
        for place in range(len(self)):
            self.kill(place)
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.wait(LATE)
        self._reader.join()
        self._nursery.stdout.close()

    def __len__(self) -> int:
        return len(self._writers)

    def start(self, place: int) -> None:
        """Starts a writer, or starts it again where it was when it was killed."""
        writer = self._writers[place]
        own = {"writer": writer.name, "project": writer.project, "first": writer.first}
        more = {"facts": asdict(self.facts[writer.project]), "log": str(self._logs / f"{writer.name}.log")}
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(json.dumps({**self._told, **own, **more}).encode() + b"\n")
        self._nursery.stdin.flush()
        self._wait(lambda: writer.pid is not None, f"{writer.name} did not start")

    def kill(self, place: int) -> None:
        """Kills a writer, and hears what it still had said."""
        writer = self._writers[place]
        if writer.pid is not None:
            os.kill(writer.pid, signal.SIGKILL)
            self._wait(lambda: writer.pid is None, f"{writer.name} did not end")

    def work(self, deeds: int, projects: Container[str] | None = None) -> None:
        """Waits until every writer that runs, of some projects or of all, has done so many more."""
        with self._changed:
            goals = [(writer, writer.first + deeds) for writer in self._working(projects)]
        assert goals, "nobody is there to work"
        self._wait(
            lambda: all(writer.first >= goal for writer, goal in goals) or any(each.pid is None for each, _ in goals),
            "no progress",
        )
        assert all(writer.first >= goal for writer, goal in goals), f"a writer has ended: {self._story()}"

    def fail(self, code: str, times: int = 1) -> None:
        """Waits until attempts have failed with this code so many more times."""
        with self._changed:
            goal = self._count(code) + times
            running = self._working()
        self._wait(
            lambda: self._count(code) >= goal or any(writer.pid is None for writer in running),
            f"nothing has failed with {code}",
        )
        assert self._count(code) >= goal, f"a writer has ended: {self._story()}"

    def stop(self) -> None:
        """Lets all writers end what they are doing; a fault of theirs is one of the test."""
        for writer in self._writers:
            if writer.pid is not None:
                os.kill(writer.pid, signal.SIGTERM)
        self._wait(lambda: all(writer.pid is None for writer in self._writers), "somebody does not end")
        assert [writer.name for writer in self._writers if writer.status != 0] == [], self._story()

    def failed(self, project: str) -> int:
        """How many attempts have failed in a project."""
        with self._changed:
            return sum(writer.failed for writer in self._writers if writer.project == project)

    def done(self, project: str) -> dict[Deed, str]:
        """All that was acknowledged in a project, with the id of what was made."""
        return {
            Deed(writer.name, number): made
            for writer in self._writers
            if writer.project == project
            for number, made in writer.done.items()
        }

    def attempted(self, project: str) -> set[Deed]:
        """All that may be there: what was acknowledged, and what each writer was doing when it was stopped."""
        writers = [writer for writer in self._writers if writer.project == project]
        return {Deed(writer.name, number) for writer in writers for number in range(writer.begun + 1)}

    def _read(self) -> None:
        assert self._nursery.stdout is not None
        by_name = {writer.name: writer for writer in self._writers}
        for line in self._nursery.stdout:
            said = json.loads(line)
            with self._changed:
                writer = by_name[said["writer"]]
                if "started" in said:
                    writer.pid = said["started"]
                elif "ended" in said:
                    writer.pid, writer.status = None, said["ended"]
                elif "begun" in said:
                    writer.begun = said["begun"]
                elif "done" in said:
                    writer.done[said["done"]] = said["id"]
                else:
                    self.errors.append((said["error"], said["said"]))
                    writer.failed += 1
                self._changed.notify_all()

    def _wait(self, condition: Callable[[], bool], failed: str) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, LATE):
                raise AssertionError(f"{failed}: {self._story()}")

    def _working(self, projects: Container[str] | None = None) -> list[_Writer]:
        of_these = (each for each in self._writers if projects is None or each.project in projects)
        return [writer for writer in of_these if writer.pid is not None]

    def _count(self, code: str) -> int:
        return sum(each == code for each, _ in self.errors)

    def _story(self) -> str:
        logs = [file.read_text()[-2000:] for file in sorted(self._logs.glob("*.log"))]
        counts = {writer.name: writer.first for writer in self._writers}
        return f"{counts}, {self.errors[-3:]}, {logs}"
