"""The types of parameters: their meaning in a sentence, their limits in the JSON schema, and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import Field, Strict

from heedful.api import checks
from heedful.model import (
    AuditKind,
    Document,
    Fix,
    Hit,
    JobKind,
    JobStatus,
    Message,
    Metadata,
    Mode,
    Model,
    OpinionTarget,
    Over,
    PolicyName,
    Recall,
    Reuse,
    ReviewStatus,
    Scope,
    Signal,
    TableName,
    Target,
    TrainingFormat,
    TrainingSplit,
    limits,
)
from heedful.model.base import NAME_LIMITS, SOURCE_LIMITS, TEXT, TEXT_LIMITS, WORDS, WORDS_LIMITS


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """The meaning of a parameter, as its type says it. Whatever is left out is as in the type inside."""

    meaning: str | None = None
    limits: Mapping[str, Any] | None = None
    """For the JSON schema. Those of more than ten thousand characters are left to the check."""
    check: Callable[[str, Any], Any] | None = None
    """Given the name and the value: the value as handlers take it, or an `Invalid`."""
    wire: Any = None
    """The type in JSON, where it takes less than Python does."""

    def over(self, inner: Means) -> Means:
        """Both: the other one where this one says nothing."""
        return Means(
            inner.meaning if self.meaning is None else self.meaning,
            inner.limits if self.limits is None else self.limits,
            inner.check if self.check is None else self.check,
            inner.wire if self.wire is None else self.wire,
        )


NOTHING = Means()
"""Of a type that says nothing."""


class NewMessage(Model):
    """A message that is to be added."""

    role: str = Field(json_schema_extra={"minLength": 1, "maxLength": limits.MAX_ROLE, "pattern": WORDS})
    content: str = Field(json_schema_extra=TEXT_LIMITS)
    at: datetime | None = None


class NewExample(Model):
    """A question, and the SQL that answers it."""

    question: str = Field(json_schema_extra={"minLength": 1, "maxLength": limits.MAX_QUERY, "pattern": WORDS})
    sql_query: str = Field(json_schema_extra=WORDS_LIMITS)
    audience: str | None = None


class _Unchanged:
    """The default of a parameter that leaves a value as it is, where None would remove it."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Any = _Unchanged()

PAGE = 100
"""How many a page has, unless the caller says so."""

Source = str | Path | Document | Sequence[str | Path | Document]
"""Something that can be remembered: texts, files and folders, and documents that were read elsewhere."""

Facts = str | int | Hit | Sequence[str | int | Hit]
"""Facts of a recall as a caller names them: by id, by rank, or by their hits."""

Shares = Sequence[str] | Mapping[str, float]
"""Facts that an answer used, by id, with their share in it where that is known."""

Output = str | Path | IO[bytes]
"""Where an export is written."""

Progress = Callable[[int, int], None]
"""Called with how many pieces are done, and how many there are."""

OnToken = Callable[[str], None]
"""Called with each part of an answer as it is written."""

KEY = r"^[^\u0000.$][^\u0000.]*(\.[^\u0000.$][^\u0000.]*)*$"
"""A name in metadata; a dot reaches inside."""

ID_LIMITS = TEXT_LIMITS
CURSOR_LIMITS = {"pattern": "^[0-9]{1,18}$"}
KEY_LIMITS = {"minLength": 1, "maxLength": limits.MAX_KEY, "pattern": KEY}
_QUESTION = {"minLength": 1, "maxLength": limits.MAX_QUERY, "pattern": WORDS}
_IDS = {"items": {"anyOf": [{"type": "string"} | ID_LIMITS, {"type": "integer", "minimum": 1}]}}
FRACTION_LIMITS = {"minimum": 0, "maximum": 1}

Check = Callable[[str, Any], Any]


def _number(low: int, high: int, check: Callable[..., Any] = checks.whole_number, **options: str) -> tuple[Any, Check]:
    """The limits of a number, and its check."""
    return {"minimum": low, "maximum": high}, partial(check, low=low, high=high, **options)


FEEDBACK_LIMITS = {"maxLength": limits.MAX_FEEDBACK, "pattern": TEXT}
_FEEDBACK = FEEDBACK_LIMITS, partial(checks.any_text, limit=limits.MAX_FEEDBACK)


