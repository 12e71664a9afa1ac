"""The dashboard while it runs: its store and logins, its pages and actions, and one request of somebody logged in. A
key is presented once, and a signed cookie replaces it until it expires or the key is revoked."""

from __future__ import annotations

import secrets as random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode, urlsplit

import orjson
from cachetools import FIFOCache
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from heedful import request_context
from heedful.access import credentials
from heedful.api import CALLS
from heedful.clock import MINUTE
from heedful.engine import Heedful
from heedful.errors import Forbidden, HeedfulError, Invalid
from heedful.interfaces.dashboard import comparison
from heedful.interfaces.dashboard.comparison import DayRange
from heedful.interfaces.dashboard.rendering import address, environment, full_text
from heedful.interfaces.http.connections import is_loopback
from heedful.interfaces.http.sharing import RateLimiter
from heedful.interfaces.http.state import KEY_CACHE_SECONDS, Caller, ServerState, caller_of, path_of
from heedful.model import DEFAULT_DATASET, SCOPES, Page, Scope
from heedful.request_context import CallerIdentity
from heedful.storage import audit
from heedful.storage import key_rows as keys

Value = TypeVar("Value")
Result = TypeVar("Result")

COOKIE = "heedful_login"

Refused = type[HeedfulError] | tuple[type[HeedfulError], ...]

EMPTY: Page[Any] = Page(items=[], next_cursor=None)

PAGE_SIZE = 50

STRANGER = Caller("", "", frozenset())
"""Everybody who isn't logged in."""

MAX_NOTES = 10_000

MAX_PENDING = 20_000_000
"""Characters of the forms that are kept at once."""


@dataclass(frozen=True, slots=True)
class PageRoute:
    """Something to look at, under the address of a project."""

    path: str
    """Such as "/sessions/{session_id}"; what is in braces is in `here.path`."""
    work: Callable[[PageContext], Response]
    scope: Scope = "read"


@dataclass(frozen=True, slots=True)
class Undo:
    """The action that undoes another one."""

    action: str
    fields: Mapping[str, str]
    back: str | None = None
    """The address to go to afterwards; by default, the page about it."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The effect of an action, shown on the next page."""

    message: str
    to: str | None = None
    """The next address; that of the form, if left out."""
    undo: Undo | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do: a form that is posted to /p/{project}/do/{name}, with its fields in `here.form`.

    A form that is posted twice is done once.
    """

    name: str
    operation: str
    """The operation of the engine that it is; who may call that one may do this."""
    about: str
    """The deed in words: "correct this fact"."""
    work: Callable[[PageContext], ActionResult | Response]
    editable: tuple[str, ...] = field(default=())
    """The fields that people type, which they see again when it could not be done at once."""
    refused: Callable[[PageContext, HeedfulError], Response] | None = None
    """The page for an action that was refused, in place of the form by itself."""

    @property
    def scope(self) -> Scope:
        return CALLS[self.operation].scope


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    title: str
    key: str | None = None
    """The letter that leads there, after g."""
    scope: Scope = "read"


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An action that somebody was about to do when their login had expired."""

    project: str
    action: str
    fields: dict[str, str]


class Notes(Generic[Value]):
    """Values by name; the oldest are forgotten when there are too many."""

    def __init__(self, most: int = MAX_NOTES, size: Callable[[Value], int] | None = None) -> None:
        self._values: FIFOCache[str, Value] = FIFOCache(most, size)
        self._lock = threading.Lock()

    def put(self, name: str, value: Value) -> bool:
        """Keeps a value; False if there was one, which stays."""
        with self._lock:
            if name in self._values:
                return False
            self._values[name] = value
            return True

    def get(self, name: str) -> Value | None:
        with self._lock:
            return self._values.get(name)

    def take(self, name: str) -> Value | None:
        with self._lock:
            return self._values.pop(name, None)


def _size(action: PendingAction) -> int:
    return MAX_PENDING // MAX_NOTES + sum(len(name) + len(value) for name, value in action.fields.items())


SECOND = 1_000_000
LOGIN, FORM = "dashboard-login", "dashboard-form"
ADMIN = "admin"
LINK_MINUTES = 10


@dataclass(frozen=True, slots=True)
class Login:
    """The content of the cookie."""

    key_id: str
    name: str
    """The name that the person typed; may be empty."""
    expires_at: int
    number: str
    """Random, and another for each login."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody whose login is good."""

    caller: Caller
    login: Login
    key_name: str

    @property
    def author(self) -> str:
        """Under whose name things are done."""
        return self.login.name or self.key_name


