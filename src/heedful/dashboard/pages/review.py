"""Review: the answers that people were unhappy with."""

from __future__ import annotations

from starlette.responses import Response

from heedful.dashboard.here import Here
from heedful.dashboard.registry import Action, Page


def shown(here: Here) -> Response:
    days = here.range()
    return here.html("review.html", status=days.status, range=days)


PAGES = (Page("/review", shown),)
ACTIONS: tuple[Action, ...] = ()
