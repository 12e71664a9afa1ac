"""`.feedback`: what people say of executions and of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.memory import recall, remember
from heedful.memory.documents import Piece, Pieces, split
from heedful.memory.workspace import Workspace
from heedful.model import BulkDeletion, ExecutionFeedback, FeedbackList, Metadata, Rating, limits
from heedful.protocols.sql import PAGE_LIMIT, UNCHANGED, FeedbackServiceProtocol
from heedful.ranking.ratings import normalise_rating
from heedful.ranking.signals import kind_of
from heedful.sql import checks
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, requests, scopes
from heedful.storage.executions import runs
from heedful.storage.executions.proofs import TARGETS
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.rows import AnyRow, batches
from heedful.storage.sessions.base import FeedbackRow

DELETION_BATCH_SIZE = 50
"""Opinions that one transaction deletes."""


class FeedbackService(FeedbackServiceProtocol):
    """Opinions about executions and messages. Each is an event of the ledger; `retract` undoes it too."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def create(
        self,
        *,
        is_positive: bool,
        feedback: str | None = None,
        execution_id: str | None = None,
        chat_message_id: str | None = None,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> ExecutionFeedback:
        values.flag("is_positive", is_positive)
        checks.feedback_text("feedback", feedback)
        author = values.author(author)
        values.idempotency_key(idempotency_key)
        key = requests.event_key("feedback", idempotency_key)
        self._check_execution(execution_id)
        self._check_message(chat_message_id)
        with self._space.workspace.write() as connection:
            self._space.own_project(connection)
            opinions = self._opinions(connection)
            new = self._new(connection, execution_id, chat_message_id, is_positive, feedback, author)
            before = None if author is None else next(iter(opinions.active_by(author, *new.target)), None)
            first = None if key is None else opinions.with_key(key)
            if first is not None:
                return shown(_first_with_key(opinions, first, new, before, idempotency_key))
            return shown(put(opinions, new, before, key))

    def create_positive(
        self,
        *,
        feedback_text: str | None = None,
        execution_id: str | None = None,
        chat_message_id: str | None = None,
        author: str | None = None,
    ) -> ExecutionFeedback:
        return self.create(
            is_positive=True,
            feedback=feedback_text,
            execution_id=execution_id,
            chat_message_id=chat_message_id,
            author=author,
        )

    def create_negative(
        self,
        *,
        feedback: str | None = None,
        execution_id: str | None = None,
        chat_message_id: str | None = None,
        author: str | None = None,
    ) -> ExecutionFeedback:
        return self.create(
            is_positive=False,
            feedback=feedback,
            execution_id=execution_id,
            chat_message_id=chat_message_id,
            author=author,
        )

    def get(self, feedback_id: str) -> ExecutionFeedback:
        values.identifier("feedback_id", feedback_id)
        with self._space.workspace.read() as connection:
            return shown(self._row(self._opinions(connection), feedback_id))

    def list(self, *, skip: int = 0, limit: int = PAGE_LIMIT, search: str | None = None) -> FeedbackList:
        return self._listed(skip, limit, search=search)

    def list_positive(self, *, skip: int = 0, limit: int = PAGE_LIMIT) -> FeedbackList:
        return self._listed(skip, limit, rating="up")

    def list_negative(self, *, skip: int = 0, limit: int = PAGE_LIMIT) -> FeedbackList:
        return self._listed(skip, limit, rating="down")

    def get_feedback_for_message(self, chat_message_id: str, *, skip: int = 0, limit: int = PAGE_LIMIT) -> FeedbackList:
        return self._listed(skip, limit, message_id=values.identifier("chat_message_id", chat_message_id))

    def update(
        self,
        feedback_id: str,
        *,
        feedback: str | None = UNCHANGED,
        is_positive: bool = UNCHANGED,
        if_match: str | None = None,
    ) -> ExecutionFeedback:
        values.identifier("feedback_id", feedback_id)
        if is_positive is not UNCHANGED:
            values.flag("is_positive", is_positive)
        if feedback is not UNCHANGED:
            checks.feedback_text("feedback", feedback)
        with self._space.workspace.write() as connection:
            opinions = self._opinions(connection)
            row = self._row(opinions, feedback_id)
            values.if_match(if_match, shown(row))
            new = replace(
                row,
                event_id=new_id(),
                rating=row.rating if is_positive is UNCHANGED else rating_of(is_positive),
                comment=row.comment if feedback is UNCHANGED else feedback,
                updated_at=self._space.now(),
            )
            return shown(row if new.says() == row.says() else put(opinions, new, row, None))

    def delete(self, feedback_id: str) -> bool:
        values.identifier("feedback_id", feedback_id)
        with self._space.workspace.write() as connection:
            opinions = self._opinions(connection)
            self._delete(opinions, [self._row(opinions, feedback_id)])
        return True

    def bulk_delete(self, feedback_ids: Sequence[str]) -> BulkDeletion:
        if isinstance(feedback_ids, str) or not isinstance(feedback_ids, Sequence):
            raise Invalid(
                f"feedback_ids must be a list of ids, got {quoted(feedback_ids)}",
                field="feedback_ids",
                value=feedback_ids,
            )
        values.batch("feedback_ids", feedback_ids, limits.MAX_LIST)
        failed: list[str] = []
        deleted = 0
        ids = list(dict.fromkeys(values.identifier("feedback_ids", value) for value in feedback_ids))
        for run in batches(ids, DELETION_BATCH_SIZE):
            with self._space.workspace.read() as connection:
                opinions = self._opinions(connection)
                known = [feedback_id for feedback_id in run if _active(opinions, feedback_id) is not None]
            rows: dict[str, FeedbackRow] = {}
            if known:
                with self._space.workspace.write() as connection:
                    opinions = self._opinions(connection)
                    found = {feedback_id: _active(opinions, feedback_id) for feedback_id in known}
                    rows = {feedback_id: row for feedback_id, row in found.items() if row is not None}
                    self._delete(opinions, list(rows.values()))
            failed += [feedback_id for feedback_id in run if feedback_id not in rows]
            deleted += len(rows)
        return BulkDeletion(deleted_count=deleted, failed_ids=failed)

    def _delete(self, opinions: SqlFeedbacks, rows: Sequence[FeedbackRow]) -> None:
        opinions.withdraw(rows, None, self._space.now())
        for row in rows:
            opinions.clear_words(row.id)

    def _listed(
        self,
        skip: int,
        limit: int,
        *,
        search: str | None = None,
        rating: Rating | None = None,
        message_id: str | None = None,
    ) -> FeedbackList:
        checks.whole_number("skip", skip, 0, limits.MAX_SKIP)
        checks.whole_number("limit", limit, 1, limits.MAX_LIST)
        if search is not None:
            values.any_text("search", search)
        with self._space.workspace.read() as connection:
            opinions = self._opinions(connection)
            rows, total = opinions.page_about_sql(skip, limit, search=search, rating=rating, message_id=message_id)
        return FeedbackList(items=[shown(row) for row in rows], total=total, skip=skip, limit=limit)

    def _new(
        self,
        connection: Connection,
        execution_id: str | None,
        chat_message_id: str | None,
        is_positive: bool,
        text: str | None,
        author: str | None,
    ) -> FeedbackRow:
        if execution_id is None and chat_message_id is None:
            raise Invalid(
                "the feedback has no target",
                field="execution_id",
                remedy="Pass execution_id, chat_message_id, or both",
            )
        project = self._space.project(connection)
        if execution_id is None:
            executions = runs.of_message(connection, project, str(chat_message_id))
            execution_id = executions[0].id if len(executions) == 1 else None
        else:
            row = runs.get(connection, project, execution_id)
            if row is None:
                raise self._missing("execution", "execution_id", execution_id)
            execution_id = row.id
            if chat_message_id is None:
                chat_message_id = row.message_id
            elif row.message_id not in (None, chat_message_id):
                raise Conflict(
                    f"execution {execution_id} was made for message {row.message_id}, not for {chat_message_id}",
                    field="chat_message_id",
                    value=chat_message_id,
                    remedy="Leave one of the two out",
                )
        return new_opinion(execution_id, chat_message_id, is_positive, text, author, self._space.now())

    def _check_execution(self, execution_id: str | None) -> None:
        """Before the message is looked at: of two things that are missing, the execution is what it is about."""
        if execution_id is None:
            return
        name = values.identifier("execution_id", execution_id)
        with self._space.workspace.read() as connection:
            if runs.get(connection, self._space.project(connection), name) is None:
                raise self._missing("execution", "execution_id", name)

    def _check_message(self, chat_message_id: str | None) -> None:
        if chat_message_id is None:
            return
        name = values.identifier("chat_message_id", chat_message_id)
        if self._space.sessions.store.read(lambda tx: tx.conversations.message(name)) is None:
            raise self._missing("message", "chat_message_id", name)

    def _opinions(self, connection: Connection) -> SqlFeedbacks:
        return SqlFeedbacks.on(connection, self._space.project(connection))

    def _row(self, opinions: SqlFeedbacks, feedback_id: str) -> FeedbackRow:
        row = _active(opinions, feedback_id)
        if row is None:
            raise self._missing("feedback", "feedback_id", feedback_id)
        return row

    def _missing(self, what: str, field: str, value: str) -> NotFound:
        return NotFound(f"no {what} {value!r} in project {self._space.workspace.project!r}", field=field, value=value)


