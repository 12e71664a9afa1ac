"""Who calls: keys and tokens, what they may do, and what a token is for."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, cast

from starlette.requests import Request

from heedful.access import secrets, tokens
from heedful.access.tokens import Claims, target
from heedful.engine import Heedful
from heedful.errors import Forbidden, HeedfulError, NotFound
from heedful.interfaces.operations import OPERATIONS, OWNERS, Operation
from heedful.model import SCOPES, Scope
from heedful.project import Project
from heedful.request_context import CallerIdentity
from heedful.storage import keys
from heedful.storage.rows import AnyRow
from heedful.store import Store

logger = logging.getLogger("heedful")

KEY_CACHE_SECONDS = 1.0
"""Seconds after which a key is looked up again: as long as a revoked one may still work."""

LAST_USED_SECONDS = 60.0
"""Seconds between two notes of when a key was last used."""

MAX_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose key or token is good."""

    key_id: str
    project: str | None
    """The project it opens; None for all."""
    scopes: frozenset[Scope]
    rate_limit: int | None = None
    claims: Claims | None = None
    """What a token allows, if it is one."""

    def calling(self, request: Request) -> CallerIdentity:
        """Who does what is done for this request."""
        return CallerIdentity(self.key_id, address_of(request))

    def check(self, scope: Scope) -> None:
        if scope not in self.scopes:
            enough = "admin" if scope == "admin" else f"{scope} or admin"
            raise Forbidden(
                f"the {self._kind} has no scope {scope!r}",
                code="scope_missing",
                remedy=f"Use a key with {enough}; this {self._kind} has {', '.join(sorted(self.scopes))}",
            )

    def check_call(self, operation: Operation) -> None:
        """Whether this caller may call an operation; a token that names a suggestion may confirm it."""
        by_token = self.claims is not None and operation.name == CONFIRM
        self.check("feedback" if by_token else operation.scope)
        if operation.also_reads:
            self.check("read")

    def check_everywhere(self, remedy: str = "Use an admin key of the whole server") -> None:
        """Whether this caller may do what concerns all projects."""
        if self.project is not None:
            raise Forbidden(f"the {self._kind} opens only project {self.project!r}", code="project_key", remedy=remedy)

    def choose(self, project: str) -> str:
        """The project itself, if this caller may see it."""
        if self.project not in (None, project):
            # The same for a project that is not there and for one that is somebody else's.
            raise NotFound(
                f"no project {project!r}",
                field="project",
                value=project,
                remedy=f"This {self._kind} opens project {self.project!r}: name that one (project=…, --project)",
            )
        return project

    def connecting(self, project: Project) -> Heedful:
        """The calls of a project for this caller: who has the key of the whole server may connect any database."""
        if self.project is None and "admin" in self.scopes:
            project = project.limited(replace(project.executions.permissions, everywhere=True))
        return Heedful(project)

    @property
    def share(self) -> str:
        """With whom it shares what a server has: the visitors of a project are one."""
        return self.key_id if self.claims is None else "visitors"

    @property
    def _kind(self) -> str:
        return "key" if self.claims is None else "token"


class Callers:
    """Finds callers by what they present; keys are remembered for a moment."""

    def __init__(self, store: Store, admin_key: str | None) -> None:
        self._store = store
        self._admin = None if admin_key is None else secrets.digest(admin_key)
        self._cache: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._noted: dict[str, float] = {}
        self._notes = ThreadPoolExecutor(1, thread_name_prefix="heedful-notes")

    def remembered(self, presented: str) -> Caller | None:
        """A caller who was here a moment ago."""
        cached = self._cache.get(secrets.digest(presented))
        return cached[0] if cached is not None and time.monotonic() - cached[1] < KEY_CACHE_SECONDS else None

    def find(self, presented: str) -> Caller:
        """The caller behind a key or token; `Forbidden` if it is not good."""
        if presented.startswith(tokens.PREFIX):
            return self._token(presented)
        if self._admin is not None and secrets.matches(presented, self._admin):
            return self._remember(presented, Caller("admin", None, frozenset(SCOPES)))
        key_id = secrets.id_of(presented)
        if key_id is None:
            raise _invalid()
        with self._store.database.read() as connection:
            row = keys.get(connection, key_id)
        if row is None or not secrets.matches(presented, row.digest) or row.revoked_at is not None:
            raise _invalid()
        self._note(key_id)
        return self._remember(presented, caller_of(row))

    def _token(self, presented: str) -> Caller:
        now = self._store.now()
        with self._store.database.read() as connection:
            secrets_ = keys.signing_secrets(connection, now)
        claims = tokens.verify(presented, secrets_, now)
        # Names of people are not for the log.
        identity = secrets.digest(f"{claims.project}\0{claims.author}\0{claims.targets}").hex()[:16]
        return Caller(f"token:{identity}", claims.project, frozenset({"feedback"}), None, claims)

    def _remember(self, presented: str, caller: Caller) -> Caller:
        self._cache[secrets.digest(presented)] = (caller, time.monotonic())
        if len(self._cache) > MAX_CALLERS:
            self._cache.popitem(last=False)
        return caller

    def _note(self, key_id: str) -> None:
        now = time.monotonic()
        if now - self._noted.get(key_id, -LAST_USED_SECONDS) >= LAST_USED_SECONDS:
            self._noted[key_id] = now
            # Authentication must not wait for a writer.
            self._notes.submit(self._write_note, key_id)

    def _write_note(self, key_id: str) -> None:
        try:
            with self._store.database.write(durable=False) as connection:
                keys.used(connection, key_id, self._store.now())
        except HeedfulError as error:
            logger.warning("the last use of key %s can't be noted: %s", key_id, error)

    def close(self) -> None:
        """Writes what is left to note."""
        self._notes.shutdown()


