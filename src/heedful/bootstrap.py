"""Opening a store: what `heedful.open` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
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
from heedful.jobs.kinds import forget_jobs
from heedful.jobs.service import StoreJobs, queue_of
from heedful.memory import checks
from heedful.memory import maintenance as _reembed
from heedful.model import AuditEntry, AuditKind, Check, Page, StoreRevision, TableSize
from heedful.protocols.engine import Progress
from heedful.providers.embedding import Embedder, configured_embedder
from heedful.providers.llm import LanguageModel
from heedful.sessions.hooks import Hook
from heedful.sql import connectors
from heedful.storage import Database, scopes, sqlite
from heedful.storage.database import store_url
from heedful.storage.migrations import HEAD
from heedful.storage.retention import maintain, table_sizes
from heedful.store import Store

if TYPE_CHECKING:
    pass


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
    auto_improve: bool | None = None,
    worker: bool = True,
) -> Heedful:
    """Opens a store, and makes it if it is new.

    `url_or_path` is a file, `sqlite:///file.db`, `:memory:`, or `postgresql://…` (the extra `postgresql`);
    `heedful.db` in the current folder if left out.
    `embedding` is `bundled`, `fast`, a folder with an ONNX model, `URL#model`, or an embedder of your own.
    `language_model`, if any, writes answers: `URL#model` of an OpenAI-compatible endpoint. `sessions` is a `mongodb://`
    URL if sessions and their feedback should be kept there. Hooks run between callers and the store. Feedback improves
    recall a few seconds later, or when the store is closed; with `auto_improve=False`, when `improve` is called.
    Without a `worker`, this process does no jobs in the background, and leaves them and new feedback to others.
    """
    config = settings.load(store=url_or_path)
    name = checks.name("project", config.project if project is None else project)
    checks.flag("worker", worker)
    store = Store(
        url_or_path,
        clock=clock,
        embedding=embedding,
        language_model=language_model,
        sessions=sessions,
        feedback_hook=feedback_hook,
        metadata_hook=metadata_hook,
        auto_improve=auto_improve,
    )
    return store.open_only(name, worker=worker)


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
    auto_improve: bool | None = None,
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
        auto_improve=auto_improve,
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


def reembed(
    url_or_path: str | Path | None = None,
    *,
    embedding: str | Embedder | None = None,
    progress: Progress | None = None,
) -> int:
    """Re-embeds a store with another model; returns how many were made.

    It may be stopped and started again; until it ends, the store serves with its former model.
    """
    config = settings.load(store=url_or_path)
    embedder = configured_embedder(config, embedding)
    database = Database(config.store if url_or_path is None else url_or_path)
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


def migrate_store(url_or_path: str | Path | None = None) -> StoreRevision:
    """Creates the tables of a store, or upgrades them; no model is loaded."""
    database = Database(settings.load().store if url_or_path is None else url_or_path)
    database.close()
    return StoreRevision(store=database.name, revision=HEAD)


def maintain_store(url_or_path: str | Path | None = None) -> list[str]:
    """Maintains an existing store, as its workers do every hour; returns what was done, in words."""
    config = settings.load(store=url_or_path)
    database = Database(config.store if url_or_path is None else url_or_path, create=False)
    try:
        now = to_stored(system_clock())
        forget_jobs(queue_of(database, lambda: now), now, config.job_days)
        done = maintain(database, now, config)
    finally:
        database.close()
    if config.sessions is not None or config.revert_worse_policy:
        store = Store(url_or_path)
        try:
            if config.sessions is not None:
                kinds.follow_reviews(store)
            done += kinds.guard_policies(store)
        finally:
            store.close()
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
    """What an existing store needs for production."""
    config = settings.load(store=url_or_path)
    database = Database(config.store if url_or_path is None else url_or_path, create=False)
    try:
        return check_security(database, config, os.environ, Path.cwd(), to_stored(system_clock()))
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
