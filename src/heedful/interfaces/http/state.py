"""A server process: the open store, who calls and what they may do, the threads that work, and what each may take."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from starlette import types
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from heedful import request_context
from heedful.access import credentials
from heedful.access.audit import Refusals
from heedful.access.credentials import Claims
from heedful.api.calls import Arguments, Call
from heedful.compat.foreign_api import ForeignRoute
from heedful.engine import Heedful, Project
from heedful.errors import Forbidden, HeedfulError, Invalid, NotFound
from heedful.interfaces.http import sharing
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.sharing import Lane, RateLimiter, Room, RoomLimiter, server_busy
from heedful.model import SCOPES, Scope, limits
from heedful.request_context import CallerIdentity
from heedful.sql.sandbox.pool import busy as query_busy
from heedful.storage import key_rows as keys
from heedful.storage.rows import AnyRow, counting
from heedful.store import Store, worker_of
from heedful.threads import give_way, rest

logger = logging.getLogger("heedful")

KEY_CACHE_SECONDS = 1.0
"""Seconds after which a key is looked up again: as long as a revoked one may still work."""

LAST_USED_SECONDS = 60.0
"""Seconds between two notes of when a key was last used."""

MAX_CALLERS = 10_000

RATE = 20
"""Calls a second that a token may make."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose key or token is good."""

    key_id: str
    project: str | None
    """The project it opens; None for all."""
    scopes: frozenset[Scope]
    rate_limit: int | None = None
    claims: Claims | None = None
    """The permissions of a token, if it is one."""

    def calling(self, request: Request) -> CallerIdentity:
        return CallerIdentity(self.key_id, address_of(request))

    def check(self, scope: Scope) -> None:
        if scope not in self.scopes:
            enough = "admin" if scope == "admin" else f"{scope} or admin"
            remedy = f"Use a key with {enough}; this {self._kind} has {', '.join(sorted(self.scopes))}"
            raise Forbidden(f"the {self._kind} has no scope {scope!r}", code="scope_missing", remedy=remedy)

    def check_arguments(self, call: Call, arguments: Mapping[str, Any]) -> None:
        """Whether this caller may pass these arguments: some need a scope of their own."""
        if arguments.get(call.writes_with or "") is not None:
            self.check("write")
        if any(arguments.get(name) is not None for name in call.restricted):
            self.check("admin")

    def check_everywhere(self, remedy: str = "Use an admin key of the whole server") -> None:
        """Whether this caller may do what concerns all projects."""
        if self.project is not None:
            raise Forbidden(f"the {self._kind} opens only project {self.project!r}", code="project_key", remedy=remedy)

    def choose(self, project: str) -> str:
        """The project itself, if this caller may see it."""
        if self.project not in (None, project):
            # The same for a project that is not there and for one that is somebody else's.
            remedy = f"This {self._kind} opens project {self.project!r}: name that one (project=…, --project)"
            raise NotFound(f"no project {project!r}", field="project", value=project, remedy=remedy)
        return project

    def connected(self, project: Project) -> Project:
        """A project for this caller: who has the key of the whole server may connect any database."""
        if self.project is None and "admin" in self.scopes:
            return project.limited(replace(project.executions.permissions, everywhere=True))
        return project

    @property
    def share(self) -> str:
        """With whom it shares what a server has: the visitors of a project are one."""
        return self.key_id if self.claims is None else "visitors"

    @property
    def _kind(self) -> str:
        return "key" if self.claims is None else "token"


class AllowedCalls(Heedful):
    """The calls of a project for a caller; those that change something are `Forbidden` without their scope.

    Reading is left to the scope of the route: a route for feedback may look up what the feedback is about.
    """

    def __init__(self, project: Project, caller: Caller) -> None:
        super().__init__(caller.connected(project))
        self._caller = caller

    def _run(self, call: Call, arguments: Arguments) -> Any:
        if call.scope != "read":
            self._caller.check(call.scope)
        self._caller.check_arguments(call, arguments)
        return super()._run(call, arguments)


