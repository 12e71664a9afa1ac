"""Pages and actions as routes: who asks, what they may do, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from urllib.parse import parse_qsl, quote, unquote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from heedful import request_context
from heedful.access.audit import is_refusal
from heedful.engine import Heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable, no_project
from heedful.interfaces.dashboard import login_pages, rendering
from heedful.interfaces.dashboard.context import PageContext, local, theme_of
from heedful.interfaces.dashboard.logins import Visitor
from heedful.interfaces.dashboard.registry import Action, ActionResult, Page
from heedful.interfaces.dashboard.site import COOKIE, PendingAction, Site
from heedful.interfaces.http.callers import address_of
from heedful.interfaces.http.reading import BodyLimit, body_of, path_of, query_of
from heedful.interfaces.http.routing import Endpoint
from heedful.storage.audit import Refusal

MAX_FORM = 2_000_000
"""Bytes of a form of somebody who logged in here, also if that has expired."""

MAX_STRANGERS_FORM = 16_384
"""Bytes of a form of anybody else: a key and a name."""

MAX_FIELDS = 1_000

TOKEN, BACK = "token", "back"
"""Fields of the form itself, which are not the action's."""

STATUS: dict[type[HeedfulError], int] = {Invalid: 422, NotFound: 404, Conflict: 409, Forbidden: 403, Unavailable: 503}


def status_of(error: HeedfulError) -> int:
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def page(site: Site, definition: Page) -> Endpoint:
    """The route of a page."""

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


def in_turn(site: Site, work: Callable[[Request, Visitor | None], Response]) -> Endpoint:
    """A route that is answered when it is the turn of whoever asks."""

    async def answer(request: Request) -> Response:
        visitor = await site.visitor(request)
        return await site.run(request, visitor, lambda: work(request, visitor))

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


def action(site: Site) -> Endpoint:
    """The route of all actions."""
    return with_form(site, partial(_act, site))


def with_form(site: Site, work: Callable[[Request, Visitor | None, dict[str, str]], Response]) -> Endpoint:
    """The same for a form that is sent."""

    async def answer(request: Request) -> Response:
        visitor = await site.visitor(request)
        form = await form_of(site, request, visitor)
        return await site.run(request, visitor, lambda: work(request, visitor, form))

    return answer


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


def _act(site: Site, request: Request, visitor: Visitor | None, form: dict[str, str]) -> Response:
    path = path_of(request.path_params)
    action = site.actions.get(path["action"])
    if action is None:
        missing = NotFound("there is no such action")
        return error_page(site, request, visitor, missing) if visitor else plain_page(site, request, missing)
    token = site.logins.form_of(form.pop(TOKEN, ""))
    if visitor is None:
        pending = PendingAction(path["project"], action.name, form)
        return login_pages.login_page(
            site, request, status=401, pending=pending, about=login_pages.describe(action, form)
        )
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
        return retry_page(here, action, here.form, rendering.full_text(error), status=status_of(error))
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
        about=login_pages.describe(action, values),
        notice=login_pages.details(here, action, values),
        label=login_pages.label,
        fields=values,
        back=back,
        message=message,
        may=may,
    )


def error_page(site: Site, request: Request, visitor: Visitor, error: HeedfulError) -> Response:
    """A page that says what is wrong, for somebody who is logged in."""
    if is_refusal(error):
        action_name = request.path_params.get("action")
        operation = site.actions[action_name].operation if action_name in site.actions else "dashboard.page"
        caller = visitor.caller
        site.refusals.note(Refusal(operation, error.code, caller.project, caller.key_id, address_of(request)))
    status = status_of(error)
    projects, name = site.project_names(visitor.caller.project), unquote(request.path_params.get("project", ""))
    try:
        with _page_context(site, request, visitor, {}, project=name if name in projects else projects[0]) as here:
            return here.html("error.html", status=status, error=error, code=status)
    except HeedfulError:
        return plain_page(site, request, error)


def plain_page(site: Site, request: Request, error: HeedfulError) -> Response:
    """The same, where it is not known who asks."""
    template, status = site.templates.get_template("bare_error.html"), status_of(error)
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
