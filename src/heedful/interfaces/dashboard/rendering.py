"""Templates of the dashboard, with their icons, words and files."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from heedful.errors import HeedfulError, NotFound
from heedful.interfaces.charts import MONTHS
from heedful.interfaces.dashboard import comparison
from heedful.version import __version__

PATHS = {
    "overview": "M4 19V5M4 19h16M8 15l4-5 3 3 5-7",
    "review": "M4 13l2.5-8h11L20 13v6H4v-6Zm0 0h5l1 2.5h4L15 13h5",
    "sessions": "M4 5h16v11H10l-4 4v-4H4V5ZM8 9h8M8 12h5",
    "facts": "M5 4h9l5 5v11H5V4Zm9 0v5h5M8 13h8M8 16h6",
    "learning": "M4 18l5-5 4 4 7-9M15 8h5v5",
    "executions": "M5 6c0-1.7 3.1-3 7-3s7 1.3 7 3-3.1 3-7 3-7-1.3-7-3Zm0 0v12c0 1.7 3.1 3 7 3s7-1.3 7-3V6M5 "
    "12c0 1.7 3.1 3 7 3s7-1.3 7-3",
    "experiments": "M9 3h6M10 3v6l-5.5 9.5A1.7 1.7 0 0 0 6 21h12a1.7 1.7 0 0 0 1.5-2.5L14 9V3M7.5 15h9",
    "settings": "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
    "up": ("M7 11v9H4v-9h3Zm0 0 4-8c1.7 0 2.6 1.2 2.3 2.8L12.7 9H18c1.3 0 2.2 1.1 1.9 2.4l-1.5 7A2 2 0 0 1 16.5 20H7"),
    "down": "M7 13V4H4v9h3Zm0 0 4 8c1.7 0 2.6-1.2 2.3-2.8L12.7 15H18c1.3 0 2.2-1.1 1.9-2.4l-1.5-7A2 2 0 0 0 16.5 4H7",
    "neutral": "M5 12h14",
    "search": "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm5 12 4.5 4.5",
    "auto": "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 0v18M12 8l6-3M12 13l8.5-3M12 18l7-2.5",
    "light": ("M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2"),
    "dark": "M20 14.500A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.500Z",
    "copy": "M9 9h11v11H9V9ZM5 15H4V4h11v1",
    "leave": "M14 4H5v16h9M10 12h11M17 8l4 4-4 4",
    "undo": "M9 5 4 10l5 5M4 10h10a6 6 0 0 1 0 12h-3",
    "menu": "M4 7h16M4 12h16M4 17h16",
    "check": "m5 12.5 5 5L20 7",
    "warn": "M12 4 2.5 20h19L12 4Zm0 6v5M12 17.500v.5",
    "next": "m9 5 7 7-7 7",
    "previous": "m15 5-7 7 7 7",
    "choose": "m8 9 4-4 4 4M8 15l4 4 4-4",
    "edit": "M4 20h4L20 8l-4-4L4 16v4ZM13.5 6.500l4 4",
    "key": "M15 3.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM11 13l-7 7M6.5 17.5 9 20M9.5 14.5l2 2",
    "person": "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM4 20.5c1-4 4-5.5 8-5.5s7 1.5 8 5.5",
    "help": ("M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18ZM9.5 9.500a2.5 2.5 0 1 1 3.5 2.300c-.7.3-1 .8-1 1.700M12 16.500v.5"),
}

_FRAME = Markup(
    '<svg class="icon {}" viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor"'
    ' stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" {}>{}<path d="{}"/></svg>'
)


def icon(name: str, label: str = "", extra: str = "") -> Markup:
    """An icon; without a label, it is there for the eye alone."""
    if not label:
        return _FRAME.format(extra, Markup('aria-hidden="true"'), "", PATHS[name])
    attributes = Markup('role="img" aria-label="{}"').format(label)
    return _FRAME.format(extra, attributes, Markup("<title>{}</title>").format(label), PATHS[name])


@cache
def environment() -> Environment:
    """The templates of the dashboard, compiled once. Every value is escaped; a name that is not there is an error."""
    templates = Environment(
        loader=PackageLoader("heedful.interfaces.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        when=when,
        day=day,
        number=number,
        score=score,
        percent=percent,
        short=short,
        fact_line=fact_line,
        plain=plain,
        svg=Markup,
        fault=problem_text,
        advice=remedy_text,
        listed=list_page_for,
    )
    templates.globals.update(
        asset=asset_address,
        icon=icon,
        version=__version__,
        range_presets=comparison.PRESETS,
        range_preset=comparison.preset,
    )
    return templates


def when(moment: datetime | None) -> Markup:
    """A moment, short, in UTC; the whole of it on pointing."""
    if moment is None:
        return Markup('<span class="muted">never</span>')
    label = f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(), f"{moment.date()} {moment:%H:%M:%S} UTC", label
    )


def day(moment: datetime) -> str:
    return f"{moment.day} {MONTHS[moment.month - 1]}"


def number(value: float | None) -> str:
    """A count, with commas."""
    return "–" if value is None else f"{value:,}"


def score(value: float | None) -> str:
    """A score, with as many digits as are significant."""
    return "–" if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.0f}%"


def short(text: str, limit: int = 120) -> str:
    """A text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def fact_line(text: str, limit: int = 120) -> str:
    """A fact in one line: what was learnt from an answer has the question in a line by itself."""
    return short(" · ".join(line for line in text.splitlines() if line.strip()), limit)


