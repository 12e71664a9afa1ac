"""Facts, signals, recalls and receipts, and replays of these."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import Field

from heedful.model.base import (
    AuthorName,
    Fraction,
    Metadata,
    Mode,
    Model,
    Name,
    NotBlank,
    PolicyName,
    SignalType,
    SourceName,
    Text,
    UsefulnessSource,
    public,
)


@public
class Signal(Model):
    """One opinion about one fact for one query."""

    fact_id: NotBlank
    signal_type: SignalType
    query: NotBlank
    confidence: Fraction = 1.0
    context: Text | None = None
    at: datetime | None = None
    """When it was given; now, if left out. Late and out-of-order signals fold in this order."""
    author: AuthorName | None = None
    idempotency_key: Name | None = None
    external_id: Name | None = None
    """Your own id for it: sent again, it counts once, and `retract` takes it in place of the event's id."""


class ItemError(Model):
    """Why one item of a batch was refused."""

    index: int
    code: str
    message: str
    fact_id: str | None = None


class RecordedSignal(Model):
    """One signal that was taken, under the event that can be retracted."""

    event_id: str
    fact_id: str
    signal_type: SignalType


@public
class SignalResult(Model):
    """The result of `signal` or `signal_recall`."""

    processed: int
    """How many signals were taken now; a retry takes none."""
    updated_facts: list[str]
    errors: list[ItemError]
    event_ids: list[str]
    signals: list[RecordedSignal]
    """The same events with what they say."""


@public
class Retraction(Model):
    """The result of `retract`."""

    event_id: str
    """The new event that records the retraction."""
    retracted: str
    updated_facts: list[str]


@public
class Supersession(Model):
    """The result of `supersede`."""

    event_id: str
    """Retract it to undo the supersession."""
    fact_id: str
    superseded_by: str


@public
class PolicyChange(Model):
    """The result of `set_policy`."""

    event_id: str | None
    """Retract it to undo the change; None if nothing changed."""
    dataset: str | None
    """None for the whole project."""
    policy: PolicyName | None
    """The rule that recalls use now; None for the default."""
    previous: PolicyName | None
    """The rule before; None for the default."""


@public
class PolicyInUse(Model):
    """The policy that recalls follow unless a call names another, and why."""

    dataset: str | None
    """None for the project."""
    policy: PolicyName
    chosen_for: Literal["dataset", "project"] | None
    """None if no policy was chosen, so that the default holds."""
    chosen_by: str | None
    """`set_policy`; `guard` if ratings got worse after a change and the setting `revert_worse_policy` undid it."""
    chosen_at: datetime | None
    """The time of the choice."""
    event_id: str | None
    """Retract it to undo the choice."""


@public
class Document(Model):
    """The texts of one source. Remembering it replaces the earlier texts of that source."""

    source: SourceName
    texts: list[Text]
    """The texts; long ones are split."""
    metadata: list[Metadata] | None = None
    """One for each text, if given."""


class FactRef(Model):
    """A fact as `remember` reports it."""

    fact_id: str
    text: str
    new: bool


ConflictKind = Literal["number", "date", "name"]


class FactConflict(Model):
    """An existing fact that says otherwise than one that was stored now; nothing was changed about either."""

    event_id: str
    """The event that noted it; `retract` it if both are true."""
    fact_id: str
    """The fact that was stored now."""
    conflicts_with: str
    """The existing fact. `supersede(conflicts_with, by=fact_id)` puts the new one in its place."""
    text: str
    """The text of the existing fact."""
    kind: ConflictKind
    """The kind of difference."""
    value: str
    """The value in the new fact."""
    other_value: str
    """The value in the existing fact."""


class FileError(Model):
    """A file that could not be remembered."""

    source: str
    code: str
    message: str


@public
class RememberResult(Model):
    """The facts that `remember` stored, document by document in the order given."""

    dataset: str
    facts: list[FactRef]
    added: int
    known: int
    removed: int
    errors: list[FileError]
    conflicts: list[FactConflict] = Field(default_factory=list)
    """Existing facts about the same thing with another number, date or name, as far as that is certain; they are in
    the review queue, too. A call that stores more than 64 new facts looks for none."""

    @property
    def fact_ids(self) -> list[str]:
        """The ids of all facts named, new and known, in order."""
        return [fact.fact_id for fact in self.facts]