def new_opinion(
    execution_id: str | None, message_id: str | None, is_positive: bool, text: str | None, author: str | None, now: int
) -> FeedbackRow:
    """An opinion about an execution, or about a message where no execution is known."""
    feedback_id = new_id()
    return FeedbackRow(
        id=feedback_id,
        event_id=feedback_id,
        session_id="",
        target_type="message" if execution_id is None else "execution",
        target_id=str(message_id) if execution_id is None else execution_id,
        author=author,
        rating=rating_of(is_positive),
        score=None,
        comment=text,
        extra={},
        at=now,
        updated_at=now,
        author_kind=kind_of(author),
        message_id=message_id,
    )


def put(opinions: SqlFeedbacks, new: FeedbackRow, before: FeedbackRow | None, key: str | None) -> FeedbackRow:
    """Stores an opinion, in place of one under the same id, if there is one."""
    if before is not None:
        opinions.withdraw([before], new.author, new.updated_at)
        new = replace(new, id=before.id, at=before.at, extra=before.extra)
    opinions.add(new, key or new.event_id, new.updated_at)
    return new


def rating_of(is_positive: bool) -> Rating | None:
    return normalise_rating(is_positive).rating


def shown(row: FeedbackRow) -> ExecutionFeedback:
    """An opinion about an execution or a message, as callers see it."""
    return ExecutionFeedback(
        id=row.id,
        execution_id=row.target_id if row.target_type == "execution" else None,
        chat_message_id=row.message_id,
        feedback=row.comment,
        is_positive=row.rating == "up",
        author=row.author,
        author_kind=row.author_kind,
        created_at=from_stored(row.at),
        updated_at=from_stored(row.updated_at),
    )


