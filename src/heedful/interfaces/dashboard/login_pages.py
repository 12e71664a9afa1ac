"""The way in and out: logging in with a key, going on with what was begun, and the theme."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from heedful.errors import Forbidden, HeedfulError, Unavailable
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.context import THEMES, PageContext, local, theme_of
from heedful.interfaces.dashboard.registry import Action
from heedful.interfaces.dashboard.site import COOKIE, PendingAction, Site
from heedful.interfaces.http.callers import address_of
from heedful.storage.audit import Refusal

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
    pending: PendingAction | None = None,
    about: str | None = None,
) -> Response:
    """The page that asks for a key; what somebody was about to do is kept in it."""
    cookie = request.cookies.get(COOKIE)
    before = site.logins.read(cookie)
    sealed = (
        ""
        if pending is None
        else site.logins.sealed(PENDING_PURPOSE, [pending.project, pending.action, pending.fields])
    )
    page = site.templates.get_template("login.html").render(
        theme=theme_of(request),
        message=message,
        ended=site.logins.ended(cookie) if message is None else None,
        to=to,
        name=name or (before.name if before is not None else ""),
        pending=sealed,
        about=about,
    )
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})


async def log_in(site: Site, request: Request, form: dict[str, str]) -> Response:
    """Logs in."""
    to, name = local(form.get("to"), "/"), form.get("name", "").strip()[:NAME]
    pending = await site.run(request, None, lambda: _read_pending(site, form.get("pending", "")))
    about = None if pending is None else describe(site.actions[pending.action], pending.fields)
    client = address_of(request) or "unknown"
    try:
        site.limiter.check(client, ATTEMPTS, asyncio.get_running_loop().time())
        key = form.get("api_key", "").strip()
        cookie = await site.run(request, None, lambda: site.logins.enter(key, name, client))
    except Unavailable as error:
        site.refusals.note(Refusal("dashboard.login", error.code, address=client))
        page = login_page(
            site,
            request,
            status=429,
            message="Too many tries: wait a moment.",
            to=to,
            name=name,
            pending=pending,
            about=about,
        )
        page.headers["Retry-After"] = str(error.value)
        return page
    except Forbidden as error:
        site.refusals.note(Refusal("dashboard.login", error.code, address=client))
        await asyncio.sleep(PAUSE)
        status = 401 if error.code == "key_invalid" else 403
        return login_page(
            site, request, status=status, message=str(error), to=to, name=name, pending=pending, about=about
        )
    login = site.logins.read(cookie)
    assert login is not None
    if pending is not None:
        site.pending.put(login.number, pending)
        to = "/resume"
    response = RedirectResponse(to, 303)
    # The cookie is kept longer than the login is valid, so that a form sent too late is still recognised.
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
    opened = site.logins.opened(PENDING_PURPOSE, sealed) if sealed else None
    if opened is None or opened[1] not in site.actions:
        return None
    return PendingAction(opened[0], opened[1], dict(opened[2]))


FIX_LABELS = {
    "supersede": "correct a fact",
    "retract": "retract an opinion",
    "teach": "make a fact of an opinion",
    "block": "say that an execution is wrong",
    "promote": "make a golden example of an execution",
    "add_example": "add a golden example",
}

LABELS = {
    "rating": "You rate it as",
    "policy": "Rule",
    "dataset": "Dataset",
    "scopes": "The key may",
    "signal_type": "Signal",
    "query": "Asked",
    "author": "By",
    "text": "New text",
    "sql_query": "SQL",
}
"""Fields that people understand, in words."""


def describe(action: Action, fields: Mapping[str, str]) -> str:
    """What it is: "correct a fact"."""
    return FIX_LABELS.get(fields.get("fix", ""), action.about) if action.name == "review_fix" else action.about


def label(field: str) -> str:
    return LABELS.get(field, field.replace("_", " ").capitalize())


def details(here: PageContext, action: Action, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """What it concerns, as it is now, and what was chosen; what is not there any more is left out."""
    known_details = [*_item(here, fields), *_fact(here, fields), *_execution(here, fields), *_key(here, fields)]
    chosen = [name for name in LABELS if name in fields and name not in action.editable]
    return [*known_details, *((label(name), fields[name]) for name in chosen if fields[name])]


def _item(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    if not fields.get("item_id"):
        return []
    try:
        item = here.heedful.review.get(fields["item_id"]).item
    except HeedfulError:
        return []
    return [("What was asked", item.question)] if item.question else [("What was said", item.comment or "nothing")]


def _fact(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    try:
        texts = views.texts(here.heedful, [fields["fact_id"]]) if fields.get("fact_id") else {}
    except HeedfulError:
        return []
    return [("The fact says now", text) for text in texts.values()]


def _execution(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    if not fields.get("execution_id"):
        return []
    try:
        return [("The SQL that ran", here.heedful.executions.get(fields["execution_id"]).sql_query)]
    except HeedfulError:
        return []


def _key(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    if not fields.get("key_id") or not here.may("keys.list"):
        return []
    return [("The key", key.name) for key in here.heedful.keys.list() if key.key_id == fields["key_id"]]
