"""`heedful doctor --security` on a running server: what a stranger can find out, and what the key in use can do."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import httpx

from heedful.errors import Unavailable
from heedful.model import Check

FOREIGN_ORIGIN = "https://stranger.example"
"""A page of nobody's."""


def check_server(url: str, api_key: str | None, timeout: float = 10.0) -> list[Check]:
    """One line for each thing that was tried; only questions are asked."""
    with httpx.Client(base_url=url, timeout=timeout, trust_env=False) as client:
        try:
            closed = [_closed(client, path) for path in ("/v1/projects", "/metrics")]
            return [_encrypted(url), *closed, *_rest(client, api_key)]
        except httpx.HTTPError as error:
            problem = f"the server at {url} can't be reached ({type(error).__name__})"
            remedy = "Check the address, and that it runs"
            raise Unavailable(problem, code="server_unreachable", remedy=remedy) from error


def _encrypted(url: str) -> Check:
    parts = urlsplit(url)
    try:
        loopback = parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        loopback = False
    ok = parts.scheme == "https" or loopback
    finding = "keys travel unencrypted; put a proxy with TLS in front, and use https://"
    return Check(name="transport", ok=ok, detail="encrypted, or on this machine" if ok else finding)


def _closed(client: httpx.Client, path: str) -> Check:
    status = client.get(path).status_code
    ok = status in (401, 403, 404)
    detail = "needs a key" if ok else f"{path} answers {status} without a key"
    return Check(name=path.rpartition("/")[2], ok=ok, detail=detail)


def _rest(client: httpx.Client, api_key: str | None) -> list[Check]:
    """The pages that may call, and the reach of the key."""
    allowed = client.get("/healthz", headers={"Origin": FOREIGN_ORIGIN}).headers.get("access-control-allow-origin")
    pages = "pages of other sites may not call"
    if allowed is not None:
        pages = "pages of any site may call; name yours with --cors-origin"
    origins = Check(name="origins", ok=allowed is None, detail=pages)
    if api_key is None:
        return [origins, Check(name="key", ok=True, detail="none is set here")]
    # Jobs of all projects are shown to keys that open all of them.
    everything = client.get("/v1/jobs", headers={"Authorization": f"Bearer {api_key}"}).status_code == 200
    finding = "this key opens all projects; give programs a key of one: heedful keys add NAME --scope …"
    return [origins, Check(name="key", ok=not everything, detail=finding if everything else "opens one project")]
