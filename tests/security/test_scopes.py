"""Foreign routes as a way around scopes: none needs less than the native call that it ends in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from server import Running, running

from heedful.api import CALLS, NAMESPACES
from heedful.compat.foreign_api import ForeignRoute
from heedful.interfaces.http.foreign_routes import FOREIGN_APIS
from heedful.model import SCOPES, Scope

WIRES = [wire for module in FOREIGN_APIS for wire in module.ROUTES]

_CALL = re.compile(r"\b(?:heedful|store)\.(\w+)(?:\.(\w+))?\(")
_NAME = re.compile(r"\b([a-z_]\w*)\(")


def enough(scope: Scope) -> set[Scope]:
    """The scopes of a key that may do what needs this one."""
    return {scope, "admin"}


def operations(handle: Callable[..., Any]) -> set[str]:
    """The native operations that a handler calls, itself or through functions of its module."""
    found: set[str] = set()
    waiting: list[Any] = [handle]
    seen: set[Any] = set()
    while waiting:
        function = waiting.pop()
        function = function.func if isinstance(function, partial) else inspect.unwrap(function)
        if function in seen or not inspect.isfunction(function) or "heedful.compat" not in function.__module__:
            continue
        seen.add(function)
        source = inspect.getsource(function)
        for first, second in _CALL.findall(source):
            found |= {f"{first}.{second}" if first in NAMESPACES else first} & CALLS.keys()
        waiting += [function.__globals__.get(name) for name in _NAME.findall(source)]
    return found


def test_what_foreign_routes_call_is_found() -> None:
    called = {name for wire in WIRES for name in operations(wire.handle)}
    assert {"connectors.create", "connectors.refresh", "remember", "signal", "feedback.create", "forget"} <= called


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: f"{wire.method} {wire.path}")
def test_a_foreign_route_needs_no_less_than_the_calls_it_ends_in(wire: ForeignRoute) -> None:
    needed = {CALLS[name].scope for name in operations(wire.handle)} - {"read"}
    # What also gives an opinion is checked again when it does.
    needed -= {"feedback"} if wire.scope != "read" else set()
    assert all(enough(wire.scope) <= enough(scope) for scope in needed), needed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("scopes") / "store.db", worker=False) as made:
        yield made


@pytest.fixture(scope="module")
def keys(server: Running) -> dict[Scope, str]:
    """A key for each scope, which has no other."""
    with server.connect() as admin:
        return {scope: admin.keys.create(scope, scopes=[scope]).api_key for scope in SCOPES}


@pytest.fixture(scope="module")
def http(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url) as client:
        yield client


def _sent(http: httpx.Client, method: str, path: str, key: str | None) -> int:
    filled = re.sub(r"{\w+}", "default", path)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return http.request(method, filled, headers=headers).status_code


@pytest.mark.slow
def test_every_route_is_refused_without_its_scope_and_without_a_key(http: httpx.Client, keys: dict[Scope, str]) -> None:
    native = [(each.method, f"/v1/projects/default{each.path}", each.scope) for each in CALLS.values()]
    foreign = [(each.method, each.path, each.scope) for each in WIRES]
    wrong = []
    for method, path, scope in native + foreign:
        if _sent(http, method, path, None) != 401:
            wrong.append((method, path, "no key"))
        wrong += [
            (method, path, other)
            for other in SCOPES
            if other not in enough(scope) and _sent(http, method, path, keys[other]) != 403
        ]
    assert wrong == []


def test_a_write_key_can_neither_refresh_nor_make_nor_delete_a_connector(
    http: httpx.Client, keys: dict[Scope, str]
) -> None:
    place = "/api/projects/default/connectors"
    for method, path in (("POST", f"{place}/x/test"), ("POST", place), ("PUT", f"{place}/x"), ("DELETE", f"{place}/x")):
        assert _sent(http, method, path, keys["write"]) == 403, (method, path)


def test_who_only_gives_feedback_is_not_shown_what_it_is_about(http: httpx.Client, keys: dict[Scope, str]) -> None:
    """The answer to an action on an item has its question, its dataset and its counts."""
    actions = [each for each in CALLS.values() if each.namespace == "review" and each.scope != "read"]
    assert {"review.assign", "review.resolve", "review.fix", "review.undo"} <= {each.name for each in actions}
    for action in actions:
        assert _sent(http, action.method, f"/v1/projects/default{action.path}", keys[action.scope]) == 403, action.name


def test_metrics_of_all_projects_are_not_for_the_admin_of_one(
    server: Running, http: httpx.Client, keys: dict[Scope, str]
) -> None:
    assert _sent(http, "GET", "/metrics", keys["admin"]) == 403
    assert _sent(http, "GET", "/v1/jobs", keys["admin"]) == 403
    assert _sent(http, "GET", "/metrics", server.key) == 200


def test_open_routes_say_nothing_of_the_store(server: Running, http: httpx.Client) -> None:
    text = "".join(http.get(path).text for path in ("/healthz", "/readyz", "/health", "/"))
    assert "store.db" not in text
    assert "sqlite" not in text
