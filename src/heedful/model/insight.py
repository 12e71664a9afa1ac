"""Insight: aggregated feedback, and what stands out; exported tables, and the digest."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, get_args

from heedful.model.base import Model, public

Over = Literal["day", "week"]
OpinionTarget = Literal["session", "entry", "message", "execution", "fact"]
Facet = Literal["dataset", "model", "source", "author_kind", "target_type"]

OVERS: tuple[Over, ...] = get_args(Over)
OPINION_TARGETS: tuple[OpinionTarget, ...] = get_args(OpinionTarget)
FACETS: tuple[Facet, ...] = get_args(Facet)


class Variant(Model):
    """The opinions under one value."""

    value: Any
    sessions: int | None
    """Sessions with that value, rated or not; None where it is no value of sessions."""
    up: int
    down: int
    neutral: int
    satisfaction: float | None
    low: float | None
    high: float | None
    mean_score: float | None
    """The mean of the entries' scores, 1 to 5; None without any."""
    probability_best: float | None
    """That this variant's true satisfaction is the greatest of all."""


class Comparison(Model):
    """The chance that one variant is better than another."""

    better: Any
    than: Any
    probability: float


class Stopping(Model):
    """Whether a comparison has been going on for long enough."""

    decided: bool
    best: Any
    """The variant to take, decided or not; None without ratings."""
    expected_loss: float | None
    """How much satisfaction is lost on average by taking it now, should another one be better."""
    needed: int | None
    """About how many more ratings it takes, if the present rates are the true ones; None if unknown."""
    reason: str


@public
class Satisfaction(Model):
    """Satisfaction by a value: of the sessions' metadata, or of the opinions themselves."""

    by: str
    variants: list[Variant]
    """The most sessions first, or the most opinions."""
    comparisons: list[Comparison]
    """Each pair once, the likelier winner as `better`."""
    stopping: Stopping | None = None
    """None with fewer than two variants that have ratings."""


class TrendPoint(Model):
    """The opinions of one day or week."""

    start: date
    """Its first day, in UTC."""
    up: int
    down: int
    neutral: int
    satisfaction: float | None
    low: float | None
    high: float | None
    mean_score: float | None
    """The mean of the entries' scores; None without any."""


class TrendLine(Model):
    """The points of one value, the oldest first; days without opinions are among them."""

    value: Any
    """None for all opinions together, or where they have no such value."""
    points: list[TrendPoint]
    """One for each step."""


class Trend(Model):
    """Satisfaction over time."""

    over: Over
    """How long each step is."""
    by: str | None
    lines: list[TrendLine]
    """One for each value, the most opinions first; a single one without `by`."""
    total: Variant
    """All of it together."""


class Covered(Model):
    """How much of one kind of thing was rated."""

    kind: Literal["answers", "executions", "recalls"]
    """The kind that was shown."""
    shown: int
    """How many there were."""
    rated: int
    """How many of them somebody has an opinion of, today."""
    share: float | None
    """rated / shown; None if nothing was shown."""
    low: float | None
    high: float | None


class Coverage(Model):
    """How much of what was shown was rated."""

    answers: Covered
    """Entries of sessions, on the day they were given."""
    executions: Covered
    """SQL that ran, on the day it did."""
    recalls: Covered
    """Of those whose receipts are kept; rated are those that were judged first in this time."""


class DecisionCount(Model):
    """How often the cache decided so, for this reason."""

    decision: Literal["serve", "rebind", "refuse", "nothing"]
    """`nothing`: no stored question was like it."""
    gate: str
    count: int
    """How many there were."""
    share: float
    """Of all decisions."""


class CacheDecision(Model):
    """One decision of the cache."""

    at: datetime
    question: str
    decision: Literal["serve", "rebind", "refuse", "nothing"]
    gate: str
    reason: str
    """Why, in words."""
    similarity: float | None
    """Of the nearest stored question."""
    candidate_id: str | None
    """The execution or golden example that was looked at."""
    execution_id: str | None
    """The execution that was made of it."""


