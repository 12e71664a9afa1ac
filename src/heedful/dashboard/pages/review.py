"""Review: the answers that people were unhappy with."""

from __future__ import annotations

from starlette.responses import Response

from heedful.dashboard.here import Here
from heedful.dashboard.registry import Action, Page


def shown(here: Here) -> Response:
    return here.html("review.html", range=here.range())


PAGES = (Page("/review", shown),)
ACTIONS: tuple[Action, ...] = ()
