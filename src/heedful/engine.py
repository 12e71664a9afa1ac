"""Puts the parts together: what `heedful.open()` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from heedful.access import audit as _audit
from heedful.access.keys import Keys
from heedful.clock import from_stored
from heedful.errors import Invalid
from heedful.insight import digest_delivery as _sending
from heedful.insight.service import Insight
from heedful.jobs.contract import Report
from heedful.jobs.service import Jobs
from heedful.memory import browse as _browse
from heedful.memory import checks
from heedful.memory import doctor as _doctor
from heedful.memory import documents as _documents
from heedful.memory import forget as _forget
from heedful.memory import history as _history
from heedful.memory import recall as _recall
from heedful.memory import remember as _remember
from heedful.memory import replay as _replay
from heedful.memory import signals as _signal_recall
from heedful.memory import signals as _signals
from heedful.memory import stats as _stats
from heedful.memory import supersede as _supersede
from heedful.memory import usefulness as _policies
from heedful.memory.workspace import Workspace
from heedful.model import (
    DEFAULT_DATASET,
    AuditEntry,
    AuditKind,
    Check,
    Dataset,
    Detection,
    Fact,
    FactHistory,
    FactStats,
    ForgetResult,
    Improvement,
    Metadata,
    Mode,
    Page,
    PolicyName,
    Recall,
    Receipt,
    RememberResult,
    ReplayReport,
    Retraction,
    Scope,
    Shown,
    Signal,
    SignalResult,
    SignalType,
    Supersession,
    UsefulnessStats,
)
from heedful.notifications import Channel
from heedful.protocols import HeedfulProtocol
from heedful.protocols.engine import Facts, OnToken, Progress, Source
from heedful.providers.llm.contract import LanguageModel
from heedful.review import follow as _following
from heedful.review import undo as _undo
from heedful.review.service import Review
from heedful.sessions import entries as _answering
from heedful.sessions import erasing as _erasing
from heedful.sessions import health as _upkeep
from heedful.sessions import improve as _improve
from heedful.sessions.service import Sessions
from heedful.sessions.space import SessionSpace
from heedful.sql.chat import Chat
from heedful.sql.chat_sessions import ChatSessions
from heedful.sql.connector_access import Permissions
from heedful.sql.connectors import Connectors
from heedful.sql.executions import Executions
from heedful.sql.feedback import FeedbackService
from heedful.sql.golden import GoldenExamples
from heedful.sql.reuse.proofs import Proofs
from heedful.sql.sandbox.queries import Queries
from heedful.sql.space import ExecutionSpace
from heedful.storage.sessions.base import AlertRow


class Heedful(HeedfulProtocol):
    """One project of one store. Threads may share it; close it when done, or use it in a `with`."""

    def __init__(
        self,
        workspace: Workspace,
        space: SessionSpace,
        language_model: LanguageModel | None,
        jobs: Jobs,
        queries: Queries,
        finish: Callable[[], object],
    ) -> None:
        """`finish` is called when it is closed."""
        self._workspace = workspace
        self._space = space
        self._language_model = language_model
        self._finish = finish
        self.sessions = Sessions(space)
        self.insight = Insight(workspace, space.store)
        self.keys = Keys(workspace)
        self.jobs = jobs
        proofs = Proofs(queries, workspace.trust.authors_to_veto)
        self._attach(ExecutionSpace(workspace, space, language_model, queries, proofs))

    def _attach(self, executions: ExecutionSpace) -> None:
        self._executions = executions
        self.connectors = Connectors(executions)
        self.executions = Executions(executions)
        self.feedback = FeedbackService(executions)
        self.chat = Chat(executions)
        self.chat_sessions = ChatSessions(executions)
        self.golden_examples = GoldenExamples(executions)
        self.review = Review(executions)

    def _limited(self, permissions: Permissions) -> Heedful:
        """The same project, for a caller whose connectors may reach this much; close only one of the two."""
        other = copy(self)
        other._attach(replace(self._executions, permissions=permissions))
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Heedful {self._workspace.database.name} project={self._workspace.project!r}>"

    def remember(
        self,
        texts: Source,
        *,
        dataset: str = DEFAULT_DATASET,
        metadata: Metadata | Sequence[Metadata] | None = None,
        source: str | None = None,
        expires_at: datetime | None = None,
        self_improvement: bool = False,
        progress: Progress | None = None,
    ) -> RememberResult:
        checks.flag("self_improvement", self_improvement)
        result = _remember.remember(self._workspace, texts, dataset, metadata, source, expires_at, progress)
        if self_improvement:
            self.jobs.improve(dataset)
        return result

    def recall(
        self,
        query: str,
        *,
        dataset: str = DEFAULT_DATASET,
        top_k: int = 10,
        mode: Mode = "hybrid",
        where: Metadata | None = None,
        boost_by_usefulness: bool = False,
        usefulness_weight: float = 0.3,
        feedback_influence: float | None = None,
        min_usefulness: float = 0.0,
        policy: PolicyName | None = None,
        exploration: float = 0.0,
        seed: int | None = None,
        explain: bool = False,
        session_id: str | None = None,
        answer: bool = False,
        on_token: OnToken | None = None,
    ) -> Recall:
        if feedback_influence is not None:
            usefulness_weight = checks.fraction("feedback_influence", feedback_influence)
            boost_by_usefulness = boost_by_usefulness or usefulness_weight > 0
        request = _recall.check_request(
            query,
            dataset,
            top_k,
            mode,
            where,
            boost_by_usefulness,
            usefulness_weight,
            min_usefulness,
            policy,
            exploration,
            seed,
            explain,
        )
        if checks.flag("answer", answer) or session_id is not None:
            return _answering.answer(self._space, self._workspace, self._language_model, request, session_id, on_token)
        if on_token is not None:
            raise Invalid(
                "on_token is given, but no answer is asked for",
                field="on_token",
                remedy="Pass answer=True, or a session_id",
            )
        return _recall.recall(self._workspace, request)

    def improve(self, dataset: str = DEFAULT_DATASET, session_ids: Sequence[str] | None = None) -> Improvement:
        return self._improve_reporting(dataset, session_ids)

    def signal(
        self,
        signals: Signal | Iterable[Signal | Mapping[str, Any]],
        *,
        dataset: str | None = None,
        idempotency_key: str | None = None,
    ) -> SignalResult:
        return _signals.signal(self._workspace, _signals.parse_signals(signals), idempotency_key, dataset)

    def signal_recall(
        self,
        recall_id: str,
        *,
        used: Facts = (),
        helpful: Facts = (),
        not_helpful: Facts = (),
        answer: str | None = None,
        confidence: float = 1.0,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> SignalResult:
        named: dict[SignalType, Facts] = {"used": used, "helpful": helpful, "not_helpful": not_helpful}
        return _signal_recall.signal_recall(
            self._workspace, recall_id, named, answer, confidence, author, idempotency_key
        )

    def detect(self, answer: str, recall_id: str) -> list[Detection]:
        return _signal_recall.detect_recall(self._workspace, answer, recall_id)

    def retract(self, event_id: str, *, author: str | None = None) -> Retraction:
        checks.identifier("event_id", event_id)
        checks.author(author)
        return _undo.retract(self._executions, event_id, author)

    def supersede(
        self, fact_id: str, text: str | None = None, *, by: str | None = None, author: str | None = None
    ) -> Supersession:
        return _supersede.supersede(self._workspace, fact_id, text, by, author)

    def set_policy(self, policy: PolicyName | None, *, dataset: str | None = None) -> None:
        _policies.set_policy(self._workspace, policy, dataset)

    def forget(
        self,
        fact_ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        dataset: str | None = None,
        author: str | None = None,
    ) -> ForgetResult:
        if author is None:
            return _forget.forget(self._workspace, fact_ids, source, dataset)
        if fact_ids is not None or source is not None or dataset is not None:
            raise Invalid(
                "author is given along with facts, a source or a dataset",
                field="author",
                value=author,
                remedy="An author is erased from the whole project: pass author alone",
            )
        return _erasing.erase(self._space, self._workspace, author)

    def receipt(self, recall_id: str) -> Receipt:
        checks.identifier("recall_id", recall_id)
        with self._workspace.read() as connection:
            row = _signal_recall.receipt_of(self._workspace, connection, recall_id)
        return Receipt(
            recall_id=row.id,
            dataset=row.dataset,
            query=row.query,
            mode=row.mode,
            policy=row.policy,
            usefulness_weight=row.weight,
            at=from_stored(row.at),
            shown=[
                Shown(
                    fact_id=line[0],
                    rank=rank,
                    score=line[1],
                    relevance=line[2],
                    usefulness=line[3],
                    usefulness_source=line[4],
                    propensity=line[5],
                    links=line[6] if len(line) > 6 else [],
                )
                for rank, line in enumerate(row.shown, start=1)
            ],
        )

    def fact_stats(self, fact_id: str) -> FactStats:
        return _stats.fact_stats(self._workspace, fact_id)

    def fact_history(self, fact_id: str) -> FactHistory:
        return _history.fact_history(self._workspace, fact_id)

    def usefulness_stats(self, dataset: str = DEFAULT_DATASET) -> UsefulnessStats:
        return _stats.usefulness_stats(self._workspace, dataset)

    def replay(
        self,
        *,
        dataset: str = DEFAULT_DATASET,
        policies: Sequence[PolicyName] | None = None,
        weights: Sequence[float] | None = None,
        since: datetime | None = None,
        seed: int = 0,
    ) -> ReplayReport:
        return _replay.replay(self._workspace, dataset, policies, weights, since, seed)

    def fact(self, fact_id: str) -> Fact:
        return _browse.fact(self._workspace, fact_id)

    def facts(
        self,
        *,
        dataset: str = DEFAULT_DATASET,
        source: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> Page[Fact]:
        return _browse.list_facts(self._workspace, dataset, source, cursor, limit, newest_first)

    def create_dataset(self, dataset: str, *, metadata: Metadata | None = None) -> Dataset:
        return _browse.create_dataset(self._workspace, dataset, metadata)

    def get_dataset(self, dataset: str) -> Dataset:
        return _browse.get_dataset(self._workspace, dataset)

    def datasets(self) -> list[str]:
        return _browse.datasets(self._workspace)

    def doctor(self, *, repair: bool = True) -> list[Check]:
        checks.flag("repair", repair)
        return _doctor.doctor(self._workspace, repair) + _upkeep.doctor(self._space, repair)

    def audit(
        self,
        *,
        kind: AuditKind | None = None,
        since: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[AuditEntry]:
        return _audit.list_entries(self._workspace.database, self._workspace.project, kind, since, cursor, limit)

    def close(self) -> None:
        """Finishes what runs in the background, saves the indexes and lets go of the store."""
        self._finish()
        self._space.dispatcher.close()
        self._space.store.close()
        self._workspace.close()

    def _store_documents(
        self, dataset: str, documents: Sequence[tuple[str | None, bool, Sequence[tuple[str, Metadata]]]]
    ) -> None:
        """Stores (source, whether it replaces what the source said, texts with metadata), many in a transaction."""
        checks.name("dataset", dataset)
        _remember.store(self._workspace, dataset, [_documents.pieces(*each) for each in documents])

    def _improve_reporting(
        self, dataset: str, session_ids: Sequence[str] | None, report: Report | None = None
    ) -> Improvement:
        return _improve.improve(self._space, self._workspace, self._language_model, dataset, session_ids, report)

    def _scope_to_retract(self, event_id: str) -> Scope:
        """What a key must be for to take an event back: what it must be for to make one."""
        checks.identifier("event_id", event_id)
        with self._workspace.read() as connection:
            return _history.scope_of(connection, self._workspace.project, event_id)

    def _send_digest(
        self, channels: Sequence[Channel], since: int, until: int, *, again: bool = False
    ) -> list[AlertRow]:
        # Items of the review queue are made when somebody looks; a digest counts them.
        self._follow_review()
        return _sending.send(self._space, self.insight, channels, since, until, again=again)

    def _follow_review(self) -> None:
        _following.follow(self._executions)
