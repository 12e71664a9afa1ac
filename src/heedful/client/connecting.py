"""Connecting to a server: what `heedful.connect` does."""

from __future__ import annotations

import os

from heedful import settings
from heedful.aio import AsyncHeedful
from heedful.client.surface import RemoteHeedful
from heedful.errors import Invalid
from heedful.memory import checks

TIMEOUT = 60.0


def connect(
    url: str, *, api_key: str | None = None, project: str | None = None, timeout: float = TIMEOUT
) -> RemoteHeedful:
    """Connects to a server: the same methods as `open` gives, over HTTP. Nothing is sent yet.

    `api_key` is HEEDFUL_API_KEY if left out, `project` what the settings name. A call takes at most `timeout` seconds,
    ten times as long where it is known to be slow. Calls that fail in a way that may pass are sent again; they count
    once.
    """
    from heedful.client.transport import Transport

    name, key = _checked(project, api_key, timeout)
    return RemoteHeedful(Transport(url, name, key, timeout), f"<RemoteHeedful {url} project={name!r}>")


async def aconnect(
    url: str, *, api_key: str | None = None, project: str | None = None, timeout: float = TIMEOUT
) -> AsyncHeedful:
    """Connects to a server for asyncio; see `connect`."""
    from heedful.client.transport import AsyncTransport

    name, key = _checked(project, api_key, timeout)
    transport = AsyncTransport(url, name, key, timeout)
    return AsyncHeedful(transport.call, transport.close, f"<AsyncHeedful {url} project={name!r}>")


def _checked(project: str | None, api_key: str | None, timeout: float) -> tuple[str, str | None]:
    name = checks.name("project", settings.load().project if project is None else project)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
        raise Invalid(f"timeout must be seconds above 0, got {timeout!r}", field="timeout", value=timeout)
    key = os.environ.get(settings.API_KEY) or None if api_key is None else api_key
    if key is not None and (not key.isascii() or not key.isprintable() or not key.strip()):
        given = f"{settings.API_KEY} in the environment" if api_key is None else "api_key"
        raise Invalid(f"{given} is not a key", field="api_key", remedy="Give it as it was shown: hf_…")
    return name, key
