"""Where alerts go, and what all channels check and send alike."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from heedful.errors import Invalid, Unavailable, quoted


class Channel(Protocol):
    """A place to send alerts to. `name` is kept with each alert, so that a later process can deliver it."""

    @property
    def name(self) -> str: ...

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        """Delivers one alert, or raises. It may be called again with the same `alert_id`.

        Of a `HeedfulError` the message is kept with the alert and logged. Of any other error it is only the kind:
        what libraries say may hold an address or a key that nobody should read.
        """
        ...


MAX_NAME = 200
MAX_TIMEOUT = 30.0
"""So that an attempt is over before its alert may be claimed by somebody else."""


def check_name(name: str | None, default: str) -> str:
    """The name of a channel: the one that was given, or the default, shortened if need be."""
    if name is None:
        return default if len(default) <= MAX_NAME else f"{default[: MAX_NAME - 9]}#{fingerprint(default)}"
    return valid_name(name)


def valid_name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        raise Invalid(
            f"a channel's name must be one line of 1 to {MAX_NAME} characters, got {quoted(value)}",
            field="name",
            value=value,
        )
    return value


def check_url(value: Any) -> SplitResult:
    """The parts of an address for HTTP."""
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("url must be an address that starts with https:// or http://", field="url")
    if "@" in parts.netloc:
        raise Invalid(
            "url must not contain a user name or password", field="url", remedy="Leave out what is before the @"
        )
    return parts


def check_timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid(f"timeout must be a number of seconds, got {quoted(value)}", field="timeout", value=value)
    if not 0 < value <= MAX_TIMEOUT:
        raise Invalid(f"timeout must be above 0 and up to {MAX_TIMEOUT:g} s, got {value}", field="timeout", value=value)
    return float(value)


def fingerprint(text: str) -> str:
    """Eight characters that identify a text without revealing it."""
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


def post(url: str, body: bytes, headers: Mapping[str, str], *, channel: str, timeout: float) -> None:
    """Sends JSON; raises `Unavailable`, which doesn't reveal the address, unless the answer is a success."""
    # Loading it takes longer than opening a store.
    import httpx

    request = httpx.Request(
        "POST",
        url,
        headers={"Content-Type": "application/json", "User-Agent": "heedful", **headers},
        content=body,
        extensions={"timeout": httpx.Timeout(timeout).as_dict()},
    )
    try:
        # Not through a client, which would write the address to its log.
        with httpx.HTTPTransport() as transport:
            response = transport.handle_request(request)
            response.close()
    except httpx.TransportError as error:
        raise Unavailable(f"{channel} can't be reached ({type(error).__name__}: {error})") from error
    if not response.is_success:
        raise Unavailable(f"{channel} answered with HTTP {response.status_code}")
