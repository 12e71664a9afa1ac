"""Tokens for browsers: what they may rate, under whose name, and until when, signed."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass
from typing import Any

import orjson

from heedful.errors import Forbidden

PREFIX = "hft_"


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


def signed(claims: Claims, secret: bytes) -> str:
    """The token that says this."""
    body = orjson.dumps([claims.project, claims.author, list(claims.targets), claims.expires_at])
    return f"{PREFIX}{_packed(body)}.{_packed(_seal(body, secret))}"


def read(token: str, secret: bytes | None, now: int) -> Claims:
    """What a token says, if it was signed here and has not expired."""
    body, _, seal = token.removeprefix(PREFIX).partition(".")
    try:
        plain, given = _unpacked(body), _unpacked(seal)
    except (Error, UnicodeEncodeError, ValueError):
        raise _invalid() from None
    if secret is None or not hmac.compare_digest(_seal(plain, secret), given):
        raise _invalid()
    project, author, targets, expires_at = orjson.loads(plain)
    if now >= expires_at:
        raise Forbidden("the token has expired", code="token_expired", remedy="Ask your own server for a new one")
    return Claims(project, author, tuple(targets), expires_at)


def _seal(body: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, b"feedback-token." + body, hashlib.sha256)


def _packed(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if _packed(data) != text:
        raise ValueError("there is another way to write this token")
    return data


def _invalid() -> Forbidden:
    return Forbidden("the token is not valid", code="token_invalid", remedy="Ask your own server for a new one")


def target(**ids: Any) -> dict[str, str]:
    """A target in the form that tokens hold."""
    return {name: value for name, value in sorted(ids.items()) if value is not None}