class Fact(Model):
    """One fact as it is stored."""

    fact_id: str
    text: str
    dataset: str
    source: str | None
    metadata: Metadata
    created_at: datetime
    expires_at: datetime | None = None
    """From then on it is not recalled, listed or counted; None if it has no end."""


class Dataset(Model):
    """A named set of facts."""

    name: str
    metadata: Metadata
    facts: int
    """How many it has that can be recalled."""
    created_at: datetime


class Erasure(Model):
    """A record that proves what was erased of a person, without their name."""

    author: str | None
    """The pseudonym that replaces their name; None if nothing had the name."""
    event_id: str | None
    """The event of the ledger that says the same; None if nothing was erased."""
    events: int
    """Events of the ledger that have another author now."""
    feedback: int
    """Opinions without their words."""
    notes: int
    """Texts that came with signals."""
    review: int
    """Notes and assignments of the review queue."""
    sessions: int
    """Sessions that named them, without what was said there."""
    executions: int
    """Executions without the question that was asked there."""
    questions: int
    """Questions asked there that nothing else refers to."""
    alerts: int
    """Alerts that quoted them."""
    results: int
    """Results that were kept for retries."""
    keys: int
    """Keys that had their name."""


class ForgetResult(Model):
    """The facts that `forget` removed."""

    facts: int
    dataset: str
    """The datasets they were in, separated by commas."""
    restored: list[str] = Field(default_factory=list)
    """The facts that they had superseded and that are recalled again; forget these too if they are wrong."""
    erased: Erasure | None = None
    """The record of the erasure, if an author was named."""


class EventRef(Model):
    """One ledger event behind a score."""

    event_id: str
    signal_type: SignalType
    query: str
    confidence: float
    at: datetime
    author: str | None = None


class Explanation(Model):
    """Why a hit has its score: the parts, the evidence and the arithmetic."""

    vector: float | None
    """Similarity by meaning, in [0, 1]."""
    words: float | None
    """Similarity by words, in [0, 1]."""
    neighbours: float | None
    """The share of neighbouring facts of its source, already included in `relevance`."""
    links: list[str] = Field(default_factory=list)
    """The entity over which it was reached from another fact or from the query, in the mode `graph`."""
    matched_context: str | None
    """The earlier query whose context was matched most closely."""
    context_similarity: float | None
    event_count: int
    """The signals behind its usefulness."""
    events: list[EventRef]
    """The newest 100 of them, oldest first."""
    arithmetic: list[str]


@public
class Hit(Model):
    """One recalled fact."""

    fact_id: str
    text: str
    score: float
    relevance: float
    usefulness: float
    usefulness_source: UsefulnessSource
    metadata: Metadata
    source: str | None = None
    position: tuple[int, int] | None = None
    """Where the text is in its source, in characters."""
    rank: int
    copies: int = 0
    """How many other facts have the same text and pass the filters. A recall shows each text once."""
    sources: list[str] = Field(default_factory=list)
    """Where the text is said, if there are copies: the sources of at most ten of these facts."""
    corrected_by: str | None = None
    """The fact learnt from feedback that corrects this one, or what this one was learnt from; it ranks higher."""
    explanation: Explanation | None = None


@public
class Recall(Model):
    """The answer to `recall`: hits, best first, under a receipt."""

    recall_id: str
    query: str
    dataset: str
    mode: Mode
    policy: PolicyName
    hits: list[Hit]
    session_id: str | None = None
    qa_id: str | None = None
    """The entry of the session under which question and answer are kept; None without a session."""
    answer: str | None = None
    """The answer made from the hits, with citations; None without a session."""
    receipt: bool = True
    """Whether its receipt was kept, so that feedback can name it; with a session it always is."""
    next_cursor: str | None = None
    """The `cursor` for the next page of the same recall; None if there are no more facts, or 1,000 were shown."""

    def __iter__(self) -> Iterator[Hit]:  # type: ignore[override]
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Shown(Model):
    """One line of a receipt."""

    fact_id: str
    rank: int
    score: float
    relevance: float
    usefulness: float
    usefulness_source: UsefulnessSource
    propensity: float
    """The chance it had to be shown there: 1, but where exploration was at work."""
    links: list[str] = Field(default_factory=list)
    """The links that carried it in the mode `graph`, as "fact_id/entity"."""


