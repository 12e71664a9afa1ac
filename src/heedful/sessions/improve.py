"""Turns what people said of answers into better recall: signals, lessons, and a richer graph.

Ratings are events that never change, so each makes its own signals once: their idempotency keys name the rating.
Running it again changes nothing; taking a rating back takes its signals back (`undo`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from heedful.chat.base import LanguageModel
from heedful.clock import from_stored
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
from heedful.storage import facts, ledger, receipts
from heedful.storage.ledger import LINK_SIGNAL
from heedful.storage.rows import batches
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import EntryRow, FeedbackRow

SOURCE = "improve"

STRENGTH = {1: -1.0, 2: -0.5, 3: 0.0, 4: 0.5, 5: 1.0}
"""What a score says: which way, and how surely."""

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
        if isinstance(session_ids, str):
            session_ids = [session_ids]
        session_ids = [checks.session_id(each) for each in session_ids]
        _exist(space, session_ids)
    read = _read(space, workspace, dataset, session_ids)
    stale = _retract_stale(workspace, dataset, read) if session_ids is None else Changed()
    taken = _signal(workspace, list(_derived(read)))
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
    """Takes the signals that were not taken before, about facts and about the links that led to them."""
    changed = Changed()
    for run in batches(wanted, TOGETHER):
        with workspace.database.read() as connection:
            fresh = _unknown(workspace, connection, run)
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


def _unknown(workspace: Workspace, connection: Connection, run: Sequence[Derived]) -> list[Derived]:
    """Those that are not in the ledger, about facts that are still there."""
    known = ledger.known_keys(connection, workspace.project, [each.key for each in run])
    fresh = [each for each in run if each.key not in known]
    present = facts.present(connection, sorted({each.fact_id for each in fresh}))
    return [each for each in fresh if each.fact_id in present]


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


def _retract_stale(workspace: Workspace, dataset: str, read: Read) -> Changed:
    """Takes back signals whose rating no longer stands; there are some only if a process died at the wrong moment."""
    with workspace.database.write() as connection:
        number = workspace.dataset(connection, dataset)
        if number is None:
            return Changed()
        standing = read.feedback_ids
        derived = ledger.with_source(connection, number, SOURCE)
        stale = [event for event in derived if _origin(event.idempotency_key) not in standing]
        about_links = sum(event.kind == LINK_SIGNAL for event in stale)
        updated = retract_events(workspace, connection, stale, None)
        return Changed(len(stale) - about_links, about_links, updated)


def _origin(key: str) -> str:
    """The rating behind a derived event."""
    return key.removeprefix(DERIVED).partition("/")[0]
