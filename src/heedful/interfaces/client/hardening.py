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
            return [
                _encrypted(url),
                _closed(client, "projects", "/v1/projects"),
                _closed(client, "metrics", "/metrics"),
                _origins(client),
                _key(client, api_key),
            ]
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the server at {url} can't be reached ({type(error).__name__})",
                code="server_unreachable",
                remedy="Check the address, and that it runs",
            ) from error


def _encrypted(url: str) -> Check:
    parts = urlsplit(url)
    ok = parts.scheme == "https" or _is_loopback(parts.hostname or "")
    finding = "keys travel unencrypted; put a proxy with TLS in front, and use https://"
    return Check(name="transport", ok=ok, detail="encrypted, or on this machine" if ok else finding)


def _closed(client: httpx.Client, name: str, path: str) -> Check:
    status = client.get(path).status_code
    ok = status in (401, 403, 404)
    return Check(name=name, ok=ok, detail="needs a key" if ok else f"{path} answers {status} without a key")


def _origins(client: httpx.Client) -> Check:
    allowed = client.get("/healthz", headers={"Origin": FOREIGN_ORIGIN}).headers.get("access-control-allow-origin")
    if allowed is None:
        return Check(name="origins", ok=True, detail="pages of other sites may not call")
    return Check(name="origins", ok=False, detail="pages of any site may call; name yours with --cors-origin")


def _key(client: httpx.Client, api_key: str | None) -> Check:
    if api_key is None:
        return Check(name="key", ok=True, detail="none is set here")
    # Jobs of all projects are shown to keys that open all of them.
    everything = client.get("/v1/jobs", headers={"Authorization": f"Bearer {api_key}"}).status_code == 200
    finding = "this key opens all projects; give programs a key of one: heedful keys add NAME --scope …"
    return Check(name="key", ok=not everything, detail=finding if everything else "opens one project")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
