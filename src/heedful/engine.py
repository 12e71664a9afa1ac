"""Puts the parts together: what `heedful.open()` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from heedful.access import audit as _audit
from heedful.access.keys import Keys
from heedful.clock import from_stored
from heedful.errors import Invalid
from heedful.insight.service import Insight
from heedful.memory import browse as _browse
from heedful.memory import checks
from heedful.memory import fact_report as _fact_report
from heedful.memory import forget as _forget
from heedful.memory import history as _history
from heedful.memory import maintenance as _maintenance
from heedful.memory import recall as _recall
from heedful.memory import remember as _remember
from heedful.memory import replay as _replay
from heedful.memory import signals as _signal_recall
from heedful.memory import signals as _signals
from heedful.memory import stats as _stats
from heedful.memory import supersede as _supersede
from heedful.memory import usefulness as _policies
from heedful.model import (
    DEFAULT_DATASET,
    AuditEntry,
    AuditKind,
    Check,
    Dataset,
    Detection,
    Fact,
    FactHistory,
    FactReport,
    FactStats,
    ForgetResult,
    Improvement,
    Metadata,
    Mode,
    Page,
    PolicyChange,
    PolicyName,
    Recall,
    Receipt,
    RememberResult,
    ReplayReport,
    Retraction,
    Shown,
    Signal,
    SignalResult,
    SignalType,
    Supersession,
    UsefulnessStats,
)
from heedful.project import Project
from heedful.protocols import HeedfulProtocol
from heedful.protocols.engine import Facts, OnToken, Progress, Source
from heedful.review import undo as _undo
from heedful.review.service import Review
from heedful.sessions import entries as _answering
from heedful.sessions import erasing as _erasing
from heedful.sessions import health as _health
from heedful.sessions.service import Sessions
from heedful.sql.chat import Chat
from heedful.sql.chat_sessions import ChatSessions
from heedful.sql.connectors import Connectors
from heedful.sql.executions import Executions
from heedful.sql.feedback import FeedbackService
from heedful.sql.golden import GoldenExamples


def project_of(heedful: Heedful) -> Project:
    """The project behind a `Heedful`, for the other surfaces of this package."""
    return heedful._project


class Heedful(HeedfulProtocol):
    """One project of one store. Threads may share it; close it when done, or use it in a `with`."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._workspace = project.workspace
        self.jobs = project.jobs

    # Services are made when they are first used: a server makes a `Heedful` for each call.
    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self._project.sessions)

    @cached_property
    def insight(self) -> Insight:
        return self._project.insight

    @cached_property
    def keys(self) -> Keys:
        return Keys(self._workspace)

    @cached_property
    def connectors(self) -> Connectors:
        return Connectors(self._project.executions)

    @cached_property
    def executions(self) -> Executions:
        return Executions(self._project.executions)

    @cached_property
    def feedback(self) -> FeedbackService:
        return FeedbackService(self._project.executions)

    @cached_property
    def chat(self) -> Chat:
        return Chat(self._project.executions)

    @cached_property
    def chat_sessions(self) -> ChatSessions:
        return ChatSessions(self._project.executions)

    @cached_property
    def golden_examples(self) -> GoldenExamples:
        return GoldenExamples(self._project.executions)

    @cached_property
    def review(self) -> Review:
        return Review(self._project.executions)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Heedful {self._workspace.database.name} project={self._project.name!r}>"

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
        boost_by_usefulness: bool | float | None = None,
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
        external_id: str | None = None,
        cursor: str | None = None,
    ) -> Recall:
        if feedback_influence is not None:
            usefulness_weight = checks.fraction("feedback_influence", feedback_influence)
            boost_by_usefulness = usefulness_weight > 0
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
            external_id,
            cursor,
        )
        if checks.flag("answer", answer) or session_id is not None:
            return _answering.answer(
                self._project.sessions,
                self._workspace,
                self._project.executions.language_model,
                request,
                session_id,
                on_token,
            )
        if on_token is not None:
            raise Invalid(
                "on_token requires an answer",
                field="on_token",
                remedy="Pass answer=True, or a session_id",
            )
        return _recall.recall(self._workspace, request)

    def improve(self, dataset: str | None = None, session_ids: Sequence[str] | None = None) -> Improvement:
        return self._project.improve(dataset, session_ids)

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
        return _undo.retract(self._project.executions, event_id, checks.author(author))

    def supersede(
        self, fact_id: str, text: str | None = None, *, by: str | None = None, author: str | None = None
    ) -> Supersession:
        return _supersede.supersede(self._workspace, fact_id, text, by, author)

    def set_policy(self, policy: PolicyName | None, *, dataset: str | None = None) -> PolicyChange:
        return _policies.set_policy(self._workspace, policy, dataset)

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
                "author can't be combined with facts, a source or a dataset",
                field="author",
                value=author,
                remedy="An author is erased from the whole project: pass author alone",
            )
        return _erasing.erase(self._project.sessions, self._workspace, author)

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
        where: Metadata | None = None,
        cursor: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> Page[Fact]:
        return _browse.list_facts(self._workspace, dataset, source, where, cursor, limit, newest_first)

    def create_dataset(self, dataset: str, *, metadata: Metadata | None = None) -> Dataset:
        return _browse.create_dataset(self._workspace, dataset, metadata)

    def get_dataset(self, dataset: str) -> Dataset:
        return _browse.get_dataset(self._workspace, dataset)

    def datasets(self) -> list[str]:
        return _browse.datasets(self._workspace)

    def check_facts(self, *, dataset: str = DEFAULT_DATASET, limit: int = 20) -> FactReport:
        return _fact_report.fact_report(self._workspace, dataset, limit)

    def doctor(self, *, repair: bool = True) -> list[Check]:
        checks.flag("repair", repair)
        operator = self._project.executions.permissions.everywhere
        checked = _maintenance.doctor(self._workspace, repair, operator)
        return checked + _health.doctor(self._project.sessions, repair, operator)

    def audit(
        self,
        *,
        kind: AuditKind | None = None,
        since: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[AuditEntry]:
        return _audit.list_entries(self._workspace.database, self._project.name, kind, since, cursor, limit)

    def close(self) -> None:
        """Finishes background work, saves the indexes and closes the store."""
        self._project.close()
