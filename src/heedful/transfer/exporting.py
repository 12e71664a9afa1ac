"""`heedful export`: a project as lines of JSON, from one consistent view of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from heedful import settings
from heedful.clock import system_clock
from heedful.errors import NotFound
from heedful.files import write_atomically
from heedful.memory import checks
from heedful.protocols.engine import Progress
from heedful.storage import scopes
from heedful.storage.vectors import active_model
from heedful.transfer import stores, targets
from heedful.transfer.checksum import Checksum
from heedful.transfer.lines import KINDS, Line, in_project, lines
from heedful.transfer.names import Names
from heedful.transfer.results import Transferred
from heedful.version import __version__

FORMAT = 2
"""The newest that there is; 1 had no review queue."""
HEADER = "heedful"
END = "end"

Write = Callable[[bytes], Any]


def export(
    url_or_path: str | Path | None,
    write: Write,
    *,
    project: str,
    vectors: bool = True,
    progress: Progress | None = None,
) -> Transferred:
    """Hands the lines of a project to `write`, one after the other.

    Without `vectors`, the file is smaller, and whoever imports it re-embeds the facts.
    """
    checks.name("project", project)
    database = stores.open_existing(url_or_path)
    try:
        with database.read() as connection:
            number = scopes.project_id(connection, project)
            if number is None:
                names = scopes.project_names(connection)
                raise NotFound(
                    f"store {database.name} has no project {project!r}",
                    field="project",
                    value=project,
                    remedy=f"It has: {', '.join(names)}" if names else "It is empty",
                )
            return _Exporting(connection, number, project, vectors).run(write, progress)
    finally:
        database.close()


def export_file(
    url_or_path: str | Path | None,
    file: str | Path,
    *,
    project: str,
    vectors: bool = True,
    force: bool = False,
    progress: Progress | None = None,
) -> Transferred:
    """Writes a project to a file, which is there when it is whole."""
    target = Path(file)
    targets.check(settings.load().store if url_or_path is None else url_or_path, target, force=force)
    with write_atomically(target, overwrite=force) as output:
        return export(url_or_path, output.write, project=project, vectors=vectors, progress=progress)


class _Exporting:
    def __init__(self, connection: Connection, number: int, project: str, vectors: bool) -> None:
        self._connection = connection
        self._number = number
        self._project = project
        self._model = active_model(connection) if vectors else None

    def run(self, write: Write, progress: Progress | None) -> Transferred:
        counts = {name: self._count(name) for name in KINDS}
        checksums = {"fact": Checksum(), "event": Checksum()}
        write(_packed(self._header(counts)))
        written = 0
        for run in self._lines():
            for line in run:
                if line["type"] in checksums:
                    checksums[line["type"]].add(line)
                write(_packed(line))
            written += len(run)
            if progress is not None:
                progress(written, sum(counts.values()))
        write(_packed(closing(counts, checksums)))
        return Transferred(
            project=self._project,
            counts=counts,
            facts_checksum=checksums["fact"].value,
            ledger_checksum=checksums["event"].value,
        )

    def _lines(self) -> Iterator[list[Line]]:
        names = Names(self._connection, self._number)
        for kind in KINDS.values():
            yield from lines(
                self._connection, kind, self._number, names, None if self._model is None else self._model.id
            )

    def _header(self, counts: dict[str, int]) -> Line:
        model = self._model
        return {
            "type": HEADER,
            "format": FORMAT,
            "version": __version__,
            "project": self._project,
            "exported_at": system_clock().isoformat(),
            "model": None if model is None else {"name": model.name, "dimensions": model.dimensions},
            "counts": counts,
        }

    def _count(self, name: str) -> int:
        table = KINDS[name].table
        statement = select(func.count()).select_from(table).where(in_project(table, self._number))
        return int(self._connection.execute(statement).scalar_one())


def closing(counts: dict[str, int], checksums: dict[str, Checksum]) -> Line:
    """The last line, by which a file is known to be whole."""
    return {
        "type": END,
        "counts": counts,
        "facts_checksum": checksums["fact"].value,
        "ledger_checksum": checksums["event"].value,
    }


def _packed(line: Line) -> bytes:
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
