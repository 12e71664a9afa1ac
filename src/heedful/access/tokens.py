"""Tokens for browsers: what they may rate, under whose name, and until when, signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from heedful.access import secrets as sealing
from heedful.errors import Forbidden

PREFIX = "hft_"
_PURPOSE = "feedback-token"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says."""

    project: str
    author: str
    targets: tuple[dict[str, str], ...]
    expires_at: int
    """In stored time."""

    def names(self, target: dict[str, str]) -> bool:
        """Whether it allows feedback about this."""
        return target in self.targets


def sign(claims: Claims, secret: bytes) -> str:
    """The token that says this."""
    body = orjson.dumps([claims.project, claims.author, list(claims.targets), claims.expires_at])
    return PREFIX + sealing.sign(body, secret, _PURPOSE)


def verify(token: str, secrets: Sequence[bytes], now: int) -> Claims:
    """What a token says, if it was signed here and has not expired."""
    plain = sealing.verify(token.removeprefix(PREFIX), secrets, _PURPOSE)
    if plain is None:
        raise _invalid()
    project, author, targets, expires_at = orjson.loads(plain)
    if now >= expires_at:
        raise Forbidden("the token has expired", code="token_expired", remedy="Ask your own server for a new one")
    return Claims(project, author, tuple(targets), expires_at)


def _invalid() -> Forbidden:
    return Forbidden("the token is not valid", code="token_invalid", remedy="Ask your own server for a new one")


def target(**ids: Any) -> dict[str, str]:
    """A target in the form that tokens hold."""
    return {name: value for name, value in sorted(ids.items()) if value is not None}
