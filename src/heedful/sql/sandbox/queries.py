"""SQL that is read, and databases that are asked, in other processes: what the executions of a project use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heedful.results import Result, decode
from heedful.sql.databases.contract import CONNECT_SECONDS
from heedful.sql.databases.schema import Schema
from heedful.sql.sandbox.pool import Pool
from heedful.sql.sandbox.protocol import parameters_sent, schema_received
from heedful.sql.statements import check_text

GRACE_SECONDS = 2.0
"""How much longer than its limit a query may take to stop by itself before its process is killed."""

_CHECK = {"start": 10.0}
_CONNECT = {"start": 10.0 + 2 * CONNECT_SECONDS}
_SCHEMA = {"start": 60.0 + CONNECT_SECONDS}
_ANSWERING = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """A database to ask; its URL holds secrets."""

    url: str
    role: str | None = None
    privileged: bool = False
    """Whether its user may do more than read."""

    def __repr__(self) -> str:
        return "Target(…)"


@dataclass(frozen=True, slots=True)
class Checked:
    """SQL that only reads: without comments, with the names of its parameters, and a hash of it without values."""

    sql: str
    parameters: tuple[str, ...]
    template: bytes


@dataclass(frozen=True, slots=True)
class Ran:
    """A statement that ran: as it is kept, a hash of it without values, its result, and the state of the data."""

    sql: str
    template: bytes
    result: Result
    encoded: dict[str, Any]
    """The result as it is stored."""
    version: str | None


class Queries:
    """The queries of one project."""

    def __init__(self, pool: Pool, project: str) -> None:
        self._pool = pool
        self._project = project

    def check(self, sql: str, dialect: str) -> Checked:
        """SQL as the guard lets it through; what it doesn't is an error."""
        check_text(sql)
        found = self._ask({"do": "check", "sql": sql, "dialect": dialect}, _CHECK)
        return Checked(found["sql"], tuple(found["parameters"]), bytes.fromhex(found["template"]))

    def run(self, target: Target, sql: str, parameters: Mapping[str, Any], display: str | None = None) -> Ran:
        """Runs one statement that only reads. With `display`, that is what is kept of it."""
        found = self._run(target, sql, parameters, display, self._pool.limits.rows, keep=True)
        return Ran(
            found["sql"], bytes.fromhex(found["template"]), decode(found["result"]), found["result"], found["version"]
        )

    def dry_run(self, target: Target, sql: str, parameters: Mapping[str, Any]) -> None:
        """Finds out whether a statement may run and would: one row of it is asked for."""
        self._run(target, sql, parameters, None, 1, keep=False)

    def read_schema(self, target: Target) -> Schema:
        """The tables and views of a database, if its user may do no more than it was accepted for."""
        request = {"do": "schema", **_place(target), "privileged": target.privileged}
        return schema_received(self._ask(request, _SCHEMA))

    def text_values(self, target: Target) -> dict[tuple[str, str], tuple[str, ...]]:
        """The texts that stand in the columns of a database, as far as they are few."""
        found = self._ask({"do": "values", **_place(target)}, _SCHEMA)
        return {(table, column): tuple(texts) for table, column, texts in found}

    def data_version(self, target: Target) -> str | None:
        """The same text twice means that no data changed in between; None if the database can't tell."""
        version: str | None = self._ask({"do": "version", **_place(target)}, _CONNECT)
        return version

    def _run(
        self,
        target: Target,
        sql: str,
        parameters: Mapping[str, Any],
        display: str | None,
        rows: int,
        *,
        keep: bool,
    ) -> dict[str, Any]:
        check_text(sql)
        request = {
            "do": "run",
            **_place(target),
            "sql": sql,
            "parameters": parameters_sent(parameters),
            "display": display,
            "rows": rows,
            "bytes": self._pool.limits.bytes,
            "keep": keep,
        }
        running = self._pool.limits.seconds + GRACE_SECONDS
        found: dict[str, Any] = self._ask(request, {**_CONNECT, "running": running, "answering": _ANSWERING})
        return found

    def _ask(self, request: dict[str, Any], stages: Mapping[str, float]) -> Any:
        return self._pool.ask(self._project, request, stages, self._pool.limits.seconds)


def _place(target: Target) -> dict[str, Any]:
    return {"url": target.url, "role": target.role}