# Used in many calls.
Author = Annotated[
    str,
    Means("Whose opinion it is; your program's if left out.", NAME_LIMITS, checks.author),
]
Cursor = Annotated[str, Means("The `next_cursor` of the previous page.", CURSOR_LIMITS)]
DatasetName = Annotated[str, Means("The dataset.", NAME_LIMITS)]
OnlyDataset = Annotated[DatasetName, Means("Only this dataset; all if left out.")]
ExternalId = Annotated[
    str,
    Means(
        "Your own ID for it (a run, trace or message ID), which feedback may name; unique in the project.", NAME_LIMITS
    ),
]
IdempotencyKey = Annotated[str, Means("A call repeated with the same key counts once and returns the first result.")]
IfMatch = Annotated[
    str, Means("Make the change only if nothing has changed since you read it: the `etag` you got then.")
]
Limit = Annotated[int, Means("How many at most in a page, up to 1,000.", *_number(1, limits.MAX_PAGE))]
ListLimit = Annotated[int, Means("How many at most, up to 10,000.", *_number(1, limits.MAX_LIST))]
Moment = Annotated[datetime, Means("A time; one without a zone is read as UTC.")]
Name = Annotated[str, Means("The name.", NAME_LIMITS)]
NewestFirst = Annotated[bool, Means("Newest first.", check=checks.flag)]
Skip = Annotated[int, Means("How many to skip.", *_number(0, limits.MAX_SKIP))]
Where = Annotated[Metadata, Means("Conditions on metadata, all of which must hold.")]

# Of facts, recalls and signals.
Answer = Annotated[str, Means("The answer that was made from the facts.", ID_LIMITS)]
Boost = Annotated[
    bool | float,
    Means("Blend usefulness into the score (true or a weight), or rank by relevance (false); by policy if left out."),
]
Confidence = Annotated[float, Means("How sure you are, from 0 to 1; scales every signal of the call.", FRACTION_LIMITS)]
EventId = Annotated[
    str,
    Means(
        "The event to undo, as `signal`, `signal_recall` or `supersede` returned it, or your id of a signal.",
        ID_LIMITS,
        checks.identifier,
    ),
]
ExpiresAt = Annotated[
    datetime,
    Means("From this time on, they are no longer recalled: a future time with a zone, such as 2030-01-31T12:00:00Z."),
]
Exploration = Annotated[
    float,
    Means(
        "The probability of giving the last place to a fact that nobody has rated for such a query.", FRACTION_LIMITS
    ),
]
FactId = Annotated[str, Means("The fact.", ID_LIMITS)]
FactMetadata = Annotated[Metadata | Sequence[Metadata], Means("One mapping for all texts, or one per text.")]
FactSource = Annotated[str, Means("Where the texts come from. A file's source is its path.", SOURCE_LIMITS)]
FeedbackInfluence = Annotated[
    float,
    Means("Another name for `usefulness_weight`: above 0, it turns the boost on; 0 turns it off.", FRACTION_LIMITS),
]
JudgedFacts = Annotated[Facts, Means("", _IDS, wire=list[str | Annotated[int, Strict()]])]
MinUsefulness = Annotated[
    float, Means("Leave out facts with a lower usefulness. Not with `boost_by_usefulness` false.", FRACTION_LIMITS)
]
OtherFactId = Annotated[str, Means("Instead of `text`: a fact that already exists.", ID_LIMITS)]
Policies = Annotated[Sequence[PolicyName], Means("The policies to try; all if left out.")]
Policy = Annotated[PolicyName, Means("`documented` or `adaptive`; None leaves it to the dataset, then to the project.")]
Query = Annotated[str, Means("The question, in any words.", _QUESTION)]
RecallId = Annotated[str, Means("The receipt, from `recall(…).recall_id`.", ID_LIMITS)]
JudgedRecall = Annotated[str | Recall, Means("The recall, or its `recall_id`.", ID_LIMITS, wire=str)]
SearchMode = Annotated[
    Mode, Means("`hybrid` (meaning and words), `semantic` (meaning), `lexical` (words), or `graph` (hybrid and links).")
]
Signals = Annotated[
    Signal | Iterable[Signal | Mapping[str, Any]],
    Means("`Signal` objects, or mappings with the same fields.", {"maxItems": limits.MAX_SIGNALS}, wire=list[Signal]),
]
Text = Annotated[str, Means("The corrected text.", WORDS_LIMITS)]
Texts = Annotated[
    Source,
    Means(
        "One text or document, or a list; in Python, a `Path` is a file or a folder.",
        wire=str | Document | list[str | Document],
    ),
]
TopK = Annotated[int, Means("How many facts to return at most.", *_number(1, limits.MAX_TOP_K))]
UsefulnessWeight = Annotated[float, Means("The share of usefulness in the score, from 0 to 1.", FRACTION_LIMITS)]
Weights = Annotated[
    Sequence[float],
    Means(
        "The values of `usefulness_weight` to try, up to 100; 0.1 to 0.9 if left out.",
        {"minItems": 1, "maxItems": limits.MAX_WEIGHTS, "items": {"type": "number"} | FRACTION_LIMITS},
    ),
]

