"""Heedful: the feedback loop for AI agents."""

from heedful.aio import AsyncHeedful, aopen
from heedful.engine import Heedful, open, reembed
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.model import (
    FactStats,
    Hit,
    Recall,
    Receipt,
    RememberResult,
    Retraction,
    Signal,
    SignalResult,
    Supersession,
    UsefulnessStats,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncHeedful",
    "Conflict",
    "FactStats",
    "Forbidden",
    "Heedful",
    "HeedfulError",
    "Hit",
    "Invalid",
    "NotFound",
    "Recall",
    "Receipt",
    "RememberResult",
    "Retraction",
    "Signal",
    "SignalResult",
    "Supersession",
    "Unavailable",
    "UsefulnessStats",
    "__version__",
    "aopen",
    "open",
    "reembed",
]
