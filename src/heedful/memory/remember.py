"""Storing facts: checked, split, embedded, and written document by document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from heedful.ids import new_id
from heedful.memory import checks, conflicts
from heedful.memory.conflicts import Written
from heedful.memory.documents import Pieces, read
from heedful.memory.workspace import Workspace
from heedful.model import FactRef, Metadata, RememberResult
from heedful.protocols.engine import Progress, Source
from heedful.storage import fact_expiry, facts, scopes
from heedful.storage.facts import NewFact, digest
from heedful.storage.retention import retire
from heedful.storage.vectors import ensure_model, pack, unpack

BATCH_SIZE = 256
"""Pieces that are embedded and written at once; a document is never divided between two transactions."""


MAX_RETIRED = 256
"""Expired facts that each `remember` removes, so that they do not pile up in a store that nobody maintains."""


@dataclass(slots=True)
class _Outcome:
    facts: list[FactRef]
    new: list[Written] = field(default_factory=list)
    added: int = 0
    known: int = 0
    removed: int = 0


def remember(
    workspace: Workspace,
    texts: Source,
    dataset: str,
    metadata: Metadata | Sequence[Metadata] | None,
    source: str | None,
    expires_at: datetime | None,
    progress: Progress | None,
) -> RememberResult:
    """Stores all documents that could be read; each is stored whole or not at all."""
    checks.name("dataset", dataset)
    end = checks.end("expires_at", expires_at, workspace.now())
    reading = read(texts, metadata, source)
    with workspace.read() as connection:
        workspace.model(connection)
    total = sum(len(document.pieces) for document in reading.pieces)
    outcome = _Outcome([])
    done = 0
    for documents in _groups([replace(each, expires_at=end) for each in reading.pieces]):
        _store(workspace, dataset, documents, outcome)
        done += sum(len(document.pieces) for document in documents)
        if progress is not None:
            progress(done, total)
    if outcome.added >= BATCH_SIZE:
        _update_index(workspace, dataset)
    return RememberResult(
        dataset=dataset,
        facts=outcome.facts,
        added=outcome.added,
        known=outcome.known,
        removed=outcome.removed,
        errors=reading.errors,
        conflicts=conflicts.notice(workspace, dataset, outcome.new),
    )


def store(workspace: Workspace, dataset: str, documents: Sequence[Pieces]) -> list[FactRef]:
    """Stores documents that are ready, and returns their facts in order."""
    outcome = _Outcome([])
    for group in _groups(documents):
        _store(workspace, dataset, group, outcome)
    return outcome.facts


def _groups(documents: Sequence[Pieces]) -> Iterator[list[Pieces]]:
    group: list[Pieces] = []
    size = 0
    for document in documents:
        if group and size + len(document.pieces) > BATCH_SIZE:
            yield group
            group, size = [], 0
        group.append(document)
        size += len(document.pieces)
    if group:
        yield group


def _store(workspace: Workspace, dataset: str, documents: list[Pieces], outcome: _Outcome) -> None:
    keys = [digest(piece.text, document.source, about) for document in documents for piece, about in document.pieces]
    with workspace.read() as connection:
        number = scopes.dataset_id(connection, workspace.project, dataset)
        present = {} if number is None else facts.ids_by_digest(connection, number, keys)
    # The model is slow and may fail: it runs before the transaction, on what is new.
    fresh = {
        digest(piece.text, document.source, about): piece.text
        for document in documents
        for piece, about in document.pieces
    }
    missing = [key for key in fresh if key not in present]
    embedded = workspace.embed([fresh[key] for key in missing])
    vectors = {key: pack(vector) for key, vector in zip(missing, embedded, strict=True)}
    with workspace.write() as connection:
        at = workspace.now()
        model = ensure_model(connection, workspace.embedder.name, workspace.embedder.dimensions)
        workspace.model(connection)
        number = scopes.ensure_dataset(connection, workspace.project, dataset, at)
        # What has expired is gone: the same text is a new fact.
        retire(connection, number, at, MAX_RETIRED, keys)
        present = facts.ids_by_digest(connection, number, keys)
        # Forgotten since the first look: rare enough to embed them here.
        lost = [key for key in fresh if key not in present and key not in vectors]
        vectors |= zip(lost, map(pack, workspace.embed([fresh[key] for key in lost])), strict=True)
        places: dict[str, int] = {}
        new: list[NewFact] = []
        for document in documents:
            before = len(outcome.facts)
            new += _prepare(connection, number, document, vectors, present, places, outcome)
            # Whoever says last what is known says how long it holds.
            known = [each.fact_id for each in outcome.facts[before:] if not each.new]
            facts.end_lessons(connection, number, fact_expiry.change(connection, known, document.expires_at))
            facts.restore(connection, number, known)
        facts.add(connection, number, model, new, at)
        outcome.added += len(new)
        # An import is not compared, so nothing is kept of it.
        if len(outcome.new) <= conflicts.MAX_CHECKED:
            read_vectors = unpack([fact.vector for fact in new], workspace.embedder.dimensions)
            outcome.new += [
                Written(fact.id, fact.text, fact.metadata, vector)
                for fact, vector in zip(new, read_vectors, strict=True)
            ]


def _prepare(
    connection: Connection,
    dataset: int,
    document: Pieces,
    vectors: dict[bytes, bytes],
    present: dict[bytes, str],
    places: dict[str, int],
    outcome: _Outcome,
) -> list[NewFact]:
    """The facts of a document that are new. `present` are the ids of known facts, `places` where sources go on."""
    first = 0
    if document.source is not None and not document.replaces:
        if document.source not in places:
            places[document.source] = facts.next_ordinal(connection, dataset, document.source)
        first = places[document.source]
    new: list[NewFact] = []
    fresh: set[str] = set()
    unchanged: dict[str, tuple[int, int, int]] = {}
    for piece, about in document.pieces:
        key = digest(piece.text, document.source, about)
        place = first + len(new) + len(unchanged)
        fact_id = present.get(key)
        if fact_id is None:
            fact_id = present[key] = new_id()
            fresh.add(fact_id)
            new.append(
                NewFact(
                    *(fact_id, piece.text, about, document.source, place, piece.start, piece.stop, vectors[key]),
                    expires_at=document.expires_at,
                )
            )
            outcome.facts.append(FactRef(fact_id=fact_id, text=piece.text, new=True))
        else:
            if document.replaces and fact_id not in fresh:
                unchanged[fact_id] = (place, piece.start, piece.stop)
            outcome.known += 1
            outcome.facts.append(FactRef(fact_id=fact_id, text=piece.text, new=False))
    if document.replaces:
        outcome.removed += _replace_document(connection, dataset, document, unchanged)
    elif document.source is not None:
        places[document.source] = first + len(new)
    return new


def _replace_document(
    connection: Connection, dataset: int, document: Pieces, unchanged: dict[str, tuple[int, int, int]]
) -> int:
    """Removes what a changed file no longer says, and moves what it says elsewhere."""
    assert document.source is not None
    stored = facts.of_dataset(connection, dataset, document.source)
    gone = {seq for seq, fact_id in stored if fact_id not in unchanged}
    # The document may say it again: what was learnt from it then comes back.
    kept = facts.sources_of_lessons(connection, dataset, sorted(gone))
    facts.remove(connection, dataset, sorted(gone - kept))
    facts.move(connection, dataset, {seq: unchanged[fact_id] for seq, fact_id in stored if fact_id in unchanged})
    return len(gone - kept) + facts.set_hidden(connection, dataset, sorted(kept), facts.REPLACED, True)


def _update_index(workspace: Workspace, dataset: str) -> None:
    """After much was added, the one who added it brings the index up to date, not the next who asks."""
    with workspace.read() as connection:
        model = workspace.model(connection)
        number = scopes.dataset_id(connection, workspace.project, dataset)
        if model is not None and number is not None:
            workspace.index(connection, number, model).follow(connection)
    workspace.save_indexes()