RecallCursor = Annotated[
    str,
    Means(
        "The `next_cursor` of the previous page, with the same `query`, `dataset`, `mode` and `where`.",
        {"pattern": "^[A-Za-z0-9_-]{11,12000}$"},
    ),
]

# Of sessions, entries and their feedback.
AlertId = Annotated[str, Means("The alert, from `alerts`.", check=checks.identifier)]
Comment = Annotated[str, Means("The comment.", FEEDBACK_LIMITS)]
Content = Annotated[str, Means("The text of the message.", ID_LIMITS)]
EntryContext = Annotated[str, Means("The texts the answer is based on; those of the recall if left out.", ID_LIMITS)]
FeedbackScore = Annotated[int, Means("1 (worst) to 5 (best).", {"minimum": 1, "maximum": 5})]
FeedbackText = Annotated[str, Means("A comment on the answer.", FEEDBACK_LIMITS)]
MessageId = Annotated[str, Means("The message, from `messages`.", check=checks.identifier)]
MetadataKeys = Annotated[
    str | Sequence[str],
    Means("The keys; a dot reaches inside a mapping.", {"items": {"type": "string"} | KEY_LIMITS}, wire=list[str]),
]
NewMessages = Annotated[
    Iterable[Message | Mapping[str, Any]],
    Means(
        "Mappings with `role`, `content` and, if known, `at`; or messages of another session.",
        {"maxItems": limits.MAX_MESSAGES},
        wire=list[NewMessage],
    ),
]
QaId = Annotated[str, Means("The entry, from `recall(…, session_id=…).qa_id`.", check=checks.identifier)]
Question = Annotated[str, Means("The question.", _QUESTION)]
AnyRating = Annotated[
    bool | int | float | str,
    Means('True, "up", "VERY_NEGATIVE" or another word, or a number; left out, only the comment counts.'),
]
Role = Annotated[
    str,
    Means(
        "Who said it, in a word: `user`, `assistant`, …",
        {"minLength": 1, "maxLength": limits.MAX_ROLE, "pattern": WORDS},
    ),
]
Scale = Annotated[
    Sequence[float],
    Means(
        "The worst and the best number, such as 1 and 5, for a rating that is a number.", {"minItems": 2, "maxItems": 2}
    ),
]
SessionFeedback = Annotated[
    Mapping[str, Any], Means("A mapping with `rating`, `comment` and any other keys to store.", wire=dict[str, Any])
]
SessionId = Annotated[str, Means("The session.", NAME_LIMITS, checks.name)]
SessionIds = Annotated[
    Sequence[str], Means("Only these sessions, up to 10,000; all if left out.", {"maxItems": limits.MAX_LIST})
]
UsedFacts = Annotated[
    Shares,
    Means(
        "The facts that the answer is based on, or a weight for each; `improve` detects them if left out.",
        wire=list[str] | dict[str, float] | None,
    ),
]

