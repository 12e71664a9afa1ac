# Written by docs/stubs.py from heedful.api: `make docs`.
from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heedful.api.calls import Arguments, Call
from heedful.api.parameters import (
    PAGE,
    SAMPLE,
    UNCHANGED,
    ActionNote,
    AlertId,
    Answer,
    AnsweredFrom,
    AnyRating,
    Assignee,
    Audience,
    AuditedKind,
    Author,
    Boost,
    CandidateEmbedding,
    ChatMessageId,
    ChatSessionId,
    Comment,
    Confidence,
    ConnectorId,
    Content,
    Cursor,
    DatasetName,
    Depth,
    Draw,
    EntryContext,
    EventId,
    ExampleId,
    ExecutionId,
    ExpiresAt,
    ExpiresIn,
    Exploration,
    ExternalId,
    FactId,
    FactMetadata,
    FactSource,
    FeedbackCutoff,
    FeedbackId,
    FeedbackIds,
    FeedbackInfluence,
    FeedbackScore,
    FeedbackText,
    FixAction,
    Grace,
    IdempotencyKey,
    IfMatch,
    IsPositive,
    ItemId,
    ItemStatus,
    ItemTarget,
    JobId,
    JobsKind,
    JobsStatus,
    JudgedFacts,
    JudgedRecall,
    KeyId,
    Limit,
    ListLimit,
    LookupLimit,
    MaxAgeDays,
    MessageId,
    MetadataKeys,
    MinUsefulness,
    Moment,
    Name,
    NewestFirst,
    NewExamples,
    NewMessages,
    OnlyConnector,
    OnlyDataset,
    OnlySplit,
    OnToken,
    OtherFactId,
    OtherStore,
    Output,
    Parameters,
    Policies,
    Policy,
    Privileged,
    Progress,
    QaId,
    Query,
    Question,
    RatedDataset,
    RatedSince,
    RatedUntil,
    RateLimit,
    Reason,
    RecallCursor,
    RecallId,
    Remarks,
    ReportKey,
    ReportTable,
    ReportTarget,
    ReuseKind,
    Reviewer,
    Role,
    RowsDataset,
    RowsSince,
    RowsUntil,
    SaidSince,
    SaidUntil,
    SampleSize,
    Scale,
    Scopes,
    SearchMode,
    Seconds,
    SensitiveColumns,
    SessionFeedback,
    SessionId,
    SessionIds,
    Signals,
    Skip,
    SomeConnector,
    SqlAuthor,
    SqlQuery,
    Subject,
    Targets,
    TestShare,
    Text,
    Texts,
    TimeStep,
    TopK,
    TopN,
    TrainingLines,
    TrainingWhere,
    Url,
    UsedFacts,
    UsefulnessWeight,
    UserQuery,
    Weights,
    Where,
    WithVisitors,
)
from heedful.model import (
    DEFAULT_DATASET,
    DEFAULT_WEIGHT,
    Alert,
    AuditEntry,
    BulkDeletion,
    CacheCoverage,
    CacheLookup,
    CacheReport,
    ChatAnswer,
    ChatQuestion,
    ChatSession,
    ChatSql,
    Check,
    Connector,
    Coverage,
    Dataset,
    Detection,
    Digest,
    Entry,
    Execution,
    ExecutionFeedback,
    ExportFormat,
    ExportResult,
    ExportTable,
    Fact,
    FactHistory,
    FactReport,
    FactStats,
    Feedback,
    FeedbackList,
    FeedbackMetrics,
    FeedbackToken,
    ForgetResult,
    GoldenExample,
    Improvement,
    Job,
    Key,
    Message,
    Metadata,
    Mode,
    NewKey,
    Note,
    Page,
    PolicyChange,
    PolicyInUse,
    PolicyName,
    RatingResult,
    Recall,
    Receipt,
    RegressReport,
    RememberResult,
    ReplayReport,
    Retraction,
    ReviewCase,
    ReviewComparison,
    ReviewEvent,
    ReviewItem,
    Satisfaction,
    Scope,
    Session,
    SessionDeletion,
    SignalResult,
    SigningRotation,
    Supersession,
    Themes,
    TrainingExport,
    TrainingPage,
    Trend,
    UsefulnessStats,
)

AsyncRunner = Callable[[Call, Arguments], Awaitable[Any]]

class _Awaiting:
    def __init__(self, run: AsyncRunner) -> None: ...

Messages = list[Message]
ConnectorList = list[Connector]
Questions = list[ChatQuestion]
Examples = list[GoldenExample]
DEFAULT_SCOPES: tuple[Scope, ...] = ("read", "write", "feedback")
KeyList = list[Key]

