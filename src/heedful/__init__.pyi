# Written by docs/stubs.py from heedful.__all__: `make docs`.
from heedful.aio import AsyncHeedful
from heedful.bootstrap import aopen, open, reembed
from heedful.engine import Heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.client.transport import aconnect, connect
from heedful.ledger.votes import normalise_rating
from heedful.memory.answer import as_prompt
from heedful.model.base import etag
from heedful.model.evaluation import RegressReport
from heedful.model.insight import Satisfaction
from heedful.model.memory import (
    Document,
    FactStats,
    Hit,
    PolicyChange,
    PolicyInUse,
    Recall,
    Receipt,
    RememberResult,
    Retraction,
    Signal,
    SignalResult,
    Supersession,
    UsefulnessStats,
)
from heedful.model.sessions import Entry, Feedback, Improvement, NormalisedRating, Session

__version__: str
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
    "RegressReport",
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
