"""Opening a store: what `heedful.open` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful import settings
from heedful.access.audit import list_entries
from heedful.access.hardening import check_security
from heedful.aio import AsyncHeedful
from heedful.clock import Clock, system_clock, to_stored
from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.jobs import kinds
from heedful.jobs.contract import Report, Task, Work
from heedful.jobs.kinds import FollowReview, Improve, SendDigest, forget_jobs
from heedful.jobs.service import Jobs, StoreJobs, queue_of
from heedful.jobs.worker import BackgroundWorker
from heedful.memory import checks
from heedful.memory import maintenance as _reembed
from heedful.memory.workspace import Workspace
from heedful.model import DEFAULT_PROJECT, AuditEntry, AuditKind, Check, Page, TableSize
from heedful.notifications.digests import digest_channels
from heedful.notifications.dispatcher import Dispatcher
from heedful.protocols.engine import Progress
from heedful.providers.embedding import Embedder, configured_embedder
from heedful.providers.llm import LanguageModel
from heedful.providers.llm import language_model_from as choose_language_model
from heedful.ranking.signals import Trust
from heedful.sessions.feedback import metrics
from heedful.sessions.hooks import Hook, combined_hooks
from heedful.sessions.space import SessionSpace
from heedful.sql import connectors
from heedful.sql.connector_access import Permissions
from heedful.sql.sandbox.confine import QueryLimits
from heedful.sql.sandbox.pool import Pool
from heedful.sql.sandbox.queries import Queries
from heedful.storage import Database, scopes, sqlite
from heedful.storage.database import store_url
from heedful.storage.retention import table_sizes, upkeep
from heedful.storage.sessions import SessionStore, SqlSessionStore

if TYPE_CHECKING:
    from heedful.storage.mongo import MongoSessionStore


def open(
    url_or_path: str | Path | None = None,
    *,
    project: str | None = None,
    clock: Clock | None = None,
    embedding: str | Embedder | None = None,
    language_model: str | LanguageModel | None = None,
    sessions: str | None = None,
    feedback_hook: Hook | None = None,
    metadata_hook: Hook | None = None,
    worker: bool = True,
) -> Heedful:
    """Opens a store, and makes it if it is new.

    `url_or_path` is a file, `sqlite:///file.db`, or `:memory:`; `heedful.db` in the current folder if left out.
    `embedding` is `bundled`, `fast`, a folder with an ONNX model, `URL#model`, or an embedder of your own.
    `language_model`, if any, writes answers: `URL#model` of an OpenAI-compatible endpoint. `sessions` is a `mongodb://`
    URL if sessions and their feedback should be kept there. Hooks stand between callers and the store. Without a
    `worker`, this process does no jobs in the background, and leaves them to others.
    """
    given = settings.load()
    name = checks.name("project", given.project if project is None else project)
    checks.flag("worker", worker)
    host = Host(
        url_or_path,
        clock=clock,
        embedding=embedding,
        language_model=language_model,
        sessions=sessions,
        feedback_hook=feedback_hook,
        metadata_hook=metadata_hook,
    )
    return host.only(name, worker=worker)


THREADS = 8
"""Calls of one store that run at the same time for asyncio."""


async def aopen(
    url_or_path: str | Path | None = None,
    *,
    project: str | None = None,
    clock: Clock | None = None,
    embedding: str | Embedder | None = None,
    language_model: str | LanguageModel | None = None,
    sessions: str | None = None,
    feedback_hook: Hook | None = None,
    metadata_hook: Hook | None = None,
    worker: bool = True,
) -> AsyncHeedful:
    """Opens a store for asyncio; see `open`."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="heedful")
    call = partial(
        open,
        url_or_path,
        project=project,
        clock=clock,
        embedding=embedding,
        language_model=language_model,
        sessions=sessions,
        feedback_hook=feedback_hook,
        metadata_hook=metadata_hook,
        worker=worker,
    )
    try:
        heedful = await asyncio.get_running_loop().run_in_executor(pool, call)
    except BaseException:
        pool.shutdown(wait=False)
        raise

    async def run(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        method = getattr(getattr(heedful, namespace) if namespace else heedful, name)
        return await asyncio.get_running_loop().run_in_executor(pool, partial(method, *args, **kwargs))

    async def close() -> None:
        await asyncio.to_thread(pool.shutdown)
        await asyncio.to_thread(heedful.close)

    return AsyncHeedful(run, close, f"<Async{repr(heedful)[1:]}")


class Host:
    """One store that is opened once and serves many projects."""

    added: Callable[[str], object]
    """Called with the id of each job that a project adds."""
    served = Permissions(everywhere=False, secrets=frozenset())
    """What connectors may reach for those who call over HTTP: what the settings list."""

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
    ) -> None:
        given = settings.load()
        self.default_project = given.project
        self.search_in_memory = given.search_in_memory
        self.clock = clock or system_clock
        self._language_model = _language_model(given, language_model)
        self.embedder = configured_embedder(given, embedding)
        self.sessions = given.sessions if sessions is None else sessions
        self._receipt_share = given.receipt_share
        self.retention: settings.Retention = given
        self._trust = Trust(given.authors_to_teach, given.authors_to_veto)
        self.digest_every = given.digest_every
        self.digest_channels = digest_channels(given.digest_email, given.digest_webhook, given.digest_webhook_secret)
        self.served = Permissions(
            everywhere=False,
            hosts=given.connector_hosts,
            folders=given.connector_folders,
            secrets=frozenset(given.connector_secrets),
        )
        self._hooks = (feedback_hook, metadata_hook)
        self._only: Heedful | None = None
        self.database = Database(given.store if url_or_path is None else url_or_path)
        self.queue = queue_of(self.database, self.now)
        self.pool = Pool(query_limits(given))
        self.added = lambda job_id: None

    def project(self, name: str, work: Work | None = None) -> Heedful:
        """One project; closing it leaves the store open. With `work`, that does the jobs it adds, in a thread beside
        it."""
        checks.name("project", name)
        if work is None:
            return self._opened(name, shared=True, added=lambda job_id: self.added(job_id))
        background = BackgroundWorker(self.queue, work, name)
        opened = self._opened(name, shared=True, added=background.added, finish_jobs=background.close)
        background.start_due()
        return opened

    def only(self, name: str, *, worker: bool = True) -> Heedful:
        """One project, with which the store is closed; jobs are done by a `worker` beside it."""
        try:
            if not worker:
                return self._opened(name, shared=False)
            background = BackgroundWorker(self.queue, self.do, name)
            self._only = self._opened(name, shared=False, added=background.added, finish_jobs=background.close)
            background.start_due()
            return self._only
        except BaseException:
            self.close()
            raise

    def do(self, task: Task, report: Report) -> None:
        """Does a job."""
        kinds.run_job(self, task, report)

    @contextmanager
    def improving(self, project: str) -> Iterator[Improve]:
        """What improves a project, for jobs."""
        with self._using(project) as opened:
            yield opened._improve_reporting

    @contextmanager
    def digesting(self, project: str) -> Iterator[SendDigest]:
        """What sends the digests of a project, for jobs."""
        with self._using(project) as opened:
            yield partial(opened._send_digest, self.digest_channels)

    @contextmanager
    def reviewing(self, project: str) -> Iterator[FollowReview]:
        """What brings the review queue of a project up to the present, for jobs."""
        with self._using(project) as opened:
            yield opened._follow_review

    @contextmanager
    def _using(self, project: str) -> Iterator[Heedful]:
        if self._only is not None:
            yield self._only
            return
        opened = self.project(project)
        try:
            yield opened
        finally:
            opened.close()

    def embedder_named(self, name: str) -> Embedder:
        """A model by what `embedding` may be."""
        return configured_embedder(settings.load(), name)

    def projects(self) -> list[str]:
        """The names of all projects that something was written to in this store, oldest first."""
        with self.database.read() as connection:
            return scopes.project_names(connection)

    def all_projects(self) -> list[str]:
        """The same, and those that have nothing but sessions in another database."""
        return list(dict.fromkeys([*self.projects(), *self.projects_elsewhere()]))

    def projects_elsewhere(self) -> list[str]:
        """The names of the projects whose sessions are in another database, if they are kept apart."""
        return session_projects(self.sessions)

    def now(self) -> int:
        return to_stored(self.clock())

    def close(self) -> None:
        """Lets go of the store; its projects are closed before."""
        self.pool.close()
        self.database.close()

    def _opened(
        self,
        name: str,
        *,
        shared: bool,
        added: Callable[[str], object] = lambda job_id: None,
        finish_jobs: Callable[[], object] = lambda: None,
    ) -> Heedful:
        workspace = Workspace(
            self.database,
            self.embedder,
            name,
            self.clock,
            shared=shared,
            search_in_memory=self.search_in_memory,
            receipt_share=self._receipt_share,
            trust=self._trust,
        )
        with self.database.read() as connection:
            workspace.model(connection)
        store = _session_store(workspace, self.sessions)
        space = session_space(store, name, workspace.now, workspace, *self._hooks)
        jobs = Jobs(self.queue, space, added)
        queries = Queries(self.pool, name)

        def finish() -> None:
            finish_jobs()
            if not shared:
                self.pool.close()

        return Heedful(workspace, space, self._language_model, jobs, queries, finish)