class Callers:
    """Finds callers by what they present; keys are remembered for a moment."""

    def __init__(self, store: Store, admin_key: str | None) -> None:
        self._store = store
        self._admin = None if admin_key is None else credentials.digest(admin_key)
        self._cache: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._noted: dict[str, float] = {}
        self._notes = ThreadPoolExecutor(1, thread_name_prefix="heedful-notes")

    def remembered(self, presented: str) -> Caller | None:
        """A caller who was here a moment ago."""
        cached = self._cache.get(credentials.digest(presented))
        return cached[0] if cached is not None and time.monotonic() - cached[1] < KEY_CACHE_SECONDS else None

    def find(self, presented: str) -> Caller:
        """The caller behind a key or token; `Forbidden` if it is not good."""
        if presented.startswith(credentials.TOKEN_PREFIX):
            return self._token(presented)
        if self._admin is not None and credentials.matches(presented, self._admin):
            return self._remember(presented, Caller("admin", None, frozenset(SCOPES)))
        key_id, row = credentials.id_of(presented), None
        if key_id is not None:
            with self._store.database.read() as connection:
                row = keys.get(connection, key_id)
        if row is None or not credentials.matches(presented, row.digest) or row.revoked_at is not None:
            raise Forbidden("the key is not valid", code="key_invalid", remedy="Make one with: heedful keys add NAME")
        now = time.monotonic()
        if now - self._noted.get(row.id, -LAST_USED_SECONDS) >= LAST_USED_SECONDS:
            self._noted[row.id] = now
            # Authentication must not wait for a writer.
            self._notes.submit(self._note_use, row.id)
        return self._remember(presented, caller_of(row))

    def _token(self, presented: str) -> Caller:
        now = self._store.now()
        with self._store.database.read() as connection:
            secrets = keys.signing_secrets(connection, now)
        claims = credentials.verify_token(presented, secrets, now)
        # Names of people are not for the log.
        identity = credentials.digest(f"{claims.project}\0{claims.author}\0{claims.targets}").hex()[:16]
        return Caller(f"token:{identity}", claims.project, frozenset({"feedback"}), None, claims)

    def _remember(self, presented: str, caller: Caller) -> Caller:
        self._cache[credentials.digest(presented)] = (caller, time.monotonic())
        if len(self._cache) > MAX_CALLERS:
            self._cache.popitem(last=False)
        return caller

    def _note_use(self, key_id: str) -> None:
        try:
            with self._store.database.write(durable=False) as connection:
                keys.used(connection, key_id, self._store.now())
        except HeedfulError as error:
            logger.warning("the last use of key %s can't be noted: %s", key_id, error)

    def close(self) -> None:
        """Writes what is left to note."""
        self._notes.shutdown()


def address_of(request: Request) -> str | None:
    """The address of a request's sender; headers about it count from a trusted proxy alone."""
    return None if request.client is None else request.client.host[:60]


def caller_of(row: AnyRow) -> Caller:
    allowed = frozenset(SCOPES) if "admin" in row.scopes else frozenset(row.scopes)
    return Caller(row.id, row.project, allowed, row.rate_limit)


def presented_key(authorization: str | None, api_key: str | None) -> str:
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    if api_key:
        return api_key.strip()
    message = "no key was sent"
    if scheme and scheme.lower() != "bearer":
        # Not said back: it may be the key itself.
        missing = "has another scheme than Bearer" if key else "has no scheme before the key"
        message = f"the header Authorization {missing}"
    raise Forbidden(message, code="key_missing", remedy="Send the header Authorization: Bearer hf_…")


