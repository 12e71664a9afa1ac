"""A query process from the inside: how it answers a request, and how it confines itself.

It gives up rights, and lets the operating system limit what it takes. A limit that a system lacks is left out: the
server still kills a process that takes too long.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError, Invalid
from heedful.results import encode
from heedful.sql.databases.any_database import Database, Limits, stream_values, text_values
from heedful.sql.databases.errors import out_of_memory
from heedful.sql.databases.opening import open_database
from heedful.sql.guard import CheckedStatement, check_statement
from heedful.sql.sandbox.protocol import decode_parameters, encode_error, receive, send
from heedful.sql.statements import template

try:
    import resource
except ImportError:
    # Windows has no such limits.
    resource = None  # type: ignore[assignment]

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
        limits = Limits(request["seconds"], request["rows"], request["bytes"])
        result = session.run(query, decode_parameters(request["parameters"]), limits)
    reply({"stage": "answering"})
    return {"sql": sql, "template": hashed, "version": version, "result": encode(result)}


def _schema(request: Request, reply: SendReply) -> dict[str, Any]:
    database = _database(request)
    if not request["privileged"]:
        database.check_rights()
    return asdict(database.read_schema())


def _values(request: Request, reply: SendReply) -> dict[str, Any]:
    database = _database(request)
    values = text_values(database, database.read_schema(), without=request["without"])
    texts = [[*key, texts, key in values.partial] for key, texts in values.values.items()]
    return {"texts": texts, "columns": sorted(values.columns)}


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


_DO: dict[str, Callable[[Request, SendReply], Any]] = {
    "check": _check,
    "column": _column,
    "run": _run,
    "schema": _schema,
    "values": _values,
    "version": lambda request, reply: _database(request).data_version(),
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
    if resource is None:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


MEGABYTE = 1 << 20
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CPU_GRACE = 3
_CORES = 2
"""Cores that one query may keep busy."""


class _OutOfTime(BaseException):
    """Not an Exception, so that a parser which tries alternatives doesn't catch it."""


def confine(parent: int) -> None:
    """Called first: no new privileges, no core dumps, and the first to be killed when memory runs out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        system = ctypes.CDLL(None, use_errno=True)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before this was set.
            os._exit(0)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
    _limit("RLIMIT_CORE", 0)


def renew(seconds: float, memory: int, disk: int) -> None:
    """Before each request: the seconds of CPU from now on, the megabytes of memory and of each temporary file."""
    _limit("RLIMIT_DATA", memory * MEGABYTE)
    _limit("RLIMIT_FSIZE", disk * MEGABYTE)
    used = os.times()
    _limit("RLIMIT_CPU", math.ceil(used.user + used.system + seconds * _CORES + _CPU_GRACE))


@contextlib.contextmanager
def reading(seconds: float) -> Iterator[None]:
    """Limits the CPU time for parsing SQL; without such a timer, the server's timeout remains."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGVTALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except _OutOfTime:
        message = f"this SQL takes more than {seconds:g} seconds to read"
        remedy = "Shorten it, or put long lists of values into a table"
        raise Invalid(message, code="sql_too_complex", field="sql", remedy=remedy) from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _out_of_time(*_: object) -> None:
    raise _OutOfTime


def _limit(name: str, value: int) -> None:
    limit: Any = getattr(resource, name, None)
    if resource is None or limit is None:
        return
    _, hard = resource.getrlimit(limit)
    maximum = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(limit, (maximum, hard))
