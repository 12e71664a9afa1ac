"""The same engine for asyncio: each call runs in a bounded pool of threads, so no logic exists twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from heedful import engine
from heedful.clock import Clock
from heedful.embedding import Embedder
from heedful.engine import Heedful

THREADS = 8

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _awaited(
    method: Callable[Concatenate[Heedful, Parameters], Result],
) -> Callable[Concatenate[AsyncHeedful, Parameters], Coroutine[Any, Any, Result]]:
    async def run(self: AsyncHeedful, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        call = partial(method, self._heedful, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    update_wrapper(run, method)
    return run


class AsyncHeedful:
    """One project of one store; every method of `Heedful`, awaited. Use it in an `async with`, or close it."""

    def __init__(self, heedful: Heedful, pool: ThreadPoolExecutor) -> None:
        self._heedful = heedful
        self._pool = pool

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Async{repr(self._heedful)[1:]}"

    remember = _awaited(Heedful.remember)
    recall = _awaited(Heedful.recall)
    signal = _awaited(Heedful.signal)
    signal_recall = _awaited(Heedful.signal_recall)
    detect = _awaited(Heedful.detect)
    retract = _awaited(Heedful.retract)
    supersede = _awaited(Heedful.supersede)
    set_policy = _awaited(Heedful.set_policy)
    forget = _awaited(Heedful.forget)
    receipt = _awaited(Heedful.receipt)
    fact_stats = _awaited(Heedful.fact_stats)
    usefulness_stats = _awaited(Heedful.usefulness_stats)
    replay = _awaited(Heedful.replay)
    datasets = _awaited(Heedful.datasets)
    doctor = _awaited(Heedful.doctor)

    async def close(self) -> None:
        """Waits for calls that are under way, saves the indexes and lets go of the store."""
        await asyncio.to_thread(self._pool.shutdown)
        await asyncio.to_thread(self._heedful.close)


async def aopen(
    url_or_path: str | Path | None = None,
    *,
    project: str | None = None,
    clock: Clock | None = None,
    embedding: str | Embedder | None = None,
) -> AsyncHeedful:
    """Opens a store for asyncio; see `open`."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="heedful")
    call = partial(engine.open, url_or_path, project=project, clock=clock, embedding=embedding)
    try:
        heedful = await asyncio.get_running_loop().run_in_executor(pool, call)
    except BaseException:
        pool.shutdown(wait=False)
        raise
    return AsyncHeedful(heedful, pool)
