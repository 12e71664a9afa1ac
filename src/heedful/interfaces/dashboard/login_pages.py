"""The way in and out: logging in with a key, going on with what was begun, and the theme."""

from __future__ import annotations

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from heedful.errors import Forbidden, Unavailable
from heedful.interfaces.dashboard import pending
from heedful.interfaces.dashboard.context import THEMES, local, theme_of
from heedful.interfaces.dashboard.site import PendingAction, Site
from heedful.interfaces.http.callers import address_of
from heedful.storage.audit import Refusal

COOKIE = "heedful_login"
PENDING_PURPOSE = "dashboard-kept"
NAME = 80
"""Characters of a name that somebody types."""

ATTEMPTS = 5
"""Keys that may be tried a second from one address."""

PAUSE = 0.3
"""Seconds that a wrong key takes longer."""

YEAR = 31_536_000


def login_page(
    site: Site,
    request: Request,
    *,
    status: int = 200,
    message: str | None = None,
    to: str = "/",
    name: str = "",
    kept: PendingAction | None = None,
    about: str | None = None,
) -> Response:
    """The page that asks for a key; what somebody was about to do is kept in it."""
    cookie = request.cookies.get(COOKIE)
    before = site.logins.read(cookie)
    sealed = "" if kept is None else site.logins.sealed(PENDING_PURPOSE, [kept.project, kept.action, kept.fields])
    page = site.templates.get_template("login.html").render(
        theme=theme_of(request),
        message=message,
        ended=site.logins.ended(cookie) if message is None else None,
        to=to,
        name=name or (before.name if before is not None else ""),
        kept=sealed,
        about=about,
    )
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})


async def log_in(site: Site, request: Request, form: dict[str, str]) -> Response:
    """Logs in."""
    to, name = local(form.get("to"), "/"), form.get("name", "").strip()[:NAME]
    kept = _read_pending(site, form.get("kept", ""))
    about = None if kept is None else pending.describe(site.actions[kept.action], kept.fields)
    who = address_of(request) or "unknown"
    try:
        site.limiter.take(who, ATTEMPTS, asyncio.get_running_loop().time())
        cookie = await run_in_threadpool(site.logins.enter, form.get("api_key", "").strip(), name, who)
    except Unavailable as error:
        site.refusals.note(Refusal("dashboard.login", error.code, address=who))
        page = login_page(
            site,
            request,
            status=429,
            message="Too many tries: wait a moment.",
            to=to,
            name=name,
            kept=kept,
            about=about,
        )
        page.headers["Retry-After"] = str(error.value)
        return page
    except Forbidden as error:
        site.refusals.note(Refusal("dashboard.login", error.code, address=who))
        await asyncio.sleep(PAUSE)
        status = 401 if error.code == "key_invalid" else 403
        return login_page(site, request, status=status, message=str(error), to=to, name=name, kept=kept, about=about)
    login = site.logins.read(cookie)
    assert login is not None
    if kept is not None:
        site.kept.put(login.number, kept)
        to = "/resume"
    response = RedirectResponse(to, 303)
    # It outlives what it allows, so that a form that comes too late is still known.
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=site.logins.seconds + 7 * 86_400,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


def log_out(site: Site, request: Request, form: dict[str, str]) -> Response:
    """Logs out, if the form is from a page of this login."""
    login = site.logins.read(request.cookies.get(COOKIE))
    token = site.logins.form_of(form.get("token", ""))
    response = RedirectResponse("/login", 303)
    if login is not None and token is not None and token[:2] == (login.key_id, login.number):
        site.logins.leave(login, address_of(request))
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return response


def set_theme(request: Request, form: dict[str, str]) -> Response:
    """Chooses light, dark, or as the browser has it."""
    response = RedirectResponse(local(form.get("back"), "/"), 303)
    chosen = form.get("theme", "")
    if chosen in THEMES:
        response.set_cookie("heedful_theme", chosen, max_age=YEAR, samesite="lax", secure=request.url.scheme == "https")
    return response


def _read_pending(site: Site, sealed: str) -> PendingAction | None:
    found = site.logins.opened(PENDING_PURPOSE, sealed) if sealed else None
    if found is None or found[1] not in site.actions:
        return None
    return PendingAction(found[0], found[1], dict(found[2]))
