"""What a key looks like, and how it is compared."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from uuid import UUID

PREFIX = "hf_"


def new(key_id: str) -> str:
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


def same(api_key: str, kept: bytes) -> bool:
    """Whether this is the key; how long that takes tells nothing."""
    return hmac.compare_digest(digest(api_key), kept)
