"""A MongoDB URL: what may be shown of it, the database it names, and the options it leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from heedful.errors import Invalid

DEFAULT_DATABASE = "heedful"

DEFAULTS: dict[str, Any] = {
    "serverSelectionTimeoutMS": 5_000,
    "connectTimeoutMS": 5_000,
    "socketTimeoutMS": 30_000,
    "retryWrites": True,
    "retryReads": True,
    "w": "majority",
    "journal": True,
}
"""Used where neither the URL nor the caller says otherwise; an acknowledged write survives the loss of a server."""

_SAID_BY = {"sockettimeoutms": {"timeoutms"}, "journal": {"w"}}
"""Options that leave no room for a default of another one."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, without the secrets of its URL."""

    hosts: str
    database: str
    scheme: str = "mongodb"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.hosts}/{self.database}"


def address(url: str, database: str | None) -> Address:
    """The address in a URL; `database` goes before the one in its path."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("mongodb", "mongodb+srv"):
        raise malformed("it must start with mongodb:// or mongodb+srv://")
    place, _, path = rest.partition("?")[0].partition("/")
    hosts = place.rpartition("@")[2]
    # A slash inside a password would end up here, and the password in every message.
    if not hosts or "@" in path:
        raise malformed("it names no host, or has a user name or password with a bare / or @")
    return Address(hosts, database or unquote(path).partition(".")[0] or DEFAULT_DATABASE, scheme)


def options(url: str, given: dict[str, Any]) -> dict[str, Any]:
    """The caller's options, and our defaults for what nobody spoke of."""
    said = {name.lower() for name in given}
    said |= {name.lower() for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)}
    open_ = {
        name: value
        for name, value in DEFAULTS.items()
        if name.lower() not in said and not _SAID_BY.get(name.lower(), set()) & said
    }
    return {**open_, **given}


def malformed(reason: str) -> Invalid:
    """The error for a URL that can't be read; it shows nothing of it, since any part may be the password."""
    return Invalid(
        f"the MongoDB URL can't be used: {reason}",
        field="url",
        remedy="Use mongodb://user:password@host:27017/database, with percent-encoded user and password",
    )
