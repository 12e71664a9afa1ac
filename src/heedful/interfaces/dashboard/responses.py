"""Pages and actions as routes: who asks, what they may do, the way in and out, and what becomes of a form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from urllib.parse import parse_qsl, quote, unquote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from heedful import request_context
from heedful.access.audit import is_refusal
from heedful.engine import Heedful
from heedful.errors import Forbidden, HeedfulError, Invalid, NotFound, Unavailable, no_project
from heedful.interfaces.dashboard import rendering, views
from heedful.interfaces.dashboard.site import (
    COOKIE,
    THEMES,
    Action,
    ActionResult,
    PageContext,
    PageRoute,
    PendingAction,
    Site,
    Visitor,
    local,
    theme_of,
)
from heedful.interfaces.http.calls import query_of
from heedful.interfaces.http.middleware import Endpoint
from heedful.interfaces.http.state import BodyLimit, address_of, body_of, path_of
from heedful.interfaces.problems import status_of_kind
from heedful.storage.audit import Refusal

MAX_FORM = 2_000_000
"""Bytes of a form of somebody who logged in here, also if that has expired."""

MAX_STRANGERS_FORM = 16_384
"""Bytes of a form of anybody else: a key and a name."""

MAX_FIELDS = 1_000

TOKEN, BACK = "token", "back"
"""Fields of the form itself, which are not the action's."""


def page(site: Site, definition: PageRoute) -> Endpoint:
    def work(request: Request, visitor: Visitor | None) -> Response:
        if visitor is None:
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?to={quote(target, safe='')}", 303)
        try:
            visitor.caller.check(definition.scope)
        except HeedfulError as error:
            return error_page(site, request, visitor, error)
        return render(site, request, visitor, definition.work)

    return in_turn(site, work)


def in_turn(site: Site, work: Callable[..., Response], *, has_form: bool = False) -> Endpoint:
    """A route that is answered when it is the turn of whoever asks. `work` gets the request, the visitor if they are
    logged in, and the form that was sent, if there is one."""

    async def answer(request: Request) -> Response:
        visitor = await site.visitor(request)
        form = [await form_of(site, request, visitor)] if has_form else []
        return await site.run(request, visitor, lambda: work(request, visitor, *form))

    return answer


def render(
    site: Site, request: Request, visitor: Visitor, work: Callable[[PageContext], Response], project: str | None = None
) -> Response:
    """A page, or one that says why it can't be made."""
    try:
        with _page_context(site, request, visitor, {}, project) as here:
            return work(here)
    except HeedfulError as error:
        return error_page(site, request, visitor, error)


async def form_of(site: Site, request: Request, visitor: Visitor | None = None) -> dict[str, str]:
    """The fields of a form; of those with several values, each in a line of its own."""
    cookie = request.cookies.get(COOKIE)
    login = None if cookie is None else await site.state.run_lookup(lambda: site.logins.read(cookie))
    most = MAX_STRANGERS_FORM if login is None else MAX_FORM
    body = await body_of(request, BodyLimit(most, remedy="Log in, or send less"))
    return await site.run(request, visitor, lambda: _fields(body))


def _fields(body: bytes) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS):
            # Browsers end the lines of a form in both ways.
            values.setdefault(name, []).append(value.replace("\r\n", "\n"))
    except ValueError as error:
        raise Invalid(f"the form can't be read ({error})", code="malformed") from None
    return {name: "\n".join(lines) for name, lines in values.items()}


def act(site: Site, request: Request, visitor: Visitor | None, form: dict[str, str]) -> Response:
    """Does an action that a form asks for, or asks for a key first."""
    path = path_of(request.path_params)
    action = site.actions.get(path["action"])
    if action is None:
        return error_page(site, request, visitor, NotFound("there is no such action"))
    token = site.logins.form_of(form.pop(TOKEN, ""))
    if visitor is None:
        pending = PendingAction(path["project"], action.name, form)
        return login_page(site, request, status=401, pending=pending)
    try:
        visitor.caller.check(action.scope)
        caller = visitor.caller.calling(request)
        with request_context.acting_as(caller), _page_context(site, request, visitor, form) as here:
            return _run_action(here, action, token)
    except HeedfulError as error:
        return error_page(site, request, visitor, error)


