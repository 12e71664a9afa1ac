"""What leaves a project to be read elsewhere: tables of rows, and the digest."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from heedful.model.base import Model
from heedful.model.insight import Note, Theme, Variant

TableName = Literal[
    "feedback",
    "signals",
    "entries",
    "sessions",
    "messages",
    "facts",
    "recalls",
    "executions",
    "golden_examples",
    "decisions",
    "review_items",
    "events",
]
ColumnType = Literal["text", "integer", "number", "boolean", "time", "json"]
ExportFormat = Literal["csv", "jsonl", "parquet"]

TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


class ExportColumn(Model):
    """One column of an exported table."""

    name: str
    type: ColumnType
    meaning: str
    """What it says, in words."""


class ExportTable(Model):
    """One table that can be exported."""

    name: TableName
    meaning: str
    """What a row is."""
    columns: list[ExportColumn]


class ExportResult(Model):
    """What was exported."""

    table: TableName
    """Which table."""
    rows: int
    """How many rows there were."""
    path: str | None
    """The file; None where bytes were written to something else."""


class Digest(Model):
    """What people said in some time, beside the time before it, in short."""

    project: str
    """Whose it is."""
    since: datetime
    """When the time begins."""
    until: datetime
    """When it is over."""
    now: Variant
    """The opinions of this time."""
    before: Variant
    """Those of the time before it, which was as long."""
    themes: list[Theme]
    """What negative comments are about, the largest first."""
    notes: list[Note]
    """What changed, and is not luck."""
    open_items: int
    """Items of the review queue that are open."""
    headline: str
    """All of it in a line."""
    text: str
    """All of it in words."""
