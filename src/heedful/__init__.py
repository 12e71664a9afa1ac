"""Heedful: the feedback loop for AI agents."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from heedful.version import __version__

if _TYPE_CHECKING:
    from heedful.aio import AsyncHeedful
    from heedful.bootstrap import aopen, open, reembed
    from heedful.engine import Heedful
    from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
    from heedful.interfaces.client.surface import RemoteHeedful
    from heedful.interfaces.client.transport import aconnect, connect
    from heedful.ledger.usefulness import normalise_rating
    from heedful.memory.answer import as_prompt
    from heedful.model import (
        Document,
        Entry,
        FactStats,
        Feedback,
        Hit,
        Improvement,
        NormalisedRating,
        PolicyChange,
        PolicyInUse,
        Recall,
        Receipt,
        RememberResult,
        Retraction,
        Satisfaction,
        Session,
        Signal,
        SignalResult,
        Supersession,
        UsefulnessStats,
        etag,
    )

__all__ = [
    "AsyncHeedful",
    "Conflict",
    "Document",
    "Entry",
    "FactStats",
    "Feedback",
    "Forbidden",
    "Heedful",
    "HeedfulError",
    "Hit",
    "Improvement",
    "Invalid",
    "NormalisedRating",
    "NotFound",
    "PolicyChange",
    "PolicyInUse",
    "Recall",
    "Receipt",
    "RememberResult",
    "RemoteHeedful",
    "Retraction",
    "Satisfaction",
    "Session",
    "Signal",
    "SignalResult",
    "Supersession",
    "Unavailable",
    "UsefulnessStats",
    "__version__",
    "aconnect",
    "aopen",
    "as_prompt",
    "connect",
    "etag",
    "normalise_rating",
    "open",
    "reembed",
]

_MODULES = {
    "heedful.aio": ("AsyncHeedful",),
    "heedful.bootstrap": ("aopen", "open", "reembed"),
    "heedful.engine": ("Heedful",),
    "heedful.errors": ("Conflict", "Forbidden", "HeedfulError", "Invalid", "NotFound", "Unavailable"),
    "heedful.interfaces.client.surface": ("RemoteHeedful",),
    "heedful.interfaces.client.transport": ("aconnect", "connect"),
    "heedful.memory.answer": ("as_prompt",),
    "heedful.ledger.usefulness": ("normalise_rating",),
}
_ORIGINS = {name: module for module, names in _MODULES.items() for name in names}
"""Where a public name comes from; those that are not here are nouns of `heedful.model`."""


def __getattr__(name: str) -> _Any:
    """Loads what a name needs when it is first used: a client needs neither a database nor a model."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_ORIGINS.get(name, "heedful.model")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