@dataclass(frozen=True, slots=True)
class BodyLimit:
    size: int
    """In bytes."""
    values: int = limits.MAX_VALUES
    purpose: str = ""
    remedy: str = "Send it in several calls, or start the server with a larger --max-body"

    def expected_size(self, request: Request) -> int:
        """The bytes of a body that will be read: none of one that is too large."""
        length = request.headers.get("content-length", "")
        if length.isdecimal():
            return int(length) if int(length) <= self.size else 0
        return self.size if "transfer-encoding" in request.headers else 0

    def check(self, size: int, shown: int | None = None) -> None:
        """`Invalid` if so many bytes are too many; `shown` is the whole size of the body, if it is known."""
        if size > self.size:
            length = f"more than {self.size} bytes" if shown is None else f"{shown} bytes"
            message = f"the body has {length}, the limit {self.purpose}is {self.size}"
            raise Invalid(message, code="body_too_large", field="body", value=shown, remedy=self.remedy)


async def body_of(request: Request, limit: BodyLimit) -> bytes:
    """The whole body, if it is not larger than its limit; it is not read further than that."""
    length = request.headers.get("content-length", "")
    if length.isdecimal():
        limit.check(int(length), shown=int(length))
    parts: list[bytes] = []
    size, is_complete = 0, False
    while not is_complete:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        limit.check(size)
        is_complete = not message.get("more_body", False)
    return b"".join(parts)


