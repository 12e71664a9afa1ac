"""Reads good ratings from the ledger: the facts that helped with a question, answers, and executions.

Each author has one vote about a thing, the last one they gave that was not retracted. Nothing is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, select

from heedful.api import checks
from heedful.ledger import events as ledger
from heedful.ledger.events import EFFECTIVE_TIME, IMPROVE, SIGNAL
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.proven_sql import TARGETS
from heedful.ledger.rating_signals import STRENGTH, EntryRow
from heedful.ledger.votes import RATINGS
from heedful.model import Rating
from heedful.sessions.session_store import Transaction
from heedful.sessions.space import SessionSpace
from heedful.storage import scopes
from heedful.storage.rows import batches, between, select_in
from heedful.storage.schema import events, executions, feedbacks, queries
from heedful.text.complaints import statement
from heedful.workspace import Workspace

RUN = 500  # Questions that are held at once.

SESSIONS = 10  # The same of sessions, each of which may have hundreds of answers.

MOST_OF_A_SHARE = 0.5
"""An answer rests on those of its facts whose share is at least this much of the largest."""

Author = str | None  # None is the program.


@dataclass(slots=True)
class Votes:
    """Who says that something is good, and who says that it is not."""

    by: dict[Author, tuple[int, bool]] = field(default_factory=dict)
    """When each author said so last, and whether that was good."""

    def add(self, author: Author, is_good: bool, at: int) -> None:
        """Counts a vote; of an author's, the latest is the one that counts, and of equally late ones the last."""
        if author not in self.by or at >= self.by[author][0]:
            self.by[author] = at, is_good

    def update(self, other: Votes) -> None:
        """Adds the votes of others about the same."""
        for author, (at, is_good) in other.by.items():
            self.add(author, is_good, at)

    @property
    def good(self) -> set[Author]:
        return {author for author, (_, is_good) in self.by.items() if is_good}

    @property
    def bad(self) -> set[Author]:
        return {author for author, (_, is_good) in self.by.items() if not is_good}

    @property
    def at(self) -> int:
        """When the last of them was given."""
        return max((at for at, _ in self.by.values()), default=0)

    @property
    def is_good(self) -> bool:
        """Whether more authors are for it than against it."""
        return len(self.good) > len(self.bad)

    @property
    def is_bad(self) -> bool:
        return len(self.bad) > len(self.good)

    @property
    def agreement(self) -> float:
        """The share of the authors who are on the larger side."""
        return max(len(self.good), len(self.bad)) / (len(self.good) + len(self.bad))


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """A question whose facts people judged in so many words: not by an answer that was made from them."""

    dataset: str
    query_id: int
    question: str
    facts: dict[str, Votes]
    """By fact, whether or not it still exists."""
    receipts: tuple[str, ...]
    """The recalls that the votes name, oldest vote first."""
    first: tuple[int, int]
    """When the first of its votes was given, and the number of the query."""

    @property
    def helpful(self) -> list[str]:
        return sorted(fact for fact, votes in self.facts.items() if votes.is_good)

    @property
    def not_helpful(self) -> list[str]:
        return sorted(fact for fact, votes in self.facts.items() if votes.is_bad)

    @property
    def at(self) -> int:
        return max(votes.at for votes in self.facts.values())


class Correction(NamedTuple):
    """The text that an answer should have, by one author."""

    author: Author
    text: str
    """The comment without its complaints."""
    at: int


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """An answer that people rated: scores of 4 and 5 and "up" are good, 1, 2 and "down" are not."""

    entry: EntryRow
    votes: Votes
    corrections: tuple[Correction, ...]
    """Those of authors who don't say that it is good, oldest first."""

    @property
    def dataset(self) -> str | None:
        return self.entry.dataset

    @property
    def question(self) -> str:
        return self.entry.question

    @property
    def facts(self) -> list[str]:
        """The facts that the answer rests on, the one with the largest share first."""
        used = sorted(self.entry.used or (), key=lambda use: (-use[1], use[0]))
        return [fact for fact, share, _ in used if share >= MOST_OF_A_SHARE * used[0][1] > 0]


@dataclass(frozen=True, slots=True)
class RatedExecution:
    """An execution with a question, with what people say about it or about the message that it ran for."""

    execution_id: str
    connector_id: str
    question: str
    sql_query: str
    parameters: dict[str, Any]
    fingerprint: str | None
    """Of the schema that it ran on."""
    message_id: str | None
    chat_session_id: str | None
    audience: str | None
    """Whom it may be reused for; None is everybody."""
    ran_at: int
    votes: Votes


