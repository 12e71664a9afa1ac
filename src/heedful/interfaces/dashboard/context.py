"""One request of somebody who is logged in: what a page needs to be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.dashboard import ranges
from heedful.interfaces.dashboard.logins import Visitor
from heedful.interfaces.dashboard.ranges import Range
from heedful.interfaces.dashboard.registry import ActionResult
from heedful.interfaces.dashboard.rendering import address
from heedful.interfaces.dashboard.site import Site
from heedful.interfaces.operations import OPERATIONS

THEMES = ("auto", "light", "dark")


@dataclass(frozen=True)
class PageContext:
    """Where somebody is, and what they may do there."""

    request: Request
    site: Site
    visitor: Visitor
    project: str
    heedful: Heedful
    path: Mapping[str, str]
    """The parameters of the address."""
    query: Mapping[str, str]
    form: Mapping[str, str]
    """What was posted; empty when something is looked at."""

    @property
    def author(self) -> str:
        """Under whose name things are done."""
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
        """Whether this person may call an operation of the engine."""
        return OPERATIONS[operation].scope in self.visitor.caller.scopes

    def at(self, *parts: str, **query: str | int | None) -> str:
        """An address in this project: at("facts", fact_id)."""
        return address(self.project, *parts, **query)

    def elsewhere(self, project: str) -> str:
        """The same kind of page in another project."""
        return address(project, self.section)

    def also(self, **changes: str | int | None) -> str:
        """The address of this page with other values in its query; None takes one out."""
        query: dict[str, Any] = {**self.query, **changes}
        encoded = urlencode({name: value for name, value in query.items() if value is not None})
        return f"{self.place}?{encoded}"

    def choice(self, name: str, options: Iterable[str]) -> str | None:
        """What the address names, as it is written among those that are known: browsers end lines in their own way."""
        value = self.query.get(name) or None
        if value is None or value in (names := list(options)):
            return value
        return next((each for each in names if _lines(each) == _lines(value)), value)

    def range(self, usual: int | None = 14) -> Range:
        """The days that the page is about."""
        return ranges.from_request(self.query, self.today, usual)

    def field(self, name: str) -> str:
        """A field that the form must have."""
        value = self.form.get(name, "").strip()
        if not value:
            raise Invalid(f"{name.replace('_', ' ')} is empty", field=name, remedy="Fill it in")
        return value

    def token(self) -> str:
        """What a form needs to be taken: for this login, and once."""
        return self.site.logins.form(self.visitor.login)

    def notice(self) -> ActionResult | None:
        """What the last action did, once."""
        return self.site.notice.take(self.visitor.login.number)

    def html(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page."""
        return HTMLResponse(self.fragment(template, **values), status)

    def fragment(self, template: str, **values: Any) -> str:
        page_template = self.site.templates.get_template(template)
        return page_template.render(here=self, theme=theme_of(self.request), **values)


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
