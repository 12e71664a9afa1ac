"""What callers can do, as signatures: the engine implements them, and every interface is made from them.

Nothing heavy is imported here, so that a client needs neither a database nor a model."""

from heedful.protocols.access import KeysProtocol
from heedful.protocols.engine import HeedfulProtocol
from heedful.protocols.insight import InsightProtocol
from heedful.protocols.jobs import JobsProtocol
from heedful.protocols.review import ReviewProtocol
from heedful.protocols.sessions import SessionsProtocol
from heedful.protocols.sql import (
    ChatProtocol,
    ChatSessionsProtocol,
    ConnectorsProtocol,
    ExecutionsProtocol,
    FeedbackServiceProtocol,
    GoldenExamplesProtocol,
)

__all__ = [
    "ChatProtocol",
    "ChatSessionsProtocol",
    "ConnectorsProtocol",
    "ExecutionsProtocol",
    "FeedbackServiceProtocol",
    "GoldenExamplesProtocol",
    "HeedfulProtocol",
    "InsightProtocol",
    "JobsProtocol",
    "KeysProtocol",
    "ReviewProtocol",
    "SessionsProtocol",
]