@dataclass(frozen=True, slots=True)
class Period:
    """Which votes are read: of a dataset, given from `since` on and before `until`; those of visitors if asked for."""

    dataset: str | None = None
    since: int | None = None
    until: int | None = None
    visitors: bool = False

    @classmethod
    def checked(
        cls, dataset: str | None, since: datetime | None, until: datetime | None = None, *, visitors: bool = False
    ) -> Period:
        """The same of a caller's arguments."""
        name = None if dataset is None else checks.name("dataset", dataset)
        start, end = checks.bound("since", since), checks.bound("until", until)
        return cls(name, start, end, checks.flag("visitors", visitors))

    def trusts(self, kind: str) -> bool:
        return self.visitors or kind != "visitor"

    def contains(self, at: int) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


def rated_questions(workspace: Workspace, period: Period) -> list[RatedQuestion]:
    """The questions with facts that somebody rated, in the order of their first vote that is still active."""
    found = [question for run in questions_in_runs(workspace, period) for question in run]
    return sorted(found, key=lambda question: question.first)


def questions_in_runs(workspace: Workspace, period: Period) -> Iterator[list[RatedQuestion]]:
    """The same, a few at a time, each of them as it is then."""
    with workspace.read() as connection:
        names = scopes.dataset_names(connection)
        if period.dataset is not None:
            chosen = workspace.dataset(connection, period.dataset)
            names = {} if chosen is None else {chosen: period.dataset}
        rated = {
            dataset: _ratings(dataset, period).with_only_columns(events.c.query_id).order_by(None).distinct()
            for dataset in sorted(names)
        }
        numbers = {dataset: sorted(connection.execute(statement).scalars()) for dataset, statement in rated.items()}
    for dataset, query_ids in numbers.items():
        for run in batches(query_ids, RUN):
            with workspace.read() as connection:
                found = _questions(connection, names[dataset], _ratings(dataset, period), run)
            yield found


def _questions(
    connection: Connection, dataset: str, ratings: Select[Any], query_ids: Sequence[int]
) -> list[RatedQuestion]:
    facts: dict[int, dict[str, Votes]] = {}
    receipts: dict[int, dict[str, None]] = defaultdict(dict)
    first: dict[int, int] = {}
    # Oldest first: the last of an author is the one that counts.
    for row in connection.execute(ratings.where(events.c.query_id.in_(query_ids))):
        first.setdefault(row.query_id, row.effective)
        facts.setdefault(row.query_id, {}).setdefault(row.target_id, Votes()).add(
            row.author, row.value == "helpful", row.effective
        )
        if row.receipt_id is not None:
            receipts[row.query_id][row.receipt_id] = None
    of_query = select(queries.c.id, queries.c.text)
    texts = {row.id: row.text for row in select_in(connection, of_query, queries.c.id, list(facts))}
    return [
        RatedQuestion(dataset, query, texts[query], facts[query], tuple(receipts[query]), (first[query], query))
        for query in facts
        if query in texts
    ]


def _ratings(dataset: int, period: Period) -> Select[Any]:
    """The active ratings of facts in a dataset, oldest first."""
    conditions: list[ColumnElement[bool]] = [
        events.c.dataset_id == dataset,
        events.c.kind == SIGNAL,
        events.c.value.in_(sorted(RATINGS)),
        events.c.source != IMPROVE,
        events.c.query_id.is_not(None),
        ~ledger.is_retracted(),
        *between(EFFECTIVE_TIME, period.since, period.until),
    ]
    if not period.visitors:
        conditions.append(events.c.author_kind != "visitor")
    columns = (events.c.query_id, events.c.target_id, events.c.author, events.c.value, events.c.receipt_id)
    rated = select(*columns, EFFECTIVE_TIME.label("effective")).where(*conditions)
    return rated.order_by(EFFECTIVE_TIME, events.c.seq)


def rated_answers(space: SessionSpace, period: Period) -> list[RatedAnswer]:
    """The answers that somebody rated or corrected, in the order of their entries."""
    return space.store.read(lambda tx: _answers(tx, period, None))


