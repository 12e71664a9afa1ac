"""Regular expressions that are compiled when they are first used: a process needs few of the many."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, expression: str, flags: int) -> None:
        self._given = expression, flags

    def __getattr__(self, name: str) -> Any:
        # Only asked for what isn't there; from now on, it is.
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def regex(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but an error in the expression shows when it is first used. Use its methods, and not the
    functions of `re`, which take no other object than a compiled one."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))