class Logins:
    """Makes logins and forms of a store, and knows its own again."""

    def __init__(self, state: ServerState, hours: float) -> None:
        self._store = store = state.store
        self._callers = state.callers
        admin_key = state.config.admin_key
        with store.database.write() as connection:
            keys.ensure_signing_secret(connection, store.now())
        self._secrets: tuple[list[bytes], float] = ([], -KEY_CACHE_SECONDS)
        # Another admin key makes the logins of the former one useless.
        self._admin = None if admin_key is None else f"{ADMIN}:{credentials.digest(admin_key).hex()[:16]}"
        self._operator = f"{ADMIN}:{random.token_hex(8)}"
        """Whoever has the link that this process printed; with the process, their logins end."""
        self._link: tuple[bytes, int] | None = None
        self._link_lock = threading.Lock()
        self.seconds = int(hours * 3600)

    def link(self, server: str) -> str | None:
        """A link that logs in once, soon, and from this machine; None for a server that others can reach.

        The code is behind a #, so that it is in no request for a page, and thus in no log.
        """
        if not is_loopback(urlsplit(server).hostname):
            return None
        code = random.token_urlsafe(32)
        self._link = credentials.digest(code), self._store.now() + LINK_MINUTES * MINUTE
        return f"{server}/login#once={code}"

    def _takes(self, code: str, address: str | None) -> bool:
        """Whether this is the code of the link, which is then good for nothing more."""
        with self._link_lock:
            if self._link is None or not is_loopback(address) or not credentials.matches(code, self._link[0]):
                return False
            expires_at, self._link = self._link[1], None
        return self._store.now() < expires_at

    def enter(self, api_key: str, name: str, address: str | None) -> str:
        """The cookie for a key that is good; `Forbidden` otherwise, in the same words for every reason."""
        try:
            if api_key.startswith(credentials.TOKEN_PREFIX):
                raise Forbidden("a token is not a key")
            by_link = self._takes(api_key, address)
            caller = Caller(ADMIN, None, frozenset(SCOPES)) if by_link else self._callers.find(api_key)
        except Forbidden:
            remedy = "A link logs in once, for ten minutes. Make a key with: heedful --store STORE keys add NAME"
            raise Forbidden("This key or link is not valid", code="key_invalid", remedy=remedy) from None
        caller.check("read")
        key_id = self._operator if by_link else caller.key_id
        if key_id == ADMIN and self._admin is not None:
            key_id = self._admin
        now = self._store.now()
        login = Login(key_id, name, now + self.seconds * SECOND, random.token_urlsafe(12))
        with (
            request_context.acting_as(CallerIdentity(caller.key_id, address)),
            self._store.database.write() as connection,
        ):
            keys.add_login(connection, _digest(login), login.key_id, now, login.expires_at)
            audit.note_action(connection, "dashboard.login", now, None, None)
        return self.sealed(LOGIN, [login.key_id, login.name, login.expires_at, login.number])

    def leave(self, login: Login, address: str | None) -> None:
        """Ends a login: its cookie is good for nothing from now on, in every process."""
        key_id = login.key_id.partition(":")[0]
        with request_context.acting_as(CallerIdentity(key_id, address)), self._store.database.write() as connection:
            keys.end_login(connection, _digest(login))
            audit.note_action(connection, "dashboard.logout", self._store.now(), None, None)

    def read(self, cookie: str | None) -> Login | None:
        """The login of a cookie, expired or not, if it was made here."""
        values = None if cookie is None else self.opened(LOGIN, cookie)
        return None if values is None else Login(*values)

    def visitor(self, cookie: str | None) -> Visitor | None:
        """The login of a cookie; None if it has expired, its login was ended or its key was revoked."""
        login = self.read(cookie)
        if login is None or self._store.now() >= login.expires_at:
            return None
        with self._store.database.read() as connection:
            if not keys.has_login(connection, _digest(login)):
                return None
            row = keys.get(connection, login.key_id)
        if login.key_id.startswith(f"{ADMIN}:"):
            good = login.key_id in (self._admin, self._operator)
            return Visitor(Caller(ADMIN, None, frozenset(SCOPES)), login, ADMIN) if good else None
        if row is None or row.revoked_at is not None:
            return None
        return Visitor(caller_of(row), login, row.name)

    def ended(self, cookie: str | None) -> str | None:
        """Why a login that was made here is not good any more."""
        login = self.read(cookie)
        if login is None or self.visitor(cookie) is not None:
            return None
        if self._store.now() >= login.expires_at:
            return "Your login has expired."
        with self._store.database.read() as connection:
            if not keys.has_login(connection, _digest(login)):
                return "You have logged out."
        if login.key_id.startswith(f"{ADMIN}:"):
            return "You logged in to a dashboard that was stopped: use the link or the key of this one."
        return "The key that you logged in with is not valid any more: it was revoked or replaced."

    def form(self, login: Login) -> str:
        """A token for one form of one login."""
        return self.sealed(FORM, [login.key_id, login.number, random.token_urlsafe(9)])

    def form_of(self, token: str) -> tuple[str, str, str] | None:
        """The key, the login and the number of a form whose token was made here."""
        values = self.opened(FORM, token)
        return None if values is None else (values[0], values[1], values[2])

    def sealed(self, purpose: str, value: object) -> str:
        """A value that comes back as it was."""
        return credentials.sign(orjson.dumps(value), self._good_secrets()[0], purpose)

    def opened(self, purpose: str, text: str) -> list[Any] | None:
        """The value of a text that was sealed here for this purpose."""
        plain = credentials.verify(text, self._good_secrets(), purpose)
        if plain is None:
            return None
        values: list[Any] = orjson.loads(plain)
        return values

    def _good_secrets(self) -> list[bytes]:
        """The secrets that may have sealed something, read again after a second: another process may rotate them."""
        signing_secrets, at = self._secrets
        if not signing_secrets or time.monotonic() - at >= KEY_CACHE_SECONDS:
            with self._store.database.read() as connection:
                signing_secrets = keys.signing_secrets(connection, self._store.now())
            self._secrets = (signing_secrets, time.monotonic())
        return signing_secrets


