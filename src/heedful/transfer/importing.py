"""`heedful import`: a project from a file of lines, all of it or nothing.

The file is checked, and what needs vectors is embedded, before the one transaction that writes it begins.
"""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from sqlalchemy import Connection, select
from sqlalchemy.exc import DataError, IntegrityError

from heedful import settings
from heedful.errors import Conflict, NotFound, Unavailable
from heedful.memory import checks, maintenance
from heedful.memory.workspace import matching_model
from heedful.protocols.engine import Progress
from heedful.providers.embedding import Embedder, configured_embedder
from heedful.storage import Database, locks, schema, scopes
from heedful.storage.vectors import active_model, ensure_model, pack
from heedful.transfer import reading
from heedful.transfer.lines import in_project
from heedful.transfer.numbers import Numbers
from heedful.transfer.reading import Header, Numbered
from heedful.transfer.results import Transferred
from heedful.transfer.table_rows import TABLES
from heedful.transfer.writing import Writing

BATCH_SIZE = 256
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
    if not isinstance(file, str | Path):
        return _spooled(url_or_path, file, project, embedding, progress)
    if not Path(file).exists() or Path(file).is_dir():
        raise NotFound(f"there is no file {file}", field="file", value=str(file), remedy="Check its name")
    try:
        with Path(file).open("rb") as opened:
            return _import(url_or_path, opened, project, embedding, progress)
    except OSError as error:
        raise Unavailable(f"{file} can't be read ({error.strerror or error})", code="file_unreadable") from error


def _spooled(
    url_or_path: str | Path | None,
    source: IO[bytes],
    project: str | None,
    embedding: str | Embedder | None,
    progress: Progress | None,
) -> Transferred:
    """What can be read once only is kept, because it is read twice."""
    with TemporaryFile() as spool:
        while block := source.read(1 << 20):
            spool.write(block)
        return _import(url_or_path, spool, project, embedding, progress)


def _import(
    url_or_path: str | Path | None,
    file: IO[bytes],
    project: str | None,
    embedding: str | Embedder | None,
    progress: Progress | None,
) -> Transferred:
    config = settings.load(store=url_or_path)
    embedder = configured_embedder(config, embedding)
    header = reading.check(file)
    name = checks.name("project", header.project if project is None else project)
    database = Database(config.store if url_or_path is None else url_or_path)
    try:
        with database.read(name) as connection:
            matching_model(active_model(connection), embedder)
            _check_free(connection, name)
        with TemporaryFile() as vectors:
            embedded = _embed(file, header, embedder, vectors)
            vectors.seek(0)
            _write(database, file, header, name, embedder, vectors, progress)
    finally:
        database.close()
    return Transferred(
        project=name,
        counts=header.counts,
        facts_checksum=header.facts_checksum,
        ledger_checksum=header.ledger_checksum,
        embedded=embedded,
    )


def _write(
    database: Database,
    file: IO[bytes],
    header: Header,
    name: str,
    embedder: Embedder,
    vectors: IO[bytes],
    progress: Progress | None,
) -> None:
    size = 2 * embedder.dimensions
    # In sight of all projects, because ids are of one thing only in all of them.
    with database.write() as connection:
        locks.lock_exclusive(connection, locks.project(name))
        matching_model(active_model(connection), embedder)
        _check_free(connection, name)
        project = scopes.ensure_project(connection, name, 0)
        model = ensure_model(connection, embedder.name, embedder.dimensions)

        def vector(each: Numbered, *, must: bool) -> bytes | None:
            if not _lacks(each, header, embedder):
                return b64decode(each.line["vector"])
            return vectors.read(size) if must else None

        writing = Writing(connection, Numbers(connection, project), model, vector)
        written, total = 0, sum(header.counts.values())
        for kind, run in reading.groups(file):
            try:
                writing.write(kind, run)
            except (DataError, IntegrityError) as error:
                where = f"{run[0].number} (or one of the {len(run) - 1} behind it)"
                raise reading.damaged(run[0].number, f"can't be stored: {where}: {error.orig}") from error
            written += len(run)
            if progress is not None:
                progress(written, total)
        for dataset in writing.numbers.datasets.values():
            maintenance.refold(database, connection, dataset)


def _embed(file: IO[bytes], header: Header, embedder: Embedder, vectors: IO[bytes]) -> int:
    """Writes the vectors of the facts that the file has none for, in their order; returns how many."""
    count = 0
    for kind, run in reading.groups(file):
        if kind.name != "fact":
            continue
        texts = [each.line["text"] for each in run if _lacks(each, header, embedder)]
        for start in range(0, len(texts), BATCH_SIZE):
            for row in embedder.embed(texts[start : start + BATCH_SIZE]):
                vectors.write(pack(row))
                count += 1
    return count


def _lacks(each: Numbered, header: Header, embedder: Embedder) -> bool:
    same = (header.model, header.dimensions) == (embedder.name, embedder.dimensions)
    return not same or "vector" not in each.line


def _check_free(connection: Connection, name: str) -> None:
    """Fails if a project has something in it; its keys, jobs and audit trail don't count."""
    project = scopes.project_id(connection, name)
    if project is None:
        return
    for table in TABLES:
        if table in (schema.projects, schema.keys, schema.audit) or "project_id" not in table.columns:
            continue
        if (
            connection.execute(select(*table.primary_key).where(in_project(table, project)).limit(1)).first()
            is not None
        ):
            raise Conflict(
                f"project {name!r} is not empty (it has rows in {table.name})",
                code="project_not_empty",
                field="project",
                value=name,
                remedy="Import it under another name with --project; nothing was imported",
            )
