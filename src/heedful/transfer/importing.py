"""`heedful import`: a project from a file of lines, all of it or nothing.

The file is read line by line and checked, and the texts that need vectors are embedded, before the one transaction that
writes it begins. Lines become rows again, with new numbers; derived rows are rebuilt.
"""

from __future__ import annotations

import re
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol

import orjson
from sqlalchemy import JSON, Column, Connection, Float, Integer, LargeBinary, String, Table, insert, select, update
from sqlalchemy.exc import DataError, IntegrityError

from heedful import settings
from heedful.api import checks
from heedful.api.parameters import Progress
from heedful.errors import Conflict, Invalid, NotFound, Unavailable, quoted
from heedful.ledger import events
from heedful.ledger.events import Event
from heedful.ledger.votes import kind_of
from heedful.memory import doctor
from heedful.model import REVIEW_STATUSES, author_name
from heedful.model.limits import MAX_LINE, MAX_TIME
from heedful.providers.configured import configured_embedder
from heedful.providers.embedding import Embedder
from heedful.storage import Database, facts, graph, open_store, schema, scopes
from heedful.storage.vectors import active_model, ensure_model, pack
from heedful.transfer.exporting import (
    END,
    FORMAT,
    HEADER,
    KINDS,
    REFERENCED,
    REFERENCES,
    Checksum,
    Kind,
    Line,
    Numbers,
    Transferred,
    closing,
    in_project,
)
from heedful.transfer.table_rows import TABLES
from heedful.transfer.table_rows import insert as insert_verbatim
from heedful.workspace import matching_model

EMBEDDED_AT_ONCE = 256
"""Facts that are embedded at once."""


def import_file(
    url_or_path: str | Path | None,
    file: str | Path | IO[bytes],
    *,
    project: str | None = None,
    embedding: str | Embedder | None = None,
    progress: Progress | None = None,
) -> Transferred:
    """Reads an exported project into a store, under the name it had or under another one.

    The project must be new or empty. If the store has another model than the file, the facts are re-embedded.
    """
    with _opened(file) as source:
        return _import(url_or_path, source, project, embedding, progress)


