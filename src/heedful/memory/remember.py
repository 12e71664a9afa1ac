"""Storing facts: checked, split, embedded, and written document by document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

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
from heedful.storage.rows import weighed
from heedful.storage.vectors import ensure_model, pack, unpack
from heedful.text.entities import Entity, entities

BATCH_SIZE = 256
"""Pieces that are embedded at once; a document is embedded whole, before any of it is written."""

KNOWN_ROWS = 2
"""Rows that are written for a fact that is known: its place or expiry, and its change."""

MAX_RETIRED = 256
"""Expired facts that each `remember` removes, so that they do not pile up in a store that nobody maintains."""


class _Ready(NamedTuple):
    """What the words of a text give, worked out before the transaction."""

    vector: bytes
    entities: list[Entity]


@dataclass(slots=True)
class _Replacing:
    """How far a document is that replaces what its source had, which may take several transactions.

    Facts are removed after the last of them. If it does not come to that, the source has both its earlier and its new
    facts until it is remembered again.
    """

    stored: dict[str, int] | None = None
    """The facts that the source had, with their numbers."""
    said: set[str] = field(default_factory=set)

    def unsaid(self) -> dict[int, str]:
        """The facts that the document no longer says."""
        return {seq: fact_id for fact_id, seq in (self.stored or {}).items() if fact_id not in self.said}


class _Part(NamedTuple):
    """As much of a document as one transaction writes."""

    document: Pieces
    replacing: _Replacing | None
    is_last: bool


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
    """Stores all documents that could be read, each in one transaction unless it has too many rows for that."""
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
    fresh = {
        digest(piece.text, document.source, about): piece.text
        for document in documents
        for piece, about in document.pieces
    }
    with workspace.read() as connection:
        number = scopes.dataset_id(connection, workspace.project, dataset)
        present = {} if number is None else facts.ids_by_digest(connection, number, list(fresh))
    # The model is slow and may fail: it runs before the transaction, on what is new.
    ready = _ready(workspace, {key: text for key, text in fresh.items() if key not in present})
    for parts in weighed(_parts(documents, ready)):
        _write(workspace, dataset, parts, ready, outcome)


def _ready(workspace: Workspace, texts: dict[bytes, str]) -> dict[bytes, _Ready]:
    embedded = workspace.embed(list(texts.values()))
    return {
        key: _Ready(pack(vector), entities(text)) for (key, text), vector in zip(texts.items(), embedded, strict=True)
    }


def _parts(documents: Sequence[Pieces], ready: dict[bytes, _Ready]) -> Iterator[tuple[_Part, int]]:
    """Documents with the rows that they need; those that need too many for one transaction are divided."""
    for document in documents:
        rows = {
            place: _rows_of(digest(piece.text, document.source, about), about, ready)
            for place, (piece, about) in enumerate(document.pieces)
        }
        replacing = _Replacing() if document.replaces else None
        runs = list(weighed(rows.items())) or [[]]
        for run in runs:
            some = replace(document, pieces=[document.pieces[place] for place in run])
            yield _Part(some, replacing, run is runs[-1]), sum(rows[place] for place in run)


def _rows_of(key: bytes, about: Metadata, ready: dict[bytes, _Ready]) -> int:
    return facts.rows_to_add(about, ready[key].entities) if key in ready else KNOWN_ROWS


def _write(
    workspace: Workspace, dataset: str, parts: list[_Part], ready: dict[bytes, _Ready], outcome: _Outcome
) -> None:
    """Writes what fits into one transaction; removes the rest of what replaced documents said in further ones."""
    texts = {
        digest(piece.text, part.document.source, about): piece.text
        for part in parts
        for piece, about in part.document.pieces
    }
    with workspace.write() as connection:
        at = workspace.now()
        model = ensure_model(connection, workspace.embedder.name, workspace.embedder.dimensions)
        workspace.model(connection)
        number = scopes.ensure_dataset(connection, workspace.project, dataset, at)
        # What has expired is gone: the same text is a new fact.
        retire(connection, number, at, MAX_RETIRED, list(texts))
        present = facts.ids_by_digest(connection, number, list(texts))
        # Forgotten since the first look: rare enough to embed them here.
        lost = {key: text for key, text in texts.items() if key not in present and key not in ready}
        ready |= _ready(workspace, lost) if lost else {}
        places: dict[str, int] = {}
        new: list[NewFact] = []
        gone: dict[int, str] = {}
        before = len(outcome.facts)
        for part in parts:
            first = len(outcome.facts)
            new += _prepare(connection, number, part, ready, present, places, outcome)
            # Whoever says last what is known says how long it holds.
            known = [each.fact_id for each in outcome.facts[first:] if not each.new]
            if known:
                facts.end_lessons(connection, number, fact_expiry.change(connection, known, part.document.expires_at))
                facts.restore(connection, number, known)
            if part.replacing is not None and part.is_last:
                gone |= part.replacing.unsaid()
        said = {each.fact_id for each in outcome.facts[before:]}
        runs = facts.removal_runs(connection, [seq for seq, fact_id in gone.items() if fact_id not in said])
        for run in runs[:1]:
            outcome.removed += _remove_unsaid(connection, number, run)
        facts.add(connection, number, model, new, at)
        outcome.added += len(new)
        # An import is not compared, so nothing is kept of it.
        if len(outcome.new) <= conflicts.MAX_CHECKED:
            read_vectors = unpack([fact.vector for fact in new], workspace.embedder.dimensions)
            outcome.new += [
                Written(fact.id, fact.text, fact.metadata, vector)
                for fact, vector in zip(new, read_vectors, strict=True)
            ]
    for run in runs[1:]:
        with workspace.write() as connection:
            outcome.removed += _remove_unsaid(connection, number, sorted(facts.existing(connection, run)))


def _prepare(
    connection: Connection,
    dataset: int,
    part: _Part,
    ready: dict[bytes, _Ready],
    present: dict[bytes, str],
    places: dict[str, int],
    outcome: _Outcome,
) -> list[NewFact]:
    """The facts of a part that are new. `present` are the ids of known facts, `places` where sources go on."""
    document, replacing = part.document, part.replacing
    first = 0
    if replacing is not None:
        assert document.source is not None
        first = len(replacing.said)
        if replacing.stored is None:
            replacing.stored = {fact_id: seq for seq, fact_id in facts.of_dataset(connection, dataset, document.source)}
    elif document.source is not None:
        if document.source not in places:
            places[document.source] = facts.next_ordinal(connection, dataset, document.source)
        first = places[document.source]
    new: list[NewFact] = []
    unchanged: dict[str, tuple[int, int, int]] = {}
    for piece, about in document.pieces:
        key = digest(piece.text, document.source, about)
        place = first + len(new) + len(unchanged)
        fact_id = present.get(key)
        if fact_id is None:
            fact_id = present[key] = new_id()
            vector, found = ready[key]
            new.append(
                NewFact(
                    *(fact_id, piece.text, about, document.source, place, piece.start, piece.stop, vector),
                    expires_at=document.expires_at,
                    entities=found,
                )
            )
            outcome.facts.append(FactRef(fact_id=fact_id, text=piece.text, new=True))
        else:
            if replacing is not None and fact_id not in replacing.said:
                unchanged[fact_id] = (place, piece.start, piece.stop)
            outcome.known += 1
            outcome.facts.append(FactRef(fact_id=fact_id, text=piece.text, new=False))
        if replacing is not None:
            replacing.said.add(fact_id)
    if replacing is not None and replacing.stored is not None:
        stored = replacing.stored
        facts.move(connection, dataset, {stored[each]: to for each, to in unchanged.items() if each in stored})
    elif document.source is not None:
        places[document.source] = first + len(new)
    return new


def _remove_unsaid(connection: Connection, dataset: int, seqs: Sequence[int]) -> int:
    """Removes facts that a changed document no longer says; returns how many."""
    # The document may say it again: what was learnt from it then comes back.
    kept = facts.sources_of_lessons(connection, dataset, seqs)
    gone = [seq for seq in seqs if seq not in kept]
    facts.remove(connection, dataset, gone)
    return len(gone) + facts.set_hidden(connection, dataset, sorted(kept), facts.REPLACED, True)


def _update_index(workspace: Workspace, dataset: str) -> None:
    """After much was added, the one who added it brings the index up to date, not the next who asks."""
    with workspace.read() as connection:
        model = workspace.model(connection)
        number = scopes.dataset_id(connection, workspace.project, dataset)
        if model is not None and number is not None:
            workspace.index(connection, number, model).follow(connection)
    workspace.save_indexes()
