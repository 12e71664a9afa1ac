"""Templates, and how values are written in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful.dashboard import assets, ranges, saying
from heedful.dashboard.icons import icon
from heedful.drawing.scales import MONTHS
from heedful.version import __version__


def environment() -> Environment:
    """The templates of the dashboard. Every value is escaped; a name that is not there is an error."""
    made = Environment(
        loader=PackageLoader("heedful.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        when=when,
        day=day,
        number=number,
        score=score,
        percent=percent,
        short=short,
        plain=plain,
        svg=Markup,
        fault=saying.fault,
        advice=saying.advice,
        listed=saying.listed,
    )
    made.globals.update(
        asset=assets.address,
        icon=icon,
        version=__version__,
        range_presets=ranges.PRESETS,
        range_preset=ranges.preset,
    )
    return made


def when(moment: datetime | None) -> Markup:
    """A moment, short, in UTC; the whole of it on pointing."""
    if moment is None:
        return Markup('<span class="muted">never</span>')
    said = f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(), f"{moment.date()} {moment:%H:%M:%S} UTC", said
    )


def day(moment: datetime) -> str:
    return f"{moment.day} {MONTHS[moment.month - 1]}"


def number(value: float | None) -> str:
    """A count, with commas."""
    return "–" if value is None else f"{value:,}"


def score(value: float | None) -> str:
    """A score, in as many digits as tell something."""
    return "–" if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.0f}%"


def short(text: str, limit: int = 120) -> str:
    """A text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def plain(value: Any) -> str:
    """A value of metadata: texts as they are, others as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def address(project: str, *parts: str, **query: str | int | None) -> str:
    """An address below a project; what is None is left out of the query."""
    path = "/".join(quote(part, safe="") for part in ("p", project, *parts))
    asked = urlencode({name: value for name, value in query.items() if value is not None})
    return f"/{path}?{asked}" if asked else f"/{path}"
