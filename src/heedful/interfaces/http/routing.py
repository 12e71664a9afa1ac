"""Which endpoint answers a path: found segment by segment, so that neither long segments nor many routes take time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, request_response
from starlette.types import Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]

ENDPOINTS = "heedful.endpoints"
"""Where a request has what answers its path, by method."""


@dataclass(frozen=True, slots=True)
class _Route:
    number: int
    path: str
    parameters: tuple[str, ...]
    endpoints: Mapping[str, Endpoint]


@dataclass(slots=True)
class _Node:
    """What may follow the segments before it."""

    named: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    """After a parameter, which is any segment that is not empty."""
    routes: list[_Route] = field(default_factory=list)
    """Those that end here; they may name their parameters differently."""

    def found(self, segments: list[str], values: tuple[str, ...] = ()) -> Iterator[tuple[_Route, tuple[str, ...]]]:
        """The routes that match all of these segments, and the values of their parameters."""
        if not segments:
            yield from ((route, values) for route in self.routes)
            return
        first, *others = segments
        if first in self.named:
            yield from self.named[first].found(others, values)
        if first and self.any is not None:
            yield from self.any.found(others, (*values, first))


class Routes(BaseRoute):
    """Endpoints by path and method. Where several paths match, the one that was named first answers.

    `heedful.route` in the scope of a request says which path it was.
    """

    def __init__(self, routes: Mapping[str, Mapping[str, Endpoint]]) -> None:
        self._root = _Node()
        self._most = max(path.count("/") for path in routes)
        for number, (path, endpoints) in enumerate(routes.items()):
            node, parameters = self._root, []
            for segment in path.split("/"):
                if segment.startswith("{"):
                    parameters.append(segment.strip("{}"))
                    node.any = node.any or _Node()
                    node = node.any
                else:
                    node = node.named.setdefault(segment, _Node())
            node.routes.append(_Route(number, path, tuple(parameters), endpoints))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        # What is split no further than the longest path matches none.
        found = sorted(self._root.found(scope["path"].split("/", self._most + 1)), key=lambda each: each[0].number)
        if not found:
            return Match.NONE, {}
        route, values = next((each for each in found if method in each[0].endpoints), found[0])
        parameters = dict(zip(route.parameters, values, strict=True))
        match = Match.FULL if method in route.endpoints else Match.PARTIAL
        return match, {"heedful.route": route.path, "path_params": parameters, ENDPOINTS: route.endpoints}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoints: Mapping[str, Endpoint] = scope[ENDPOINTS]
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in endpoints:
            allowed = {*endpoints, "HEAD"} if "GET" in endpoints else {*endpoints}
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        await request_response(endpoints[method])(scope, receive, send)