@contextmanager
def _opened(file: str | Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """A file that can be read twice: what can be read once only is kept."""
    if not isinstance(file, str | Path):
        with TemporaryFile() as spool:
            shutil.copyfileobj(file, spool, 1 << 20)
            yield spool
        return
    if not Path(file).exists() or Path(file).is_dir():
        raise NotFound(f"there is no file {file}", field="file", value=str(file), remedy="Check its name")
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as error:
        raise Unavailable(f"{file} can't be read ({error.strerror or error})", code="file_unreadable") from error


def _import(
    url_or_path: str | Path | None,
    file: IO[bytes],
    project: str | None,
    embedding: str | Embedder | None,
    progress: Progress | None,
) -> Transferred:
    config = settings.load(store=url_or_path)
    embedder = configured_embedder(config, embedding)
    header = check_file(file)
    name = checks.name("project", header.project if project is None else project)
    database = open_store(config.store if url_or_path is None else url_or_path)
    try:
        with database.read(name) as connection:
            matching_model(active_model(connection), embedder)
            _check_free(connection, name)
        # In sight of all projects, because ids are of one thing only in all of them.
        with database.read() as connection:
            for kind, run in line_groups(file):
                _check_new(connection, kind, run)
        with TemporaryFile() as vectors:
            embedded = _embed(file, header, embedder, vectors)
            vectors.seek(0)
            _write(database, file, header, name, embedder, vectors, progress)
    finally:
        database.close()
    checksums = {"facts_checksum": header.facts_checksum, "ledger_checksum": header.ledger_checksum}
    return Transferred(project=name, counts=header.counts, embedded=embedded, **checksums)


def _write(
    database: Database,
    file: IO[bytes],
    header: Header,
    name: str,
    embedder: Embedder,
    vectors: IO[bytes],
    progress: Progress | None,
) -> None:
    with database.write(name) as connection:
        matching_model(active_model(connection), embedder)
        _check_free(connection, name)
        project = scopes.ensure_project(connection, name, 0)
        model = ensure_model(connection, embedder.name, embedder.dimensions)

        def vector(line: FileLine, *, must: bool) -> bytes | None:
            if not _lacks(line, header, embedder):
                return b64decode(line.fields["vector"])
            return vectors.read(2 * embedder.dimensions) if must else None

        writing = Writing(connection, Numbers(connection, project), model, vector)
        written = 0
        for kind, run in line_groups(file):
            try:
                writing.write(kind, run)
            except (DataError, IntegrityError) as error:
                where = f"{run[0].number} (or one of the {len(run) - 1} behind it)"
                raise run[0].damaged(f"can't be stored: {where}: {error.orig}") from error
            written += len(run)
            if progress is not None:
                progress(written, sum(header.counts.values()))
        for dataset in writing.numbers.datasets.values():
            doctor.refold(database, connection, dataset)


def _embed(file: IO[bytes], header: Header, embedder: Embedder, vectors: IO[bytes]) -> int:
    """Writes the vectors of the facts that the file has none for, in their order; returns how many."""
    count = 0
    for kind, run in line_groups(file):
        if kind.name != "fact":
            continue
        texts = [line.fields["text"] for line in run if _lacks(line, header, embedder)]
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            for row in embedder.embed(texts[start : start + EMBEDDED_AT_ONCE]):
                vectors.write(pack(row))
                count += 1
    return count


def _lacks(line: FileLine, header: Header, embedder: Embedder) -> bool:
    same = (header.model, header.dimensions) == (embedder.name, embedder.dimensions)
    return not same or "vector" not in line.fields


def _check_free(connection: Connection, name: str) -> None:
    """Fails if a project has something in it; its keys, jobs and audit trail don't count."""
    project = scopes.project_id(connection, name)
    if project is None:
        return
    for table in TABLES:
        if table in (schema.projects, schema.keys, schema.audit) or "project_id" not in table.columns:
            continue
        first = select(*table.primary_key).where(in_project(table, project)).limit(1)
        if connection.execute(first).first() is not None:
            message = f"project {name!r} is not empty (it has rows in {table.name})"
            remedy = "Import it under another name with --project; nothing was imported"
            raise Conflict(message, code="project_not_empty", field="project", value=name, remedy=remedy)


def _check_new(connection: Connection, kind: Kind, run: Sequence[FileLine]) -> None:
    """Fails if the store has one of these ids, which are of one thing only, in any project."""
    columns = kind.table.columns
    # Versions of an opinion have one id, and each has its own event.
    column = columns.get("event_id", columns.get("id"))
    if column is None or kind.name in ("project", "dataset", "query", "session"):
        return
    lines = {line.fields[column.name]: line.number for line in run}
    if len(lines) < len(run):
        raise run[0].damaged("or a line soon after it has an id that another line has too")
    existing = connection.execute(select(column).where(column.in_(list(lines))).limit(1)).scalar()
    if existing is not None:
        message = f"the store has the {kind.name} {existing} of line {lines[existing]} already"
        remedy = "Ids are unique: import it into another store; nothing was imported"
        raise Conflict(message, code="id_taken", field="file", value=existing, remedy=remedy)


Row = dict[str, Any]


class VectorOf(Protocol):
    """The vector of a line, made for the store's model; None if there is none and it can be made later."""

    def __call__(self, line: FileLine, *, must: bool) -> bytes | None: ...


class Writing:
    """Writes the lines of one project, a run of one type at a time, in an open transaction."""

    def __init__(self, connection: Connection, numbers: Numbers, model: int, vector: VectorOf) -> None:
        self._connection = connection
        self.numbers = numbers
        self._model = model
        self._vector = vector
        self._special: dict[str, Callable[[Sequence[FileLine], list[Row]], None]] = {
            "project": self._project,
            "dataset": self._datasets,
            "query": self._queries,
            "fact": self._facts,
            "event": self._events,
            "session": self._sessions,
            "connector": self._connectors,
        }

    def write(self, kind: Kind, run: Sequence[FileLine]) -> None:
        rows = self._rows(kind, run)
        if kind.has_vector and kind.table is not schema.facts:
            for line, row in zip(run, rows, strict=True):
                row["vector"] = self._vector(line, must=False)
                row["model_id"] = None if row["vector"] is None else self._model
        special = self._special.get(kind.name)
        if special is not None:
            special(run, rows)
        else:
            self._insert(kind.table, rows)

    def _insert(self, table: Table, rows: list[Row]) -> None:
        packed = [column.name for column in table.columns if isinstance(column.type, JSON)]
        texts = [
            {name: orjson.dumps(row[name]).decode() for name in packed if row.get(name) is not None} for row in rows
        ]
        insert_verbatim(self._connection, table, [row | text for row, text in zip(rows, texts, strict=True)])

    def _rows(self, kind: Kind, run: Sequence[FileLine]) -> list[Row]:
        """Rows with numbers instead of names."""
        rows = [to_columns(kind, line.fields) for line in run]
        columns = kind.table.columns
        if "author_kind" in columns:
            # Files of older versions say it by the name alone.
            rows = [{**row, "author_kind": row["author_kind"] or kind_of(row["author"])} for row in rows]
        if "project_id" in columns:
            rows = [row | {"project_id": self.numbers.project} for row in rows]
        if "dataset_id" in columns:
            rows = self._with_references(run, rows, "dataset", "dataset_id", self.numbers.datasets)
        for column, table in REFERENCED.items():
            if column in columns:
                field = REFERENCES[column]
                seqs = self.numbers.seqs(table, (line.fields[field] for line in run if field in line.fields))
                rows = self._with_references(run, rows, field, column, seqs)
        if "query_id" in columns:
            rows = self._with_queries(run, rows)
        return self._with_links(kind, run, rows)

    def _with_references(
        self, run: Sequence[FileLine], rows: list[Row], field: str, column: str, seq_by_name: dict[str, int]
    ) -> list[Row]:
        result = []
        for line, row in zip(run, rows, strict=True):
            name = line.fields.get(field)
            if name is not None and name not in seq_by_name:
                raise line.damaged(f"names the {field} {quoted(name)}, which no line before it has")
            result.append(row | {column: None if name is None else seq_by_name[name]})
        return result

    def _with_queries(self, run: Sequence[FileLine], rows: list[Row]) -> list[Row]:
        pairs = [(row["dataset_id"], line.fields.get("query", "")) for line, row in zip(run, rows, strict=True)]
        query_ids = self.numbers.queries(pair for pair in pairs if pair[1] and pair[0] is not None)
        for line, pair in zip(run, pairs, strict=True):
            if pair[1] and pair not in query_ids:
                raise line.damaged(f"names the query {quoted(pair[1])}, which no line before it has")
        return [row | {"query_id": query_ids.get(pair)} for pair, row in zip(pairs, rows, strict=True)]

    def _with_links(self, kind: Kind, run: Sequence[FileLine], rows: list[Row]) -> list[Row]:
        if kind.links is None or kind.renamed is None:
            return rows
        datasets = [self.numbers.datasets.get(line.fields.get("dataset", ""), 0) for line in run]
        linked = [(dataset, row, kind.links(row)) for dataset, row in zip(datasets, rows, strict=True)]
        names = self.numbers.links((dataset, link) for dataset, _, links in linked for link in links)
        return [kind.renamed(row, {link: names[dataset, link] for link in links}) for dataset, row, links in linked]

    def _project(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        """Its name may be another one here."""
        values = {name: value for name, value in rows[0].items() if name != "name"}
        projects = schema.projects
        self._connection.execute(update(projects).where(projects.c.id == self.numbers.project).values(values))

    def _datasets(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        table = schema.datasets
        self._insert(table, rows)
        stored = select(table.c.name, table.c.id).where(table.c.project_id == self.numbers.project)
        self.numbers.datasets = {row.name: row.id for row in self._connection.execute(stored)}

    def _queries(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        for line, row in zip(run, rows, strict=True):
            if row["digest"] != events.query_digest(row["text"]):
                raise line.damaged("has the digest of another text")
        self._insert(schema.queries, rows)

    def _facts(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        for row in rows:
            row["digest"] = facts.digest(row["text"], row["source"], row["metadata"])
            row["linked"] = graph.BY_WORDS
        self._insert(schema.facts, rows)
        seqs = self.numbers.seqs(schema.facts, (row["id"] for row in rows))
        vectors = [
            {
                "fact_seq": seqs[row["id"]],
                "model_id": self._model,
                "dataset_id": row["dataset_id"],
                "vector": self._vector(line, must=True),
            }
            for line, row in zip(run, rows, strict=True)
        ]
        self._connection.execute(insert(schema.vectors), vectors)
        for dataset in {row["dataset_id"] for row in rows}:
            texts = {seqs[row["id"]]: row["text"] for row in rows if row["dataset_id"] == dataset}
            facts.retag(self._connection, dataset, list(texts))
            graph.add(self._connection, dataset, texts)
            lines = [{"dataset_id": dataset, "fact_seq": seq, "kind": facts.ADDED} for seq in texts]
            self._connection.execute(insert(schema.changes), lines)
        for line, row in zip(run, rows, strict=True):
            if "entities" in line.fields:
                graph.enrich(self._connection, row["dataset_id"], seqs[row["id"]], line.fields["entities"])

    def _events(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        events.append(self._connection, [Event(**row) for row in rows])

    def _sessions(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        self._insert(schema.sessions, rows)
        seqs = self.numbers.seqs(schema.sessions, (row["id"] for row in rows))
        tags = [
            {"session_seq": seqs[row["id"]], "project_id": self.numbers.project, **tag}
            for row in rows
            for tag in facts.flattened(row["metadata"])
        ]
        if tags:
            self._connection.execute(insert(schema.session_tags), tags)

    def _connectors(self, run: Sequence[FileLine], rows: list[Row]) -> None:
        """Disabled, since the writer of the file chose where they lead; other rights that it names are dropped."""
        for line, row in zip(run, rows, strict=True):
            options = {name: row["options"].get(name) for name in ("role", "dialect", "sensitive_columns")}
            sensitive = options["sensitive_columns"]
            if (
                not isinstance(options["dialect"], str)
                or not isinstance(options["role"], str | None)
                or not (
                    sensitive is None or (isinstance(sensitive, list) and all(isinstance(n, str) for n in sensitive))
                )
            ):
                raise line.damaged("has malformed options")
            row |= {"enabled": 0, "options": {name: value for name, value in options.items() if value is not None}}
        self._insert(schema.connectors, rows)


LINES_AT_ONCE = 1000
"""Lines that are taken at once."""

MAX_FAULT = 500
"""Characters of a line that are shown."""

SHAPES: dict[str, type] = {"metadata": dict, "extra": dict, "shown": list, "used": list, "body": dict, "options": dict}
"""The types of the values of JSON columns."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file, with the checksums of the others once they are read."""

    project: str
    model: str | None
    dimensions: int
    counts: dict[str, int]
    facts_checksum: str = ""
    ledger_checksum: str = ""


@dataclass(frozen=True, slots=True)
class FileLine:
    number: int
    fields: Line

    def damaged(self, fault: str) -> Invalid:
        return damaged(self.number, fault)


def damaged(number: int, fault: str) -> Invalid:
    # The fault may quote the line, and be as long.
    remedy = "Export the project again; nothing was imported"
    return Invalid(f"line {number} {fault[:MAX_FAULT]}", code="file_damaged", field="file", value=number, remedy=remedy)


def check_file(file: IO[bytes]) -> Header:
    """Reads a whole file. An error about a damaged, unknown or missing line names the line."""
    header = _header(file)
    counts = dict.fromkeys(KINDS, 0)
    checksums = {"fact": Checksum(), "event": Checksum()}
    end: FileLine | None = None
    last = 1
    for line in _lines(file):
        if end is not None:
            raise line.damaged("comes after the end")
        name = line.fields["type"]
        if name == END:
            end = line
            continue
        _check_line(KINDS[name], line, header)
        counts[name] += 1
        if name in checksums:
            checksums[name].add(line.fields)
        last = line.number
    if end is None:
        raise damaged(last, f"is the last of {sum(header.counts.values())}: the file is cut off")
    if counts["project"] != 1:
        raise end.damaged(f"ends a file with {counts['project']} projects instead of one")
    declared = end.fields | {"counts": _counts(end.fields.get("counts"))}
    if declared != closing(counts, checksums) or header.counts != counts:
        raise end.damaged("has counts or checksums that don't match the lines of the file")
    facts_checksum, ledger_checksum = (checksums[name].value for name in ("fact", "event"))
    return replace(header, counts=counts, facts_checksum=facts_checksum, ledger_checksum=ledger_checksum)


def line_groups(file: IO[bytes]) -> Iterator[tuple[Kind, list[FileLine]]]:
    """The lines of a file that was checked, in runs of one type."""
    file.seek(0)
    _line(file)
    for name, run in groupby(_lines(file), key=lambda line: line.fields["type"]):
        if name == END:
            return
        while batch := list(islice(run, LINES_AT_ONCE)):
            yield KINDS[name], batch


OLDER = {"caller": ""}
"""The values of columns that files of older versions don't have."""


def to_columns(kind: Kind, line: Line) -> dict[str, Any]:
    """A line's plain columns, as the table takes them."""
    found = {name: line[name] if name in line else OLDER.get(name) for name in kind.plain}
    return found | {name: bytes.fromhex(line[name]) for name in kind.binary if name in line}


def _header(file: IO[bytes]) -> Header:
    file.seek(0)
    header = _parsed(1, _line(file))
    if header.get("type") != HEADER:
        raise damaged(1, "is not the beginning of an exported project")
    if header.get("format") not in range(1, FORMAT + 1):
        message = f"the file has the format {quoted(header.get('format'))}, and this version reads 1 to {FORMAT}"
        raise Invalid(message, code="file_newer", field="file", remedy="Upgrade heedful; nothing was imported")
    project, model, counts = header.get("project"), header.get("model"), _counts(header.get("counts"))
    if not isinstance(project, str) or counts is None:
        raise damaged(1, "names neither the project nor the number of its lines")
    if model is None:
        return Header(project, None, 0, counts)
    if not isinstance(model, dict) or [type(model.get(name)) for name in ("name", "dimensions")] != [str, int]:
        raise damaged(1, f"names the model {quoted(model)}")
    return Header(project, model["name"], model["dimensions"], counts)


def _counts(declared: Any) -> dict[str, Any] | None:
    """How many lines of each type a file says it has; one that an older version wrote does not know all types."""
    return dict.fromkeys(KINDS, 0) | declared if isinstance(declared, dict) else None


def _lines(file: IO[bytes]) -> Iterator[FileLine]:
    for number, text in enumerate(iter(lambda: _line(file), b""), start=2):
        line = _parsed(number, text)
        if line.get("type") not in (*KINDS, END):
            raise damaged(number, f"has the unknown type {quoted(line.get('type'))}")
        yield FileLine(number, line)


def _line(file: IO[bytes]) -> bytes:
    """The next line, or as much of it as is read."""
    return file.readline(MAX_LINE + 1)


def _parsed(number: int, text: bytes) -> Line:
    if len(text) > MAX_LINE:
        raise damaged(number, f"has more than {MAX_LINE} bytes")
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise damaged(number, f"is not JSON ({error})") from error
    if not isinstance(line, dict):
        raise damaged(number, "is not a JSON object")
    return line


def _check_line(kind: Kind, line: FileLine, header: Header) -> None:
    columns, references = kind.plain, kind.references.values()
    for name, value in line.fields.items():
        if name in columns:
            _check_value(line, columns[name], value)
        elif name in references:
            if not isinstance(value, str):
                raise line.damaged(f"has {name} {quoted(value)}, which is not a text")
            if name == "query":
                _check_hexadecimal(line, name, value)
        elif name == "vector" and kind.has_vector:
            _check_vector(line, value, header)
        elif not (name == "type" or (name == "entities" and kind.name == "fact")):
            raise line.damaged(f"has a field {quoted(name)}, which a {kind.name} does not have")
    for name in kind.required:
        if name not in line.fields and name not in OLDER:
            raise line.damaged(f"has no {name}")
    entities = line.fields.get("entities", [])
    if not isinstance(entities, list) or not all(isinstance(name, str) for name in entities):
        raise line.damaged("has entities that are not texts")
    if kind.links is not None:
        _check_links(kind, line)
    _check_author(line)


def _check_author(line: FileLine) -> None:
    """No file makes a named author of a visitor, nor two authors of one name."""
    author, kind = line.fields.get("author"), line.fields.get("author_kind")
    try:
        is_name = author is None or author_name(author) == author
    except Invalid:
        is_name = False
    if not is_name or kind not in (None, kind_of(author)):
        raise line.damaged(f"has the author {quoted(author)} of the kind {quoted(kind)}")


def _check_links(kind: Kind, line: FileLine) -> None:
    assert kind.links is not None
    try:
        sound = all(isinstance(link, str) and "/" in link for link in kind.links(to_columns(kind, line.fields)))
    except (TypeError, ValueError) as error:
        raise line.damaged(f"has malformed links ({error})") from error
    if not sound:
        raise line.damaged("has links that are not texts with a slash")


def _check_value(line: FileLine, column: Column[Any], value: Any) -> None:
    name = column.name
    if isinstance(column.type, JSON):
        if not isinstance(value, SHAPES.get(name, object)):
            raise line.damaged(f"has a malformed {name}")
        _check_storable(line, lambda: checks.storable_values(name, value))
        return
    if isinstance(column.type, LargeBinary):
        _check_hexadecimal(line, name, value)
        return
    allowed: type | tuple[type, ...] = str
    if isinstance(column.type, Float):
        allowed = (int, float)
    elif isinstance(column.type, Integer):
        allowed = int
    if not isinstance(value, allowed) or isinstance(value, bool):
        raise line.damaged(f"has {name} {quoted(value)}, which has the wrong type")
    if isinstance(value, str):
        _check_text(line, column, value)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise line.damaged(f"has {name} {quoted(value)}, which is too large")
    elif isinstance(value, int) and (name == "at" or name.endswith("_at")) and not 0 <= value <= MAX_TIME:
        raise line.damaged(f"has {name} {quoted(value)}, which is not in the years 1970 to 9999")


def _check_text(line: FileLine, column: Column[Any], value: str) -> None:
    _check_storable(line, lambda: checks.any_text(column.name, value))
    if column is schema.facts.c.source:
        _check_storable(line, lambda: checks.source(value))
    longest = column.type.length if isinstance(column.type, String) else None
    if longest is not None and len(value) > longest:
        raise line.damaged(f"has a {column.name} of {len(value)} characters, the limit is {longest}")
    # No table would refuse it, and no reviewer could read it.
    if column is schema.review_items.c.status and value not in REVIEW_STATUSES:
        raise line.damaged(f"has the unknown status {quoted(value)}")


def _check_storable(line: FileLine, check: Callable[[], object]) -> None:
    try:
        check()
    except Invalid as error:
        raise line.damaged(f"can't be stored: {error.message}") from None


def _check_hexadecimal(line: FileLine, name: str, value: Any) -> None:
    if not isinstance(value, str) or re.fullmatch(r"(?:[0-9a-f]{2})+", value) is None:
        raise line.damaged(f"has {name} {quoted(value)}, which is not a hexadecimal number")


def _check_vector(line: FileLine, value: Any, header: Header) -> None:
    try:
        size = len(b64decode(value, validate=True))
    except (TypeError, ValueError):
        size = 0
    if header.model is None or size != 2 * header.dimensions:
        raise line.damaged(f"has a vector that does not have {header.dimensions} dimensions")
