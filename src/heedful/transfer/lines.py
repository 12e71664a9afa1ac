"""The lines of an exported project: which there are, and what rows look like in them.

A line has the columns of its table, but for numbers, which become names and ids, and for what is derived. What is null
is left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, Select, Table, select

from heedful.storage import ledger, schema
from heedful.storage.graph import BY_MODEL
from heedful.storage.rows import batches
from heedful.storage.schema_insight import review_items, review_members, review_notes
from heedful.transfer import names
from heedful.transfer.names import Names
from heedful.transfer.table_rows import BATCH_SIZE, columns

Line = dict[str, Any]
Row = dict[str, Any]

REFERENCES = {
    "dataset_id": "dataset",
    "query_id": "query",
    "session_seq": "session",
    "fact_seq": "fact",
    "item_seq": "item",
}
"""Columns with the number of something, and the field that names it in a line."""

NUMBERS = frozenset({"seq", "project_id", "model_id", "vector"})


@dataclass(frozen=True)
class Kind:
    """One type of line."""

    name: str
    table: Table
    derived: frozenset[str] = frozenset()
    """Columns that are derived."""
    links: Callable[[Row], list[str]] | None = None
    renamed: Callable[[Row, dict[str, str]], Row] | None = None
    """Where rows name links, and how they get other names."""

    @cached_property
    def plain(self) -> dict[str, Column[Any]]:
        """The columns that a line has as they are, by name."""
        left_out = {*NUMBERS, *REFERENCES, *self.derived}
        return {str(column.name): column for column in columns(self.table) if column.name not in left_out}

    @cached_property
    def binary(self) -> frozenset[str]:
        """Those of them that are bytes, and hexadecimal in a line."""
        return frozenset(name for name, column in self.plain.items() if isinstance(column.type, LargeBinary))

    @cached_property
    def references(self) -> dict[str, str]:
        """The columns that a line has under another name."""
        return {column: field for column, field in REFERENCES.items() if column in self.table.columns}

    @cached_property
    def required(self) -> list[str]:
        """The fields that every line has."""
        fields = self.plain | {field: self.table.columns[column] for column, field in self.references.items()}
        return [name for name, column in fields.items() if not column.nullable and column.server_default is None]

    @property
    def has_vector(self) -> bool:
        return self.table is schema.facts or "vector" in self.table.columns


KINDS = {
    kind.name: kind
    for kind in (
        Kind("project", schema.projects, frozenset({"id"})),
        Kind("dataset", schema.datasets, frozenset({"id"})),
        Kind("query", schema.queries, frozenset({"id"})),
        Kind("fact", schema.facts, frozenset({"digest", "linked"})),
        Kind("receipt", schema.receipts, links=names.receipt_links, renamed=names.renamed_receipt),
        Kind("event", schema.events, links=names.event_links, renamed=names.renamed_event),
        Kind("note", schema.notes),
        Kind("request", schema.requests),
        Kind("session", schema.sessions),
        Kind("message", schema.messages),
        Kind("entry", schema.entries, links=names.entry_links, renamed=names.renamed_entry),
        Kind("feedback", schema.feedbacks),
        Kind("waiting_feedback", schema.waiting_feedbacks),
        Kind("connector", schema.connectors, frozenset({"enabled", "revision", "full_revision"})),
        Kind("execution", schema.executions, frozenset({"revision"})),
        Kind("external_id", schema.external_ids),
        Kind("example", schema.golden_examples),
        Kind("review_item", review_items),
        Kind("review_member", review_members),
        Kind("review_note", review_notes),
    )
}
"""In an order in which each line names only what came before it."""


def in_project(table: Table, project: int) -> ColumnElement[bool]:
    """The rows of a project."""
    if table is schema.projects:
        return schema.projects.c.id == project
    if table is schema.events:
        # Strengths name a place in this ledger; the other store fits its own.
        return (table.c.project_id == project) & (table.c.kind != ledger.STRENGTHS)
    if "project_id" in table.columns:
        return table.c.project_id == project
    owners = {"dataset_id": schema.datasets, "session_seq": schema.sessions, "fact_seq": schema.facts}
    for column, owner in owners.items():
        if column in table.columns:
            number = next(iter(owner.primary_key))
            return table.c[column].in_(select(number).where(in_project(owner, project)))
    raise AssertionError(f"{table.name} belongs to no project")


def lines(
    connection: Connection, kind: Kind, project: int, name_lookup: Names, model: int | None = None
) -> Iterator[list[Line]]:
    """The lines of one kind in the order in which they were written, in batches; with vectors of `model`, if given."""
    chosen: Select[Any] = select(*kind.table.columns).where(in_project(kind.table, project))
    if kind.table is schema.facts and model is not None:
        join_condition = (schema.vectors.c.fact_seq == schema.facts.c.seq) & (schema.vectors.c.model_id == model)
        chosen = chosen.add_columns(schema.vectors.c.vector).outerjoin(schema.vectors, join_condition)
    result = connection.execution_options(yield_per=BATCH_SIZE).execute(chosen.order_by(*kind.table.primary_key))
    names = [str(column.name) for column in chosen.selected_columns]
    for run in result.partitions(BATCH_SIZE):
        yield _embed_lines(connection, kind, [dict(zip(names, row, strict=True)) for row in run], name_lookup, model)


def _embed_lines(
    connection: Connection, kind: Kind, rows: Sequence[Row], name_lookup: Names, model: int | None
) -> list[Line]:
    names_by_column: dict[str, Mapping[Any, str]] = {
        "dataset_id": name_lookup.datasets,
        "query_id": name_lookup.queries(row["query_id"] for row in rows) if "query_id" in kind.references else {},
        "session_seq": _ids(connection, schema.sessions, "session_seq", kind, rows),
        "fact_seq": _ids(connection, schema.facts, "fact_seq", kind, rows),
        "item_seq": _ids(connection, review_items, "item_seq", kind, rows),
    }
    entities = _entities(connection, rows) if kind.table is schema.facts else {}
    if kind.links is not None and kind.renamed is not None:
        links = name_lookup.links(link for row in rows for link in kind.links(row))
        rows = [kind.renamed(row, links) for row in rows]
    plain = list(kind.plain)
    references = kind.references
    result: list[Line] = []
    for row in rows:
        line: Line = {"type": kind.name}
        for column, field in references.items():
            line[field] = names_by_column[column].get(row[column])
        line |= {name: _jsonable(row[name]) for name in plain}
        if "seq" in row and row["seq"] in entities:
            line["entities"] = entities[row["seq"]]
        vector = row.get("vector")
        if model is not None and vector is not None and row.get("model_id", model) == model:
            line["vector"] = b64encode(vector).decode()
        result.append({name: value for name, value in line.items() if value is not None})
    return result


def _jsonable(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _ids(connection: Connection, table: Table, column: str, kind: Kind, rows: Sequence[Row]) -> dict[int | None, str]:
    if column not in kind.references:
        return {}
    ids = sorted({row[column] for row in rows if row[column] is not None})
    return {
        row.seq: row.id
        for run in batches(ids)
        for row in connection.execute(select(table.c.seq, table.c.id).where(table.c.seq.in_(run)))
    }


def _entities(connection: Connection, rows: Sequence[Row]) -> dict[int, list[str]]:
    """What a language model found in facts: nobody else could find it again."""
    seqs = [row["seq"] for row in rows if row["linked"] == BY_MODEL]
    names_by_fact: dict[int, list[str]] = {seq: [] for seq in seqs}
    for run in batches(seqs):
        statement = (
            select(schema.links.c.fact_seq, schema.entities.c.name)
            .join(schema.entities, schema.entities.c.id == schema.links.c.entity_id)
            .where(schema.links.c.fact_seq.in_(run))
            .order_by(schema.links.c.fact_seq, schema.entities.c.id)
        )
        for row in connection.execute(statement):
            names_by_fact[row.fact_seq].append(row.name)
    return names_by_fact


Shape = Callable[[Any, str], str | None]
"""Given a value and what to call it: what is wrong with it, or None."""

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}


def broken(table: str, column: str, stored: bytes | str | None, *, nullable: bool) -> str | None:
    """What is wrong with a stored value, in a few words, or None."""
    if stored is None:
        return None
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return f"broken JSON in {column}"
    if value is None and nullable:
        return None
    wrong = SHAPES[table, column](value, column)
    return wrong and f"wrong JSON: {wrong}"


def _instance_of(*kinds: type) -> Shape:
    """A value of one of these types."""
    expected = _KINDS[kinds[0]]

    def check(value: Any, name: str) -> str | None:
        # Not isinstance: a boolean is a number to Python, and not to a reader.
        return None if type(value) in kinds else f"{name} is {_KINDS.get(type(value), 'null')} instead of {expected}"

    return check


def _list_of(item: Shape) -> Shape:
    """A list of things of one shape."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _instance_of(list)(value, name):
            return wrong
        return next((wrong for each in value if (wrong := item(each, f"an item of {name}"))), None)

    return check


