"""Texts that only this store can have written: what they say can be read, and not be changed."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence


def sealed(body: bytes, secret: bytes, purpose: str) -> str:
    """The body with its seal, in letters that addresses and cookies can hold."""
    return f"{_packed(body)}.{_packed(_seal(body, secret, purpose))}"


def opened(text: str, secrets: Sequence[bytes], purpose: str) -> bytes | None:
    """The body, if it was sealed with one of these secrets for this purpose; None otherwise."""
    body, _, seal = text.partition(".")
    try:
        plain, given = _unpacked(body), _unpacked(seal)
    except (Error, UnicodeEncodeError, ValueError):
        return None
    good = any(hmac.compare_digest(_seal(plain, secret, purpose), given) for secret in secrets)
    return plain if good else None


def _seal(body: bytes, secret: bytes, purpose: str) -> bytes:
    return hmac.digest(secret, f"{purpose}.".encode() + body, hashlib.sha256)


def _packed(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if _packed(data) != text:
        raise ValueError("there is another way to write this text")
    return data