def path_of(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a path, decoded; a slash in one is written %2F."""
    try:
        return {name: unquote(value, errors="strict") for name, value in parameters.items()}
    except UnicodeDecodeError:
        raise NotFound("the path is not valid UTF-8") from None


PART = 65_536
"""Bytes that are sent at once; the next are sent when these were taken."""

LARGE = 1_000_000
"""Bytes from which an answer needs room."""


class LimitedResponse(Response):
    """JSON of any size. A large one needs room while it is sent, in the share of its caller; `Unavailable` if those who
    don't read theirs take all of it."""

    def __init__(
        self,
        content: bytes,
        taking: Callable[[int], AbstractAsyncContextManager[None]],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, status, headers, "application/json")
        self._taking = taking

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        size = len(self.body)
        if size < LARGE:
            await super().__call__(scope, receive, send)
            return
        async with self._taking(size):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for first in range(0, size, PART):
                part = bytes(self.body[first : first + PART])
                await send({"type": "http.response.body", "body": part, "more_body": first + PART < size})


Result = TypeVar("Result")

MAX_PARSED_AT_ONCE = 16_384
"""Bytes of a body that is read where all requests are accepted: longer ones would keep the others waiting."""

WAIT = 30.0
"""Seconds that a call waits for its turn."""

CLOSE_SECONDS = 10.0
"""Seconds in which threads must end and the store be closed when the server is stopped."""

FEEDBACK_THREADS = 2
"""Threads that write feedback to a file. More of them would write fewer calls together, and wait for each other."""

FEEDBACK_CALLS = FEEDBACK_THREADS * sharing.MAX_TOGETHER
"""Calls that they take at the same time."""

KNOWN_AS = "heedful.known_as"
"""The key of a request's scope with the function to call when its caller is known."""

REQUEST_CYCLE: ContextVar[RequestResponseCycle | None] = ContextVar("heedful_cycle", default=None)
"""The request that a task answers."""


def _in_thread(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Awaitable[Result]:
    return asyncio.get_running_loop().run_in_executor(pool, work)


def _with_rest(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        rest()


class ServerState:
    """The store, its projects, its callers, and the threads that work."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self.has_abandoned = False
        """Whether it was closed while calls were still running."""
        store.serve_others()
        self.refusals = Refusals(store.database, store.now)
        self.callers = Callers(store, config.admin_key)
        self._limiter = RateLimiter()
        processors = os.cpu_count() or 1
        # A database of many writers, one on the network, or a hook keeps more threads waiting.
        shared = store.sessions or store.database.many_writers or any(store.hooks)
        # More threads than processors only take turns, unless they wait for something else.
        self.calls = Lane("call", processors + 1, config.threads)
        self.recalls = Lane("recall", processors + 1, processors + 1)
        self.short = self.calls if shared else Lane("feedback", FEEDBACK_CALLS, FEEDBACK_CALLS)
        slow = max(1, processors // 2)
        self._shares = sharing.Shares((self.calls, self.recalls, self.short), slow, WAIT, time.monotonic)
        self._pool = ThreadPoolExecutor(config.threads + processors + 1, thread_name_prefix="heedful-call")
        self._slow_pool = ThreadPoolExecutor(slow, thread_name_prefix="heedful-slow", initializer=give_way)
        # Who waits for a language model must not keep others from being let in.
        self._auth_pool = ThreadPoolExecutor(2, thread_name_prefix="heedful-auth")
        # A query takes as long as a database does; who waits for one must not keep others waiting.
        self._querying = ThreadPoolExecutor(config.threads, thread_name_prefix="heedful-query")
        # A quarter for a caller, half for a project.
        self._most_queries = max(1, config.threads // 4)
        queries = Room(self._most_queries, max(1, config.threads // 2))
        self._queries = RoomLimiter(queries, store.pool.config.query_wait, query_busy)
        bodies = Room(2 * config.max_body, 4 * config.max_body, 8 * config.max_body)
        self._bodies = RoomLimiter(bodies, WAIT, server_busy)
        # Nobody waits for others to read: what waits is in memory, too.
        self._answers = RoomLimiter(bodies, 0.0, server_busy)
        self._written = sharing.WriteLimiter(config.max_written) if config.max_written else None
        self._feedback = None if shared else sharing.ShortCalls(FEEDBACK_THREADS, "heedful-feedback")
        self._stopped = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="heedful-follower", daemon=True)
        self._follower.start()
        self._worker = worker_of(store) if config.worker else None

    def lane(self, call: Call | ForeignRoute, size: int) -> Lane:
        """The lane for a call with a body of so many bytes; a long one would keep the short ones waiting."""
        is_short = call.scope == "feedback" and not call.batch and size <= MAX_PARSED_AT_ONCE
        return self.short if is_short else self.calls

    def start(self) -> None:
        if self._worker is not None:
            self.store.job_added = self._worker.wake
            self._worker.start()

    async def run(self, lane: Lane, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what takes the processor or the store in a thread, when it is its turn."""

        def execute(measured: Callable[[], Result], is_slow: bool) -> Awaitable[Result]:
            cycle = REQUEST_CYCLE.get()
            if cycle is not None and cycle.disconnected:
                raise ClientDisconnect
            if is_slow:
                return _in_thread(self._slow_pool, partial(_with_rest, measured))
            if lane is self.short and self._feedback is not None:
                return self._feedback.run(measured)
            return _in_thread(self._pool, measured)

        return await self._shares.run(lane, project, caller.share, work, execute)

    def answer(
        self, content: bytes, project: str, caller: Caller, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A response with JSON, which takes its place in memory until it is sent."""
        return LimitedResponse(content, partial(self._answers.taking, project, caller.share), status, headers)

    async def run_lookup(self, work: Callable[[], Result]) -> Result:
        """Runs what only looks something up, however busy the others are."""
        return await _in_thread(self._auth_pool, work)

    @asynccontextmanager
    async def body(self, request: Request, project: str, caller: Caller, limit: BodyLimit) -> AsyncIterator[bytes]:
        """The body of a request, within its limit. It takes its place in memory while the block runs."""
        size = limit.expected_size(request)
        room: AbstractAsyncContextManager[None] = nullcontext()
        if size > MAX_PARSED_AT_ONCE:
            await self._shares.admit(project, caller.share, size * sharing.BYTE_SECONDS)
            room = self._bodies.taking(project, caller.share, size)
        async with room:
            yield await body_of(request, limit)

    @contextmanager
    def opened(self, request: Request, project: str, caller: Caller, call: Call) -> Iterator[Project]:
        """The project that a call is about, inside for its caller."""
        # A key of one project made that project. Whoever opens all may mistype a name.
        if caller.project is None and (call.scope == "read" or call.name == "set_policy"):
            self.store.check_known(project)
        acting = request_context.acting_as(caller.calling(request))
        with acting, self.storing(project, call), self.store.using(project) as opened:
            yield opened

    @contextmanager
    def storing(self, project: str, call: Call | ForeignRoute) -> Iterator[None]:
        """Counts what a call stores inside the block for its project, which must not have used up its share. What is
        asked for with GET, or deleted, is done in any case."""
        if self._written is None:
            yield
            return
        account: sharing.Account = (project, "read" if call.scope == "read" else "write")
        if call.method not in ("GET", "DELETE"):
            self._written.check(account, time.monotonic())
        with counting() as stored:
            try:
                yield
            finally:
                self._written.charge(account, stored.total, time.monotonic())

    async def parse(self, raw: bytes, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what reads a body: in a thread, unless it is short."""
        return work() if len(raw) <= MAX_PARSED_AT_ONCE else await self.run(self.calls, project, caller, work)

    async def query(self, project: str, caller: Caller, work: Callable[[], Result]) -> Result:
        """Runs what may ask a connector's database: apart from the rest, and only so much for each caller at a time."""
        # Who takes more of the processor than others is done one at a time.
        weight = self._most_queries if self._shares.takes_more(project, caller.share) else 1
        async with self._queries.taking(project, caller.share, weight):
            return await self._shares.measured(project, caller.share, work, partial(_in_thread, self._querying))

    async def caller(self, request: Request, scope: Scope | None) -> Caller:
        """The caller of a request, if they may do this now."""
        key = presented_key(request.headers.get("authorization"), request.headers.get("x-api-key"))
        caller = self.callers.remembered(key)
        if caller is None:
            caller = await self.run_lookup(lambda: self.callers.find(key))
        await self.admit(request, caller)
        if scope is not None:
            caller.check(scope)
        return caller

    async def admit(self, request: Request, caller: Caller) -> None:
        """Counts a request and its connection for its caller; `Unavailable` if they have too many. Who takes more of
        the processor than others waits."""
        request.scope["heedful.caller"] = caller.key_id
        if KNOWN_AS in request.scope:
            request.scope[KNOWN_AS](caller.key_id, caller.project, is_visitor=caller.claims is not None)
        if caller.project is not None:
            request.scope["heedful.project"] = caller.project
        rate = caller.rate_limit or self.config.rate_limit
        if caller.claims is not None:
            rate = min(rate, RATE)
        if rate:
            self._limiter.check(caller.key_id, rate, time.monotonic())
        project = caller.project or path_of(request.path_params).get("project") or self.store.default_project
        await self._shares.admit(project, caller.share)

    def close(self) -> None:
        """Waits for running calls and the batch of the running job, and closes the store. What takes longer than
        `CLOSE_SECONDS` is abandoned."""
        closing = threading.Thread(target=self._close, name="heedful-closing", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        self.has_abandoned = closing.is_alive()
        if self.has_abandoned:
            logger.warning("calls or jobs that don't end are abandoned: what they had not stored by now is lost")

    def _close(self) -> None:
        if self._worker is not None:
            self._worker.stop()
        self._stopped.set()
        self._follower.join()
        if self._feedback is not None:
            self._feedback.close()
        for pool in (self._slow_pool, self._querying, self._pool, self._auth_pool):
            pool.shutdown()
        self.callers.close()
        if self._worker is not None:
            self._worker.close()
        self.refusals.close()
        self.store.close()

    def _follow(self) -> None:
        """Has open indexes follow what others write. A recall reads what it lacks in any case: it is never old."""
        for changed in self.store.database.notices(self._stopped):
            for project in self.store.open_projects(changed):
                try:
                    project.workspace.follow()
                except HeedfulError as error:
                    # The next recall meets the same fault, and reports it to its caller.
                    logger.warning("the indexes of a project can't follow its store: %s", error)