@public
class Receipt(Model):
    """The facts that one recall showed."""

    recall_id: str
    dataset: str
    query: str
    mode: Mode
    policy: PolicyName
    usefulness_weight: float
    """0 where the recall was not boosted."""
    at: datetime
    shown: list[Shown]


class ContextScore(Model):
    """The usefulness of one fact in one context."""

    query: str
    """The earliest query of the context."""
    queries: list[str]
    score: float
    """By the signals of this context alone, with the documented arithmetic."""
    signal_count: int
    signal_breakdown: dict[SignalType, int]
    last_signal_at: datetime


@public
class FactStats(Model):
    """All that signals say about one fact; usefulness and scores are decayed to now."""

    fact_id: str
    text: str
    dataset: str
    overall_usefulness: float
    """By the signals for all queries, with the documented arithmetic. `usefulness` of a hit is for the query asked."""
    signal_count: int
    signal_breakdown: dict[SignalType, int]
    last_signal_at: datetime | None
    query_count: int
    """Queries that have signals for it."""
    contexts: list[ContextScore]
    """By its 100 queries with the most signals (fewer where these are long), the strongest context first. A query that
    is new may be a context by itself until it is embedded."""


class ScorePoint(Model):
    """The overall usefulness of a fact after one signal."""

    at: datetime
    overall_usefulness: float
    event_id: str
    """Retract it to undo the signal."""
    signal_type: SignalType
    query: str
    confidence: float
    author: str | None


class Correction(Model):
    """An active supersession."""

    event_id: str
    """Retract it to undo the supersession."""
    fact_id: str
    superseded_by: str
    at: datetime
    author: str | None


class FactHistory(Model):
    """How the overall usefulness of one fact came to be, and what it superseded."""

    fact_id: str
    created_at: datetime
    expires_at: datetime | None = None
    """From then on it is not recalled; None if it has no end."""
    event_count: int
    """The active signals behind its score."""
    points: list[ScorePoint]
    """After each of the newest 1,000 of them, oldest first; before the first of all, it is 0.5."""
    overall_usefulness: float
    """Now: it fades to 0.5 while nobody says anything."""
    superseded_by: Correction | None
    supersedes: Correction | None
    """How it came to be, if it is the correction of another."""


class RankedFact(Model):
    """A fact in a list of the most or least useful."""

    fact_id: str
    text: str
    overall_usefulness: float
    signal_count: int


class MixedFact(Model):
    """A fact that helps in one context and hurts in another."""

    fact_id: str
    text: str
    overall_usefulness: float
    helps: ContextScore
    """The context in which it is most useful."""
    hurts: ContextScore
    """The context in which it is least useful."""


@public
class UsefulnessStats(Model):
    """The signals of one dataset; usefulness is decayed to now."""

    dataset: str
    total_facts: int
    facts_with_signals: int
    total_signals: int
    signal_breakdown: dict[SignalType, int]
    average_overall_usefulness: float
    """The mean over facts that have signals; 0.5 if none has."""
    distribution: dict[str, int]
    """Facts with signals by overall usefulness, in ten bins from "0.0-0.1" to "0.9-1.0"."""
    most_useful: list[RankedFact]
    least_useful: list[RankedFact]
    mixed: list[MixedFact]
    """Facts that help in one context and hurt in another."""
    queries: int
    """Different queries that have signals."""


class StoreRevision(Model):
    """Which migrations a store has."""

    store: str
    revision: str
    nodes: list[str]
    """The addresses of the nodes of a cluster that its projects are spread over."""


class TableSize(Model):
    """How much room one table of a store takes, with its indexes."""

    table: str
    rows: int | None
    """None for tables of a library."""
    bytes: int


FactProblem = Literal["duplicate", "near_duplicate", "never_recalled", "always_ignored", "expired"]


