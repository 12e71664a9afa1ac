"""The HTTP interface that text2everything_sdk speaks: point its `base_url` at a Heedful server and go on.

A project is a project of the store, and its id is its name. The header `X-Workspace-Name` is accepted and means
nothing here: a key says which projects it opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heedful.errors import HeedfulError
from heedful.interfaces.http.text2everything import (
    chat,
    connectors,
    executions,
    feedback,
    golden,
    projects,
    reading,
    texts,
)
from heedful.interfaces.problems import Wire

__all__ = ["ROUTES", "STATUSES", "error_body"]

STATUSES: Mapping[int, int] = {422: 400}
"""The client knows a value that can't be accepted by 400 alone."""

_ROUTES: tuple[Wire, ...] = (
    *projects.ROUTES,
    *connectors.ROUTES,
    *texts.ROUTES,
    *golden.ROUTES,
    *feedback.ROUTES,
    *executions.ROUTES,
    *chat.ROUTES,
    *reading.ROUTES,
)

ROUTES = (*_ROUTES, *(replace(route, path=route.path.removeprefix("/api")) for route in _ROUTES))
"""The client puts /api before every path; its document leaves it out of most."""


def error_body(error: HeedfulError, status: int) -> Any:
    """An error as the client reads it: it shows `error` to people."""
    return {
        "error": str(error),
        "detail": error.message,
        "status_code": status,
        "code": error.code,
        "field": error.field,
        "remedy": error.remedy,
    }
