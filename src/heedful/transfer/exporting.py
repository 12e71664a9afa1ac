"""`heedful export`: a project as lines of JSON, from one consistent view of the store; and the checksums over lines.

A line has the columns of its table, but for derived ones, and for numbers, which differ from store to store: they
become names, ids and hashes, and numbers again in the store that imports the project. Nulls are left out.

A link is "fact/number of entity" in a store, and "fact/key of entity" in a line. If the entity is gone, its number
stands behind a minus: that is no key, and no number of a store either.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, Select, Table, func, select

from heedful import settings
from heedful.api import checks
from heedful.api.parameters import Progress
from heedful.clock import system_clock
from heedful.errors import NotFound
from heedful.files import write_atomically
from heedful.ledger import scores
from heedful.ledger.events import LINK_SIGNAL, STRENGTHS
from heedful.model.base import Model
from heedful.storage import graph, schema, scopes
from heedful.storage.graph import BY_MODEL
from heedful.storage.rows import select_in
from heedful.storage.vectors import ModelRow, active_model
from heedful.transfer import stores
from heedful.transfer.table_rows import BATCH_SIZE, columns
from heedful.version import __version__

FORMAT = 2
"""The newest format; 1 had no review queue."""
HEADER = "heedful"
END = "end"

Write = Callable[[bytes], Any]


class Transferred(Model):
    """A project that was written to a file, or read from one."""

    project: str
    """Its name in the store."""
    counts: dict[str, int]
    """How many lines of each type."""
    facts_checksum: str
    """The fold of its facts."""
    ledger_checksum: str
    """The fold of its ledger."""
    embedded: int = 0
    """How many facts had to be embedded, because the file has no vectors of the store's model."""


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
            names = scopes.project_names(connection)
        with database.read(project) as connection:
            number = scopes.project_id(connection, project)
            if number is None:
                message = f"store {database.name} has no project {project!r}"
                remedy = f"It has: {', '.join(names)}" if names else "It is empty"
                raise NotFound(message, field="project", value=project, remedy=remedy)
            model = active_model(connection) if vectors else None
            return _write_lines(connection, number, project, model, write, progress)
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
    stores.check_target(settings.load().store if url_or_path is None else url_or_path, target, force=force)
    with write_atomically(target, overwrite=force) as output:
        return export(url_or_path, output.write, project=project, vectors=vectors, progress=progress)


def _write_lines(
    connection: Connection, number: int, project: str, model: ModelRow | None, write: Write, progress: Progress | None
) -> Transferred:
    counts = {
        name: connection.execute(
            select(func.count()).select_from(kind.table).where(in_project(kind.table, number))
        ).scalar_one()
        for name, kind in KINDS.items()
    }
    checksums = {"fact": Checksum(), "event": Checksum()}
    header = {
        "type": HEADER,
        "format": FORMAT,
        "version": __version__,
        "project": project,
        "exported_at": system_clock().isoformat(),
        "model": None if model is None else {"name": model.name, "dimensions": model.dimensions},
        "counts": counts,
    }
    write(_packed(header))
    written, names = 0, Names(connection, number)
    for kind in KINDS.values():
        for run in lines(connection, kind, number, names, None if model is None else model.id):
            for line in run:
                if kind.name in checksums:
                    checksums[kind.name].add(line)
                write(_packed(line))
            written += len(run)
            if progress is not None:
                progress(written, sum(counts.values()))
    last = closing(counts, checksums)
    write(_packed(last))
    return Transferred(project=project, **{name: value for name, value in last.items() if name != "type"})


def closing(counts: dict[str, int], checksums: dict[str, Checksum]) -> Line:
    """The last line, which shows that a file is whole."""
    return {
        "type": END,
        "counts": counts,
        "facts_checksum": checksums["fact"].value,
        "ledger_checksum": checksums["event"].value,
    }


def _packed(line: Line) -> bytes:
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


Line = dict[str, Any]
Row = dict[str, Any]