def _digest(login: Login) -> bytes:
    return credentials.digest(login.number)


class Site:
    """One store, its projects, and who is logged in. It is one process, so that what it notes is in its memory."""

    def __init__(self, state: ServerState, actions: dict[str, Action], hours: float) -> None:
        self.state = state
        self.store = state.store
        self.actions = actions
        self.logins = Logins(state, hours)
        self.refusals = state.refusals
        self.limiter = RateLimiter()
        self.templates = environment()
        self.notice: Notes[ActionResult] = Notes()
        """Messages for the next page of a login."""
        self.pending: Notes[PendingAction] = Notes(MAX_PENDING, _size)
        """Actions that a login was about to do."""
        self.posted: Notes[bool] = Notes()
        """Forms that were done."""

    def project_names(self, only: str | None) -> list[str]:
        """The projects that somebody may see."""
        if only is not None:
            return [only]
        names = self.store.projects()
        return names or [self.store.default_project]

    async def visitor(self, request: Request) -> Visitor | None:
        """The sender of a request, if they are logged in; it counts for them."""
        cookie = request.cookies.get(COOKIE)
        visitor = None if cookie is None else await self.state.run_lookup(lambda: self.logins.visitor(cookie))
        if visitor is not None:
            await self.state.admit(request, visitor.caller)
        return visitor

    async def run(self, request: Request, visitor: Visitor | None, work: Callable[[], Result]) -> Result:
        """Runs what makes a page, when it is its turn: by the project and the key of a login, as calls of the API.
        Whoever isn't logged in shares one turn with all others who aren't."""
        caller = STRANGER if visitor is None else visitor.caller
        project = caller.project
        if project is None:
            project = path_of(request.path_params).get("project", "")
        return await self.state.run(self.state.calls, project, caller, work)


THEMES = ("auto", "light", "dark")


