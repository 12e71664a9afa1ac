"""A dashboard on a store of its own, and somebody who looks at it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from heedful import Heedful
from heedful.dashboard.app import create
from heedful.model import Scope
from heedful.opening import Host
from heedful.server.serve import admin_key
from heedful.testing import ManualClock, WordEmbedder

HOSTILE = '<script>alert("x")</script>'


class Dashboard:
    """The dashboard, with a project `default` that tests fill as they like."""

    def __init__(self, path: Any, clock: ManualClock, **options: Any) -> None:
        self.clock = clock
        self.host = Host(path, clock=clock, embedding=WordEmbedder())
        self.app = create(self.host, **options)
        self.store: Heedful = self.host.project("default")
        self.admin = admin_key(self.host).api_key

    def key(self, *scopes: Scope, name: str = "somebody") -> str:
        """A new key of the project."""
        return self.store.keys.create(name, scopes=scopes).api_key

    def client(self) -> TestClient:
        return TestClient(self.app, base_url="http://dashboard.test", follow_redirects=False)

    def visitor(self, key: str | None = None, name: str = "") -> TestClient:
        """Somebody who has logged in, with the key for everything if none is given."""
        client = self.client()
        answer = client.post("/login", data={"api_key": key or self.admin, "name": name})
        assert answer.status_code == 303, answer.text
        return client

    def close(self) -> None:
        self.store.close()
        self.host.close()


def token(page: str) -> str:
    """A form's token on a page."""
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found is not None, page
    return unescape(found[1])


def hidden(page: str, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])
