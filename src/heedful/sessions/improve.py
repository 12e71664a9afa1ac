"""Turns what people said of answers into better recall: signals, lessons, and a richer graph.

Ratings are events that never change, so each makes its own signals: their idempotency keys name the rating. What is
there is compared with what the ratings that stand ask for, so running it again changes nothing; taking a rating back
takes its signals back (`undo`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import cast

from sqlalchemy import Connection

from heedful.chat.base import LanguageModel
from heedful.clock import from_stored
from heedful.errors import Invalid
from heedful.memory import checks as values
from heedful.memory.enrich import enrich
from heedful.memory.links import LinkSignal, signal_links
from heedful.memory.retract import retract_events
from heedful.memory.signals import Given, take
from heedful.memory.workspace import Workspace
from heedful.model import Improvement, Rating, Signal, SignalType
from heedful.sessions import checks, learn
from heedful.sessions.entries import told
from heedful.sessions.space import SessionSpace
from heedful.sessions.undo import DERIVED
from heedful.storage import facts, ledger, receipts, scopes
from heedful.storage.ledger import LINK_SIGNAL, SIGNAL
from heedful.storage.rows import AnyRow, batches
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import EntryRow, FeedbackRow

SOURCE = "improve"

STRENGTH = {1: -1.0, 2: -0.5, 3: 0.0, 4: 0.5, 5: 1.0}
"""What a score says: which way, and how surely."""

AGAIN = "#"
"""Stands before a number in the key of a signal that is given again after it was retracted."""

FEW = 100
"""Ratings whose signals are looked up one by one; for more, all of the dataset are read."""

TOGETHER = 2_000
"""Signals that are taken in one transaction."""


@dataclass(slots=True)
class Read:
    """The entries of a dataset and the opinions about them that stand."""

    entries: list[EntryRow] = field(default_factory=list)
    about_entry: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    about_session: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))

    @property
    def feedback_ids(self) -> set[str]:
        return {row.id for rows in (self.about_entry, self.about_session) for each in rows.values() for row in each}


@dataclass(slots=True)
class Changed:
    """Signals that were added or retracted, and the facts they are about."""

    signals: int = 0
    link_signals: int = 0
    facts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Derived:
    """One signal that a rating makes."""

    key: str
    fact_id: str
    links: list[str]
    kind: SignalType
    confidence: float
    entry: EntryRow
    rating: FeedbackRow

    def is_said_by(self, event: AnyRow) -> bool:
        """Whether an event with this key still says what the rating asks for."""
        return (event.value, event.confidence) == (self.kind, self.confidence)


def improve(
    space: SessionSpace,
    workspace: Workspace,
    model: LanguageModel | None,
    dataset: str,
    session_ids: Sequence[str] | None,
) -> Improvement:
    """Brings the dataset to what the ratings of these sessions, or of all, say."""
    values.name("dataset", dataset)
    if session_ids is not None:
        session_ids = _named(session_ids)
        _exist(space, session_ids)
    # Looked at before the ratings: what another process makes of one that comes in between is not out of date.
    events = _events(workspace, dataset) if session_ids is None else []
    read = _read(space, workspace, dataset, session_ids)
    if session_ids is not None:
        events = _events_of(workspace, dataset, read.feedback_ids)
    wanted = {each.key: each for each in _derived(read)}
    current = {
        base
        for event in events
        if event.kind == SIGNAL and (base := _base(event.idempotency_key)) in wanted and wanted[base].is_said_by(event)
    }
    stale = _retract(workspace, [event for event in events if _base(event.idempotency_key) not in current])
    taken = _signal(workspace, [each for key, each in wanted.items() if key not in current])
    lessons = learn.learn(workspace, dataset, read.entries, read.about_entry, session_ids)
    return Improvement(
        dataset=dataset,
        entries=len(read.entries),
        signals_added=taken.signals,
        signals_retracted=stale.signals,
        updated_facts=sorted({*taken.facts, *stale.facts}),
        link_signals_added=taken.link_signals,
        link_signals_retracted=stale.link_signals,
        learnt=lessons.learnt,
        forgotten=lessons.forgotten,
        entities_added=0 if model is None else enrich(workspace, model, dataset),
    )


def _named(session_ids: Sequence[str]) -> list[str]:
    if isinstance(session_ids, str):
        return [checks.session_id(session_ids)]
    if not isinstance(session_ids, Sequence):
        raise Invalid(
            f"session_ids must be a list of names, got {session_ids!r}", field="session_ids", value=session_ids
        )
    return [checks.session_id(each) for each in session_ids]


def _exist(space: SessionSpace, session_ids: Sequence[str]) -> None:
    def read(tx: Transaction) -> str | None:
        return next((each for each in session_ids if tx.conversations.session(each) is None), None)

    missing = space.store.read(read)
    if missing is not None:
        raise space.missing(missing)


def _read(space: SessionSpace, workspace: Workspace, dataset: str, session_ids: Sequence[str] | None) -> Read:
    def look(tx: Transaction) -> Read:
        found = Read()
        for row in tx.feedbacks.of_sessions(session_ids):
            if row.target_type == "entry":
                found.about_entry[row.target_id].append(row)
            else:
                found.about_session[row.session_id].append(row)
        judged = found.about_session.keys()
        found.entries = [
            entry
            for entry in tx.conversations.entries_of(session_ids)
            if entry.dataset == dataset and (entry.id in found.about_entry or entry.session_id in judged)
        ]
        return found

    found = space.store.read(look)
    found.entries = [_with_uses(space, workspace, entry) for entry in found.entries]
    return found


def _with_uses(space: SessionSpace, workspace: Workspace, entry: EntryRow) -> EntryRow:
    """The entry, with the facts that its answer used; they are told now, if nobody did."""
    if entry.used is not None:
        return entry
    used = told(workspace, entry)
    space.store.write(lambda tx: tx.conversations.set_used(entry.id, used))
    return EntryRow(**{name: getattr(entry, name) for name in EntryRow.__slots__} | {"used": used})


def _derived(read: Read) -> Iterable[Derived]:
    before: dict[str, list[EntryRow]] = defaultdict(list)
    for entry in read.entries:
        before[entry.session_id].append(entry)
        for rating in read.about_entry.get(entry.id, ()):
            if rating.score is not None:
                yield from _of(entry, rating, STRENGTH[rating.score])
    for session_id, ratings in read.about_session.items():
        for rating in ratings:
            # Those that were answered by then, each with its part; an own rating says more about an entry.
            meant = [entry for entry in before[session_id] if entry.at <= rating.at]
            for entry in meant:
                if entry.id not in read.about_entry:
                    yield from _of(entry, rating, _direction(rating.rating) / len(meant))


def _direction(rating: Rating | None) -> float:
    return 0.0 if rating is None else 1.0 if rating == "up" else -1.0


def _of(entry: EntryRow, rating: FeedbackRow, strength: float) -> Iterable[Derived]:
    if not strength:
        return
    kind: SignalType = "helpful" if strength > 0 else "not_helpful"
    for fact_id, share, links in entry.used or ():
        key = f"{DERIVED}{rating.id}/{entry.id}/{fact_id}"
        yield Derived(key, fact_id, links, kind, round(abs(strength) * share, 6), entry, rating)


def _signal(workspace: Workspace, wanted: Sequence[Derived]) -> Changed:
    """Takes signals about facts, and about the links that led to them."""
    changed = Changed()
    for run in batches(wanted, TOGETHER):
        with workspace.database.read() as connection:
            fresh = _possible(workspace, connection, run)
            ranks = _ranks(workspace, connection, fresh)
        if not fresh:
            continue
        items = [
            Given(place, _worded(each), SOURCE, recall_id, ranks.get((recall_id, each.fact_id)), each.key)
            for place, each in enumerate(fresh)
            for recall_id in [each.entry.recall_id]
        ]
        with workspace.database.write() as connection:
            result = take(workspace, connection, None, b"", items, [])
            about_links = [signal for each in fresh for signal in _about_links(each)]
            taken = signal_links(workspace, connection, about_links, source=SOURCE)
        changed.signals += result.processed
        changed.facts += result.updated_facts
        changed.link_signals += sum(event is not None for event in taken)
    return changed


def _about_links(each: Derived) -> list[LinkSignal]:
    """The same opinion about the links that led to a fact, each with its part."""
    return [
        LinkSignal(
            link,
            each.kind,
            round(each.confidence / len(each.links), 6),
            at=each.rating.at,
            author=each.rating.author,
            receipt_id=each.entry.recall_id,
            idempotency_key=f"{each.key}/{link}",
        )
        for link in each.links
    ]


def _possible(workspace: Workspace, connection: Connection, run: Sequence[Derived]) -> list[Derived]:
    """Those about facts that are still there; one that was retracted is given again, under a new key."""
    project = scopes.project_id(connection, workspace.project)
    present = facts.present(connection, sorted({each.fact_id for each in run}))
    found: list[Derived] = []
    left = [each for each in run if each.fact_id in present and project is not None]
    time = 1
    while left:
        known = ledger.with_keys(connection, cast(int, project), [each.key for each in left])
        found += [each for each in left if each.key not in known]
        # Another process may have given some of them since: those stand.
        gone = _retracted(workspace, connection, [event.id for event in known.values()])
        time += 1
        left = [
            replace(each, key=f"{_base(each.key)}{AGAIN}{time}")
            for each in left
            if each.key in known and known[each.key].id in gone
        ]
    return found


def _ranks(workspace: Workspace, connection: Connection, run: Sequence[Derived]) -> dict[tuple[str | None, str], int]:
    ids = sorted({each.entry.recall_id for each in run if each.entry.recall_id is not None})
    return {
        (recall_id, fact): rank
        for recall_id, shown in receipts.shown(connection, workspace.project, ids).items()
        for rank, fact in enumerate(shown, start=1)
    }


def _worded(each: Derived) -> Signal:
    return Signal(
        fact_id=each.fact_id,
        signal_type=each.kind,
        query=each.entry.question,
        confidence=each.confidence,
        at=from_stored(each.rating.at),
        author=each.rating.author,
    )


def _events(workspace: Workspace, dataset: str) -> list[AnyRow]:
    """All that stands and was made of ratings."""
    with workspace.database.read() as connection:
        number = workspace.dataset(connection, dataset)
        return [] if number is None else ledger.with_source(connection, number, SOURCE)


def _events_of(workspace: Workspace, dataset: str, ratings: Set[str]) -> list[AnyRow]:
    """What stands and was made of these ratings."""
    with workspace.database.read() as connection:
        number = workspace.dataset(connection, dataset)
        if number is None:
            return []
        if len(ratings) > FEW:
            found = ledger.with_source(connection, number, SOURCE)
            return [event for event in found if _origin(event.idempotency_key) in ratings]
        return [
            event
            for rating in sorted(ratings)
            for event in ledger.with_prefix(connection, workspace.project, f"{DERIVED}{rating}/")
            if event.dataset_id == number
        ]


def _retract(workspace: Workspace, stale: Sequence[AnyRow]) -> Changed:
    """Takes back what no rating asks for any more: another one says more about the entry, or a process died."""
    if not stale:
        return Changed()
    with workspace.database.write() as connection:
        gone = _retracted(workspace, connection, [event.id for event in stale])
        left = [event for event in stale if event.id not in gone]
        about_links = sum(event.kind == LINK_SIGNAL for event in left)
        updated = retract_events(workspace, connection, left, None)
        return Changed(len(left) - about_links, about_links, updated)


def _retracted(workspace: Workspace, connection: Connection, event_ids: Sequence[str]) -> set[str]:
    """Which of these events were taken back."""
    keys = {f"retract/{event_id}": event_id for event_id in event_ids}
    return {keys[key] for key in ledger.known_keys(connection, workspace.project, list(keys))}


def _origin(key: str) -> str:
    """The rating behind a derived event."""
    return key.removeprefix(DERIVED).partition("/")[0]


def _base(key: str) -> str:
    """The key of a derived signal, from its own event, from a later one in its place, or from one about its links."""
    rating, entry, fact = key.removeprefix(DERIVED).split("/")[:3]
    return f"{DERIVED}{rating}/{entry}/{fact.partition(AGAIN)[0]}"