class AsyncHeedful(_Awaiting):
    sessions: AsyncSessions
    insight: AsyncInsight
    connectors: AsyncConnectors
    executions: AsyncExecutions
    feedback: AsyncFeedbackService
    chat: AsyncChat
    chat_sessions: AsyncChatSessions
    golden_examples: AsyncGoldenExamples
    review: AsyncReview
    keys: AsyncKeys
    jobs: AsyncJobs

    def __init__(self, run: AsyncRunner, closing: Callable[[], Awaitable[None]], display_name: str) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def close(self) -> None: ...
    async def remember(
        self,
        texts: Texts,
        *,
        dataset: DatasetName = DEFAULT_DATASET,
        metadata: FactMetadata | None = None,
        source: FactSource | None = None,
        expires_at: ExpiresAt | None = None,
        self_improvement: bool = False,
        progress: Progress | None = None,
    ) -> RememberResult:
        """Stores facts: a text, many texts, or files and folders given as `Path`; a `Document` is one that was
        read elsewhere.

        Long texts are split. A text with the same source and metadata as one that is there is not stored twice. A
        file replaces what it said when it was remembered before. Files that can't be read are in `errors`.
        From `expires_at` on, a time with a zone, they are not recalled. A fact that is there already takes this end, or
        has none any more. With `self_improvement`, `improve` runs in the background afterwards.

        `conflicts` are existing facts about the same thing with another number, date or name. Nothing is done about
        them: they are in the review queue, and `supersede` replaces one of the two.
        """

    async def recall(
        self,
        query: Query,
        *,
        dataset: DatasetName = DEFAULT_DATASET,
        top_k: TopK = 10,
        mode: SearchMode = "hybrid",
        where: Where | None = None,
        boost_by_usefulness: Boost | None = None,
        usefulness_weight: UsefulnessWeight = DEFAULT_WEIGHT,
        feedback_influence: FeedbackInfluence | None = None,
        min_usefulness: MinUsefulness = 0.0,
        policy: Policy | None = None,
        exploration: Exploration = 0.0,
        seed: int | None = None,
        explain: bool = False,
        session_id: SessionId | None = None,
        answer: bool = False,
        on_token: OnToken | None = None,
        external_id: ExternalId | None = None,
        cursor: RecallCursor | None = None,
    ) -> Recall:
        """Finds the facts that answer a query, best first.

        Left out, `boost_by_usefulness` follows the policy of the dataset or project, which is `adaptive` where none was
        set: feedback on similar queries moves a fact as far as its evidence goes, and without any, facts rank by
        relevance. With `True`, or a weight in place of `usefulness_weight`, and where no policy was set, `score =
        (1 - usefulness_weight) × relevance + usefulness_weight × usefulness`. With `False`, relevance alone counts.

        Facts below `min_usefulness` are left out. `policy` chooses the rule of this call. With the chance of
        `exploration`, a fact that nobody has judged gets the last place, drawn with `seed`. `where` filters by
        metadata. `explain` adds the reasons. `feedback_influence` is another name of the weight: above 0, it is that of
        the boost, and 0 turns the boost off.

        With `answer`, the result has one: written by the language model if there is one, else made of the sentences
        that answer; `on_token` gets its parts as they come. With a `session_id` it always has, and question and answer
        are kept as an entry of that session under its `qa_id`.

        With an `external_id`, one of your own such as that of a run or a trace, feedback may name that in place of the
        `recall_id`, and of the `qa_id`. The same recall with it again returns what the first one showed.

        Its `next_cursor`, as `cursor` of the same recall, gets the next `top_k` facts: each page is a separate recall,
        with its own receipt and ranks, and shows nothing that a page before it showed.
        """

    async def improve(self, dataset: OnlyDataset | None = None, session_ids: SessionIds | None = None) -> Improvement:
        """Turns the feedback of sessions (of all, if none are named) into better recall of a dataset, or of all.

        Feedback is processed a few seconds after it was given, unless `auto_improve` is off: call this to wait for it.

        Ratings become signals about the facts that an answer used. Well-rated answers, and comments that correct a
        fact, become facts. With a language model, it also reads facts for what they mention, some in each call.
        Running it again changes nothing; changing or deleting a rating undoes what it did.
        """

    async def signal(
        self, signals: Signals, *, dataset: DatasetName | None = None, idempotency_key: IdempotencyKey | None = None
    ) -> SignalResult:
        """Says how useful facts were for a query.

        Facts that are not there, or not in the `dataset` if one is given, are listed in `errors` with their index, and
        the others are applied; if there are no others, the call raises NotFound. A call that is sent again with its
        `idempotency_key` counts once and returns the first result. So does each signal with its `external_id`, which
        `retract` takes, too.
        """

    async def signal_recall(
        self,
        recall_id: JudgedRecall,
        *,
        used: JudgedFacts = (),
        helpful: JudgedFacts = (),
        not_helpful: JudgedFacts = (),
        answer: Answer | None = None,
        confidence: Confidence = 1.0,
        author: Author | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> SignalResult:
        """Says how useful the facts of one recall were; those shown and never named are `ignored`.

        If only facts that were `not_helpful` are named, nothing is said of the others. With the `answer` that was made
        from them, those not named are what `detect` says of them, or nothing.
        Facts are named by id, by rank (a whole number), or by their hits. It may come days later. Saying the same of a
        fact again counts once, and a fact that is named later is no longer `ignored`.

        Named facts that the recall did not show are listed in `errors` with their index in `used`, `helpful` and
        `not_helpful`, one after another, and nothing is said of facts that were not named. If no named fact was shown,
        the call raises NotFound.
        """

    async def detect(self, answer: Answer, recall_id: RecallId) -> list[Detection]:
        """Which of the facts that a recall showed did an answer use? Works without a language model.

        Each fact is `used` or `ignored` with a confidence and reasons, or None where it is unclear.
        """

    async def retract(self, event_id: EventId, *, author: Author | None = None) -> Retraction:
        """Undoes a signal, a feedback, a supersession or what a reviewer did: everything becomes as if it had never
        been."""

    async def supersede(
        self, fact_id: FactId, text: Text | None = None, *, by: OtherFactId | None = None, author: Author | None = None
    ) -> Supersession:
        """Corrects a fact: from now on `text`, or the fact `by`, is recalled in its place.

        The old fact stays in history; `retract` of the event brings it back.
        """

    async def policy(self, *, dataset: DatasetName | None = None) -> PolicyInUse:
        """Returns the policy that recalls follow, and why: the choice for the dataset, else for the project, else the
        default.

        Without any choice, recalls use `adaptive`, and those with `boost_by_usefulness` or a weight `documented`.
        """

    async def set_policy(self, policy: PolicyName | None, *, dataset: DatasetName | None = None) -> PolicyChange:
        """Chooses the rule for recalls of a dataset, or of the whole project; None takes the choice back.

        `retract` of the event brings the earlier choice back.
        """

    async def forget(
        self,
        fact_ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        dataset: DatasetName | None = None,
        author: str | None = None,
    ) -> ForgetResult:
        """Removes facts, or all facts of a source, or a whole dataset, with everything derived from them.

        Facts that they superseded are recalled again: `restored` names them. An unknown id raises NotFound, and
        nothing is forgotten.

        Or erases the `author` of exactly this name from the project: a pseudonym takes the place of the name, their
        words go, and every score stays what it is. Doing it again changes nothing.
        """

    async def receipt(self, recall_id: RecallId) -> Receipt:
        """Returns the facts that one recall showed, with ranks and scores."""

    async def fact_stats(self, fact_id: FactId) -> FactStats:
        """The usefulness of one fact: over all, by context, and the signals behind it."""

    async def fact_history(self, fact_id: FactId) -> FactHistory:
        """How the score of one fact came to be, signal by signal, and what it superseded or was superseded by.

        It lists the newest 1,000 signals; `event_count` says how many there are."""

    async def usefulness_stats(self, dataset: DatasetName = DEFAULT_DATASET) -> UsefulnessStats:
        """How useful the facts of a dataset are: totals, the distribution, the most and least useful, and those that
        help in one context and hurt in another."""

    async def replay(
        self,
        *,
        dataset: DatasetName = DEFAULT_DATASET,
        policies: Policies | None = None,
        weights: Weights | None = None,
        since: Moment | None = None,
        seed: int = 0,
    ) -> ReplayReport:
        """Tries other policies and weights on the recalls that people rated.

        The facts that each recall showed are ordered again by the opinions recorded before it, and judged by its own
        `helpful` and `not_helpful` ratings. Both policies and the weights 0.1 to 0.9 are tried if none are given.
        Nothing is changed.
        """

    async def regress(
        self,
        *,
        dataset: OnlyDataset | None = None,
        since: Moment | None = None,
        policy: PolicyName | None = None,
        usefulness_weight: float | None = None,
        mode: Mode | None = None,
        embedding: CandidateEmbedding | None = None,
        as_of: Moment | None = None,
        against: OtherStore | None = None,
        answers: bool = False,
        executions: bool = True,
        own_votes: bool = False,
        sample: SampleSize = SAMPLE,
        top_k: Depth = 10,
        deadline: Seconds | None = None,
        seed: Draw = 0,
        progress: Progress | None = None,
    ) -> RegressReport:
        """Asks what people rated well again, of the store with a change, and says what would get worse.

        A rated question is one with facts that were called helpful, or an answer with 4, 5 or up; with SQL that was
        rated as right, it is run again. Ratings of visitors don't count, nor those that were retracted. Every change
        that is given is tried, all at once. Without any, answers and rows are compared with those that were rated.

        A question is asked as if nobody had rated it or another phrasing of it: its own ratings would put the facts
        that helped first, whatever is changed. `own_votes` lets them count, as they do for those who ask it.

        Facts that were superseded, forgotten or have expired are listed apart. Nothing is stored, not even receipts.
        With `embedding` or `as_of`, the facts are copied to a temporary file for as long as it takes.
        """

    async def fact(self, fact_id: FactId) -> Fact:
        """One fact: its text, its metadata, and its position."""

    async def facts(
        self,
        *,
        dataset: DatasetName = DEFAULT_DATASET,
        source: str | None = None,
        where: Where | None = None,
        cursor: Cursor | None = None,
        limit: Limit = PAGE,
        newest_first: NewestFirst = False,
    ) -> Page[Fact]:
        """The facts of a dataset, or of one source, in the order in which they were stored; `where` filters by
        metadata, as in `recall`."""

    async def create_dataset(self, dataset: DatasetName, *, metadata: Metadata | None = None) -> Dataset:
        """Makes a dataset before it has facts. One that is there stays as it is, with `metadata` merged into it."""

    async def get_dataset(self, dataset: DatasetName) -> Dataset:
        """One dataset: its metadata, and how many facts it has."""

    async def datasets(self) -> list[str]:
        """The names of the project's datasets that have facts or were made with `create_dataset`, oldest first."""

    async def check_facts(self, *, dataset: DatasetName = DEFAULT_DATASET, limit: Limit = 20) -> FactReport:
        """Looks for duplicates, near-duplicates, and facts that were never recalled, always ignored or have expired;
        says what to do about each. Nothing is changed."""

    async def doctor(self, *, repair: bool = True) -> list[Check]:
        """Checks the store, the model, the scores, the indexes and the sessions; repairs what can be rebuilt."""

    async def audit(
        self,
        *,
        kind: AuditedKind | None = None,
        since: Moment | None = None,
        cursor: Cursor | None = None,
        limit: Limit = PAGE,
    ) -> Page[AuditEntry]:
        """Who was refused what in this project, over HTTP, and what admins did, the newest first."""

class AsyncSessions(_Awaiting):
    async def create(self, session_id: SessionId | None = None, *, metadata: Metadata | None = None) -> Session:
        """Makes a session, with an id of its own if none is given. One that is there is returned as it is, with
        `metadata` merged into it."""

    async def get(self, session_id: SessionId) -> Session:
        """One session."""

    async def exists(self, session_id: SessionId) -> bool:
        """Whether there is such a session."""

    async def list(
        self, *, where: Where | None = None, cursor: Cursor | None = None, limit: Limit = PAGE
    ) -> Page[Session]:
        """Sessions, the newest first; `where` compares metadata, as in `recall`."""

    async def delete(self, session_id: SessionId) -> SessionDeletion:
        """Removes a session with its messages, entries and feedback, and all that was learnt from it.

        A long session is removed in several steps, feedback first. If the process dies meanwhile, the session still has
        the rest: delete it again."""

    async def add_message(
        self, session_id: SessionId, role: Role, content: Content, *, at: Moment | None = None
    ) -> Message:
        """Adds one message; the session is made if it is new."""

    async def add_messages(self, session_id: SessionId, messages: NewMessages) -> Messages:
        """Adds many messages at once, in order; mappings have `role`, `content` and, if known, `at`."""

    async def messages(
        self,
        session_id: SessionId,
        *,
        cursor: Cursor | None = None,
        limit: Limit = PAGE,
        newest_first: NewestFirst = False,
    ) -> Page[Message]:
        """The messages of a session, in the order they were added."""

    async def update_message(self, session_id: SessionId, message_id: MessageId, content: Content) -> Message:
        """Changes what a message says; its place, its time and opinions about it stay. An unknown one is `NotFound`."""

    async def delete_message(self, session_id: SessionId, message_id: MessageId) -> bool:
        """Removes a message; opinions about it stay in the ledger. An unknown one is `NotFound`."""

    async def get_metadata(self, session_id: SessionId) -> Metadata:
        """The metadata of a session."""

    async def update_metadata(
        self, session_id: SessionId, metadata: Metadata, *, if_match: IfMatch | None = None
    ) -> Metadata:
        """Merges metadata by key and returns the result; a dotted key reaches inside.

        With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
        """

    async def delete_metadata(
        self, session_id: SessionId, keys: MetadataKeys, *, if_match: IfMatch | None = None
    ) -> Metadata:
        """Removes keys from the metadata and returns the rest; a dotted key reaches inside.

        With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
        """

    async def add_entry(
        self,
        session_id: SessionId,
        question: Question,
        answer: Answer,
        *,
        context: EntryContext | None = None,
        recall_id: RecallId | None = None,
        used: UsedFacts | None = None,
        external_id: ExternalId | None = None,
    ) -> Entry:
        """Keeps an answer that you made yourself; the session is made if it is new.

        With the `recall_id` of the facts it was made from, ratings of it improve recall. `used` names those it used, or
        gives each a weight; if left out, `improve` detects them from the answer.

        `external_id` is an id of your own, such as that of a run, a trace or a message, which no other entry of the
        project has. Feedback may name it in place of the `qa_id`. The same entry with it again is stored once.
        """

    async def entry(self, session_id: SessionId, qa_id: QaId) -> Entry:
        """One question and answer."""

    async def entries(
        self,
        session_id: SessionId,
        *,
        cursor: Cursor | None = None,
        limit: Limit = PAGE,
        newest_first: NewestFirst = False,
    ) -> Page[Entry]:
        """The questions and answers of a session, in order."""

    async def add_feedback(
        self,
        session_id: SessionId,
        qa_id: QaId,
        feedback_text: FeedbackText | None = None,
        feedback_score: FeedbackScore | None = None,
        *,
        author: Author | None = None,
    ) -> bool:
        """Rates an answer from 1 to 5, says something of it, or both; False if there is no such entry.

        What the same author said of it before is replaced.
        """

    async def rate(
        self,
        external_id: ExternalId,
        rating: AnyRating | None = None,
        *,
        comment: Comment | None = None,
        scale: Scale | None = None,
        author: Author | None = None,
    ) -> RatingResult:
        """Rates the answer with this `external_id` or `qa_id`, in whichever session it is, comments on it, or both.

        The `status` of the result is `stored`, or `waiting` if there is no such answer yet: the rating then waits for
        it, a day by default (the setting `waiting_days`), and is stored when the answer is. What the same author said
        of it before is replaced.

        `rating` is a boolean, a word such as "up" or "VERY_NEGATIVE", or a number; `scale` has the worst and the best
        number, where the number alone doesn't say it: (0, 1), (1, 5), (-1, 1). See `normalise_rating`.
        """

    async def delete_feedback(self, session_id: SessionId, qa_id: QaId, *, author: Author | None = None) -> bool:
        """Clears the rating and the text of an answer, or those of one author; False if there is nothing to clear.

        Given the external id of an answer that is not there yet, the rating of this author that waits for it goes.
        """

    async def add_session_feedback(
        self,
        session_id: SessionId,
        feedback: SessionFeedback,
        *,
        author: Author | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> Feedback | None:
        """Rates a whole session: `{"rating": "up" | "down" | None, "comment": "…"}`.

        An author has one opinion, the latest; without an author each is kept. None if a hook kept it back.
        """

    async def feedbacks(
        self,
        session_id: SessionId,
        *,
        cursor: Cursor | None = None,
        limit: Limit = PAGE,
        newest_first: NewestFirst = False,
    ) -> Page[Feedback]:
        """The active feedback about a session as a whole."""

    async def feedback_metrics(self) -> FeedbackMetrics:
        """All active feedback of the project, counted by the store."""

    async def alerts(self, *, pending: bool = False, cursor: Cursor | None = None, limit: Limit = PAGE) -> Page[Alert]:
        """Alerts, the newest first; with `pending`, those that are still to be delivered."""

    async def deliver_alerts(self) -> int:
        """Delivers what is due now, and returns how many were; a background thread does it otherwise."""

    async def discard_alert(self, alert_id: AlertId) -> Alert:
        """Gives up an alert that can't be delivered."""

class AsyncInsight(_Awaiting):
    async def satisfaction(
        self,
        by: ReportKey,
        *,
        since: SaidSince | None = None,
        until: SaidUntil | None = None,
        dataset: AnsweredFrom | None = None,
        target_type: ReportTarget | None = None,
    ) -> Satisfaction:
        """Satisfaction by a key of the sessions' metadata, such as `variant`, or by `dataset`, `model`, `source`,
        `author_kind` or `target_type`; `metadata.model` is the key of that name.

        Counts up, down and neutral opinions about sessions, answers, messages and executions (of answers, 4 and 5 are
        up, 1 and 2 are down), each share with its 95% interval, the probability that one value is better than another,
        and whether that is known well enough to stop. With `target_type`, only opinions about such things; of a `fact`,
        `helpful` is up and `not_helpful` is down.
        """

    async def trend(
        self,
        *,
        over: TimeStep = "day",
        by: ReportKey | None = None,
        since: SaidSince | None = None,
        until: SaidUntil | None = None,
        dataset: AnsweredFrom | None = None,
        target_type: ReportTarget | None = None,
    ) -> Trend:
        """Satisfaction over time, by day or week, with intervals and counts; `by` and `target_type` as in
        `satisfaction`."""

    async def coverage(
        self, *, since: Moment | None = None, until: Moment | None = None, dataset: DatasetName | None = None
    ) -> Coverage:
        """How much of what was shown in this time was rated until now: answers, executions and recalls."""

    async def cache(
        self, *, since: Moment | None = None, until: Moment | None = None, limit: Limit = 20
    ) -> CacheReport:
        """Counts the decisions of the execution cache by reason, and lists the newest."""

    async def themes(
        self, *, since: SaidSince | None = None, until: SaidUntil | None = None, dataset: AnsweredFrom | None = None
    ) -> Themes:
        """Groups negative comments that mean the same, under their own words. No language model is
        needed. The newest 500 are read."""

    async def notes(
        self,
        *,
        since: Moment | None = None,
        until: SaidUntil | None = None,
        dataset: AnsweredFrom | None = None,
        by: ReportKey | None = None,
    ) -> list[Note]:
        """Lists changes in the last four weeks, or since a time, that chance does not explain, with the arithmetic.

        Down-votes are looked at in all, by dataset, by model, by what they are about, by the themes of comments, and by
        keys of the sessions' metadata: those that have up to 20 values (the five with the fewest, because whatever is
        looked at makes a change harder to distinguish from chance), and the one that `by` names. A change of policy
        after which ratings got worse comes first, with its event.
        """

    async def digest(self, *, since: Moment | None = None, until: Moment | None = None) -> Digest:
        """Summarizes the feedback of the last seven days, or of a period, compared with the period before."""

    async def dictionary(self) -> list[ExportTable]:
        """Lists the tables that can be exported, with the types and meanings of their columns."""

    async def rows(
        self,
        table: ReportTable,
        *,
        since: RowsSince | None = None,
        until: RowsUntil | None = None,
        dataset: RowsDataset | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 1000,
    ) -> Page[dict[str, Any]]:
        """Rows of a table of the `dictionary`, in the order in which they came. Times are texts in ISO 8601, in UTC.

        With a dataset, a page may have fewer rows than `limit`, and there are more as long as it has a cursor.
        """

    async def export(
        self,
        table: ReportTable,
        path: Output,
        *,
        format: ExportFormat | None = None,
        since: RowsSince | None = None,
        until: RowsUntil | None = None,
        dataset: RowsDataset | None = None,
        overwrite: bool = False,
    ) -> ExportResult:
        """Writes a table to a file where the caller is, as `csv`, `jsonl` or `parquet`, by its name if left out.

        It is there when it is whole. Instead of a name, it may be something that bytes can be written to. In CSV, texts
        that a spreadsheet would take for a formula get a leading apostrophe.
        """

    async def training(
        self,
        format: TrainingLines,
        *,
        dataset: RatedDataset | None = None,
        where: TrainingWhere | None = None,
        since: RatedSince | None = None,
        until: RatedUntil | None = None,
        visitors: WithVisitors = False,
        test_share: TestShare = 0.1,
        split: OnlySplit | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 1000,
    ) -> TrainingPage:
        """Lines of training data, made from what people rated: for `kto`, `dpo`, `sft`, `triplets` (embedding models
        and rerankers), `text2sql` or `evals`.

        Each author has one vote about the same words; the larger side decides, and `agreement` is its share. Opinions
        that were retracted don't count, nor do those of erased people. What rests on superseded or forgotten facts is
        not taught as right. All phrasings of one need are on one side of the split. The same ledger gives the same
        lines; if ratings change between two pages, the second is refused.
        """

    async def export_training(
        self,
        path: Output,
        format: TrainingLines,
        *,
        dataset: RatedDataset | None = None,
        where: TrainingWhere | None = None,
        since: RatedSince | None = None,
        until: RatedUntil | None = None,
        visitors: WithVisitors = False,
        test_share: TestShare = 0.1,
        split: OnlySplit | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> TrainingExport:
        """Writes training data to a file where the caller is, as lines of JSON, with a card beside it (`FILE.md`) that
        says how they were made; see `training`.

        Both are there when they are whole. Instead of a name, it may be something that bytes can be written to.
        """

class AsyncConnectors(_Awaiting):
    async def create(
        self,
        name: Name,
        url: Url,
        *,
        role: Name | None = None,
        privileged: Privileged = False,
        sensitive_columns: SensitiveColumns = (),
    ) -> Connector:
        """Adds a database by its SQLAlchemy URL and reads its schema; nothing is kept if that fails.

        Secrets in the URL are references such as `${DB_PASSWORD}`, or are encrypted with HEEDFUL_SECRET_KEY. `role` is
        the role that PostgreSQL runs queries as. Its login is refused if it may do more than read; `privileged` accepts
        it. On a server, where it may lead, which variables it may refer to and what is privileged is for the operator
        to say. Values of `sensitive_columns`, each as `table.column`, are not read to recognise them in questions.
        """

    async def get(self, connector_id: ConnectorId) -> Connector:
        """One connector."""

    async def list(self) -> ConnectorList:
        """All of them, in the order they were added."""

    async def refresh(
        self, connector_id: ConnectorId, *, sensitive_columns: SensitiveColumns | None = None
    ) -> Connector:
        """Reads the schema again; what was proven for another schema is no longer used. `sensitive_columns` replaces
        the list of columns whose values are not read to recognise them in questions; empty, it allows all."""

    async def confirm(self, connector_id: ConnectorId, *, privileged: Privileged = False) -> Connector:
        """Switches on a connector that was imported, after a look at its URL; the same rules hold as for `create`."""

    async def schema(self, connector_id: ConnectorId) -> Metadata:
        """Tables and columns, as they were read last."""

    async def delete(self, connector_id: ConnectorId) -> bool:
        """Removes a connector with its executions and golden examples."""

class AsyncExecutions(_Awaiting):
    async def execute_query(
        self,
        sql_query: SqlQuery,
        *,
        connector_id: SomeConnector | None = None,
        question: Question | None = None,
        parameters: Parameters | None = None,
        chat_message_id: ChatMessageId | None = None,
        external_id: ExternalId | None = None,
        audience: Audience | None = None,
    ) -> Execution:
        """Runs one statement that only reads, and keeps it with its result.

        With the `question` that it answers, it can be found by the cache. `parameters` fill `:name` places.

        `external_id` is an id of your own, such as that of a run or a span, which no other execution of the project
        has. Feedback may name it in place of the `execution_id`. The same query with it again runs once.

        `audience` is whom it may be reused for, such as a user or a tenant; without one, that of the chat session, or
        everybody.
        """

    async def execute_from_chat(
        self, chat_message_id: ChatMessageId, *, connector_id: SomeConnector | None = None
    ) -> Execution:
        """Runs the SQL that a message of a chat has, for the audience of its chat session."""

    async def get(self, execution_id: ExecutionId) -> Execution:
        """One execution with its result."""

    async def list(
        self, *, connector_id: OnlyConnector | None = None, cursor: Cursor | None = None, limit: Limit = PAGE
    ) -> Page[Execution]:
        """Executions, the newest first."""

    async def delete(self, execution_id: ExecutionId) -> bool:
        """Removes an execution with its result; SQL that was wrong stays blocked. An unknown one is `NotFound`."""

class AsyncFeedbackService(_Awaiting):
    async def create(
        self,
        *,
        is_positive: IsPositive,
        feedback: Reason | None = None,
        execution_id: ExecutionId | None = None,
        chat_message_id: ChatMessageId | None = None,
        author: Author | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> ExecutionFeedback:
        """Says whether an execution, or the message of a chat, was right.

        Positive feedback lets an execution be used again; negative feedback keeps it, and all SQL like it, from that
        until it is retracted. An author has one opinion of a thing, the latest.
        """

    async def create_positive(
        self,
        *,
        feedback_text: Reason | None = None,
        execution_id: ExecutionId | None = None,
        chat_message_id: ChatMessageId | None = None,
        author: Author | None = None,
    ) -> ExecutionFeedback:
        """Says that an execution was right."""

    async def create_negative(
        self,
        *,
        feedback: Reason | None = None,
        execution_id: ExecutionId | None = None,
        chat_message_id: ChatMessageId | None = None,
        author: Author | None = None,
    ) -> ExecutionFeedback:
        """Says that an execution was wrong, and why."""

    async def get(self, feedback_id: FeedbackId) -> ExecutionFeedback:
        """One feedback."""

    async def list(self, *, skip: Skip = 0, limit: ListLimit = PAGE, search: str | None = None) -> FeedbackList:
        """Feedbacks, the newest first; `search` finds those whose text has it, in any case."""

    async def list_positive(self, *, skip: Skip = 0, limit: ListLimit = PAGE) -> FeedbackList:
        """Those that say something was right."""

    async def list_negative(self, *, skip: Skip = 0, limit: ListLimit = PAGE) -> FeedbackList:
        """Those that say something was wrong."""

    async def get_feedback_for_message(
        self, chat_message_id: ChatMessageId, *, skip: Skip = 0, limit: ListLimit = PAGE
    ) -> FeedbackList:
        """Lists the feedback about one message."""

    async def update(
        self,
        feedback_id: FeedbackId,
        *,
        feedback: Reason | None = UNCHANGED,
        is_positive: IsPositive = UNCHANGED,
        if_match: IfMatch | None = None,
    ) -> ExecutionFeedback:
        """Changes what is given and leaves the rest; `feedback=None` clears the text.

        With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
        """

    async def delete(self, feedback_id: FeedbackId) -> bool:
        """Deletes a feedback with its text; an unknown one is `NotFound`."""

    async def bulk_delete(self, feedback_ids: FeedbackIds) -> BulkDeletion:
        """Deletes many feedbacks; those that are not there are in `failed_ids`."""

class AsyncChat(_Awaiting):
    async def chat_to_sql(
        self,
        chat_session_id: ChatSessionId,
        query: Query,
        *,
        connector_id: SomeConnector | None = None,
        feedback_cutoff: FeedbackCutoff = 0.5,
        remarks: Remarks = (),
        author: SqlAuthor | None = None,
    ) -> ChatSql:
        """The SQL for a question: proven if it can be, else written by the language model.

        What is proven for the audience of the chat session comes first, then what is proven for everybody. SQL without
        an audience that is about one person ("my orders", or a value that the question doesn't name) is used in the
        chat session where it ran, or else for the `author` who proved it.

        The model reads the facts of the datasets `contexts` and `schema_metadata` that are nearest to the question, and
        `remarks` before them.

        `feedback_cutoff` in [0, 1] says how reliable a rated execution must be to be an example for the model: the
        share of positive opinions, with one of each kind added. Higher is stricter.
        """

    async def chat_to_answer(
        self,
        chat_session_id: ChatSessionId,
        query: Query,
        *,
        connector_id: SomeConnector | None = None,
        feedback_cutoff: FeedbackCutoff = 0.5,
        remarks: Remarks = (),
        author: SqlAuthor | None = None,
    ) -> ChatAnswer:
        """The SQL for a question, run now, and what it gave in words.

        If nothing proven answers it and it has exactly one likely reading, that is its `suggestion`; without a language
        model, it is all there is, and nothing runs before `confirm_suggestion`.
        """

    async def execution_cache_lookup(
        self,
        user_query: UserQuery,
        *,
        connector_id: SomeConnector | None = None,
        max_age_days: MaxAgeDays = 30,
        similarity_threshold: float = 0.65,
        limit: LookupLimit = 50,
        top_n: TopN = 5,
        only_positive_feedback: bool = False,
        reuse: ReuseKind = "sql",
        audience: Audience | None = None,
        author: SqlAuthor | None = None,
    ) -> CacheLookup:
        """Looks for executions that answer a question, and says of each whether it may be used, and why.

        Similarity finds candidates; it never decides. The first match that may be used is run now; with
        `reuse="result"`, its stored result is taken instead, as old as it is.

        With an `audience`, what is proven for it comes first, then what is proven for everybody; what is proven for
        another audience does not exist. SQL without an audience that is about one person ("my orders", or a value that
        the question doesn't name) is used for the `author` who proved it.
        """

    async def confirm_suggestion(
        self,
        user_query: UserQuery,
        execution_id: ExecutionId,
        *,
        connector_id: SomeConnector | None = None,
        author: Author | None = None,
        audience: Audience | None = None,
    ) -> Execution:
        """Says that what was suggested for a question is what it means, and runs it.

        `execution_id` is that of the suggestion. The run is rated as right by the author, so it is proven for the
        question from then on; retract the feedback to undo it. Where that isn't suggested any more, it is a `Conflict`.
        """

    async def execution_cache_coverage(
        self, *, connector_id: SomeConnector | None = None, max_age_days: MaxAgeDays = 30, limit: LookupLimit = 10
    ) -> CacheCoverage:
        """Which kinds of question are proven on a connector, which were asked and are refused, by gate, and which
        question to prove next: the one whose proof would answer most of what is refused.

        `limit` is how many of each are listed.
        """

class AsyncChatSessions(_Awaiting):
    async def create(self, *, name: Name | None = None, audience: Audience | None = None) -> ChatSession:
        """Begins a conversation; what runs in it is for its `audience`, and uses nothing that is for another."""

    async def get(self, chat_session_id: ChatSessionId) -> ChatSession:
        """One chat session."""

    async def list(self, *, cursor: Cursor | None = None, limit: Limit = PAGE) -> Page[ChatSession]:
        """Chat sessions, the newest first."""

    async def delete(self, chat_session_id: ChatSessionId) -> bool:
        """Removes a conversation with its messages; executions stay, as they belong to their connector."""

    async def get_questions(self, chat_session_id: ChatSessionId) -> Questions:
        """Lists the questions of a chat, oldest first, with their SQL."""

class AsyncGoldenExamples(_Awaiting):
    async def create(
        self,
        question: Question,
        sql_query: SqlQuery,
        *,
        connector_id: SomeConnector | None = None,
        audience: Audience | None = None,
    ) -> GoldenExample:
        """Adds an example, for everybody or for one `audience`; one for the same question, connector and audience is a
        `Conflict`."""

    async def promote(
        self, execution_id: ExecutionId, *, question: Question | None = None, audience: Audience | None = None
    ) -> GoldenExample:
        """Makes an example of an execution that people say was right, and nobody that it was wrong. It is for the
        audience of the execution, or for the one that is given. A question in the first person whose SQL has a value
        that it doesn't name needs one."""

    async def get(self, example_id: ExampleId) -> GoldenExample:
        """One example."""

    async def list(
        self, *, connector_id: OnlyConnector | None = None, skip: Skip = 0, limit: ListLimit = PAGE
    ) -> Examples:
        """Examples, the newest first."""

    async def update(
        self,
        example_id: ExampleId,
        *,
        question: Question = UNCHANGED,
        sql_query: SqlQuery = UNCHANGED,
        audience: Audience | None = UNCHANGED,
        if_match: IfMatch | None = None,
    ) -> GoldenExample:
        """Changes what is given and leaves the rest; `audience=None` makes it an example for everybody.

        With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
        """

    async def delete(self, example_id: ExampleId) -> bool:
        """Removes an example; an unknown one is `NotFound`."""

    async def import_file(self, path: str | Path, *, connector_id: SomeConnector | None = None) -> Examples:
        """Adds examples from a .csv or .jsonl file with `question`, `sql_query` and perhaps `audience`, all or none.

        A question that has an example already gets the new SQL.
        """

    async def import_examples(self, examples: NewExamples, *, connector_id: SomeConnector | None = None) -> Examples:
        """Adds examples, mappings with `question`, `sql_query` and perhaps `audience`, all or none.

        A question that has an example already gets the new SQL.
        """

class AsyncReview(_Awaiting):
    async def list(
        self,
        *,
        status: ItemStatus | None = "open",
        assignee: str | None = None,
        dataset: DatasetName | None = None,
        target_type: ItemTarget | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 50,
    ) -> Page[ReviewItem]:
        """Items, those with the most opinions first, then the newest; `status=None` lists all."""

    async def get(self, item_id: ItemId) -> ReviewCase:
        """An item with the answer, the evidence, all opinions, what was done, and what can be done."""

    async def assign(
        self,
        item_id: ItemId,
        assignee: Assignee | None,
        *,
        author: Reviewer | None = None,
        if_match: IfMatch | None = None,
    ) -> ReviewItem:
        """Says who sees to an item; None for nobody."""

    async def resolve(
        self,
        item_id: ItemId,
        *,
        note: ActionNote | None = None,
        author: Reviewer | None = None,
        if_match: IfMatch | None = None,
    ) -> ReviewItem:
        """Says that an item is fixed. A negative opinion that is given afterwards opens it again.

        Of an item that you resolved before, another note is kept beside the first.
        """

    async def dismiss(
        self,
        item_id: ItemId,
        *,
        note: ActionNote | None = None,
        author: Reviewer | None = None,
        if_match: IfMatch | None = None,
    ) -> ReviewItem:
        """Says that there is nothing to fix, even if others complain again."""

    async def reopen(
        self,
        item_id: ItemId,
        *,
        note: ActionNote | None = None,
        author: Reviewer | None = None,
        if_match: IfMatch | None = None,
    ) -> ReviewItem:
        """Says that an item is work to do after all."""

    async def fix(
        self,
        item_id: ItemId,
        action: FixAction,
        *,
        fact_id: FactId | None = None,
        text: Text | None = None,
        by: OtherFactId | None = None,
        event_id: EventId | None = None,
        execution_id: ExecutionId | None = None,
        question: Question | None = None,
        sql_query: SqlQuery | None = None,
        connector_id: ConnectorId | None = None,
        note: ActionNote | None = None,
        author: Author | None = None,
        if_match: IfMatch | None = None,
    ) -> ReviewEvent:
        """Does something about an item; `undo` reverts it.

        `supersede` replaces the fact `fact_id` with `text`, or with the fact `by`. `retract` retracts the opinion
        `event_id`. `teach` makes a fact of the correction in it, or of `text`, since a visitor's word alone teaches
        nothing. `block` says that the execution `execution_id` is wrong, with `note` as the reason. `promote` makes a
        golden example of it, of its own `question` or another; if nobody says that it is right, the reviewer does.
        `add_example` adds the golden example `sql_query`, for the item's question and connector or for others. The item
        stays open until it is resolved.
        """

    async def ask_again(self, item_id: ItemId) -> ReviewComparison:
        """Asks an item's question again, and compares the answer now with the disliked one. Nothing is stored.

        Feedback ranks the facts, even if it did not before. For an execution, it is the SQL that the cache would run.
        """

    async def undo(self, event_id: EventId, *, author: Author | None = None) -> ReviewEvent:
        """Undoes an action on an item with everything it did. Doing it again changes nothing."""

class AsyncKeys(_Awaiting):
    async def create(
        self, name: Name, *, scopes: Scopes = DEFAULT_SCOPES, rate_limit: RateLimit | None = None
    ) -> NewKey:
        """Makes a key. `scopes` are some of read, write, feedback and admin, which includes the others.

        `rate_limit` is how many calls a second it may make; what the server allows, if left out.
        """

    async def list(self) -> KeyList:
        """All keys of the project, oldest first, also those that were revoked."""

    async def revoke(self, key_id: KeyId) -> Key:
        """Makes a key useless, within a second on servers that run."""

    async def create_token(
        self,
        targets: Targets,
        *,
        author: Author | None = None,
        subject: Subject | None = None,
        expires_in: ExpiresIn = 600,
    ) -> FeedbackToken:
        """Signs a token with which a browser may rate the things named, for `expires_in` seconds, and nothing else.

        The feedback is by `author`, somebody you can name. Without one it is by a visitor: it
        is counted and reviewed, but teaches no fact, moves no rank and blocks no SQL. `subject` tells such visitors
        apart, by the id of their visit for example, of which a hash is kept; those without one have one vote together.
        """

    async def rotate_signing(self, *, grace: Grace = 0) -> SigningRotation:
        """Makes a new secret to sign tokens and logins with, for the whole store.

        What was signed with the old one ends at once, or after `grace` seconds.
        """

class AsyncJobs(_Awaiting):
    async def improve(self, dataset: OnlyDataset | None = None, session_ids: SessionIds | None = None) -> Job:
        """Has `improve` run in the background; if a job waits to do the same, that one is returned."""

    async def list(
        self,
        *,
        status: JobsStatus | None = None,
        kind: JobsKind | None = None,
        cursor: Cursor | None = None,
        limit: Limit = PAGE,
    ) -> Page[Job]:
        """Jobs, the newest first. With the kind `deliver`, the alerts of the outbox, as jobs."""

    async def get(self, job_id: JobId) -> Job:
        """One job."""

    async def cancel(self, job_id: JobId) -> Job:
        """Has a job not done: at once if it waits, at its next step if it runs. What has ended stays as it is."""

    async def retry(self, job_id: JobId) -> Job:
        """Adds a job that does the same as one that failed or was cancelled."""
