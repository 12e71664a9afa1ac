"""Heedful: the feedback loop for AI agents."""

from heedful.aio import AsyncHeedful, aopen
from heedful.engine import Heedful, open, reembed
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.model import Hit, Recall, Signal, SignalResult

__version__ = "0.1.0"

__all__ = [
    "AsyncHeedful",
    "Conflict",
    "Forbidden",
    "Heedful",
    "HeedfulError",
    "Hit",
    "Invalid",
    "NotFound",
    "Recall",
    "Signal",
    "SignalResult",
    "Unavailable",
    "__version__",
    "aopen",
    "open",
    "reembed",
]