class ProjectChecksum(Model):
    """One project in a few characters: two stores that agree on them hold the same facts and the same ledger."""

    project: str
    """Its name."""
    facts: int
    """How many facts it has."""
    events: int
    """How many lines its ledger has."""
    facts_checksum: str
    """The fold of its facts, in the order they were stored."""
    ledger_checksum: str
    """The fold of its ledger, in the order it was written."""


REFERENCES = {
    "dataset_id": "dataset",
    "query_id": "query",
    "session_seq": "session",
    "fact_seq": "fact",
    "item_seq": "item",
}
"""Columns with the number of something, and the field that names it in a line."""

REFERENCED = {"session_seq": schema.sessions, "fact_seq": schema.facts, "item_seq": schema.review_items}
"""Those of them that name a row by its id, and the table of that row."""

NUMBERS = frozenset({"seq", "project_id", "model_id", "vector"})


DELETED_PREFIX = "-"
"""Stands before the number of an entity that is gone."""


class Names:
    """The names behind the numbers of a project."""

    def __init__(self, connection: Connection, project: int) -> None:
        self._connection = connection
        table = schema.datasets
        rows = connection.execute(select(table.c.id, table.c.name).where(table.c.project_id == project))
        self.datasets: dict[int, str] = {row.id: row.name for row in rows}

    def queries(self, numbers: Iterable[int | None]) -> dict[int, str]:
        """The hashes of queries, by number; those that are gone are left out."""
        digests = _look_up(self._connection, schema.queries.c.id, numbers, schema.queries.c.digest)
        return {number: digest.hex() for number, digest in digests.items()}

    def links(self, names: Iterable[str]) -> dict[str, str]:
        """Links in words, by their names in the store."""
        split = {name: pair for name in names if (pair := scores.parse_link_name(name)) is not None}
        numbers = (number for _, number in split.values())
        keys = _look_up(self._connection, schema.entities.c.id, numbers, schema.entities.c.key)
        return {
            name: f"{fact}/{keys.get(number, f'{DELETED_PREFIX}{number}')}" for name, (fact, number) in split.items()
        }


def _look_up(connection: Connection, by: Column[Any], wanted: Iterable[Any], column: Column[Any]) -> dict[Any, Any]:
    """The values of a column by those of another; missing ones are left out."""
    values = sorted({value for value in wanted if value is not None})
    return {row[0]: row[1] for row in select_in(connection, select(by, column), by, values)}


def event_links(row: dict[str, Any]) -> list[str]:
    return [row["target_id"]] if row["kind"] == LINK_SIGNAL else []


def receipt_links(row: dict[str, Any]) -> list[str]:
    return [link for line in row["shown"] if len(line) > 6 for link in line[6]]


def entry_links(row: dict[str, Any]) -> list[str]:
    return [link for _, _, links in row["used"] or () for link in links]


def renamed_event(row: dict[str, Any], links: dict[str, str]) -> dict[str, Any]:
    """An event with its link under another name; keys of derived signals end with it."""
    old = row["target_id"]
    if row["kind"] != LINK_SIGNAL or old not in links:
        return row
    key = row["idempotency_key"]
    if key.endswith(f"/{old}"):
        key = key.removesuffix(old) + links[old]
    return row | {"target_id": links[old], "idempotency_key": key}


def renamed_receipt(row: dict[str, Any], links: dict[str, str]) -> dict[str, Any]:
    return row | {
        "shown": [
            [*line[:6], [links.get(link, link) for link in line[6]], *line[7:]] if len(line) > 6 else line
            for line in row["shown"]
        ]
    }


def renamed_entry(row: dict[str, Any], links: dict[str, str]) -> dict[str, Any]:
    if not row["used"]:
        return row
    return row | {"used": [[fact, share, [links.get(link, link) for link in led]] for fact, share, led in row["used"]]}


