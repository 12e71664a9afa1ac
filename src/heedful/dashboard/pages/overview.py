"""Overview: how satisfied people are, and what changed."""

from __future__ import annotations

from starlette.responses import Response

from heedful.dashboard.here import Here
from heedful.dashboard.registry import Action, Page


def shown(here: Here) -> Response:
    days = here.range()
    return here.html("overview.html", status=days.status, range=days)


PAGES = (Page("/overview", shown),)
ACTIONS: tuple[Action, ...] = ()