def _run_action(here: PageContext, action: Action, token: tuple[str, str, str] | None) -> Response:
    """Does an action whose form is this login's own; one of an earlier login of the same key is shown again."""
    login = here.visitor.login
    if token is None or token[0] != login.key_id:
        raise Forbidden(
            "this form was not sent from one of your pages", remedy="Open the page again, and send it from there"
        )
    if token[1] != login.number:
        message = "You have logged in again since this form was opened. Nothing has been done yet."
        return retry_page(here, action, here.form, message, status=403)
    back = local(here.form.get(BACK), here.at("overview"))
    if not here.site.posted.put(token[2], True):
        return _after_action(here, ActionResult("That was done already, once."), back)
    try:
        result = action.work(here)
    except BaseException as error:
        here.site.posted.take(token[2])
        if not isinstance(error, HeedfulError):
            raise
        if action.refused is not None:
            return action.refused(here, error)
        return retry_page(here, action, here.form, rendering.full_text(error), status=status_of_kind(error))
    here.site.pending.take(login.number)
    return result if isinstance(result, Response) else _after_action(here, result, back)


def _after_action(here: PageContext, result: ActionResult, back: str) -> Response:
    number = here.visitor.login.number
    here.site.notice.take(number)
    here.site.notice.put(number, result)
    return RedirectResponse(result.to or back, 303)


def retry_page(
    here: PageContext, action: Action, fields: Mapping[str, str], message: str, *, status: int, may: bool = True
) -> Response:
    """An action that was not done, with its form as it was; who may not do it sees what they typed."""
    back = local(fields.get(BACK), here.at("overview"))
    values = {name: value for name, value in fields.items() if name not in (TOKEN, BACK)}
    return here.html(
        "again.html",
        status=status,
        action=action,
        about=describe(action, values),
        notice=details(here, action, values),
        label=label,
        fields=values,
        back=back,
        message=message,
        may=may,
    )


def error_page(site: Site, request: Request, visitor: Visitor | None, error: HeedfulError) -> Response:
    """A page that says what is wrong; with the navigation, for somebody who is logged in."""
    if visitor is None:
        return plain_page(site, request, error)
    if is_refusal(error):
        action_name = request.path_params.get("action")
        operation = site.actions[action_name].operation if action_name in site.actions else "dashboard.page"
        caller = visitor.caller
        site.refusals.note(Refusal(operation, error.code, caller.project, caller.key_id, address_of(request)))
    status = status_of_kind(error)
    projects, name = site.project_names(visitor.caller.project), unquote(request.path_params.get("project", ""))
    try:
        with _page_context(site, request, visitor, {}, project=name if name in projects else projects[0]) as here:
            return here.html("error.html", status=status, error=error, code=status)
    except HeedfulError:
        return plain_page(site, request, error)


def plain_page(site: Site, request: Request, error: HeedfulError) -> Response:
    """The same, where it is not known who asks."""
    template, status = site.templates.get_template("bare_error.html"), status_of_kind(error)
    headers = {"Retry-After": str(error.value)} if error.code in ("server_busy", "rate_limited") else None
    return HTMLResponse(template.render(error=error, code=status, theme=theme_of(request)), status, headers)


@contextmanager
def _page_context(
    site: Site, request: Request, visitor: Visitor, form: Mapping[str, str], project: str | None = None
) -> Iterator[PageContext]:
    path = path_of(request.path_params)
    name = visitor.caller.choose(project or path["project"])
    projects = site.project_names(visitor.caller.project)
    if name not in projects and name not in (projects := site.store.all_projects()):
        raise no_project(name, projects)
    query = dict(query_of(request))
    with site.store.using(name) as opened:
        yield PageContext(request, site, visitor, name, Heedful(opened), path, query, form)


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
) -> Response:
    """The page that asks for a key; what somebody was about to do is kept in it."""
    cookie, sealed, about = request.cookies.get(COOKIE), "", None
    before = site.logins.read(cookie)
    if pending is not None:
        about = describe(site.actions[pending.action], pending.fields)
        sealed = site.logins.sealed(PENDING_PURPOSE, [pending.project, pending.action, pending.fields])
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


