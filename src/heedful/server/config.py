"""What a server is told when it starts."""

from __future__ import annotations

from pydantic import Field, field_validator

from heedful.errors import Invalid
from heedful.model import Model

MEGABYTE = 1_000_000

SHORTEST = 16
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
    cors_origins: list[str] = Field(default_factory=list)
    """Pages of these origins may call; none, if empty."""
    admin_key: str | None = Field(default=None, repr=False)
    """A key for everything, beside those in the store."""
    new_key: bool = False
    """Whether the keys for everything in the store are revoked, and another is made."""
    threads: int = Field(default=16, ge=1)
    """Calls that a worker does at the same time."""

    @field_validator("admin_key")
    @classmethod
    def _long(cls, key: str | None) -> str | None:
        # In words of its own, because others show the value.
        if key is not None and (len(key) < SHORTEST or not key.isascii() or not key.isprintable() or " " in key):
            raise Invalid(
                "admin_key is too short, or holds what a header can't",
                field="admin_key",
                remedy=f"Set HEEDFUL_ADMIN_KEY to {SHORTEST} letters and digits or more, or to nothing",
            )
        return key
