"""The same for asyncio: the work is done in a thread, and the calls of a memory that is awaited in its own loop."""

from __future__ import annotations

import asyncio
import inspect
from asyncio import AbstractEventLoop
from datetime import datetime
from typing import TYPE_CHECKING, Any

from heedful.integrations.scores.api import System
from heedful.integrations.scores.sync import ScoresExported, ScoresImported, export_scores, import_scores

if TYPE_CHECKING:
    from heedful.aio import AsyncHeedful
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful


async def aimport_scores(
    memory: Heedful | RemoteHeedful | AsyncHeedful,
    system: System,
    *,
    since: datetime | None = None,
    author: str | None = None,
) -> ScoresImported:
    """`import_scores`, awaited, with a memory of any kind."""
    return await asyncio.to_thread(import_scores, _for_threads(memory), system, since=since, author=author)


async def aexport_scores(memory: Heedful | RemoteHeedful | AsyncHeedful, system: System) -> ScoresExported:
    """`export_scores`, awaited, with a memory of any kind."""
    return await asyncio.to_thread(export_scores, _for_threads(memory), system)


def _for_threads(memory: Any) -> Any:
    return _Blocking(memory, asyncio.get_running_loop()) if inspect.iscoroutinefunction(memory.recall) else memory


class _Blocking:
    """A memory, or a part of one, whose calls are awaited in a loop while a thread waits for them."""

    def __init__(self, awaited: Any, loop: AbstractEventLoop) -> None:
        self._awaited = awaited
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._awaited, name)
        if not inspect.iscoroutinefunction(found):
            return _Blocking(found, self._loop)

        def call(*args: Any, **kwargs: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(found(*args, **kwargs), self._loop).result()

        return call
