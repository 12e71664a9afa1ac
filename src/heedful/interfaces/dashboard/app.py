"""The dashboard as an application, its security headers, and starting it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.errors import HeedfulError, NotFound
from heedful.interfaces.dashboard import (
    execution_pages,
    fact_pages,
    overview_pages,
    rendering,
    responses,
    review_pages,
    settings_page,
)
from heedful.interfaces.dashboard.rendering import address
from heedful.interfaces.dashboard.site import Action, PageContext, PageRoute, Section, Site, Visitor
from heedful.interfaces.http.app import GRACE, first_key, listen, open_store, set_up
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig
from heedful.interfaces.http.middleware import BodyTimeout, Endpoint, Routes
from heedful.interfaces.http.state import ServerState
from heedful.model import NewKey
from heedful.store import Store
from heedful.version import __version__

SECTIONS = (
    Section("overview", "Overview", "o"),
    Section("review", "Review", "r"),
    Section("sessions", "Sessions", "s"),
    Section("facts", "Facts", "f"),
    Section("learning", "How it learns", "l"),
    Section("executions", "Executions", "e"),
    Section("experiments", "Experiments", "x"),
    Section("settings", "Settings", scope="admin"),
)

_MODULES = (overview_pages, review_pages, fact_pages, execution_pages, settings_page)

PAGES: tuple[PageRoute, ...] = tuple(page for module in _MODULES for page in module.PAGES)
ACTIONS: tuple[Action, ...] = tuple(action for module in _MODULES for action in module.ACTIONS)

LOGIN_HOURS = 8.0

INTERNAL_ERROR = "What it was is in the log of the dashboard. Nothing that was not confirmed was done"

EXPIRED = "Your login had expired. Nothing has been done yet, and nothing is lost."
FORBIDDEN_ACTION = (
    "Nothing was done: the key that you logged in with may not do this. Copy what you typed, "
    "log out, and log in with a key that may."
)


def create(
    store: Store, *, admin_key: str | None = None, hours: float = LOGIN_HOURS, body_seconds: float = 30.0
) -> FastAPI:
    """The application for a store that is open; it is closed when the application ends.

    `admin_key` opens everything, beside the keys in the store.
    """
    state = ServerState(Config(admin_key=admin_key, worker=False), store)
    site = Site(state, {action.name: action for action in ACTIONS}, hours)
    site.templates.globals["sections"] = SECTIONS

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        state.close()

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, HeedfulError):
            error = HeedfulError("Something went wrong here", remedy=INTERNAL_ERROR)
        return responses.plain_page(site, request, error)

    app = FastAPI(
        title="Heedful dashboard",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        exception_handlers={HeedfulError: refused, Exception: refused},
    )
    app.router.redirect_slashes = False
    routes: dict[str, dict[str, Endpoint]] = {
        "/static/{sum}/{name}": {"GET": rendering.serve_asset},
        "/": {"GET": responses.in_turn(site, partial(_first, site))},
        "/login": {"GET": partial(responses.show_login, site), "POST": partial(responses.log_in, site)},
        "/logout": {"POST": responses.in_turn(site, partial(responses.log_out, site), has_form=True)},
        "/theme": {"POST": partial(responses.set_theme, site)},
        "/resume": {"GET": responses.in_turn(site, partial(_resume, site))},
        "/p/{project}/do/{action}": {"POST": responses.in_turn(site, partial(responses.act, site), has_form=True)},
    }
    start = PageRoute("", lambda here: RedirectResponse(here.at("overview"), 303))
    for page in [*PAGES, start]:
        routes["/p/{project}" + page.path] = {"GET": responses.page(site, page)}
    not_found = responses.in_turn(site, partial(_not_found, site))
    app.router.routes += [Routes(routes), Route("/{rest:path}", not_found)]
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(BodyTimeout, seconds=body_seconds)
    app.state.site = site
    return app


def _first(site: Site, request: Request, visitor: Visitor | None) -> Response:
    """The address without a page: the first project."""
    if visitor is None:
        return RedirectResponse("/login", 303)
    return RedirectResponse(address(site.project_names(visitor.caller.project)[0], "overview"), 303)


def _resume(site: Site, request: Request, visitor: Visitor | None) -> Response:
    """The action that somebody was about to do when their login had expired."""
    pending = None if visitor is None else site.pending.get(visitor.login.number)
    if visitor is None or pending is None:
        return RedirectResponse("/", 303)
    action, projects = site.actions[pending.action], site.project_names(visitor.caller.project)
    accessible = pending.project in projects
    may = accessible and action.scope in visitor.caller.scopes
    message = EXPIRED if may else FORBIDDEN_ACTION

    def show(here: PageContext) -> Response:
        return responses.retry_page(here, action, pending.fields, message, status=200, may=may)

    return responses.render(site, request, visitor, show, project=pending.project if accessible else projects[0])


def _not_found(site: Site, request: Request, visitor: Visitor | None) -> Response:
    """An address without a page; one that ends with a slash leads to that without it."""
    path = request.url.path
    if path.startswith("/p/") and path.endswith("/"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(path.rstrip("/") + query, 308)
    if visitor is None:
        return RedirectResponse("/login", 303)
    missing = NotFound("Page not found", remedy="Choose a page on the left")
    return responses.error_page(site, request, visitor, missing)


POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class SecurityHeaders:
    """Refuses forms that other sites post, and puts the headers on all answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Routes are matched before the path is decoded, so that an id may hold a slash.
        if "raw_path" in scope:
            scope["path"] = scope["raw_path"].partition(b"?")[0].decode("ascii", errors="replace")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "private, no-cache")
            await send(message)

        if scope["method"] == "POST" and Headers(scope=scope).get("sec-fetch-site") == "cross-site":
            await PlainTextResponse("This form came from another site.", 403)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)


def serve(config: Config, ready: Callable[[str, NewKey | None, str | None], None]) -> None:
    """Serves the dashboard of a store until it is stopped; `ready` gets the address, the first key, and a link that
    logs in once."""
    set_up(config)
    listening, address = listen(config)
    store = open_store(config, background_jobs=True)
    try:
        key = first_key(config, store)
        app = create(store, admin_key=config.admin_key)
    except BaseException:
        store.close()
        raise
    ready(address, key, app.state.site.logins.link(address))
    uvicorn.Server(ServerConfig(app, config, timeout_graceful_shutdown=GRACE)).run(sockets=[listening])