async def show_login(site: Site, request: Request) -> Response:
    to = local(request.query_params.get("to"), "/")
    return await site.run(request, None, lambda: login_page(site, request, to=to))


async def log_in(site: Site, request: Request) -> Response:
    form = await form_of(site, request)
    to, name = local(form.get("to"), "/"), form.get("name", "").strip()[:NAME]
    pending = await site.run(request, None, lambda: _read_pending(site, form.get("pending", "")))
    client = address_of(request) or "unknown"
    ask_again = partial(login_page, site, request, to=to, name=name, pending=pending)
    try:
        site.limiter.check(client, ATTEMPTS, asyncio.get_running_loop().time())
        key = form.get("api_key", "").strip()
        cookie = await site.run(request, None, lambda: site.logins.enter(key, name, client))
    except (Unavailable, Forbidden) as error:
        site.refusals.note(Refusal("dashboard.login", error.code, address=client))
        if isinstance(error, Unavailable):
            page = ask_again(status=429, message="Too many tries: wait a moment.")
            page.headers["Retry-After"] = str(error.value)
            return page
        await asyncio.sleep(PAUSE)
        status = 401 if error.code == "key_invalid" else 403
        return ask_again(status=status, message=str(error))
    login = site.logins.read(cookie)
    assert login is not None
    if pending is not None:
        site.pending.put(login.number, pending)
        to = "/resume"
    response = RedirectResponse(to, 303)
    # The cookie is kept longer than the login is valid, so that a form sent too late is still recognised.
    kept = site.logins.seconds + 7 * 86_400
    response.set_cookie(COOKIE, cookie, kept, httponly=True, samesite="lax", secure=request.url.scheme == "https")
    return response


def log_out(site: Site, request: Request, visitor: Visitor | None, form: dict[str, str]) -> Response:
    """Logs out, if the form is from a page of this login."""
    login = site.logins.read(request.cookies.get(COOKIE))
    token = site.logins.form_of(form.get("token", ""))
    response = RedirectResponse("/login", 303)
    if login is not None and token is not None and token[:2] == (login.key_id, login.number):
        site.logins.leave(login, address_of(request))
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return response


async def set_theme(site: Site, request: Request) -> Response:
    """Chooses light, dark, or as the browser has it."""
    form = await form_of(site, request)
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
    """An action in words: "correct a fact"."""
    return FIX_LABELS.get(fields.get("fix", ""), action.about) if action.name == "review_fix" else action.about


def label(field: str) -> str:
    return LABELS.get(field, field.replace("_", " ").capitalize())


def details(here: PageContext, action: Action, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """The things that an action concerns, as they are now, and the choices made; what was deleted is left out."""
    shown: list[tuple[str, str]] = []
    for name, read in SUBJECTS.items():
        if fields.get(name):
            with suppress(HeedfulError):
                shown += read(here, fields[name])
    if fields.get("key_id") and here.may("keys.list"):
        shown += [("The key", key.name) for key in here.heedful.keys.list() if key.key_id == fields["key_id"]]
    chosen = [name for name in LABELS if name in fields and name not in action.editable]
    return [*shown, *((label(name), fields[name]) for name in chosen if fields[name])]


def _item(here: PageContext, item_id: str) -> list[tuple[str, str]]:
    item = here.heedful.review.get(item_id).item
    return [("What was asked", item.question)] if item.question else [("What was said", item.comment or "nothing")]


def _fact(here: PageContext, fact_id: str) -> list[tuple[str, str]]:
    return [("The fact says now", text) for text in views.texts(here.heedful, [fact_id]).values()]


def _execution(here: PageContext, execution_id: str) -> list[tuple[str, str]]:
    return [("The SQL that ran", here.heedful.executions.get(execution_id).sql_query)]


SUBJECTS: Mapping[str, Callable[[PageContext, str], list[tuple[str, str]]]] = {
    "item_id": _item,
    "fact_id": _fact,
    "execution_id": _execution,
}
