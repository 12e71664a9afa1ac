"""One open project, and which function handles which call on it. `heedful.open()` returns a `Heedful`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from heedful.access import audit, credentials
from heedful.api import AnyHeedful, Sessions, checks
from heedful.api.calls import Arguments, Call
from heedful.api.parameters import OnToken, Progress, Source
from heedful.clock import from_stored
from heedful.errors import Invalid
from heedful.jobs.handlers import ProjectJobs
from heedful.jobs.queue import Report
from heedful.ledger import ranking_policy, receipts, retract, signals, used_facts
from heedful.ledger.events import FEEDBACK, REVIEW
from heedful.ledger.opinions import FeedbackRow
from heedful.memory import browse, doctor, documents, fact_stats, forget, recall, remember, supersede
from heedful.model import (
    Check,
    ForgetResult,
    Improvement,
    Metadata,
    Recall,
    RememberResult,
    Retraction,
    Scope,
)
from heedful.notifications import Channel
from heedful.notifications.outbox import AlertRow
from heedful.sessions import alerts, conversations, entries, feedback, health, improve
from heedful.sessions.space import SessionSpace
from heedful.sql.space import ExecutionSpace, Permissions
from heedful.workspace import Workspace

if TYPE_CHECKING:
    from heedful.insight.comments import Comments
    from heedful.insight.counting import InsightSpace


@dataclass(frozen=True, slots=True)
class Project:
    """One project of one store, opened by `heedful.store.Store`: with more than the calls that all are offered."""

    executions: ExecutionSpace
    """The project as the services see it; each wing has its own view of it."""
    jobs: ProjectJobs
    comments: Comments
    """Kept while the project is open, because it caches vectors."""
    finish: Callable[[], object]

    @property
    def sessions(self) -> SessionSpace:
        return self.executions.sessions

    @property
    def workspace(self) -> Workspace:
        return self.executions.workspace

    @property
    def insight(self) -> InsightSpace:
        from heedful.insight.counting import InsightSpace
        from heedful.review import follow

        return InsightSpace(
            self.workspace, self.sessions.store, self.comments, partial(follow.catch_up, self.executions)
        )

    @property
    def name(self) -> str:
        return self.workspace.project

    def limited(self, permissions: Permissions) -> Project:
        """The same project, for a caller whose connectors may reach this much; close only one of the two."""
        return replace(self, executions=replace(self.executions, permissions=permissions))

    def store_documents(
        self, dataset: str, contents: Sequence[tuple[str | None, bool, Sequence[tuple[str, Metadata]]]]
    ) -> None:
        """Stores (source, whether it replaces earlier facts of the source, texts with metadata) in few transactions."""
        checks.name("dataset", dataset)
        remember.store(self.workspace, dataset, [documents.pieces(*content) for content in contents])

    def improve(
        self, dataset: str | None, session_ids: Sequence[str] | None, report: Report | None = None
    ) -> Improvement:
        """Does what `Heedful.improve` does, and reports how far it is."""
        return improve.improve(
            self.sessions, self.workspace, self.executions.language_model, dataset, session_ids, report
        )

    def improve_new(self, report: Report | None = None) -> None:
        """Improves by the feedback that no call has processed yet."""
        improve.improve_new(self.sessions, self.workspace, report)

    def scope_to_retract(self, event_id: str) -> Scope:
        """The scope a key needs to retract an event: the one it needs to make such an event."""
        checks.identifier("event_id", event_id)
        with self.workspace.read() as connection:
            return retract.scope_of(connection, event_id)

    def session_feedback(self, feedback_id: str) -> FeedbackRow | None:
        """One opinion about a session or an answer, by its id."""
        row: FeedbackRow | None = self.sessions.store.read(lambda tx: tx.feedbacks.get(feedback_id))
        return row

    def send_digest(
        self, channels: Sequence[Channel], since: int, until: int, *, again: bool = False
    ) -> list[AlertRow]:
        """Sends a digest of this period; `again` if it was sent before."""
        from heedful.insight import digest

        # However long that takes: nobody waits for a digest that is sent.
        self.follow_review()
        create = partial(digest.digest, self.insight, since=from_stored(since), until=from_stored(until))
        return digest.send(self.sessions, create, channels, since, until, again=again)

    def switch_policies_back(self) -> list[str]:
        """Takes back changes of policy after which ratings got worse than chance allows; returns the events."""
        from heedful.insight import notes

        return notes.switch_back(self.insight)

    def follow_review(self) -> None:
        """Brings the review queue up to date."""
        from heedful.review import follow

        follow.follow(self.executions)

    def close(self) -> None:
        """Finishes what runs in the background, saves the indexes and closes the store, unless others use it."""
        self.finish()
        self.sessions.dispatcher.close()
        self.sessions.store.close()
        self.workspace.close()


Handlers = Mapping[str, Callable[..., Any]]
"""By the name of the call. A handler takes what it works on, then the parameters of the call by name."""


def _remember(
    project: Project,
    texts: Source,
    dataset: str,
    metadata: Metadata | Sequence[Metadata] | None,
    source: str | None,
    expires_at: datetime | None,
    self_improvement: bool,
    progress: Progress | None,
) -> RememberResult:
    checks.flag("self_improvement", self_improvement)
    result = remember.remember(project.workspace, texts, dataset, metadata, source, expires_at, progress)
    if self_improvement:
        project.jobs.improve(dataset, None)
    return result


def _recall(
    project: Project, session_id: str | None, answer: bool, on_token: OnToken | None, **arguments: Any
) -> Recall:
    request = recall.check_request(**arguments)
    if checks.flag("answer", answer) or session_id is not None:
        model = project.executions.language_model
        return entries.answer(project.sessions, project.workspace, model, request, session_id, on_token)
    if on_token is not None:
        raise Invalid("on_token requires an answer", field="on_token", remedy="Pass answer=True, or a session_id")
    return recall.recall(project.workspace, request)


def _forget(
    project: Project, fact_ids: str | Sequence[str] | None, source: str | None, dataset: str | None, author: str | None
) -> ForgetResult:
    if author is None:
        return forget.forget(project.workspace, fact_ids, source, dataset)
    if fact_ids is not None or source is not None or dataset is not None:
        message = "author can't be combined with facts, a source or a dataset"
        remedy = "An author is erased from the whole project: pass author alone"
        raise Invalid(message, field="author", value=author, remedy=remedy)
    return feedback.erase(project.sessions, project.workspace, author)


def _retract(space: ExecutionSpace, event_id: str, author: str | None) -> Retraction:
    from heedful.review import fixes

    handlers = {FEEDBACK: feedback.undo_handler(space.sessions), REVIEW: fixes.undo_handler(space)}
    retraction = retract.retract(space.workspace, event_id, author, handlers)
    space.sessions.feedback_changed()
    return retraction


def _doctor(project: Project, repair: bool) -> list[Check]:
    checks.flag("repair", repair)
    operator = project.executions.permissions.everywhere
    return doctor.doctor(project.workspace, repair, operator) + health.doctor(project.sessions, repair, operator)


_ON_PROJECT: Handlers = {
    "remember": _remember,
    "recall": _recall,
    "improve": Project.improve,
    "forget": _forget,
    "doctor": _doctor,
    "audit": lambda project, **asked: audit.list_entries(project.workspace.database, project.name, **asked),
}

_ON_WORKSPACE: Handlers = {
    "signal": signals.signal,
    "signal_recall": signals.signal_recall,
    "detect": used_facts.detect_recall,
    "receipt": receipts.receipt,
    "supersede": supersede.supersede,
    "policy": ranking_policy.policy_in_use,
    "set_policy": ranking_policy.set_policy,
    "fact_stats": fact_stats.fact_stats,
    "fact_history": fact_stats.fact_history,
    "usefulness_stats": fact_stats.usefulness_stats,
    "fact": browse.fact,
    "facts": browse.list_facts,
    "create_dataset": browse.create_dataset,
    "get_dataset": browse.get_dataset,
    "datasets": browse.datasets,
    "keys.create": credentials.create_key,
    "keys.list": credentials.list_keys,
    "keys.revoke": credentials.revoke_key,
    "keys.create_token": credentials.create_token,
    "keys.rotate_signing": credentials.rotate_signing,
}

_ON_SESSIONS: Handlers = {
    "sessions.create": conversations.create,
    "sessions.get": conversations.get,
    "sessions.exists": conversations.exists,
    "sessions.list": conversations.list_sessions,
    "sessions.delete": conversations.delete,
    "sessions.add_message": conversations.add_message,
    "sessions.add_messages": conversations.add_messages,
    "sessions.messages": conversations.messages,
    "sessions.update_message": conversations.update_message,
    "sessions.delete_message": conversations.delete_message,
    "sessions.get_metadata": conversations.get_metadata,
    "sessions.update_metadata": conversations.update_metadata,
    "sessions.delete_metadata": conversations.delete_metadata,
    "sessions.add_entry": entries.add,
    "sessions.entry": entries.get,
    "sessions.entries": entries.list_entries,
    "sessions.add_feedback": feedback.rate_entry,
    "sessions.rate": feedback.rate,
    "sessions.delete_feedback": feedback.clear_entry,
    "sessions.add_session_feedback": feedback.rate_session,
    "sessions.feedbacks": feedback.list_for_session,
    "sessions.feedback_metrics": feedback.metrics,
    "sessions.alerts": alerts.list_alerts,
    "sessions.deliver_alerts": lambda sessions: sessions.dispatcher.deliver_due(),
    "sessions.discard_alert": alerts.discard,
}


_ON_JOBS: Handlers = {
    "jobs.improve": ProjectJobs.improve,
    "jobs.list": ProjectJobs.list,
    "jobs.get": ProjectJobs.get,
    "jobs.cancel": ProjectJobs.cancel,
    "jobs.retry": ProjectJobs.retry,
}

_BY_SUBJECT: dict[str | None, Handlers] = {
    None: _ON_PROJECT,
    "workspace": _ON_WORKSPACE,
    "sessions": _ON_SESSIONS,
    "jobs": _ON_JOBS,
}

Handler = tuple[Callable[..., Any], str | None]
"""A handler, and the attribute of a project that it works on, or None for the project."""


def _handlers(by_subject: Mapping[str | None, Handlers]) -> dict[str, Handler]:
    return {name: (handler, subject) for subject, handlers in by_subject.items() for name, handler in handlers.items()}


_LOADED = _handlers(_BY_SUBJECT)


@cache
def all_handlers() -> Mapping[str, Handler]:
    """By the name of the call, also those of parts that are not loaded yet."""
    # These parts take longer to load than all others together, and whoever recalls needs none of them.
    from heedful.evaluation import regression, training_data
    from heedful.insight import counting, digest, exported_rows, notes, satisfaction
    from heedful.ledger import replay
    from heedful.memory import fact_report
    from heedful.review import actions
    from heedful.sql import chat, chat_sessions, connectors, executions, golden
    from heedful.sql import feedback as sql_feedback

    later: dict[str | None, Handlers] = {
        "workspace": {"replay": replay.replay, "check_facts": fact_report.fact_report},
        "insight": {
            "insight.satisfaction": satisfaction.satisfaction,
            "insight.trend": satisfaction.trend,
            "insight.coverage": counting.coverage,
            "insight.cache": counting.cache_report,
            "insight.themes": notes.list_themes,
            "insight.notes": notes.list_notes,
            "insight.digest": digest.digest,
            "insight.dictionary": exported_rows.list_tables,
            "insight.rows": exported_rows.list_rows,
            "insight.export": exported_rows.export_table,
        },
        "executions": {
            "retract": _retract,
            "regress": regression.regress,
            "connectors.create": connectors.create_connector,
            "connectors.get": connectors.get_connector,
            "connectors.list": connectors.list_connectors,
            "connectors.refresh": connectors.refresh_connector,
            "connectors.confirm": connectors.confirm_connector,
            "connectors.schema": connectors.connector_schema,
            "connectors.delete": connectors.delete_connector,
            "executions.execute_query": executions.execute_query,
            "executions.execute_from_chat": executions.execute_from_chat,
            "executions.get": executions.get_execution,
            "executions.list": executions.list_executions,
            "executions.delete": executions.delete_execution,
            "feedback.create": sql_feedback.create_feedback,
            "feedback.create_positive": sql_feedback.create_positive,
            "feedback.create_negative": partial(sql_feedback.create_feedback, is_positive=False),
            "feedback.get": sql_feedback.get_feedback,
            "feedback.list": sql_feedback.list_feedback,
            "feedback.list_positive": partial(sql_feedback.list_feedback, rating="up"),
            "feedback.list_negative": partial(sql_feedback.list_feedback, rating="down"),
            "feedback.get_feedback_for_message": sql_feedback.list_feedback,
            "feedback.update": sql_feedback.update_feedback,
            "feedback.delete": sql_feedback.delete_feedback,
            "feedback.bulk_delete": sql_feedback.delete_feedbacks,
            "chat.chat_to_sql": chat.chat_to_sql,
            "chat.chat_to_answer": chat.chat_to_answer,
            "chat.execution_cache_lookup": chat.execution_cache_lookup,
            "chat.confirm_suggestion": chat.confirm_suggestion,
            "chat.execution_cache_coverage": chat.execution_cache_coverage,
            "chat_sessions.create": chat_sessions.create_chat,
            "chat_sessions.get": chat_sessions.get_chat,
            "chat_sessions.list": chat_sessions.list_chats,
            "chat_sessions.delete": chat_sessions.delete_chat,
            "chat_sessions.get_questions": chat_sessions.get_questions,
            "insight.training": training_data.training,
            "insight.export_training": training_data.export_training,
            "golden_examples.create": golden.create_example,
            "golden_examples.promote": golden.promote_example,
            "golden_examples.get": golden.get_example,
            "golden_examples.list": golden.list_examples,
            "golden_examples.update": golden.update_example,
            "golden_examples.delete": golden.delete_example,
            "golden_examples.import_file": golden.import_file,
            "golden_examples.import_examples": golden.import_examples,
            "review.list": actions.list_items,
            "review.get": actions.get_case,
            "review.assign": actions.assign,
            "review.resolve": actions.resolve,
            "review.dismiss": actions.dismiss,
            "review.reopen": actions.reopen,
            "review.fix": actions.fix,
            "review.ask_again": actions.ask_again,
            "review.undo": actions.undo,
        },
    }
    return _LOADED | _handlers(later)


def run(project: Project, call: Call, arguments: Arguments) -> Any:
    """Checks the arguments of a call by their types, and has it handled."""
    handler, subject = _LOADED.get(call.name) or all_handlers()[call.name]
    return handler(project if subject is None else getattr(project, subject), **call.checked(arguments))


def sessions_of(space: SessionSpace) -> Sessions:
    """The calls about sessions alone, on a store of sessions that may have no facts beside it."""
    return Sessions(lambda call, arguments: _ON_SESSIONS[call.name](space, **call.checked(arguments)))


def project_of(heedful: Heedful) -> Project:
    """The project behind a `Heedful`, for the other surfaces of this package."""
    return heedful._project


class Heedful(AnyHeedful):
    """One project of one store. Threads may share it; close it when done, or use it in a `with`."""

    def __init__(self, project: Project) -> None:
        if not isinstance(project, Project):
            raise Invalid.got("project", "must be an open project", project, "Open a store with heedful.open(path)")
        self._project = project
        self._workspace = project.workspace

    def _run(self, call: Call, arguments: Arguments) -> Any:
        return run(self._project, call, arguments)

    def __repr__(self) -> str:
        return f"<Heedful {self._workspace.database.name} project={self._project.name!r}>"

    def close(self) -> None:
        """Finishes background work, saves the indexes and closes the store."""
        for finish in self._before_close:
            finish()
        self._project.close()
