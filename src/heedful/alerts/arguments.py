"""What channels are made with is checked at once, and no secret is shown when it is refused."""

from __future__ import annotations

import hashlib
import math
from typing import Any
from urllib.parse import SplitResult, urlsplit

from heedful.errors import Invalid

MAX_NAME = 200
MAX_TIMEOUT = 30.0
"""So that an attempt is over before its alert may be claimed by somebody else."""


def name(given: str | None, default: str) -> str:
    """The name of a channel: the one that was given, or the default, shortened if need be."""
    if given is None:
        return default if len(default) <= MAX_NAME else f"{default[: MAX_NAME - 9]}#{fingerprint(default)}"
    return valid_name(given)


def valid_name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        raise Invalid(
            f"a channel's name must be one line of 1 to {MAX_NAME} characters, got {value!r}", field="name", value=value
        )
    return value


def url(value: Any) -> SplitResult:
    """The parts of an address for HTTP."""
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("url must be an address that starts with https:// or http://", field="url")
    if "@" in parts.netloc:
        raise Invalid("url must not hold a user name or password", field="url", remedy="Leave out what is before the @")
    return parts


def timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid(f"timeout must be a number of seconds, got {value!r}", field="timeout", value=value)
    if not 0 < value <= MAX_TIMEOUT:
        raise Invalid(f"timeout must be above 0 and up to {MAX_TIMEOUT:g} s, got {value}", field="timeout", value=value)
    return float(value)


def fingerprint(text: str) -> str:
    """Eight characters that tell one text from another and don't give it away."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _split(value: Any) -> SplitResult | None:
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return None
    try:
        parts = urlsplit(value)
        # Reading the port is what checks it.
        return parts if parts.port != 0 else None
    except ValueError:
        return None
