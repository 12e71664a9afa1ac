"""A proxy with a scripted model behind it, both on real sockets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from model_server import ModelServer, Said, model_server
from threaded import threaded

from heedful.integrations.proxy.app import Proxy, Upstream
from heedful.integrations.turns import BlockingMemory
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig
from heedful.interfaces.http.middleware import BodyTimeout
from heedful.interfaces.http.state import Caller


@dataclass(frozen=True)
class Proxied:
    url: str
    """The base URL for clients."""
    model: ModelServer
    http: httpx.Client

    def ask(self, question: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        request = {"model": "m", "messages": [{"role": "user", "content": question}], **fields}
        return self.http.post("/v1/chat/completions", json=request, headers=headers)


@contextmanager
def proxied(
    memory: BlockingMemory,
    *says: Said,
    upstream: str | None = None,
    upstream_key: str | None = None,
    find_caller: Callable[[str], Caller] | None = None,
    max_body: int = 100_000,
) -> Iterator[Proxied]:
    """Serves a proxy until the block ends."""
    with model_server(*says) as model:
        behind = Upstream(upstream or model.url, upstream_key)
        app = Proxy(memory, behind, project="default", max_body=max_body, find_caller=find_caller)
        config = ServerConfig(
            BodyTimeout(app, 30), Config(max_body=max_body), timeout_graceful_shutdown=10, date_header=False
        )
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        with threaded(uvicorn.Server(config)) as url, httpx.Client(base_url=url, timeout=60) as http:
            yield Proxied(f"{url}/v1", model, http)