def plain(value: Any) -> str:
    """A value of metadata: texts as they are, others as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def address(project: str, *parts: str, **query: str | int | None) -> str:
    """An address below a project; what is None is left out of the query."""
    path = "/".join(quote(part, safe="") for part in ("p", project, *parts))
    encoded = urlencode({name: value for name, value in query.items() if value is not None})
    return f"/{path}?{encoded}" if encoded else f"/{path}"


KINDS = {"css": "text/css", "js": "application/javascript", "svg": "image/svg+xml"}
MAX_AGE = 31_536_000


@cache
def content(name: str) -> bytes:
    return files("heedful.interfaces.dashboard").joinpath("static", name).read_bytes()


def asset_address(name: str) -> str:
    """The address of a file, with its hash: other content has another address."""
    return f"/static/{hashlib.sha256(content(name)).hexdigest()[:16]}/{name}"


async def serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ("dashboard.css", "dashboard.js", "icon.svg") or request.url.path != asset_address(name):
        return Response("not found", 404, media_type="text/plain")
    return Response(
        content(name),
        media_type=f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8",
        headers={"Cache-Control": f"public, max-age={MAX_AGE}, immutable"},
    )


FOR_PROGRAMS = re.compile(r"\w\(|\bheedful [a-z]+|\bpass\b|\w=…|next_cursor|if_match", re.IGNORECASE)
"""Calls, commands and parameters."""

LISTS = {"fact_id": "facts", "session_id": "sessions", "item_id": "review", "execution_id": "executions"}
"""The page that lists what a field names."""

CURSOR = "This part of the list can't be found: its address was changed or cut off"


def problem_text(error: HeedfulError) -> str:
    """The message of an error, as a sentence."""
    message = CURSOR if error.field == "cursor" else error.message
    # It begins with somebody's name.
    if error.code == "closed_already":
        return message
    return message[:1].upper() + message[1:]


def remedy_text(error: HeedfulError) -> str | None:
    """The remedy that a person can use here."""
    if list_page_for(error):
        return "It may have been deleted"
    if error.remedy is None or FOR_PROGRAMS.search(error.remedy):
        return None
    return error.remedy


def full_text(error: HeedfulError) -> str:
    """Both, as sentences."""
    return ". ".join(text.rstrip(".") for text in (problem_text(error), remedy_text(error)) if text) + "."


def list_page_for(error: HeedfulError) -> str | None:
    """The page that lists things like the missing one."""
    return LISTS.get(error.field or "") if isinstance(error, NotFound) else None
