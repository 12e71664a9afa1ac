"""The settings of a server."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from heedful.errors import Invalid, quoted
from heedful.model import Model

MEGABYTE = 1_000_000

MIN_KEY_LENGTH = 16
"""Characters of a key that somebody makes up."""


class Config(Model):
    """The settings of a server; those of the store are the ones that `open` uses."""

    store: str | None = None
    embedding: str | None = None
    language_model: str | None = None
    sessions: str | None = Field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=128)
    rate_limit: int = Field(default=1000, ge=0)
    """Calls a second that a key may make of each worker; 0 for no limit."""
    max_body: int = Field(default=25 * MEGABYTE, ge=1024)
    """Bytes of the largest request that is read."""
    max_written: int = Field(default=1000, ge=0)
    """Megabytes that a project may store within an hour through each worker; 0 for no limit."""
    cors_origins: list[str] = Field(default_factory=list)
    """Pages of these origins may call; none, if empty; of all, with "*"."""
    admin_key: str | None = Field(default=None, repr=False)
    """A key for everything, beside those in the store."""
    new_key: bool = False
    """Whether the keys for everything in the store are revoked, and another is made."""
    header_seconds: float = Field(default=10.0, gt=0)
    """How long the headers of a request may take."""
    body_seconds: float = Field(default=30.0, gt=0)
    """How long a body may take that does not keep coming."""
    max_unknown: int = Field(default=512, ge=1)
    """Connections at the same time whose caller is not known yet, in a worker."""
    max_unknown_from_one: int = Field(default=128, ge=1)
    """The same, from one address."""
    max_connections: int | None = Field(default=None, ge=8)
    """All connections at the same time, in a worker; None for as many as its descriptors allow, at most 4096. A key
    and the visitors of a project have a quarter each, a project has half."""
    trusted_proxies: list[str] = Field(default_factory=list)
    """Proxies whose headers say where a request came from."""
    threads: int = Field(default=16, ge=1)
    """Calls that a worker does at the same time."""
    worker: bool = True
    """Whether each worker process also does jobs in the background."""
    api_docs: bool = True
    """Whether there are pages about the API at /docs."""
    mcp: bool = True
    """Whether agents can call by MCP at /mcp."""
    quiet: bool = False
    """Whether requests that go well are left out of the log."""

    @field_validator("admin_key")
    @classmethod
    def _long(cls, key: str | None) -> str | None:
        # In words of its own, because others show the value.
        if key is None:
            return None
        remedy = f"Set HEEDFUL_ADMIN_KEY to at least {MIN_KEY_LENGTH} visible ASCII characters, or to nothing"
        if len(key) < MIN_KEY_LENGTH:
            message = f"(HEEDFUL_ADMIN_KEY) has {len(key)} characters, the least is {MIN_KEY_LENGTH}"
            raise Invalid(message, remedy=remedy)
        if not key.isascii() or not key.isprintable() or " " in key:
            raise Invalid("(HEEDFUL_ADMIN_KEY) has characters that are not allowed in a header", remedy=remedy)
        return key

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, origins: list[str]) -> list[str]:
        return [_origin(origin) for origin in origins]


def _origin(origin: str) -> str:
    """An origin as browsers write it."""
    if origin == "*":
        return origin
    try:
        parts = urlsplit(origin.removesuffix("/"))
        is_valid = parts.scheme in ("http", "https") and parts.hostname is not None and parts.port != 0
        is_valid = is_valid and not (parts.path or parts.query or parts.fragment) and "@" not in parts.netloc
    except ValueError:
        is_valid = False
    if not is_valid or origin.endswith(("?", "#")):
        remedy = "Use https://host or http://host:port, without a path; * for all"
        raise Invalid(f"has {quoted(origin)}, which is not an origin", value=origin, remedy=remedy)
    return f"{parts.scheme}://{parts.netloc.lower()}"
