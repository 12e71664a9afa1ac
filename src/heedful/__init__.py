"""Heedful: the feedback loop for AI agents."""

from heedful.aio import AsyncHeedful, aopen
from heedful.engine import Heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.model import (
    Entry,
    FactStats,
    Feedback,
    Hit,
    Improvement,
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
)
from heedful.opening import open, reembed

__version__ = "0.1.0"

__all__ = [
    "AsyncHeedful",
    "Conflict",
    "Entry",
    "FactStats",
    "Feedback",
    "Forbidden",
    "Heedful",
    "HeedfulError",
    "Hit",
    "Improvement",
    "Invalid",
    "NotFound",
    "Recall",
    "Receipt",
    "RememberResult",
    "Retraction",
    "Satisfaction",
    "Session",
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
