"""Sums over facts and ledger that are the same in every store which holds the same."""

from __future__ import annotations

import hashlib

import orjson
from sqlalchemy import Connection, select

from heedful.moving.lines import KINDS, Line, lines
from heedful.moving.names import Names
from heedful.moving.results import Sums
from heedful.storage.schema import projects

_LEFT_OUT = frozenset({"type", "vector", "entities"})


class Checksum:
    """Folds lines in their order; vectors and what is derived are left out."""

    def __init__(self) -> None:
        self._sum = hashlib.blake2b(digest_size=16)
        self.count = 0

    def add(self, line: Line) -> None:
        told = {name: value for name, value in line.items() if name not in _LEFT_OUT}
        self._sum.update(orjson.dumps(told, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
        self.count += 1

    @property
    def value(self) -> str:
        return self._sum.hexdigest()


def of_project(connection: Connection, number: int, name: str) -> Sums:
    """The sums of one project, in the order of its facts and events."""
    names = Names(connection, number)
    made = {}
    for kind in ("fact", "event"):
        made[kind] = Checksum()
        for run in lines(connection, KINDS[kind], number, names):
            for line in run:
                made[kind].add(line)
    return Sums(
        project=name,
        facts=made["fact"].count,
        events=made["event"].count,
        facts_checksum=made["fact"].value,
        ledger_checksum=made["event"].value,
    )


def of_store(connection: Connection) -> list[Sums]:
    """The sums of all projects, oldest first."""
    rows = connection.execute(select(projects.c.id, projects.c.name).order_by(projects.c.id)).all()
    return [of_project(connection, row.id, row.name) for row in rows]
