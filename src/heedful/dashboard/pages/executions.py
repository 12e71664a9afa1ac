"""Executions: the queries that were run, and what people said of them."""

from __future__ import annotations

from starlette.responses import Response

from heedful.dashboard.here import Here
from heedful.dashboard.registry import Action, Page


def shown(here: Here) -> Response:
    days = here.range()
    return here.html("executions.html", status=days.status, range=days)


PAGES = (Page("/executions", shown),)
ACTIONS: tuple[Action, ...] = ()
