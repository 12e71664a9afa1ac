"""What ratings ask for: signals about the facts that an answer used, and about the links that led to them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from heedful.clock import from_stored
from heedful.memory.graph_recall import LinkSignal
from heedful.model import Rating, Signal, SignalType
from heedful.sessions.undo import DERIVED_PREFIX
from heedful.storage.rows import AnyRow
from heedful.storage.sessions.base import EntryRow, FeedbackRow

STRENGTH = {1: -1.0, 2: -0.5, 3: 0.0, 4: 0.5, 5: 1.0}
"""What a score says: which way, and how surely."""

REPEAT_MARKER = "#"
"""Stands before a number in the key of a signal that is given again after it was retracted."""


@dataclass(slots=True)
class DatasetRatings:
    """The entries of a dataset and the opinions about them that are active; those of anonymous visitors are apart."""

    entries: list[EntryRow] = field(default_factory=list)
    about_entry: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    about_session: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    visited: list[EntryRow] = field(default_factory=list)
    """Entries that visitors speak of."""
    by_visitors: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    """What visitors say, by the entry or session that it is about."""

    @property
    def feedback_ids(self) -> set[str]:
        about = (self.about_entry, self.about_session, self.by_visitors)
        return {row.id for rows in about for each in rows.values() for row in each}


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


def derive_signals(read: DatasetRatings) -> Iterable[Derived]:
    """The signals that the ratings of entries and of sessions make."""
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
        key = f"{DERIVED_PREFIX}{rating.id}/{entry.id}/{fact_id}"
        yield Derived(key, fact_id, links, kind, round(abs(strength) * share, 6), entry, rating)


def to_link_signals(each: Derived) -> list[LinkSignal]:
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


def to_signal(each: Derived) -> Signal:
    """The signal about the fact."""
    return Signal(
        fact_id=each.fact_id,
        signal_type=each.kind,
        query=each.entry.question,
        confidence=each.confidence,
        at=from_stored(each.rating.at),
        author=each.rating.author,
    )


def rating_of_key(key: str) -> str:
    """The rating behind a derived event."""
    return key.removeprefix(DERIVED_PREFIX).partition("/")[0]


def base_key(key: str) -> str:
    """The key of a derived signal, from its own event, from a later one in its place, or from one about its links."""
    rating, entry, fact = key.removeprefix(DERIVED_PREFIX).split("/")[:3]
    return f"{DERIVED_PREFIX}{rating}/{entry}/{fact.partition(REPEAT_MARKER)[0]}"