@dataclass(frozen=True)
class Kind:
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
        Kind("receipt", schema.receipts, links=receipt_links, renamed=renamed_receipt),
        Kind("event", schema.events, links=event_links, renamed=renamed_event),
        Kind("note", schema.notes),
        Kind("request", schema.requests),
        Kind("session", schema.sessions),
        Kind("message", schema.messages),
        Kind("entry", schema.entries, links=entry_links, renamed=renamed_entry),
        Kind("feedback", schema.feedbacks),
        Kind("waiting_feedback", schema.waiting_feedbacks),
        Kind("connector", schema.connectors, frozenset({"enabled", "revision", "full_revision"})),
        Kind("execution", schema.executions, frozenset({"revision"})),
        Kind("external_id", schema.external_ids),
        Kind("example", schema.golden_examples),
        Kind("review_item", schema.review_items),
        Kind("review_member", schema.review_members),
        Kind("review_note", schema.review_notes),
    )
}
"""In an order in which each line names only what came before it."""


def in_project(table: Table, project: int) -> ColumnElement[bool]:
    if table is schema.projects:
        return schema.projects.c.id == project
    if table is schema.events:
        # Strengths name a place in this ledger; the other store fits its own.
        return (table.c.project_id == project) & (table.c.kind != STRENGTHS)
    return table.c.project_id == project


def lines(
    connection: Connection, kind: Kind, project: int, name_lookup: Names, model: int | None = None
) -> Iterator[list[Line]]:
    """The lines of one kind in the order in which they were written, in batches; with vectors of `model`, if given."""
    chosen: Select[Any] = select(*kind.table.columns).where(in_project(kind.table, project))
    if kind.table is schema.facts and model is not None:
        of_model = (schema.vectors.c.fact_seq == schema.facts.c.seq) & (schema.vectors.c.model_id == model)
        chosen = chosen.add_columns(schema.vectors.c.vector).outerjoin(schema.vectors, of_model)
    result = connection.execution_options(yield_per=BATCH_SIZE).execute(chosen.order_by(*kind.table.primary_key))
    names = [str(column.name) for column in chosen.selected_columns]
    for run in result.partitions(BATCH_SIZE):
        yield _to_lines(connection, kind, [dict(zip(names, row, strict=True)) for row in run], name_lookup, model)


def _to_lines(
    connection: Connection, kind: Kind, rows: Sequence[Row], name_lookup: Names, model: int | None
) -> list[Line]:
    names: dict[str, Mapping[Any, str]] = {
        "dataset_id": name_lookup.datasets,
        "query_id": name_lookup.queries(row["query_id"] for row in rows) if "query_id" in kind.references else {},
        **{
            column: _look_up(connection, table.c.seq, (row[column] for row in rows), table.c.id)
            for column, table in REFERENCED.items()
            if column in kind.references
        },
    }
    entities = _entities(connection, rows) if kind.table is schema.facts else {}
    if kind.links is not None and kind.renamed is not None:
        links = name_lookup.links(link for row in rows for link in kind.links(row))
        rows = [kind.renamed(row, links) for row in rows]
    result: list[Line] = []
    for row in rows:
        line: Line = {"type": kind.name}
        line |= {field: names[column].get(row[column]) for column, field in kind.references.items()}
        line |= {name: row[name].hex() if isinstance(row[name], bytes) else row[name] for name in kind.plain}
        if "seq" in row and row["seq"] in entities:
            line["entities"] = entities[row["seq"]]
        vector = row.get("vector")
        if model is not None and vector is not None and row.get("model_id", model) == model:
            line["vector"] = b64encode(vector).decode()
        result.append({name: value for name, value in line.items() if value is not None})
    return result


def _entities(connection: Connection, rows: Sequence[Row]) -> dict[int, list[str]]:
    """The entities that a language model found in facts: nobody else could find them again."""
    names_by_fact: dict[int, list[str]] = {row["seq"]: [] for row in rows if row["linked"] == BY_MODEL}
    links, entities = schema.links, schema.entities
    # By project, too: a copy reads all of them in one transaction, and in a cluster they are on several nodes.
    same = (entities.c.id == links.c.entity_id) & (entities.c.project_id == links.c.project_id)
    statement = select(links.c.fact_seq, entities.c.name).join(entities, same)
    ordered = statement.order_by(links.c.fact_seq, entities.c.id)
    for row in select_in(connection, ordered, links.c.fact_seq, list(names_by_fact)):
        names_by_fact[row.fact_seq].append(row.name)
    return names_by_fact


