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
from heedful.text import counted, shortened
from heedful.version import __version__

PATHS: dict[str, str] = orjson.loads(files("heedful.interfaces.dashboard").joinpath("icons.json").read_bytes())
"""The lines of icons, by name."""

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
    loader = PackageLoader("heedful.interfaces.dashboard")
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters.update(when=when, day=day, number=number, score=score, percent=percent)
    templates.filters.update(short=shortened, fact_line=fact_line, plain=plain, svg=Markup)
    templates.filters.update(fault=problem_text, advice=remedy_text, listed=list_page_for)
    templates.globals.update(counted=counted, asset=asset_address, icon=icon, version=__version__)
    templates.globals.update(range_presets=comparison.PRESETS, range_preset=comparison.preset)
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


def percent(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:.{digits}%}"


def fact_line(text: str, limit: int = 120) -> str:
    """A fact in one line: what was learnt from an answer has the question in a line by itself."""
    return shortened(" · ".join(line for line in text.splitlines() if line.strip()), limit)


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
