"""Makes a statement fail that concerns one project and needs more than its shard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event

from heedful.storage import rows
from heedful.storage.postgresql import backend

_LEVEL = "citus.multi_task_query_log_level"


@contextmanager
def single_shard(port: int) -> Iterator[None]:
    """Connections to a coordinator refuse such statements meanwhile, except in transactions that see all projects."""

    def refuse(driver: Any, record: Any) -> None:
        if isinstance(driver, psycopg.Connection) and driver.info.port == port:
            driver.execute(f"SET {_LEVEL} = 'error'".encode())
            if not driver.autocommit:
                driver.commit()

    def execute(borrowed: Any, statements: Sequence[str]) -> Any:
        return plain(borrowed, [part for statement in statements for part in levels.get(statement, (statement,))])

    levels = {
        statement: (statement, f"SET LOCAL {_LEVEL} = '{level}'")
        for statement, level in ((rows.SEE_ALL, "off"), (rows.SEE_OWN, "error"))
    }
    plain = backend._execute
    event.listen(Engine, "connect", refuse)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(backend, "_execute", execute)
            patched.setattr(rows, "SEE_ALL", "; ".join(levels[rows.SEE_ALL]))
            patched.setattr(rows, "SEE_OWN", "; ".join(levels[rows.SEE_OWN]))
            yield
    finally:
        event.remove(Engine, "connect", refuse)
