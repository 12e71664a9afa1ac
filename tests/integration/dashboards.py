"""A dashboard on a store of its own, and somebody who looks at it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from heedful import Heedful
from heedful.interfaces.dashboard.app import create
from heedful.interfaces.http.app import admin_key
from heedful.model import Scope
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder

HOSTILE = '<script>alert("x")</script>'


class Dashboard:
    """The dashboard, with a project `default` that tests fill as they like."""

    def __init__(self, path: Any, clock: ManualClock, **options: Any) -> None:
        self.clock = clock
        self.opened = Store(path, clock=clock, embedding=WordEmbedder())
        self.app = create(self.opened, **options)
        self.store: Heedful = self.opened.open("default")
        self.admin = admin_key(self.opened).api_key

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
        self.app.state.site.state.close()


def token(page: str) -> str:
    """A form's token on a page."""
    match = re.search(r'name="token" value="([^"]+)"', page)
    assert match is not None, page
    return unescape(match[1])


def hidden(page: str, name: str) -> str:
    """The value of a hidden field."""
    match = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert match is not None, page
    return unescape(match[1])


def undo(page: str) -> dict[str, str]:
    """The form behind Undo, with where it goes as `to`."""
    part = page.partition('class="flash"')[2].partition("</form>")[0]
    fields = re.findall(r'name="([^"]+)" value="([^"]*)"', part)
    match = re.search(r'action="([^"]+)"', part)
    assert match is not None, page
    return {"to": match[1], **{name: unescape(value) for name, value in fields}}


def connect_shop(store: Heedful) -> None:
    """Connects a small database, a file in the current folder."""
    with closing(sqlite3.connect("shop.sqlite")) as database:
        database.executescript("create table orders (id integer, town text); insert into orders values (1, 'Lyon')")
    store.connectors.create("shop", "sqlite:///shop.sqlite")


def forms(page: str, action: str) -> list[dict[str, str]]:
    """The hidden fields of each form on a page that does this action, with where it goes as `to`."""
    result = []
    for part in page.split("<form ")[1:]:
        form = part.partition("</form>")[0]
        to = re.search(r'action="([^"]+)"', form)
        if to is not None and to[1].endswith(f"/do/{action}"):
            fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
            result.append({"to": to[1], **{name: unescape(value) for name, value in fields}})
    return result


def send(client: TestClient, form: dict[str, str], **typed: str) -> Any:
    """Posts a form with what somebody typed into it."""
    fields = {**form, **typed}
    return client.post(fields.pop("to"), data=fields)


def undone(client: TestClient, done: Any) -> str:
    """Presses Undo on the page that follows an action; returns the page after that."""
    assert done.status_code == 303, done.text
    answer = send(client, undo(client.get(done.headers["location"]).text))
    assert answer.status_code == 303, answer.text
    return str(client.get(answer.headers["location"]).text)