# Of reports.
RowsDataset = Annotated[DatasetName, Means("Only rows of this dataset.")]
RowsSince = Annotated[Moment, Means("Only rows from this time on.")]
RowsUntil = Annotated[Moment, Means("Only rows before this time.")]
ReportKey = Annotated[str, Means("", KEY_LIMITS)]
ReportTable = Annotated[TableName, Means("One of the tables of `dictionary`.")]
ReportTarget = Annotated[
    OpinionTarget,
    Means(
        "Only opinions about a `session`, `entry`, `message`, `execution` or `fact`; all but those about facts, if "
        "left out."
    ),
]
TrainingLines = Annotated[TrainingFormat, Means("Which lines to make: for which kind of training.")]
TrainingWhere = Annotated[Where, Means("Only from facts whose metadata meet all these conditions, as in `recall`.")]
TestShare = Annotated[
    float, Means("The share of needs that are for testing, from 0 to 1.", FRACTION_LIMITS, checks.fraction)
]
OnlySplit = Annotated[TrainingSplit, Means("Only lines of this side; of both if left out.")]
WithVisitors = Annotated[bool, Means("Count the opinions of visitors, too.", check=checks.flag)]
RatedSince = Annotated[Moment, Means("Only ratings from this time on.")]
RatedUntil = Annotated[Moment, Means("Only ratings before this time.")]
RatedDataset = Annotated[DatasetName, Means("Only what is about facts of this dataset.")]
SaidSince = Annotated[Moment, Means("Only feedback from this time on.")]
SaidUntil = Annotated[Moment, Means("Only feedback before this time.")]
AnsweredFrom = Annotated[DatasetName, Means("Only answers from this dataset.")]
TimeStep = Annotated[Over, Means("`day` or `week`; weeks begin on Mondays.")]

# Of what a change would do.
CandidateEmbedding = Annotated[
    str | object,
    Means(
        "The model to try: `bundled`, `fast`, a folder, `URL#model`, or an embedder. Over HTTP, one of the first two.",
        wire=Literal["bundled", "fast"] | None,
    ),
]
OtherStore = Annotated[
    str | Path,
    Means("Another store to ask instead, such as a copy that you changed: a file or a URL. Not over HTTP."),
]
SAMPLE = 10_000
SampleSize = Annotated[int, Means("How many rated questions to ask at most, drawn at random.", *_number(1, 100_000))]
Depth = Annotated[int, Means("How many facts to look through; one that is not among them is lost.", *_number(1, 100))]
Seconds = Annotated[
    float,
    Means("Seconds after which it stops; what was compared by then is reported.", *_number(0, 86_400, checks.number)),
]
Draw = Annotated[int, Means("The seed of the sample and of the intervals.", *_number(0, limits.MAX_INTEGER))]

