"""The step from a rating to signals: about the facts that an answer used, and the links that led to them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from heedful.clock import from_stored
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.signals import LinkSignal
from heedful.model import Metadata, Rating, Signal, SignalType
from heedful.storage.rows import AnyRow

STRENGTH = {1: -1.0, 2: -0.5, 3: 0.0, 4: 0.5, 5: 1.0}  # The direction and strength of each score.

DIRECTION: dict[Rating | None, float] = {"up": 1.0, None: 0.0, "down": -1.0}
"""The same for each rating without a score."""

DERIVED_PREFIX = "improve/"
"""Prefix of the idempotency keys of events that `improve` derives; the id of the feedback follows."""

REPEAT_MARKER = "#"
"""Precedes a number in the key of a signal that is derived again after a retraction."""

Uses = list[tuple[str, float, list[str]]]  # The facts of an answer: id, share, and the links by which it was found.


@dataclass(frozen=True, slots=True)
class EntryRow:
    id: str
    session_id: str
    question: str
    answer: str
    context: str | None
    at: int
    dataset: str | None
    recall_id: str | None
    used: Uses | None
    model: str | None
    usage: Metadata | None
    external_id: str | None = None
    number: int = 0


@dataclass(slots=True)
class DatasetRatings:
    """The entries of a dataset and the opinions about them that are active; those of visitors are apart."""

    entries: list[EntryRow] = field(default_factory=list)
    about_entry: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    about_session: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    visited: list[EntryRow] = field(default_factory=list)
    """Entries with opinions of visitors."""
    by_visitors: dict[str, list[FeedbackRow]] = field(default_factory=lambda: defaultdict(list))
    """The opinions of visitors, by their target."""

    @property
    def feedback_ids(self) -> set[str]:
        groups = (self.about_entry, self.about_session, self.by_visitors)
        return {row.id for rows in groups for feedback in rows.values() for row in feedback}


@dataclass(frozen=True, slots=True)
class Derived:
    """One signal that is derived from a rating."""

    key: str
    fact_id: str
    links: list[str]
    kind: SignalType
    confidence: float
    entry: EntryRow
    rating: FeedbackRow

    def matches(self, event: AnyRow) -> bool:
        """Whether an event with this key has the same content."""
        return (event.value, event.confidence) == (self.kind, self.confidence)


def derive_signals(dataset_ratings: DatasetRatings) -> Iterable[Derived]:
    """The signals that follow from the ratings of entries and sessions."""
    before: dict[str, list[EntryRow]] = defaultdict(list)
    for entry in dataset_ratings.entries:
        before[entry.session_id].append(entry)
        for rating in dataset_ratings.about_entry.get(entry.id, ()):
            if rating.score is not None:
                yield from _derive(entry, rating, STRENGTH[rating.score])
    for session_id, ratings in dataset_ratings.about_session.items():
        for rating in ratings:
            # The entries up to then share it equally; an entry's own rating takes precedence.
            answered = [entry for entry in before[session_id] if entry.at <= rating.at]
            for entry in answered:
                if entry.id not in dataset_ratings.about_entry:
                    yield from _derive(entry, rating, DIRECTION[rating.rating] / len(answered))


def _derive(entry: EntryRow, rating: FeedbackRow, strength: float) -> Iterable[Derived]:
    if not strength:
        return
    kind: SignalType = "helpful" if strength > 0 else "not_helpful"
    for fact_id, share, links in entry.used or ():
        key = f"{DERIVED_PREFIX}{rating.id}/{entry.id}/{fact_id}"
        yield Derived(key, fact_id, links, kind, round(abs(strength) * share, 6), entry, rating)


def to_link_signals(signal: Derived) -> list[LinkSignal]:
    """The same opinion about the links that led to a fact, shared equally."""
    return [
        LinkSignal(
            link,
            signal.kind,
            round(signal.confidence / len(signal.links), 6),
            at=signal.rating.at,
            author=signal.rating.author,
            receipt_id=signal.entry.recall_id,
            idempotency_key=f"{signal.key}/{link}",
        )
        for link in signal.links
    ]


def to_signal(signal: Derived) -> Signal:
    """The signal about the fact."""
    return Signal(
        fact_id=signal.fact_id,
        signal_type=signal.kind,
        query=signal.entry.question,
        confidence=signal.confidence,
        at=from_stored(signal.rating.at),
        author=signal.rating.author,
    )


def rating_of_key(key: str) -> str:
    """The id of the rating that an event is derived from."""
    return key.removeprefix(DERIVED_PREFIX).partition("/")[0]


def base_key(key: str) -> str:
    """The key of a derived signal, from its own event, from a later one in its place, or from one about its links."""
    rating, entry, fact = key.removeprefix(DERIVED_PREFIX).split("/")[:3]
    return f"{DERIVED_PREFIX}{rating}/{entry}/{fact.partition(REPEAT_MARKER)[0]}"