def _active(opinions: SqlFeedbacks, feedback_id: str) -> FeedbackRow | None:
    row = opinions.get(feedback_id)
    return row if row is not None and row.active and row.target_type in TARGETS else None


def _first_with_key(
    opinions: SqlFeedbacks, first: FeedbackRow, new: FeedbackRow, before: FeedbackRow | None, key: str | None
) -> FeedbackRow:
    """The active version of the opinion that was first given with a key."""
    if first.target != new.target or first.rating != new.rating:
        raise Conflict(
            f"idempotency_key {key!r} was used for another feedback",
            code="idempotency_key_reused",
            field="idempotency_key",
            value=key,
            remedy="Use a new key for each different call",
        )
    current = _active(opinions, first.id) or before
    if current is None:
        raise Conflict(
            f"the feedback with idempotency_key {key!r} was retracted",
            code="idempotency_key_reused",
            field="idempotency_key",
            value=key,
            remedy="Use a new key to give it again",
        )
    return current


CONTEXTS = "contexts"
SCHEMA_METADATA = "schema_metadata"

ALWAYS = "is_always_displayed"
"""The key under which the metadata of a remark say that every question needs it."""

RELEVANT = 5
"""Facts of each dataset that a language model reads, beside those that it always reads."""

_OWN_KEYS = ("remark_id", "place", "made_at", "changed_at")


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark: its text and its metadata."""

    id: str
    text: str
    metadata: Metadata
    made_at: int
    changed_at: int


class Remarks:
    """The remarks in one dataset of a project, by id."""

    def __init__(self, workspace: Workspace, dataset: str) -> None:
        self._workspace = workspace
        self._dataset = dataset

    def put(self, remark_id: str, text: str, metadata: Metadata) -> Remark:
        """Stores a remark, replacing the one with this id."""
        values.text("text", text)
        before, now = self.find(remark_id), self._workspace.now()
        remark = Remark(remark_id, text, metadata, before.made_at if before else now, now)
        own_metadata = {**metadata, "remark_id": remark_id, "made_at": remark.made_at, "changed_at": remark.changed_at}
        pieces = [
            (piece, values.metadata("metadata", {**own_metadata, "place": piece.start})) for piece in _pieces(text)
        ]
        with self._workspace.read() as connection:
            self._workspace.model(connection)
        remember.store(self._workspace, self._dataset, [Pieces(pieces, remark_id, replaces=True)])
        return remark

    def find(self, remark_id: str) -> Remark | None:
        """The remark with this id, if there is one."""
        values.identifier("id", remark_id)
        return next(iter(self._read(remark_id)), None)

    def get(self, remark_id: str) -> Remark:
        """The remark with this id."""
        remark = self.find(remark_id)
        if remark is None:
            raise NotFound(
                f"nothing with the id {remark_id!r} in {self._dataset} of project {self._workspace.project!r}",
                field="id",
                value=remark_id,
            )
        return remark

    def list(self) -> RemarkList:
        """All of them, the oldest first."""
        return sorted(self._read(None), key=lambda remark: (remark.made_at, remark.id))

    def delete(self, remark_id: str) -> None:
        """Forgets a remark; an unknown one is `NotFound`."""
        self.get(remark_id)
        with self._workspace.write() as connection:
            number = self._number(connection)
            if number is not None:
                facts.remove(connection, number, [seq for seq, _ in facts.of_dataset(connection, number, remark_id)])

    def _read(self, remark_id: str | None) -> RemarkList:
        with self._workspace.read() as connection:
            number = self._number(connection)
            seqs = [] if number is None else [seq for seq, _ in facts.of_dataset(connection, number, remark_id)]
            rows = _rows(connection, seqs)
        pieces: dict[str, list[AnyRow]] = {}
        for row in sorted(rows, key=lambda row: row.start):
            # Other facts in this dataset help to answer questions, but are no remarks.
            if "remark_id" in row.metadata:
                pieces.setdefault(row.metadata["remark_id"], []).append(row)
        return [_joined_remark(remark_pieces) for remark_pieces in pieces.values()]

    def _number(self, connection: Connection) -> int | None:
        return scopes.dataset_id(connection, self._workspace.project, self._dataset)


# Inside the class, `list` is a method.
RemarkList = list[Remark]


def relevant(workspace: Workspace, question: str) -> list[str]:
    """The remarks for the prompt of a question: those marked as always needed, then the most similar ones."""
    texts: dict[str, None] = {}
    for dataset in (CONTEXTS, SCHEMA_METADATA):
        with workspace.read() as connection:
            number = scopes.dataset_id(connection, workspace.project, dataset)
            now = workspace.now()
            if number is None or not facts.count(connection, number, now):
                continue
            current = facts.recallable(connection, number, now)
            always = [seq for seq in facts.tagged(connection, number, ALWAYS, [True]) if seq in current]
            rows = _rows(connection, sorted(always))
        request = recall.check_request(
            question, dataset, RELEVANT, "hybrid", None, False, 0.0, 0.0, None, 0.0, None, explain=False
        )
        texts |= dict.fromkeys(_titled(row.text, row.metadata) for row in rows)
        texts |= dict.fromkeys(_titled(hit.text, hit.metadata) for hit in recall.recall(workspace, request).hits)
    return list(texts)


def _titled(text: str, metadata: Metadata) -> str:
    title = metadata.get("name")
    return f"{title}: {text.strip()}" if isinstance(title, str) else text.strip()


def _rows(connection: Connection, seqs: Sequence[int]) -> list[AnyRow]:
    return [row for run in batches(seqs) for row in facts.by_seq(connection, run).values()]


def _joined_remark(pieces: Sequence[AnyRow]) -> Remark:
    first: Metadata = pieces[0].metadata
    return Remark(
        first["remark_id"],
        "".join(row.text for row in pieces),
        {key: value for key, value in first.items() if key not in _OWN_KEYS},
        first["made_at"],
        first["changed_at"],
    )


def _pieces(text: str) -> list[Piece]:
    """The text in searchable pieces, which join to exactly the same text."""
    edges = [0, *(piece.start for piece in split(text)[1:]), len(text)]
    return [Piece(text[start:stop], start, stop) for start, stop in pairwise(edges)]