class CacheReport(Model):
    """The decisions of the cache, and why."""

    total: int
    reused: int
    """How many were served or rebound."""
    counts: list[DecisionCount]
    """The most frequent first."""
    newest: list[CacheDecision]
    """The newest decisions first."""


class Theme(Model):
    """Negative comments that are about the same."""

    name: str
    """Its most typical words."""
    comments: int
    """How many there are."""
    examples: list[str]
    """The most typical comments, shortened."""
    feedback_ids: list[str]
    """The opinions they came with, the most typical first."""
    first_at: datetime
    """When the first was written."""
    last_at: datetime
    """When the last was written."""


class Themes(Model):
    """A theme of negative comments."""

    comments: int
    """How many were read, the newest."""
    themes: list[Theme]
    """The largest first."""
    other: int
    """Comments that match no theme."""


class Note(Model):
    """Something that changed, and is not luck."""

    text: str
    """In a sentence."""
    about: str
    """The subject of the note: "all", "dataset", "model", "metadata.variant", "theme", "policy"…"""
    value: Any
    """Which of them; None for all."""
    since: date
    """The first day on which it is so, in UTC."""
    ratio: float | None
    """How many times as much as before; None where there was nothing before."""
    worse: bool
    """Whether it went up, of what is better down."""
    arithmetic: list[str]
    """The figures it comes from."""
    event_id: str | None = None
    """The change of policy that it is about: retract it to undo the change."""


TableName = Literal[
    "feedback",
    "signals",
    "entries",
    "sessions",
    "messages",
    "facts",
    "recalls",
    "executions",
    "golden_examples",
    "decisions",
    "review_items",
    "events",
]
ColumnType = Literal["text", "integer", "number", "boolean", "time", "json"]
ExportFormat = Literal["csv", "jsonl", "parquet"]

TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


class ExportColumn(Model):
    """One column of an exported table."""

    name: str
    type: ColumnType
    meaning: str
    """The note in words."""


class ExportTable(Model):
    """One table that can be exported."""

    name: TableName
    meaning: str
    """The meaning of a row."""
    columns: list[ExportColumn]


class ExportResult(Model):
    """The result of an export."""

    table: TableName
    """Which table."""
    rows: int
    """How many rows there were."""
    path: str | None
    """The file; None where bytes were written to something else."""


TrainingFormat = Literal["kto", "dpo", "sft", "triplets", "text2sql", "evals"]
TrainingSplit = Literal["train", "test"]


class TrainingData(Model):
    """The contents of training data, and how they were created."""

    format: TrainingFormat
    """Which training they are for."""
    lines: int
    """How many lines there are."""
    splits: dict[TrainingSplit, int]
    """The lines of each side."""
    needs: int
    """How many needs they are about; all phrasings of one are on one side."""
    left_out: dict[str, int]
    """The rated answers, facts and queries that are in no line, by reason."""
    sha256: str
    """The hash of the file with all lines, which is the same for the same ledger."""
    card: str
    """How they were made, in Markdown."""


class TrainingPage(Model):
    """Some lines of training data."""

    items: list[dict[str, Any]]
    next_cursor: str | None
    """Pass it as `cursor` to go on; None at the end."""
    data: TrainingData
    """All lines together."""


class TrainingExport(Model):
    """Training data in a file."""

    path: str | None
    """The file; None where bytes were written to something else."""
    card_path: str | None
    """The file with the card."""
    data: TrainingData
    """Its contents."""


class Digest(Model):
    """A summary of the feedback in a period, compared with the period before."""

    project: str
    """Whose it is."""
    since: datetime
    """When the time begins."""
    until: datetime
    """When it is over."""
    now: Variant
    """The opinions of this time."""
    before: Variant
    """Those of the time before it, which was as long."""
    themes: list[Theme]
    """The themes of negative comments, largest first."""
    notes: list[Note]
    """The changes that are larger than chance explains."""
    open_items: int
    """Items of the review queue that are open."""
    headline: str
    """All of it in a line."""
    text: str
    """All of it in words."""
