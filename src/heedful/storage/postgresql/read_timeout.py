"""A server that keeps a connection open and doesn't answer: noticed, and told apart from one that is at work."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

from sqlalchemy import Engine, event

SILENT_SECONDS = 30.0
"""How long a statement waits before it asks whether the server answers anybody. If it does, it waits on."""


def add_read_timeout(engine: Engine) -> None:
    """Makes the connections of an engine of PostgreSQL end when their server has fallen silent."""
    import psycopg

    class Watched(psycopg.Connection[Any]):
        """A connection that knows how to reach its server once more."""

        reach: Callable[[], object] | None = None

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
            return super().wait(gen if self.reach is None else _watched(self, self.reach, gen), *args, **options)

    def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
        connection = Watched.connect(*arguments, **options)
        connection.reach = lambda: psycopg.connect(*arguments, **options).close()
        return connection

    event.listen(engine, "do_connect", connect)


def _watched(connection: Any, reach: Callable[[], object], gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The same waiting, which ends once the server is found to answer nobody."""
    import psycopg

    ask_at = monotonic() + SILENT_SECONDS
    try:
        state = next(gen)
        while True:
            ready = yield state
            # Nothing has come for a while: drivers look up several times a second.
            if not ready and monotonic() > ask_at:
                try:
                    reach()
                except psycopg.errors.ConnectionTimeout:
                    connection.close()
                    raise psycopg.OperationalError("the server accepts connections but doesn't answer") from None
                except psycopg.OperationalError:
                    # It has said no, so it is there.
                    pass
                ask_at = monotonic() + SILENT_SECONDS
            state = gen.send(ready)
    except StopIteration as done:
        return done.value
