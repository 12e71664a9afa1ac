"""The dashboard as an application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from heedful.dashboard import answering, assets, entrance
from heedful.dashboard.entrance import COOKIE
from heedful.dashboard.here import Here, local
from heedful.dashboard.pages import ACTIONS, PAGES, SECTIONS
from heedful.dashboard.registry import Page
from heedful.dashboard.rendering import address
from heedful.dashboard.site import Site
from heedful.dashboard.walls import Walls
from heedful.errors import HeedfulError, NotFound
from heedful.opening import Host
from heedful.server.patience import Patience
from heedful.version import __version__

HOURS = 8.0
"""How long a login is good."""

BROKEN = "What it was is in the log of the dashboard. Nothing that was not confirmed was done"

EXPIRED = "Your login had expired. Nothing was done yet, and nothing is lost."
MAY_NOT = (
    "Nothing was done: the key that you logged in with may not do this. Copy what you typed, "
    "log out, and log in with a key that may."
)


def create(host: Host, *, admin_key: str | None = None, hours: float = HOURS, body_seconds: float = 30.0) -> FastAPI:
    """The application for a store that is open; it is closed when the application ends.

    `admin_key` opens everything, beside the keys in the store.
    """
    site = Site(host, {each.name: each for each in ACTIONS}, admin_key, hours)
    site.templates.globals["sections"] = SECTIONS

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.close()

    async def refused(request: Request, error: Exception) -> Response:
        known = error if isinstance(error, HeedfulError) else HeedfulError("Something went wrong here", remedy=BROKEN)
        return answering.bare(site, request, known)

    app = FastAPI(
        title="Heedful dashboard",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        exception_handlers={HeedfulError: refused, Exception: refused},
    )
    app.router.redirect_slashes = False
    routes = app.router.routes
    routes.append(Route("/static/{sum}/{name}", assets.answer))
    routes.append(Route("/", _first(site)))
    routes.append(Route("/login", _login(site), methods=["GET", "POST"]))
    routes.append(Route("/logout", _logout(site), methods=["POST"]))
    routes.append(Route("/theme", _theme, methods=["POST"]))
    routes.append(Route("/resume", _resume(site)))
    routes.append(Route("/p/{project}/do/{action}", answering.action(site), methods=["POST"]))
    for page in PAGES:
        routes.append(Route("/p/{project}" + page.path, answering.page(site, page)))
    routes.append(Route("/p/{project}", answering.page(site, Page("", _to_overview))))
    routes.append(Route("/{rest:path}", _nowhere(site)))
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    app.add_middleware(Walls)
    app.add_middleware(Patience, seconds=body_seconds)
    app.state.site = site
    return app


def _first(site: Site) -> answering.Endpoint:
    """The address without a page: the first project."""

    def work(request: Request) -> Response:
        visitor = site.logins.visitor(request.cookies.get(COOKIE))
        if visitor is None:
            return RedirectResponse("/login", 303)
        return RedirectResponse(address(site.project_names(visitor.caller.project)[0], "overview"), 303)

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(work, request)

    return answer


def _login(site: Site) -> answering.Endpoint:
    async def answer(request: Request) -> Response:
        if request.method == "POST":
            return await entrance.enter(site, request, await answering.form_of(request))
        to = local(request.query_params.get("to"), "/")
        return await run_in_threadpool(entrance.shown, site, request, to=to)

    return answer


def _logout(site: Site) -> answering.Endpoint:
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(entrance.leave, site, request, await answering.form_of(request))

    return answer


async def _theme(request: Request) -> Response:
    return entrance.theme(request, await answering.form_of(request))


def _resume(site: Site) -> answering.Endpoint:
    """What somebody was about to do when their login had expired."""

    def work(request: Request) -> Response:
        visitor = site.logins.visitor(request.cookies.get(COOKIE))
        kept = None if visitor is None else site.kept.get(visitor.login.number)
        if visitor is None or kept is None:
            return RedirectResponse("/", 303)

        wanted, projects = site.actions[kept.action], site.project_names(visitor.caller.project)
        ours = kept.project in projects
        may = ours and wanted.scope in visitor.caller.scopes

        def show(here: Here) -> Response:
            assert kept is not None
            return answering.again(here, wanted, kept.fields, EXPIRED if may else MAY_NOT, status=200, may=may)

        return answering.made(site, request, visitor, show, project=kept.project if ours else projects[0])

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(work, request)

    return answer


def _to_overview(here: Here) -> Response:
    return RedirectResponse(here.at("overview"), 303)


def _nowhere(site: Site) -> answering.Endpoint:
    """What has no page; an address that ends with a slash is that without it."""

    def work(request: Request) -> Response:
        path = request.url.path
        if path.startswith("/p/") and path.endswith("/"):
            asked = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(path.rstrip("/") + asked, 308)
        visitor = site.logins.visitor(request.cookies.get(COOKIE))
        if visitor is None:
            return RedirectResponse("/login", 303)
        missing = NotFound("There is nothing at this address", remedy="Choose a page on the left")
        return answering.failed(site, request, visitor, missing)

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(work, request)

    return answer