def _row(*fields: Shape, min_length: int) -> Shape:
    """A list with fields in a fixed order, of which the first `least` are always there."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _instance_of(list)(value, name):
            return wrong
        if not min_length <= len(value) <= len(fields):
            return f"{name} has {len(value)} fields instead of {min_length}"
        numbered = (
            (field, each, index) for index, (field, each) in enumerate(zip(fields, value, strict=False), start=1)
        )
        return next(
            (wrong for field, each, index in numbered if (wrong := field(each, f"field {index} of {name}"))), None
        )

    return check


def _object(**fields: Shape) -> Shape:
    """An object; the fields that are named have a shape of their own where they are there."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _instance_of(dict)(value, name):
            return wrong
        present = ((field, value[key], key) for key, field in fields.items() if key in value)
        return next((wrong for field, each, key in present if (wrong := field(each, f"{key} of {name}"))), None)

    return check


_TEXT = _instance_of(str)
_NUMBER = _instance_of(float, int)
_TEXTS = _list_of(_TEXT)
_OBJECTS = _list_of(_object())
_ANY = _object()

SHAPES: dict[tuple[str, str], Shape] = {
    ("datasets", "metadata"): _ANY,
    ("facts", "metadata"): _ANY,
    ("events", "body"): _object(created=_instance_of(bool)),
    ("receipts", "shown"): _list_of(
        _row(_TEXT, _NUMBER, _NUMBER, _NUMBER, _TEXT, _NUMBER, _TEXTS, min_length=6),
    ),
    ("requests", "result"): _ANY,
    ("sessions", "metadata"): _ANY,
    ("entries", "used"): _list_of(_row(_TEXT, _NUMBER, _TEXTS, min_length=3)),
    ("entries", "usage"): _ANY,
    ("feedbacks", "extra"): _ANY,
    ("waiting_feedbacks", "extra"): _ANY,
    ("outbox", "payload"): _ANY,
    ("connectors", "options"): _ANY,
    ("connectors", "schema"): _object(tables=_OBJECTS),
    ("executions", "parameters"): _ANY,
    ("executions", "result"): _object(columns=_OBJECTS, rows=_list_of(_instance_of(list))),
    ("keys", "scopes"): _TEXTS,
    ("jobs", "arguments"): _ANY,
}
"""By table and column."""
