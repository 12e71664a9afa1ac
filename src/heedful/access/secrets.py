"""Secrets: what a key looks like, how it is compared, and how one is sealed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence
from uuid import UUID

PREFIX = "hf_"


def new_key(key_id: str) -> str:
    """A fresh key: its id, and a secret of 256 bits."""
    return f"{PREFIX}{UUID(key_id).hex}_{secrets.token_urlsafe(32)}"


def id_of(api_key: str) -> str | None:
    """The id that a key names; None if it doesn't look like a key."""
    number, _, secret = api_key.removeprefix(PREFIX).partition("_")
    if not api_key.startswith(PREFIX) or not secret or len(number) != 32:
        return None
    try:
        return str(UUID(number))
    except ValueError:
        return None


def digest(api_key: str) -> bytes:
    """What is kept of a key. It has 256 random bits, so that a plain sum can't be guessed back."""
    return hashlib.sha256(api_key.encode(errors="replace")).digest()


def matches(api_key: str, stored: bytes) -> bool:
    """Whether this is the key, compared in constant time."""
    return hmac.compare_digest(digest(api_key), stored)


def sign(body: bytes, secret: bytes, purpose: str) -> str:
    """The body with its seal, in letters that addresses and cookies can hold."""
    return f"{_encode(body)}.{_encode(_signature(body, secret, purpose))}"


def verify(text: str, secrets: Sequence[bytes], purpose: str) -> bytes | None:
    """The body, if it was sealed with one of these secrets for this purpose; None otherwise."""
    body, _, seal = text.partition(".")
    try:
        plain, signature = _decode(body), _decode(seal)
    except (Error, UnicodeEncodeError, ValueError):
        return None
    good = any(hmac.compare_digest(_signature(plain, secret, purpose), signature) for secret in secrets)
    return plain if good else None


def _signature(body: bytes, secret: bytes, purpose: str) -> bytes:
    return hmac.digest(secret, f"{purpose}.".encode() + body, hashlib.sha256)


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if _encode(data) != text:
        raise ValueError("this is not the canonical encoding")
    return data
