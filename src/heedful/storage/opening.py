"""Opening a store: its address, and the database behind it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from heedful.errors import Invalid, quoted
from heedful.storage.database import Database
from heedful.storage.postgresql.backend import PostgreSql
from heedful.storage.sqlite import Sqlite


def open_store(url_or_path: str | Path, *, create: bool = True, unfinished: bool = False) -> Database:
    """Opens a store and migrates it to the current version.

    `create` creates a missing store; `unfinished` opens one that a copy has not filled yet.
    """
    url = store_url(url_or_path)
    database = PostgreSql(url) if url.get_backend_name() == "postgresql" else Sqlite(url)
    database.prepare(create=create, unfinished=unfinished)
    return database


def store_url(url_or_path: str | Path) -> URL:
    """The URL of a store, from a path or any form of URL."""
    if not isinstance(url_or_path, str | Path):
        raise _bad_url(f"must be a path or a URL, got {quoted(url_or_path)}", url_or_path)
    text_form = str(url_or_path)
    if not text_form.strip():
        raise _bad_url("must not be empty", url_or_path)
    if text_form == ":memory:":
        return URL.create("sqlite")
    scheme, colon, rest = text_form.partition(":")
    if rest.startswith("//"):
        text_form = f"{scheme.lower()}{colon}{rest}"
    without_user = text_form.partition("@")[2]
    displayed = without_user or text_form
    if text_form.startswith(("http://", "https://")):
        raise _bad_url("names a server, and a store is a file", displayed, "This is a server: use heedful.connect(url)")
    if text_form.startswith(("mongodb:", "mongodb+srv:")):
        raise _bad_url(
            "is a MongoDB URL; MongoDB can only store sessions and feedback, not facts",
            displayed,
            'Use open("heedful.db", sessions="mongodb://…")',
        )
    if scheme.lower() == "postgres" and rest.startswith("//"):
        text_form = f"postgresql{colon}{rest}"
    if text_form.startswith(("postgresql/", "postgres/")):
        raise _bad_url("has no colon after its scheme", without_user, "Use postgresql://user@host/database")
    if "://" not in text_form:
        return URL.create("sqlite", database=str(Path(text_form).expanduser()))
    try:
        url = make_url(text_form)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        displayed = text_form.partition("@")[2] or text_form
        raise _bad_url(f"{quoted(displayed)} is not a store's URL ({error})", displayed, _URL_REMEDY) from error
    return _openable(url, text_form)


def _openable(url: URL, text_form: str) -> URL:
    if url.get_backend_name() == "sqlite" and url.host:
        file = f"{url.host}{'/' + url.database if url.database else ''}"
        problem = f"{quoted(text_form)} has a host, and a SQLite store is a file"
        raise _bad_url(problem, text_form, f"Use three slashes: sqlite:///{file}")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"):
        problem = f"names a {url.drivername} store, which this version can't open"
        raise _bad_url(problem, url.render_as_string(), _URL_REMEDY)
    return url


_URL_REMEDY = 'Use a path, "sqlite:///file.db" or "postgresql://user@host/database"'


def _bad_url(problem: str, value: object, remedy: str | None = None) -> Invalid:
    return Invalid(f"url_or_path {problem}", field="url_or_path", value=value, remedy=remedy)
