"""Storing facts: checked, split, embedded, and written document by document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection

from heedful.api import checks
from heedful.api.parameters import Progress, Source
from heedful.clock import new_id
from heedful.ledger import events as ledger
from heedful.ledger import supersessions
from heedful.ledger.events import CONFLICT, PROVENANCE, Event
from heedful.ledger.supersessions import retire
from heedful.memory.documents import Pieces, read
from heedful.model import FactConflict, FactRef, Metadata, RememberResult
from heedful.search.relevance import Search
from heedful.storage import facts, scopes
from heedful.storage.facts import DisplayRow, NewFact, digest
from heedful.storage.rows import weighed
from heedful.storage.vectors import Vectors, ensure_model, pack, unpack
from heedful.text.conflicts import ValueConflict, conflict, states_value
from heedful.text.entities import Entity, entities
from heedful.workspace import Workspace

BATCH_SIZE = 256  # Pieces that are embedded at once; a document is embedded whole, before any of it is written.
KNOWN_ROWS = 2  # Rows that are written for a fact that is known: its place or expiry, and its change.

MAX_RETIRED = 256
"""Expired facts that each `remember` removes, so that they do not pile up in a store that nobody maintains."""


class _Ready(NamedTuple):
    """The vector and the entities of a text, computed before the transaction."""

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
    for documents in _groups(replace(document, expires_at=end) for document in reading.pieces):
        _store(workspace, dataset, documents, outcome)
        done += sum(len(document.pieces) for document in documents)
        if progress is not None:
            progress(done, total)
    if outcome.added >= BATCH_SIZE:
        # After much was added, this call brings the index up to date, not the next recall.
        with workspace.read() as connection:
            model = workspace.model(connection)
            number = scopes.dataset_id(connection, dataset)
            if model is not None and number is not None:
                workspace.index(connection, number, model).follow(connection)
        workspace.save_indexes()
    return RememberResult(
        dataset=dataset,
        facts=outcome.facts,
        added=outcome.added,
        known=outcome.known,
        removed=outcome.removed,
        errors=reading.errors,
        conflicts=notice(workspace, dataset, outcome.new),
    )


def store(workspace: Workspace, dataset: str, documents: Sequence[Pieces]) -> list[FactRef]:
    """Stores documents that are ready, and returns their facts in order."""
    outcome = _Outcome([])
    for group in _groups(documents):
        _store(workspace, dataset, group, outcome)
    return outcome.facts


def _groups(documents: Iterable[Pieces]) -> Iterator[list[Pieces]]:
    """Documents in runs that are embedded at once."""
    return weighed(((document, len(document.pieces)) for document in documents), BATCH_SIZE)


def _store(workspace: Workspace, dataset: str, documents: list[Pieces], outcome: _Outcome) -> None:
    fresh = {
        digest(piece.text, document.source, about): piece.text
        for document in documents
        for piece, about in document.pieces
    }
    with workspace.read() as connection:
        number = scopes.dataset_id(connection, dataset)
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
            place: facts.rows_to_add(about, ready[key].entities)
            if (key := digest(piece.text, document.source, about)) in ready
            else KNOWN_ROWS
            for place, (piece, about) in enumerate(document.pieces)
        }
        replacing = _Replacing() if document.replaces else None
        runs = list(weighed(rows.items())) or [[]]
        for run in runs:
            some = replace(document, pieces=[document.pieces[place] for place in run])
            yield _Part(some, replacing, run is runs[-1]), sum(rows[place] for place in run)


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
            known = [fact.fact_id for fact in outcome.facts[first:] if not fact.new]
            if known:
                facts.end_lessons(connection, number, facts.set_expiry(connection, known, part.document.expires_at))
                facts.restore(connection, number, known)
            if part.replacing is not None and part.is_last:
                gone |= part.replacing.unsaid()
        said = {fact.fact_id for fact in outcome.facts[before:]}
        runs = facts.removal_runs(connection, [seq for seq, fact_id in gone.items() if fact_id not in said])
        for run in runs[:1]:
            outcome.removed += _remove_unsaid(connection, number, run)
        facts.add(connection, number, model, new, at)
        outcome.added += len(new)
        # An import is not compared, so nothing is kept of it.
        if len(outcome.new) <= MAX_CHECKED:
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
            vector, named = ready[key]
            new.append(
                NewFact(
                    *(fact_id, piece.text, about, document.source, place, piece.start, piece.stop, vector),
                    expires_at=document.expires_at,
                    entities=named,
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
        places_to = {stored[fact_id]: place for fact_id, place in unchanged.items() if fact_id in stored}
        facts.move(connection, dataset, places_to)
    elif document.source is not None:
        places[document.source] = first + len(new)
    return new


def _remove_unsaid(connection: Connection, dataset: int, seqs: Sequence[int]) -> int:
    """Removes facts that a changed document no longer says; returns how many."""
    # The document may say it again: what was learnt from it then comes back.
    kept = facts.sources_of_lessons(connection, dataset, seqs)
    gone = [seq for seq in seqs if seq not in kept]
    supersessions.remove_facts(connection, dataset, gone)
    return len(gone) + facts.set_hidden(connection, dataset, sorted(kept), facts.REPLACED, True)


MAX_CHECKED = 64  # With more new facts than this, a call is an import, and none of them is compared.
NEAREST = 10  # Existing facts that a new one is compared with.

UNSCOPED = frozenset(
    ("timestamp", "time", "created", "updated", "message_id", "qa_id", "run_id", "trace_id", "id", PROVENANCE)
)
"""Keys of metadata that tell when or how a fact was stored, not what it is about. So do those that end in `_at`."""


@dataclass(frozen=True, slots=True)
class Written:
    """A fact that was stored now."""

    fact_id: str
    text: str
    metadata: Metadata
    vector: Vectors


def notice(workspace: Workspace, dataset: str, new: Sequence[Written]) -> list[FactConflict]:
    """The active facts that new ones contradict, recorded in the ledger, from where the review queue takes them."""
    stating = [fact for fact in new if states_value(fact.text)] if len(new) <= MAX_CHECKED else []
    if not stating:
        return []
    own_ids = {fact.fact_id for fact in new}
    with workspace.direct(write=False) as direct:
        connection, state = direct.connection, scopes.read_state(direct, dataset)
        model, number = workspace.fitting(state.model), state.dataset
        if model is None or number is None:
            return []
        index = workspace.index(connection, number, model)
        index.follow(connection, state.change)
        conflicts: list[tuple[Written, DisplayRow, ValueConflict]] = []
        for fact in stating:
            near = index.search(connection, Search(fact.text, fact.vector, "semantic", NEAREST + len(new)))
            order = np.lexsort((near.facts, -near.relevance))[: NEAREST + len(new)]
            nearest = near.facts[order].tolist()
            rows = facts.display_rows(direct, nearest)
            conflicts += _contradicted(workspace, fact, [rows[seq] for seq in nearest if seq in rows], own_ids)
        if not conflicts:
            return []
        project = scopes.owner(connection, number)
    now = workspace.now()
    events = [
        Event(
            project_id=project,
            kind=CONFLICT,
            target_type="fact",
            target_id=own.fact_id,
            source="remember",
            at=now,
            value=difference.kind,
            body={"fact_id": other.id},
        )
        for own, other, difference in conflicts
    ]
    with workspace.write() as connection:
        ledger.append(connection, events)
    return [
        FactConflict(
            event_id=event.id,
            fact_id=own.fact_id,
            conflicts_with=other.id,
            text=other.text,
            kind=difference.kind,
            value=difference.new,
            other_value=difference.old,
        )
        for event, (own, other, difference) in zip(events, conflicts, strict=True)
    ]


def _contradicted(
    workspace: Workspace, own: Written, nearest: Sequence[DisplayRow], own_ids: set[str]
) -> list[tuple[Written, DisplayRow, ValueConflict]]:
    now = workspace.now()
    candidates = [
        row
        for row in nearest
        if row.id not in own_ids
        and (row.expires_at is None or row.expires_at > now)
        and is_same_scope(own.metadata, row.metadata)
    ]
    differences = [(row, conflict(own.text, row.text)) for row in candidates[:NEAREST]]
    return [(own, row, difference) for row, difference in differences if difference is not None]


def is_same_scope(one: Metadata, other: Metadata) -> bool:
    """Whether metadata tell two facts apart: what is true of one user, language or year need not be of another."""
    return not any(
        one[key] != other[key] for key in one.keys() & other.keys() if key not in UNSCOPED and not key.endswith("_at")
    )
