"""Detects a server that keeps a connection open but doesn't answer, as opposed to one that is busy."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

from sqlalchemy import Engine, event

SILENT_SECONDS = 30.0
"""How long a statement waits before it checks whether the server accepts connections. If it does, it waits on."""


def add_read_timeout(engine: Engine) -> None:
    """Ends an engine's connections when their server has fallen silent."""
    import psycopg

    class Watched(psycopg.Connection[Any]):
        """A connection that can open another one to its server."""

        reach: Callable[[], object] | None = None

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
            return super().wait(gen if self.reach is None else _watched(self, self.reach, gen), *args, **options)

    def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
        connection = Watched.connect(*arguments, **options)
        connection.reach = lambda: psycopg.connect(*arguments, **options).close()
        return connection

    event.listen(engine, "do_connect", connect)


def _watched(connection: Any, reach: Callable[[], object], gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Waits as before, but fails once the server accepts no connections."""
    import psycopg

    ask_at = monotonic() + SILENT_SECONDS
    try:
        state = next(gen)
        while True:
            ready = yield state
            # Nothing has arrived for a while: drivers check several times a second.
            if not ready and monotonic() > ask_at:
                try:
                    reach()
                except psycopg.errors.ConnectionTimeout:
                    connection.close()
                    raise psycopg.OperationalError("the server accepts connections but doesn't answer") from None
                except psycopg.OperationalError:
                    # It refused, so it is alive.
                    pass
                ask_at = monotonic() + SILENT_SECONDS
            state = gen.send(ready)
    except StopIteration as done:
        return done.value
