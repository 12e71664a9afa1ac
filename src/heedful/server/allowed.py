"""The engine as far as a caller may use it: a foreign route needs what the native calls behind it need."""

from __future__ import annotations

from functools import wraps
from typing import Any, cast

from heedful.engine import Heedful
from heedful.operations import OPERATIONS, OWNERS, Operation
from heedful.server.callers import Caller


def allowed(engine: Heedful, caller: Caller) -> Heedful:
    """The engine, whose calls that change something are `Forbidden` to a caller without their scope.

    Reading is left to the scope of the route: a route for feedback may look up what the feedback is about.
    """
    return cast(Heedful, _Allowed(caller.connecting(engine), caller))


class _Allowed:
    def __init__(self, target: Any, caller: Caller, namespace: str = "") -> None:
        self._target = target
        self._caller = caller
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not self._namespace and name in OWNERS:
            return _Allowed(found, self._caller, name)
        operation = OPERATIONS.get(f"{self._namespace}.{name}".lstrip("."))
        return found if operation is None else self._checked(operation, found)

    def _checked(self, operation: Operation, found: Any) -> Any:
        @wraps(found)
        def call(*args: Any, **named: Any) -> Any:
            if operation.scope != "read":
                self._caller.check(operation.scope)
            if operation.keeps is not None and named.get(operation.keeps) is not None:
                self._caller.check("write")
            if operation.restricted is not None and named.get(operation.restricted) is not None:
                self._caller.check("admin")
            return found(*args, **named)

        return call
