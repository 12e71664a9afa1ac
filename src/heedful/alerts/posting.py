"""One POST: no redirect is followed, and no proxy, cookie or password comes from the environment."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from heedful.errors import Unavailable


def post(url: str, body: bytes, headers: Mapping[str, str], *, channel: str, timeout: float) -> None:
    """Sends JSON; raises `Unavailable`, which doesn't tell the address, unless the answer is a success."""
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