def answers_in_runs(space: SessionSpace, period: Period) -> Iterator[list[RatedAnswer]]:
    """The same, a few sessions at a time, each of them as it is then."""

    def sessions(tx: Transaction) -> list[str]:
        return sorted({row.session_id for row in tx.feedbacks.of_sessions(None) if row.target_type == "entry"})

    for run in batches(space.store.read(sessions), SESSIONS):
        yield space.store.read(partial(_answers, period=period, session_ids=run))


def _answers(tx: Transaction, period: Period, session_ids: Sequence[str] | None) -> list[RatedAnswer]:
    opinions: dict[str, list[FeedbackRow]] = defaultdict(list)
    sessions: dict[str, None] = {}
    for row in tx.feedbacks.of_sessions(session_ids):
        if row.target_type == "entry" and period.trusts(row.author_kind) and period.contains(row.updated_at):
            opinions[row.target_id].append(row)
            sessions[row.session_id] = None
    # Of these alone, so that the answers of other sessions are not all held at once.
    return [
        answer
        for entry in tx.conversations.entries_of(list(sessions))
        if entry.id in opinions and period.dataset in (None, entry.dataset)
        if (answer := _rated_answer(entry, opinions[entry.id])) is not None
    ]


def _rated_answer(entry: EntryRow, opinions: Sequence[FeedbackRow]) -> RatedAnswer | None:
    votes, corrections = Votes(), list[Correction]()
    for row in sorted(opinions, key=lambda row: (row.updated_at, row.number)):
        is_good = opinion_of(row.score, row.rating)
        if is_good is not None:
            votes.add(row.author, is_good, row.updated_at)
        if is_good is not True and row.comment is not None and (text := statement(row.comment)) is not None:
            corrections.append(Correction(row.author, text, row.updated_at))
    return RatedAnswer(entry, votes, tuple(corrections)) if votes.good or votes.bad or corrections else None


def opinion_of(score: int | None, rating: Rating | None) -> bool | None:
    """Whether a rating says that something is good, or that it is not; None for neither.

    >>> [opinion_of(score, None) for score in (1, 2, 3, 4, 5)], opinion_of(None, "up"), opinion_of(None, None)
    ([False, False, None, True, True], True, None)
    """
    direction = STRENGTH[score] if score is not None else {"up": 1.0, "down": -1.0, None: 0.0}[rating]
    return None if direction == 0 else direction > 0


def rated_executions(workspace: Workspace, period: Period) -> list[RatedExecution]:
    """The executions with a question that somebody rated, in the order they ran. An opinion about a message is about
    all that ran for it, but it proves none of that."""
    found: dict[str, Any] = {}
    votes: dict[str, Votes] = defaultdict(Votes)
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        if project is None or period.dataset is not None:
            return []
        columns = [executions.c[name] for name in ("id", *_EXECUTION)]
        opinion = (feedbacks.c.author, feedbacks.c.author_kind, feedbacks.c.rating, feedbacks.c.updated_at)
        for kind, target in zip(TARGETS, (feedbacks.c.about_id, feedbacks.c.target_id), strict=True):
            own = executions.c.id if kind == "execution" else executions.c.message_id
            statement = (
                select(*columns, executions.c.at.label("ran_at"), executions.c.seq, *opinion)
                .select_from(feedbacks)
                .join(executions, own == target)
                .where(feedbacks.c.project_id == project, feedbacks.c.target_type == kind, feedbacks.c.active == 1)
                .where(feedbacks.c.about_id.is_not(None), executions.c.question.is_not(None))
                .where(feedbacks.c.rating.in_(["up", "down"] if kind == "execution" else ["down"]))
                .order_by(feedbacks.c.updated_at, feedbacks.c.seq)
            )
            for row in connection.execute(statement):
                if period.trusts(row.author_kind) and period.contains(row.updated_at):
                    found[row.id] = row
                    votes[row.id].add(row.author, row.rating == "up", row.updated_at)
    return [
        RatedExecution(
            execution_id=row.id,
            ran_at=row.ran_at,
            votes=votes[row.id],
            **{name: getattr(row, name) for name in _EXECUTION},
        )
        for row in sorted(found.values(), key=lambda row: row.seq)
    ]


_EXECUTION = (
    "connector_id",
    "question",
    "sql_query",
    "parameters",
    "fingerprint",
    "message_id",
    "chat_session_id",
    "audience",
)
