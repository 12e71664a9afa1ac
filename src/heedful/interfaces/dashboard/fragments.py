"""Parts of pages that come after the page, because they take a while; without a script they are pages of their own."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, Response

from heedful.interfaces.dashboard.context import PageContext


def respond(here: PageContext, template: str, title: str, back: str, **values: Any) -> Response:
    """A part, as a script asked for it, or as a page with a link `back`."""
    if "x-fragment" in here.request.headers:
        return HTMLResponse(here.fragment(template, **values))
    return here.html("part.html", part=template, title=title, back=back, **values)
