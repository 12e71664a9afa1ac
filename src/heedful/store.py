"""One store that is opened once and hands out its projects: those that nobody uses are closed after a while."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful import engine, settings
from heedful.aio import AsyncHeedful
from heedful.api import checks
from heedful.api.calls import Arguments, Call
from heedful.clock import Clock, system_clock, to_stored
from heedful.engine import Heedful, Project
from heedful.errors import Invalid, no_project, quoted
from heedful.insight.comments import Comments
from heedful.jobs import kinds
from heedful.jobs.handlers import ProjectJobs
from heedful.jobs.queue import Queue, Report, Task
from heedful.jobs.worker import BackgroundWorker, Worker
from heedful.ledger.opinions import unprocessed_projects
from heedful.model import DEFAULT_PROJECT
from heedful.notifications.channels import digest_channels
from heedful.notifications.outbox import Dispatcher
from heedful.providers.configured import configured_embedder, language_model_from
from heedful.providers.embedding import Embedder, RecentVectors
from heedful.providers.llm import LanguageModel
from heedful.sessions.feedback import metrics
from heedful.sessions.hooks import Hook, combined_hooks
from heedful.sessions.session_store import SessionStore
from heedful.sessions.space import SessionSpace, do_nothing
from heedful.sessions.sql_store import SqlSessionStore
from heedful.settings import Trust
from heedful.sql.sandbox.pool import Pool, Queries
from heedful.sql.space import OPERATOR, ExecutionSpace, LazyProofs, Permissions
from heedful.storage import open_store, scopes
from heedful.threads import Background
from heedful.workspace import Workspace

if TYPE_CHECKING:
    from heedful.sessions.mongo import MongoSessionStore

MAX_OPEN_PROJECTS = 256
"""Projects that stay open while nobody uses them."""


class Store:
    """One open store. Threads may share it."""

    def __init__(
        self,
        url_or_path: str | Path | None = None,
        *,
        clock: Clock | None = None,
        embedding: str | Embedder | None = None,
        language_model: str | LanguageModel | None = None,
        sessions: str | None = None,
        feedback_hook: Hook | None = None,
        metadata_hook: Hook | None = None,
        auto_improve: bool | None = None,
        max_open_projects: int = MAX_OPEN_PROJECTS,
        background_jobs: bool = False,
    ) -> None:
        """With `background_jobs`, the jobs that a project adds run in a thread beside it; without, by whoever works for
        the store."""
        self.config = config = settings.load(store=url_or_path)
        self._url_or_path = url_or_path
        self.default_project = config.project
        self.clock = clock or system_clock
        if language_model is None or isinstance(language_model, str):
            address, timeout = language_model or config.language_model, config.language_model_timeout
            language_model = language_model_from(address, config.language_model_api_key, timeout)
        self._language_model = language_model
        self.embedder = RecentVectors(configured_embedder(config, embedding))
        self.sessions = config.sessions if sessions is None else sessions
        self._auto_improve = config.auto_improve if auto_improve is None else checks.flag("auto_improve", auto_improve)
        self.digest_channels = digest_channels(config.digest_email, config.digest_webhook, config.digest_webhook_secret)
        self._permissions = OPERATOR
        self.hooks = (feedback_hook, metadata_hook)
        self._max_open_projects = max_open_projects
        self._background_jobs = background_jobs
        self._background = Background()
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Project] = OrderedDict()
        self._users: dict[str, int] = {}
        self._known: set[str] = {config.project}
        self._only: Project | None = None
        self._remote_sessions: MongoSessionStore | None = None
        self.job_added: Callable[[str], object] = lambda job_id: None
        """Called with the id of each job that a project adds."""
        self.database = open_store(config.store if url_or_path is None else url_or_path)
        self.queue = Queue(self.database, self.now)
        self.pool = Pool(config)

    def serve_others(self) -> None:
        """From now on, connectors of the shared projects reach what the settings list: callers are not the operator."""
        self._permissions = Permissions(
            everywhere=False,
            hosts=self.config.connector_hosts,
            folders=self.config.connector_folders,
            secrets=frozenset(self.config.connector_secrets),
        )

    @contextmanager
    def using(self, name: str) -> Iterator[Project]:
        """One project, which stays open for as long as it is needed."""
        with self._lock:
            self._users[name] = self._users.get(name, 0) + 1
        try:
            yield self.project(name)
        finally:
            with self._lock:
                self._users[name] -= 1
                if not self._users[name]:
                    del self._users[name]
                idle = self._idle()
            for project in idle:
                project.close()

    def project(self, name: str) -> Project:
        """One project, which may be closed when others are used; `using` keeps it open."""
        with self._lock:
            if name not in self._open:
                self._open[name] = self._opened(name, background=self._background_jobs, permissions=self._permissions)
            self._open.move_to_end(name)
            return self._open[name]

    def open_projects(self, name: str | None = None) -> list[Project]:
        """This project, or all of them, as far as they are open."""
        with self._lock:
            return [project for known, project in self._open.items() if name in (None, known)]

    def open(self, name: str) -> Heedful:
        """One project apart from those that are shared; whoever opens it closes it, and the store stays open."""
        return Heedful(self._opened(name))

    def open_only(self, name: str, *, worker: bool = True) -> Heedful:
        """One project, with which the store is closed; jobs are done by a `worker` beside it."""
        try:
            return Heedful(self._opened(name, shared=False, background=worker))
        except BaseException:
            self.close()
            raise

    def check_known(self, name: str) -> None:
        """Raises `NotFound` for a project that nothing was written to, but for the default one."""
        if checks.name("project", name) in self._known:
            return
        known = self.all_projects()
        self._known.update(known)
        if name not in known:
            raise no_project(name, known)

    def exists(self, project: str) -> bool:
        """Whether something was written to a project in this store."""
        with self.database.read() as connection:
            return scopes.project_id(connection, project) is not None

    def projects(self) -> list[str]:
        """The names of all projects that something was written to in this store, oldest first."""
        with self.database.read() as connection:
            return scopes.project_names(connection)

    def all_projects(self) -> list[str]:
        """The same, and those that have nothing but sessions in another database."""
        return list(dict.fromkeys([*self.projects(), *self.projects_elsewhere()]))

    def projects_elsewhere(self) -> list[str]:
        """The names of the projects whose sessions are in another database, if they are stored apart."""
        return session_projects(self.sessions)

    def projects_with_feedback(self) -> list[str]:
        """The names of the projects to improve by new feedback; none if `auto_improve` is off."""
        if not self._auto_improve:
            return []
        if self.sessions is None:
            with self.database.read() as connection:
                return unprocessed_projects(connection)
        with self._lock:
            if self._remote_sessions is None:
                self._remote_sessions = _mongodb(self.sessions, DEFAULT_PROJECT)
        return self._remote_sessions.unprocessed_projects()

    def run_job(self, task: Task, report: Report) -> None:
        kinds.run_job(self, task, report)

    def working(self, project: str) -> AbstractContextManager[Project]:
        """A project for jobs: the only one that is open, or one that stays open for as long as it is needed."""
        return self.using(project) if self._only is None else nullcontext(self._only)

    def embedder_named(self, name: str) -> Embedder:
        """A model by what `embedding` may be."""
        return configured_embedder(settings.load(store=self._url_or_path), name)

    def now(self) -> int:
        return to_stored(self.clock())

    def close(self) -> None:
        """Closes the projects that are shared, and the store; others are closed before."""
        while True:
            with self._lock:
                still = list(self._open.values())
                self._open.clear()
            for project in still:
                project.close()
            # A job that was finished first may have opened its project again.
            if not still:
                break
        if self._remote_sessions is not None:
            self._remote_sessions.close()
        self.pool.close()
        self.database.close()

    def _idle(self) -> list[Project]:
        names = [name for name in self._open if name not in self._users]
        return [self._open.pop(name) for name in names[: max(0, len(self._open) - self._max_open_projects)]]

    def _opened(
        self, name: str, *, shared: bool = True, background: bool = False, permissions: Permissions = OPERATOR
    ) -> Project:
        checks.name("project", name)
        workspace = Workspace(
            self.database,
            self.embedder,
            name,
            self.clock,
            shared=shared,
            search_in_memory=self.config.search_in_memory,
            receipt_share=self.config.receipt_share,
            trust=Trust(self.config.authors_to_teach, self.config.authors_to_veto),
            background=self._background,
        )
        with self.database.read() as connection:
            workspace.model(connection)
        store: SessionStore
        if self.sessions is None:
            store = SqlSessionStore(workspace.database, workspace.project, workspace.now)
        else:
            store = _mongodb(self.sessions, workspace.project)
        has_feedback = partial(_has_feedback, store) if self._auto_improve else None
        worker = BackgroundWorker(self.queue, self.run_job, name, has_feedback) if background else None
        space = session_space(
            store,
            name,
            workspace.now,
            workspace,
            *self.hooks,
            waiting_days=self.config.waiting_days,
            feedback_changed=do_nothing if worker is None else worker.feedback_changed,
        )
        added = worker.added if worker is not None else lambda job_id: self.job_added(job_id)
        jobs = ProjectJobs(self.queue, space, added)
        queries = Queries(self.pool, name)
        proofs = LazyProofs(queries, workspace.trust.authors_to_veto)
        executions = ExecutionSpace(workspace, space, self._language_model, queries, proofs, permissions)

        def finish() -> None:
            proofs.close()
            if worker is not None:
                worker.close()
            if not shared:
                self.pool.close()

        opened = Project(executions, jobs, Comments(workspace, store), finish)
        if not shared:
            self._only = opened
        if worker is not None:
            # Another database may not answer, and opening a project does not ask it.
            checked = has_feedback is not None and not store.remote and not self.database.read_only
            worker.start_due(feedback=checked and _has_feedback(store))
        return opened


def worker_of(store: Store) -> Worker:
    """A worker for all projects of a store."""
    every, find_feedback = store.config.digest_every, store.projects_with_feedback
    return Worker(store.queue, store.run_job, store.now, digest_every=every, find_feedback=find_feedback)


def async_project(store: Store, project: str, pool: ThreadPoolExecutor) -> AsyncHeedful:
    """One project of a store, for asyncio: it is open while a call runs. Whoever calls closes `store` and `pool`."""

    def open_and_run(call: Call, arguments: Arguments) -> Any:
        with store.using(project) as opened:
            return engine.run(opened, call, arguments)

    async def run(call: Call, arguments: Arguments) -> Any:
        return await asyncio.get_running_loop().run_in_executor(pool, open_and_run, call, arguments)

    async def close() -> None:
        """Others may use the store."""

    return AsyncHeedful(run, close, f"<AsyncHeedful {store.database.name} project={project!r}>")


def session_projects(url: str | None) -> list[str]:
    """The names of the projects whose sessions are in another database than the facts, if they are kept apart."""
    if url is None:
        return []
    with closing(_mongodb(url, DEFAULT_PROJECT)) as store:
        return store.projects()


def _has_feedback(store: SessionStore) -> bool:
    """Whether there is feedback that `improve` has not processed."""
    return bool(store.read(lambda tx: tx.feedbacks.unprocessed(None, 1)))


def _mongodb(url: str, project: str) -> MongoSessionStore:
    if not url.startswith(("mongodb://", "mongodb+srv://")):
        remedy = "Use mongodb://host/database, or leave it out to keep sessions with the facts"
        raise Invalid(f"invalid sessions {quoted(url)}", field="sessions", value=url, remedy=remedy)
    from heedful.sessions.mongo import MongoSessionStore

    return MongoSessionStore(url, project)


def session_space(
    store: SessionStore,
    project: str,
    now: Callable[[], int],
    workspace: Workspace | None,
    feedback_hook: Hook | None,
    metadata_hook: Hook | None,
    dispatcher: Dispatcher | None = None,
    waiting_days: int = 1,
    feedback_changed: Callable[[], object] = do_nothing,
) -> SessionSpace:
    """The sessions of a project. Hooks that need the store get it: channels go to the dispatcher, counters count."""
    dispatcher = dispatcher or Dispatcher(store, now)
    space = SessionSpace(
        store, project, now, dispatcher, workspace, feedback_hook, metadata_hook, waiting_days, feedback_changed
    )
    for hook in combined_hooks(feedback_hook):
        if hasattr(hook, "bind"):
            hook.bind(lambda: metrics(space))
        space.dispatcher.add(*getattr(hook, "channels", ()))
    return space
