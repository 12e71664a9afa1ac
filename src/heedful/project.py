"""One open project: what the surfaces work on, beside the calls that `heedful.Heedful` offers to everybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from heedful.insight import digest_delivery, guard
from heedful.insight.comments import Comments
from heedful.insight.counting import Counting
from heedful.insight.service import Insight
from heedful.jobs.contract import Report
from heedful.jobs.service import Jobs
from heedful.memory import checks, documents, history, remember
from heedful.memory.workspace import Workspace
from heedful.model import Improvement, Metadata, Scope
from heedful.notifications import Channel
from heedful.review import follow
from heedful.sessions import improve
from heedful.sessions.space import SessionSpace
from heedful.sql.connector_access import Permissions
from heedful.sql.space import ExecutionSpace
from heedful.storage.sessions.base import AlertRow, FeedbackRow


@dataclass(frozen=True, slots=True)
class Project:
    """One project of one store, opened by `heedful.store.Store`."""

    executions: ExecutionSpace
    """What the services work on; each wing has its own view of it."""
    jobs: Jobs
    comments: Comments
    """Kept while the project is open, because it caches vectors."""
    finish: Callable[[], object]
    """Called when it is closed."""

    @property
    def sessions(self) -> SessionSpace:
        return self.executions.sessions

    @property
    def workspace(self) -> Workspace:
        return self.executions.workspace

    @property
    def insight(self) -> Insight:
        return Insight(self.workspace, self.sessions.store, self.comments, partial(follow.catch_up, self.executions))

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
        remember.store(self.workspace, dataset, [documents.pieces(*each) for each in contents])

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
            return history.scope_of(connection, self.name, event_id)

    def session_feedback(self, feedback_id: str) -> FeedbackRow | None:
        """One opinion about a session or an answer, by its id."""
        row: FeedbackRow | None = self.sessions.store.read(lambda tx: tx.feedbacks.get(feedback_id))
        return row

    def send_digest(
        self, channels: Sequence[Channel], since: int, until: int, *, again: bool = False
    ) -> list[AlertRow]:
        """Sends a digest of this period; `again` if it was sent before."""
        # However long that takes: nobody waits for a digest that is sent.
        self.follow_review()
        return digest_delivery.send(self.sessions, self.insight, channels, since, until, again=again)

    def switch_policies_back(self) -> list[str]:
        """Takes back changes of policy after which ratings got worse than chance allows; returns the events."""
        return guard.switch_back(self.workspace, Counting(self.workspace, self.sessions.store))

    def follow_review(self) -> None:
        """Brings the review queue up to date."""
        follow.follow(self.executions)

    def close(self) -> None:
        """Finishes what runs in the background, saves the indexes and closes the store, unless others use it."""
        self.finish()
        self.sessions.dispatcher.close()
        self.sessions.store.close()
        self.workspace.close()