def reembed(
    url_or_path: str | Path | None = None,
    *,
    embedding: str | Embedder | None = None,
    progress: Progress | None = None,
) -> int:
    """Re-embeds a store with another model; returns how many were made.

    It may be stopped and started again; until it ends, the store serves with its former model.
    """
    given = settings.load()
    embedder = configured_embedder(given, embedding)
    database = Database(given.store if url_or_path is None else url_or_path)
    try:
        return _reembed.reembed(database, embedder, progress)
    finally:
        database.close()


def reseal_connectors(url_or_path: str | Path | None = None) -> int:
    """Encrypts the URLs of all connectors of a store again, with the first key of HEEDFUL_SECRET_KEY; returns how many.

    Afterwards, the other keys are not needed any more.
    """
    database = Database(settings.load().store if url_or_path is None else url_or_path, create=False)
    try:
        return connectors.reencrypt(database)
    finally:
        database.close()


@contextmanager
def store_jobs(url_or_path: str | Path | None = None) -> Iterator[StoreJobs]:
    """The jobs of all projects of a store, and of the store itself; no model is loaded."""
    database = Database(settings.load().store if url_or_path is None else url_or_path)
    try:
        yield StoreJobs(queue_of(database, lambda: to_stored(system_clock())))
    finally:
        database.close()


