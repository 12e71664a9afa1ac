"""What a query process does with a request."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
from heedful.results import encode
from heedful.sql.databases import Database, Limits, open_database, stream_values, text_values
from heedful.sql.databases.errors import out_of_memory
from heedful.sql.guard import CheckedStatement, check_statement
from heedful.sql.sandbox.confine import reading, renew
from heedful.sql.sandbox.protocol import decode_parameters, encode_error, receive, send
from heedful.sql.statements import template

MAX_REQUEST = 64_000_000
READING_SECONDS = 2.0
"""The limit of CPU time for parsing SQL."""
RETIRE_MEGABYTES = 256
"""A process that has used more memory than this is replaced after its answer."""

SendReply = Callable[[dict[str, Any]], None]
Request = dict[str, Any]


def serve(requests: int, replies: int) -> None:
    """Answers requests until there are no more."""
    reply = partial(send, replies)
    reply({"ready": True})
    while (request := receive(requests, MAX_REQUEST)) is not None:
        answer = _answer(request, reply)
        # Nothing from a request, such as a password, outlives its handling.
        del request
        answer["last"] = answer.get("last", False) or _peak_megabytes() > RETIRE_MEGABYTES
        reply(answer)
        if answer["last"]:
            return


def _answer(request: Request, reply: SendReply) -> dict[str, Any]:
    try:
        renew(request["seconds"], request["memory"], request["disk"])
        return {"result": _DO[request["do"]](request, reply)}
    except HeedfulError as error:
        return {"error": encode_error(error)}
    except MemoryError:
        return {"error": encode_error(out_of_memory()), "last": True}
    except Exception:
        return {"fault": traceback.format_exc(limit=-10)}


def _check(request: Request, reply: SendReply) -> dict[str, Any]:
    query, hashed = _guarded(request["sql"], request["dialect"])
    return {"sql": query.sql, "parameters": list(query.parameters), "template": hashed}


def _run(request: Request, reply: SendReply) -> dict[str, Any]:
    database = _database(request)
    query, hashed = _guarded(request["sql"], database.dialect)
    sql = query.sql
    if request["display"] is not None:
        displayed, hashed = _guarded(request["display"], database.dialect)
        sql = displayed.sql
    version = database.data_version() if request["keep"] else None
    with database.session() as session:
        reply({"stage": "running"})
        result = session.run(
            query,
            decode_parameters(request["parameters"]),
            Limits(request["seconds"], request["rows"], request["bytes"]),
        )
    reply({"stage": "answering"})
    return {"sql": sql, "template": hashed, "version": version, "result": encode(result)}


def _schema(request: Request, reply: SendReply) -> dict[str, Any]:
    database = _database(request)
    if not request["privileged"]:
        database.check_rights()
    return asdict(database.read_schema())


def _values(request: Request, reply: SendReply) -> dict[str, Any]:
    database = _database(request)
    found = text_values(database, database.read_schema(), without=request["without"])
    texts = [[*key, texts, key in found.partial] for key, texts in found.values.items()]
    return {"texts": texts, "columns": sorted(found.columns)}


def _column(request: Request, reply: SendReply) -> str | None:
    database = _database(request)
    schema = database.read_schema()
    reply({"stage": "running"})
    return stream_values(
        database,
        schema,
        request["table"],
        request["column"],
        Limits(request["seconds"], request["rows"]),
        lambda texts: reply({"part": texts}),
        ordered=request["ordered"],
        after=request["after"],
    )


def _version(request: Request, reply: SendReply) -> str | None:
    return _database(request).data_version()


_DO: dict[str, Callable[[Request, SendReply], Any]] = {
    "check": _check,
    "column": _column,
    "run": _run,
    "schema": _schema,
    "values": _values,
    "version": _version,
}


def _database(request: Request) -> Database:
    return open_database(request["url"], role=request["role"], memory=request["memory"], disk=request["disk"])


def _guarded(sql: str, dialect: str) -> tuple[CheckedStatement, str]:
    """A statement that only reads, and a hash of it without its values."""
    with reading(READING_SECONDS):
        query = check_statement(sql, dialect)
        return query, template(query.sql, query.dialect).hex()


def _peak_megabytes() -> float:
    if sys.platform == "linux":
        # Not from `getrusage`, which includes the size of the parent process.
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
