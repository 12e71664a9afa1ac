"""Opening a store: what `heedful.open` does."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec

from heedful import settings
from heedful.access.audit import list_entries
from heedful.access.hardening import check_security
from heedful.aio import AsyncHeedful
from heedful.api import ALL_CALLS, checks
from heedful.api.calls import Arguments, Call
from heedful.api.parameters import Progress
from heedful.clock import Clock, system_clock, to_stored
from heedful.engine import Heedful, project_of, run
from heedful.errors import Invalid
from heedful.jobs import kinds
from heedful.jobs.handlers import StoreJobs
from heedful.jobs.queue import Queue
from heedful.jobs.retention import maintain, table_sizes
from heedful.memory import doctor
from heedful.model import AuditEntry, AuditKind, Check, Page, StoreRevision, TableSize
from heedful.providers.configured import configured_embedder
from heedful.providers.embedding import Embedder
from heedful.providers.llm import LanguageModel
from heedful.sessions.hooks import Hook
from heedful.storage import Database, open_store, scopes, sqlite
from heedful.storage.migrations import HEAD
from heedful.storage.opening import store_url
from heedful.store import Store


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

OpenParameters = ParamSpec("OpenParameters")


def _for_asyncio(
    open_store: Callable[OpenParameters, Heedful],
) -> Callable[OpenParameters, Coroutine[Any, Any, AsyncHeedful]]:
    """A function with the same parameters, which opens the store in a thread."""

    async def aopen(*args: OpenParameters.args, **kwargs: OpenParameters.kwargs) -> AsyncHeedful:
        """Opens a store for asyncio; see `open`."""
        return await _open_in_pool(partial(open_store, *args, **kwargs))

    signature = inspect.signature(open_store)
    aopen.__signature__ = signature.replace(return_annotation="AsyncHeedful")  # type: ignore[attr-defined]
    aopen.__qualname__ = "aopen"
    return aopen


aopen = _for_asyncio(open)


async def _open_in_pool(call: Callable[[], Heedful]) -> AsyncHeedful:
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="heedful")
    try:
        heedful = await asyncio.get_running_loop().run_in_executor(pool, call)
    except BaseException:
        pool.shutdown(wait=False)
        raise

    opened = project_of(heedful)

    async def run_there(call: Call, arguments: Arguments) -> Any:
        return await asyncio.get_running_loop().run_in_executor(pool, run, opened, call, arguments)

    async def close() -> None:
        await asyncio.to_thread(pool.shutdown)
        await asyncio.to_thread(heedful.close)

    return AsyncHeedful(run_there, close, f"<Async{repr(heedful)[1:]}")


def reembed(
    url_or_path: str | Path | None = None, *, embedding: str | Embedder | None = None, progress: Progress | None = None
) -> int:
    """Re-embeds a store with another model; returns how many were made.

    It may be stopped and started again; until it ends, the store serves with its former model.
    """
    embedder = configured_embedder(settings.load(store=url_or_path), embedding)
    with _database(url_or_path, create=True) as database:
        return doctor.reembed(database, embedder, progress)


def reseal_connectors(url_or_path: str | Path | None = None) -> int:
    """Encrypts the URLs of all connectors of a store again, with the first key of HEEDFUL_SECRET_KEY; returns how many.

    Afterwards, the other keys are not needed any more.
    """
    from heedful.sql import connectors

    with _database(url_or_path) as database:
        return connectors.reencrypt(database)


@contextmanager
def store_jobs(url_or_path: str | Path | None = None) -> Iterator[StoreJobs]:
    """The jobs of all projects of a store, and of the store itself; no model is loaded."""
    with _database(url_or_path, create=True) as database:
        yield StoreJobs(Queue(database, lambda: to_stored(system_clock())))


def store_audit(
    url_or_path: str | Path | None = None,
    *,
    kind: AuditKind | None = None,
    since: datetime | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[AuditEntry]:
    """The audit trail of all projects of a store, and of the store itself; no model is loaded."""
    arguments = ALL_CALLS["audit"].checked({"kind": kind, "since": since, "cursor": cursor, "limit": limit})
    with _database(url_or_path) as database:
        return list_entries(database, None, **arguments)


def migrate_store(url_or_path: str | Path | None = None, *, distribute: bool = False) -> StoreRevision:
    """Creates the tables of a store, or upgrades them; no model is loaded. `distribute` spreads its projects over the
    nodes of a cluster."""
    with _database(url_or_path, create=True) as database:
        if distribute:
            database.distribute()
        placement = database.placement(None)
        nodes = [] if placement is None else [node.address for node in placement.nodes]
        return StoreRevision(store=database.name, revision=HEAD, nodes=nodes)


def maintain_store(url_or_path: str | Path | None = None) -> list[str]:
    """Maintains an existing store, as its workers do every hour; returns what was done, in words."""
    config = settings.load(store=url_or_path)
    with _database(url_or_path) as database:
        now = to_stored(system_clock())
        kinds.forget_jobs(Queue(database, lambda: now), now, config.job_days)
        done = maintain(database, now, config)
    if config.sessions is not None or config.revert_worse_policy:
        with closing(Store(url_or_path)) as store:
            if config.sessions is not None:
                kinds.follow_reviews(store)
            done += kinds.guard_policies(store)
    return done


def store_sizes(url_or_path: str | Path | None = None) -> list[TableSize]:
    """The room that each table of an existing store takes."""
    with _database(url_or_path) as database, database.read() as connection:
        return table_sizes(connection)


def store_security(url_or_path: str | Path | None = None) -> list[Check]:
    """The checks of an existing store that is to be used in production."""
    config = settings.load(store=url_or_path)
    with _database(url_or_path) as database:
        return check_security(database, config, os.environ, Path.cwd(), to_stored(system_clock()))


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
    with _database(url_or_path) as database, database.read() as connection:
        return scopes.project_names(connection)


def _database(url_or_path: str | Path | None, *, create: bool = False) -> closing[Database]:
    """A store, or that of the settings, for the length of a block."""
    return closing(open_store(settings.load().store if url_or_path is None else url_or_path, create=create))