def store_audit(
    url_or_path: str | Path | None = None,
    *,
    kind: AuditKind | None = None,
    since: datetime | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[AuditEntry]:
    """The audit trail of all projects of a store, and of the store itself; no model is loaded."""
    database = Database(settings.load().store if url_or_path is None else url_or_path, create=False)
    try:
        return list_entries(database, None, kind, since, cursor, limit)
    finally:
        database.close()


def maintain(url_or_path: str | Path | None = None) -> list[str]:
    """Does the upkeep of a store that is there, as its workers do now and then; returns what was done, in words."""
    given = settings.load()
    database = Database(given.store if url_or_path is None else url_or_path, create=False)
    try:
        now = to_stored(system_clock())
        forget_jobs(queue_of(database, lambda: now), now, given.job_days)
        done = upkeep(database, now, given)
    finally:
        database.close()
    if given.sessions is not None:
        host = Host(url_or_path)
        try:
            kinds.follow_reviews(host)
        finally:
            host.close()
    return done


def store_sizes(url_or_path: str | Path | None = None) -> list[TableSize]:
    """What takes how much room in a store that is there."""
    database = Database(settings.load().store if url_or_path is None else url_or_path, create=False)
    try:
        with database.read() as connection:
            return table_sizes(connection)
    finally:
        database.close()


def store_security(url_or_path: str | Path | None = None) -> list[Check]:
    """What stands between a store that is there and production."""
    given = settings.load()
    database = Database(given.store if url_or_path is None else url_or_path, create=False)
    try:
        return check_security(database, given, os.environ, Path.cwd(), to_stored(system_clock()))
    finally:
        database.close()


def store_file(url_or_path: str | Path) -> Path | None:
    """The file of a store; None for one on a server or in memory, and for what names no store."""
    try:
        url = store_url(url_or_path)
    except Invalid:
        return None
    named = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if named else None


def remove_empty_store(file: Path) -> None:
    """Removes the file of a store that has no project yet and that nobody else has open."""
    if not store_projects(file) and sqlite.is_unused(file):
        file.unlink()


def store_projects(url_or_path: str | Path) -> list[str]:
    """The names of the projects of a store that is there, oldest first; looking makes none."""
    database = Database(url_or_path, create=False)
    try:
        with database.read() as connection:
            return scopes.project_names(connection)
    finally:
        database.close()


def session_projects(url: str | None) -> list[str]:
    """The names of the projects whose sessions are in another database than the facts, if they are kept apart."""
    if url is None:
        return []
    store = _mongodb(url, DEFAULT_PROJECT)
    try:
        return store.projects()
    finally:
        store.close()


def _session_store(workspace: Workspace, url: str | None) -> SessionStore:
    if url is None:
        return SqlSessionStore(workspace.database, workspace.project, workspace.now)
    return _mongodb(url, workspace.project)


def _mongodb(url: str, project: str) -> MongoSessionStore:
    if not url.startswith(("mongodb://", "mongodb+srv://")):
        raise Invalid(
            f"invalid sessions {url!r}",
            field="sessions",
            value=url,
            remedy="Use mongodb://host/database, or leave it out to keep sessions with the facts",
        )
    from heedful.storage.mongo import MongoSessionStore

    return MongoSessionStore(url, project)


def session_space(
    store: SessionStore,
    project: str,
    now: Callable[[], int],
    workspace: Workspace | None,
    feedback_hook: Hook | None,
    metadata_hook: Hook | None,
    dispatcher: Dispatcher | None = None,
) -> SessionSpace:
    """What sessions work on. Hooks that need the store get it: channels go to the dispatcher, counters can count."""
    dispatcher = dispatcher or Dispatcher(store, now)
    space = SessionSpace(store, project, now, dispatcher, workspace, feedback_hook, metadata_hook)
    for hook in combined_hooks(feedback_hook):
        if hasattr(hook, "bind"):
            hook.bind(lambda: metrics(space))
        space.dispatcher.add(*getattr(hook, "channels", ()))
    return space


def query_limits(given: settings.Settings) -> QueryLimits:
    """The limits of queries on connectors that the settings ask for."""
    return QueryLimits(
        seconds=given.query_seconds,
        rows=given.query_rows,
        bytes=given.query_bytes,
        memory=given.query_memory,
        disk=given.query_disk,
        processes=given.query_processes,
        per_caller=given.query_processes_per_caller,
        wait=given.query_wait,
    )


def _language_model(given: settings.Settings, named: str | LanguageModel | None) -> LanguageModel | None:
    if named is not None and not isinstance(named, str):
        return named
    return choose_language_model(
        named or given.language_model,
        api_key=given.language_model_api_key,
        timeout=given.language_model_timeout,
    )