def address_of(request: Request) -> str | None:
    """Where a request came from; what headers say of it counts from a trusted proxy alone."""
    return None if request.client is None else request.client.host[:60]


def caller_of(row: AnyRow) -> Caller:
    """Whoever has this key."""
    allowed = frozenset(SCOPES) if "admin" in row.scopes else frozenset(row.scopes)
    return Caller(row.id, row.project, allowed, row.rate_limit)


def presented_key(authorization: str | None, api_key: str | None) -> str:
    """The key in the headers of a request."""
    scheme, _, credentials = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    if api_key:
        return api_key.strip()
    if scheme and scheme.lower() != "bearer":
        # Not said back: it may be the key itself.
        missing = "has another scheme than Bearer" if credentials else "has no scheme before the key"
        message = f"the header Authorization {missing}"
    else:
        message = "no key was sent"
    raise Forbidden(message, code="key_missing", remedy="Send the header Authorization: Bearer hf_…")


def _invalid() -> Forbidden:
    return Forbidden("the key is not valid", code="key_invalid", remedy="Make one with: heedful keys add NAME")


def check_allowed(project: Project, caller: Caller) -> Heedful:
    """A project, whose calls that change something are `Forbidden` to a caller without their scope.

    Reading is left to the scope of the route: a route for feedback may look up what the feedback is about.
    """
    return cast(Heedful, _Allowed(caller.connecting(project), caller))


class _Allowed:
    def __init__(self, target: Any, caller: Caller, namespace: str = "") -> None:
        self._target = target
        self._caller = caller
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not self._namespace and name in OWNERS:
            return _Allowed(attribute, self._caller, name)
        operation = OPERATIONS.get(f"{self._namespace}.{name}".lstrip("."))
        return attribute if operation is None else self._checked(operation, attribute)

    def _checked(self, operation: Operation, method: Any) -> Any:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if operation.scope != "read":
                self._caller.check(operation.scope)
            if operation.writes_with is not None and kwargs.get(operation.writes_with) is not None:
                self._caller.check("write")
            if operation.restricted is not None and kwargs.get(operation.restricted) is not None:
                self._caller.check("admin")
            return method(*args, **kwargs)

        return call


RATE = 20
"""Calls a second that a token may make."""

TARGET_FIELDS = {
    "sessions.add_feedback": ("session_id", "qa_id"),
    "sessions.rate": ("external_id",),
    "sessions.delete_feedback": ("session_id", "qa_id"),
    "sessions.add_session_feedback": ("session_id",),
    "signal_recall": ("recall_id",),
}
"""Operations whose arguments name what they are about."""

CONFIRM = "chat.confirm_suggestion"
CREATE = frozenset({"feedback.create", "feedback.create_positive", "feedback.create_negative"})
CHANGE = frozenset({"feedback.update", "feedback.delete"})


def check_token(
    claims: Claims, operation: str, arguments: dict[str, Any], project: Project
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments, under the name of the token, and what they are about; `Forbidden` if it doesn't allow this."""
    named: dict[str, str]
    if operation in TARGET_FIELDS:
        named = target(**{name: arguments.get(name) for name in TARGET_FIELDS[operation]})
        _check(claims, named)
    elif operation in CREATE:
        fields = [name for name in ("execution_id", "chat_message_id") if arguments.get(name) is not None]
        if not fields:
            raise _refused()
        for name in fields:
            named = target(**{name: arguments[name]})
            _check(claims, named)
    elif operation == CONFIRM:
        named = target(execution_id=arguments["execution_id"], question=arguments["user_query"])
        _check(claims, named)
        arguments = _with_source(arguments, project)
    elif operation in CHANGE:
        return arguments, _own_target(claims, project, arguments["feedback_id"])
    elif operation == "retract":
        named = _own_session(claims, project, arguments["event_id"])
    else:
        raise _refused()
    return {**arguments, "author": claims.author}, named


def _check(claims: Claims, target: dict[str, str]) -> None:
    if not claims.names(target):
        raise _refused()


def _with_source(arguments: dict[str, Any], project: Project) -> dict[str, Any]:
    """The arguments with the connector and audience of the execution that they name; `Forbidden` if they name others:
    a token must not prove SQL for another audience."""
    space = project.executions
    with space.workspace.read() as connection:
        source = space.suggestion_source(connection, arguments["execution_id"])
        connector = space.connector(connection, source.connector_id)
    if arguments.get("connector_id") not in (None, connector.id, connector.name):
        raise _refused()
    if arguments.get("audience") not in (None, source.audience):
        raise _refused()
    return {**arguments, "connector_id": connector.id, "audience": source.audience}


def _own_target(claims: Claims, project: Project, feedback_id: str) -> dict[str, str]:
    feedback = Heedful(project).feedback.get(feedback_id)
    targets = [target(chat_message_id=feedback.chat_message_id), target(execution_id=feedback.execution_id)]
    named = [each for each in targets if claims.names(each)]
    if feedback.author != claims.author or not named:
        raise NotFound(f"no feedback {feedback_id!r} of yours", field="feedback_id", value=feedback_id)
    return named[0]


def _own_session(claims: Claims, project: Project, event_id: str) -> dict[str, str]:
    """The session that an opinion of the token's author is about."""
    opinion = project.session_feedback(event_id)
    if opinion is not None and opinion.active and opinion.author == claims.author and opinion.target_type == "session":
        named = target(session_id=opinion.session_id)
        if claims.names(named):
            return named
    raise NotFound(f"no feedback {event_id!r} of yours", field="event_id", value=event_id)


def _refused() -> Forbidden:
    return Forbidden(
        "the token does not allow this",
        code="scope_missing",
        remedy="Name the target when the token is made: keys.create_token([{…}])",
    )