Pair = tuple[int, str]
"""The number of a dataset, and a name in it."""


class Numbers:
    """The numbers that the parts of a project got."""

    def __init__(self, connection: Connection, project: int) -> None:
        self._connection = connection
        self.project = project
        self.datasets: dict[str, int] = {}

    def queries(self, pairs: Iterable[Pair]) -> dict[Pair, int]:
        """The numbers of queries, by dataset and hash."""
        ids: dict[Pair, int] = {}
        table = schema.queries
        for dataset, checksums in _by_dataset(pairs).items():
            of_dataset = select(table.c.id, table.c.digest).where(table.c.dataset_id == dataset)
            rows = select_in(
                self._connection, of_dataset, table.c.digest, [bytes.fromhex(digest) for digest in checksums]
            )
            ids |= {(dataset, row.digest.hex()): row.id for row in rows}
        return ids

    def links(self, pairs: Iterable[Pair]) -> dict[Pair, str]:
        """The names that links in words have here, by the dataset that they are in."""
        split = {(dataset, link): link.partition("/") for dataset, link in pairs}
        keys = _by_dataset((dataset, key) for (dataset, _), (_, _, key) in split.items())
        entity_ids = {
            dataset: graph.entity_numbers(self._connection, dataset, list(names)) for dataset, names in keys.items()
        }
        renamed: dict[Pair, str] = {}
        for (dataset, link), (fact, _, key) in split.items():
            number = entity_ids[dataset].get(key)
            # What is gone must not read as the number of anything.
            renamed[dataset, link] = (
                f"{fact}/{DELETED_PREFIX}{key.removeprefix(DELETED_PREFIX)}" if number is None else f"{fact}/{number}"
            )
        return renamed

    def seqs(self, table: Table, ids: Iterable[str]) -> dict[str, int]:
        if table is not schema.sessions:
            return _look_up(self._connection, table.c.id, ids, table.c.seq)
        # Each project may have a session of this name.
        in_this = select(table.c.id, table.c.seq).where(table.c.project_id == self.project)
        return {row.id: row.seq for row in select_in(self._connection, in_this, table.c.id, sorted(set(ids)))}


def _by_dataset(pairs: Iterable[Pair]) -> dict[int, set[str]]:
    grouped: dict[int, set[str]] = {}
    for dataset, name in pairs:
        grouped.setdefault(dataset, set()).add(name)
    return grouped


_LEFT_OUT = frozenset({"type", "vector", "entities"})


class Checksum:
    """Folds lines in their order; vectors and what is derived are left out."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self.count = 0

    def add(self, line: Line) -> None:
        fields = {name: value for name, value in line.items() if name not in _LEFT_OUT}
        self._digest.update(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
        self.count += 1

    @property
    def value(self) -> str:
        return self._digest.hexdigest()


def of_project(connection: Connection, number: int, name: str) -> ProjectChecksum:
    """The checksums of one project, in the order of its facts and events."""
    names = Names(connection, number)
    facts, events = Checksum(), Checksum()
    for kind, checksum in (("fact", facts), ("event", events)):
        for run in lines(connection, KINDS[kind], number, names):
            for line in run:
                checksum.add(line)
    return ProjectChecksum(
        project=name, facts=facts.count, events=events.count, facts_checksum=facts.value, ledger_checksum=events.value
    )


def of_store(connection: Connection) -> list[ProjectChecksum]:
    """The checksums of all projects, oldest first."""
    rows = connection.execute(select(schema.projects.c.id, schema.projects.c.name).order_by(schema.projects.c.id)).all()
    return [of_project(connection, row.id, row.name) for row in rows]
