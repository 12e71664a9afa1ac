"""A table of a project in a file."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.insight import writing
from heedful.insight.tables import table_named
from heedful.insight.writing import Target, Writer
from heedful.memory import checks
from heedful.model import ExportResult, ExportTable
from heedful.storage.exports import Rows


@dataclass(slots=True)
class Export:
    """A table on its way to a file, wherever its rows come from."""

    table: ExportTable
    path: Target
    _writer: Writer
    _rows: int = field(default=0)

    def add(self, rows: Rows) -> None:
        self._writer.write(rows)
        self._rows += len(rows)

    def result(self) -> ExportResult:
        """What was written until now."""
        named = str(self.path) if isinstance(self.path, str | Path) else None
        return ExportResult(table=self.table.name, rows=self._rows, path=named)


@contextmanager
def export(
    table: Any, path: Target, format: Any, dataset: str | None, overwrite: bool
) -> Generator[Export, None, None]:
    """A file to add rows to, which is whole and in its place at the end; nothing is there if the block fails."""
    chosen = table_named(table, dataset)
    kind = writing.format_of(path, format)
    checks.flag("overwrite", overwrite)
    with writing.opened(path, overwrite=overwrite) as output:
        writer = writing.writer(kind, chosen, output)
        yield Export(chosen, path, writer)
        writer.close()
