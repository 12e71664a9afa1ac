"""Experiments: variants side by side."""

from __future__ import annotations

from starlette.responses import Response

from heedful.dashboard.here import Here
from heedful.dashboard.registry import Action, Page


def shown(here: Here) -> Response:
    days = here.range()
    return here.html("experiments.html", status=days.status, range=days)


PAGES = (Page("/experiments", shown),)
ACTIONS: tuple[Action, ...] = ()