@dataclass(frozen=True)
class PageContext:
    """A request of somebody who is logged in: its page, and what they may do there."""

    request: Request
    site: Site
    visitor: Visitor
    project: str
    heedful: Heedful
    path: Mapping[str, str]
    """The parameters of the address."""
    query: Mapping[str, str]
    form: Mapping[str, str]
    """The posted fields; empty when something is looked at."""
    problems: list[str] = field(default_factory=list)
    """Why the page shows less than the address asks for."""

    @property
    def author(self) -> str:
        return self.visitor.author

    @property
    def url(self) -> str:
        """The address of this page, for forms that come back to it; what a form was posted from, where one was."""
        if self.request.method == "POST":
            return local(self.form.get("back"), self.at("overview"))
        query = self.request.url.query
        return f"{self.request.url.path}?{query}" if query else self.request.url.path

    @property
    def place(self) -> str:
        """The same, without its query."""
        return self.url.partition("?")[0]

    @property
    def section(self) -> str:
        """The entry of the navigation that this page belongs to."""
        parts = self.place.split("/")
        return parts[3] if len(parts) > 3 else "overview"

    @property
    def today(self) -> date:
        return self.site.store.clock().date()

    def may(self, operation: str) -> bool:
        return CALLS[operation].scope in self.visitor.caller.scopes

    def at(self, *parts: str, **query: str | int | None) -> str:
        """An address in this project: at("facts", fact_id)."""
        return address(self.project, *parts, **query)

    def elsewhere(self, project: str) -> str:
        return address(project, self.section)

    def also(self, **changes: str | int | None) -> str:
        """The address of this page with other values in its query; None takes one out."""
        query: dict[str, Any] = {**self.query, **changes}
        encoded = urlencode({name: value for name, value in query.items() if value is not None})
        return f"{self.place}?{encoded}"

    def choice(self, name: str, options: Iterable[str]) -> str | None:
        """The option that the address names, as it is written among `options`: browsers end lines in their own way."""
        value = self.query.get(name) or None
        if value is None or value in (names := list(options)):
            return value
        return next((option for option in names if _lines(option) == _lines(value)), value)

    def dataset(self) -> tuple[list[str], str]:
        """All datasets, and the one that the page is about: the first, if the address names none."""
        datasets = self.heedful.datasets()
        return datasets, self.choice("dataset", datasets) or (datasets[0] if datasets else DEFAULT_DATASET)

    @property
    def paging(self) -> dict[str, Any]:
        """The part of a list that the address names, as the calls that list take it."""
        return {"cursor": self.query.get("cursor"), "limit": PAGE_SIZE}

    def attempt(self, read: Callable[[], Value], otherwise: Value, refused: Refused = Invalid) -> Value:
        """The result of a read; `otherwise`, if the address asks for something that is refused, which the page says."""
        try:
            return read()
        except refused as error:
            self.problems.append(full_text(error))
            return otherwise

    def range(self, usual: int | None = 7) -> DayRange:
        return comparison.from_request(self.query, self.today, usual)

    def field(self, name: str) -> str:
        """A field that the form must have."""
        value = self.form.get(name, "").strip()
        if not value:
            raise Invalid(f"{name.replace('_', ' ')} is empty", field=name, remedy="Fill it in")
        return value

    def optional(self, name: str) -> str | None:
        """A field that may be empty or left out."""
        return self.form.get(name, "").strip() or None

    def token(self) -> str:
        """The token that a form needs: for this login, and once."""
        return self.site.logins.form(self.visitor.login)

    def notice(self) -> ActionResult | None:
        """The message of the last action, once."""
        return self.site.notice.take(self.visitor.login.number)

    def html(self, template: str, *, status: int | None = None, **values: Any) -> Response:
        """A page; the status says by default whether it shows what the address asks for."""
        complete = not self.problems and ("range" not in values or values["range"].problem is None)
        return HTMLResponse(self.fragment(template, **values), status or (200 if complete else 422))

    def part(self, template: str, title: str, back: str, **values: Any) -> Response:
        """A part of a page that comes after it, because it takes a while: as a script asked for it, or as a page by
        itself with a link `back`."""
        if "x-fragment" in self.request.headers:
            return HTMLResponse(self.fragment(template, **values))
        return self.html("part.html", status=200, part=template, title=title, back=back, **values)

    def fragment(self, template: str, **values: Any) -> str:
        values = {"problem": self.problems[0] if self.problems else None, **values}
        return self.site.templates.get_template(template).render(here=self, theme=theme_of(self.request), **values)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def local(address: str | None, otherwise: str) -> str:
    """An address of this site; `otherwise`, if it leads elsewhere."""
    if address is None or not address.startswith("/") or address.startswith(("//", "/\\")):
        return otherwise
    return address if address.isascii() and address.isprintable() else otherwise


def theme_of(request: Request) -> str:
    """Light, dark, or as the browser has it."""
    chosen = request.cookies.get("heedful_theme", "auto")
    return chosen if chosen in THEMES else "auto"
