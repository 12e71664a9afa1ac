"""Heedful: the feedback loop for AI agents.

`__init__.pyi` has the public names for editors and type checkers; `make docs` writes it, and a test compares it.
"""

from typing import Any as _Any

from heedful.loading import load as _load
from heedful.version import __version__ as __version__

_MODULES = {
    "heedful.aio": ("AsyncHeedful",),
    "heedful.bootstrap": ("aopen", "open", "reembed"),
    "heedful.engine": ("Heedful",),
    "heedful.errors": ("Conflict", "Forbidden", "HeedfulError", "Invalid", "NotFound", "Unavailable"),
    "heedful.interfaces.client.surface": ("RemoteHeedful",),
    "heedful.interfaces.client.transport": ("aconnect", "connect"),
    "heedful.memory.answer": ("as_prompt",),
    "heedful.ledger.votes": ("normalise_rating",),
}
_ORIGINS = {name: module for module, names in _MODULES.items() for name in names}
"""Where a public name comes from; the others are nouns that are declared as `public` in `heedful.model`."""


def __getattr__(name: str) -> _Any:
    """Loads what a name needs when it is first used: a client needs neither a database nor a model."""
    value: _Any
    if name in _ORIGINS:
        value = getattr(_load(_ORIGINS[name]), name)
    elif name == "__all__":
        value = sorted([*_ORIGINS, *_load("heedful.model").PUBLIC, "__version__"])
    elif not name.startswith("_") and name in (nouns := _load("heedful.model").PUBLIC):
        value = nouns[name]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
