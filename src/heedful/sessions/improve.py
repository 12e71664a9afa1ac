"""Turns opinions about answers into better recall: signals, lessons, and a richer graph.

Ratings are events that never change, so each makes its own signals: their idempotency keys name the rating. What is
there is compared with what the active ratings ask for, so running it again changes nothing; retracting a rating
retracts its signals (`undo`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.api.parameters import Progress
from heedful.errors import Invalid
from heedful.ledger import events as ledger
from heedful.ledger import receipts
from heedful.ledger.events import IMPROVE, LINK_SIGNAL, SIGNAL
from heedful.ledger.rating_signals import (
    DERIVED_PREFIX,
    REPEAT_MARKER,
    DatasetRatings,
    Derived,
    EntryRow,
    base_key,
    derive_signals,
    rating_of_key,
    to_link_signals,
    to_signal,
)
from heedful.ledger.retract import retract_events
from heedful.ledger.signals import SignalInput, record_signals, signal_links
from heedful.memory import browse
from heedful.memory.graph_recall import enrich
from heedful.model import Improvement, NotLearnt, limits
from heedful.providers.llm import LanguageModel
from heedful.sessions.entries import attribute_facts
from heedful.sessions.lessons import Kind, learn
from heedful.sessions.session_store import Transaction
from heedful.sessions.space import SessionSpace
from heedful.storage import facts, scopes
from heedful.storage.rows import AnyRow, batches
from heedful.workspace import Workspace

LOOKUP_LIMIT = 100  # Up to so many ratings, signals are looked up one by one; above, all of the dataset are read.
BATCH_SIZE = 500  # Signals per transaction.
NEW_SESSIONS = 500  # Sessions with new feedback that are improved together.
MAX_AGREEING = 500  # The newest signals among which others are looked for who agree.


@dataclass(slots=True)
class ChangedSignals:
    signals: int = 0
    link_signals: int = 0
    facts: list[str] = field(default_factory=list)


def improve(
    space: SessionSpace,
    workspace: Workspace,
    model: LanguageModel | None,
    dataset: str | None,
    session_ids: Sequence[str] | None,
    report: Progress | None = None,
) -> Improvement:
    """Makes the derived signals of a dataset, or of all, match the ratings of these sessions, or of all.

    `report` gets the progress; if it raises, what is done stays done.
    """
    if dataset is not None:
        checks.name("dataset", dataset)
    if session_ids is not None:
        session_ids = session_names(session_ids)
        check_exist(space, session_ids)
    return _improve_sessions(space, workspace, model, dataset, session_ids, report)


def improve_new(space: SessionSpace, workspace: Workspace, report: Progress | None = None) -> None:
    """Improves all datasets by the feedback that no call has seen yet; no language model reads facts."""
    while new := space.store.read(lambda tx: tx.feedbacks.unprocessed(None, NEW_SESSIONS)):
        done = _improve_sessions(space, workspace, None, None, list(new), report)
        others = _sessions_that_may_agree(space, workspace, done.not_learnt)
        if others - new.keys():
            _improve_sessions(space, workspace, None, None, sorted(others | new.keys()), report)
        if len(new) < NEW_SESSIONS:
            # What came in meanwhile is for the next time.
            break


def _sessions_that_may_agree(space: SessionSpace, workspace: Workspace, refused: Sequence[NotLearnt]) -> set[str]:
    """The sessions of those who liked the same answer, or commented on the same facts, as too few authors did."""
    alone = [row for row in refused if row.reason == "too_few_authors"]
    if not alone:
        return set()

    def read_entries(tx: Transaction) -> list[tuple[Kind, EntryRow]]:
        found = [(row.learnt_from, tx.conversations.entry(row.session_id, row.qa_id)) for row in alone]
        return [(kind, entry) for kind, entry in found if entry is not None]

    entries = space.store.read(read_entries)
    used = {fact for _, entry in entries for fact, _, _ in entry.used or ()}
    answers = {(entry.question, entry.answer) for kind, entry in entries if kind == "answer"}
    with_comments = any(kind == "feedback" for kind, _ in entries)
    with workspace.read() as connection:
        events = ledger.about(connection, sorted(used), IMPROVE, MAX_AGREEING)
    ids = sorted({rating_of_key(event.idempotency_key) for event in events})

    def read_sessions(tx: Transaction) -> set[str]:
        rows = [row for row in tx.feedbacks.by_event_ids(ids) if row.active]
        found = {row.session_id for row in rows if with_comments and row.comment}
        for row in rows if answers else ():
            entry = tx.conversations.entry(row.session_id, row.target_id)
            if entry is not None and (entry.question, entry.answer) in answers:
                found.add(row.session_id)
        return found

    return space.store.read(read_sessions)


def _improve_sessions(
    space: SessionSpace,
    workspace: Workspace,
    model: LanguageModel | None,
    dataset: str | None,
    session_ids: Sequence[str] | None,
    report: Progress | None,
) -> Improvement:
    names = browse.datasets(workspace) if dataset is None else [dataset]
    # Read before the ratings, so that what another process derives meanwhile doesn't look stale.
    events = {name: _events(workspace, name) for name in names} if session_ids is None else {}
    feedback = _read(space, dataset, session_ids)
    if session_ids is not None:
        names = list(feedback.by_dataset) if dataset is None else names
        ids = feedback.retracted | feedback.all.feedback_ids
        events = {name: _events(workspace, name, ids) for name in names}
    done = []
    # Answers may have been asked for in a dataset that has no facts.
    for name in dict.fromkeys([*names, *feedback.by_dataset]):
        ratings = feedback.by_dataset[name]
        ratings.entries = [_with_uses(space, workspace, entry) for entry in ratings.entries]
        done.append(_improve(workspace, model, name, ratings, session_ids, events.get(name, []), report))
    if feedback.unprocessed:
        space.store.write(lambda tx: tx.feedbacks.set_processed(feedback.unprocessed))
    total, more = _total(done), feedback.without_dataset
    counts = {"entries": total.entries + more, "without_facts": total.without_facts + more}
    return total.model_copy(update=counts)


def _improve(
    workspace: Workspace,
    model: LanguageModel | None,
    dataset: str,
    ratings: DatasetRatings,
    session_ids: Sequence[str] | None,
    events: Sequence[AnyRow],
    report: Progress | None,
) -> Improvement:
    """Makes the derived signals of one dataset, which are `events`, match its ratings."""
    expected = {signal.key: signal for signal in derive_signals(ratings)}
    current = {
        key
        for event in events
        if event.kind == SIGNAL
        and (key := base_key(event.idempotency_key)) in expected
        and expected[key].matches(event)
    }
    stale = _retract(workspace, [event for event in events if base_key(event.idempotency_key) not in current])
    added = _signal(workspace, [signal for key, signal in expected.items() if key not in current], report)
    lessons = learn(workspace, dataset, ratings, session_ids)
    return Improvement(
        dataset=dataset,
        entries=len(ratings.entries),
        signals_added=added.signals,
        signals_retracted=stale.signals,
        updated_facts=sorted({*added.facts, *stale.facts}),
        link_signals_added=added.link_signals,
        link_signals_retracted=stale.link_signals,
        learnt=lessons.learnt,
        forgotten=lessons.forgotten,
        visitor_ratings=sum(map(len, ratings.by_visitors.values())),
        without_facts=sum(not entry.used for entry in ratings.entries),
        not_learnt=lessons.refused,
        entities_added=0 if model is None else enrich(workspace, model, dataset, report),
    )


def _total(done: Sequence[Improvement]) -> Improvement:
    """The improvements of some datasets as one."""
    if len(done) == 1:
        return done[0]
    of_signals = ("signals_added", "signals_retracted", "link_signals_added", "link_signals_retracted")
    counts = ("entries", *of_signals, "entities_added", "without_facts")
    totals: dict[str, Any] = {name: sum(getattr(one, name) for one in done) for name in counts}
    for name in ("learnt", "forgotten", "not_learnt"):
        totals[name] = [item for improvement in done for item in getattr(improvement, name)]
    return Improvement(
        dataset=None,
        updated_facts=sorted(fact for improvement in done for fact in improvement.updated_facts),
        # Each counts those of the sessions.
        visitor_ratings=max((improvement.visitor_ratings for improvement in done), default=0),
        **totals,
    )


def session_names(session_ids: Sequence[str]) -> list[str]:
    """The names of sessions, checked; a single name is allowed."""
    if isinstance(session_ids, str):
        return [checks.name("session_id", session_ids)]
    if not isinstance(session_ids, Sequence):
        raise Invalid.got("session_ids", "must be a list of names", session_ids)
    checks.batch("session_ids", session_ids, limits.MAX_LIST)
    return list(dict.fromkeys(checks.name("session_id", session_id) for session_id in session_ids))


def check_exist(space: SessionSpace, session_ids: Sequence[str]) -> None:

    def read(tx: Transaction) -> None:
        for session_id in session_ids:
            space.session(tx, session_id)

    space.store.read(read)


@dataclass(slots=True)
class SessionRatings:
    """The active opinions about sessions, and their entries by dataset."""

    all: DatasetRatings
    by_dataset: dict[str, DatasetRatings]
    unprocessed: dict[str, str]
    """The newest event of each session that was not processed before and is processed with this."""
    retracted: set[str]  # Opinions whose signals may still be there.
    without_dataset: int  # Rated entries for which nothing was recalled.


def _read(space: SessionSpace, dataset: str | None, session_ids: Sequence[str] | None) -> SessionRatings:
    def read(tx: Transaction) -> SessionRatings:
        # Before the opinions: one that is given meanwhile stays unprocessed.
        unprocessed = tx.feedbacks.unprocessed(session_ids)
        ratings = DatasetRatings()
        for row in tx.feedbacks.of_sessions(session_ids):
            if row.author_kind == "visitor":
                ratings.by_visitors[row.target_id].append(row)
            elif row.target_type == "entry":
                ratings.about_entry[row.target_id].append(row)
            else:
                ratings.about_session[row.session_id].append(row)
        rated_sessions = ratings.about_session.keys()
        by_dataset: dict[str, DatasetRatings] = defaultdict(lambda: replace(ratings, entries=[], visited=[]))
        without_dataset = 0
        for entry in tx.conversations.entries_of(session_ids):
            is_rated = entry.id in ratings.about_entry or entry.session_id in rated_sessions
            if entry.dataset is None:
                without_dataset += is_rated and dataset is None
                continue
            if dataset not in (None, entry.dataset):
                # The rest of the session is still to do.
                unprocessed.pop(entry.session_id, None)
                continue
            in_dataset = by_dataset[entry.dataset]
            if is_rated:
                in_dataset.entries.append(entry)
            if entry.id in ratings.by_visitors:
                in_dataset.visited.append(entry)
        retracted = set(tx.feedbacks.retracted(session_ids or ()))
        return SessionRatings(ratings, by_dataset, unprocessed, retracted, without_dataset)

    return space.store.read(read)


def _with_uses(space: SessionSpace, workspace: Workspace, entry: EntryRow) -> EntryRow:
    """The entry with the facts that its answer used, which are detected now if that was not done."""
    if entry.used is not None:
        return entry
    used = attribute_facts(workspace, entry)
    space.store.write(lambda tx: tx.conversations.set_used(entry.id, used))
    return replace(entry, used=used)


def _signal(workspace: Workspace, signals: Sequence[Derived], report: Progress | None) -> ChangedSignals:
    """Stores signals about facts and about the links that led to them."""
    changed = ChangedSignals()
    for number, run in enumerate(batches(signals, BATCH_SIZE)):
        if report is not None:
            report(number * BATCH_SIZE, len(signals))
        with workspace.read() as connection:
            new_signals = _possible(workspace, connection, run)
            ranks = _ranks(workspace, connection, new_signals)
        if not new_signals:
            continue
        items = []
        for index, signal in enumerate(new_signals):
            recall_id = signal.entry.recall_id
            rank = ranks.get((recall_id, signal.fact_id))
            items.append(SignalInput(index, to_signal(signal), IMPROVE, recall_id, rank, signal.key))
        with workspace.write() as connection:
            result = record_signals(workspace, connection, None, b"", items, [])
            link_signals = [link_signal for signal in new_signals for link_signal in to_link_signals(signal)]
            events = signal_links(workspace, connection, link_signals, source=IMPROVE)
        changed.signals += result.processed
        changed.facts += result.updated_facts
        changed.link_signals += sum(event is not None for event in events)
    if report is not None:
        report(len(signals), len(signals))
    return changed


def _possible(workspace: Workspace, connection: Connection, run: Sequence[Derived]) -> list[Derived]:
    """The signals about facts that still exist; one that was retracted gets a new key."""
    project = scopes.project_id(connection, workspace.project)
    present = facts.present(connection, sorted({signal.fact_id for signal in run}))
    possible: list[Derived] = []
    remaining = [signal for signal in run if signal.fact_id in present]
    attempt = 1
    while remaining and project is not None:
        existing = ledger.with_keys(connection, project, [signal.key for signal in remaining])
        possible += [signal for signal in remaining if signal.key not in existing]
        # Some may have been stored by another process meanwhile.
        retracted = _retracted(workspace, connection, [event.id for event in existing.values()])
        attempt += 1
        remaining = [
            replace(signal, key=f"{base_key(signal.key)}{REPEAT_MARKER}{attempt}")
            for signal in remaining
            if signal.key in existing and existing[signal.key].id in retracted
        ]
    return possible


def _ranks(workspace: Workspace, connection: Connection, run: Sequence[Derived]) -> dict[tuple[str | None, str], int]:
    ids = sorted({signal.entry.recall_id for signal in run if signal.entry.recall_id is not None})
    return {
        (recall_id, fact): rank
        for recall_id, shown in receipts.shown_facts(connection, ids).items()
        for rank, fact in enumerate(shown, start=1)
    }


def _events(workspace: Workspace, dataset: str, ratings: Set[str] | None = None) -> list[AnyRow]:
    """The active signals that are derived from these ratings, or from all."""
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        if number is None:
            return []
        if ratings is None or len(ratings) > LOOKUP_LIMIT:
            events = ledger.with_source(connection, number, IMPROVE)
            return [event for event in events if ratings is None or rating_of_key(event.idempotency_key) in ratings]
        return [
            event
            for rating in sorted(ratings)
            for event in ledger.with_prefix(connection, f"{DERIVED_PREFIX}{rating}/")
            if event.dataset_id == number
        ]


def _retract(workspace: Workspace, stale: Sequence[AnyRow]) -> ChangedSignals:
    changed = ChangedSignals()
    for run in batches(stale, BATCH_SIZE):
        with workspace.write() as connection:
            retracted = _retracted(workspace, connection, [event.id for event in run])
            active = [event for event in run if event.id not in retracted]
            changed.facts += retract_events(workspace, connection, active, None)
        of_links = sum(event.kind == LINK_SIGNAL for event in active)
        changed.signals += len(active) - of_links
        changed.link_signals += of_links
    return changed


def _retracted(workspace: Workspace, connection: Connection, event_ids: Sequence[str]) -> set[str]:
    keys = {f"retract/{event_id}": event_id for event_id in event_ids}
    return {keys[key] for key in ledger.known_keys(connection, list(keys))}