class FoundFact(Model):
    """A fact that something should be done about."""

    fact_id: str
    text: str
    other: str | None
    """The fact that says the same, where there is one."""
    detail: str
    """Why it is named."""


class FactFinding(Model):
    """Facts with the same problem."""

    kind: FactProblem
    """The problem."""
    count: int
    """How many there are; of pairs, at most 5,000 are compared."""
    facts: list[FoundFact]
    """The first of them."""
    remedy: str
    """The remedy."""


class FactReport(Model):
    """The problems that an audit found in a dataset. Nothing was changed."""

    dataset: str
    facts: int
    """How many can be recalled."""
    recalls: int
    """How many recalls were looked at, the newest 50,000 at most."""
    findings: list[FactFinding]
    """The problems by kind."""


class Check(Model):
    """One line of `doctor`."""

    name: str
    ok: bool
    detail: str
    repaired: bool = False


class Detection(Model):
    """The use that an answer made of one fact that was shown."""

    fact_id: str
    signal_type: Literal["used", "ignored"] | None
    """None where it is unclear."""
    confidence: float
    """How sure `signal_type` is, in [0, 1]; 0 without one."""
    reasons: list[str]


class Estimate(Model):
    """A mean and its 95% interval."""

    value: float
    """The mean."""
    low: float
    """The lower end."""
    high: float


class WorseQuery(Model):
    """A query whose helpful fact another order would put lower."""

    query: str
    receipts: int
    """How many of its rated recalls were replayed."""
    change: float
    """The mean change of the reciprocal rank over those; below 0."""
    recall_id: str
    """The recall of it that would lose most."""
    old_rank: int
    """Where that recall showed its first helpful fact."""
    new_rank: int
    """Where it would have been."""


class ReplayArm(Model):
    """The quality of one way to order the facts that were shown, by their ratings."""

    policy: PolicyName | None
    """None for the logged order and for relevance alone."""
    usefulness_weight: float | None
    """None for the logged order, whose recalls may have had different ones."""
    mrr: Estimate
    """The mean reciprocal rank of the first helpful fact."""
    ndcg: Estimate
    """nDCG at 10; helpful facts count 1, all others 0."""
    mrr_change: Estimate
    """The difference to the logged order, with the interval of the paired difference."""
    ndcg_change: Estimate
    """The same of nDCG."""
    queries_better: int
    """How many queries have a better mean reciprocal rank than they had as logged."""
    queries_worse: int
    """How many have a worse one."""
    worse: list[WorseQuery]
    """The ten that lose most, worst first."""


class ReplayAdvice(Model):
    """The weight that a policy should be given, by what was replayed."""

    policy: PolicyName
    usefulness_weight: float | None
    """0 where nothing surely beats relevance alone; None where there are too few ratings to tell."""
    reason: str
    """Why, in words."""


class ReplayRecommendation(Model):
    """The order that would have been best, of relevance alone and each policy with its recommended weight."""

    policy: PolicyName | None
    """None for relevance alone."""
    usefulness_weight: float
    """The weight that was best for it; 0 for relevance alone."""
    mrr_change: Estimate
    """The difference to the order that was shown."""
    certainty: float
    """The share of resamples in which it is better than that; 0.5 is a coin."""
    is_certain: bool
    """Whether that is 0.95 or more: enough to change something."""
    reason: str
    """Why, in words."""


class ReplayReport(Model):
    """The quality of other policies and weights on the recalls that people rated."""

    dataset: str
    rated: int
    """Recalls with active explicit ratings."""
    replayed: int
    """Those of them with a fact rated helpful: the others say nothing about an order."""
    queries: int
    """How many different queries those had."""
    effective_sample_size: float
    """How many recalls with equal weights would say as much; below `replayed` where exploration was at work."""
    seed: int
    """The seed of the intervals."""
    logged: ReplayArm | None
    """The order that was shown; None where nothing was replayed."""
    none: ReplayArm | None
    """Relevance alone."""
    arms: list[ReplayArm]
    """Each policy with each weight."""
    advice: list[ReplayAdvice]
    """One for each policy."""
    recommendation: ReplayRecommendation | None = None
    """None where there are too few ratings to tell."""
