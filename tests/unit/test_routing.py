"""Paths find their endpoints as if one route after the other were tried."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router

from heedful.api import CALLS
from heedful.interfaces.http.foreign_routes import FOREIGN_APIS
from heedful.interfaces.http.middleware import Endpoint, Routes

TABLE: dict[str, set[str]] = {"/": {"GET"}, "/v1/projects": {"GET"}, "/healthz": {"GET"}}
for each in CALLS.values():
    TABLE.setdefault(f"/v1/projects/{{project}}{each.path}", set()).add(each.method)
for wire in (wire for module in FOREIGN_APIS for wire in module.ROUTES):
    TABLE.setdefault(wire.path, set()).add(wire.method)


async def nothing(request: Request) -> Response:
    return Response()


def routes(table: dict[str, set[str]]) -> Routes:
    return Routes({path: dict[str, Endpoint].fromkeys(methods, nothing) for path, methods in table.items()})


def tried_in_turn(router: Router, scope: dict[str, Any]) -> tuple[Match, str | None, dict[str, str]]:
    best: tuple[Match, str | None, dict[str, str]] = (Match.NONE, None, {})
    for route in router.routes:
        assert isinstance(route, Route)
        match, found = route.matches(scope)
        if match.value > best[0].value:
            best = (match, route.path, found["path_params"])
    return best


def check(table: dict[str, set[str]], method: str, path: str) -> None:
    router = Router([Route(path, nothing, methods=list(methods)) for path, methods in table.items()])
    scope = {"type": "http", "method": method, "path": path, "root_path": ""}
    match, found = routes(table).matches(scope)
    assert (match, found.get("heedful.route"), found.get("path_params", {})) == tried_in_turn(router, scope)


SEGMENTS = sorted({part for path in TABLE for part in path.split("/") if not part.startswith("{")} | {"x", "%2F"})
METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])


@given(METHODS, st.lists(st.sampled_from(SEGMENTS), max_size=9))
@pytest.mark.slow
def test_any_path_finds_what_it_found_in_turn(method: str, segments: list[str]) -> None:
    check(TABLE, method, "/" + "/".join(segments))


@given(METHODS, st.sampled_from(sorted(TABLE)), st.data())
@pytest.mark.slow
def test_paths_of_routes_find_what_they_found_in_turn(method: str, path: str, data: st.DataObject) -> None:
    check(TABLE, method, re.sub(r"{\w+}", lambda _: data.draw(st.sampled_from(SEGMENTS)), path))


def test_the_path_that_was_named_first_answers() -> None:
    table = {"/{a}/x": {"GET"}, "/b/{c}": {"GET", "POST"}, "/{d}/{e}": {"DELETE"}, "/{f}/{g}": {"PUT"}}
    for method in ("GET", "POST", "DELETE", "PUT", "PATCH"):
        for path in ("/b/x", "/b/y", "/z/x", "/z/y", "/b/", "//x", "/b", "/b/x/"):
            check(table, method, path)


class Counted(str):
    """A text that notes how often it is split, and how far."""

    splits: list[int]

    def split(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        self.splits.append(maxsplit)
        return super().split(sep, maxsplit)


@pytest.mark.parametrize("path", ["/" * 10_000, "/a" * 10_000])
def test_a_path_is_followed_no_further_than_routes_go(path: str) -> None:
    counted = Counted(path)
    counted.splits = []
    most = max(each.count("/") for each in TABLE)
    match, _ = routes(TABLE).matches({"method": "GET", "path": counted})
    assert (match, counted.splits) == (Match.NONE, [most + 1])
