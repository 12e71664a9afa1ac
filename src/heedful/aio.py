"""The same engine for asyncio: its methods are awaited, and no logic exists twice.

The classes are made from the declared calls. `aio.pyi` has their signatures for editors and type checkers; `make docs`
writes it, and a test compares it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import Any, Self

from heedful.api import NAMESPACES, Memory
from heedful.api.calls import Arguments, Call, Namespace, calls_of

AsyncRunner = Callable[[Call, Arguments], Awaitable[Any]]
"""Runs a call with the arguments that were given."""


def _awaited(call: Call) -> Callable[..., Any]:
    @wraps(call.function)
    async def run(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self._run(call, call.arguments(args, kwargs))

    run.__wrapped__ = call  # type: ignore[assignment]
    return run


class _Awaiting:
    """Something whose calls are awaited."""

    def __init__(self, run: AsyncRunner) -> None:
        self._run = run


def _awaiting(namespace: type[Namespace]) -> type[_Awaiting]:
    members: dict[str, Any] = {verb: _awaited(call) for verb, call in calls_of(namespace).items()}
    members["__doc__"] = f"Every method of `{namespace.__name__}`, awaited."
    return type(f"Async{namespace.__name__}", (_Awaiting,), members | {"__module__": __name__})


_NAMESPACES = {name: _awaiting(namespace) for name, namespace in NAMESPACES.items() if name}
globals().update({namespace.__name__: namespace for namespace in _NAMESPACES.values()})


class AsyncHeedful(_Awaiting):
    """One project of one store; every method of `Heedful`, awaited. Use it in an `async with`, or close it."""

    locals().update({verb: _awaited(call) for verb, call in calls_of(Memory).items()})

    def __init__(self, run: AsyncRunner, closing: Callable[[], Awaitable[None]], display_name: str) -> None:
        super().__init__(run)
        self._closing = closing
        self._display_name = display_name
        self._before_close: list[Callable[[], Awaitable[None]]] = []
        for name, namespace in _NAMESPACES.items():
            setattr(self, name, namespace(run))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return self._display_name

    async def close(self) -> None:
        """Waits for running calls, saves the indexes and closes the store."""
        for finish in self._before_close:
            await finish()
        await self._closing()