# Of connectors, executions and what is reused.
Audience = Annotated[
    str,
    Means(
        "Whom it is for, such as a user or tenant ID (case-sensitive); everybody if left out.",
        NAME_LIMITS,
        checks.audience,
    ),
]
ChatMessageId = Annotated[
    str, Means("The message of a chat, from `chat_to_sql` or `chat_to_answer`.", ID_LIMITS, checks.identifier)
]
ChatSessionId = Annotated[str, Means("The chat session.", check=checks.identifier)]
ConnectorId = Annotated[str, Means("The connector, by ID or name.", ID_LIMITS, checks.identifier)]
OnlyConnector = Annotated[ConnectorId, Means("Only those of this connector, by ID or name.")]
SomeConnector = Annotated[str, Means("The connector, by ID or name; optional if the project has only one.", ID_LIMITS)]
ExampleId = Annotated[str, Means("The golden example.", check=checks.identifier)]
NewExamples = Annotated[
    Iterable[Mapping[str, Any]],
    Means("Mappings with `question` and `sql_query`.", {"maxItems": limits.MAX_LIST}, wire=list[NewExample]),
]
ExecutionId = Annotated[str, Means("The execution.", ID_LIMITS)]
FeedbackCutoff = Annotated[
    float,
    Means(
        "How reliable a rated execution must be to serve as an example, from 0 to 1; higher is stricter.",
        FRACTION_LIMITS,
        checks.fraction,
    ),
]
FeedbackId = Annotated[str, Means("The feedback.", check=checks.identifier)]
FeedbackIds = Annotated[
    Sequence[str],
    Means(
        "The feedbacks, up to 10,000.",
        {"maxItems": limits.MAX_LIST, "items": {"type": "string", "minLength": 1} | ID_LIMITS},
    ),
]
IsPositive = Annotated[bool, Means("Whether it was right.", check=checks.flag)]
LookupLimit = Annotated[int, Means("How many stored questions to consider.", *_number(1, limits.MAX_PAGE))]
MaxAgeDays = Annotated[float, Means("How old an execution may be.", *_number(0, limits.MAX_AGE_DAYS, checks.number))]
Parameters = Annotated[dict[str, Any], Means("Values for the `:name` placeholders.")]
Privileged = Annotated[
    bool,
    Means("Accept a login that may do more than read. Over HTTP, this needs a server-wide key.", check=checks.flag),
]
Reason = Annotated[str, Means("The reason.", *_FEEDBACK)]
Remarks = Annotated[
    Sequence[str],
    Means("Notes about the data for the language model, in addition to those it finds itself.", check=checks.remarks),
]
ReuseKind = Annotated[
    Reuse, Means("`sql` runs the proven SQL now; `result` returns the stored result, however old.", check=checks.reuse)
]
SensitiveColumns = Annotated[
    Sequence[str],
    Means(
        "Columns, as `table.column`, whose values must not be read to recognize them in questions.",
        check=checks.sensitive_columns,
    ),
]
SqlAuthor = Annotated[Author, Means("Who asks. What others proved about themselves is not reused for them.")]
SqlQuery = Annotated[str, Means("One statement that only reads.", WORDS_LIMITS)]
TopN = Annotated[int, Means("How many to return.", *_number(1, 1_000))]
Url = Annotated[str, Means("A SQLAlchemy URL. Write secrets as `${VAR}`.", WORDS_LIMITS)]
UserQuery = Annotated[str, Means("The question.", _QUESTION, checks.question)]

# Of review, keys, jobs and the audit trail.
Assignee = Annotated[str, Means("The person it is assigned to.", NAME_LIMITS)]
AuditedKind = Annotated[
    AuditKind, Means("Only calls that were refused (`refusal`), or only what an admin did (`action`).")
]
ExpiresIn = Annotated[
    int, Means("Seconds until it expires, up to a day.", *_number(1, limits.MAX_SECONDS, unit="whole seconds"))
]
FixAction = Annotated[Fix, Means("`supersede`, `retract`, `block`, `promote` or `add_example`.")]
Grace = Annotated[
    int,
    Means(
        "Seconds that tokens and logins signed with the old secret stay valid, up to a week.",
        *_number(0, limits.MAX_GRACE, unit="whole seconds"),
    ),
]
ItemId = Annotated[str, Means("The item, from `review.list`.", check=checks.identifier)]
ItemStatus = Annotated[ReviewStatus, Means("Only items that are open, resolved or dismissed; None for all.")]
ItemTarget = Annotated[
    OpinionTarget, Means("Only opinions about a `session`, `entry`, `message`, `execution` or `fact`.")
]
JobId = Annotated[str, Means("The job, from `jobs.list` or from whatever added it.")]
JobsKind = Annotated[
    JobKind,
    Means("Only jobs of this kind: improve, reembed, maintain, index, digest, or deliver for alerts of the outbox."),
]
JobsStatus = Annotated[JobStatus, Means("Only jobs that are waiting, running, done, failed or cancelled.")]
KeyId = Annotated[str, Means("The key, from `keys.list`.")]
ActionNote = Annotated[str, Means("A note for other reviewers.", *_FEEDBACK)]
RateLimit = Annotated[int, Means("Calls per second; the server's limit if left out.", *_number(1, limits.MAX_RATE))]
Reviewer = Annotated[Author, Means("Who performs the action.")]
Scopes = Annotated[
    Sequence[Scope], Means("What it may do: some of `read`, `write`, `feedback` and `admin`.", {"minItems": 1})
]
Subject = Annotated[str, Means("An ID that distinguishes visitors; only its hash is stored.")]
Targets = Annotated[
    Target | Mapping[str, Any] | Sequence[Target | Mapping[str, Any]],
    Means(
        "What may be rated: `Target` objects, or mappings with the same fields.",
        {"minItems": 1, "maxItems": limits.MAX_TARGETS},
        wire=list[Target],
    ),
]
