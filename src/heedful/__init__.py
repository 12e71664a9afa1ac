"""Heedful: the feedback loop for AI agents."""

from heedful.aio import AsyncHeedful, aopen
from heedful.bootstrap import open, reembed
from heedful.engine import Heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.client.transport import aconnect, connect
from heedful.model import (
    Document,
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
    etag,
)
from heedful.version import __version__

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
    "NotFound",
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
    "connect",
    "etag",
    "open",
    "reembed",
]
